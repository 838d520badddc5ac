r"""What kind of set function a network has learned: redundancy, synergy, monotonicity.

Three questions, asked of randomly drawn cases with real subsets, read in the order of the set:

- *Additivity*: f(A + B) against f(A) + f(B) for disjoint A and B.
- *Modularity*: what j adds to S + i against what it adds to S.
- *Monotonicity under removal*: f(S) against f(S - i). A capacity network with positive values is
  monotone by construction only when an instance is appended; taken from the middle it can raise
  the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.explain.interaction import random_contexts, second_differences
from capnets.explain.value import CHUNK, Worth, same_sizes
from capnets.models.base import SetModel
from capnets.sets import Array, Sets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Context", "Diagnostics", "context", "diagnose"]


@dataclass(frozen=True)
class Diagnostics:
    """Shares of the sampled cases; those within the tolerance of equality are in neither share.

    Parameters
    ----------
    subadditive, superadditive
        Two parts are together worth less, or more, than apart.
    submodular, supermodular
        An instance adds less, or more, when another one is there.
    breaks_monotonicity
        Removing an instance raises the prediction.
    largest_rise
        By how much at most.
    tolerance
        What counted as equal, in the unit of the label.
    cases
        How many cases of each kind were drawn.
    passes
        How many sets the network had to read.
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
        """As JSON knows it."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        import pandas as pd

        return pd.DataFrame([self.to_dict()])


def diagnose(
    model: SetModel,
    sets: Sets,
    *,
    samples: int = 16,
    tolerance: float | None = None,
    seed: int = 0,
    output: int | None = None,
    chunk: int = CHUNK,
) -> Diagnostics:
    """Sort randomly drawn cases from every set into sub-, super- and neither.

    Parameters
    ----------
    model
        Any set network.
    sets
        What cases are drawn from; sets of one instance have none.
    samples
        Cases of each kind per set.
    tolerance
        Differences up to it count as none; by default 2 % of the mean absolute prediction, because
        a network hits no equality exactly.
    seed
        What cases are drawn from.
    output
        Which output, when there are several.
    chunk
        Most instances in one network batch.
    """
    if samples < 1:
        raise InputError(f"at least 1 sample per set is needed, not {samples}")
    if tolerance is not None and tolerance < 0:
        raise InputError(f"a tolerance is not negative: {tolerance}")
    worth = Worth(model, sets, output=output, chunk=chunk)
    if tolerance is None:
        tolerance = 0.02 * float(np.abs(worth.of(sets.index, sets.offsets)).mean())
    generator = np.random.default_rng(seed)
    additive, modular, removal = [], [], []
    for group in _pairs(worth, samples):
        additive.append(_additivity(worth, group, samples, generator))
        modular.append(_modularity(worth, group, samples, generator))
        removal.append(_removal(worth, group, samples, generator))
    if not additive:
        raise InputError("no set has two instances: there is nothing to compare")
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
        passes=worth.passes,
    )


@dataclass(frozen=True, eq=False)
class Context:
    """Every instance alone and as the one that is missing.

    Parameters
    ----------
    alone
        What the network predicts for the instance alone.
    within
        What is lost when it is taken out of its set.
    """

    alone: Array
    within: Array

    @property
    def contrast(self) -> Array:
        """`within` less `alone`: negative for a redundant instance, positive for synergy."""
        return self.within - self.alone


def context(
    model: SetModel, sets: Sets, *, output: int | None = None, chunk: int = CHUNK
) -> Context:
    """What every instance is worth alone, and what its set loses without it."""
    worth = Worth(model, sets, output=output, chunk=chunk)
    alone, within = np.zeros(len(sets.index)), np.zeros(len(sets.index))
    longest = int(sets.sizes.max(initial=1))
    for group in same_sizes(sets.sizes, most=4 * chunk // longest**2):
        size = int(sets.sizes[group[0]])
        places = sets.offsets[group][:, None] + np.arange(size)
        each = np.eye(size, dtype=bool)
        table = worth.of_subsets(group, np.concatenate([each, ~each, np.ones((1, size), bool)]))
        alone[places] = table[:, :size]
        within[places] = table[:, -1:] - table[:, size:-1]
    return Context(alone, within)


def _pairs(worth: Worth, samples: int) -> Iterator[Array]:
    sizes = worth.sets.sizes
    longest = int(sizes.max(initial=1))
    for group in same_sizes(sizes, most=worth.chunk // (longest * samples)):
        if sizes[group[0]] > 1:
            yield group


def _additivity(worth: Worth, group: Array, samples: int, generator: np.random.Generator) -> Array:
    """f(A + B) - f(A) - f(B): instances go to A, to B or to neither, at least one to each."""
    size = int(worth.sets.sizes[group[0]])
    shape = (len(group), samples)
    side = generator.integers(3, size=(*shape, size))
    forced = generator.random((*shape, size)).argsort(-1)[..., :2]
    np.put_along_axis(side, forced, np.array([0, 1]), axis=-1)
    a, b = side == 0, side == 1
    members = np.stack([a | b, a, b], axis=2)
    table = worth.of_subsets(group, members.reshape(len(group), -1, size)).reshape(*shape, 3)
    return (table[..., 0] - table[..., 1] - table[..., 2]).ravel()


def _modularity(worth: Worth, group: Array, samples: int, generator: np.random.Generator) -> Array:
    """Second differences at random pairs (the same for the sets of a group) and contexts."""
    size = int(worth.sets.sizes[group[0]])
    first, second = generator.random((samples, size)).argsort(-1)[:, :2].T
    drawn = random_contexts(generator, (len(group), samples, 1), size, first, second)
    return second_differences(worth, group, drawn, first, second).ravel()


def _removal(worth: Worth, group: Array, samples: int, generator: np.random.Generator) -> Array:
    """f(S) - f(S - i) for random S of any size from 1, and i in S."""
    size = int(worth.sets.sizes[group[0]])
    shape = (len(group), samples)
    rank = generator.random((*shape, size)).argsort(-1).argsort(-1)
    whole = rank < generator.integers(1, size + 1, size=shape)[..., None]
    members = np.stack([whole, whole & (rank > 0)], axis=2)
    table = worth.of_subsets(group, members.reshape(len(group), -1, size)).reshape(*shape, 2)
    return (table[..., 0] - table[..., 1]).ravel()
