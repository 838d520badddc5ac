"""reproduce and report, as programs read them."""

import json
import subprocess
import sys
from pathlib import Path

from capnets.paper.names import BEYOND, MODELS


def read(*arguments):
    """The document on standard output, and what was said beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "capnets", *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


class TestReproduce:
    """What programs read of the commands on the paper."""

    def test_tables(self, say):
        found = say("reproduce", "--json").json
        assert {"name": "main-mean", "number": "Table 1"}.items() <= found["tables"][0].items()
        assert found["groups"]["main"] == ["main-mean", "main-median", "main-deviation"]

    def test_plan(self, say, tmp_path):
        found = say("reproduce", "table1", "--dry-run", "--json", "-o", tmp_path / "r").json
        networks = len(MODELS) + len(BEYOND)
        assert (found["runs"], found["done"]) == (networks * 6 * 3, 0)
        assert found["tables"][0]["entries"] == networks * 6
        assert not (tmp_path / "r").exists()

    def test_runs_and_report(self, tmp_path):
        """Progress goes to standard error: what is read is one document."""
        results = tmp_path / "r"
        small = ["main", "--scale", "smoke", "--models", "c-deepset", "--tasks", "US"]
        found, said = read("reproduce", *small, "-o", results, "--json")
        assert found == {"results": str(results), "done": 1, "failed": [], "not_done": {}}
        assert "1/1 c-deepset unique-sum: MSE" in said
        told, _ = read("report", results, "--json")
        assert [Path(path).name for path in told["written"]] == [
            "index.html", "report.md", "report.tex", "report.json",
        ]  # fmt: skip
        assert told["runs"] == 1
        assert {claim["verdict"] for claim in told["claims"]["shared"]} == {"not run"}
