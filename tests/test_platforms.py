"""Nothing is imported that only some operating systems have."""

import ast
import subprocess
import sys
from pathlib import Path

import capnets

PACKAGE = Path(capnets.__file__).parent
#: Modules of the standard library that Windows or macOS lack.
ELSEWHERE = {
    "crypt", "fcntl", "grp", "msvcrt", "nis", "ossaudiodev", "posix", "pty", "pwd", "readline",
    "resource", "spwd", "syslog", "termios", "tty", "winreg", "winsound",
}  # fmt: skip


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_no_file_imports_what_a_platform_lacks():
    found = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in PACKAGE.rglob("*.py")
        if (names := ELSEWHERE & {*imported(ast.parse(path.read_text(encoding="utf-8")))})
    }
    assert not found


def test_training_works_without_a_c_library(tmp_path):
    """On Windows `CDLL(None)` fails; folders are then replaced by two renames."""
    code = f"""
import ctypes

class NoLibrary(ctypes.CDLL):
    def __init__(self, name, *args, **kwargs):
        if name is None:
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        super().__init__(name, *args, **kwargs)

import numpy, pandas, sklearn, torch
ctypes.CDLL = NoLibrary
from capnets import SetRegressor
from capnets.memory import keep_freed
keep_freed()
X = [numpy.random.default_rng(k).random((k % 3 + 1, 2)) for k in range(12)]
model = SetRegressor("c-deepset", members=1, epochs=1, random_state=0).fit(X, range(12))
for _ in range(2):
    model.save({str(tmp_path / "run")!r}, force=True)
print(len(SetRegressor.load({str(tmp_path / "run")!r}).predict(X)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12"]
