"""Write report.html beside this file and the table of claims in docs/findings/paper.md.

python results/render.py    # after records were added
"""

from __future__ import annotations

import re
from pathlib import Path

from capnets.files import write_text
from capnets.paper.report import Summary, summarise
from capnets.paper.report.html import to_html
from capnets.paper.report.markdown import claims_table
from capnets.paper.results import Results

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "findings" / "paper.md"


def summary() -> Summary:
    """Summarise the records under version control."""
    return summarise(*(Results(HERE / name).read() for name in ("full", "small")))


def with_claims(page: str, table: str) -> str:
    """Return a page with another table between its marks."""
    block = f"<!-- claims -->\n\n{table}\n\n<!-- end -->"
    return re.sub(r"<!-- claims -->.*?<!-- end -->", lambda _: block, page, flags=re.S)


if __name__ == "__main__":
    found = summary()
    write_text(HERE / "report.html", to_html(found))
    write_text(PAGE, with_claims(PAGE.read_text(), claims_table(found)))
