"""Report on the reproduction: a page, Markdown and JSON from one summary."""

from __future__ import annotations

from pathlib import Path

from capnets.files import write_json, write_text
from capnets.paper.report.html import to_html
from capnets.paper.report.markdown import to_markdown
from capnets.paper.report.summary import Summary, summarise

__all__ = ["Summary", "summarise", "write_report"]


def write_report(summary: Summary, folder: str | Path) -> list[Path]:
    """Write index.html, report.md and report.json into a folder."""
    folder = Path(folder)
    write_text(folder / "index.html", to_html(summary))
    write_text(folder / "report.md", to_markdown(summary))
    write_json(folder / "report.json", summary.to_dict())
    return [folder / name for name in ("index.html", "report.md", "report.json")]
