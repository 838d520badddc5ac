"""Training an ensemble: every member on its own, with its own random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.sets import Sets
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
    progress: Callable[[dict[str, Any]], None] | None = None,
    fabric: Fabric | None = None,
) -> History:
    """Train all members of an ensemble one after another; any other network as `fit` does.

    Parameters are those of `fit`. A killed training goes on with the member that was being trained:
    finished members keep their checkpoints until the caller removes them.

    Returns
    -------
    history
        The members' histories one after another; each line names its `member`.
    """
    if not isinstance(model, Ensemble):
        return fit(
            model, train, valid, recipe=recipe, seed=seed, loss=loss, priors=priors,
            checkpoint=checkpoint, progress=progress, fabric=fabric,
        )  # fmt: skip
    history: History = []
    for number, member in enumerate(model.each):

        def show(line: dict[str, Any], number: int = number) -> None:
            if progress is not None:
                progress({"member": number, **line})

        history += [
            {"member": number, **line}
            for line in fit(
                member, train, valid, recipe=recipe, seed=_seed(seed, number), loss=loss,
                priors=priors, checkpoint=member_checkpoint(checkpoint, number), progress=show,
                fabric=fabric,
            )
        ]  # fmt: skip
    return history


def member_checkpoint(checkpoint: Path | None, number: int) -> Path | None:
    """Where one member keeps its state."""
    return checkpoint and checkpoint.with_name(f"{checkpoint.stem}-{number}{checkpoint.suffix}")


def _seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
