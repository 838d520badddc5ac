"""Selection: the instances of a set that are worth most together.

The worth of a selection is what the network predicts for it, read in the order of the set. For a
monotone submodular function greedy selection reaches at least 1 - 1/e of the optimum (Nemhauser,
Wolsey and Fisher 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.explain.value import CHUNK, Worth
from capnets.models.base import SetModel
from capnets.sets import Array, Sets, offsets_of

__all__ = ["METHODS", "Selection", "select"]

OPTIMUM_LIMIT = 200_000
"""Most selections per set that are gone through for the optimum."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The selected instances of some sets.

    Parameters
    ----------
    chosen
        Per set: positions of the selected instances, in the order of selection.
    gains
        Per set: what each of them added when it was selected.
    worth
        Per set: what the network predicts for the selected instances.
    passes
        How many sets the network had to read.
    """

    chosen: tuple[tuple[int, ...], ...]
    gains: tuple[tuple[float, ...], ...]
    worth: Array
    passes: int

    def __len__(self) -> int:
        return len(self.chosen)


def select(
    model: SetModel,
    sets: Sets,
    *,
    k: int | None = None,
    costs: Any = None,
    budget: float | None = None,
    method: str = "greedy",
    output: int | None = None,
    chunk: int = CHUNK,
) -> Selection:
    """The instances of each set that are worth most together.

    Fewer than `k` are selected where no further instance adds anything.

    Parameters
    ----------
    model
        Any set network.
    sets
        What to select from.
    k
        How many at most.
    costs, budget
        What each instance costs (set after set; 1 each if not given), and how much a selection may
        cost. Greedy then takes what adds most for its cost, or what adds most, whichever comes out
        better.
    method
        `greedy`: again and again what adds most. `lazy`: the same, but gains are asked for again
        only where that may matter; the same result if gains only shrink (submodular). `single`:
        what is worth most alone, whatever it shares with the others. `optimum`: the best of all
        selections, for small sets.
    output
        Which output, when there are several.
    chunk
        Most instances in one network batch.
    """
    if method not in METHODS:
        raise unknown("selection method", method, METHODS)
    limits = Limits.of(sets, k=k, costs=costs, budget=budget)
    worth = Worth(model, sets, output=output, chunk=chunk)
    picked = METHODS[method](worth, limits, np.ones(len(sets.index)))
    if limits.priced and method in ("greedy", "lazy"):
        # Neither rule alone has a guarantee under a budget; the better of the two does.
        with np.errstate(divide="ignore"):
            by_cost = METHODS[method](worth, limits, 1 / limits.costs)
        better = _of(worth, by_cost) > _of(worth, picked)
        picked = [b if wins else a for a, b, wins in zip(picked, by_cost, better, strict=True)]
    return _finish(worth, picked)


@dataclass(frozen=True, eq=False)
class Limits:
    """How many instances, at what cost."""

    k: int
    costs: Array
    budget: float
    priced: bool

    @classmethod
    def of(cls, sets: Sets, *, k: int | None, costs: Any, budget: float | None) -> Limits:
        """Check what was asked for."""
        if k is None and budget is None:
            raise InputError("say how many instances to select (k), or what they may cost (budget)")
        if k is not None and k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if budget is not None and not budget > 0:
            raise InputError(f"with a budget of {budget} nothing can be selected")
        if costs is not None and budget is None:
            raise InputError("costs need a budget")
        prices = np.ones(len(sets.index)) if costs is None else np.asarray(costs, dtype=np.float64)
        if prices.shape != sets.index.shape:
            raise InputError(
                f"costs need one number per instance ({len(sets.index)}), not {prices.shape}"
            )
        if not (prices >= 0).all():
            bad = int(np.argmin(prices >= 0))
            owner = int(np.searchsorted(sets.offsets, bad, "right") - 1)
            raise InputError(
                f"instance {bad - int(sets.offsets[owner])} of set {owner} costs {prices[bad]}; "
                "costs must not be negative"
            )
        most = int(sets.sizes.max(initial=0)) if k is None else k
        return cls(most, prices, math.inf if budget is None else budget, costs is not None)

    def affordable(self, sets: Sets, s: int, picked: Sequence[int]) -> list[int]:
        """Which instances of set s may still be selected."""
        if len(picked) >= self.k:
            return []
        costs = self.costs[int(sets.offsets[s]) : int(sets.offsets[s + 1])]
        left = self.budget - float(costs[list(picked)].sum())
        return [i for i, c in enumerate(costs) if i not in picked and c <= left + 1e-9]


def _greedy(worth: Worth, limits: Limits, weights: Array) -> list[list[int]]:
    sets = worth.sets
    picked: list[list[int]] = [[] for _ in range(len(sets))]
    now = np.zeros(len(sets))
    going = list(range(len(sets)))
    while asked := [(s, i) for s in going for i in limits.affordable(sets, s, picked[s])]:
        owners, added = (np.array(column) for column in zip(*asked, strict=True))
        gains = _of(worth, [[*picked[s], i] for s, i in asked], owners) - now[owners]
        scores = _weighted(gains, weights[sets.offsets[owners] + added])
        going = []
        for s in np.unique(owners):
            best = max(np.flatnonzero(owners == s), key=lambda a: scores[a])
            if gains[best] > 0:
                picked[s].append(int(added[best]))
                now[s] += gains[best]
                going.append(int(s))
    return picked


def _lazy(worth: Worth, limits: Limits, weights: Array) -> list[list[int]]:
    """Greedy with the last known gains as bounds: only the top one is asked for again.

    All sets advance side by side, so that the network reads one batch per round.
    """
    sets = worth.sets
    picked: list[list[int]] = [[] for _ in range(len(sets))]
    now = np.zeros(len(sets))
    gains = np.full(len(sets.index), np.inf)
    known = np.full(len(sets.index), -1)  # for how many picked instances the gain was asked for
    going = set(range(len(sets)))
    while going:
        asked = []
        bounds = _weighted(gains, weights)
        for s in sorted(going):
            start = int(sets.offsets[s])
            free = limits.affordable(sets, s, picked[s])
            new = [(s, i) for i in free if known[start + i] < 0]
            top = max(free, key=lambda i: bounds[start + i], default=None)
            if new:
                asked += new
            elif top is None or gains[start + top] <= 0:
                going.discard(s)
            elif known[start + top] == len(picked[s]):
                picked[s].append(top)
                now[s] += gains[start + top]
            else:
                asked.append((s, top))
        if asked:
            owners = np.array([s for s, _ in asked])
            values = _of(worth, [[*picked[s], i] for s, i in asked], owners) - now[owners]
            places = sets.offsets[owners] + np.array([i for _, i in asked])
            gains[places] = values
            known[places] = [len(picked[s]) for s, _ in asked]
    return picked


def _single(worth: Worth, limits: Limits, weights: Array) -> list[list[int]]:
    sets = worth.sets
    owners = np.repeat(np.arange(len(sets)), sets.sizes)
    positions = np.arange(len(owners)) - sets.offsets[owners]
    alone = _weighted(_of(worth, [[int(i)] for i in positions], owners), weights)
    picked = []
    for s in range(len(sets)):
        own: list[int] = []
        while free := limits.affordable(sets, s, own):
            own.append(max(free, key=lambda i: alone[int(sets.offsets[s]) + i]))
        picked.append(own)
    return picked


def _optimum(worth: Worth, limits: Limits, weights: Array) -> list[list[int]]:
    sets = worth.sets
    picked = []
    for s, size in enumerate(sets.sizes.tolist()):
        most = min(limits.k, size)
        count = sum(math.comb(size, m) for m in range(1, most + 1))
        if count > OPTIMUM_LIMIT:
            raise InputError(
                f"set {s} has {count:,} selections of up to {most} of its {size} instances, and "
                f"the optimum is searched among at most {OPTIMUM_LIMIT:,}; use method='greedy'"
            )
        costs = limits.costs[int(sets.offsets[s]) : int(sets.offsets[s + 1])]
        options = [
            list(option)
            for m in range(1, most + 1)
            for option in combinations(range(size), m)
            if costs[list(option)].sum() <= limits.budget + 1e-9
        ]
        values = _of(worth, [[], *options], np.full(len(options) + 1, s))
        picked.append([[], *options][int(np.argmax(values))])
    return picked


METHODS = {"greedy": _greedy, "lazy": _lazy, "single": _single, "optimum": _optimum}


def _of(worth: Worth, picked: Sequence[Sequence[int]], owners: Array | None = None) -> Array:
    """What the network predicts for positions of sets, read in the order of the set."""
    sets = worth.sets
    owners = np.arange(len(picked)) if owners is None else owners
    starts = sets.offsets[owners]
    rows = [
        sets.index[start + np.sort(p).astype(int)] for start, p in zip(starts, picked, strict=True)
    ]
    return worth.of(np.concatenate(rows), offsets_of([len(p) for p in picked]))


def _weighted(gains: Array, weights: Array) -> Array:
    """Gains per cost; what costs nothing is ahead of all else if it adds anything."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(weights) & (gains <= 0), gains, gains * weights)


def _finish(worth: Worth, picked: list[list[int]]) -> Selection:
    """What was selected, with the gains along the way."""
    passes = worth.passes
    steps = [p[:m] for p in picked for m in range(1, len(p) + 1)]
    owners = np.repeat(np.arange(len(picked)), [len(p) for p in picked])
    values = _of(worth, steps, owners) if steps else np.zeros(0)
    gains, totals, start = [], np.zeros(len(picked)), 0
    for s, own in enumerate(picked):
        along = values[start : start + len(own)]
        start += len(own)
        gains.append(tuple(np.diff(along, prepend=0.0).tolist()))
        totals[s] = along[-1] if len(own) else 0.0
    return Selection(tuple(map(tuple, picked)), tuple(gains), totals, passes)
