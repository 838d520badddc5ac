"""Printed numbers without a number of ours, and the cost of making them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from capnets.paper.compare import compare
from capnets.paper.compared import Compared
from capnets.paper.estimate import Estimate
from capnets.paper.jobs import Job
from capnets.paper.results import Record
from capnets.paper.scales import PAPER_RECIPE, Scale, find_scale

__all__ = ["Missing", "list_missing"]


@dataclass(frozen=True)
class Missing:
    """Numbers of a table that a recipe lacks at full scale.

    Attributes
    ----------
    printed
        How many numbers the paper prints in the table.
    numbers
        How many of them have no number of ours.
    runs
        Trainings that would give them, each counted with the first table that needs it.
    hours
        Estimated core hours of these runs; None if nothing is known to estimate from.
    reason
        Why they are missing.
    """

    number: str
    title: str
    recipe: str
    printed: int
    numbers: int
    runs: int
    hours: float | None
    reason: str


def list_missing(records: Mapping[str, Record]) -> tuple[Missing, ...]:
    """List what is missing with the paper's recipe, one seed each, then with ours."""
    estimate = Estimate(records.values())
    found: list[Missing] = []
    for recipe in (PAPER_RECIPE, None):
        seen: set[str] = set()
        scale = find_scale("full", recipe=recipe)
        scales = [scale] if recipe else [scale, find_scale("full", recipe="fast")]
        tables = compare(records, protocol="shared", scales=scales).tables
        small = [find_scale("small", recipe=recipe)]
        smaller = compare(records, protocol="shared", scales=small).tables
        for name, compared in tables.items():
            if one := _missing(compared, scale, seen, records, estimate):
                run = smaller[name].done and not compared.done
                found.append(replace(one, reason="run at scale small") if run else one)
    return tuple(found)


def _missing(
    compared: Compared,
    scale: Scale,
    seen: set[str],
    records: Mapping[str, Record],
    estimate: Estimate,
) -> Missing | None:
    printed = [s for s in compared.printed if s.entry.published is not None or s.entry.dash]
    lacking = [shown for shown in printed if shown.ours is None]
    if not lacking:
        return None
    # One seed is enough for a number, except for a deviation.
    jobs: dict[str, Job] = {}
    for shown in lacking:
        wanted = shown.entry.needed
        if shown.entry.statistic != "stdev":
            wanted = tuple(j for j in wanted if getattr(j, "seed", 0) == scale.seeds[0])
        jobs |= {job.key: job for job in wanted if job.key not in records}
    new = [job for key, job in jobs.items() if key not in seen]
    seen.update(jobs)
    failures = {failure for shown in lacking for failure in shown.failures}
    return Missing(
        compared.table.number,
        compared.table.title,
        compared.scale.recipe,
        printed=len(printed),
        numbers=len(lacking),
        runs=len(new),
        hours=estimate.hours(new),
        reason=_reason(failures, new),
    )


def _reason(failures: set[str], new: list[Job]) -> str:
    if failures:
        return f"failed: {', '.join(sorted(failures))}"
    return "not run yet" if new else "follows from runs listed above"
