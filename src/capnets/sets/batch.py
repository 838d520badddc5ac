"""Turn sets into batches of padded tensors.

A batch is padded to its own longest set. If all its sets have the same size it has no mask, so that
networks skip masking.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.memory import check_memory
from capnets.sets import Array, Sets, random_orders
from capnets.sets.ragged import starts_of

__all__ = ["Batch", "Batches", "batches"]

#: Minimum number of stretches per epoch within which shuffled sets are sorted by size.
STRETCHES = 8


@dataclass(frozen=True)
class Batch:
    """Sets as padded tensors.

    Parameters
    ----------
    x
        Sets x longest x features; padding holds arbitrary values.
    mask
        Sets x longest, True at instances; None if every set fills its row.
    y
        Sets x outputs, or None.
    weights
        One weight per set, or None.
    set_index
        Indices of the sets.
    """

    x: Tensor
    mask: Tensor | None
    y: Tensor | None
    weights: Tensor | None
    set_index: Array

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        mask, y, weights = (
            None if t is None else t.to(device) for t in (self.mask, self.y, self.weights)
        )
        return Batch(self.x.to(device), mask, y, weights, self.set_index)

    def reorder(self, order: Tensor) -> Batch:
        """Return the sets in other orders: sets x longest, positions inside the set."""
        sets = torch.arange(len(self.x), device=self.x.device)[:, None]
        return replace(self, x=self.x[sets, order])

    def shuffled(self, generator: torch.Generator) -> Batch:
        """Return the sets with instances in random order; padding stays at the end."""
        keys = torch.rand(self.x.shape[:2], generator=generator).to(self.x.device)
        if self.mask is not None:
            keys = keys.masked_fill(~self.mask, torch.inf)
        return self.reorder(keys.argsort(dim=1))


class Batches:
    """Cut batches from sets.

    Parameters
    ----------
    sets
        Sets to read. Their arrays are shared, not copied, if their type allows it.
    """

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        if sets.instances.dtype != np.float32:
            check_memory(
                4 * sets.instances.size,
                what=f"{len(sets.instances):,} instances as float32",
                advice="store them as float32, or work on fewer",
            )
        self.instances = _tensor(sets.instances, torch.float32)
        self.offsets = np.asarray(sets.offsets)
        self.index = _tensor(sets.index, torch.int64)
        self.sizes = sets.sizes
        labels = None if sets.y is None else _tensor(sets.y, torch.float32)
        self.y = labels[:, None] if labels is not None and labels.ndim == 1 else labels
        self.weights = None if sets.weights is None else _tensor(sets.weights, torch.float32)

    def take(self, chosen: Array, index: Tensor | None = None) -> Batch:
        """Return the batch of the chosen sets; `index` replaces their order of instances."""
        index = self.index if index is None else index
        sizes, starts = self.sizes[chosen], self.offsets[:-1][chosen]
        longest = int(sizes.max(initial=0))
        check_memory(
            4 * len(chosen) * longest * math.prod(self.sets.feature_shape),
            what=f"a batch of {len(chosen):,} sets padded to {longest:,} instances",
            advice="make batches smaller, or put sets of similar size together (bucket=True)",
        )
        positions = torch.from_numpy(starts[:, None] + np.arange(longest))
        mask = None
        if (sizes != longest).any():
            mask = torch.from_numpy(np.arange(longest) < sizes[:, None])
            positions = positions.where(mask, 0)  # padding may be any row
        rows = index[positions.flatten()] if longest else positions.flatten()
        x = self.instances.index_select(0, rows).view(
            len(chosen), longest, *self.sets.feature_shape
        )
        picked = torch.from_numpy(chosen)
        return Batch(
            x,
            mask,
            None if self.y is None else self.y[picked],
            None if self.weights is None else self.weights[picked],
            chosen,
        )

    @property
    def ragged(self) -> bool:
        """Whether sizes differ so much that most of a random batch would be padding."""
        return bool(self.sizes.max() > 2 * self.sizes.mean())

    def epoch(
        self,
        *,
        size: int,
        shuffle: torch.Generator | None = None,
        reorder: torch.Generator | None = None,
        bucket: bool = False,
        share: tuple[int, int] = (0, 1),
        again: Sequence[int] | Array = (),
    ) -> Iterator[Batch]:
        """Yield every set once, in batches.

        Parameters
        ----------
        size
            Number of sets per batch.
        shuffle
            Generator for the order of the sets; None keeps it.
        reorder
            Generator for the order of the instances of every set; None keeps it.
        bucket
            Whether to batch sets of similar size, which saves padding. Shuffled sets are bucketed
            only if there are many batches.
        share
            (r, w): every w-th set, beginning with the r-th, for w processes. All shares have the
            same size, since processes that train together must take equally many steps: the last
            few sets are left out if the sets do not divide evenly.
        again
            Indices of sets to read once more per occurrence.
        """
        if size < 1:
            raise InputError(f"a batch needs at least 1 set, not {size}")
        order = np.concatenate([np.arange(len(self.sets)), np.asarray(again, dtype=np.int64)])
        if shuffle is not None:
            order = order[torch.randperm(len(order), generator=shuffle).numpy()]
        index = self.index
        if reorder is not None:
            rows = starts_of(self.sizes) + random_orders(self.sizes, reorder)
            index = index[torch.from_numpy(rows)]
        rank, world = share
        order = order[rank : len(order) // world * world : world] if world > 1 else order
        cuts: Sequence[int] = range(0, len(order), size)
        # Sort within stretches only: shuffled batches must differ between epochs and must not
        # consist of a single size.
        stretch = size * min(50, 50 if shuffle is None else len(cuts) // STRETCHES)
        if bucket and stretch > size:
            for a in range(0, len(order), stretch):
                part = order[a : a + stretch]
                order[a : a + stretch] = part[np.argsort(self.sizes[part], kind="stable")]
            if shuffle is not None:
                cuts = [cuts[i] for i in torch.randperm(len(cuts), generator=shuffle)]
        for a in cuts:
            yield self.take(order[a : a + size], index)


def batches(sets: Sets, *, size: int, bucket: bool = False) -> Iterator[Batch]:
    """Yield the sets in their own order, in batches; see `Batches` for shuffling.

    >>> s = Sets.from_arrays([np.ones((2, 3)), np.zeros((1, 3)), np.zeros((1, 3))])
    >>> [(tuple(b.x.shape), b.mask is None) for b in batches(s, size=2)]
    [((2, 2, 3), False), ((1, 1, 3), True)]
    """
    return Batches(sets).epoch(size=size, bucket=bucket)


def _tensor(values: Array, dtype: torch.dtype) -> Tensor:
    with warnings.catch_warnings():
        # torch warns of read-only memory maps; nothing here writes to them.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.asarray(values)).to(dtype)
