"""Select the instances of a set that have the highest value together.

The value of a selection is its prediction, with instances read in the order of the set. For a
monotone submodular function, greedy selection reaches at least 1 - 1/e of the optimum (Nemhauser,
Wolsey and Fisher 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError, unknown
from capnets.explain.subject import Source, resolve
from capnets.explain.value import SetValue
from capnets.sets import Array, Sets, offsets_of
from capnets.sets.ragged import owner_of, owners_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METHODS", "Selection", "select"]

#: Maximum number of selections per set that the search for the optimum evaluates.
OPTIMUM_LIMIT = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The selected instances of some sets.

    Parameters
    ----------
    positions
        Per set: positions of the selected instances, in the order of selection.
    gains
        Per set: what each of them added when it was selected.
    values
        Per set: the prediction for the selected instances.
    passes
        Number of sets that the network read.
    """

    positions: tuple[tuple[int, ...], ...]
    gains: tuple[tuple[float, ...], ...]
    values: Array
    passes: int

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        many = sum(len(p) for p in self.positions)
        return f"<Selection: {many} instances from {len(self)} sets>"

    def _repr_html_(self) -> str:
        return str(self.to_frame().head(50).to_html(index=False, border=0))

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per selected instance, in the order of selection."""
        import pandas as pd

        rows = [
            (k, n, position, gain)
            for k, (own, gains) in enumerate(zip(self.positions, self.gains, strict=True))
            for n, (position, gain) in enumerate(zip(own, gains, strict=True), 1)
        ]
        return pd.DataFrame(rows, columns=["set", "rank", "instance", "gain"])


def select(
    source: Source,
    X: Any,
    *,
    k: int | None = None,
    costs: Any = None,
    budget: float | None = None,
    method: str = "greedy",
    output: int | str | None = None,
) -> Selection:
    """Select the instances of each set that have the highest value together.

    Selection stops early where no further instance adds anything.

    Parameters
    ----------
    source, X, output
        As in `explain`.
    k
        Maximum number of instances.
    costs, budget
        The cost of each instance (set after set; 1 each by default), and the maximum cost of a
        selection. Greedy then compares the rules "largest gain" and "largest gain per cost" and
        returns the better selection.
    method
        `greedy`: add the instance with the largest gain, repeatedly. `lazy`: the same with fewer
        evaluations; equal to `greedy` if gains only shrink (submodular). `single`: the instances
        with the highest value alone. `optimum`: the best of all selections, for small sets.
    """
    value = resolve(source, X, output).value()
    sets = value.sets
    if method not in METHODS:
        raise unknown("selection method", method, METHODS)
    limits = Limits.of(sets, k=k, costs=costs, budget=budget)
    picked = METHODS[method](value, limits, np.ones(len(sets.index)))
    if limits.priced and method in ("greedy", "lazy"):
        # Neither rule alone has a guarantee under a budget; the better of the two has.
        with np.errstate(divide="ignore"):
            by_cost = METHODS[method](value, limits, 1 / limits.costs)
        better = _predict(value, by_cost) > _predict(value, picked)
        picked = [b if wins else a for a, b, wins in zip(picked, by_cost, better, strict=True)]
    return _finish(value, picked)


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on the number and cost of selected instances."""

    k: int
    costs: Array
    budget: float
    priced: bool

    @classmethod
    def of(cls, sets: Sets, *, k: int | None, costs: Any, budget: float | None) -> Limits:
        """Validate the arguments of `select`."""
        if k is None and budget is None:
            raise InputError(
                "pass the number of instances to select (k) or their maximum cost (budget)"
            )
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
            owner = owner_of(sets.offsets, bad)
            raise InputError(
                f"instance {bad - int(sets.offsets[owner])} of set {owner} costs {prices[bad]}; "
                "costs must not be negative"
            )
        most = int(sets.sizes.max(initial=0)) if k is None else k
        return cls(most, prices, math.inf if budget is None else budget, costs is not None)

    def affordable(self, sets: Sets, s: int, picked: Sequence[int]) -> list[int]:
        """Return the positions in set s that may still be selected."""
        if len(picked) >= self.k:
            return []
        costs = self.costs[int(sets.offsets[s]) : int(sets.offsets[s + 1])]
        left = self.budget - float(costs[list(picked)].sum())
        return [i for i, c in enumerate(costs) if i not in picked and c <= left + 1e-9]


