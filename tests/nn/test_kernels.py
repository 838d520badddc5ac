"""Compiled functions are there with numba, and everything works without."""

import os
import sys

import pytest
import torch

from capnets.models import build
from capnets.nn.fused import may_be_fused
from capnets.nn.kernels import _module, _numba_works, by_operations, compiled
from capnets.nn.recurrence import are_compiled

pytestmark = pytest.mark.usefixtures("one_thread")
MODULES = ("counts", "directions", "layers", "loops", "products", "recurrence")


@pytest.fixture
def forgotten(monkeypatch):
    """As if nothing had been imported from numba yet."""
    package = sys.modules["capnets.nn.kernels"]
    for name in MODULES:
        compiled(name)
        monkeypatch.delattr(package, name)
        monkeypatch.delitem(sys.modules, f"capnets.nn.kernels.{name}")
    forget()
    yield
    forget()


def forget():
    _module.cache_clear()
    _numba_works.cache_clear()


def predictions():
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    return {name: build(name, in_features=3, seed=0)(x) for name in ("c-gru", "c-deepset", "rnn")}


def test_with_numba():
    assert are_compiled(torch.zeros(1, 1))
    assert may_be_fused(torch.zeros(1, 1, 1))


def test_where_nobody_wants_it():
    with by_operations():
        assert not are_compiled(torch.zeros(1, 1))
        assert not may_be_fused(torch.zeros(1, 1, 1))
        without = predictions()
    torch.testing.assert_close(without, predictions())


@pytest.mark.usefixtures("forgotten")
def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not are_compiled(torch.zeros(1, 1))
    assert not may_be_fused(torch.zeros(1, 1, 1))
    without = predictions()
    monkeypatch.undo()
    forget()
    torch.testing.assert_close(without, predictions())


@pytest.mark.usefixtures("forgotten")
def test_with_a_numba_that_cannot_be_imported(monkeypatch, tmp_path):
    """It may be there and not fit the numpy that is there; that is said once."""
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.2 or less')")
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(RuntimeWarning, match=r"Numba needs NumPy 2\.2 or less") as said:
        predictions()
    assert len(said) == 1
    predictions()  # not said again: that would be an error here


def test_what_was_compiled_from_other_files_is_forgotten(tmp_path, monkeypatch):
    """numba would go on with a function that calls one which is another by now."""
    package = sys.modules["capnets.nn.kernels"]
    monkeypatch.setattr(package, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "__pycache__").mkdir()
    files = {"old.nbi": 1, "new.nbi": 3, "new.1.nbc": 1, "new.pyc": 1}
    for name, time in files.items():
        (tmp_path / "__pycache__" / name).touch()
        os.utime(tmp_path / "__pycache__" / name, (time, time))
    for name in ("loops.py", "layers.py"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2, 2))
    package._forget_stale()
    assert {path.name for path in (tmp_path / "__pycache__").iterdir()} == files.keys() - {
        "old.nbi"
    }
