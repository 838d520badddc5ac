"""The table of claims in the documentation matches the records."""

import runpy
from pathlib import Path

from capnets.paper.report.markdown import claims_table

RENDER = Path(__file__).parents[2] / "results" / "render.py"


def test_the_table_of_claims_is_that_of_the_records():
    render = runpy.run_path(str(RENDER))
    page = render["PAGE"].read_text()
    made = render["with_claims"](page, claims_table(render["summary"]()))
    assert made == page, "records have changed: python results/render.py"
