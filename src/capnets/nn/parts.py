"""Parts of a network with derivatives written out, to be put together (see `fused`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["Array", "Part", "Results", "Steps", "as_steps", "empty", "is_watched", "memory_of"]

Steps = Float[Tensor, "steps sets features"]
Results = Float[Tensor, "steps sets results"]  # one row for every row that is read
Array = NDArray[np.float32]


class Part(ABC):
    """A function of all instances of some sets. It is used once, forward and at most once back.

    Attributes
    ----------
    parameters
        What can be learned, in the order in which `backward` gives derivatives.
    """

    def __init__(self, *parameters: Tensor) -> None:
        self.parameters = parameters

    @abstractmethod
    def width(self, features: int) -> int | None:
        """How many features there are behind it; None if something does not fit together.

        Compiled loops would read and write beside their memory.
        """

    @abstractmethod
    def forward(self, x: Steps, *, back: bool) -> Results:
        """The results; `back` says whether somebody will ask for derivatives."""

    @abstractmethod
    def backward(self, dy: Results, *, wanted: bool) -> tuple[Steps | None, list[Tensor]]:
        """Derivatives of the inputs, if they are wanted, and of the parameters."""


def is_watched(module: nn.Module) -> bool:
    """Whether somebody wants to be told what passes here."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def memory_of(t: Tensor) -> Array:
    """The numbers of a tensor in one piece; its own memory, if that is one piece."""
    array: Array = t.detach().contiguous().numpy()
    return array


def empty(*shape: int) -> Array:
    """Return row-major memory for a kernel to fill.

    All memory that kernels write to comes from here. Memory that copies the strides of a parameter
    (`torch.empty_like`) may be column-major; the kernel would fill a row-major copy of it, and the
    original would be returned as it is.
    """
    return np.empty(shape, np.float32)


def as_steps(array: Array, like: Tensor) -> Tensor:
    """Rows as steps x sets x features."""
    return torch.from_numpy(array.reshape(*like.shape[:2], array.shape[1]))
