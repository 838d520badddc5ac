"""Split sets for training, validation and test by whole sets and whole groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array, Sets

__all__ = ["hold_out"]


def hold_out(
    sets: Sets, share: float, *, seed: int, groups: Any = None, stratify: Any = None
) -> tuple[Sets, Sets]:
    """Hold out a random share of the sets; return the remaining and the held-out sets.

    Parameters
    ----------
    share
        Share of the sets, or of the groups if there are any, between 0 and 1.
    seed
        Random seed.
    groups
        Group of each set; no group is in both parts.
    stratify
        Class of each set; every class of at least two sets is in both parts, in about equal shares.

    Examples
    --------
    >>> sets = Sets.from_arrays([np.ones((1, 2))] * 10, y=[0, 1] * 5)
    >>> train, valid = hold_out(sets, 0.4, seed=0, stratify=sets.y)
    >>> len(train), sorted(valid.y.tolist())
    (6, [0.0, 0.0, 1.0, 1.0])
    """
    if not 0 < share < 1:
        raise InputError(f"the share to hold out must be between 0 and 1, not {share}")
    generator = np.random.default_rng(seed)
    if groups is None:
        units = np.arange(len(sets))
    else:
        _, units = np.unique(np.asarray(groups), return_inverse=True)
    if len(units) != len(sets):
        raise InputError(f"{len(units)} groups were given for {len(sets)} sets")
    count = int(units.max(initial=-1)) + 1
    if count < 2:
        what = "sets" if groups is None else "groups"
        raise InputError(f"at least two {what} are needed to hold one out; there is {count}")
    # Groups cannot be cut, so the first set of a group decides its stratum.
    strata = np.zeros(count, dtype=np.int64)
    if stratify is not None:
        _, classes = np.unique(np.asarray(stratify), axis=0, return_inverse=True)
        firsts = np.unique(units, return_index=True)[1]
        strata = classes.reshape(-1)[firsts]
    held = np.zeros(count, dtype=bool)
    held[_draw(strata, share, generator)] = True
    chosen = held[units]
    return sets.subset(~chosen), sets.subset(chosen)


def _draw(strata: Array, share: float, generator: np.random.Generator) -> Array:
    chosen = []
    for stratum in np.unique(strata):
        members = generator.permutation(np.flatnonzero(strata == stratum))
        least = 1 if len(members) > 1 else 0
        amount = min(max(round(share * len(members)), least), len(members) - 1)
        chosen.append(members[:amount])
    found = np.concatenate(chosen)
    if not len(found):  # every stratum has a single member
        found = generator.permutation(len(strata))[: max(1, round(share * len(strata)))]
    return found
