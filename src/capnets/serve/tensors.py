"""Read sets from requests: padded tensors with a mask, ragged tensors with sizes, or lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from capnets.errors import InputError
from capnets.export.session import check_finite
from capnets.serve.limits import Limits, RequestError
from capnets.sets import Array, Sets, offsets_of

__all__ = ["Given", "SetsBody", "Tensor", "as_array", "read_sets", "tensor"]

Size = Annotated[int, Field(ge=0, le=2**31)]
#: The kinds of numpy types that a tensor of the protocol may hold.
KINDS = {"FP32": "fiu", "FP64": "fiu", "INT32": "iu", "INT64": "iu", "BOOL": "b"}


class Tensor(BaseModel):
    """A tensor of the KServe v2 protocol. The data may be flat or nested."""

    model_config = ConfigDict(extra="ignore")
    name: str = Field(max_length=64)
    shape: list[Size] = Field(max_length=8)
    datatype: Literal["FP32", "FP64", "INT32", "INT64", "BOOL"]
    data: list[Any]


class SetsBody(BaseModel):
    """Sets, as tensors or as nested lists.

    Tensors: `instances` (sets x size x features) and `mask` (sets x size; true for instances, false
    for padding), or `instances` (all instances of all sets x features) and `sizes` (sets). Without
    `mask` and `sizes` nothing is padding. Lists: `sets`, a list of instances per set.
    """

    model_config = ConfigDict(extra="ignore")
    id: str | None = Field(default=None, max_length=256)
    inputs: list[Tensor] | None = Field(default=None, max_length=2)
    sets: list[list[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Given:
    """The sets of one request.

    Parameters
    ----------
    rows
        All instances, set after set.
    sizes
        Instances per set.
    mask
        Sets x size, if the request was padded; the answer is padded in the same way.
    """

    rows: Array
    sizes: Array
    mask: Array | None = None

    def to_sets(self) -> Sets:
        """Return the sets."""
        return Sets(self.rows, np.arange(len(self.rows)), offsets_of(self.sizes))

    def pad(self, values: Array) -> Array:
        """Return values of instances in the layout of the request; padding gets 0."""
        if self.mask is None:
            return values
        out = np.zeros((*self.mask.shape, *values.shape[1:]), dtype=values.dtype)
        out[self.mask] = values
        return out


def read_sets(body: SetsBody, *, features: tuple[int, ...], limits: Limits) -> Given:
    """Return the sets of a request.

    Parameters
    ----------
    body
        The request.
    features
        The shape of one instance; only its length counts where there are instances.
    limits
        Refuse more sets and instances than these.
    """
    if (body.inputs is None) == (body.sets is None):
        raise InputError("give either inputs (tensors) or sets (lists)")
    if body.sets is not None:
        given = _from_lists(body.sets, features, limits)
    else:
        given = _from_tensors(body.inputs or [], len(features), limits)
    check_finite(given.rows)
    return given


def _from_lists(sets: list[list[Any]], features: tuple[int, ...], limits: Limits) -> Given:
    sizes = np.array([len(own) for own in sets], dtype=np.int64)
    _check_limits(len(sets), int(sizes.sum()), limits)
    rows = as_array([row for own in sets for row in own], "sets")
    if not len(rows):  # an empty list has no feature axes
        rows = np.zeros((0, *features), dtype=np.float32)
    if rows.ndim != 1 + len(features):
        raise InputError(f"an instance has {rows.ndim - 1} axes; {len(features)} are expected")
    return Given(rows, sizes)


def _from_tensors(tensors: list[Tensor], axes: int, limits: Limits) -> Given:
    named = {tensor.name: tensor for tensor in tensors}
    if len(named) < len(tensors) or "instances" not in named:
        raise InputError("inputs need a tensor instances, and may have a mask or sizes")
    if unknown := set(named) - {"instances", "mask", "sizes"}:
        raise InputError(f"unknown input {min(unknown)!r}: use instances, mask and sizes")
    instances = named["instances"]
    if instances.datatype == "BOOL":
        raise InputError("instances are numbers: the datatype is FP32, not BOOL")
    ragged = "sizes" in named
    wanted = axes + (1 if ragged else 2)
    if len(instances.shape) != wanted:
        raise InputError(f"instances have {len(instances.shape)} axes; {wanted} are expected")
    if ragged:
        return _ragged(instances, named["sizes"], limits)
    count, size = instances.shape[:2]
    _check_limits(count, count * size, limits)
    x = _array(instances)
    mask = np.ones((count, size), dtype=bool)
    if "mask" in named:
        if named["mask"].datatype != "BOOL" or named["mask"].shape != [count, size]:
            raise InputError(f"mask must be BOOL of shape {count} x {size}")
        mask = _array(named["mask"])
    return Given(x[mask], mask.sum(1), mask)


def _ragged(instances: Tensor, lengths: Tensor, limits: Limits) -> Given:
    if lengths.datatype not in ("INT32", "INT64") or len(lengths.shape) != 1:
        raise InputError("sizes must be INT64 with one number per set")
    _check_limits(lengths.shape[0], instances.shape[0], limits)
    sizes = _array(lengths)
    # The bound keeps the sum of the sizes from overflowing.
    if sizes.min(initial=0) < 0 or sizes.max(initial=0) > limits.instances:
        raise InputError("sizes must not be negative or exceed the number of instances")
    if sizes.sum() != instances.shape[0]:
        raise InputError(f"sizes sum to {sizes.sum()}, but there are {instances.shape[0]} rows")
    return Given(_array(instances), sizes)


def _array(tensor: Tensor) -> Array:
    array = as_array(tensor.data, tensor.name, kinds=KINDS[tensor.datatype])
    if array.size != math.prod(tensor.shape):
        shape = " x ".join(map(str, tensor.shape))
        raise InputError(f"{tensor.name} has {array.size} numbers, but its shape is {shape}")
    return array.reshape(tensor.shape)


def as_array(data: Any, name: str, *, kinds: str = "fiu") -> Array:
    """Return nested lists as an array: float32, int64 or bool."""
    try:
        array = np.asarray(data)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} must be lists of equal lengths") from error
    if array.size and array.dtype.kind not in kinds:
        raise InputError(
            f"{name} must hold nothing but {'booleans' if kinds == 'b' else 'numbers'}"
        )
    kind = np.float32 if "f" in kinds else bool if kinds == "b" else np.int64
    with np.errstate(over="ignore"):  # infinite numbers are refused with their place
        return array.astype(kind)


def tensor(name: str, array: Array) -> dict[str, Any]:
    """Return an array as an output of the protocol."""
    if not np.isfinite(array).all():
        raise InputError(
            "numbers of the network become too large: scale large features down or remove them"
        )
    data = np.ascontiguousarray(array, dtype=np.float32).ravel()
    return {"name": name, "datatype": "FP32", "shape": list(array.shape), "data": data}


def _check_limits(sets: int, instances: int, limits: Limits) -> None:
    if not sets:
        raise InputError("zero sets: give at least one")
    if sets > limits.sets:
        raise RequestError(413, f"{sets} sets are too many: the limit is {limits.sets} per request")
    if instances > limits.instances:
        raise RequestError(
            413, f"{instances} instances are too many: the limit is {limits.instances} per request"
        )
