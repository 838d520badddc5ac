"""Everything that a report says, before it is put into any format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from capnets.errors import InputError
from capnets.paper.beyond import count_beyond
from capnets.paper.claims import Claim, count_claims
from capnets.paper.compare import Compared, Comparison, compare
from capnets.paper.jobs import TrainingJob
from capnets.paper.names import RECURRENT
from capnets.paper.published.inconsistencies import INCONSISTENCIES
from capnets.paper.results import Record
from capnets.paper.scales import PAPER_SETS, Scale
from capnets.training import recipe as recipes

__all__ = ["PROTOCOLS", "SCALES", "Failed", "Recipe", "Section", "Summary", "summarise"]

PROTOCOLS: Mapping[str, str] = {
    "shared": "Test sets are new sets of images that training sets are drawn from, too. The paper "
    "does not say so, but only this is compatible with its errors: they are far below what the "
    "best classifiers of new images would allow. All comparisons with the paper use it.",
    "held-out": "Test sets are drawn from images that no training set contains: what one would "
    "meet in use. The paper has no such numbers, so these stand for themselves.",
}


SCALES = (
    "Numbers of entries that have a result. A table is of one scale, the largest that was begun "
    "unless one was asked for (--scale): "
    "full is the paper’s size, small a tenth of its sets, smoke only shows that everything runs. "
    "Every scale has a results folder of its own; a report on several folders "
    "(capnets report results/full results/small) shows what the first lacks at the scale of the "
    "second. A table is also of one recipe: muon if it was begun with it, or else fast (--recipe). "
    "No table and no claim has two scales or two recipes."
)


@dataclass(frozen=True)
class Section:
    """A table under both protocols, with what has to be said about it."""

    shared: Compared
    held_out: Compared
    remarks: tuple[str, ...]

    @property
    def name(self) -> str:
        """The table's name."""
        return self.shared.table.name

    @property
    def printed(self) -> bool:
        """Whether the paper prints any number of it."""
        return any(s.entry.published is not None or s.entry.dash for s in self.shared.shown)

    @property
    def by_protocol(self) -> bool:
        """Whether the protocol makes a difference: it does not for labels and parameters."""
        return any(
            a.ours != b.ours for a, b in zip(self.shared.shown, self.held_out.shown, strict=True)
        )


@dataclass(frozen=True)
class Failed:
    """A run that gave no number.

    Attributes
    ----------
    differs
        In what it differs from the run of the main table.
    """

    model: str
    task: str
    seed: int
    differs: str
    failure: str
    reason: str


@dataclass(frozen=True)
class Recipe:
    """Settings that runs were trained with: what they have in common, and how many they are."""

    name: str
    settings: Mapping[str, Any]
    runs: int


@dataclass(frozen=True)
class Summary:
    """What a report says.

    Attributes
    ----------
    claims, held_out_claims
        The paper's claims, counted under each protocol.
    beyond, held_out_beyond
        How far beyond the paper we come, likewise.
    runs
        How many networks were trained.
    stale
        How many records were left out, because today the same would be done in another way.
    hours
        Of one core, in all of them.
    longest
        Seconds of one core of the longest run of a recurrent network at full scale; None: no such
        run was made without a break.
    """

    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    held_out_claims: tuple[Claim, ...]
    beyond: tuple[Claim, ...]
    held_out_beyond: tuple[Claim, ...]
    failed: tuple[Failed, ...]
    recipes: tuple[Recipe, ...]
    versions: tuple[Mapping[str, str], ...]
    machines: tuple[Mapping[str, Any], ...]
    runs: int
    stale: int
    hours: float
    longest: float | None

    @property
    def smaller(self) -> bool:
        """Whether any table with runs is at a smaller scale than the paper's."""
        return any(s.shared.done and s.shared.scale.name != "full" for s in self.sections)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "tables": [
                {
                    "name": s.name,
                    "number": s.shared.table.number,
                    "title": s.shared.table.title,
                    "shows": s.shared.table.shows,
                    "scale": s.shared.scale.name,
                    "recipe": s.shared.scale.recipe,
                    "remarks": list(s.remarks),
                    "exact": {row: dict(jobs) for row, jobs in s.shared.table.exact.items()},
                    "shared": [shown.to_dict() for shown in s.shared.shown],
                    "held-out": [shown.to_dict() for shown in s.held_out.shown],
                }
                for s in self.sections
            ],
            "claims": {
                "shared": [claim.to_dict() for claim in self.claims],
                "held-out": [claim.to_dict() for claim in self.held_out_claims],
            },
            "beyond": {
                "shared": [claim.to_dict() for claim in self.beyond],
                "held-out": [claim.to_dict() for claim in self.held_out_beyond],
            },
            "protocols": dict(PROTOCOLS),
            "failed": [vars(failed) for failed in self.failed],
            "recipes": [{**vars(recipe)} for recipe in self.recipes],
            "versions": [dict(v) for v in self.versions],
            "machines": [dict(m) for m in self.machines],
            "runs": self.runs,
            "stale": self.stale,
            "hours": self.hours,
            "longest_recurrent_seconds": self.longest,
        }


