r"""Muon: steps of equal length in all directions of a matrix (Jordan et al., 2024).

.. math::
    m \leftarrow \mu\,m + (1-\mu)\,g, \qquad
    U S V^\top = (1-\mu)\,g + \mu\,m, \qquad
    W \leftarrow W - \eta \cdot 0.2\,\sqrt{\max(\text{rows}, \text{columns})}\; U V^\top

AdamW scales every weight separately; Muon scales a matrix as a linear map. Directions that matter
for few instances are weak in the gradient, and are learned as fast as strong ones. The factor
matches the size of AdamW's steps (Liu et al., 2025), so that both use the same learning rate.

:math:`U V^\top` is approximated by five steps of a Newton-Schulz iteration. `torch.optim.Muon` does
this for large matrices, one by one and in bfloat16. The networks here have about ten matrices of
32 x 32: those of one shape are processed together, and gates stacked in one matrix one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from capnets.nn import backend, kernels
from capnets.training.adamw import BETAS, EPSILON

__all__ = ["Muon", "maps"]

Pairs = list[tuple[Tensor, Tensor]]  # parameters and their gradients

MOMENTUM = 0.95
#: Coefficients of x <- a x + b (x x') x + c (x x')^2 x, which takes singular values to about 1.
QUINTIC = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
#: Matrices up to this height are iterated by a kernel; for larger ones torch's products are faster.
LARGEST = 128


def maps(model: nn.Module) -> dict[Tensor, int]:
    """Return the matrices to orthogonalise, each with the number of linear maps stacked in it.

    A module declares them by an attribute `gates`: the number of maps in each matrix below it (see
    `capnets.nn.cells.Cell`), or 0 for none. `nn.Linear` holds one map, torch's recurrent modules
    one per gate. Subclasses of `nn.Linear` may transform their weights first
    (`capnets.nn.monotone`), so they do not count. Nor do matrices with one row or column.
    """
    found: dict[Tensor, int] = {}
    declared: dict[Tensor, int] = {}
    for module in model.modules():
        gates = getattr(module, "gates", None)
        if isinstance(gates, int):
            declared |= dict.fromkeys(module.parameters(), gates)
        for p in module.parameters(recurse=False):
            if type(module) is nn.Linear:
                found[p] = 1
            elif isinstance(module, nn.RNNBase):
                found[p] = max(1, len(p) // module.hidden_size)
    found |= declared
    return {p: n for p, n in found.items() if n and p.ndim == 2 and min(p.shape) > 1}


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
        stacks = maps(model)
        others = [p for p in model.parameters() if p not in stacks]
        groups: list[dict[str, Any]] = [{"params": list(stacks), "maps": True}]
        if others:
            groups.append({"params": others, "maps": False})
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})
        self.stacks = stacks

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            moving = [(p, p.grad) for p in group["params"] if p.grad is not None]
            if moving:
                (self._step_maps if group["maps"] else self._step_others)(moving, group)

    def _step_maps(self, moving: Pairs, group: dict[str, Any]) -> None:
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

    def _step_others(self, moving: Pairs, group: dict[str, Any]) -> None:
        parameters = [p for p, _ in moving]
        adamw(
            parameters,
            [gradient for _, gradient in moving],
            [self._memory(p, "exp_avg") for p in parameters],
            [self._memory(p, "exp_avg_sq") for p in parameters],
            [],
            [self._memory(p, "step", shape=torch.Size()) for p in parameters],
            # torch's fused step ignores strides and assumes contiguous memory.
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
        """Return a buffer of a parameter, zeros at first."""
        state = self.state[parameter]
        if name not in state:
            state[name] = parameter.new_zeros(parameter.shape if shape is None else shape)
        memory: Tensor = state[name]
        return memory


def orthogonal(x: Tensor) -> Tensor:
    """Replace the singular values of every matrix of a stack by about 1.

    >>> x = orthogonal(torch.diag(torch.tensor([5.0, 1.0, 0.2]))[None])
    >>> bool((torch.linalg.svdvals(x) > 0.6).all() and (torch.linalg.svdvals(x) < 1.3).all())
    True
    """
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-12)
    if _by_kernel(x):
        from capnets.nn.kernels.newton_schulz import orthogonalize

        array = x.contiguous().numpy()
        with kernels.one_blas_thread(x.shape[1] ** 2 * x.shape[2]):
            orthogonalize(array, np.array(QUINTIC, np.float32), ITERATIONS)
        x = torch.from_numpy(array)
    else:
        a, b, c = QUINTIC
        for _ in range(ITERATIONS):
            square = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def _by_kernel(x: Tensor) -> bool:
    small = x.shape[1] <= LARGEST and x.dtype == torch.float32 and x.is_cpu
    return small and backend.wants_kernels() and kernels.available()
