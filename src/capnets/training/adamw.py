"""AdamW (Loshchilov & Hutter, 2019) for networks of many small parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import is_not
from typing import Any

import torch
from torch import Tensor

__all__ = ["BETAS", "EPSILON", "AdamW"]

BETAS, EPSILON = (0.9, 0.999), 1e-8


class AdamW(torch.optim.Optimizer):
    """AdamW that updates all parameters at once.

    `torch.optim.AdamW` updates one parameter after another, which for small networks costs more
    than the arithmetic. Here all parameters form one vector during a step. The state has the names
    and shapes of torch's optimizer, so each can load what the other saved.

    Examples
    --------
    >>> weight = torch.ones(2, requires_grad=True)
    >>> optimizer = AdamW([weight], lr=0.1)
    >>> weight.square().sum().backward()
    >>> optimizer.step()
    >>> [round(w, 4) for w in weight.tolist()]
    [0.9, 0.9]
    """

    def __init__(
        self, parameters: Iterable[Tensor], *, lr: float, weight_decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self._parameters: list[Tensor] = []
        self._joined: list[_Joined] = []

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        moving = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        if len(moving) != len(self._parameters) or any(map(is_not, moving, self._parameters)):
            self._parameters, self._joined = moving, [*self._join()]
        for joined in self._joined:
            joined.step()

    def _join(self) -> Iterator[_Joined]:
        """Group parameters that make the same step: same group, type, device and step count."""
        for group in self.param_groups:
            alike: dict[tuple[Any, ...], list[Tensor]] = {}
            for p in group["params"]:
                if p.grad is not None:
                    seen = float(self.state[p].get("step", 0))
                    alike.setdefault((p.dtype, p.device, seen), []).append(p)
            for parameters in alike.values():
                yield _Joined(parameters, self.state, group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove all gradients."""
        if not set_to_none:
            super().zero_grad(set_to_none=False)
        for group in self.param_groups if set_to_none else ():
            for p in group["params"]:
                p.grad = None

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state saved by this class or by `torch.optim.AdamW`."""
        super().load_state_dict(state_dict)
        self._parameters = []


class _Joined:
    """Parameters, their gradients and their state, each as one vector."""

    def __init__(
        self, parameters: list[Tensor], state: dict[Tensor, Any], group: dict[str, Any]
    ) -> None:
        self.parameters, self.group = parameters, group
        self.weight, self.weights = _vector(parameters)
        self.gradient, self.gradients = _vector(parameters)
        self.mean, means = _vector(parameters)
        self.square, squares = _vector(parameters)
        self.seen = torch.zeros(len(parameters), device=self.weight.device)
        names = "exp_avg", "exp_avg_sq", "step"
        for p, *views in zip(parameters, means, squares, self.seen, strict=True):
            for name, view in zip(names, views, strict=True):
                if name in state[p]:
                    view.copy_(state[p][name])
                state[p][name] = view

    def step(self) -> None:
        """Copy into vectors, update, and copy back."""
        torch._foreach_copy_(self.weights, self.parameters)
        torch._foreach_copy_(
            self.gradients, [p.grad for p in self.parameters if p.grad is not None]
        )
        self.seen += 1
        torch._fused_adamw_(  # the kernel of torch, for one parameter
            [self.weight],
            [self.gradient],
            [self.mean],
            [self.square],
            [],
            [self.seen[0]],
            lr=self.group["lr"],
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=self.group["weight_decay"],
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
        torch._foreach_copy_(self.parameters, self.weights)


def _vector(parameters: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return a vector of zeros for all parameters, and views of it in their shapes."""
    sizes = [p.numel() for p in parameters]
    vector = parameters[0].new_zeros(sum(sizes))
    parts = zip(torch.split(vector, sizes), parameters, strict=True)
    return vector, [part.view(p.shape) for part, p in parts]
