"""The report as one page that needs no other file."""

from __future__ import annotations

from importlib.resources import files

from capnets.paper.report import texts
from capnets.paper.report.figures import draw
from capnets.paper.report.summary import PROTOCOLS, SCALES, Summary
from capnets.paper.report.trained import NOT_NETWORKS, trained

__all__ = ["to_html"]


def to_html(summary: Summary) -> str:
    """The page."""
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
        "counted": texts.cases_of,
        "count_entries": texts.entry_count,
        "columns": texts.columns_of,
        "exact": texts.exact_of,
        "listed": texts.listed,
    }
    template = files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        summary=summary,
        protocols=PROTOCOLS,
        not_in_the_paper=texts.NOT_IN_THE_PAPER,
        scales=SCALES,
        equal=texts.EQUAL,
        not_networks=NOT_NETWORKS,
        trained=trained(summary),
        draw=draw,
        zip=zip,
    )
