"""The reference computation of a recurrence: its equation, one instance after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from capnets.nn.cells import RecurrentCell

__all__ = ["scan"]


def scan(cell: RecurrentCell, e: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return all outputs and the last state; slow, but works under every torch transform."""
    outputs = []
    for instance in e.unbind(1):
        state = cell.next_state(instance, state)
        outputs.append(state[:, : cell.out_features])
    return torch.stack(outputs, dim=1), state
