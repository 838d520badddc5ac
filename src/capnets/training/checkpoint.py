"""Store the state of a training in one file, so that it resumes with the same bits.

A checkpoint holds the current weights, the best weights so far, the state of the optimizer and, for
replay, the losses of the last epoch. Random numbers are not stored: every epoch draws from
generators that are made from the seed and the number of the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.files.tensors import Damaged, read_tensors, write_tensors

__all__ = ["Checkpoint"]

FORMAT = 1


@dataclass
class Checkpoint:
    """The state of a training after some epochs."""

    model: dict[str, Tensor]
    best: dict[str, Tensor]
    optimizer: dict[str, Any]
    errors: Tensor
    history: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        tensors = {f"model.{k}": v for k, v in self.model.items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        tensors["errors"] = self.errors
        for number, memory in self.optimizer["state"].items():
            tensors |= {f"optimizer.{number}.{k}": v for k, v in memory.items()}
        write_tensors(
            path, tensors, {"format": FORMAT, "history": self.history, "about": self.about}
        )

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a file that `write` wrote; the error about a damaged file names it."""
        try:
            tensors, header = read_tensors(path)
            version, history, about = (header[key] for key in ("format", "history", "about"))
            _check_types(version, history, about)
        except (Damaged, KeyError, OSError) as error:
            raise InputError(
                f"{path} is damaged ({error}); remove it to start over "
                "(for a run: force=True, --force)"
            ) from error
        if version > FORMAT:
            raise InputError(f"{path} was written by a newer version of capnets; upgrade to resume")
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in _under("optimizer.", tensors).items():
            number, _, name = key.partition(".")
            state.setdefault(int(number), {})[name] = value
        return cls(
            _under("model.", tensors),
            _under("best.", tensors),
            {"state": state},
            tensors.get("errors", torch.zeros(0)),
            history,
            about,
        )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _check_types(version: Any, history: Any, about: Any) -> None:
    """Refuse a header of another form; files of earlier versions have no digest of it."""
    if not isinstance(version, int):
        raise Damaged(f"format is {version!r}, not a whole number")
    if not isinstance(about, dict) or not isinstance(about.get("recipe"), dict):
        raise Damaged("about is not an object with a recipe")
    if not isinstance(history, list) or not all(
        isinstance(line, dict) and {"epoch", "valid"} <= line.keys() for line in history
    ):
        raise Damaged("history is not a list of epochs")
