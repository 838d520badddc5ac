"""The fixed inputs of a training, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.nn.random import draws_elsewhere
from capnets.sets import Array, Sets
from capnets.sets.batch import Batch, Batches
from capnets.sets.fingerprint import fingerprint
from capnets.training.losses import Loss, find_loss
from capnets.training.priors import Prior, check_priors
from capnets.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

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
    fabric: Fabric

    def __post_init__(self) -> None:
        check_priors(self.priors)
        for name, sets in (("training", self.train), ("validation", self.valid)):
            if sets is not None:
                self._check_sets(name, sets)
        if not self.steps_per_epoch:
            raise InputError(
                f"{len(self.train)} sets are too few for {self.fabric.world_size} processes"
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
    def redirect(self) -> bool:
        """Whether the network may draw from torch's global generator."""
        return any(map(draws_elsewhere, [self.model, *self.priors]))

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch without replay."""
        return self.steps(len(self.train))

    def steps(self, sets: int) -> int:
        """Return the number of steps in which all processes together read `sets` sets."""
        return -(-(sets // self.fabric.world_size) // self._share)

    def batches(self, epoch: int, repeated: Array) -> Iterator[Batch]:
        """Yield the batches that this process reads in an epoch, on its device."""
        reshuffle = self.recipe.reshuffle
        for batch in self.data.epoch(
            size=self._share,
            shuffle=random_stream(self.seed, epoch, 0),
            reorder=random_stream(self.seed, epoch, 1) if reshuffle else None,
            bucket=self.data.ragged,
            share=(self.fabric.global_rank, self.fabric.world_size),
            again=repeated,
        ):
            yield batch.to(self.fabric.device)

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

    @property
    def _share(self) -> int:
        return max(1, self.recipe.batch_size // self.fabric.world_size)

    def _check_sets(self, name: str, sets: Sets) -> None:
        if not len(sets):
            raise InputError(f"zero {name} sets")
        if sets.y is None:
            raise InputError(f"the {name} sets have no labels")
        sets.check_finite()
        self.model.check_labels(sets.y, logits=self.loss.logits)
        self.loss.check(sets.y, outputs=self.model.outputs, name=name)


def random_stream(*words: int) -> torch.Generator:
    """Return an independent generator for a seed, an epoch and a purpose."""
    seed = np.random.SeedSequence(words).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(seed >> 1))
