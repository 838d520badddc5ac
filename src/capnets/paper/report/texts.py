"""Format numbers and names for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from capnets.paper.claims import Count
from capnets.paper.compared import Compared, Shown
from capnets.paper.jobs import TrainingJob
from capnets.paper.names import BEYOND, MODELS, RIDGE, SYSTEMS, label
from capnets.paper.scales import Scale

__all__ = [
    "EQUAL",
    "QUESTIONS",
    "best_of",
    "case_count",
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
EQUAL = (
    "Equal: errors that agree to two digits, label statistics within 1 %, parameter counts exactly."
)
QUESTIONS = {
    "paper": "Does the paper’s recipe give the paper’s numbers and claims?",
    "ours": "What does a better recipe change?",
    "beyond": "What do networks beyond the paper add?",
}


def number(value: float | None) -> str:
    """Format a number with two decimals, as the paper does, unless they would be zeros.

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
    """Return the name of a row, with the label of its network.

    >>> name_of("US c-gru"), name_of("set-transformer 32")
    ('US C-GRU', 'Set Transformer 32')
    """
    networks = {*MODELS, *BEYOND, *SYSTEMS, RIDGE}
    return " ".join(label(word) if word in networks else word for word in row.split())


def columns_of(compared: Compared) -> list[str]:
    """Return the columns of numbers; curves are drawn instead."""
    curves = {
        shown.entry.column
        for shown in compared.shown
        if isinstance(shown.ours, tuple) or isinstance(shown.entry.published, tuple)
    }
    return [column for column in compared.columns if column not in curves]


def exact_of(compared: Compared) -> dict[str, list[str]]:
    """Return the rows of exact numbers, in these columns."""
    columns = columns_of(compared)
    return {
        name_of(row): [number(numbers[column]) if column in numbers else "" for column in columns]
        for row, numbers in compared.table.exact.items()
    }


def ours_of(shown: Shown) -> str:
    """Format our number with its deviation, or the reason why there is none."""
    if not isinstance(shown.ours, float):
        return shown.failures[0] if shown.failures else ""
    text = number(shown.ours)
    if shown.deviation is not None:
        text += f" ± {number(shown.deviation)}"
    return text


def paper_of(shown: Shown) -> str:
    """Format the printed number; a dash where the paper prints one."""
    published = shown.entry.published
    if isinstance(published, float):
        return number(published)
    return DASH if shown.entry.dash else ""


def progress_of(compared: Compared) -> str:
    """Describe what of a table was run: entries of the paper's rows, scale, recipe and seeds."""
    if not compared.done:
        alone = any(shown.done for shown in compared.shown)
        return "Needs a second seed." if alone else "All runs failed."
    scale = compared.scale
    sizes = f"scale {scale.name}" + ("" if scale.name == "full" else f", {scale.sets:,} sets")
    if recipes := _recipes(compared):
        sizes += f", recipe {' and '.join(recipes)}"
    printed = compared.printed
    return f"{entry_count(printed)} entries run ({sizes}){_fewer(printed, scale)}."


def best_of(compared: Compared) -> dict[str, str]:
    """Format the lowest error of the paper's networks in every column, as trained here."""
    numbers = {
        column: [n for row in compared.rows if (n := compared.ours(row, column)) is not None]
        for column in columns_of(replace(compared, shown=compared.printed))
    }
    return {column: number(min(found)) if found else "" for column, found in numbers.items()}


def _recipes(compared: Compared) -> list[str]:
    """Return the recipes of a table; documents have one of their own."""
    needed = [job for shown in compared.shown if shown.done for job in shown.entry.needed]
    return list(dict.fromkeys(job.recipe for job in needed if isinstance(job, TrainingJob)))


def _fewer(entries: Sequence[Shown], scale: Scale) -> str:
    partly = sum(shown.ours is not None and shown.done < shown.wanted for shown in entries)
    return f", {partly} with fewer than {len(scale.seeds)} seeds" if partly else ""


def entry_count(entries: Sequence[Shown]) -> str:
    """Count the entries that have a number of ours."""
    return f"{sum(shown.ours is not None for shown in entries)} of {len(entries)}"


def case_count(count: Count) -> str:
    """Format a count with its 95 % interval.

    >>> case_count(Count(12, 15, low=11, high=13)), case_count(Count(0, 0))
    ('12 of 15 [11–13]', '–')
    """
    if not count.cases:
        return DASH
    text = f"{count.holds} of {count.cases}"
    return text if count.low is None else f"{text} [{count.low}–{count.high}]"


def listed(values: Mapping[str, Any]) -> str:
    """Format names with their values.

    >>> listed({"torch": "2.8", "cores": 2})
    'torch 2.8, cores 2'
    """
    return ", ".join(f"{name} {value}" for name, value in values.items())
