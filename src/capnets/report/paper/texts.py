"""Numbers and names as they are read."""

from __future__ import annotations

from collections.abc import Sequence

from capnets.paper.claims import Claim
from capnets.paper.compare import Compared, Shown
from capnets.paper.names import LABELS

__all__ = [
    "NOT_IN_THE_PAPER",
    "case_count",
    "cases_of",
    "entry_count",
    "name_of",
    "number",
    "ours_of",
    "paper_of",
    "progress_of",
]

DASH = "–"
# Of networks of ours, wherever their names stand in a table.
NOT_IN_THE_PAPER = "not in the paper"


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
    return " ".join(LABELS.get(word, word) for word in row.split())


def ours_of(shown: Shown) -> str:
    """Our number with its deviation, or why there is none."""
    if isinstance(shown.ours, tuple):
        return f"{len(shown.ours)} numbers"
    if shown.ours is None:
        return shown.failures[0] if shown.failures else ""
    text = number(shown.ours)
    if shown.deviation is not None:
        text += f" ± {number(shown.deviation)}"
    return text


def paper_of(shown: Shown) -> str:
    """The printed number; a dash where the paper prints one; nothing where it prints nothing."""
    published = shown.entry.published
    if isinstance(published, tuple):
        return f"{len(published)} numbers"
    return number(published) if published is not None or shown.entry.dash else ""


def progress_of(compared: Compared) -> str:
    """What of a table was run.

    Seeds are told where they differ from what the scale asks for.
    """
    if not compared.done:
        alone = any(shown.done for shown in compared.shown)
        return "Needs the runs of a second seed." if alone else "Not run."
    scale = compared.scale
    sizes = f"scale {scale.name}" + ("" if scale.name == "full" else f", {scale.sets:,} sets")
    partly = sum(0 < s.done < s.wanted for s in compared.shown)
    text = f"{entry_count(compared.printed)} entries run ({sizes})"
    if compared.beyond:
        text += f", {entry_count(compared.beyond)} for networks that the paper does not have"
    fewer = f"; {partly} of them with fewer than {len(scale.seeds)} seeds" if partly else ""
    return f"{text}{fewer}."


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
    """What a case is, and how many were run if not all."""
    run = claim.ours.cases
    return claim.counted + (f"; {run} of {claim.wanted} were run" if 0 < run < claim.wanted else "")
