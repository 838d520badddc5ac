"""Callbacks: hooks that `fit` calls, for progress bars and loggers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from capnets.errors import InputError

__all__ = ["Callback", "EpochEnd", "check_callbacks"]


class Callback:
    """Hooks of a training; override the ones you need.

    Hooks run in the first process only, after the checkpoint of the epoch is written. An exception
    in a hook stops training; a later call resumes after that epoch.

    Examples
    --------
    >>> class Losses(Callback):
    ...     def __init__(self):
    ...         self.train = []
    ...
    ...     def on_epoch_end(self, line):
    ...         self.train.append(line["train"])
    """

    def on_fit_start(self, settings: Mapping[str, Any]) -> None:
        """Receive the settings (recipe, seed, loss, sets, priors) before the first epoch."""

    def on_epoch_end(self, line: Mapping[str, Any]) -> None:
        """Receive the history line of an epoch: epoch, train, valid, rate, seconds.

        Lines of an ensemble also name the `member`, counted from 0.
        """

    def on_fit_end(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Receive all history lines once the network has its best weights."""


class EpochEnd(Callback):
    """Call a function with the history line of every epoch.

    >>> EpochEnd(print).on_epoch_end({"epoch": 1})
    {'epoch': 1}
    """

    def __init__(self, function: Callable[[dict[str, Any]], None]) -> None:
        self.function = function

    def on_epoch_end(self, line: Mapping[str, Any]) -> None:
        """Call the function."""
        self.function(dict(line))


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Raise if something is not a sequence of callbacks."""
    given: Any = callbacks
    if not isinstance(given, Sequence) or not all(isinstance(c, Callback) for c in given):
        raise InputError(
            f"callbacks must be a list of Callback objects, not {callbacks!r}: "
            "wrap a function as EpochEnd(function)"
        )
