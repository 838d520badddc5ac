"""Search space, and the settings that a trial stands for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from capnets.errors import InputError
from capnets.models import ModelSpec
from capnets.records import Record
from capnets.training.recipe import recipe as find_recipe

if TYPE_CHECKING:
    import optuna

__all__ = ["Space"]

CHOICES = ("models", "hidden", "layers", "dropout", "epochs")
RANGES = ("learning_rate", "weight_decay")
_RECIPE = ("learning_rate", "weight_decay", "epochs")


@dataclass(frozen=True)
class Space(Record):
    """Settings to try.

    Parameters
    ----------
    models
        Names of the registry.
    hidden, layers, dropout, epochs
        Choices.
    learning_rate, weight_decay
        Lowest and highest, on a logarithmic scale.
    """

    models: tuple[str, ...] = ("c-gru", "c-lstm", "c-rnn", "deepset", "attention")
    hidden: tuple[int, ...] = (8, 16, 32, 64)
    layers: tuple[int, ...] = (1, 2, 3)
    dropout: tuple[float, ...] = (0.0, 0.2, 0.5)
    epochs: tuple[int, ...] = (30, 60, 120)
    learning_rate: tuple[float, float] = (1e-3, 2e-2)
    weight_decay: tuple[float, float] = (1e-4, 0.3)

    def __post_init__(self) -> None:
        self._check_ranges()
        for name in CHOICES:
            if not getattr(self, name):
                raise InputError(f"there is nothing to try: {name} is empty")
        # Raise errors of networks and recipes before a study begins.
        for model, hidden, layers, dropout in product(
            self.models, self.hidden, self.layers, self.dropout
        ):
            ModelSpec(model, hidden=hidden, layers=layers, dropout=dropout, inputs="standardize")
        for epochs in self.epochs:
            find_recipe("small", epochs=epochs)
        for name in CHOICES:  # the order of choices does not matter
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    def _check_ranges(self) -> None:
        for name in RANGES:
            ends = getattr(self, name)
            if len(ends) != 2 or not 0 < ends[0] <= ends[1] < float("inf"):
                raise InputError(
                    f"{name} is searched from a lowest to a highest value above 0, not {ends}"
                )

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """Draw the settings of a trial."""
        return {
            "learning_rate": trial.suggest_float("learning_rate", *self.learning_rate, log=True),
            "weight_decay": trial.suggest_float("weight_decay", *self.weight_decay, log=True),
            "epochs": trial.suggest_categorical("epochs", self.epochs),
            "model": trial.suggest_categorical("model", self.models),
            "hidden": trial.suggest_categorical("hidden", self.hidden),
            "layers": trial.suggest_categorical("layers", self.layers),
            "dropout": trial.suggest_categorical("dropout", self.dropout),
        }

    @staticmethod
    def settings(tried: dict[str, Any]) -> dict[str, Any]:
        """Return the options that a trial stands for."""
        recipe = find_recipe("small", **{name: tried[name] for name in _RECIPE})
        network = {name: value for name, value in tried.items() if name not in _RECIPE}
        return {**network, "recipe": recipe, "epochs": None}  # the recipe has the epochs
