"""Count the classes of ragged sets.

Set k is the slice `classes[offsets[k]:offsets[k + 1]]` of a flat array of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capnets.errors import InputError
from capnets.sets.ragged import owners_of

__all__ = ["CLASSES", "Floats", "Integers", "counts", "earlier", "firsts", "owners"]

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

CLASSES = 10


def owners(offsets: Integers) -> NDArray[np.int64]:
    """Return the set number of each instance.

    >>> owners(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return owners_of(np.diff(offsets))


def counts(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    """Count each class in each set: sets x classes.

    >>> counts(np.array([1, 1, 0]), np.array([0, 2, 3]))[:, :2].tolist()
    [[0, 2], [1, 0]]
    """
    keys = _keys(classes, offsets)
    return np.bincount(keys, minlength=(len(offsets) - 1) * CLASSES).reshape(-1, CLASSES)


def earlier(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    """Count the earlier instances of the same class in the same set.

    >>> earlier(np.array([7, 3, 7, 7, 7]), np.array([0, 4, 5])).tolist()
    [0, 0, 1, 2, 0]
    """
    keys = _keys(classes, offsets)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    places = np.arange(len(keys))
    new = np.ones(len(keys), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    ranks = np.empty_like(places)
    ranks[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return ranks


def firsts(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    """Return the flat position of the first instance of each class: sets x classes.

    Absent classes get a position past the end.
    """
    keys = _keys(classes, offsets)
    places = np.full((len(offsets) - 1) * CLASSES, len(keys), dtype=np.int64)
    places[keys[::-1]] = np.arange(len(keys))[::-1]  # in reverse, so that the first one remains
    return places.reshape(-1, CLASSES)


def _keys(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    classes = np.asarray(classes)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(classes):
        raise InputError(f"offsets must run from 0 to the number of instances ({len(classes)})")
    if len(classes) and (classes.min() < 0 or classes.max() >= CLASSES):
        raise InputError(
            f"classes must lie between 0 and {CLASSES - 1}, "
            f"but these range from {classes.min()} to {classes.max()}"
        )
    return owners(offsets) * CLASSES + classes
