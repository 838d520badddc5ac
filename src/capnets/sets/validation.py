"""Validate sets; each error says where the fault is and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from capnets.errors import InputError
from capnets.sets.covariates import check_values
from capnets.sets.mapped import blocks
from capnets.sets.precision import BFLOAT16, TOO_FAR, Range, is_far, is_number, is_wide
from capnets.sets.ragged import Array, owner_of

if TYPE_CHECKING:
    from capnets.sets import Sets

__all__ = [
    "as_array", "check_digits", "check_finite", "check_kinds", "check_layout", "labels", "numbers",
    "other_sizes",
]  # fmt: skip

#: float32 represents every integer up to this one exactly.
WHOLE = 2**24


def check_kinds(sets: Sets) -> None:
    """Check the types and numbers of axes of arrays."""
    for name in ("instances", "index", "offsets"):
        if getattr(sets, name) is None:
            raise InputError(f"{name} is missing; see the documentation of Sets")
    if sets.instances.ndim < 2:
        raise InputError(
            f"instances has shape {sets.instances.shape}; expected instances x features"
        )
    for name, values in (("index", sets.index), ("offsets", sets.offsets)):
        if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
            raise InputError(
                f"{name} must be a list of whole numbers, "
                f"not of shape {values.shape} and type {values.dtype}"
            )
    for name, given in (
        ("instances", sets.instances),
        ("coords", sets.coords),
        ("y", sets.y),
        ("weights", sets.weights),
    ):
        if given is not None and not is_number(given.dtype):
            raise InputError(f"{name} must hold numbers, not {given.dtype}")
    if sets.y is not None and sets.y.ndim not in (1, 2):
        raise InputError(
            f"y has shape {sets.y.shape}; expected one label, or a row of labels, per set"
        )


def check_layout(sets: Sets) -> None:
    """Check that arrays fit together."""
    index, offsets = sets.index, sets.offsets
    if not len(offsets):
        raise InputError("offsets has no entry; it needs one more than there are sets")
    if offsets[0] != 0 or offsets[-1] != len(index):
        raise InputError(
            f"offsets must run from 0 to the length of index ({len(index)}), "
            f"not from {offsets[0]} to {offsets[-1]}"
        )
    sizes = np.diff(offsets)
    if (sizes < 0).any():
        raise InputError(
            f"offsets must not decrease; they do after set {int(np.argmax(sizes < 0))}"
        )
    if len(index) and (index.min() < 0 or index.max() >= len(sets.instances)):
        raise InputError(f"index names rows outside the {len(sets.instances)} instances")
    for name, values, expected, per in (
        ("y", sets.y, len(sets), "set"),
        ("ids", sets.ids, len(sets), "set"),
        ("weights", sets.weights, len(sets), "set"),
        ("classes", sets.classes, len(sets.instances), "instance"),
        ("coords", sets.coords, len(sets.instances), "instance"),
        ("feature_names", sets.feature_names, sets.instances.shape[-1], "feature"),
    ):
        if values is not None and len(values) != expected:
            raise InputError(
                f"{name} has {len(values)} entries, but {expected} are needed: one per {per}"
            )


def check_finite(sets: Sets) -> None:
    """Check that all features that a set uses, labels, weights and covariates are finite."""
    bad = np.zeros(len(sets.instances), dtype=bool)
    columns = tuple(range(1, sets.instances.ndim))
    for start, part in blocks(sets.instances):
        bad[start : start + len(part)] = ~np.isfinite(part).all(axis=columns)
    used = bad[sets.index]
    if used.any():
        position = int(np.argmax(used))
        k = owner_of(sets.offsets, position)
        instance = sets.instances[sets.index[position]]
        place = tuple(np.argwhere(~np.isfinite(instance))[0].tolist())
        raise InputError(
            f"{_named(sets, k)} has the value {instance[place]} in {_column(sets, place)} of its "
            f"instance {position - int(sets.offsets[k])}; replace or drop missing and infinite "
            "values first"
        )
    for what, values in (("label", sets.y), ("weight", sets.weights)):
        if values is not None and not (finite := np.isfinite(values)).all():
            k = int(np.argwhere(~finite)[0][0])
            raise InputError(
                f"the {what} of {_named(sets, k)} is {values[k]}; "
                f"give it a finite {what} or drop the set"
            )
    check_values(sets)


def check_digits(sets: Sets, tables: Sequence[Array]) -> None:
    """Refuse columns whose values float32 cannot tell apart.

    The float32 instances show which columns are far from 0; only those are read again in full
    precision.
    """
    pool, wide = sets.instances, [t for t in tables if is_wide(t.dtype)]
    if not wide or not len(pool):
        return
    with np.errstate(invalid="ignore"):  # NaN and infinity: see check_finite
        low, high = (m.astype(np.float64) for m in (pool.min(axis=0), pool.max(axis=0)))
        far = np.argwhere(is_far(low, high, times=TOO_FAR))
    for place in map(tuple, far.tolist()):
        column: Any = (slice(None), *place)
        reach = Range()
        reach.add(np.concatenate([t[column] for t in wide]).astype(np.float64))
        if reach.loses(times=TOO_FAR) and not reach.rounding:
            raise InputError(
                f"{_column(sets, place)} lies between {reach.low!r} and {reach.high!r}: networks "
                "compute in float32, which cannot distinguish such values. Subtract a number "
                f"such as {reach.middle()!r} from it, here and in sets to predict."
            )


def _column(sets: Sets, place: tuple[int, ...]) -> str:
    name = f" ({sets.feature_names[place[-1]]!r})" if sets.feature_names else ""
    return f"column {place[0] if len(place) == 1 else place}{name}"


def _named(sets: Sets, k: int) -> str:
    return f"set {k}" if sets.ids is None else f"set {k} ({str(sets.ids[k])!r})"


def as_array(values: Any, name: str) -> Array:
    """Return an array that torch can share: native byte order, at most 64 bits, no negative stride.

    Tensors are detached and moved to the CPU; memory maps stay memory maps.
    """
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().resolve_conj().resolve_neg()
        if values.dtype == torch.bfloat16:
            values = values.view(torch.int16).numpy().view(BFLOAT16)
        else:
            values = values.numpy()
    try:
        array: Array = np.asanyarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, and others
        raise InputError(
            f"{name} is a {type(values).__name__} that is no array: {error}"
        ) from error
    if array.dtype.kind == "c":  # a conversion to real numbers would drop the imaginary parts
        raise InputError(f"Complex data not supported: {name} holds complex numbers")
    if array.dtype == np.longdouble and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array) if any(s < 0 for s in array.strides) else array


def numbers(values: Any, name: str) -> Array:
    """Return the values as float32; `name` names them in errors."""
    try:
        with np.errstate(over="ignore"):  # beyond float32 becomes infinite: see check_finite
            converted: Array = np.asarray(values).astype(np.float32, copy=False)
            return converted
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number: {error}") from error


def labels(values: Any, name: str) -> Array:
    """Return labels as float32, but keep integers that float32 cannot hold.

    They may name classes, which float32 would merge. `name` names the labels in errors.
    """
    narrow, given = numbers(values, name), np.asarray(values)
    if given.dtype.kind not in "iuf" or not np.isfinite(narrow).all():
        return narrow
    large = (given > WHOLE) | (given < -WHOLE)
    return given if large.any() and (given % 1 == 0).all() else narrow


def other_sizes(
    sizes: Array, trained: Sequence[int] | None, name: Callable[[int], str] = "set {}".format
) -> str | None:
    """Return a sentence about sets smaller or larger than all training sets; None without any.

    Parameters
    ----------
    sizes
        Instances per set.
    trained
        Smallest and largest training set; None if they are not known.
    name
        Returns the name of a set by its number.
    """
    if trained is None:
        return None
    low, high = trained
    outside = (sizes < low) | (sizes > high)
    if not outside.any():
        return None
    k = int(np.argmax(outside))
    return (
        f"{outside.sum():,} of {len(sizes):,} sets are smaller or larger than all training sets "
        f"({low} to {high} instances), e.g. {name(k)} with {sizes[k]}: their predictions are "
        "extrapolations"
    )
