"""`capnets reproduce` and `capnets report` with JSON output."""

import io
import json
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from capnets.paper.cli.progress import _picture
from capnets.paper.names import BEYOND, MODELS, SYSTEMS
from capnets.paper.plan import make_plan
from capnets.paper.results import Results
from capnets.paper.scheduler import Outcome, Running


def read(*arguments):
    """The document on standard output, and what was said beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "capnets", *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


class TestReproduce:
    """JSON output of the commands on the paper."""

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

    def test_names_with_commas(self, say, tmp_path):
        """One too many, as lists often end with, changes nothing."""
        common = ("--dry-run", "--json", "-o", tmp_path / "r")
        few = ("--models", "gru,rnn", "--tasks", "US", "--seeds", "0,1")
        ended = ("--models", "gru, rnn,", "--tasks", "US,", "--seeds", "0,1,")
        found = say("reproduce", "table1", "table6", *few, *common).json
        assert [table["name"] for table in found["tables"]] == ["main-mean"]
        assert found["runs"] == 4
        assert say("reproduce", "table1,table6,", *ended, *common).json == found

    def test_recipes_are_apart(self, say, tmp_path):
        """Records of one recipe are not used for another."""
        results = tmp_path / "r"
        small = ["main", "--scale", "smoke", "--models", "deepset", "--tasks", "US", "-o", results]
        assert read("reproduce", *small, "--recipe", "fast", "--json")[0]["done"] == 1
        assert say("reproduce", *small, "--recipe", "fast", "--dry-run", "--json").json["done"] == 1
        assert say("reproduce", *small, "--dry-run", "--json").json["done"] == 0
        read("reproduce", *small, "--recipe", "paper", "--json")
        read("report", results, "--json")
        tables = json.loads((results / "report" / "report.json").read_text())["tables"]
        main = {t["part"]: t["recipe"] for t in tables if t["name"] == "main-mean"}
        assert main == {"paper": "paper", "ours": "fast"}

    def test_the_papers_recipe(self, tmp_path):
        """Table 1 with the recipe that the paper prints; records say how they were made."""
        results = tmp_path / "r"
        found, _ = read(
            "reproduce", "table1", "--recipe", "paper", "--scale", "smoke", "-o", results, "--json"
        )
        assert (found["failed"], found["not_done"]) == ([], {})
        records = Results(results).read().values()
        assert {record.job.model for record in records} >= set(MODELS)
        for record in records:
            recipe = record.made["recipe"]
            assert (recipe["optimizer"], recipe["schedule"]) == ("adamw", "constant")
            assert (recipe["learning_rate"], recipe["batch_size"]) == (0.001, 1000)
            assert record.job.recipe == "paper"
            assert {"torch", "numpy", "capnets", "numba"} <= record.made["versions"].keys()
            assert record.made["kernels"] in ("compiled", "torch")
            assert record.made["commit"] is None or len(record.made["commit"].rstrip("+")) == 40

    def test_the_papers_recipe_ends_at_the_given_epoch(self, say, tmp_path):
        common = ("--recipe", "paper", "--dry-run", "--json", "-o", tmp_path / "r")
        assert say("reproduce", "all", *common).json["runs"] > 0
        one = ("table1", "--models", "gru", "--tasks", "US", "--seeds", "0")
        assert say("reproduce", *one, "--epochs", "500", *common).json["runs"] == 1

    def test_systems_of_related_work(self, say, tmp_path):
        """They have a table of their own, with one run per task at every scale."""
        common = ("other-systems", "-o", tmp_path / "r")
        assert say("reproduce", *common, "--dry-run", "--json").json["runs"] == 5 * len(SYSTEMS)
        few = ("--scale", "smoke", "--models", "pointnet,c-order", "--tasks", "US", "--json")
        found, _ = read("reproduce", *common, *few)
        assert (found["done"], found["failed"]) == (2, [])
        read("report", tmp_path / "r", "--json")
        report = (tmp_path / "r" / "report" / "report.md").read_text()
        assert "| PointNet | " in report
        assert "| C-GRU, learned order | " in report

    def test_runs_and_report(self, tmp_path):
        """Progress goes to standard error: what is read is one document."""
        results = tmp_path / "r"
        small = ["main", "--scale", "smoke", "--models", "c-deepset", "--tasks", "US"]
        found, said = read("reproduce", *small, "-o", results, "--json")
        assert found == {"results": str(results), "done": 1, "failed": [], "not_done": {}}
        assert said.startswith("0 of 1 runs done; time left not known yet\n")
        assert "1/1 c-deepset unique-sum: MSE" in said
        told, _ = read("report", results, "--json")
        names = [Path(path).name for path in told["written"]]
        assert names == ["index.html", "report.md", "report.json"]
        assert told["runs"] == 1
        assert {claim["verdict"] for claim in told["claims"]["ours"]["shared"]} == {"not run"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["reproduce", "tabel1"], "did you mean 'table1' or"),
            (["reproduce", "tabel1"], "? `capnets reproduce` lists all"),
            (["reproduce", "main", "--models", ","], "--models: no name in ','"),
            (["reproduce", "main", "--recipe", "quick"], "unknown recipe of the paper's"),
            (["report", "r", "--scale", "big"], "unknown scale 'big'"),
            (
                ["reproduce", "main", "--seeds", "0,one"],
                "--seeds must be numbers separated by commas",
            ),
            (
                ["reproduce", "main", "--tasks", "Sent", "--scale", "smoke"],
                "the scale smoke has no runs for main-mean, main-median",
            ),
            (
                ["reproduce", "main", "-j", 2, "--cluster", "tcp://127.0.0.1:9"],
                "a cluster has its own workers",
            ),
            (["reproduce", "main", "-o", "/proc/nowhere"], "/proc/nowhere cannot be written to"),
        ],
    )
    def test_errors(self, say, tmp_path, arguments, message):
        answer = say(*arguments, folder=tmp_path)
        assert answer.code == 2
        assert message in answer.text.replace("\n", " ")
        assert "Traceback" not in answer.text
        assert not any(path.is_file() for path in tmp_path.rglob("*")), "nothing was begun"


class TestWatching:
    """Terminal output."""

    def test_a_low_terminal_cuts_off_what_is_done(self):
        plan = make_plan(["all"], scale="smoke")
        jobs = list(plan.jobs.values())
        first = plan.tables[0][1]
        done = {job.key: None for entry in first for job in entry.needed}
        running = {jobs[-1].key: Running(jobs[-1])}
        file = io.StringIO()
        terminal = Console(file=file, force_terminal=True, width=80, height=24, color_system=None)
        with Live(console=terminal, auto_refresh=False) as live:
            live.update(_picture(plan, Outcome(done, deque(), running), "5 h"), refresh=True)
            lines = file.getvalue().strip().splitlines()
        assert len(plan.tables) + 2 > terminal.height >= len(lines)
        assert f"{len(done)} of {len(jobs)} runs done, time left 5 h" in lines[0]
        assert jobs[-1].task in lines[1]
        for table, entries in plan.tables:
            keys = {job.key for entry in entries for job in entry.needed}
            shown = any(line.startswith(f"{table.number}: ") for line in lines)
            assert shown or keys <= done.keys()
