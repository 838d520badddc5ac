"""Turn arrays of sets into tensors that share their memory, and read rows of them as float32."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from torch import Tensor

from capnets.memory import check_memory
from capnets.sets.mapped import prefetch, release
from capnets.sets.precision import BFLOAT16
from capnets.sets.ragged import Array

__all__ = ["as_instances", "as_tensor", "gather"]

#: Types that torch cannot gather from; such instances are converted as a whole.
UNSIGNED = (np.uint16, np.uint32, np.uint64)
#: Numbers that are converted at once, so that they stay in the processor's cache.
CACHED = 2**17


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
    """Return an array as a tensor, sharing memory if the type does not change."""
    values = np.asarray(values)
    if values.flags.writeable:
        return torch.from_numpy(values).to(dtype)
    with warnings.catch_warnings():
        # torch warns of read-only memory maps; nothing here writes to them.
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(values).to(dtype)


def gather(instances: Tensor, rows: Tensor, *, file: Array | None = None) -> Tensor:
    """Return some rows as float32; `file` is the mapped file to stream them from, if any."""
    if file is None:
        return _converted(instances, rows)
    ordered = np.unique(rows.numpy())
    ends = np.flatnonzero(np.diff(ordered) > 1)  # of runs of neighbours
    starts = ordered[np.concatenate([[0], ends + 1])]
    prefetch(file, starts, 1 + ordered[np.append(ends, len(ordered) - 1)])
    x = _converted(instances, rows)
    release(file)
    return x


def _converted(instances: Tensor, rows: Tensor) -> Tensor:
    if instances.dtype == torch.float32:
        return instances.index_select(0, rows)
    x = torch.empty(len(rows), *instances.shape[1:])
    most = max(1, CACHED // max(1, math.prod(x.shape[1:])))
    for part, into in zip(torch.split(rows, most), torch.split(x, most), strict=True):
        into.copy_(instances.index_select(0, part))
    return x
