"""Write the report as one page that needs no other file."""

from __future__ import annotations

from importlib.resources import files

from capnets.paper.names import BEYOND
from capnets.paper.report import texts, trained
from capnets.paper.report.figures import draw
from capnets.paper.report.summary import PROTOCOLS, Summary

__all__ = ["to_html"]


def to_html(summary: Summary) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "ours": texts.ours_of,
        "printed": texts.paper_of,
        "label": texts.name_of,
        "progress": texts.progress_of,
        "cases": texts.case_count,
        "columns": texts.columns_of,
        "best": texts.best_of,
        "exact": texts.exact_of,
        "listed": texts.listed,
    }
    template = files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        summary=summary,
        questions=texts.QUESTIONS,
        protocols=PROTOCOLS,
        equal=texts.EQUAL,
        trained=trained,
        networks_beyond=BEYOND,
        draw=draw,
        zip=zip,
    )
