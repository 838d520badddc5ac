"""Error messages of commands."""

import os
import subprocess
import sys

import pytest


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["task", "train", "uniqe-sum"],
                "unknown set function 'uniqe-sum': did you mean 'unique-sum'",
            ),
            (["task", "train", "US:mnits"], "unknown source 'mnits': did you mean"),
            (
                ["task", "train", "US:digits", "-m", "c-grue"],
                "unknown model 'c-grue': did you mean 'c-gru'",
            ),
            (
                ["task", "train", "US:digits", "--recipe", "papre"],
                "unknown recipe 'papre': did you mean",
            ),
            (
                ["task", "train", "US:digits", "--activation", "ab"],
                "unknown activation 'ab': did you mean",
            ),
            (["task", "train", "US:digits", "--sets", 0], "sets must be at least 1, not 0"),
            (["task", "train", "US:digits", "--size", "ten"], "sizes must be a number"),
            (
                ["task", "train", "US:digits", "--epochs", 0],
                "epochs must be from 1 to 1,000,000, not 0",
            ),
            (["task", "train", "US:digits", "--learning-rate", "fast"], "'--learning-rate'"),
            (
                ["task", "train", "US:digits", "--learning-rate", "nan"],
                "learning_rate must be a finite",
            ),
            (["task", "train", "US:digits", "--seed", 10**21], "seed must be from 0 to"),
            (
                ["task", "train", "US:digits", "--epochs", 10**30],
                "epochs must be from 1 to 1,000,000",
            ),
            (["train", "US:digits", "--target", "y"], "name its columns"),
            (["train", "nothing.csv", "--set-column", "s"], "name its columns"),
            (["train", "US.csv", "--set-column", "s", "--target", "y"], "no such file"),
            (["predict", "run", "file.csv", "-o", "p.csv", "--threads", 0], "for '--threads'"),
            (["task", "train", "US:digits", "--sets", 10**12], "GB of memory are needed"),
            (["task", "train", "US:digits", "--threads", 0], "Invalid value for '--threads'"),
            (["task", "train", "US:digits", "--hidden", 0], "hidden must be from 1"),
            (
                ["task", "train", "sentiment:ted"],
                "unknown source of documents 'ted'. Choices: womens",
            ),
            (
                ["task", "train", "Sent", "--size", 3, "--sets", 9],
                "sizes, sets cannot be chosen for 'Sent'",
            ),
            (
                ["task", "train", "sentiment", "--embedding", "pca"],
                "unknown embedding of sentences 'pca'",
            ),
            (["task", "show", "sentiment", "--sets", 9], "sets cannot be chosen for 'sentiment'"),
            (["task", "show", "US", "--size", 0], "sizes must be at least 1"),
            (["models", "--hidden", 0], "hidden must be a whole number"),
            (["evaluate", "nowhere"], "nowhere is not a run: it has no config.json"),
            (["explain", "nowhere"], "nowhere is not a run: it has no config.json"),
            (
                ["task", "train", "US:digits", "-m", "c-potential", "--sort", "worth"],
                "sort: no order changes what c-potential predicts; leave it out",
            ),
            (
                ["task", "train", "US:digits", "-m", "deepset", "--consistent", 1],
                "the prior 'consistent': no order changes what deepset predicts",
            ),
            (
                ["task", "train", "US:digits", "-m", "c-gru", "--sort", "worth", "--consistent", 1],
                "the prior 'consistent': sorted instances have one order only",
            ),
            (
                ["task", "train", "US:digits", "--consistent", -1],
                "Invalid value for '--consistent'",
            ),
            (["trian"], "No such command 'trian'"),
        ],
    )
    def test_said_without_a_traceback(self, say, tmp_path, arguments, message):
        answer = say(*arguments, folder=tmp_path)
        assert answer.code == 2
        assert message in answer.text.replace("\n", " ")
        assert "Traceback" not in answer.text
        results = [p for p in tmp_path.rglob("*") if p.name not in {".lock", "config.json"}]
        assert all(p.is_dir() for p in results), "nothing was begun"

    @pytest.mark.parametrize("columns", [["--set-column", "slide"], []], ids=["rows", "slides"])
    @pytest.mark.parametrize("name", ["nowhere", "some/where/"])
    def test_folder_of_features_that_is_not_there(self, say, tmp_path, columns, name):
        table = tmp_path / "CLINI.csv"
        table.write_text("slide,grade\na,1\nb,2\n")
        answer = say("train", table, *columns, "--target", "grade", "--features", name)
        assert answer.code == 2
        assert f"--features: there is no folder '{name}'" in answer.text.replace("\n", " ")

    def test_traceback_if_asked_for(self, say):
        answer = say("evaluate", "nowhere", environment={"CAPNETS_TRACEBACK": "1"})
        assert answer.code == 1
        assert "Traceback" in answer.text
        assert "nowhere is not a run" in answer.text

    def test_diverged(self, say, tmp_path):
        answer = say(
            "task", "train", "US:digits", "--sets", 100, "--valid-sets", 10, "--test-sets", 10,
            "--recipe", "paper", "--epochs", 20, "--batch-size", 10, "--learning-rate", "1e20",
            "-o", tmp_path / "run",
        )  # fmt: skip
        assert answer.code == 2
        assert "training diverged in epoch" in answer.text
        assert "Traceback" not in answer.text

    def test_sets_that_are_not_there(self, say, trained):
        answer = say("explain", trained, "--sets", "100")
        assert answer.code == 2
        assert "there is no set 100" in answer.text

    @pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
    def test_damaged_run(self, say, trained, tmp_path, name):
        folder = tmp_path / "run"
        folder.mkdir()
        for path in trained.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        (folder / name).write_bytes((folder / name).read_bytes()[:-20])
        for command in ("evaluate", "explain"):
            answer = say(command, folder)
            assert answer.code == 2
            assert f"{folder / name} is damaged" in answer.text.replace("\n", "")

    def test_unexpected_errors_are_one_sentence(self):
        broken = "import capnets.cli.models as m; m.print_table = None; import capnets.cli as c; "
        done = subprocess.run(
            [sys.executable, "-c", broken + "c.main()", "models"], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "Unexpected error (TypeError)" in done.stderr
        assert "CAPNETS_TRACEBACK=1" in done.stderr


def test_a_broken_extension_leaves_the_other_commands(tmp_path):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[capnets.commands]\nbroken = no_such_module:add_to\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "capnets", "--version"],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "commands of no_such_module:add_to are missing" in done.stderr


def test_a_folder_with_a_run_is_refused_before_anything_is_read(trained):
    words = ["train", "missing.csv", "--set-column", "s", "--target", "y", "-o", str(trained)]
    found = subprocess.run(
        [sys.executable, "-m", "capnets", *words], capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert "holds a finished run" in " ".join(found.stderr.split())
