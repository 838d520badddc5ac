"""Counting the classes of ragged sets: what every set function is made of.

A set is a stretch of a flat array of classes, `classes[offsets[k]:offsets[k + 1]]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capnets.errors import InputError

__all__ = ["CLASSES", "Floats", "Integers", "counts", "earlier", "firsts", "owners"]

Integers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

CLASSES = 10


def owners(offsets: Integers) -> NDArray[np.int64]:
    """The number of the set that each instance belongs to.

    >>> owners(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def counts(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    """How often each class is in each set: sets x classes.

    >>> counts(np.array([1, 1, 0]), np.array([0, 2, 3]))[:, :2].tolist()
    [[0, 2], [1, 0]]
    """
    keys = _keys(classes, offsets)
    return np.bincount(keys, minlength=(len(offsets) - 1) * CLASSES).reshape(-1, CLASSES)


def earlier(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    """How many instances of the same class stand before each instance in its set.

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
    """The place (in the flat array) of the first instance of each class: sets x classes.

    Where a class is absent stands a place behind all others.
    """
    keys = _keys(classes, offsets)
    places = np.full((len(offsets) - 1) * CLASSES, len(keys), dtype=np.int64)
    places[keys[::-1]] = np.arange(len(keys))[::-1]  # written backwards: the first one stays
    return places.reshape(-1, CLASSES)


def _keys(classes: Integers, offsets: Integers) -> NDArray[np.int64]:
    classes = np.asarray(classes)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(classes):
        raise InputError(f"offsets must run from 0 to the number of instances ({len(classes)})")
    if len(classes) and (classes.min() < 0 or classes.max() >= CLASSES):
        raise InputError(
            f"set functions know the classes 0 to {CLASSES - 1}, "
            f"but these go from {classes.min()} to {classes.max()}"
        )
    return owners(offsets) * CLASSES + classes
