"""Runs that are killed, stopped or run out of disk space, in separate processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from capnets.runs import Run
from processes import Command

TRAIN = [
    "task", "train", "US:digits", "--sets", 400, "--valid-sets", 100, "--test-sets", 100,
    "--batch-size", 100, "--epochs", 4, "--hidden", 8,
]  # fmt: skip
SECONDS = {"seconds", "train_seconds", "total_seconds"}
FINISHED = [
    "config.json", "history.jsonl", "manifest.json", "metrics.json", "weights.safetensors",
]  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def contents(folder: Path) -> dict[str, object]:
    """All that a run says, without the time that it took."""
    run = Run(folder)
    return {
        "weights": (folder / "weights.safetensors").read_bytes(),
        "config": run.config,
        "history": [_timeless(line) for line in run.history],
        "metrics": _timeless(run.metrics),
    }


def _timeless(values: dict) -> dict:
    return {k: v for k, v in values.items() if k not in SECONDS}


def train(folder: Path, *more: object, **how) -> Command:
    log = folder.with_name(f"{folder.name}-{time.monotonic_ns()}.log")
    return Command(*TRAIN, "-o", folder, *more, log=log, **how)


def wait_for(path: Path, command: Command) -> None:
    for _ in range(6000):
        if path.exists():
            return
        assert command.process.exitcode is None, command.output
        time.sleep(0.02)
    pytest.fail(f"{path} does not appear")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    command = train(folder)
    assert command.wait() == 0, command.output
    assert names(folder) == FINISHED
    return contents(folder)


class TestKilled:
    def test_killed_at_every_write(self, tmp_path, undisturbed):
        """Each process is killed one act later than the one before it went on from."""
        folder, moments = tmp_path / "run", 0
        while True:
            moments += 1
            assert moments < 150, "the run makes no progress"
            command = train(folder, "--resume", die_at=moments)
            if (code := command.wait()) == 0:
                break
            assert code == -signal.SIGKILL, command.output
        assert moments > 12, "hardly anything was killed"
        assert contents(folder) == undisturbed
        assert names(folder) == FINISHED, "what the dead left behind is gone"

    def test_at_random_moments(self, tmp_path, undisturbed):
        draw, folder = np.random.default_rng(), tmp_path / "run"
        kills = 0
        for _ in range(4):
            command = train(folder, "--resume")
            wait_for(folder / "config.json", command)
            time.sleep(draw.uniform(0, 0.5))
            command.send(signal.SIGKILL)
            kills += command.wait() == -signal.SIGKILL
        command = train(folder, "--resume")
        assert command.wait() == 0, command.output
        assert contents(folder) == undisturbed, f"after {kills} kills"

    @pytest.mark.slow
    def test_as_a_user_would(self, tmp_path, undisturbed):
        """The same with `python -m capnets`, from its start on."""
        folder = tmp_path / "run"
        command = [sys.executable, "-m", "capnets", *map(str, TRAIN), "-o", str(folder), "--resume"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            for _ in range(6000):
                if (folder / "checkpoint.safetensors").exists() or process.poll() is not None:
                    break
                time.sleep(0.02)
            process.kill()
        assert not (folder / "metrics.json").exists(), "it was quicker than the kill"
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "epoch 4/4" in done.stderr
        assert contents(folder) == undisturbed


class TestStopped:
    def test_ctrl_c(self, tmp_path):
        folder = tmp_path / "run"
        command = train(folder, "--epochs", 100_000)
        wait_for(folder / "checkpoint.safetensors", command)
        command.send(signal.SIGINT)
        assert command.wait() == 130
        assert "The same command with --resume continues" in command.output
        assert "Traceback" not in command.output
        again = train(folder, "--epochs", 100_000)
        assert again.wait() == 2
        assert "is an unfinished run; resume=True (--resume) continues" in again.output


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("other") / "run"
    assert train(folder, "--seed", 1).wait() == 0
    return contents(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert train(folder).wait() == 0
    return folder


class TestOverwriting:
    def test_refused(self, finished):
        before = contents(finished)
        command = train(finished, "--seed", 1)
        assert command.wait() == 2
        assert "holds a finished run; force=True (--force) replaces it" in command.output
        assert contents(finished) == before

    def test_resume_returns_a_finished_run(self, finished, undisturbed):
        command = train(finished, "--resume", "--json")
        assert command.wait() == 0, command.output
        assert json.loads(command.output)["parameters"] == undisturbed["metrics"]["parameters"]
        assert contents(finished) == undisturbed

    def test_resume_with_other_settings(self, finished):
        command = train(finished, "--resume", "--hidden", 9)
        assert command.wait() == 2
        assert "begun with other settings" in command.output

    def test_force(self, finished, undisturbed):
        (finished / "checkpoint-3.safetensors").write_text("left over")
        command = train(finished, "--force", "--seed", 1)
        assert command.wait() == 0, command.output
        assert contents(finished)["weights"] != undisturbed["weights"]
        assert names(finished) == FINISHED

    def test_force_killed_at_every_act_of_writing(self, tmp_path, undisturbed, other):
        """The old or the new run is always there, and --resume finishes the new one."""
        folder, moment, kept = tmp_path / "run", 0, {"old": 0, "new": 0}
        old = tmp_path / "old"
        assert train(old).wait() == 0
        while True:
            moment += 1
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(old, folder)
            command = train(folder, "--force", "--seed", 1, die_at=moment)
            code = command.wait()
            assert code in (0, -signal.SIGKILL), command.output
            found = contents(folder)
            assert found in (undisturbed, other), f"neither the old nor the new run at {moment}"
            kept["old" if found == undisturbed else "new"] += 1
            if code == 0:
                break
            if moment % 3 == 0 or found == other:
                begun = Run.in_training(folder).config.seed == 1
                command = train(folder, "--resume" if begun else "--force", "--seed", 1)
                assert command.wait() == 0, command.output
                assert contents(folder) == other
                assert names(folder) == FINISHED
                hidden = [p.name for p in tmp_path.iterdir() if p.name.startswith(".run")]
                assert not hidden, "what the dead left behind is gone"
        assert kept["old"] > 20
        assert kept["new"] > 3

    @pytest.mark.parametrize("option", ["--resume", "--force"])
    def test_two_processes(self, tmp_path, option):
        folder = tmp_path / "run"
        first = train(folder, "--epochs", 100_000)
        try:
            wait_for(folder / "checkpoint.safetensors", first)
            second = train(folder, "--epochs", 100_000, option)
            assert second.wait() == 2
            assert f"another process is training into {folder}" in second.output
            assert (folder / "checkpoint.safetensors").exists()
            assert first.process.exitcode is None
        finally:
            first.send(signal.SIGKILL)
            first.wait()


class TestNoRoom:
    def test_previous_checkpoint_survives(self, tmp_path, undisturbed):
        """Files above a limit cannot be written: the system says so in the middle of it."""
        folder = tmp_path / "run"
        command = train(folder, die_at=25)  # some epochs are done by then
        assert command.wait() == -signal.SIGKILL
        before = (folder / "checkpoint.safetensors").read_bytes()
        command = train(folder, "--resume", file_size=len(before) // 2)
        assert command.wait() == 2
        assert "checkpoint.safetensors: File too large; what was there before" in command.output
        assert (folder / "checkpoint.safetensors").read_bytes() == before
        command = train(folder, "--resume")
        assert command.wait() == 0, command.output
        assert contents(folder) == undisturbed

    def test_no_space_for_the_configuration(self, tmp_path):
        command = train(tmp_path / "run", file_size=600)
        assert command.wait() == 2
        assert "config.json: File too large" in command.output

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
    def test_unwritable_folder(self, tmp_path):
        command = train(tmp_path / "run", nobody=True)
        assert command.wait() == 2
        assert f"Permission denied: {tmp_path / 'run'}" in command.output
        assert "Traceback" not in command.output
