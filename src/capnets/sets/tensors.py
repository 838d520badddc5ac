"""Turn arrays of sets into tensors that share their memory where torch allows it."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from capnets.memory import check_memory
from capnets.sets.precision import BFLOAT16
from capnets.sets.ragged import Array

__all__ = ["as_instances", "as_tensor"]

#: Types that torch cannot gather from; such instances are converted as a whole.
UNSIGNED = (np.uint16, np.uint32, np.uint64)


def as_instances(values: Array) -> Tensor:
    """Return instances in their own type, sharing memory if torch can gather from it."""
    if values.dtype == BFLOAT16:
        return as_tensor(values.view(np.int16), torch.int16).view(torch.bfloat16)
    if values.dtype in UNSIGNED:
        check_memory(
            4 * values.size,
            what=f"{len(values):,} instances as float32",
            advice="store them as float32, or work on fewer",
        )
        return as_tensor(values, torch.float32)
    return as_tensor(values)


def as_tensor(values: Array, dtype: torch.dtype | None = None) -> Tensor:
    """Return an array as a tensor, sharing memory if the type stays."""
    with warnings.catch_warnings():
        # torch warns of read-only memory maps; nothing here writes to them.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.asarray(values)).to(dtype)
