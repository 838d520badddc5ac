"""Render a global explanation as one self-contained HTML file without scripts."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.explain.render import template
from capnets.explain.render.figures import class_matrix
from capnets.explain.render.rows import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from capnets.explain.global_explanation import GlobalExplanation

__all__ = ["figure_page", "global_page"]

#: Number of features with a dependence plot.
DEPENDENCE = 4
#: Number of rows of a table.
ROWS = 20


def global_page(found: GlobalExplanation, *, title: str = "", source: str = "") -> str:
    """Return a page with values per category, per feature, and the extremes."""
    from capnets.explain.render.global_figures import beeswarm, categories, dependence

    figures = [("Values by feature", beeswarm(found))]
    # The indicator of a category has two values; the figure by category shows more.
    varied = [k for k in found.strongest(len(found.columns)) if not _is_indicator(found, k)]
    figures += [
        (f"Value against {found.columns[k]}", dependence(found, k)) for k in varied[:DEPENDENCE]
    ]
    tables = [
        ("Features by rank correlation", _table(found.by_feature().head(ROWS))),
        ("Highest and lowest values", _table(found.extremes(), index=False)),
    ]
    if found.categories is not None:
        figures.insert(0, ("Values by category", categories(found)))
        tables.insert(0, ("Categories", _table(found.by_category().head(ROWS))))
    if found.interactions is not None:
        matrix = class_matrix(found.interactions.to_numpy(), names=found.interactions.columns)
        figures.append(("Interactions between categories", matrix))
    output = found.explanation.output
    counted = f"{len(found.values):,} instances in {len(found.explanation):,} sets."
    return figure_page(
        title=title or (f"What adds to {output}" if output else "What adds how much"),
        source=source or found.explanation.source,
        about=f"{counted} {found.explanation.meaning}",
        figures=figures,
        tables=tables,
    )


def figure_page(
    *,
    title: str,
    source: str,
    about: str,
    figures: list[tuple[str, Figure]],
    tables: list[tuple[str, dict[str, Any]]],
) -> str:
    """Return a page of figures and tables, each with its heading."""
    return template("global.html.j2").render(
        title=title,
        source=source,
        about=about,
        figures=[(name, _png(figure)) for name, figure in figures],
        tables=tables,
    )


def _is_indicator(found: GlobalExplanation, k: int) -> bool:
    return bool(np.isin(found.features[:, k], (0, 1)).all())


def _table(frame: Any, *, index: bool = True) -> dict[str, Any]:
    if index:
        frame = frame.reset_index()
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return {"head": [str(name) for name in frame.columns], "rows": rows}


def _cell(value: Any) -> str:
    return number(float(value)) if isinstance(value, float) else str(value)


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
