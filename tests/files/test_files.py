"""File writes are atomic under errors and kills."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capnets.errors import InputError
from capnets.files import write_bytes, write_json, write_text, writing

ROOT = os.name == "posix" and os.geteuid() == 0
NOBODY = 65534


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A process of its own; it gets the arguments as strings."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestWriting:
    def test_contents(self, tmp_path):
        write_bytes(tmp_path / "a", b"\x00\xff")
        write_text(tmp_path / "b", "naïve\n")
        write_json(tmp_path / "c", {"x": [1, None]})
        assert (tmp_path / "a").read_bytes() == b"\x00\xff"
        assert (tmp_path / "b").read_bytes() == "naïve\n".encode()
        assert json.loads((tmp_path / "c").read_text()) == {"x": [1, None]}
        assert (tmp_path / "c").read_text().endswith("}\n")

    def test_makes_folders(self, tmp_path):
        write_text(tmp_path / "new" / "deeper" / "a", "x")
        assert names(tmp_path / "new" / "deeper") == ["a"]

    def test_replaces_and_leaves_nothing_behind(self, tmp_path):
        write_text(tmp_path / "a", "old")
        write_text(tmp_path / "a", "new")
        assert (tmp_path / "a").read_text() == "new"
        assert names(tmp_path) == ["a"]

    def test_old_content_is_there_until_the_end(self, tmp_path):
        write_text(tmp_path / "a", "old")
        with writing(tmp_path / "a") as path:
            path.write_text("half")
            assert (tmp_path / "a").read_text() == "old"
            assert path.parent == tmp_path, "another disk could not be renamed from"
        assert (tmp_path / "a").read_text() == "half"

    def test_two_writers_do_not_meet(self, tmp_path):
        with writing(tmp_path / "a") as one, writing(tmp_path / "a") as two:
            assert one != two
            one.write_text("one")
            two.write_text("two")
        assert (tmp_path / "a").read_text() == "one"  # the one that ended last


class TestFailure:
    @pytest.fixture
    def old(self, tmp_path) -> Path:
        path = tmp_path / "a.json"
        write_text(path, "old")
        return path

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_own_errors_pass_through(self, old, error):
        def fails():
            with writing(old) as path:
                path.write_text("half")
                raise error

        with pytest.raises(error):
            fails()
        assert old.read_text() == "old"
        assert names(old.parent) == ["a.json"]

    def test_not_a_number(self, old):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(old, {"loss": float("nan")})
        assert old.read_text() == "old"

    def test_killed_in_the_middle(self, old):
        code = """
import os, signal, sys
from capnets.files import writing
with writing(sys.argv[1]) as path:
    path.write_text("half of the ne")
    os.kill(os.getpid(), signal.SIGKILL)
"""
        assert run(code, old).returncode == -signal.SIGKILL
        assert old.read_text() == "old"
        write_text(old, "new")  # what the dead left behind does no harm
        assert old.read_text() == "new"
        assert all(name == "a.json" or name.startswith(".a.json.") for name in names(old.parent))

    def test_file_in_place_of_a_folder(self, old):
        with pytest.raises(InputError, match=r"cannot write .*b: .*; what was there before is"):
            write_text(old / "b", "x")
        assert old.read_text() == "old"

    def test_folder_in_place_of_a_file(self, old):
        with pytest.raises(InputError, match=r"cannot write .*: Is a directory"):
            write_text(old.parent, "x")
        assert names(old.parent) == ["a.json"]

    def test_unwritable_folder(self, old):
        """The folder is not writable (root first switches to the user nobody)."""
        code = """
import os, sys
from capnets.files import write_text
from capnets.errors import InputError
if os.geteuid() == 0:
    os.setuid(int(sys.argv[2]))
try:
    write_text(sys.argv[1], "new")
except InputError as error:
    print(error)
"""
        old.parent.chmod(0o555)
        for folder in list(old.parents)[1:]:  # pytest's own folders are for their owner only
            if ROOT and folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
                folder.chmod(0o755)
        try:
            done = run(code, old, NOBODY)
        finally:
            old.parent.chmod(0o755)
        assert "Permission denied; what was there before is unchanged" in done.stdout, done.stderr
        assert old.read_text() == "old"

    def test_file_size_limit(self, old):
        """A limit of the system, met in the middle of a write; no rights are needed for it."""
        code = """
import resource, signal, sys
from capnets.files import write_bytes
from capnets.errors import InputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_bytes(sys.argv[1], bytes(100_000))
except InputError as error:
    print(error)
"""
        done = run(code, old)
        assert f"cannot write {old}: {os.strerror(errno.EFBIG)}" in done.stdout, done.stderr
        assert old.read_text() == "old"
        assert names(old.parent) == ["a.json"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB of our own."""
    if not ROOT:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        required = os.environ.get("CAPNETS_REQUIRE_DATA", "0") not in {"", "0"}
        refuse = pytest.fail if required else pytest.skip
        refuse(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class TestFullDisk:
    def test_previous_file_survives(self, small_disk):
        path = small_disk / "weights"
        write_bytes(path, b"old" * 1000)
        with pytest.raises(InputError, match=r"cannot write .*weights: No space left on device"):
            write_bytes(path, bytes(10**6))
        assert path.read_bytes() == b"old" * 1000
        assert names(small_disk) == ["weights"]
        write_bytes(path, b"new" * 1000)  # the failed attempt has given its space back
        assert path.read_bytes() == b"new" * 1000

    def test_previous_sets_survive(self, small_disk):
        import numpy as np

        from capnets.sets import Sets

        few = Sets.from_arrays([np.ones((10, 8))], y=[1.0])
        few.save(small_disk)
        before = names(small_disk)
        many = Sets.from_arrays([np.zeros((10_000, 8))], y=[2.0])
        with pytest.raises(InputError, match=r"cannot write .*; what was there before is un"):
            many.save(small_disk)
        assert names(small_disk) == before
        loaded = Sets.load(small_disk)
        assert loaded.y.tolist() == [1.0]
        np.testing.assert_array_equal(loaded[0], few[0])
