"""The interface of a kernel, and the memory it works on."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BLOCK", "Array", "CellKernel", "Kernel", "empty", "to_array"]

Array = NDArray[np.float32]

#: Rows (or sets) that kernels process at a time.
BLOCK = 128


class Kernel(ABC):
    """One forward pass over steps x sets x features, and at most one backward pass.

    Parameters
    ----------
    parameters
        The parameters of the module, in the order of `module.parameters()`.
    """

    def __init__(self, *parameters: Tensor) -> None:
        self.parameters = parameters

    @abstractmethod
    def width(self, features: int) -> int | None:
        """Return the number of output features; None if shapes do not fit together.

        Loops do not check bounds, so shapes are checked here.
        """

    @abstractmethod
    def forward(self, x: Array, *, keep: bool) -> Array:
        """Return the outputs; with `keep`, store what `backward` needs."""

    @abstractmethod
    def backward(self, dy: Array, *, need_dx: bool) -> tuple[Array | None, list[Array]]:
        """Return the gradients of the inputs, if needed, and of the parameters."""


class CellKernel(Kernel):
    """A kernel that carries a state of sets x state features from step to step.

    Attributes
    ----------
    before, after
        The state before the first step, set by the caller, and after the last, set by `forward`.
    dafter, dbefore
        Their gradients: `dafter` is set by the caller, `dbefore` by `backward`.
    """

    before: Array
    after: Array
    dafter: Array
    dbefore: Array

    def prefers_torch(self, sets: int, *, alone: bool) -> bool:
        """Return whether torch's own module is faster on one thread for this many sets.

        `alone` says that encoder and decoder are not part of the compiled function.
        """
        return False


def empty(*shape: int) -> Array:
    """Return row-major memory for a kernel to fill.

    All memory that kernels return comes from here. Memory that copies the strides of a parameter
    (`torch.empty_like`) may be column-major; the kernel would fill a row-major copy of it, and the
    original would be returned as it is.
    """
    return np.empty(shape, np.float32)


def to_array(t: Tensor) -> Array:
    """Return the entries row-major; without a copy if they already are."""
    array: Array = t.detach().contiguous().numpy()
    return array
