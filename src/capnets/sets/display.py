"""Describe sets in a line, and in a small table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capnets.sets import Sets

__all__ = ["describe", "html_table", "preview"]

#: Number of sets that a preview lists.
ROWS = 5


def describe(sets: Sets) -> str:
    """Return the number and size of sets, and their features and labels, in one line."""
    sizes = sets.sizes
    low, high = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    many = f"{low}" if low == high else f"{low} to {high}"
    shape = " x ".join(map(str, sets.feature_shape))
    labels = "no labels" if sets.y is None else f"{sets.outputs} label(s)"
    return f"<Sets: {len(sets):,} sets of {many} instances, {shape} features, {labels}>"


def preview(sets: Sets) -> str:
    """Return the first sets as an HTML table: name, size, label."""
    rows = [
        (
            str(k if sets.ids is None else sets.ids[k]),
            str(int(sets.sizes[k])),
            "" if sets.y is None else str(sets.y[k]),
        )
        for k in range(min(ROWS, len(sets)))
    ]
    table = html_table(("set", "instances", "label"), rows)
    return f"<p>{escape(describe(sets)[1:-1])}</p>{table}"


def html_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return an HTML table of texts.

    >>> html_table(("a",), [("<b>",)])
    '<table><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
