"""What instances look like to people: pictures, sentences, or numbers with names."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.explanation import Explanation
from capnets.sets import Array, Sets

__all__ = ["Features", "Look", "Pictures", "Texts", "look_of"]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Instances that are pictures.

    Parameters
    ----------
    pixels
        Instances x height x width (grey) or instances x height x width x 3.
    white
        The pixel value of full brightness.
    names
        A caption for each instance; None for none.
    """

    pixels: Array
    white: float = 255.0
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, places: Array) -> Pictures:
        """The look of some of the instances."""
        return Pictures(self.pixels[places], self.white, _taken(self.names, places))

    def label(self, i: int) -> str:
        """What to call instance i."""
        return f"picture {i + 1}" if self.names is None else self.names[i]

    def uri(self, i: int) -> str:
        """Picture i as a PNG inside an address, so that a page needs no other file."""
        from matplotlib.image import imsave

        buffer = io.BytesIO()
        grey = np.clip(self.pixels[i] / self.white, 0, 1)
        imsave(buffer, grey, cmap="gray", vmin=0, vmax=1, format="png")
        return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


@dataclass(frozen=True)
class Texts:
    """Instances that are sentences."""

    sentences: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sentences)

    def take(self, places: Array) -> Texts:
        """The look of some of the instances."""
        return Texts(tuple(self.sentences[int(i)] for i in places))

    def label(self, i: int) -> str:
        """What to call instance i."""
        return self.sentences[i]


@dataclass(frozen=True, eq=False)
class Features:
    """Instances that are rows of a table.

    Parameters
    ----------
    table
        Instances x features.
    columns
        The names of the features.
    names
        A name for each instance; None for its number.
    """

    table: Array
    columns: tuple[str, ...]
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.table)

    def take(self, places: Array) -> Features:
        """The look of some of the instances."""
        return Features(self.table[places], self.columns, _taken(self.names, places))

    def label(self, i: int) -> str:
        """What to call instance i."""
        return f"instance {i + 1}" if self.names is None else self.names[i]

    def feature(self, i: int, column: int) -> str:
        """A feature of instance i in words: "price 7.5", "kind=cup"; none for other categories."""
        name, value = self.columns[column], self.table[i, column]
        if "=" in name and value in (0, 1):
            return name if value else ""
        return f"{name} {value:.4g}"

    def telling(self, values: Array, most: int) -> list[int]:
        """The columns that go along with the values most closely (by absolute correlation)."""
        if len(self.columns) <= most:
            return list(range(len(self.columns)))
        centred = self.table - self.table.mean(0)
        scale = centred.std(0) * values.std()
        agreement = np.abs(centred.T @ (values - values.mean())) / len(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            closeness = np.where(scale > 0, agreement / scale, -1.0)
        return sorted(np.argsort(-closeness, kind="stable")[:most].tolist())


Look = Pictures | Texts | Features


def look_of(sets: Sets) -> Look:
    """The plainest look of the instances of sets: pictures if they are, else their features."""
    rows = np.asarray(sets.instances[sets.index])
    if rows.ndim == 4 and rows.shape[1] == 1:
        return Pictures(rows[:, 0], float(rows.max(initial=1.0)))
    rows = rows.reshape(len(rows), -1)
    columns = sets.feature_names or tuple(f"feature {i}" for i in range(rows.shape[1]))
    return Features(rows, tuple(columns))


def checked(look: Look | None, explanation: Explanation) -> Look:
    """The look, if it fits the explanation; bare numbers for None."""
    instances = int(explanation.offsets[-1])
    if look is None:
        return Features(np.zeros((instances, 0)), ())
    if len(look) != instances:
        raise InputError(f"{len(look)} looks were given for {instances} explained instances")
    return look


def _taken(names: tuple[str, ...] | None, places: Array) -> Any:
    return None if names is None else tuple(names[int(i)] for i in places)
