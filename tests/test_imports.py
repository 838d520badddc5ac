"""The public interface is complete, typed and fast to import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import capnets

PACKAGE = Path(capnets.__file__).parent
SUBPACKAGES = {path.stem for path in PACKAGE.iterdir() if path.suffix in {"", ".py"}} - {"__init__"}
HEAVY = ["torch", "sklearn", "pandas", "pyarrow", "matplotlib", "lightning_fabric", "onnx"]


def heavy_modules_after(code: str) -> str:
    """Return the heavy libraries that a fresh interpreter has loaded after running the code."""
    ask = f"{code}\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_import_loads_nothing_heavy():
    assert heavy_modules_after("import capnets; dir(capnets)") == "[]"


def test_help_loads_nothing_heavy():
    helps = """
from capnets.cli import main
import sys
sys.argv = ["capnets", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code
"""
    assert heavy_modules_after(helps) == "[]"


def test_a_heavy_import_would_be_noticed():
    assert "torch" in heavy_modules_after("import capnets; capnets.Sets")


@pytest.mark.parametrize("name", capnets.__all__)
def test_public_name_resolves(name):
    assert getattr(capnets, name) is not None
    assert name in dir(capnets)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Capacity'"):
        capnets.Capacity  # noqa: B018


def test_public_names_are_not_packages():
    assert not SUBPACKAGES & set(capnets.__all__)


def test_type_checkers_are_told_the_same():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.asname: (node.module, alias.name)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == capnets._HOMES
