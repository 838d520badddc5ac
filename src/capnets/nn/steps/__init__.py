"""What recurrent cells do one instance after another, in two ways: the rest is `recurrence`.

Both have the same functions, which fill the arrays of `recurrence` in place. `operations` are those
of torch, quick where there is much to compute in each. An operation takes some microseconds before
it computes anything: with a handful of sets in a batch, as with large sets, few sets, or the set
that somebody asks about, that is nearly all of the time, and `compiled` takes none of it.
"""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from capnets.nn.steps import operations

__all__ = ["are_compiled", "steps_for"]

#: Up to so many numbers in the states of a batch (sets x features) compiled steps are the quicker
#: ones; beyond, matrix products of libraries make up for what calling them costs.
MOST = 4096


def steps_for(state: Tensor) -> ModuleType:
    """The quicker way for states like this one."""
    suits = state.numel() <= MOST and state.dtype == torch.float32 and state.device.type == "cpu"
    return (_compiled() if suits else None) or operations


def are_compiled(state: Tensor) -> bool:
    """Whether the quicker way is the compiled one."""
    return steps_for(state) is not operations


@cache
def _compiled() -> ModuleType | None:
    """None where numba is not installed (extra `compiled`), or does not fit what else is."""
    try:
        from capnets.nn.steps import compiled
    except ImportError as error:
        if error.name != "numba" or not isinstance(error, ModuleNotFoundError):
            warnings.warn(
                f"numba is installed, but cannot be imported ({error}): recurrent networks are "
                "slower without it; upgrade it, or remove it",
                RuntimeWarning,
                stacklevel=2,
            )
        return None
    return compiled
