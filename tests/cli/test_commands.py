"""Run every command in its own process; check output for people and for programs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import capnets
from capnets.cli import app
from capnets.models import parameters

COUNTS = {  # the paper's; for attention no sizes give its 17,794
    "rnn": 15_681, "c-rnn": 15_681, "lstm": 22_049, "c-lstm": 22_049, "gru": 19_937,
    "c-gru": 19_937, "deepset": 13_601, "attention": 17_826, "set-transformer": 15_809,
    "set-transformer-l": 34_753,
}  # fmt: skip
COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands] + ["task"]


class TestHelp:
    def test_all_commands(self, say):
        answer = say("--help")
        assert answer.code == 0
        for name in ("demo", "models", "task", "data", "train", "evaluate", "explain"):
            assert name in COMMANDS
            assert re.search(rf"\b{name}\b", answer.text)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command(self, say, name):
        answer = say(name, "--help")
        assert answer.code == 0
        assert f"Usage: capnets {name}" in answer.text.replace("__main__.py", "capnets")
        assert say(name, "-h").text == answer.text

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_option_is_explained(self, name):
        command = get_command(app).commands[name]
        assert command.help
        for option in command.params:
            assert getattr(option, "help", ""), f"{name} {option.name}"

    @pytest.mark.parametrize("name", [("train",), ("task", "train")], ids=" ".join)
    def test_help_of_training_fits_on_two_screens(self, name):
        text = CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "100"}).output
        assert len(text.splitlines()) <= 90
        for panel in ("Network", "Training", "Run"):
            assert f"─ {panel} ─" in text

    def test_version(self, say):
        assert say("--version").text.strip() == capnets.__version__

    def test_as_a_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "capnets", "--version"], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.strip()) == (0, capnets.__version__)


class TestModels:
    def test_counts(self, say):
        rows = {row["name"]: row for row in say("models", "--json").json}
        assert {name: rows[name]["parameters"] for name in COUNTS} == COUNTS
        for name in COUNTS:
            assert rows[name]["additive"] == name.startswith("c-")
            free = name in {"deepset", "attention", "set-transformer", "set-transformer-l"}
            assert rows[name]["ordered"] != free

    def test_table(self, say):
        text = say("models").text
        assert re.search(r"c-gru +19,937 +in one pass +yes", text)
        assert re.search(r"deepset +13,601 +from prefixes +no", text)

    def test_sizes(self, say):
        rows = {r["name"]: r for r in say("models", "--features", 8, "--layers", 2, "--json").json}
        assert rows["deepset"]["parameters"] == parameters(
            capnets.build("deepset", in_features=8, layers=2)
        )


class TestTasks:
    def test_listing(self, say):
        found = say("task", "list", "--json").json
        assert {f["short"] for f in found["functions"]} >= {
            "US", "WTri", "US+S", "UC", "TriC", "Mult",
        }  # fmt: skip
        assert found["sources"] == ["digits", "mnist", "fashion-mnist"]
        assert found["documents"]["sources"] == ["womens-clothing", "ted-comments"]
        assert "unique-sum" in (text := say("task").text)
        assert "sentiment:ted-comments" in text

    @pytest.mark.parametrize(
        ("task", "size", "mean"),
        [
            ("US", 10, 45 * (1 - 0.9**10)),
            ("unique-sum:digits", 4, 45 * (1 - 0.9**4)),
            ("UC", 10, 10 * (1 - 0.9**10)),
            ("WTri", 10, 45 * (10 * 0.1 + 90 * 0.01 / 2)),  # c (E[count] + E[pairs])
            ("TriC", 10, 10 * (10 * 0.1 + 90 * 0.01 / 2)),
        ],
    )
    def test_show(self, say, task, size, mean):
        found = say("task", "show", task, "--size", size, "--sets", 20_000, "--json").json
        assert found["exact"]["mean"] == pytest.approx(mean)
        error = (found["exact"]["variance"] / 20_000) ** 0.5
        assert found["drawn"]["mean"] == pytest.approx(mean, abs=5 * error)
        assert found["drawn"]["variance"] == pytest.approx(found["exact"]["variance"], rel=0.1)
        histogram = found["histogram"]
        assert sum(histogram["counts"]) == found["drawn"]["count"] == 20_000
        values = histogram["start"] + np.arange(len(histogram["counts"]))
        assert found["drawn"]["mean"] == pytest.approx(
            np.average(values, weights=histogram["counts"])
        )

    def test_show_for_people(self, say):
        text = say("task", "show", "US", "--size", "varying").text
        assert "size 6, 8, 10, 12, 14" in text
        assert re.search(r"mean +\d+\.\d+ +28\.\d+", text)
        assert "█" in text


class TestData:
    def test_listing(self, say):
        rows = say("data", "--json").json
        assert {"name", "status", "path", "terms", "origin"} == set(rows[0])
        names = {row["name"] for row in rows}
        assert any("mnist" in n or "idx" in n for n in names)
        for row in rows:
            assert row["path"] is None or Path(row["path"]).exists()

    def test_for_people(self, say):
        assert "Looked for in CAPNETS_DATA" in say("data").text

    def test_unknown_file(self, say):
        answer = say("data", "--fetch", "mnits")
        assert answer.code == 2
        assert "Error: unknown" in answer.text
