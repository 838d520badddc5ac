"""Covariates: features of whole sets, such as the age of a patient.

`Sets.covariates` holds one row per set. A batch repeats that row behind the features of every
instance of the set, padding included. So every network reads covariates as further features, and
an empty set keeps its covariates as long as the batch has a row of padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from capnets.errors import InputError
from capnets.sets.precision import is_number
from capnets.sets.ragged import Array

if TYPE_CHECKING:
    from capnets.sets import Sets

__all__ = ["append", "check_covariates", "check_same", "check_values", "covariates_in_words"]


def append(x: Tensor, covariates: Tensor) -> Tensor:
    """Return sets x longest x (features + covariates).

    >>> append(torch.zeros(1, 2, 1), torch.tensor([[7.0]])).tolist()
    [[[0.0, 7.0], [0.0, 7.0]]]
    """
    return torch.cat([x, covariates[:, None].expand(-1, x.shape[1], -1)], dim=2)


def covariates_in_words(sets: Sets, *, most: int = 8) -> tuple[str, ...] | None:
    """Return the covariates of every set in words: numbers, and the categories that apply.

    >>> from capnets.sets import Sets
    >>> sets = Sets.from_arrays(
    ...     [np.zeros((1, 2))], covariates=[[42, 0, 1]], covariate_names=["age", "sex=f", "sex=m"]
    ... )
    >>> covariates_in_words(sets)
    ('age 42, sex=m',)
    """
    if sets.covariates is None:
        return None
    names = sets.covariate_names or [f"covariate {k}" for k in range(sets.n_covariates)]
    indicators = [sets.covariate_names is not None and ("=" in n or "#" in n) for n in names]

    def words(row: Array) -> str:
        shown = [
            name if indicator else f"{name} {value:g}"
            for name, indicator, value in zip(names, indicators, row.tolist(), strict=True)
            if value or not indicator
        ]
        return ", ".join(shown[:most]) + ", …" * (len(shown) > most)

    return tuple(words(row) for row in sets.covariates)


def check_covariates(sets: Sets) -> None:
    """Check type, shape and names of the covariates."""
    values, names = sets.covariates, sets.covariate_names
    if values is None:
        if names is not None:
            raise InputError("covariate_names are given without covariates")
        return
    if values.ndim != 2 or not values.shape[1] or not is_number(values.dtype):
        raise InputError(
            f"covariates has shape {values.shape} and type {values.dtype}; expected numbers, "
            "sets x covariates (one covariate is an array of shape (sets, 1))"
        )
    if len(values) != len(sets):
        raise InputError(
            f"covariates has {len(values)} rows, but {len(sets)} are needed: one per set"
        )
    if names is not None and len(names) != values.shape[1]:
        raise InputError(
            f"covariate_names has {len(names)} entries, but there are {values.shape[1]} covariates"
        )
    if len(sets.feature_shape) != 1:
        raise InputError(
            f"covariates need instances that are rows of features, not of shape "
            f"{sets.feature_shape}"
        )


def check_values(sets: Sets) -> None:
    """Check that all covariates are finite."""
    if sets.covariates is None:
        return
    bad = np.argwhere(~np.isfinite(sets.covariates))
    if len(bad):
        k, c = bad[0].tolist()
        name = repr(sets.covariate_names[c]) if sets.covariate_names else str(c)
        of = f"set {k}" if sets.ids is None else f"set {k} ({str(sets.ids[k])!r})"
        raise InputError(
            f"covariate {name} of {of} is {sets.covariates[k, c]}; replace missing and infinite "
            "values first"
        )


def check_same(found: Sets, count: int, names: Sequence[str] | None, *, who: str) -> None:
    """Raise unless sets have the covariates that a network was trained with."""
    values: Array | None = found.covariates
    here = 0 if values is None else values.shape[1]
    if here != count:
        advice = (
            "give them as Sets(…, covariates=…), or as columns of a table"
            if here < count
            else "leave them out"
        )
        raise InputError(f"X has {here} covariates, but {who} is expecting {count}; {advice}")
    given = found.covariate_names
    if names is not None and given is not None and tuple(given) != tuple(names):
        raise InputError(
            f"the covariates of X are {', '.join(given)}, but {who} was fitted with "
            f"{', '.join(names)}"
        )
