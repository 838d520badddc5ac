"""`Explanation`: what every explanation method returns."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from capnets.errors import InputError, unknown
from capnets.files import write_text
from capnets.sets import Array
from capnets.sets.orders import Orders

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from capnets.explain.render.looks import Look

__all__ = ["Explanation"]

FORMAT = 1
PER_INSTANCE = ("values", "errors", "spreads", "expected")
PER_SET = ("predictions", "baselines", "prediction_spreads", "labels")


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """One number per instance of some sets, in the unit of the label, and how it was come by.

    Parameters
    ----------
    method
        What the numbers are, in words.
    values
        One per instance, set after set, as the explained sets list their instances.
    offsets
        Set k has the values `values[offsets[k]:offsets[k + 1]]`.
    predictions
        One per set, over the same orders as the values.
    baselines
        What a set without instances is worth; values are counted from there.
    orders
        The orders that instances were read in.
    exact
        Whether the numbers are what they say (True), or estimates from samples.
    passes, seconds
        Cost: how many sets the network had to read in all, and how long it took.
    errors
        Standard errors of estimated values.
    spreads, prediction_spreads
        Standard deviations over orders: of each value, and of the prediction of each set.
    ids, labels, expected
        Names of the sets, their labels, and the values that a perfect explanation would have.
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

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Array:
        """How many instances each set has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Array:
        """The number of the set that each instance belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def gaps(self) -> Array:
        """Per set: prediction less baseline less the sum of the values (0: complete)."""
        total = np.bincount(self.owners, weights=self.values, minlength=len(self))
        return self.predictions - self.baselines - total

    @property
    def meaning(self) -> str:
        """What the numbers are and how far to trust them, for people."""
        text = [f"{self.method[0].upper()}{self.method[1:]}, {self.orders}."]
        if not self.exact:
            text.append("Estimated from samples; ± is one standard error.")
        if self.prediction_spreads is not None and len(self):
            spread = float(self.prediction_spreads.mean())
            scale = float(np.abs(self.predictions).mean())
            share = f" ({100 * spread / scale:.1f} % of it)" if scale else ""
            text.append(
                f"The prediction changes with the order by ±{spread:.3g} on average{share}; "
                "the values are means over orders, and sum to the mean prediction."
            )
        return " ".join(text)

    def stretch(self, k: int) -> slice:
        """Where the instances of set k stand."""
        if not 0 <= k < len(self):
            raise InputError(f"set {k} does not exist: sets 0 to {len(self) - 1} were explained")
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    def name(self, k: int) -> str:
        """The name of set k."""
        return str(k) if self.ids is None else self.ids[k]

    def subset(self, chosen: Any) -> Self:
        """The explanation of the chosen sets, by number, in the order given."""
        stretches = [self.stretch(int(k)) for k in chosen]
        sizes = [s.stop - s.start for s in stretches]
        places = np.concatenate([np.arange(s.start, s.stop) for s in stretches] or [np.arange(0)])
        numbers = np.asarray(chosen, dtype=np.int64)

        def part(name: str) -> Any:
            values: Array | None = getattr(self, name)
            return None if values is None else values[places if name in PER_INSTANCE else numbers]

        ids = tuple(self.name(int(k)) for k in chosen)
        if self.orders.kind == "listed":
            orders = Orders.of(np.asarray(self.orders.listed)[places], label=self.orders.label)
        else:
            orders = self.orders
        return replace(
            self, offsets=np.concatenate([[0], np.cumsum(sizes)]), ids=ids, orders=orders,
            **{n: part(n) for n in PER_INSTANCE + PER_SET},
        )  # fmt: skip

    def expecting(self, expected: Any) -> Self:
        """The same explanation with the values that a perfect one would have beside it."""
        return replace(self, expected=np.asarray(expected, dtype=np.float64))

    def to_frame(self) -> pd.DataFrame:
        """A table with one row per instance; a column only for what is known."""
        import pandas as pd

        owners = self.owners
        columns: dict[str, Any] = {
            "set": [self.name(k) for k in owners] if self.ids is not None else owners,
            "instance": np.arange(len(owners)) - self.offsets[owners],
            "value": self.values,
            "error": self.errors,
            "spread": self.spreads,
            "expected": self.expected,
            "prediction": self.predictions[owners],
            "label": None if self.labels is None else self.labels[owners],
        }
        return pd.DataFrame({k: v for k, v in columns.items() if v is not None})

    def plot(self, k: int = 0, *, kind: str = "waterfall", look: Look | None = None) -> Figure:
        """Set k as a matplotlib figure: `waterfall`, or `strip` where instances are pictures."""
        from capnets.explain.render.figures import plot

        return plot(self, k, kind=kind, look=look)

    def to_html(
        self, *, look: Look | None = None, title: str = "What each instance adds", about: str = ""
    ) -> str:
        """All sets as one HTML page that needs no other file; `look` says what instances are."""
        from capnets.explain.render.page import page

        return page(self, look=look, title=title, about=about)

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value.tolist()
        ids = None if self.ids is None else [*self.ids]
        return {"format": FORMAT, **values, "orders": self.orders.to_dict(), "ids": ids}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Back from `to_dict`; a key that is not a field raises."""
        values = dict(values)
        if values.pop("format", None) != FORMAT:
            raise InputError("this is not an explanation, or one of another version of capnets")
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown("Explanation field", key, known)
        ids = values.get("ids")
        return cls(
            **values
            | {
                "orders": Orders.from_dict(values["orders"]),
                "offsets": np.asarray(values["offsets"], dtype=np.int64),
                "ids": None if ids is None else tuple(ids),
            }
        )

    def save(self, path: str | Path) -> None:
        """Write it as a JSON file."""
        write_text(path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        try:
            values = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"{path} holds no explanation: {error}") from error
        return cls.from_dict(values)
