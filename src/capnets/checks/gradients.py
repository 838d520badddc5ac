"""What is promised of training: every parameter learns, and padding teaches nothing."""

from __future__ import annotations

from fnmatch import fnmatch
from math import isfinite

import torch
from torch import Tensor

from capnets.checks.subject import Subject, require, same
from capnets.models.base import SetModel

__all__ = ["gradients_reach_every_parameter", "padding_has_no_gradient"]

Gradients = dict[str, Tensor | None]

#: A gradient this much smaller than the largest is what rounding leaves of zero.
ROUNDING = 1e-12


def gradients_reach_every_parameter(subject: Subject) -> None:
    """Each parameter learns, except those which the network declares idle; they must not."""
    x, mask = subject.ragged()
    reached: set[str] = set()
    for seed in range(3):  # a unit that begins dead for one seed does not for all
        gradients = _gradients(subject.model(seed), x, mask)
        sizes = {k: float(g.abs().max()) for k, g in gradients.items() if g is not None}
        for name, size in sizes.items():
            require(isfinite(size), f"the gradient of parameter {name} is not finite")
        largest = max(sizes.values(), default=0.0)
        reached |= {k for k, size in sizes.items() if size > ROUNDING * largest}
    model = subject.model()
    names = {name for name, _ in model.named_parameters()}
    idle = {name for name in names if any(fnmatch(name, pattern) for pattern in model.idle)}
    missing, surprising = sorted(names - idle - reached), sorted(idle & reached)
    require(not missing, f"no gradient reaches {', '.join(missing)}: they can learn nothing")
    require(not surprising, f"a gradient reaches {', '.join(surprising)}, declared idle")


def padding_has_no_gradient(subject: Subject) -> None:
    """No gradient reaches the padding, and what lies there changes no gradient."""
    model = subject.model()
    x, mask = subject.ragged()
    filled, _ = subject.ragged(padding=1e3)
    clean = _gradients(model, x, mask)
    for name, gradient in _gradients(model, filled, mask).items():
        expected = clean[name]
        if gradient is not None and expected is not None:
            same(gradient, expected, f"what lies in the padding changes the gradient of {name}")
    filled.requires_grad_()
    for what, output in (
        ("prediction", model(filled, mask)),
        ("added values", model.added_values(filled, mask)),
    ):
        (gradient,) = torch.autograd.grad(output.pow(2).sum(), filled)
        require(not bool(gradient[~mask].any()), f"the {what} have a gradient in the padding")
        require(bool(gradient[mask].any()), f"the {what} have no gradient in the instances")


def _gradients(model: SetModel, x: Tensor, mask: Tensor) -> Gradients:
    model.train()  # as it is in training, where a network may take another path
    names, parameters = zip(*model.named_parameters(), strict=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # a network with dropout shall drop the same twice
        error = (model(x, mask) - 1).pow(2).sum()
    gradients = torch.autograd.grad(error, parameters, allow_unused=True)
    return dict(zip(names, gradients, strict=True))
