r"""Diagnose the set function that a network has learned: redundancy, synergy, monotonicity.

Three properties are tested on randomly drawn subsets, read in the order of the set:

- *Additivity*: f(A + B) against f(A) + f(B) for disjoint A and B.
- *Modularity*: the gain of j given S + i against its gain given S.
- *Monotonicity under removal*: f(S) against f(S - i). A capacity network with positive values is
  monotone by construction only when an instance is appended; removing one from the middle can
  raise the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.interaction import random_contexts, second_differences
from capnets.explain.subject import Source, resolve
from capnets.explain.value import SetValue, groups_of_equal_size
from capnets.sets import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diagnostics", "LeaveOneOut", "diagnose", "leave_one_out"]


@dataclass(frozen=True)
class Diagnostics:
    """Shares of the sampled cases; cases within the tolerance of equality count for neither share.

    Parameters
    ----------
    subadditive, superadditive
        Two parts have a lower, or higher, value together than the sum of their values.
    submodular, supermodular
        An instance adds less, or more, if another one is present.
    breaks_monotonicity
        Removing an instance raises the prediction.
    largest_rise
        The largest such rise.
    tolerance
        The largest difference that counted as equality, in the unit of the label.
    cases
        Number of cases of each kind.
    passes
        Number of sets that the network read.
    """

    subadditive: float
    superadditive: float
    submodular: float
    supermodular: float
    breaks_monotonicity: float
    largest_rise: float
    tolerance: float
    cases: int
    passes: int

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row."""
        import pandas as pd

        return pd.DataFrame([self.to_dict()])


def diagnose(
    source: Source,
    X: Any,
    *,
    samples: int = 16,
    tolerance: float | None = None,
    seed: int = 0,
    output: int | str | None = None,
) -> Diagnostics:
    """Estimate how often the learned function is sub- or superadditive, sub- or supermodular.

    Parameters
    ----------
    source, X, output
        As in `explain`; sets of one instance are skipped.
    samples
        Cases of each kind per set.
    tolerance
        The largest difference that counts as equality; by default 2 % of the mean absolute
        prediction, because a network never meets an equality exactly.
    seed
        Random seed of the cases.
    """
    if samples < 1:
        raise InputError(f"at least 1 sample per set is needed, not {samples}")
    if tolerance is not None and tolerance < 0:
        raise InputError(f"tolerance must not be negative: {tolerance}")
    value = resolve(source, X, output).value()
    sets = value.sets
    if tolerance is None:
        tolerance = 0.02 * float(np.abs(value.predict(sets.index, sets.offsets)).mean())
    generator = np.random.default_rng(seed)
    additive, modular, removal = [], [], []
    for group in _pairs(value, samples):
        additive.append(_additivity(value, group, samples, generator))
        modular.append(_modularity(value, group, samples, generator))
        removal.append(_removal(value, group, samples, generator))
    if not additive:
        raise InputError("no set has two instances: nothing can be compared")
    parts, seconds, losses = (np.concatenate(c) for c in (additive, modular, removal))
    return Diagnostics(
        subadditive=float((parts < -tolerance).mean()),
        superadditive=float((parts > tolerance).mean()),
        submodular=float((seconds < -tolerance).mean()),
        supermodular=float((seconds > tolerance).mean()),
        breaks_monotonicity=float((losses < -tolerance).mean()),
        largest_rise=float(max(0.0, -losses.min())),
        tolerance=tolerance,
        cases=len(parts),
        passes=value.passes,
    )


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The value of every instance alone, and the loss when it is removed from its set.

    Parameters
    ----------
    alone
        The prediction for the instance alone, minus the baseline.
    loss
        The prediction for its set minus that without the instance.
    """

    alone: Array
    loss: Array

    @property
    def contrast(self) -> Array:
        """Return `loss - alone`: negative for a redundant instance, positive for synergy."""
        return self.loss - self.alone


def leave_one_out(source: Source, X: Any, *, output: int | str | None = None) -> LeaveOneOut:
    """Compare every instance alone with what its set loses without it."""
    value = resolve(source, X, output).value()
    sets = value.sets
    alone, loss = np.zeros(len(sets.index)), np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    for group in groups_of_equal_size(sets.sizes, most=4 * value.chunk // longest**2):
        size = int(sets.sizes[group[0]])
        places = sets.offsets[group][:, None] + np.arange(size)
        each = np.eye(size, dtype=bool)
        table = value.predict_subsets(
            group, np.concatenate([each, ~each, np.ones((1, size), bool)])
        )
        alone[places] = table[:, :size] - value.baselines[group][:, None]
        loss[places] = table[:, -1:] - table[:, size:-1]
    return LeaveOneOut(alone, loss)


def _pairs(value: SetValue, samples: int) -> Iterator[Array]:
    sizes = value.sets.sizes
    longest = int(sizes.max(initial=1))
    for group in groups_of_equal_size(sizes, most=value.chunk // (longest * samples)):
        if sizes[group[0]] > 1:
            yield group


def _additivity(
    value: SetValue, group: Array, samples: int, generator: np.random.Generator
) -> Array:
    """Return f(A + B) - f(A) - f(B) + f(empty) for random disjoint A and B, neither empty."""
    size = int(value.sets.sizes[group[0]])
    shape = (len(group), samples)
    side = generator.integers(3, size=(*shape, size))
    forced = generator.random((*shape, size)).argsort(-1)[..., :2]
    np.put_along_axis(side, forced, np.array([0, 1]), axis=-1)
    a, b = side == 0, side == 1
    members = np.stack([a | b, a, b], axis=2)
    table = value.predict_subsets(group, members.reshape(len(group), -1, size)).reshape(*shape, 3)
    empty = value.baselines[group][:, None]
    return (table[..., 0] - table[..., 1] - table[..., 2] + empty).ravel()


def _modularity(
    value: SetValue, group: Array, samples: int, generator: np.random.Generator
) -> Array:
    """Return second differences at random pairs (shared by the sets of a group) and contexts."""
    size = int(value.sets.sizes[group[0]])
    first, second = generator.random((samples, size)).argsort(-1)[:, :2].T
    drawn = random_contexts(generator, (len(group), samples, 1), size, first, second)
    return second_differences(value, group, drawn, first, second).ravel()


def _removal(value: SetValue, group: Array, samples: int, generator: np.random.Generator) -> Array:
    """Return f(S) - f(S - i) for random non-empty S and i in S."""
    size = int(value.sets.sizes[group[0]])
    shape = (len(group), samples)
    rank = generator.random((*shape, size)).argsort(-1).argsort(-1)
    whole = rank < generator.integers(1, size + 1, size=shape)[..., None]
    members = np.stack([whole, whole & (rank > 0)], axis=2)
    table = value.predict_subsets(group, members.reshape(len(group), -1, size)).reshape(*shape, 2)
    return (table[..., 0] - table[..., 1]).ravel()
