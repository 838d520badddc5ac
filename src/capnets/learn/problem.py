"""Description of what is to be learned: sets, labels, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import unknown
from capnets.ingest import Schema, hold_out
from capnets.learn.target import Target
from capnets.sets import Array, Sets

__all__ = ["INSTANCES", "TEST_SHARE", "Problem"]

#: Default share of the sets of a table that is kept to measure the result.
TEST_SHARE = 0.2

#: Kinds of instances, and the `inputs` of the networks that read them.
INSTANCES = {"rows": "standardize", "vectors": "none", "pictures": "pictures"}


@dataclass(frozen=True, eq=False)
class Problem:
    """Sets with labels, and everything that is known about them.

    Parameters
    ----------
    train
        Training sets; labels are numbers.
    target
        Meaning of the labels.
    valid
        Validation sets. Without them a plan may hold out some of the training sets.
    tests
        Test sets by name.
    groups
        A group per training set; splits keep groups whole.
    schema
        Schema of the table, if the sets come from one.
    origin
        Source of the sets, as a JSON object; recorded with the run.
    instances
        Kind of instance: a row of a table, a vector from an embedding, or a picture.
    exact
        Whether labels are computed from the instances without noise and are monotone.
    expected
        Function from sets to their exact added values; None if these are not known.
    """

    train: Sets
    target: Target = field(default_factory=Target)
    valid: Sets | None = None
    tests: Mapping[str, Sets] = field(default_factory=dict)
    groups: Array | None = None
    schema: Schema | None = None
    origin: dict[str, Any] = field(default_factory=dict)
    instances: str = "rows"
    exact: bool = False
    expected: Callable[[Sets], Array] | None = None

    def __post_init__(self) -> None:
        if self.instances not in INSTANCES:
            raise unknown("kind of instances", self.instances, INSTANCES)

    @property
    def order(self) -> str | None:
        """Return the column that orders the instances of a set, if the table has one."""
        return None if self.schema is None else self.schema.columns.order

    @property
    def name(self) -> str:
        """Return a short name of the source of the sets."""
        if "task" in self.origin:
            return f"{self.origin['task']['function']}:{self.origin['task']['source']}"
        return Path(self.origin.get("source", "sets")).stem

    def subset(self, chosen: Array) -> Problem:
        """Return the problem with some of its training sets."""
        groups = None if self.groups is None else self.groups[chosen]
        return replace(self, train=self.train.subset(chosen), groups=groups)

    def hold_out(self, share: float, *, seed: int) -> tuple[Problem, Array]:
        """Split off a share of the training sets; return the rest and the held-out indices.

        Whole groups are held out, and every class in equal shares.
        """
        numbered = replace(self.train, ids=np.arange(len(self.train)))
        strata = self.target.strata(self.train.y)
        _, held = hold_out(numbered, share, seed=seed, groups=self.groups, stratify=strata)
        assert held.ids is not None
        stays = np.ones(len(self.train), dtype=bool)
        stays[held.ids] = False
        return self.subset(np.flatnonzero(stays)), held.ids

    def with_test(self, share: float, *, seed: int) -> Problem:
        """Return the problem with a share of its training sets as the test sets `test`."""
        rest, held = self.hold_out(share, seed=seed)
        # Weights are for training; test sets count equally.
        test = replace(self.train.subset(held), weights=None)
        train = rest.train
        if train.weights is not None:
            train = replace(train, weights=train.weights / train.weights.mean())
        origin = {**self.origin, "test_share": share}
        return replace(rest, train=train, tests={**self.tests, "test": test}, origin=origin)
