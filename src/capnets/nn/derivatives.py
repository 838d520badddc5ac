"""When derivatives written out by hand are used, and what they are made of (see `recurrence`).

On a CPU small recurrent networks are mostly overhead. An accelerator has fused kernels of its own,
and mixed precision its own rules: both take the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

__all__ = [
    "Gradients",
    "are_transformed",
    "by_hand",
    "by_torch",
    "once",
    "through_sigmoid",
    "through_tanh",
]

Gradients = tuple[Tensor | None, ...]

_wanted = ContextVar("derivatives by hand are wanted", default=True)


def by_hand(x: Tensor) -> bool:
    """Whether derivatives written out are to be used for this input."""
    return (
        x.device.type == "cpu"
        and _wanted.get()
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def are_transformed() -> bool:
    """Whether calls are inside a transform of `torch.func`, or derivatives are taken forward.

    Neither goes through functions with derivatives written out, nor through torch's own cells.
    """
    return not torch.compiler.is_compiling() and (
        torch._C._are_functorch_transforms_active()  # what torch asks before it refuses them
        or forward_ad._current_level >= 0
    )


@contextmanager
def by_torch() -> Iterator[None]:
    """Leave all derivatives to torch inside this block: slower, but they can be taken twice.

    It holds for the thread it stands in. A thread that is started inside does not know of it, and
    needs a block of its own.
    """
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)


def once(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Refuse the second derivative, which nobody wrote down, instead of leaving it out."""

    @wraps(backward)
    def refusing(ctx: Any, *arriving: Tensor) -> Gradients:
        if torch.is_grad_enabled():  # only while a graph of the derivatives is made
            raise RuntimeError(
                "this function can be differentiated once; for second derivatives (create_graph) "
                "run the network inside `with capnets.nn.derivatives.by_torch():`"
            )
        return backward(ctx, *arriving)

    return refusing


# Called with (dy, y, grad_input=dx): what dx is when y is the function's output.
through_sigmoid: Callable[..., Tensor] = torch.ops.aten.sigmoid_backward.grad_input
through_tanh: Callable[..., Tensor] = torch.ops.aten.tanh_backward.grad_input
