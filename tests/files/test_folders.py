"""Folders that are replaced: the old or the new one survives kills and full disks."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.export import Engine, export
from capnets.files import folders, write_bytes, write_text, writing
from capnets.files.folders import recover_folder, replace_folder, replacing, staging_folder
from capnets.files.locks import lock_file, lock_folder
from capnets.models import build
from processes import kill_at

BUSY = "busy"


def fill(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("a", "b"):
        write_text(folder / name, text)


def read(folder: Path) -> set[str]:
    return {path.read_text() for path in folder.iterdir()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["exchange", "two renames"])
def way(request, monkeypatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    return request.param


class TestReplacing:
    @pytest.mark.parametrize("there", [True, False])
    def test_replaces(self, tmp_path, way, there):
        if there:
            fill(tmp_path / "x", "old")
        with replacing(tmp_path / "x", busy=BUSY) as new:
            fill(new, "new")
            assert (tmp_path / "x").exists() == there
        assert read(tmp_path / "x") == {"new"}
        assert names(tmp_path) == ["x"]

    def test_failure(self, tmp_path, way):
        fill(tmp_path / "x", "old")

        def fails():
            with replacing(tmp_path / "x", busy=BUSY) as new:
                fill(new, "new")
                raise OSError(28, "No space left on device")

        with pytest.raises(InputError, match="No space left on device; what was there before is"):
            fails()
        assert read(tmp_path / "x") == {"old"}
        assert names(tmp_path) == ["x"]

    def test_busy(self, tmp_path):
        with replacing(tmp_path / "x", busy=BUSY) as new:
            with pytest.raises(InputError, match=BUSY), replacing(tmp_path / "x", busy=BUSY):
                pass
            fill(new, "new")
        assert read(tmp_path / "x") == {"new"}

    def test_this_system_exchanges(self, tmp_path):
        if not Path("/proc").exists():
            pytest.skip("only Linux is known to")
        fill(tmp_path / "x", "x")
        fill(tmp_path / "y", "y")
        assert folders._exchange(tmp_path / "x", tmp_path / "y")
        assert read(tmp_path / "x") == {"y"}
        with pytest.raises(FileNotFoundError):
            folders._exchange(tmp_path / "x", tmp_path / "z")


class TestRecover:
    def test_between_two_renames(self, tmp_path):
        """Forward where the new folder is complete, back where it is gone."""
        for new, expected in ((True, "new"), (False, "old")):
            fill(tmp_path / ".x.old", "old")
            if new:
                fill(tmp_path / ".x.new", "new")
            recover_folder(tmp_path / "x")
            assert read(tmp_path / "x") == {expected}
            assert names(tmp_path) == ["x"]
            folders.remove_folder(tmp_path / "x")

    def test_nothing_to_do(self, tmp_path):
        recover_folder(tmp_path / "x")
        fill(tmp_path / "x", "new")
        fill(tmp_path / ".x.old", "half")
        recover_folder(tmp_path / "x")
        assert read(tmp_path / "x") == {"new"}

    def test_failed_second_rename(self, tmp_path, monkeypatch):
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
        fill(tmp_path / "x", "old")
        fill(staging_folder(tmp_path / "x"), "new")
        rename = os.rename

        def fails(source, target):
            if Path(source).name == ".x.new":
                raise PermissionError(13, "Permission denied")
            rename(source, target)

        monkeypatch.setattr(os, "rename", fails)
        with pytest.raises(PermissionError):
            replace_folder(staging_folder(tmp_path / "x"), tmp_path / "x")
        assert read(tmp_path / "x") == {"old"}


REPLACE = """
from pathlib import Path
from capnets.files import folders, write_text
if arguments[1] == "two renames":
    folders._exchange = lambda one, other: False
with folders.replacing(Path(arguments[0]), busy="busy") as new:
    for name in ("a", "b"):
        write_text(new / name, "new")
