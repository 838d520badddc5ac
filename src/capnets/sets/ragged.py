"""Index arithmetic of ragged sets: offsets, owners, positions, padding and orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = [
    "Array", "cut_by_size", "offsets_of", "owner_of", "owners_of", "padded_orders", "positions_of",
    "random_orders", "scatter_padded", "sorted_orders", "starts_of",
]  # fmt: skip

Array = NDArray[Any]


def offsets_of(sizes: Any) -> Array:
    """Return where each set begins, and where the last one ends.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def owners_of(sizes: Any) -> Array:
    """Return the set of each instance.

    >>> owners_of([2, 0, 3]).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(sizes)), sizes)


def starts_of(sizes: Any) -> Array:
    """Return, for each instance, where its set begins.

    >>> starts_of([2, 0, 3]).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(offsets_of(sizes)[:-1], sizes)


def positions_of(sizes: Any) -> Array:
    """Return the position of each instance inside its set.

    >>> positions_of([2, 0, 3]).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = starts_of(sizes)
    return np.arange(len(starts)) - starts


def owner_of(offsets: Array, row: Any) -> int:
    """Return the set that a row belongs to; sets without instances own none.

    >>> owner_of(offsets_of([2, 0, 3]), 2)
    2
    """
    return int(np.searchsorted(offsets, row, "right")) - 1


def scatter_padded(out: Array, padded: Array, offsets: Array, set_index: Array) -> None:
    """Write padded values (sets x longest x …) of some sets to their rows of a flat array."""
    positions = np.arange(padded.shape[1])
    starts = offsets[set_index][:, None]
    real = positions < offsets[np.asarray(set_index) + 1][:, None] - starts
    out[(starts + positions)[real]] = padded[real]


def cut_by_size(sizes: Array, most: int, *, power: int = 1) -> Iterator[Array]:
    """Yield groups of sets of similar size, smallest first.

    A group is as large as possible while its number of sets times the largest size to the `power`
    stays within `most`; a single set may exceed that.

    >>> [group.tolist() for group in cut_by_size(np.array([3, 1, 2, 9]), 6)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(sizes, kind="stable")
    start = 0
    while start < len(order):
        ascending = sizes[order[start : start + most]]
        cost = np.arange(1, len(ascending) + 1) * ascending**power
        stop = start + max(1, int(np.searchsorted(cost, most, "right")))
        yield order[start:stop]
        start = stop


def random_orders(sizes: Any, generator: torch.Generator) -> Array:
    """Draw a random order for sets of the given sizes, as `Sets.reorder` takes it."""
    sizes = np.asarray(sizes, dtype=np.int64)
    keys = torch.rand(int(sizes.sum()), generator=generator, dtype=torch.float64)
    return sorted_orders(sizes, keys.numpy())


def padded_orders(
    shape: Sequence[int], mask: torch.Tensor | None, generator: torch.Generator
) -> torch.Tensor:
    """Draw a random order for every row of a padded batch; padding stays at the end."""
    keys = torch.rand(*shape, generator=generator)
    if mask is not None:
        keys = keys.masked_fill(~mask.cpu(), torch.inf)
    return keys.argsort(dim=1)


def sorted_orders(sizes: Array, keys: Array) -> Array:
    """Return the order in which the keys of every set ascend."""
    if len(keys) and (sizes == sizes[0]).all():  # sorting rows is far quicker than sorting all
        rows: Array = (
            torch.from_numpy(keys)
            .view(len(sizes), -1)
            .argsort(dim=1, stable=True)
            .flatten()
            .numpy()
        )
        return rows
    order: Array = np.lexsort((keys, owners_of(sizes)))
    return order - starts_of(sizes)
