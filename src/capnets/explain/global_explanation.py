"""Explain a network over many sets: which kinds of instances add how much.

A global explanation collects the values of all instances of a data set, with their features and
categories. It summarizes values per category, relates them to features, and lists the instances
with the highest and lowest values.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.explain.explanation import Explanation
from capnets.explain.interaction import interactions as pair_interactions
from capnets.explain.methods import explain
from capnets.explain.render.instances import words_of
from capnets.explain.subject import Source, resolve
from capnets.files import write_text
from capnets.sets import Array
from capnets.sets.orders import Orders
from capnets.sets.ragged import owners_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GlobalExplanation", "category_interactions", "explain_global"]

#: Number and largest size of the sets whose pairs are compared for interactions of categories.
INTERACTION_SETS, INTERACTION_SIZE = 200, 32
#: Number of random contexts per pair.
SAMPLES = 4


@dataclass(frozen=True, eq=False, repr=False)
class GlobalExplanation:
    """The values of all instances of a data set, by feature and by category.

    Parameters
    ----------
    explanation
        The explanation of all sets.
    features
        Instances x features.
    columns
        The names of the features.
    categories
        The category of each instance; None if unknown.
    interactions
        The mean interaction between any two categories, if asked for: negative if one lowers what
        the other adds.
    """

    explanation: Explanation
    features: Array
    columns: tuple[str, ...]
    categories: Array | None = None
    interactions: pd.DataFrame | None = None

    def __repr__(self) -> str:
        found = self.explanation
        return (
            f"<GlobalExplanation: {found.method} of {len(found.values)} instances in "
            f"{len(found)} sets, {len(self.columns)} features>"
        )

    def _repr_html_(self) -> str:
        table = self.by_feature() if self.categories is None else self.by_category()
        return str(table.to_html(border=0))

    @property
    def values(self) -> Array:
        """Return the value of every instance."""
        return self.explanation.values

    def by_category(self) -> pd.DataFrame:
        """Return count, mean, spread and share of positive values per category.

        Raises an error if the categories of the instances are unknown.
        """
        import pandas as pd

        if self.categories is None:
            raise InputError("the categories of these instances are unknown: pass categories=…")
        frame = pd.DataFrame({"category": self.categories, "value": self.values})
        groups = frame.groupby("category")["value"]
        table = groups.agg(["count", "mean", "std", "min", "max"])
        table["raises"] = groups.agg(lambda v: float((v > 0).mean()))
        return table.sort_values("mean", ascending=False)

    def by_feature(self) -> pd.DataFrame:
        """Return the correlation of each feature with the values, strongest first.

        Rank correlation (Spearman) also finds relations that are monotone but not linear.
        """
        import pandas as pd
        from scipy.stats import rankdata

        ranks = rankdata(self.values)
        rows = []
        for k, name in enumerate(self.columns):
            column = self.features[:, k]
            constant = np.ptp(column) == 0 or np.ptp(self.values) == 0
            pearson = 0.0 if constant else float(np.corrcoef(column, self.values)[0, 1])
            spearman = 0.0 if constant else float(np.corrcoef(rankdata(column), ranks)[0, 1])
            rows.append((name, pearson, spearman))
        frame = pd.DataFrame(rows, columns=["feature", "correlation", "rank correlation"])
        order = np.argsort(-np.abs(frame["rank correlation"].to_numpy()), kind="stable")
        return frame.iloc[order].set_index("feature")

    def dependence(self, feature: str | int, *, bins: int = 10) -> pd.DataFrame:
        """Return the mean value and its spread in equally populated bins of a feature.

        A feature with few distinct values has one bin for each.
        """
        import pandas as pd

        k = self._column(feature)
        column = self.features[:, k]
        distinct, bin_of = np.unique(column, return_inverse=True)
        if len(distinct) > bins:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)))
            bin_of = np.clip(np.searchsorted(edges, column, "right") - 1, 0, len(edges) - 2)
        frame = pd.DataFrame({"bin": bin_of, self.columns[k]: column, "value": self.values})
        groups = frame.groupby("bin")
        return pd.DataFrame(
            {
                self.columns[k]: groups[self.columns[k]].mean(),
                "count": groups["value"].count(),
                "mean": groups["value"].mean(),
                "std": groups["value"].std(),
            }
        ).reset_index(drop=True)

    def extremes(self, *, most: int = 5) -> pd.DataFrame:
        """Return the instances with the highest and the lowest values."""
        import pandas as pd

        order = np.argsort(-self.values, kind="stable")
        most = min(most, len(order))
        chosen = np.unique(np.concatenate([order[:most], order[-most:]]))
        chosen = chosen[np.argsort(-self.values[chosen], kind="stable")]
        owners = self.explanation.owners[chosen]
        words = words_of(self.explanation)
        table = {
            "set": [self.explanation.name(int(k)) for k in owners],
            "instance": chosen - self.explanation.offsets[owners],
            "name": [words[int(i)] for i in chosen],
            "value": self.values[chosen],
        }
        if self.categories is not None:
            table["category"] = self.categories[chosen]
        return pd.DataFrame(table)

    def plot(
        self, feature: str | int | None = None, *, most: int = 10, ax: Axes | None = None
    ) -> Figure:
        """Draw a beeswarm of the features, or the dependence of the values on one feature."""
        from capnets.explain.render.global_figures import beeswarm, dependence

        if feature is None:
            return beeswarm(self, most=most, ax=ax)
        return dependence(self, self._column(feature), ax=ax)

    def to_html(self, path: str | Path | None = None, *, title: str = "", source: str = "") -> str:
        """Return one self-contained HTML page with tables and figures; write it to `path`."""
        from capnets.explain.render.global_page import global_page

        html = global_page(self, title=title, source=source)
        if path is not None:
            write_text(path, html)
        return html

    def strongest(self, most: int) -> list[int]:
        """Return the features with the largest rank correlation with the values."""
        names = self.by_feature().index[:most]
        return [self.columns.index(name) for name in names]

    def _column(self, feature: str | int) -> int:
        if isinstance(feature, str):
            if feature not in self.columns:
                raise unknown("feature", feature, self.columns)
            return self.columns.index(feature)
        if not 0 <= feature < len(self.columns):
            raise InputError(f"feature {feature} does not exist: there are {len(self.columns)}")
        return feature


def explain_global(
    source: Source,
    X: Any,
    *,
    categories: Any = None,
    orders: Orders | int | None = None,
    seed: int = 0,
    output: int | str | None = None,
    interactions: bool = False,
) -> GlobalExplanation:
    """Explain all sets of a data set together.

    Parameters
    ----------
    source, X, orders, seed, output
        As in `explain`.
    categories
        The category of each instance, set after set. By default the classes of a set task, or the
        one-hot features of a single categorical column.
    interactions
        Whether to estimate interactions between categories, from random subsets of the first sets
        of at most 32 instances.
    """
    import pandas as pd

    sets = resolve(source, X, output).sets
    found = explain(source, X, orders=orders, seed=seed, output=output)
    rows = np.asarray(sets.instances[sets.index], dtype=np.float64).reshape(len(sets.index), -1)
    columns = sets.feature_names or tuple(f"feature {k}" for k in range(rows.shape[1]))
    if categories is None and sets.classes is not None:
        categories = sets.classes[sets.index]
    if categories is None:
        categories = _one_hot(rows, columns)
    if categories is not None and len(categories) != len(rows):
        raise InputError(f"{len(categories)} categories given, but there are {len(rows)} instances")
    known = None if categories is None else np.asarray(categories)
    pairs = None
    if interactions:
        if known is None:
            raise InputError("interactions need categories: pass categories=…")
        matrix, names = category_interactions(source, X, known, seed=seed, output=output)
        pairs = pd.DataFrame(matrix, index=names, columns=names)
    return GlobalExplanation(found, rows, tuple(columns), known, pairs)


def category_interactions(
    source: Source, X: Any, categories: Any, *, seed: int = 0, output: int | str | None = None
) -> tuple[Array, list[str]]:
    """Return the mean interaction between any two categories, and their names.

    Estimated on the first sets that are not large; NaN for categories that never met.
    """
    subject = resolve(source, X, output)
    chosen = np.flatnonzero(subject.sets.sizes <= INTERACTION_SIZE)[:INTERACTION_SETS]
    owners = owners_of(subject.sets.sizes)
    sets = subject.sets.subset(chosen)
    own = np.asarray(categories)[np.isin(owners, chosen)]
    names, numbers = np.unique(own, return_inverse=True)
    found = pair_interactions(
        subject.model, sets, samples=SAMPLES, seed=seed, output=subject.output
    )
    return found.by_class(numbers), [str(name) for name in names]


def _one_hot(rows: Array, columns: tuple[str, ...]) -> Array | None:
    """Return the category of each instance if exactly one column is categorical."""
    owners = {name.partition("=")[0] for name in columns if "=" in name}
    if len(owners) != 1:
        return None
    indices = [k for k, name in enumerate(columns) if "=" in name]
    block = rows[:, indices]
    if not np.isin(block, (0, 1)).all() or (block.sum(1) > 1).any():
        return None
    names = np.array([columns[k].partition("=")[2] for k in indices] + ["(none)"])
    none = block.sum(1) == 0
    chosen: Array = names[np.where(none, len(indices), block.argmax(1))]
    return chosen
