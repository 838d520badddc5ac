"""Define `Explanation`, the result of every explanation method."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from capnets.errors import InputError, unknown
from capnets.files import write_text
from capnets.sets import Array
from capnets.sets.orders import Orders
from capnets.sets.ragged import owners_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from capnets.explain.maps import ValueMap
    from capnets.explain.render.instances import Instances

__all__ = ["Explanation"]

FORMAT = 2
PER_INSTANCE = ("values", "errors", "spreads", "expected")
PER_SET = ("predictions", "baselines", "prediction_spreads", "labels", "probabilities")
NAMES = ("ids", "predicted_classes", "true_classes", "covariates")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Explanation:
    """One value per instance of some sets, in the unit of the label.

    For every set, baseline + sum of values = prediction.

    Parameters
    ----------
    method
        Name of the method, such as "added values".
    values
        One per instance, set after set, in the order of the explained sets.
    offsets
        Set k has the values `values[offsets[k]:offsets[k + 1]]`.
    predictions
        One per set, over the same orders as the values.
    baselines
        The prediction for an empty set, with the covariates of the set; values are counted from
        there.
    orders
        The orders in which instances were read.
    exact
        False if values are estimated from samples.
    passes, seconds
        Cost: number of sets that the network read, and time.
    errors
        Standard errors of estimated values.
    spreads, prediction_spreads
        Standard deviations over orders: of each value, and of the prediction of each set.
    ids, labels, expected
        Names of the sets, their labels, and the known true values.
    output
        The label or class that the values add to; empty if there is only one label.
    unit
        The unit of values and predictions: "logit" for classes, else empty for that of the label.
    caution
        A warning that labels may not determine the values; part of `meaning`.
    probabilities, predicted_classes, true_classes
        For classes, per set: the probability of `output`, the predicted and the true class.
    covariates
        The covariates of every set in words, if it has any: the baseline depends on them.
    title, source
        Heading of pages, and a line on where network and sets come from.
    instances
        How to display the instances: `Images`, `Texts` or `Features`. Not saved by `save`.
    """

    method: str
    values: Array
    offsets: Array
    predictions: Array
    baselines: Array
    orders: Orders = field(default_factory=Orders)
    exact: bool = True
    passes: int = 0
    seconds: float = 0.0
    errors: Array | None = None
    spreads: Array | None = None
    prediction_spreads: Array | None = None
    ids: tuple[str, ...] | None = None
    labels: Array | None = None
    expected: Array | None = None
    output: str = ""
    unit: str = ""
    caution: str = ""
    probabilities: Array | None = None
    predicted_classes: tuple[str, ...] | None = None
    true_classes: tuple[str, ...] | None = None
    covariates: tuple[str, ...] | None = None
    title: str = ""
    source: str = ""
    instances: Instances | None = None

    def __post_init__(self) -> None:
        for name in PER_INSTANCE + PER_SET:
            values = getattr(self, name)
            if values is not None:
                values = np.asarray(values, dtype=np.float64)
                expected = int(self.offsets[-1]) if name in PER_INSTANCE else len(self)
                if values.shape != (expected,):
                    raise InputError(
                        f"{name} has shape {values.shape}, but needs {expected} numbers, one per "
                        + ("instance" if name in PER_INSTANCE else "set")
                    )
                object.__setattr__(self, name, values)
        object.__setattr__(self, "offsets", np.asarray(self.offsets, dtype=np.int64))

    # Content --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        sets, instances = len(self), len(self.values)
        what = f"{self.method}{f' to {self.output}' if self.output else ''}"
        quality = "exact" if self.exact else "estimated"
        return f"<Explanation: {what} of {instances} instances in {sets} sets, {quality}>"

    def _repr_html_(self) -> str:
        from capnets.explain.render.page import fragment

        return fragment(self)

    @property
    def sizes(self) -> Array:
        """Return the number of instances of each set."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Array:
        """Return the index of the set of each instance."""
        return owners_of(self.sizes)

    @property
    def gaps(self) -> Array:
        """Return prediction - baseline - sum of values per set; 0 if the values are complete."""
        total = np.bincount(self.owners, weights=self.values, minlength=len(self))
        return self.predictions - self.baselines - total

    @property
    def meaning(self) -> str:
        """Describe the values and their uncertainty in a few sentences."""
        text = [f"{self.method[0].upper()}{self.method[1:]}, {self.orders}."]
        if self.output:
            unit = f"the {self.unit} of " if self.unit else ""
            text.append(f"Values add to {unit}{self.output!r}.")
        if self.caution:
            text.append(self.caution)
        if self.covariates is not None:
            text.append("The baseline of a set depends on its covariates.")
        if not self.exact:
            text.append("Values are means of samples")
            if self.errors is not None and len(self.errors):
                error = float(self.errors.mean())
                size = f"{error:.2g}" if error >= 1e-4 else "less than 0.0001"
                text[-1] += f", with a standard error of {size} on average"
            text[-1] += "."
        if self.prediction_spreads is not None and len(self):
            spread = float(self.prediction_spreads.mean())
            scale = float(np.abs(self.predictions).mean())
            share = f" ({100 * spread / scale:.1f} %)" if spread >= 1e-3 * scale > 0 else ""
            text.append(
                f"The prediction changes with the order by ±{spread:.3g} on average{share}; "
                "values sum to its mean."
            )
        return " ".join(text)

    def span(self, k: int) -> slice:
        """Return the slice of `values` that belongs to set k."""
        if not 0 <= k < len(self):
            raise InputError(f"set {k} does not exist: sets 0 to {len(self) - 1} were explained")
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def name(self, k: int) -> str:
        """Return the name of set k."""
        return str(k) if self.ids is None else self.ids[k]

    # Selection ------------------------------------------------------------------------------------

    def subset(self, set_index: Iterable[int]) -> Self:
        """Return the explanation of some sets, by index, in the order given."""
        chosen = [int(k) for k in set_index]
        spans = [self.span(k) for k in chosen]
        rows = np.concatenate([np.arange(s.start, s.stop) for s in spans] or [np.arange(0)])

        def part(name: str) -> Any:
            values = getattr(self, name)
            if values is None:
                return None
            if name in NAMES:
                return tuple(values[k] for k in chosen)
            return values[rows if name in PER_INSTANCE else np.array(chosen, dtype=np.int64)]

        parts = {name: part(name) for name in PER_INSTANCE + PER_SET + NAMES}
        if self.ids is None:
            parts["ids"] = tuple(str(k) for k in chosen)
        if self.orders.kind == "listed":
            listed = np.asarray(self.orders.listed)[rows]
            parts["orders"] = Orders.of(listed, label=self.orders.label)
        if self.instances is not None:
            parts["instances"] = self.instances.take(rows)
        sizes = [s.stop - s.start for s in spans]
        return replace(self, offsets=np.concatenate([[0], np.cumsum(sizes)]), **parts)

    def with_expected(self, expected: Any) -> Self:
        """Return the explanation with known true values to compare with."""
        return replace(self, expected=np.asarray(expected, dtype=np.float64))

    # Display --------------------------------------------------------------------------------------

    def plot(
        self,
        k: int = 0,
        *,
        kind: str = "waterfall",
        instances: Instances | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw set k with matplotlib.

        Parameters
        ----------
        k
            The set.
        kind
            `waterfall`, or `strip` for images.
        instances
            How to display the instances, if not `self.instances`.
        ax
            The axes to draw into; by default those of a new figure.
        """
        from capnets.explain.render.figures import plot

        return plot(self, k, kind=kind, instances=instances, ax=ax)

    def maps(self) -> list[ValueMap]:
        """Return a map of every file, if the places of the instances are known."""
        from capnets.explain.maps import maps_of

        places = getattr(self.instances, "places", None)
        if places is None:
            raise InputError("the instances have no coordinates: a map needs files with `coords`")
        return maps_of(self, places)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        instances: Instances | None = None,
        title: str = "",
        source: str = "",
    ) -> str:
        """Return all sets as one self-contained HTML page without scripts; write it to `path`."""
        from capnets.explain.render.page import page

        html = page(self, instances=instances, title=title, source=source)
        if path is not None:
            write_text(path, html)
        return html

    # Conversion -----------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per instance and a column for everything known."""
        import pandas as pd

        owners = self.owners

        def repeated(values: Any) -> Any:
            return None if values is None else np.asarray(values)[owners]

        columns: dict[str, Any] = {
            "set": [self.name(k) for k in owners] if self.ids is not None else owners,
            "instance": np.arange(len(owners)) - self.offsets[owners],
            "value": self.values,
            "error": self.errors,
            "spread": self.spreads,
            "expected": self.expected,
            "prediction": self.predictions[owners],
            "baseline": None if self.covariates is None else self.baselines[owners],
            "label": repeated(self.labels),
            "probability": repeated(self.probabilities),
            "predicted_class": repeated(self.predicted_classes),
            "true_class": repeated(self.true_classes),
        }
        return pd.DataFrame({k: v for k, v in columns.items() if v is not None})

    def to_shap(self) -> Any:
        """Return a `shap.Explanation`, or a list of them if the sets differ in size."""
        from capnets.explain.bridges import to_shap

        return to_shap(self)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object; `from_dict` reads it."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "instances"}
        for name, value in values.items():
            if isinstance(value, np.ndarray | tuple):
                values[name] = np.asarray(value).tolist()
        return {"format": FORMAT, **values, "orders": self.orders.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read the result of `to_dict`."""
        values = dict(values)
        if values.pop("format", None) not in range(1, FORMAT + 1):
            raise InputError("this is not an explanation, or one of a newer version of capnets")
        known = [f.name for f in fields(cls) if f.name != "instances"]
        for key in values:
            if key not in known:
                raise unknown("Explanation field", key, known)
        for name in NAMES:
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        orders, offsets = Orders.from_dict(values["orders"]), np.asarray(values["offsets"])
        return cls(**values | {"orders": orders, "offsets": offsets})

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        try:
            values = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"{path} holds no explanation: {error}") from error
        return cls.from_dict(values)
