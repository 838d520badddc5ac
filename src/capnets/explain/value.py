"""Evaluate a network on any subset of the instances of a set.

Absent instances are removed, not masked, zeroed or replaced by a mean: a subset is again a set of
rows of the same instance table. Every explanation method uses `SetValue`, which also counts the
cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.evaluate import baselines
from capnets.models.base import SetModel
from capnets.models.parts import in_parts
from capnets.sets import Array, Sets, offsets_of
from capnets.sets.batch import Batch, Batches
from capnets.sets.ragged import cut_by_size, scatter_padded

__all__ = ["CHUNK", "SetValue", "groups_of_equal_size"]

#: Default number of instances, padding included, in one network batch.
CHUNK = 32_768


class SetValue:
    """The set function f(S) that a network has learned, for subsets S of given sets.

    Parameters
    ----------
    model
        Any set network. It is switched to evaluation mode.
    sets
        The sets whose instances form the subsets.
    output
        The output to evaluate. Required only if the network has several.
    chunk
        Maximum number of instances, padding included, in one network batch; bounds the memory.

    Attributes
    ----------
    baselines
        The value of the empty set, for each set: it may depend on the covariates.
    passes
        Number of sets that the network has read. A set counts once, whatever its size.
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
        self.baselines = baselines(model, sets)[:, output].astype(np.float64)
        self._rereads = model.rereads

    def predict(self, index: Array, offsets: Array, owners: Array | None = None) -> Array:
        """Return the predictions for sequences of instance rows; the baseline for empty ones.

        `owners` are the sets of the sequences; by default there is one sequence per set.
        """
        out = self.baselines.copy() if owners is None else self.baselines[owners]
        for batch in self._batches(index, offsets, owners):
            predictions = in_parts(self.model, batch.x)(batch.x, batch.mask)
            out[batch.set_index] = predictions[:, self.output].cpu().numpy()
            self.passes += len(batch.set_index)
        return out

    def predict_subsets(self, set_index: Array, members: Array) -> Array:
        """Return the predictions for subsets of sets of equal size.

        The instances of a subset are read in the order of the set.

        Parameters
        ----------
        set_index
            Indices of sets that all have `size` instances.
        members
            Subsets x size, or sets x subsets x size: True if an instance belongs to the subset.

        Returns
        -------
        predictions
            Sets x subsets.
        """
        size = members.shape[-1]
        rows = self.sets.index[self.sets.offsets[set_index][:, None] + np.arange(size)]
        members = np.broadcast_to(members, (len(set_index), *members.shape[-2:]))
        owner, _, position = np.nonzero(members)
        each = np.repeat(set_index, members.shape[1])
        values = self.predict(rows[owner, position], offsets_of(members.sum(-1).ravel()), each)
        return values.reshape(members.shape[:2])

    def added_values(self, index: Array, offsets: Array) -> Array:
        """Return what each row of the sequences, one per set, adds to the rows before it."""
        return self._per_row("added_values", index, offsets)

    def shapley_values(self, index: Array, offsets: Array) -> Array:
        """Return the Shapley value of each row, for a network that has them in closed form."""
        return self._per_row("shapley", index, offsets)

    def interactions(self, set_index: Array) -> Array:
        """Return sets x size x size interactions, for a network that has them in closed form.

        The sets have equal sizes.
        """
        batches = Batches(self._sequences(self.sets.index, self.sets.offsets, None))
        batch = batches.take(set_index).to(self.model.unit.device)
        with torch.inference_mode():
            pairs: Tensor = self.model.interactions(batch.x, batch.mask)  # type: ignore[operator]
        self.passes += len(set_index)
        found: Array = pairs[..., self.output].cpu().numpy()
        return found

    def _per_row(self, method: str, index: Array, offsets: Array) -> Array:
        out = np.empty(len(index))
        for batch in self._batches(index, offsets, None, prefixes=self._rereads):
            compute = getattr(in_parts(self.model, batch.x), method)
            values = compute(batch.x, batch.mask)[..., self.output].cpu().numpy()
            scatter_padded(out, values, offsets, batch.set_index)
            sizes = np.diff(offsets)[batch.set_index]
            self.passes += int(sizes.sum()) if self._rereads else len(batch.set_index)
        return out

    def _sequences(self, index: Array, offsets: Array, owners: Array | None) -> Sets:
        known = self.sets.covariates
        known = known if known is None or owners is None else known[owners]
        return Sets(self.sets.instances, index, offsets, covariates=known)

    def _batches(
        self, index: Array, offsets: Array, owners: Array | None, *, prefixes: bool = False
    ) -> Iterator[Batch]:
        """Yield the non-empty sequences, sorted by length, at most a chunk at a time."""
        batches = Batches(self._sequences(index, offsets, owners))
        sizes = np.diff(offsets)
        filled = np.flatnonzero(sizes)
        with torch.inference_mode():
            for group in cut_by_size(sizes[filled], self.chunk, power=2 if prefixes else 1):
                yield batches.take(filled[group]).to(self.model.unit.device)


def groups_of_equal_size(sizes: Array, *, most: int) -> Iterator[Array]:
    """Yield the indices of non-empty sets of equal size, at most `most` at a time.

    >>> groups = groups_of_equal_size(np.array([3, 2, 3, 0, 3]), most=2)
    >>> [group.tolist() for group in groups]
    [[1], [0, 2], [4]]
    """
    for size in np.unique(sizes[sizes > 0]):
        group = np.flatnonzero(sizes == size)
        for start in range(0, len(group), max(1, most)):
            yield group[start : start + max(1, most)]
