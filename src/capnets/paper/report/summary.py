"""Content of a report, before it is put into a format.

A report answers three questions, each in a part of its own: does the paper's recipe give the
paper's numbers and claims, what does a better recipe change, what do networks beyond the paper add?
A table is of one recipe and one scale.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from capnets.errors import InputError
from capnets.paper.beyond import count_beyond
from capnets.paper.claims import Claim, count_claims
from capnets.paper.compare import compare
from capnets.paper.compared import Compared
from capnets.paper.jobs import TrainingJob
from capnets.paper.names import RECURRENT
from capnets.paper.published.inconsistencies import INCONSISTENCIES
from capnets.paper.report.missing import Missing, list_missing
from capnets.paper.results import Record
from capnets.paper.scales import PAPER_RECIPE, PAPER_SETS, RECIPES, Scale, every_scale
from capnets.training import recipe as recipes

__all__ = ["PROTOCOLS", "Failed", "Part", "Recipe", "Section", "Summary", "summarise"]

PROTOCOLS: Mapping[str, str] = {
    "shared": "Test sets are new sets of images that also occur in training sets. The paper does "
    "not say which images it tests on, but its errors are far below what the best classifiers of "
    "new images allow. All comparisons with printed numbers use this protocol.",
    "held-out": "Test sets consist of images that no training set contains, as in practice. The "
    "paper has no such numbers.",
}


@dataclass(frozen=True)
class Section:
    """A table under both protocols, with remarks."""

    shared: Compared
    held_out: Compared
    remarks: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.shared.table.name

    @property
    def by_protocol(self) -> bool:
        """True if the protocol makes a difference; it does not for labels and parameters."""
        return any(
            a.ours != b.ours for a, b in zip(self.shared.shown, self.held_out.shown, strict=True)
        )


@dataclass(frozen=True)
class Part:
    """The answer to one of the first two questions: tables of one recipe, and the claims in them.

    Attributes
    ----------
    sections
        Tables with at least one result.
    claims, held_out_claims
        The claims of the paper, counted under each protocol.
    """

    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    held_out_claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Failed:
    """A run that gave no number; `differs` names what differs from the run of the main table."""

    model: str
    task: str
    seed: int
    differs: str
    failure: str
    reason: str


@dataclass(frozen=True)
class Recipe:
    """Settings that a number of runs have in common."""

    name: str
    settings: Mapping[str, Any]
    runs: int


@dataclass(frozen=True)
class Summary:
    """Content of a report.

    Attributes
    ----------
    paper, ours
        Results with the paper's recipe and with ours.
    beyond, held_out_beyond
        Statements on networks beyond the paper, counted under each protocol.
    missing
        Printed numbers without ours, with the cost of making them.
    runs
        Number of trained networks.
    stale
        Number of records that were left out, because the same job would give another result today.
    hours
        Core hours of all runs.
    longest
        Core seconds of the longest uninterrupted run of a recurrent network at full scale.
    """

    paper: Part
    ours: Part
    beyond: tuple[Claim, ...]
    held_out_beyond: tuple[Claim, ...]
    missing: tuple[Missing, ...]
    failed: tuple[Failed, ...]
    recipes: tuple[Recipe, ...]
    made: tuple[Mapping[str, Any], ...]
    runs: int
    stale: int
    hours: float
    longest: float | None

    @property
    def sections(self) -> tuple[Section, ...]:
        """The tables of both recipes."""
        return self.paper.sections + self.ours.sections

    @property
    def beyond_sections(self) -> tuple[Section, ...]:
        """Tables of means with results of networks beyond the paper."""
        return tuple(
            section
            for section in self.ours.sections
            if any(
                shown.ours is not None and shown.entry.statistic == "mean"
                for shown in section.shared.beyond
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        parts = {"paper": self.paper, "ours": self.ours}
        return {
            "tables": [
                {"part": name, **_table(section)}
                for name, part in parts.items()
                for section in part.sections
            ],
            "claims": {
                name: {
                    "shared": [claim.to_dict() for claim in part.claims],
                    "held-out": [claim.to_dict() for claim in part.held_out_claims],
                }
                for name, part in parts.items()
            },
            "beyond": {
                "shared": [claim.to_dict() for claim in self.beyond],
                "held-out": [claim.to_dict() for claim in self.held_out_beyond],
            },
            "missing": [vars(missing) for missing in self.missing],
            "protocols": dict(PROTOCOLS),
            "failed": [vars(failed) for failed in self.failed],
            "recipes": [{**vars(recipe)} for recipe in self.recipes],
            "made": [dict(m) for m in self.made],
            "runs": self.runs,
            "stale": self.stale,
            "hours": self.hours,
            "longest_recurrent_seconds": self.longest,
        }


def summarise(*folders: Mapping[str, Record], scale: str | None = None) -> Summary:
    """Summarise the records of one or several results folders.

    A folder supplies what those before it lack, or where they have a failure.

    Parameters
    ----------
    scale
        The scale of all tables; by default each table has the largest that was begun.
    """
    from capnets.paper.execute import current

    every = {key for folder in folders for key in folder}
    records: dict[str, Record] = {}
    for folder in folders:
        for key, record in current(folder).items():
            if key not in records or (records[key].failure and not record.failure):
                records[key] = record
    if every and not records:
        raise InputError(
            f"all {len(every):,} records were made with an earlier recipe or measurement; "
            "`capnets reproduce` makes them again"
        )
    scales = [one for one in every_scale() if scale in (None, one.name)]
    paper = [one for one in scales if one.recipe == PAPER_RECIPE]
    ours = [one for one in scales if one.recipe != PAPER_RECIPE]
    runs = [record for record in records.values() if isinstance(record.job, TrainingJob)]
    best = [compare(records, protocol=protocol, scales=ours) for protocol in PROTOCOLS]
    return Summary(
        paper=_part(records, paper),
        ours=_part(records, ours),
        beyond=count_beyond(best[0]),
        held_out_beyond=count_beyond(best[1]),
        missing=list_missing(records),
        failed=tuple(_failed(record) for record in runs if record.failure),
        recipes=_recipes(runs),
        made=_each_once(_made(record) for record in runs or records.values()),
        runs=len(runs),
        stale=len(every) - len(records),
        hours=sum(_seconds(record) for record in runs) / 3600,
        longest=max(filter(None, map(_recurrent_seconds, runs)), default=None),
    )


def _part(records: Mapping[str, Record], scales: Sequence[Scale]) -> Part:
    shared, held_out = (compare(records, protocol=p, scales=scales) for p in PROTOCOLS)
    # Parameters and labels depend on no recipe: they are listed once, with the paper's.
    mine = {
        name: compared
        for name, compared in shared.tables.items()
        if _has_results(compared, trained=scales[0].recipe != PAPER_RECIPE)
    }
    sections = tuple(
        Section(
            compared,
            held_out.tables[name],
            (*compared.caveats, *(i.what for i in INCONSISTENCIES if name in i.tables)),
        )
        for name, compared in mine.items()
    )
    return Part(sections, count_claims(shared), count_claims(held_out))


def _has_results(compared: Compared, *, trained: bool) -> bool:
    jobs = [job for s in compared.shown if s.done or s.failures for job in s.entry.needed]
    return any(isinstance(job, TrainingJob) or not trained for job in jobs)


def _table(section: Section) -> dict[str, Any]:
    table, scale = section.shared.table, section.shared.scale
    return {
        "name": table.name,
        "number": table.number,
        "title": table.title,
        "shows": table.shows,
        "scale": scale.name,
        "recipe": scale.recipe,
        "remarks": list(section.remarks),
        "exact": {row: dict(numbers) for row, numbers in table.exact.items()},
        "shared": [shown.to_dict() for shown in section.shared.shown],
        "held-out": [shown.to_dict() for shown in section.held_out.shown],
    }


def _failed(record: Record) -> Failed:
    job = record.job
    assert isinstance(job, TrainingJob)
    plain = TrainingJob(
        model=job.model, task=job.task, source=job.source, embedding=job.embedding,
        seed=job.seed,
    )  # fmt: skip
    differs = ", ".join(
        f"{f.name} {value}"
        for f in fields(job)
        if (value := getattr(job, f.name)) != getattr(plain, f.name)
    )
    return Failed(job.model, job.task, job.seed, differs or "–", str(record.failure), record.reason)


def _recipes(runs: list[Record]) -> tuple[Recipe, ...]:
    """Return the recipes without what the runs of a table vary: learning rate and epochs."""
    counts: Counter[tuple[str, str]] = Counter()
    for record in runs:
        assert isinstance(record.job, TrainingJob)
        # Settings that recipes did not have at the time have their defaults.
        settings = recipes.Recipe.from_dict(record.made["recipe"]).to_dict()
        if record.job.learning_rate is not None:
            settings["learning_rate"] = "as the table says"
        counts[record.job.recipe, json.dumps(settings, sort_keys=True)] += 1
    order = [*RECIPES, "large"]
    found = sorted(counts.items(), key=lambda one: (order.index(one[0][0]), -one[1]))
    return tuple(Recipe(name, json.loads(settings), count) for (name, settings), count in found)


def _recurrent_seconds(record: Record) -> float | None:
    job = record.job
    if not isinstance(job, TrainingJob) or job.model not in RECURRENT or job.sets != PAPER_SETS:
        return None
    return record.cost.get("cpu_seconds")


def _seconds(record: Record) -> float:
    return float(record.cost.get("cpu_seconds") or record.cost.get("train_seconds") or 0.0)


def _made(record: Record) -> dict[str, Any]:
    made = record.made
    kernels = made.get("kernels", "not recorded")
    commit = made.get("commit") or "not recorded"
    return {**made["versions"], "kernels": kernels, "commit": commit[:10], **made["machine"]}


def _each_once(values: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    found = {json.dumps(value, sort_keys=True): value for value in values}
    return tuple(found.values())
