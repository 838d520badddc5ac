"""Turn sets into batches of padded tensors.

A batch is padded to its own longest set. If all its sets have the same size it has no mask, so that
networks skip masking. Instances of any type become float32 batch by batch. Large mapped files are
streamed: sets are shuffled in blocks of neighbours, and pages are released after every batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.memory import check_memory
from capnets.sets import Array, Sets, random_orders
from capnets.sets.covariates import append
from capnets.sets.mapped import LARGE, is_streamed
from capnets.sets.ragged import padded_orders, starts_of
from capnets.sets.tensors import as_instances, as_tensor, gather

__all__ = ["Batch", "Batches", "Sample", "batches", "instances_per_batch"]

#: Minimum number of stretches per epoch within which shuffled sets are sorted by size.
STRETCHES = 8
#: Blocks of neighbouring sets of a streamed file that are shuffled together, and their bytes.
BLOCKS, BLOCK_BYTES = 8, LARGE // 8

#: Numbers in a batch of a prediction, padding included; a set of more is a batch of its own.
NUMBERS = 2**25


class Sample(NamedTuple):
    """Read at most `most` random instances of every set."""

    most: int
    generator: torch.Generator


@dataclass(frozen=True)
class Batch:
    """Sets as padded tensors.

    Parameters
    ----------
    x
        Sets x longest x features, behind them the covariates of the set; the features of padding
        are arbitrary.
    mask
        Sets x longest, True at instances; None if every set fills its row.
    y
        Sets x outputs, or None.
    weights
        One weight per set, or None.
    set_index
        Indices of the sets.
    times
        Sets x 1: the size of a set as a multiple of the instances that were sampled from it; None
        if sets are complete.
    """

    x: Tensor
    mask: Tensor | None
    y: Tensor | None
    weights: Tensor | None
    set_index: Array
    times: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        mask, y, weights, times = (
            None if t is None else t.to(device)
            for t in (self.mask, self.y, self.weights, self.times)
        )
        return Batch(self.x.to(device), mask, y, weights, self.set_index, times)

    def reorder(self, order: Tensor) -> Batch:
        """Return the sets in other orders: sets x longest, positions inside the set."""
        sets = torch.arange(len(self.x), device=self.x.device)[:, None]
        return replace(self, x=self.x[sets, order])

    def shuffled(self, generator: torch.Generator) -> Batch:
        """Return the sets with instances in random order; padding stays at the end."""
        order = padded_orders(self.x.shape[:2], self.mask, generator)
        return self.reorder(order.to(self.x.device))


class Batches:
    """Cut batches from sets.

    Parameters
    ----------
    sets
        Sets to read. Their arrays are shared, not copied, if their type allows it.
    """

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.streamed = is_streamed(sets.instances)
        self.instances = as_instances(sets.instances)
        self.offsets = np.asarray(sets.offsets)
        self.index = as_tensor(sets.index, torch.int64)
        self.sizes = sets.sizes
        labels = None if sets.y is None else as_tensor(sets.y, torch.float32)
        self.y = labels[:, None] if labels is not None and labels.ndim == 1 else labels
        self.weights = None if sets.weights is None else as_tensor(sets.weights, torch.float32)
        known = sets.covariates
        self.covariates = None if known is None else as_tensor(known, torch.float32)

    def take(
        self,
        chosen: Array,
        index: Tensor | None = None,
        *,
        sample: Sample | None = None,
        reorder: torch.Generator | None = None,
    ) -> Batch:
        """Return the batch of the chosen sets.

        Parameters
        ----------
        chosen
            Indices of the sets.
        index
            Replaces the order of the instances of all sets; a sample takes the first ones then.
        sample
            Read a part of large sets; without `index` it is drawn here, in the given order.
        reorder
            Generator for the order of the instances of every set; None keeps it.
        """
        whole = self.sizes[chosen]
        sizes = whole if sample is None else np.minimum(whole, sample.most)
        longest = int(sizes.max(initial=0))
        if self.covariates is not None:
            longest = max(longest, 1)  # padding carries the covariates of empty sets
        check_memory(
            4 * len(chosen) * longest * (math.prod(self.sets.feature_shape) + self.n_covariates),
            what=f"a batch of {len(chosen):,} sets padded to {longest:,} instances",
            advice="make batches smaller, or put sets of similar size together (bucket=True)",
        )
        if sample is None or index is not None:
            inside = np.arange(longest)[None]
        else:
            inside = _drawn(whole, sample)
        positions = torch.from_numpy(self.offsets[:-1][chosen][:, None] + inside)
        mask = None
        if (sizes != longest).any():
            mask = torch.from_numpy(np.arange(longest) < sizes[:, None])
        if reorder is not None:
            positions = positions.gather(1, padded_orders(positions.shape, mask, reorder))
        if mask is not None:
            positions = positions.where(mask, 0)  # padding may be any row
        index = self.index if index is None else index
        rows = index[positions.flatten()] if len(index) else positions.flatten()[:0]
        shape = (len(chosen), longest, *self.sets.feature_shape)
        x = self.gather(rows).view(shape) if len(rows) else torch.zeros(shape)
        picked = torch.from_numpy(chosen)
        if self.covariates is not None:
            x = append(x, self.covariates[picked])
        return Batch(
            x,
            mask,
            None if self.y is None else self.y[picked],
            None if self.weights is None else self.weights[picked],
            chosen,
            None if (sizes == whole).all() else torch.from_numpy(whole / sizes).float()[:, None],
        )

    def gather(self, rows: Tensor) -> Tensor:
        """Return some rows of the instances as float32."""
        return gather(self.instances, rows, file=self.sets.instances if self.streamed else None)

    @property
    def n_covariates(self) -> int:
        """Number of covariates."""
        return self.sets.n_covariates

    @property
    def ragged(self) -> bool:
        """Return whether most of a random batch would be padding."""
        return bool(self.sizes.max() > 2 * self.sizes.mean())

    def epoch(
        self,
        *,
        size: int,
        instances: int | None = None,
        shuffle: torch.Generator | None = None,
        reorder: torch.Generator | None = None,
        sample: Sample | None = None,
        bucket: bool = False,
        again: Sequence[int] | Array = (),
    ) -> Iterator[Batch]:
        """Yield every set once, in batches.

        Parameters
        ----------
        size
            Number of sets per batch, of all processes together.
        instances
            Largest number of instances that a process reads at once, padding included; a larger
            set is a batch.
        shuffle
            Generator for the order of the sets; None keeps it.
        reorder
            Generator for the order of the instances of every set; None keeps it.
        sample
            Read a random part of large sets.
        bucket
            Whether to batch sets of similar size, which saves padding. Shuffled sets are bucketed
            only if there are many batches.
        again
            Indices of sets to read once more per occurrence.
        """
        plan = self.plan(
            size=size, instances=instances, shuffle=shuffle, sample=sample, bucket=bucket,
            again=again,
        )  # fmt: skip
        return self.read(plan, reorder=reorder, sample=sample)

    def plan(
        self,
        *,
        size: int,
        instances: int | None = None,
        shuffle: torch.Generator | None = None,
        sample: Sample | None = None,
        bucket: bool = False,
        share: tuple[int, int] = (0, 1),
        again: Sequence[int] | Array = (),
    ) -> list[Array]:
        """Return the sets of every batch; the other parameters are those of `epoch`.

        Parameters
        ----------
        share
            (r, w): of every batch every w-th set, beginning with the r-th, for w processes that
            train together. With a limit of `instances`, every w-th batch instead. All plans have
            the same length; where nothing is left for a process, its batch is empty.
        """
        for least, unit in ((size, "set"), (instances, "instance")):
            if least is not None and least < 1:
                raise InputError(f"a batch needs at least 1 {unit}, not {least}")
        order = np.concatenate([np.arange(len(self.sets)), np.asarray(again, dtype=np.int64)])
        if shuffle is not None:
            order = self._shuffled(order, shuffle)
        sizes = self.sizes if sample is None else np.minimum(self.sizes, sample.most)
        rank, world = share
        each = max(1, size // world)
        if instances is not None and each * int(sizes.max(initial=0)) <= instances:
            instances = None  # every batch is small enough
        number = -(-len(order) // size)
        # Sort within stretches only: shuffled batches must differ between epochs and must not
        # consist of a single size.
        stretch = size * min(50, 50 if shuffle is None else number // STRETCHES)
        sorts = bucket and stretch > size
        for a in range(0, len(order), stretch) if sorts else ():
            part = order[a : a + stretch]
            order[a : a + stretch] = part[np.argsort(sizes[part], kind="stable")]
        if instances is None:
            cuts = [order[a : a + size] for a in range(0, len(order), size)]
        else:
            cuts = _cut(order, sizes, each, instances)
        if sorts and shuffle is not None:
            cuts = [cuts[i] for i in torch.randperm(len(cuts), generator=shuffle)]
        if instances is None:
            return [cut[rank::world] for cut in cuts]
        cuts += [order[:0]] * (-len(cuts) % world)
        return cuts[rank::world]

    def read(
        self,
        plan: Sequence[Array],
        *,
        reorder: torch.Generator | None = None,
        sample: Sample | None = None,
    ) -> Iterator[Batch]:
        """Yield the batches of a plan; the parameters are those of `epoch`."""
        index = None
        # Orders of a streamed file are drawn batch by batch: all would need much memory.
        if reorder is not None and not self.streamed:
            rows = starts_of(self.sizes) + random_orders(self.sizes, reorder)
            index, reorder = self.index[torch.from_numpy(rows)], None
        for chosen in plan:
            yield self.take(chosen, index, sample=sample, reorder=reorder)

    def _shuffled(self, order: Array, generator: torch.Generator) -> Array:
        """Shuffle sets; those of a streamed file in groups of blocks of neighbours."""
        if not self.streamed:
            mixed: Array = order[torch.randperm(len(order), generator=generator).numpy()]
            return mixed
        filled = np.minimum(self.offsets[:-1], max(len(self.index) - 1, 0))
        order = order[np.argsort(self.index.numpy()[filled][order], kind="stable")]
        width = self.sets.instances.strides[0]
        block = np.cumsum(self.sizes[order] * width) // BLOCK_BYTES
        parts = np.split(order, np.flatnonzero(np.diff(block)) + 1)
        dealt = [parts[i] for i in torch.randperm(len(parts), generator=generator)]
        groups = [np.concatenate(dealt[a : a + BLOCKS]) for a in range(0, len(dealt), BLOCKS)]
        return np.concatenate(
            [group[torch.randperm(len(group), generator=generator).numpy()] for group in groups]
        )


def batches(sets: Sets, *, size: int, bucket: bool = False) -> Iterator[Batch]:
    """Yield the sets in their own order, in batches; see `Batches` for shuffling.

    >>> s = Sets.from_arrays([np.ones((2, 3)), np.zeros((1, 3)), np.zeros((1, 3))])
    >>> [(tuple(b.x.shape), b.mask is None) for b in batches(s, size=2)]
    [((2, 2, 3), False), ((1, 1, 3), True)]
    """
    return Batches(sets).epoch(size=size, bucket=bucket)


def instances_per_batch(sets: Sets) -> int:
    """Return the number of instances in a batch of a prediction, which bounds its memory."""
    return max(1, NUMBERS // max(1, math.prod(sets.feature_shape) + sets.n_covariates))


def _cut(order: Array, sizes: Array, size: int, instances: int) -> list[Array]:
    """Cut sets into batches of at most `size` sets and `instances` instances, padding included.

    >>> [batch.tolist() for batch in _cut(np.arange(4), np.array([2, 1, 9, 1]), 3, 4)]
    [[0, 1], [2], [3]]
    """
    cuts, start, longest = [], 0, 0
    for place, count in enumerate(sizes[order].tolist()):
        after = max(longest, count)
        if place > start and (place - start == size or (place - start + 1) * after > instances):
            cuts.append(order[start:place])
            start, after = place, count
        longest = after
    return [*cuts, order[start:]] if len(order) else cuts


def _drawn(sizes: Array, sample: Sample) -> Array:
    """Draw positions of instances in rising order: sets x most; padding may be any."""
    longest = int(sizes.max(initial=0))
    keys = torch.rand(len(sizes), longest, generator=sample.generator)
    keys[torch.from_numpy(np.arange(longest) >= sizes[:, None])] = torch.inf
    order = keys.argsort(dim=1)[:, : sample.most].numpy()
    valid = np.arange(order.shape[1]) < np.minimum(sizes, sample.most)[:, None]
    return np.sort(np.where(valid, order, longest), axis=1)
