"""The fixed inputs of a training, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.nn.random import draws_elsewhere
from capnets.sets import Array, Sets
from capnets.sets.batch import Batch, Batches, Sample
from capnets.sets.covariates import check_same
from capnets.sets.fingerprint import fingerprint
from capnets.training.ahead import Ahead, read_ahead
from capnets.training.losses import Loss, find_loss
from capnets.training.priors import Prior, check_priors
from capnets.training.recipe import Recipe

if TYPE_CHECKING:
    from capnets.training.device import Devices

__all__ = ["Setup", "random_stream"]


@dataclass(frozen=True)
class Setup:
    """The inputs of a training, which do not change while it runs."""

    model: SetModel
    train: Sets
    valid: Sets | None
    recipe: Recipe
    seed: int
    loss_name: str
    priors: Sequence[Prior]
    fabric: Devices

    def __post_init__(self) -> None:
        check_priors(self.priors)
        if self.priors and self.recipe.sample_instances is not None:
            raise InputError(
                "sample_instances: priors are about the values of whole sets; leave out one of both"
            )
        if self.recipe.accumulate > 1 and (self.priors or self.loss.joint):
            what = "a prior is a penalty on" if self.priors else f"{self.loss_name!r} compares"
            raise InputError(
                f"accumulate: {what} the sets of one batch, so that batches cannot be added up; "
                "leave out one of both"
            )
        for name, sets in (("training", self.train), ("validation", self.valid)):
            if sets is not None:
                self._check_sets(name, sets)
        if self.fabric.world_size > 1 and self.loss.joint:
            raise InputError(
                f"the loss {self.loss_name!r} compares the sets of a batch, so that processes "
                "cannot share it: train on one device"
            )

    @cached_property
    def loss(self) -> Loss:
        """The loss to minimise."""
        return find_loss(self.loss_name)

    @cached_property
    def data(self) -> Batches:
        """The training sets as tensors."""
        return Batches(self.train)

    @cached_property
    def ahead(self) -> Ahead | None:
        """The training sets behind the fixed part of the network, once it is initialised."""
        # Priors and samples need the instances themselves.
        fixed = not self.priors and self.recipe.sample_instances is None
        alone = self.fabric.world_size == 1
        return read_ahead(self.model, self.data) if fixed and alone else None

    @cached_property
    def redirect(self) -> bool:
        """Return whether the network may draw from torch's global generator."""
        return any(map(draws_elsewhere, [self.model, *self.priors]))

    @cached_property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch without replay."""
        return -(-len(self._plan(None, self._sample(0))) // self.recipe.accumulate)

    def batches(self, epoch: int, repeated: Array) -> tuple[list[list[float]], Iterator[Batch]]:
        """Return the batches of this process in an epoch, on its device, and their weights by step.

        The weight of a batch is the sum of those of its sets, 1 each if they have none.
        """
        sample = self._sample(epoch)
        plan = self._plan(random_stream(self.seed, epoch, 0), sample, repeated)
        reorder = random_stream(self.seed, epoch, 1) if self.recipe.reshuffle else None
        weights, count = [*map(self._weight, plan)], self.recipe.accumulate
        steps = [weights[a : a + count] for a in range(0, len(plan), count)]
        return steps, self._read(plan, reorder, sample)

    def _weight(self, chosen: Array) -> float:
        weights = self.data.weights
        return float(len(chosen) if weights is None else weights[torch.from_numpy(chosen)].sum())

    def _read(
        self, plan: list[Array], reorder: torch.Generator | None, sample: Sample | None
    ) -> Iterator[Batch]:
        # All processes take every step: one without sets reads any set, with weight 0.
        filled = [chosen if len(chosen) else np.zeros(1, np.int64) for chosen in plan]
        data = self.data if self.ahead is None else self.ahead.data
        return map(self._placed, plan, data.read(filled, reorder=reorder, sample=sample))

    def _placed(self, chosen: Array, batch: Batch) -> Batch:
        batch = batch if len(chosen) else replace(batch, weights=torch.zeros(1))
        return batch.to(self.fabric.device)

    def _plan(
        self,
        shuffle: torch.Generator | None,
        sample: Sample | None,
        repeated: Array | tuple[()] = (),
    ) -> list[Array]:
        world, most = self.fabric.world_size, self.recipe.batch_instances
        return self.data.plan(
            size=self.recipe.batch_size,
            instances=None if most is None else max(1, most // world),
            shuffle=shuffle,
            sample=sample,
            bucket=self.data.ragged,
            share=(self.fabric.global_rank, world),
            again=repeated,
        )

    def _sample(self, epoch: int) -> Sample | None:
        most = self.recipe.sample_instances
        return None if most is None else Sample(most, random_stream(self.seed, epoch, 0, 1))

    @property
    def settings(self) -> dict[str, Any]:
        """The choices of the training, as JSON values."""
        return {
            "recipe": self.recipe.to_dict(),
            "seed": self.seed,
            "loss": self.loss_name,
            "sets": len(self.train),
            "priors": [prior.to_dict() for prior in self.priors],
        }

    @cached_property
    def about(self) -> dict[str, Any]:
        """Settings and data digests that a checkpoint must match."""
        return {
            **self.settings,
            "training data": fingerprint(self.train),
            "validation data": None if self.valid is None else fingerprint(self.valid),
        }

    def _check_sets(self, name: str, sets: Sets) -> None:
        if not len(sets):
            raise InputError(f"zero {name} sets")
        if sets.y is None:
            raise InputError(f"the {name} sets have no labels")
        sets.check_finite()
        check_same(sets, self.model.covariates, None, who="this network")
        self.model.check_labels(sets.y, logits=self.loss.logits)
        self.loss.check(sets.y, outputs=self.model.outputs, name=name)


def random_stream(*words: int) -> torch.Generator:
    """Return an independent generator for a seed, an epoch and a purpose."""
    seed = np.random.SeedSequence(words).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(seed >> 1))
