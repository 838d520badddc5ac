"""Numbers and names as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from capnets.paper.claims import Claim
from capnets.paper.compare import Compared, Shown
from capnets.paper.jobs import TrainingJob
from capnets.paper.names import BEYOND, MODELS, RIDGE, label
from capnets.paper.scales import Scale

__all__ = [
    "EQUAL",
    "NOT_IN_THE_PAPER",
    "case_count",
    "cases_of",
    "columns_of",
    "entry_count",
    "exact_of",
    "listed",
    "name_of",
    "number",
    "ours_of",
    "paper_of",
    "progress_of",
]

DASH = "–"
# Of networks of ours, wherever their names stand in a table.
NOT_IN_THE_PAPER = "not in the paper"
# What the mark of equality means, by what is compared.
EQUAL = (
    "Equal are errors that agree in two digits, statistics of labels within one per cent, and "
    "numbers of parameters exactly."
)


def number(value: float | None) -> str:
    """A number with as many digits as the paper would print.

    Two decimals, as few as the paper has, unless they would say nothing.

    >>> number(0.1849), number(407.158), number(15681.0), number(0.00257), number(None)
    ('0.18', '407.2', '15,681', '0.003', '–')
    """
    if value is None:
        return DASH
    if 0.0001 <= abs(value) < 0.005:
        return f"{value:.1g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def name_of(row: str) -> str:
    """A row's name with its network as the paper writes it.

    >>> name_of("US c-gru"), name_of("set-transformer 32")
    ('US C-GRU', 'Set Transformer 32')
    """
    networks = {*MODELS, *BEYOND, RIDGE}
    return " ".join(label(word) if word in networks else word for word in row.split())


def columns_of(compared: Compared) -> list[str]:
    """The columns of numbers; curves are drawn."""
    curves = {
        shown.entry.column
        for shown in compared.shown
        if isinstance(shown.ours, tuple) or isinstance(shown.entry.published, tuple)
    }
    return [column for column in compared.columns if column not in curves]


def exact_of(compared: Compared) -> dict[str, list[str]]:
    """The rows of exact numbers, in these columns."""
    columns = columns_of(compared)
    return {
        name_of(row): [number(numbers[column]) if column in numbers else "" for column in columns]
        for row, numbers in compared.table.exact.items()
    }


def ours_of(shown: Shown) -> str:
    """Our number with its deviation, or why there is none."""
    if not isinstance(shown.ours, float):
        return shown.failures[0] if shown.failures else ""
    text = number(shown.ours)
    if shown.deviation is not None:
        text += f" ± {number(shown.deviation)}"
    return text


def paper_of(shown: Shown) -> str:
    """The printed number; a dash where the paper prints one; nothing where it prints nothing."""
    published = shown.entry.published
    if isinstance(published, float):
        return number(published)
    return DASH if shown.entry.dash else ""


def progress_of(compared: Compared) -> str:
    """What of a table was run, the paper's rows and ours counted apart.

    Seeds are told where they differ from what the scale asks for.
    """
    if not compared.done:
        alone = any(shown.done for shown in compared.shown)
        failed = any(shown.failures for shown in compared.shown)
        return "Needs the runs of a second seed." if alone else "Failed." if failed else "Not run."
    scale = compared.scale
    sizes = f"scale {scale.name}" + ("" if scale.name == "full" else f", {scale.sets:,} sets")
    if recipes := _recipes(compared):
        sizes += f", recipe {' and '.join(recipes)}"
    printed, beyond = compared.printed, compared.beyond
    text = f"{entry_count(printed)} entries run ({sizes}){_fewer(printed, scale)}."
    if beyond:
        text += f" Of networks that the paper does not have: {entry_count(beyond)} entries"
        text += f"{_fewer(beyond, scale)}."
    return text


def _recipes(compared: Compared) -> list[str]:
    """How the networks of a table were trained; those of documents have a recipe of their own."""
    needed = [job for shown in compared.shown if shown.done for job in shown.entry.needed]
    return list(dict.fromkeys(job.recipe for job in needed if isinstance(job, TrainingJob)))


def _fewer(entries: Sequence[Shown], scale: Scale) -> str:
    partly = sum(shown.ours is not None and shown.done < shown.wanted for shown in entries)
    return f", {partly} of them with fewer than {len(scale.seeds)} seeds" if partly else ""


def entry_count(entries: Sequence[Shown]) -> str:
    """How many of some entries have a number of ours."""
    return f"{sum(shown.ours is not None for shown in entries)} of {len(entries)}"


def case_count(claim: Claim) -> tuple[str, str]:
    """In how many cases a claim holds here and in the paper."""
    ours, paper = (
        f"{c.holds} of {c.cases}" if c.cases else DASH for c in (claim.ours, claim.paper)
    )
    return ours, paper


def cases_of(claim: Claim) -> str:
    """What a case is, and what the count rests on less firmly than it looks."""
    return "; ".join(filter(None, (claim.counted, f"recipe {claim.recipe}", claim.doubt)))


def listed(values: Mapping[str, Any]) -> str:
    """Names with their values.

    >>> listed({"torch": "2.8", "cores": 2})
    'torch 2.8, cores 2'
    """
    return ", ".join(f"{name} {value}" for name, value in values.items())
