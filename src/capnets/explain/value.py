"""What any selection of a set's instances is worth to a network, by really leaving the others out.

A selection of instances is again a set of rows of the same pool, so nothing is masked, zeroed or
replaced: the network reads exactly the instances that are left. All explanation methods ask here,
and here is counted what they cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.sets import Array, Sets, offsets_of
from capnets.sets.batch import Batch, Batches

__all__ = ["CHUNK", "Worth", "same_sizes"]

CHUNK = 32_768
"""Most instances, padding included, that go through the network at once unless told otherwise."""


class Worth:
    """A network's predictions for any instances of given sets.

    Parameters
    ----------
    model
        Any set network; it is put into evaluation mode.
    sets
        Whose instances.
    output
        Which of the network's outputs; needed only when there are several.
    chunk
        Most instances, padding included, in one network batch: bounds the memory.

    Attributes
    ----------
    passes
        How many sets the network has read so far. A set read once, however large, is one pass.
    """

    def __init__(
        self, model: SetModel, sets: Sets, *, output: int | None = None, chunk: int = CHUNK
    ) -> None:
        if chunk < 1:
            raise InputError(f"chunk must be at least 1 instance, not {chunk}")
        if output is None:
            if model.outputs > 1:
                raise InputError(
                    f"this network has {model.outputs} outputs; say which one to explain: "
                    f"output=0 … {model.outputs - 1}"
                )
            output = 0
        if not 0 <= output < model.outputs:
            raise InputError(f"output {output} does not exist: the network has {model.outputs}")
        self.model = model.eval()
        self.sets = sets
        self.output = output
        self.chunk = chunk
        self.passes = 0
        self._pool = np.asarray(sets.instances, dtype=np.float32)
        self._rereads = model.rereads

    def of(self, index: Array, offsets: Array) -> Array:
        """The predictions for sequences of pool rows; the empty sequence is worth 0."""
        out = np.zeros(len(offsets) - 1)
        for batch in self._batches(index, offsets):
            predictions = self.model(batch.x, batch.mask)
            out[batch.set_index] = predictions[:, self.output].cpu().numpy()
            self.passes += len(batch.set_index)
        return out

    def of_subsets(self, chosen: Array, members: Array) -> Array:
        """The predictions for subsets of sets of equal size, read in the order of the set.

        Parameters
        ----------
        chosen
            Numbers of sets that all have `size` instances.
        members
            Subsets x size, or chosen x subsets x size: whether an instance belongs to the subset.

        Returns
        -------
        worth
            Chosen x subsets.
        """
        size = members.shape[-1]
        rows = self.sets.index[self.sets.offsets[chosen][:, None] + np.arange(size)]
        members = np.broadcast_to(members, (len(chosen), *members.shape[-2:]))
        owner, _, position = np.nonzero(members)
        worth = self.of(rows[owner, position], offsets_of(members.sum(-1).ravel()))
        return worth.reshape(members.shape[:2])

    def added(self, index: Array, offsets: Array) -> Array:
        """What each row of the sequences adds to those before it in its sequence."""
        out = np.empty(len(index))
        for batch in self._batches(index, offsets, prefixes=self._rereads):
            values = self.model.added_values(batch.x, batch.mask)[..., self.output].cpu().numpy()
            sizes = np.diff(offsets)[batch.set_index]
            places = offsets[batch.set_index][:, None] + np.arange(values.shape[1])
            real = np.arange(values.shape[1]) < sizes[:, None]
            out[places[real]] = values[real]
            self.passes += int(sizes.sum()) if self._rereads else len(batch.set_index)
        return out

    def _batches(self, index: Array, offsets: Array, *, prefixes: bool = False) -> Iterator[Batch]:
        """All non-empty sequences, sequences of like length together, at most a chunk at a time."""
        batches = Batches(Sets(self._pool, index, offsets))
        sizes = np.diff(offsets)
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] > 0]
        with torch.inference_mode():
            start = 0
            while start < len(order):
                longest = sizes[order[start : start + self.chunk]]  # ascending: the last counts
                cost = np.arange(1, len(longest) + 1) * longest ** (2 if prefixes else 1)
                stop = start + max(1, int(np.searchsorted(cost, self.chunk, "right")))
                yield batches.take(order[start:stop]).to(self.model.unit.device)
                start = stop


def same_sizes(sizes: Array, *, most: int) -> Iterator[Array]:
    """Numbers of sets of equal size, at most `most` at a time; empty sets are left out.

    >>> [group.tolist() for group in same_sizes(np.array([3, 2, 3, 0, 3]), most=2)]
    [[1], [0, 2], [4]]
    """
    for size in np.unique(sizes[sizes > 0]):
        group = np.flatnonzero(sizes == size)
        for start in range(0, len(group), max(1, most)):
            yield group[start : start + max(1, most)]
