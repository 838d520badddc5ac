"""Tests that need data or a browser are skipped without it, or fail if it is required."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MARKED = """
import pytest

@pytest.mark.data
def test_data():
    pass

@pytest.mark.data
def test_data_that_skips_itself():
    pytest.skip("no reason is good enough")

def test_other():
    pytest.skip("no such device")
"""
WHOLE_FILE = 'import pytest\npytest.importorskip("a_package_that_does_not_exist")\n'


def outcome(folder: Path, *, test: str, **env: str) -> str:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    folder.joinpath("pytest.ini").write_text("[pytest]\nmarkers =\n    data\n    browser\n")
    folder.joinpath("test_it.py").write_text(test)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CAPNETS_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)],
        env=inherited | env | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()[-1].split(" in ")[0]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "3 skipped"),
        ({"CAPNETS_DATA": "."}, "1 passed, 2 skipped"),
        ({"CAPNETS_DATA": "missing"}, "3 skipped"),
        ({"CAPNETS_REQUIRE_DATA": "1"}, "1 skipped, 2 errors"),
        ({"CAPNETS_REQUIRE_DATA": "0"}, "3 skipped"),
        ({"CAPNETS_REQUIRE_DATA": "1", "CAPNETS_DATA": "."}, "1 failed, 1 passed, 1 skipped"),
    ],
)
def test_marked_tests(tmp_path, env, expected):
    assert outcome(tmp_path, test=MARKED, **env) == expected


def test_whole_files(tmp_path):
    assert outcome(tmp_path, test=WHOLE_FILE) == "1 skipped"
    assert "1 error" in outcome(tmp_path, test=WHOLE_FILE, CAPNETS_REQUIRE_DATA="1")
