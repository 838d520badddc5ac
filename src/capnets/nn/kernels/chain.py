"""Find the kernels of modules: linear layers with ReLU between them, and cells."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from capnets.nn.encoders import has_hooks
from capnets.nn.kernels.kernel import CellKernel, Kernel

Modules = tuple[nn.Module, ...]

#: Layers with more weights than this are left to torch, whose matrix products are faster.
LARGE_LAYER = 2**15
#: Recurrent matrices above this size are left to torch where it has several threads to share the
#: products of at least `FEW` sets.
LARGE_MATRIX, FEW = 2**16, 4


def find_chain(modules: Modules, x: Tensor, *, forced: bool) -> tuple[Kernel, ...] | str:
    """Return a kernel for each module, or the reason why there is none.

    With `forced`, kernels are also found where torch is faster.
    """
    found: list[Kernel] = []
    width = x.shape[2]
    hooked = _has_any_global_hook()  # type: ignore[no-untyped-call]
    for module in modules:
        if hooked or has_hooks(module):
            return "hooks must see what passes between modules"
        if isinstance(module, nn.Sequential):
            kernel = _layers(module, forced=forced)
        else:
            kernel = _cell(module, len(x), alone=len(modules) == 1, forced=forced)
        if isinstance(kernel, str):
            return kernel
        after = kernel.width(width)
        if after is None:
            return f"{type(module).__name__} does not fit {width} features"
        if any(p.dtype != torch.float32 or p.device != x.device for p in kernel.parameters):
            return f"{type(module).__name__} is not float32 on a CPU"
        found.append(kernel)
        width = after
    return (*found,)


def _layers(network: nn.Sequential, *, forced: bool) -> Kernel | str:
    """Return the kernel of linear layers with ReLU between them."""
    if type(network) is not nn.Sequential or len(network) % 2 == 0:
        return "kernels are for linear layers with ReLU between them"
    parameters: list[Tensor] = []
    for place, layer in enumerate(network):
        if type(layer) is not (nn.ReLU if place % 2 else nn.Linear):
            return f"kernels are for linear layers with ReLU between them, not {layer}"
        if has_hooks(layer):
            return "hooks must see what passes between layers"
        for parameter in layer._parameters.values():  # faster than one attribute at a time
            if parameter is None:
                return "a linear layer has no bias"
            if parameter.numel() > LARGE_LAYER and not forced:
                return f"a layer has more than {LARGE_LAYER:,} weights: torch is faster"
            parameters.append(parameter)
    from capnets.nn.kernels.layers import Layers

    return Layers(*parameters)


def _cell(cell: Any, sets: int, *, alone: bool, forced: bool) -> Kernel | str:
    """Return the kernel of a cell."""
    kernel: CellKernel | None = cell.kernel() if hasattr(cell, "kernel") else None
    if kernel is None:
        return f"there is no kernel for {type(cell).__name__}"
    if [*map(id, cell.parameters())] != [*map(id, kernel.parameters)]:
        return f"the weights of {type(cell).__name__} are parametrized"
    if (
        sets >= FEW
        and torch.get_num_threads() > 1
        and kernel.parameters[1].numel() > LARGE_MATRIX
        and not forced
    ):
        return "torch shares products this large among its threads"
    if kernel.prefers_torch(sets, alone=alone) and not forced:
        return f"torch's module is faster for {kernel.parameters[1].shape[1]} dimensions"
    if kernel.width(cell.in_features) not in (None, cell.out_features):
        return f"the weights of {type(cell).__name__} were replaced by others"
    return kernel
