"""Run the code blocks of documentation pages."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def run_code(page: Path) -> dict:
    """Run the Python of a page, block after block; returns the names that it leaves."""
    names: dict = {"__name__": "guide"}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
        exec(compile(block, str(page), "exec"), names)
    return names
