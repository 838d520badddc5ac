"""When the compiled steps of `loops` are used instead of operations of torch.

An operation of torch takes some microseconds before it computes anything. With a handful of sets in
a batch, as with large sets, few sets, or the set that somebody asks about, that is nearly all of
the time of a recurrent network.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import torch
from torch import Tensor

__all__ = ["compiled_loops"]

#: Up to so many numbers in the states of a batch (sets x features) compiled steps are the quicker
#: ones; beyond, matrix products of libraries make up for what calling them costs.
MOST = 4096


def compiled_loops(state: Tensor) -> ModuleType | None:
    """`loops`, if it suits states like this one, and numba is installed."""
    if state.numel() > MOST or state.dtype != torch.float32 or state.device.type != "cpu":
        return None
    return _loops()


@cache
def _loops() -> ModuleType | None:
    try:
        from capnets.nn import loops
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        return None
    return loops
