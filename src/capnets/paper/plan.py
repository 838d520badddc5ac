"""Plan a reproduction: the entries of some tables and the jobs behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from capnets.errors import InputError
from capnets.paper.jobs import Job
from capnets.paper.names import find_model, find_task
from capnets.paper.scales import Scale, find_scale
from capnets.paper.tables import Entry, Table, find_tables

__all__ = ["Plan", "make_plan", "narrow"]


@dataclass(frozen=True)
class Plan:
    """Tables with their entries at a scale."""

    scale: Scale
    tables: tuple[tuple[Table, tuple[Entry, ...]], ...]

    @cached_property
    def jobs(self) -> Mapping[str, Job]:
        """All jobs by key, each once."""
        return {
            job.key: job for _, entries in self.tables for entry in entries for job in entry.needed
        }


def narrow(
    entries: Iterable[Entry],
    *,
    models: Iterable[str] | None = None,
    tasks: Iterable[str] | None = None,
) -> tuple[Entry, ...]:
    """Return the entries about some models and tasks; None for all.

    Entries without a model (statistics of labels) are left out if models are given, and likewise
    for tasks.
    """
    wanted_models = None if models is None else {find_model(name) for name in models}
    wanted_tasks = None if tasks is None else {find_task(name) for name in tasks}
    return tuple(
        entry
        for entry in entries
        if (wanted_models is None or entry.model in wanted_models)
        and (wanted_tasks is None or entry.task in wanted_tasks)
    )


def make_plan(
    names: Iterable[str],
    *,
    scale: str | Scale = "full",
    models: Iterable[str] | None = None,
    tasks: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
) -> Plan:
    """Plan the jobs of some tables, narrowed to models, tasks and seeds.

    Seeds replace those of the scale.

    >>> plan = make_plan(["table1"], models=["c-gru"], tasks=["US", "WTri"], seeds=[0])
    >>> [job.task for job in plan.jobs.values()]
    ['unique-sum', 'weighted-triangular']
    """
    size = find_scale(scale) if isinstance(scale, str) else scale
    if seeds is not None:
        size = replace(size, seeds=tuple(seeds))
    models = None if models is None else list(models)
    tasks = None if tasks is None else list(tasks)
    found = find_tables(names)
    tables = []
    for table in found:
        if entries := narrow(table.entries(size), models=models, tasks=tasks):
            tables.append((table, entries))
    if not tables:
        raise InputError(
            f"nothing is left of {', '.join(t.name for t in found) or 'no tables'} with "
            f"models {models or 'any'} and tasks {tasks or 'any'}; name others"
        )
    plan = Plan(size, tuple(tables))
    if not plan.jobs:
        raise InputError(
            f"the scale {size.name} has no runs for "
            f"{', '.join(table.name for table, _ in tables)}; choose another scale"
        )
    return plan
