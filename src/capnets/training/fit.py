"""Train a network: prepare, run epochs, keep the best weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.models.ensemble import Ensemble
from capnets.nn.backend import threads_for
from capnets.sets import Sets
from capnets.training.callbacks import Callback, check_callbacks
from capnets.training.device import make_fabric
from capnets.training.loop import measure, run_epoch
from capnets.training.priors import Prior
from capnets.training.recipe import Recipe
from capnets.training.setup import Setup
from capnets.training.state import History, State

if TYPE_CHECKING:
    from capnets.training.device import Devices

__all__ = ["Diverged", "History", "fit", "measure"]


class Diverged(InputError):  # noqa: N818
    """The loss became infinite or NaN; the network has its best weights so far."""


def fit(
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
    fabric: Devices | None = None,
) -> History:
    """Train a network in place; it ends with the weights of the best epoch.

    The same seed gives the same bits on the same machine with the same number of torch threads.
    This holds for interrupted and resumed trainings, and next to other threads and processes. One
    and two torch threads give the same bits as long as torch does not divide an operation among
    them: in networks without convolutions, for small batches.

    Training starts as the recipe says; `Recipe(start="torch", scale=False)` continues from the
    weights of a trained network.

    The members of an ensemble are trained one after another, each with a seed and a checkpoint of
    its own. Finished members keep their checkpoints until the caller removes them, so that an
    interrupted training resumes with the member that was being trained.

    Parameters
    ----------
    model
        The network to train.
    train, valid
        Sets with labels. Without `valid` the last epoch counts as the best.
    recipe
        Settings of the training; the recipe `large` by default.
    seed
        Seed of the order of sets and instances, dropout, and initial weights.
    loss
        A name of `capnets.training.losses`: `squared`, `absolute`, `huber`, `quantile:0.9`,
        `poisson`, `logistic`, `softmax`, `cox`, or `bernoulli` for networks whose predictions are
        probabilities.
    priors
        Prior knowledge about added values.
    checkpoint
        File to write after every epoch and, if it exists, to resume from.
    callbacks
        Hooks for progress bars and loggers (see `capnets.training.callbacks`).
    fabric
        Devices and precision, such as a launched `Fabric` of lightning-fabric; by default one
        device of the best kind available.

    Returns
    -------
    history
        One line per epoch: epoch, train (mean loss, in units of the network), valid (loss, in the
        unit of the labels), rate, seconds; for an ensemble also the `member`.
    """
    check_callbacks(callbacks)
    recipe, fabric = recipe or Recipe(), fabric or make_fabric()
    if not isinstance(model, Ensemble):
        setup = Setup(model, train, valid, recipe, seed, loss, priors, fabric)
        return _run(setup, checkpoint, callbacks)
    history: History = []
    for number, member in enumerate(model.each):
        own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        setup = Setup(member, train, valid, recipe, own, loss, priors, fabric)
        place = checkpoint and checkpoint.with_stem(f"{checkpoint.stem}-{number}")
        lines = _run(setup, place, [_OfMember(callback, number) for callback in callbacks])
        history += [{"member": number, **line} for line in lines]
    return history


class _OfMember(Callback):
    """Pass the hooks of one member of an ensemble on, with its number."""

    def __init__(self, callback: Callback, member: int) -> None:
        self.callback, self.member = callback, member

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        self.callback.on_fit_start({"member": self.member, **settings})

    def on_epoch_end(self, line: Mapping[str, Any]) -> None:
        self.callback.on_epoch_end({"member": self.member, **line})

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        self.callback.on_fit_end([{"member": self.member, **line} for line in history])


def _run(setup: Setup, checkpoint: Path | None, callbacks: Sequence[Callback]) -> History:
    """Train one network until its recipe ends."""
    state = State(setup, checkpoint)
    listening = callbacks if setup.fabric.is_global_zero else ()
    for callback in listening:
        callback.on_fit_start(setup.settings)
    while not state.finished:
        with threads_for(setup.model):
            line = run_epoch(setup, state)
        if not np.isfinite([line["train"], line["valid"] or 0.0]).all():
            state.restore_best()
            raise Diverged(
                f"training diverged in epoch {line['epoch']} (loss {line['train']:g}); try a "
                f"learning rate below {setup.recipe.learning_rate:g}, or gradient clipping"
            )
        state.record(line)
        for callback in listening:
            callback.on_epoch_end(line)
    state.restore_best()
    for callback in listening:
        callback.on_fit_end(state.history)
    return state.history
