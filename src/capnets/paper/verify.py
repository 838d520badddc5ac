"""Run recorded jobs again and compare the results bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from capnets.errors import InputError
from capnets.paper.plan import Plan
from capnets.paper.results import Record, Results

__all__ = ["Verified", "differences", "verify"]

# Bits are promised for equal values of these.
_VERSIONS = ("versions", "kernels", "machine")


@dataclass(frozen=True)
class Verified:
    """A job that was run again.

    Attributes
    ----------
    record, again
        The recorded result and the new one.
    metrics
        Names of metrics that differ.
    versions
        Versions, kernels and machine that differ: then other bits are expected.
    """

    record: Record
    again: Record
    metrics: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if all bits agree."""
        return not self.metrics


def verify(plan: Plan, folder: str | Path) -> Iterator[Verified]:
    """Run the jobs of a plan again that have a record in a results folder, one by one."""
    from capnets.paper.execute import run_job

    records = Results(folder).read()
    known = [records[key] for key in plan.jobs if key in records]
    if not known:
        raise InputError(f"{folder} has no record of these runs; leave out --verify to make them")
    for record in known:
        with TemporaryDirectory() as runs:
            again = run_job(record.job, runs=Path(runs))
        yield Verified(
            record,
            again,
            tuple(differences(record.metrics, again.metrics)),
            tuple(
                name
                for key in _VERSIONS
                for name in differences(record.made.get(key), again.made[key], key)
            ),
        )


def differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Yield the names of values that differ, as paths through nested mappings.

    >>> list(differences({"a": 1, "b": {"c": 2.0}}, {"a": 1, "b": {"c": 2.5}}))
    ['b/c']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{name}/{key}" if name else key)
    elif old != new:
        yield name
