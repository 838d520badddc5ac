r"""Encoder, cell and decoder as one function, with its derivatives written out.

:math:`\mathsf{decoder}(\mathsf{cell}(\mathsf{encoder}(x_i)))` is the same number, up to rounding,
whichever way it is computed. On one thread of a CPU much of the time is what torch does around the
arithmetic: operations that are called, recorded and differentiated one by one, and results that go
to memory and come back. Here the parts are compiled (`compiled`), and torch sees one operation.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import Function

from capnets.nn import derivatives
from capnets.nn.cells import Cell
from capnets.nn.derivatives import Gradients
from capnets.nn.encoders import each
from capnets.nn.kernels import compiled
from capnets.nn.layers import layers_of
from capnets.nn.parts import Part, is_watched

__all__ = ["may_be_fused", "through"]

Instances = Float[Tensor, "sets size *features"]
Results = Float[Tensor, "sets size last"]

Modules = tuple[nn.Module, Cell] | tuple[nn.Module, Cell, nn.Module]

#: With several threads: up to so many instances one function is the quicker way all the same.
MOST = 1024


def through(
    x: Instances, encoder: nn.Module, cell: Cell, decoder: nn.Module | None = None
) -> Results:
    """All instances through an encoder, a cell and a decoder; without a decoder, all states."""
    modules = (encoder, cell) if decoder is None else (encoder, cell, decoder)
    parts = _parts(x, modules) if may_be_fused(x) else None
    if parts is None:
        return _one_by_one(x, modules)
    parameters = [p for part in parts for p in part.parameters]
    back = torch.is_grad_enabled()
    y: Tensor = _Fused.apply(modules, parts, back, x, *parameters)  # type: ignore[no-untyped-call]
    return y.transpose(0, 1)


def may_be_fused(x: Tensor) -> bool:
    """Whether one function is the quicker way for such instances: on one thread, or for few.

    Several threads share the work of torch's operations, but not that of compiled loops.
    """
    return (
        type(x) is Tensor
        and x.ndim == 3
        and (torch.get_num_threads() == 1 or x.shape[:2].numel() <= MOST)
        and x.shape[:2].numel() > 0
        and derivatives.by_hand(x)
        and not torch.onnx.is_in_onnx_export()
        and not derivatives.are_transformed()
        and compiled("layers") is not None
    )


def _parts(x: Tensor, modules: Modules) -> list[Part] | None:
    """What the modules compute, if derivatives of all of it are written out."""
    parts: list[Part] = []
    width: int | None = x.shape[2]
    for module in modules:
        part = module.part(len(x)) if isinstance(module, Cell) else layers_of(module)
        if part is None or width is None or is_watched(module):
            return None
        width = part.width(width)
        parts.append(part)
    device, dtype = x.device, torch.float32
    tensors = (x, *(p for part in parts for p in part.parameters))
    suit = all(t.dtype == dtype and t.device == device for t in tensors)
    return parts if suit and width is not None else None


def _one_by_one(x: Tensor, modules: Modules) -> Tensor:
    """The same by torch."""
    z, _ = modules[1](each(modules[0], x))
    return z if len(modules) == 2 else each(modules[2], z)


class _Fused(Function):
    @staticmethod
    def forward(
        ctx: Any, modules: Modules, parts: list[Part], back: Any, x: Tensor, *parameters: Tensor
    ) -> Tensor:
        y = x.transpose(0, 1)
        for part in parts:
            y = part.forward(y, back=back)
        if back:
            ctx.save_for_backward(x, *parameters)  # so torch notices whoever changes them
            ctx.modules, ctx.parts = modules, parts
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Gradients:
        inputs, wanted = ctx.saved_tensors, ctx.needs_input_grad[3:]
        parts, ctx.parts = ctx.parts, None  # what they keep is needed once
        if parts is None or torch.is_grad_enabled():
            return None, None, None, *_by_torch(dy, ctx.modules, inputs, wanted)
        d: Tensor | None = dy
        found: list[Tensor] = []
        for place in reversed(range(len(parts))):
            assert d is not None
            d, others = parts[place].backward(d, wanted=wanted[0] or place > 0)
            found = others + found
        return None, None, None, None if d is None else d.transpose(0, 1), *found


def _by_torch(
    dy: Tensor, modules: Modules, inputs: tuple[Tensor, ...], wanted: tuple[bool, ...]
) -> Gradients:
    """Derivatives a second time, or such as can be differentiated again."""
    again = torch.is_grad_enabled()
    with torch.enable_grad(), derivatives.by_torch():
        y = _one_by_one(inputs[0], modules).transpose(0, 1)
    asked = [t for t, want in zip(inputs, wanted, strict=True) if want]
    found = iter(torch.autograd.grad(y, asked, dy, create_graph=again))
    return tuple(next(found) if want else None for want in wanted)
