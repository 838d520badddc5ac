"""Render explanations: as a page, a table in the terminal, or a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


def template(name: str) -> Template:
    """Return a template of this folder; what it prints is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from capnets.explain.render.rows import number

    environment = Environment(
        loader=PackageLoader("capnets.explain.render", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment.get_template(name)
