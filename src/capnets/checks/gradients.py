"""Checks of gradients: every parameter gets one, and padding gets none."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from math import isfinite

import torch
from torch import Tensor

from capnets.checks.subject import Subject, require, same
from capnets.models.base import SetModel
from capnets.nn.random import draw_from

__all__ = ["gradients_reach_every_parameter", "padding_has_no_gradient"]

Gradients = dict[str, Tensor | None]
Output = Callable[[SetModel, Tensor, Tensor], Tensor]

#: Gradients below this share of the largest gradient count as zero up to rounding.
ROUNDING = 1e-12


def gradients_reach_every_parameter(subject: Subject) -> None:
    """Check that a gradient reaches every parameter except those declared idle."""
    x, mask = subject.ragged()
    model = subject.model()
    names = {name for name, _ in model.named_parameters()}
    idle = {name for name in names if any(fnmatch(name, pattern) for pattern in model.idle)}
    reached: set[str] = set()
    for number, start in enumerate(subject.models()):  # a unit may be dead for some seeds
        if number >= 3 and names - idle <= reached:
            break
        gradients = _gradients(start, x, mask)
        sizes = {k: float(g.abs().max()) for k, g in gradients.items() if g is not None}
        for name, size in sizes.items():
            require(isfinite(size), f"the gradient of parameter {name} is not finite")
        largest = max(sizes.values(), default=0.0)
        reached |= {k for k, size in sizes.items() if size > ROUNDING * largest}
    missing, surprising = sorted(names - idle - reached), sorted(idle & reached)
    require(not missing, f"no gradient reaches {', '.join(missing)}: they can learn nothing")
    require(not surprising, f"a gradient reaches {', '.join(surprising)}, declared idle")


def padding_has_no_gradient(subject: Subject) -> None:
    """Check that padding gets no gradient and does not change other gradients."""
    model = subject.model()
    x, mask = subject.ragged()
    filled, _ = subject.ragged(padding=1e3)
    clean = _gradients(model, x, mask)
    for name, gradient in _gradients(model, filled, mask).items():
        expected = clean[name]
        if gradient is not None and expected is not None:
            same(gradient, expected, f"the content of the padding changes the gradient of {name}")
    filled.requires_grad_()
    _reaches_instances_only("prediction has", SetModel.__call__, subject, filled, mask)
    _reaches_instances_only(
        "added values have", lambda m, x, mask: m.added_values(x, mask), subject, filled, mask
    )


def _reaches_instances_only(
    what: str, output: Output, subject: Subject, x: Tensor, mask: Tensor
) -> None:
    """Check that gradients do not reach the padding, but reach instances for some weights."""
    for model in subject.models():
        (gradient,) = torch.autograd.grad(output(model, x, mask).pow(2).sum(), x)
        require(not bool(gradient[~mask].any()), f"the {what} a gradient in the padding")
        if bool(gradient[mask].any()) or not model.smooth:
            return
    require(False, f"the {what} no gradient in the instances")


def _gradients(model: SetModel, x: Tensor, mask: Tensor) -> Gradients:
    model.train()  # training mode may use another code path
    names, parameters = zip(*model.named_parameters(), strict=True)
    with draw_from(0):  # repeatable dropout
        error = (model(x, mask) - 1).pow(2).sum()
    gradients = torch.autograd.grad(error, parameters, allow_unused=True)
    return dict(zip(names, gradients, strict=True))
