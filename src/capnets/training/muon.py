r"""Muon: steps of equal length in all directions of a matrix (Jordan et al., 2024).

.. math::
    m \leftarrow \mu\,m + (1-\mu)\,g, \qquad
    U S V^\top = (1-\mu)\,g + \mu\,m, \qquad
    W \leftarrow W - \eta \cdot 0.2\,\sqrt{\max(\text{rows}, \text{columns})}\; U V^\top

AdamW scales every weight of a matrix on its own; here the matrix is scaled as what it is, a map.
What few instances need, and so appears in few directions of the gradient, is learned as soon as
what all of them need. The factor makes a step as large as one of AdamW (Liu et al., 2025), so that
both have the same rate.

:math:`U V^\top` is approximated by five steps of an iteration that consists of products only.
`torch.optim.Muon` does the same for large matrices, one by one and with 16 bits. The networks here
have some ten of 32 x 32 numbers: matrices of one shape are multiplied together, and gates that
torch stacks in one matrix are the maps they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from capnets.nn.cells import RNNCell
from capnets.nn.kernels import compiled
from capnets.training.adamw import BETAS, EPSILON

__all__ = ["Muon", "maps"]

Moving = list[tuple[Tensor, Tensor]]  # parameters and their gradients

#: How many maps a matrix of these layers is a stack of.
STACKED: dict[type[nn.Module], int] = {nn.Linear: 1, RNNCell: 1, nn.GRU: 3, nn.LSTM: 4}

MOMENTUM = 0.95
#: Of the iteration x <- a x + b (x x') x + c (x x')^2 x, which takes singular values to about 1.
QUINTIC = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def maps(model: nn.Module) -> Iterator[tuple[nn.Parameter, int]]:
    """The matrices that multiply features, each with the number of maps it is a stack of.

    A matrix with one row or column has one direction only. Layers derived from torch's may do
    something else with their weights (see `capnets.nn.monotone`), so they do not count.
    """
    for module in model.modules():
        for parameter in module.parameters(recurse=False) if type(module) in STACKED else ():
            if parameter.ndim == 2 and min(parameter.shape) > 1:
                yield parameter, STACKED[type(module)]


class Muon(torch.optim.Optimizer):
    """Muon for the maps of a network, AdamW for its other parameters.

    Examples
    --------
    >>> layer = nn.Linear(3, 3, bias=False)
    >>> before = layer.weight.detach().clone()
    >>> optimizer = Muon(layer, lr=0.1)
    >>> layer(torch.eye(3)[:2]).square().sum().backward()
    >>> optimizer.step()
    >>> bool((layer.weight != before).any())
    True
    """

    def __init__(self, model: nn.Module, *, lr: float, weight_decay: float = 0.0) -> None:
        stacks: dict[Tensor, int] = dict(maps(model))
        others = [p for p in model.parameters() if p not in stacks]
        groups: list[dict[str, Any]] = [{"params": list(stacks), "maps": True}]
        if others:
            groups.append({"params": others, "maps": False})
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})
        self.stacks = stacks

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; parameters without a gradient stay where they are."""
        for group in self.param_groups:
            moving = [(p, p.grad) for p in group["params"] if p.grad is not None]
            if moving:
                (self._step_maps if group["maps"] else self._step_others)(moving, group)

    def _step_maps(self, moving: Moving, group: dict[str, Any]) -> None:
        alike: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for p, gradient in moving:
            momentum = self._memory(p, "momentum").lerp_(gradient, 1 - MOMENTUM)
            maps = gradient.lerp(momentum, MOMENTUM).reshape(self.stacks[p], -1, p.shape[1])
            alike.setdefault(maps.shape[1:], []).append((p, maps))
        rate = group["lr"]
        for shape, some in alike.items():
            steps = orthogonal(torch.cat([maps for _, maps in some]))
            length = 0.2 * max(shape) ** 0.5
            begin = 0
            for p, maps in some:
                step = steps[begin : begin + len(maps)].flatten(0, 1)
                p.mul_(1 - rate * group["weight_decay"]).add_(step, alpha=-rate * length)
                begin += len(maps)

    def _step_others(self, moving: Moving, group: dict[str, Any]) -> None:
        parameters = [p for p, _ in moving]
        adamw(
            parameters,
            [gradient for _, gradient in moving],
            [self._memory(p, "exp_avg") for p in parameters],
            [self._memory(p, "exp_avg_sq") for p in parameters],
            [],
            [self._memory(p, "step", shape=torch.Size()) for p in parameters],
            # The fused step of torch takes memory as one piece, whatever the strides are.
            fused=all(t.is_contiguous() for pair in moving for t in pair),
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=EPSILON,
            maximize=False,
        )

    def _memory(self, parameter: Tensor, name: str, *, shape: torch.Size | None = None) -> Tensor:
        """What is remembered of a parameter; nothing in the beginning."""
        state = self.state[parameter]
        if name not in state:
            state[name] = parameter.new_zeros(parameter.shape if shape is None else shape)
        memory: Tensor = state[name]
        return memory


def orthogonal(x: Tensor) -> Tensor:
    """For every matrix of a stack one with about the same directions, all equally long.

    >>> x = orthogonal(torch.diag(torch.tensor([5.0, 1.0, 0.2]))[None])
    >>> bool((torch.linalg.svdvals(x) > 0.6).all() and (torch.linalg.svdvals(x) < 1.3).all())
    True
    """
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    loops = compiled("directions")
    if loops is not None and torch.get_num_threads() == 1 and x.dtype == torch.float32 and x.is_cpu:
        array = x.contiguous().numpy()
        loops.equalize(array, np.array(QUINTIC, np.float32), ITERATIONS)
        x = torch.from_numpy(array)
    else:
        a, b, c = QUINTIC
        for _ in range(ITERATIONS):
            square = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
