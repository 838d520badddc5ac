"""Train the members of an ensemble, each with its own random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.sets import Sets
from capnets.training.callbacks import Callback, check_callbacks
from capnets.training.fit import History, fit
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["fit_members"]


def fit_members(
    model: SetModel,
    train: Sets,
    valid: Sets | None = None,
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
    loss: str = "squared",
    priors: Sequence[Prior] = (),
    checkpoint: Path | None = None,
    callbacks: Sequence[Callback] = (),
    fabric: Fabric | None = None,
) -> History:
    """Train all members of an ensemble one after another; any other network like `fit`.

    Parameters are those of `fit`. An interrupted training resumes with the member that was being
    trained: finished members keep their checkpoints until the caller removes them.

    Returns
    -------
    history
        The histories of the members one after another; each line names its `member`.
    """
    if not isinstance(model, Ensemble):
        return fit(
            model, train, valid, recipe=recipe, seed=seed, loss=loss, priors=priors,
            checkpoint=checkpoint, callbacks=callbacks, fabric=fabric,
        )  # fmt: skip
    check_callbacks(callbacks)
    history: History = []
    for number, member in enumerate(model.each):
        lines = fit(
            member, train, valid, recipe=recipe, seed=_seed(seed, number), loss=loss,
            priors=priors, checkpoint=member_checkpoint(checkpoint, number),
            callbacks=[_OfMember(callback, number) for callback in callbacks], fabric=fabric,
        )  # fmt: skip
        history += [{"member": number, **line} for line in lines]
    return history


class _OfMember(Callback):
    """Pass the hooks of one member on, with its number."""

    def __init__(self, callback: Callback, member: int) -> None:
        self.callback, self.member = callback, member

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        self.callback.on_fit_start({"member": self.member, **settings})

    def on_epoch_end(self, line: Mapping[str, Any]) -> None:
        self.callback.on_epoch_end({"member": self.member, **line})

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        self.callback.on_fit_end([{"member": self.member, **line} for line in history])


def member_checkpoint(checkpoint: Path | None, number: int) -> Path | None:
    """Return the checkpoint file of one member."""
    return checkpoint and checkpoint.with_name(f"{checkpoint.stem}-{number}{checkpoint.suffix}")


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
