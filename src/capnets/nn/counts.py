"""What a `ContextCell` computes as a part with derivatives written out, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from capnets.nn import parts
from capnets.nn.kernels import compiled
from capnets.nn.parts import Part, Results, Steps, as_steps, memory_of

__all__ = ["Counts"]


class Counts(Part):
    """Features beside gates times the counts of kinds before, which begin at 0.

    Parameters
    ----------
    parameters
        Weight and bias of the kinds, then of the gates.
    unit
        The count that the next layer sees as 1.
    """

    def __init__(self, *parameters: Tensor, unit: Tensor) -> None:
        super().__init__(*parameters)
        self.unit = unit

    def width(self, features: int) -> int | None:
        weight_kind, bias_kind, weight_gate, bias_gate = (p.shape for p in self.parameters)
        fit = weight_kind == weight_gate == (*bias_kind, features) and bias_kind == bias_gate
        return features + bias_kind[0] if fit else None

    def forward(self, x: Steps, *, back: bool) -> Results:
        loops: Any = compiled("counts")
        e, unit = memory_of(x.flatten(0, 1)), memory_of(self.unit)
        weight_kind, bias_kind, weight_gate, bias_gate = map(memory_of, self.parameters)
        weight_gate, bias_gate = weight_gate / unit, bias_gate / unit
        (rows, features), number, sets = e.shape, len(bias_kind), x.shape[1]
        counts = parts.empty(sets + rows, number)
        counts[:sets] = 0
        kinds, gates = (parts.empty(rows, number) for _ in range(2))
        z = parts.empty(rows, features + number)
        loops.forward(e, weight_kind, bias_kind, weight_gate, bias_gate, counts, kinds, gates, z)
        self.kept = e, weight_kind, weight_gate, counts, kinds, gates
        return as_steps(z, x)

    def backward(self, dy: Results, *, wanted: bool) -> tuple[Steps, list[Tensor]]:
        loops: Any = compiled("counts")
        e, weight_kind, weight_gate, *_ = self.kept
        de, dcounts = parts.empty(*e.shape), np.zeros((dy.shape[1], len(weight_kind)), np.float32)
        dkind, dgate = parts.empty(*weight_kind.shape), parts.empty(*weight_gate.shape)
        dbiases = parts.empty(2, len(weight_kind))
        dz, unit = memory_of(dy.flatten(0, 1)), memory_of(self.unit)
        loops.backward(dz, *self.kept, de, dcounts, dkind, dgate, dbiases)
        found = dkind, dbiases[0], dgate / unit, dbiases[1] / unit
        return as_steps(de, dy), [torch.from_numpy(d) for d in found]