def _greedy(value: SetValue, limits: Limits, weights: Array) -> list[list[int]]:
    sets = value.sets
    picked: list[list[int]] = [[] for _ in range(len(sets))]
    now = value.baselines.copy()
    going = list(range(len(sets)))
    while candidates := [(s, i) for s in going for i in limits.affordable(sets, s, picked[s])]:
        owners, added = (np.array(column) for column in zip(*candidates, strict=True))
        gains = _predict(value, [[*picked[s], i] for s, i in candidates], owners) - now[owners]
        scores = _weighted(gains, weights[sets.offsets[owners] + added])
        going = []
        for s in np.unique(owners):
            best = max(np.flatnonzero(owners == s), key=lambda a: scores[a])
            if gains[best] > 0:
                picked[s].append(int(added[best]))
                now[s] += gains[best]
                going.append(int(s))
    return picked


def _lazy(value: SetValue, limits: Limits, weights: Array) -> list[list[int]]:
    """Select greedily, with earlier gains as upper bounds: only the top one is evaluated again.

    All sets advance together, so that the network reads one batch per round.
    """
    sets = value.sets
    picked: list[list[int]] = [[] for _ in range(len(sets))]
    now = value.baselines.copy()
    gains = np.full(len(sets.index), np.inf)
    known = np.full(
        len(sets.index), -1
    )  # number of picked instances for which the gain was computed
    going = set(range(len(sets)))
    while going:
        candidates = []
        bounds = _weighted(gains, weights)
        for s in sorted(going):
            start = int(sets.offsets[s])
            free = limits.affordable(sets, s, picked[s])
            new = [(s, i) for i in free if known[start + i] < 0]
            top = max(free, key=lambda i: bounds[start + i], default=None)
            if new:
                candidates += new
            elif top is None or gains[start + top] <= 0:
                going.discard(s)
            elif known[start + top] == len(picked[s]):
                picked[s].append(top)
                now[s] += gains[start + top]
            else:
                candidates.append((s, top))
        if candidates:
            owners = np.array([s for s, _ in candidates])
            values = _predict(value, [[*picked[s], i] for s, i in candidates], owners) - now[owners]
            places = sets.offsets[owners] + np.array([i for _, i in candidates])
            gains[places] = values
            known[places] = [len(picked[s]) for s, _ in candidates]
    return picked


def _single(value: SetValue, limits: Limits, weights: Array) -> list[list[int]]:
    sets = value.sets
    owners = owners_of(sets.sizes)
    positions = np.arange(len(owners)) - sets.offsets[owners]
    alone = _weighted(_predict(value, [[int(i)] for i in positions], owners), weights)
    picked = []
    for s in range(len(sets)):
        own: list[int] = []
        while free := limits.affordable(sets, s, own):
            own.append(max(free, key=lambda i: alone[int(sets.offsets[s]) + i]))
        picked.append(own)
    return picked


def _optimum(value: SetValue, limits: Limits, weights: Array) -> list[list[int]]:
    sets = value.sets
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
        values = _predict(value, [[], *options], np.full(len(options) + 1, s))
        picked.append([[], *options][int(np.argmax(values))])
    return picked


METHODS = {"greedy": _greedy, "lazy": _lazy, "single": _single, "optimum": _optimum}


def _predict(
    value: SetValue, picked: Sequence[Sequence[int]], owners: Array | None = None
) -> Array:
    """Return the predictions for positions of sets, read in the order of the set."""
    sets = value.sets
    owners = np.arange(len(picked)) if owners is None else owners
    starts = sets.offsets[owners]
    rows = [
        sets.index[start + np.sort(p).astype(int)] for start, p in zip(starts, picked, strict=True)
    ]
    return value.predict(np.concatenate(rows), offsets_of([len(p) for p in picked]), owners)


def _weighted(gains: Array, weights: Array) -> Array:
    """Return gains per cost; a free instance ranks first if it adds anything."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(weights) & (gains <= 0), gains, gains * weights)


def _finish(value: SetValue, picked: list[list[int]]) -> Selection:
    """Return the selection with the gain of every step."""
    passes = value.passes
    steps = [p[:m] for p in picked for m in range(1, len(p) + 1)]
    owners = owners_of([len(p) for p in picked])
    values = _predict(value, steps, owners) if steps else np.zeros(0)
    gains, totals, start = [], np.zeros(len(picked)), 0
    for s, own in enumerate(picked):
        along = values[start : start + len(own)]
        start += len(own)
        gains.append(tuple(np.diff(along, prepend=value.baselines[s]).tolist()))
        totals[s] = along[-1] if len(own) else value.baselines[s]
    return Selection(tuple(map(tuple, picked)), tuple(gains), totals, passes)