def summarise(*folders: Mapping[str, Record], scales: Sequence[Scale] = ()) -> Summary:
    """Everything that a report says on the records of one or several results folders.

    What the first lacks, or where it has a failure, the second may fill, and so on.

    Parameters
    ----------
    scales
        What a table may be shown at, as `compare` takes them.
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
    shared, held_out = (compare(records, protocol=p, scales=scales) for p in PROTOCOLS)
    runs = [record for record in records.values() if isinstance(record.job, TrainingJob)]
    return Summary(
        sections=_sections(shared, held_out),
        claims=count_claims(shared),
        held_out_claims=count_claims(held_out),
        beyond=count_beyond(shared),
        held_out_beyond=count_beyond(held_out),
        failed=tuple(_failed(record) for record in runs if record.failure),
        recipes=_recipes(runs),
        versions=_each_once(record.made["versions"] for record in records.values()),
        machines=_each_once(record.made["machine"] for record in records.values()),
        runs=len(runs),
        stale=len(every) - len(records),
        hours=sum(_seconds(record) for record in runs) / 3600,
        longest=max(filter(None, map(_recurrent_seconds, runs)), default=None),
    )


def _sections(shared: Comparison, held_out: Comparison) -> tuple[Section, ...]:
    return tuple(
        Section(
            compared,
            held_out.tables[name],
            (*compared.caveats, *(i.what for i in INCONSISTENCIES if name in i.tables)),
        )
        for name, compared in shared.tables.items()
    )


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
    """Recipes without what the runs of a table vary: epochs and learning rate."""
    counts: Counter[tuple[str, str]] = Counter()
    for record in runs:
        assert isinstance(record.job, TrainingJob)
        # What a recipe did not have when it was recorded has its default.
        settings = recipes.Recipe.from_dict(record.made["recipe"]).to_dict()
        for name in ("epochs", "learning_rate"):
            if getattr(record.job, name) is not None:
                settings[name] = "as the table says"
        counts[record.job.recipe, json.dumps(settings, sort_keys=True)] += 1
    return tuple(
        Recipe(name, json.loads(settings), count)
        for (name, settings), count in counts.most_common()
    )


def _recurrent_seconds(record: Record) -> float | None:
    """Seconds of one core, if this is an undisturbed full-scale run of a recurrent network."""
    job = record.job
    if not isinstance(job, TrainingJob) or job.model not in RECURRENT or job.sets != PAPER_SETS:
        return None
    return record.cost.get("cpu_seconds")


def _seconds(record: Record) -> float:
    return float(record.cost.get("cpu_seconds") or record.cost.get("train_seconds") or 0.0)


def _each_once(values: Any) -> tuple[Mapping[str, Any], ...]:
    found = {json.dumps(value, sort_keys=True): value for value in values}
    return tuple(found.values())
