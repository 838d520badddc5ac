r"""Muon: steps of equal size in all directions that a weight matrix has (Jordan et al., 2024).

The update of a matrix is its averaged gradient :math:`M = U S V^\top` with all singular values set to 1,
:math:`U V^\top`, found by a few Newton-Schulz iterations. Where Adam follows the few directions with large
gradients, every direction advances: a capacity network finds its memory in a fifth of the steps.

`torch.optim.Muon` does the same matrix by matrix in bfloat16, which on a CPU takes as long as a whole
training step of networks this small. Here matrices of one shape are done together, in float32, and
everything that is no matrix is left to Adam, so that one optimiser serves the whole network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Muon", "orthogonalized"]

# Coefficients of the quintic iteration by Jordan et al.: quick rather than exact.
A, B, C = 3.4445, -4.7750, 2.0315


class Muon(torch.optim.Optimizer):
    """Muon for matrices, Adam for everything else, under one learning rate.

    Parameters
    ----------
    params
        What to train.
    lr
        The learning rate; steps of matrices are scaled to be as large as Adam's would be.
    weight_decay
        Decoupled, as in AdamW.
    momentum
        How slowly the averaged gradient of a matrix moves.
    betas
        Adam's.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        *,
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        options = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "betas": betas}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step."""
        for group in self.param_groups:
            trained = [p for p in group["params"] if p.grad is not None]
            if group["weight_decay"]:
                torch._foreach_mul_(trained, 1 - group["lr"] * group["weight_decay"])
            self._step_matrices([p for p in trained if p.ndim == 2 and len(p) > 1], group)
            self._step_others([p for p in trained if not (p.ndim == 2 and len(p) > 1)], group)

    def _step_matrices(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        together: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for p in matrices:
            average = self._memory(p, "average")
            average.lerp_(p.grad, 1 - group["momentum"])  # type: ignore[arg-type]
            ahead = p.grad.lerp(average, group["momentum"])  # type: ignore[union-attr]
            together[(len(p), p.shape[1])].append((p, ahead))
        for (rows, columns), pairs in together.items():
            # An orthogonal matrix has root mean square 1/sqrt(longer side); Adam's steps have about 0.2.
            size = group["lr"] * 0.2 * max(rows, columns) ** 0.5
            steps = orthogonalized(torch.stack([u for _, u in pairs])).mul_(-size)
            torch._foreach_add_([p for p, _ in pairs], list(steps.unbind()))

    def _step_others(self, others: list[Tensor], group: dict[str, Any]) -> None:
        if not others:
            return
        grads = [p.grad for p in others if p.grad is not None]
        first = [self._memory(p, "average") for p in others]
        second = [self._memory(p, "square") for p in others]
        count = self.state[others[0]].setdefault("step", torch.zeros(()))
        count += 1
        beta1, beta2 = group["betas"]
        torch._foreach_lerp_(first, grads, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, grads, grads, 1 - beta2)
        scale = [s.sqrt().div_((1 - beta2 ** float(count)) ** 0.5).add_(1e-8) for s in second]
        torch._foreach_addcdiv_(others, first, scale, -group["lr"] / (1 - beta1 ** float(count)))

    def _memory(self, p: Tensor, name: str) -> Tensor:
        memory: dict[str, Tensor] = self.state[p]
        if name not in memory:
            memory[name] = torch.zeros_like(p)
        return memory[name]


def orthogonalized(matrices: Tensor, *, iterations: int = 5) -> Tensor:
    """Matrices with the same singular vectors and singular values near 1.

    >>> m = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(0))
    >>> s = torch.linalg.svdvals(orthogonalized(m))
    >>> bool((s > 0.2).all() and (s < 1.3).all())
    True
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(iterations):
        squared = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(squared, squared, squared, beta=B, alpha=C), x, beta=A)
    return x.mT if tall else x
