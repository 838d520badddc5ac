"""Where sets begin, and the orders in which their instances can be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Array", "offsets_of", "random_orders", "sorted_orders"]

Array = NDArray[Any]


def offsets_of(sizes: Any) -> Array:
    """Where each set begins, and where the last one ends.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def random_orders(sizes: Any, generator: torch.Generator) -> Array:
    """A random order for sets of the given sizes, as `Sets.reorder` takes it."""
    sizes = np.asarray(sizes, dtype=np.int64)
    keys = torch.rand(int(sizes.sum()), generator=generator, dtype=torch.float64)
    return sorted_orders(sizes, keys.numpy())


def sorted_orders(sizes: Array, keys: Array) -> Array:
    """The order in which the keys of every set ascend."""
    if len(keys) and (sizes == sizes[0]).all():  # sorting rows is far quicker than sorting all
        rows: Array = torch.from_numpy(keys).view(len(sizes), -1).argsort(dim=1).flatten().numpy()
        return rows
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order: Array = np.lexsort((keys, owner))
    order -= np.repeat(offsets_of(sizes)[:-1], sizes)
    return order
