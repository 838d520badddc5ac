"""The state of a training: everything that changes from epoch to epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from capnets.errors import InputError
from capnets.models.base import SetModel
from capnets.training.adamw import AdamW
from capnets.training.checkpoint import Checkpoint
from capnets.training.device import OneDevice
from capnets.training.init import begin
from capnets.training.muon import Muon
from capnets.training.recipe import Recipe
from capnets.training.replay import Replay
from capnets.training.setup import Setup

__all__ = ["History", "State"]

History = list[dict[str, Any]]


class State:
    """Weights, optimizer state, hard sets, history and the best weights so far.

    Random numbers are not part of the state: every epoch draws from generators that are made from
    the seed and the number of the epoch.

    Parameters
    ----------
    setup
        The inputs of the training.
    checkpoint
        File to resume from, if it exists; otherwise the network is initialised.

    Attributes
    ----------
    network
        The network as it is called in training: wrapped by a `Fabric`.
    """

    def __init__(self, setup: Setup, checkpoint: Path | None) -> None:
        self.setup, self.path = setup, checkpoint
        self.replay = Replay(len(setup.train), setup.recipe.replay)
        self.history: History = []
        saved = _read(setup, checkpoint)
        if saved is None:
            begin(setup.model, setup.data, setup.recipe, setup.loss, seed=setup.seed)
            self.best = _weights(setup.model)
        else:
            self.history, self.best = saved.history, saved.best
            self.replay.losses = saved.errors
        optimizer = _optimizer(setup.model, setup.recipe)
        if saved is not None:
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
        wrapped: tuple[Any, Any] = setup.fabric.setup(setup.model, optimizer)
        self.network, self.optimizer = wrapped
        if not isinstance(setup.fabric, OneDevice):
            self.network.mark_forward_method("added_values")

    @property
    def finished(self) -> bool:
        """Return whether all epochs are done or patience has run out."""
        recipe, losses = self.setup.recipe, [line["valid"] for line in self.history]
        if len(losses) >= recipe.epochs:
            return True
        if recipe.patience is None or not losses or losses[0] is None:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= recipe.patience

    def record(self, line: dict[str, Any]) -> None:
        """Add an epoch to the history, keep its weights if they are the best, and save."""
        self.history.append(line)
        if line["valid"] is None or line["valid"] <= min(h["valid"] for h in self.history):
            self.best = _weights(self.setup.model)
        if self.path is not None and self.setup.fabric.is_global_zero:
            Checkpoint(
                _weights(self.setup.model),
                self.best,
                self.optimizer.state_dict(),
                self.replay.losses,
                self.history,
                self.setup.about,
            ).write(self.path)

    def restore_best(self) -> None:
        """Give the network the weights of the best epoch."""
        self.setup.model.load_state_dict(self.best)
        self.setup.model.eval()


def _optimizer(model: SetModel, recipe: Recipe) -> Optimizer:
    """Return the optimizer of a recipe over all parameters of a network."""
    how = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    return Muon(model, **how) if recipe.optimizer == "muon" else AdamW(model.parameters(), **how)


def _read(setup: Setup, path: Path | None) -> Checkpoint | None:
    """Read a checkpoint and give the network its weights; None if there is no file.

    Settings that the checkpoint does not record, because an earlier version wrote it, are not
    compared.
    """
    if path is None or not path.exists():
        return None
    saved = Checkpoint.read(path)
    # Settings that recipes did not have at the time have their defaults.
    recorded = {**saved.about, "recipe": Recipe.from_dict(saved.about["recipe"]).to_dict()}
    for key, value in json.loads(json.dumps(setup.about)).items():
        if recorded.get(key, value) != value:
            raise InputError(
                f"{path} belongs to another training (its {key} differs); remove it to start over"
            )
    try:
        setup.model.load_state_dict(saved.model)
    except RuntimeError as error:
        raise InputError(f"{path} belongs to another network; remove it to start over") from error
    return saved


def _weights(model: SetModel) -> dict[str, Tensor]:
    return {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
