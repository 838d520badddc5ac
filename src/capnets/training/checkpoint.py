"""Checkpoints: all that training needs to go on with the same bits, in one file written atomically.

One safetensors file holds the weights now, the best weights so far and the optimiser's memory; what is
not a tensor stands as JSON in its header. Random numbers need no place in it: every epoch draws from
generators that are made from the seed and the number of the epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from capnets.atomic import write_bytes
from capnets.errors import InputError

__all__ = ["Checkpoint"]

FORMAT = 1


@dataclass
class Checkpoint:
    """Where training stands after some epochs."""

    model: dict[str, Tensor]
    best: dict[str, Tensor]
    optimizer: dict[str, Any]
    history: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        tensors = {f"model.{k}": v for k, v in self.model.items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        for number, memory in self.optimizer["state"].items():
            tensors |= {f"optimizer.{number}.{k}": v for k, v in memory.items()}
        header = {"format": FORMAT, "history": self.history, "about": self.about}
        tensors = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
        write_bytes(path, save(tensors, {"capnets": json.dumps(header)}))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what `write` wrote; a damaged file is named."""
        try:
            with safe_open(path, "pt") as file:
                header = json.loads((file.metadata() or {})["capnets"])
                tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise InputError(
                f"{path} is damaged ({error}); train again without --resume, or with --force"
            ) from error
        if header["format"] > FORMAT:
            raise InputError(f"{path} was written by a newer version of capnets; upgrade to resume")
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            kind, _, rest = key.partition(".")
            if kind == "optimizer":
                number, _, name = rest.partition(".")
                state.setdefault(int(number), {})[name] = value
        return cls(
            _under("model.", tensors), _under("best.", tensors), {"state": state},
            header["history"], header["about"],
        )  # fmt: skip


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