"""


def test_killed_at_every_step(tmp_path, way):
    for moment in range(1, 100):
        folder = tmp_path / str(moment) / "x"
        folder.parent.mkdir()
        fill(folder, "old")
        code = kill_at(moment, REPLACE, folder, way)
        recover_folder(folder)
        assert read(folder) in ({"old"}, {"new"})
        if code == 0:
            break
        assert code == -signal.SIGKILL
        with replacing(folder, busy=BUSY) as new:
            fill(new, "third")
        assert read(folder) == {"third"}
        assert names(folder.parent) == ["x"]
    assert moment > 10


@pytest.fixture(scope="module")
def estimators():
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(n, 2)) for n in (1, 2, 3, 4)]
    first, second = (
        SetRegressor("c-rnn", hidden=4, epochs=1, random_state=k).fit(sets, [1.0, 2, 3, 4])
        for k in (0, 1)
    )
    return sets, first, second


SAVE = """
from capnets.estimators import SetRegressor
SetRegressor.load(arguments[1]).save(arguments[0], force=True)
"""
EXPORT = """
from capnets.export import export
export(arguments[1], arguments[0], force=True)
"""


def test_save_killed_at_every_act(tmp_path, estimators):
    sets, first, second = estimators
    second.save(tmp_path / "second")
    answers = [first.predict(sets).tolist(), second.predict(sets).tolist()]
    found = []
    for moment in range(1, 200):
        folder = tmp_path / str(moment) / "run"
        first.save(folder)
        code = kill_at(moment, SAVE, folder, tmp_path / "second")
        found.append(SetRegressor.load(folder).predict(sets).tolist())
        assert found[-1] in answers
        if code == 0:
            break
        assert code == -signal.SIGKILL
        second.save(folder, force=True)
        assert names(folder.parent) == ["run"], "what the dead left behind is gone"
    assert found.count(answers[0]) > 10
    assert found.count(answers[1]) > 3
    assert found[-1] == answers[1]


def test_export_killed_at_every_act(tmp_path):
    networks = [build("c-rnn", in_features=2, hidden=4, seed=k) for k in (0, 1)]
    spec = SetRegressor("c-rnn", hidden=4, epochs=1, random_state=0)
    spec.fit([np.ones((2, 2)), np.zeros((1, 2))], [1.0, 2.0]).save(tmp_path / "run")
    old = Engine(networks[0]).fingerprint
    fingerprints = {old, Engine(tmp_path / "run").fingerprint}
    export(networks[0], tmp_path / "first")
    for moment in range(1, 200, 3):
        folder = tmp_path / str(moment) / "x"
        export(networks[0], folder)
        code = kill_at(moment, EXPORT, folder, tmp_path / "run")
        assert Engine(folder).fingerprint in fingerprints
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert moment > 10
    assert Engine(folder).fingerprint != old


ROOT = os.name == "posix" and os.geteuid() == 0


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 200 kB of our own."""
    if not ROOT:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kind", ["save", "export"])
def test_full_disk(small_disk, estimators, kind):
    """At every level: a sentence that is true and the old one, or the new one."""
    _, first, second = estimators
    folder, filler = small_disk / "x", small_disk / "filler"
    outcomes, sentences = [], []
    for level in range(0, 200_000, 12_288):
        filler.unlink(missing_ok=True)
        folders.remove_folder(folder)
        if kind == "save":
            first.save(folder)
        else:
            export(first.model_, folder)
        try:
            filler.write_bytes(bytes(level))
        except OSError:
            break
        try:
            if kind == "save":
                second.save(folder, force=True)
            else:
                export(second.model_, folder, force=True)
            expected = second
        except InputError as error:
            expected = first
            sentences.append(str(error))
        engine = Engine(folder)
        assert engine.fingerprint == Engine(expected.model_).fingerprint
        outcomes.append(expected is second)
    assert {True, False} == set(outcomes)
    assert all("No space left on device" in sentence for sentence in sentences)
    assert any("unchanged" in sentence for sentence in sentences)


class TestLock:
    def test_excludes_and_cleans_up(self, tmp_path):
        with lock_folder(tmp_path / "x", busy=BUSY):
            with pytest.raises(InputError, match=BUSY), lock_folder(tmp_path / "x", busy=BUSY):
                pass
            with lock_folder(tmp_path / "y", busy=BUSY):
                pass
        with lock_folder(tmp_path / "x", busy=BUSY):
            pass
        assert names(tmp_path) == []

    def test_waits(self, tmp_path):
        """Threads of one process exclude each other, too, and nobody is lost at the end."""
        from concurrent.futures import ThreadPoolExecutor

        inside, most = [], []

        def work(number: int) -> None:
            with lock_file(tmp_path / "lock"):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(40)))
        assert most == [1] * 40

    def test_unwritable(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot write to"), lock_file(tmp_path / "file" / "l"):
            pass


class TestSweep:
    def test_temporary_files_of_the_dead(self, tmp_path):
        path = tmp_path / "a.json"
        with writing(path) as mine:
            mine.write_text("x")
            dead = mine.name.replace(f"-{os.getpid()}-", "-999999999-")
            elsewhere = ".a.json.00000000-999999999-00000000.part"
            other_target = dead.replace(".a.json.", ".b.json.")
            for name in (dead, elsewhere, other_target):
                (tmp_path / name).write_text("half")
            write_bytes(path, b"y")
            assert mine.exists(), "its writer is at work"
        assert names(tmp_path) == sorted(["a.json", elsewhere, other_target])
