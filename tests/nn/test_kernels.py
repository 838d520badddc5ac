"""Kernels are used with numba, and everything works without; BLAS keeps to one thread."""

import logging
import os
import sys
from importlib import import_module

import numba
import numpy as np
import pytest
import torch

from capnets.models import build
from capnets.nn import kernels
from capnets.nn.backend import explain
from capnets.nn.cells import GRUCell

pytestmark = pytest.mark.usefixtures("one_thread")
MODULES = (
    "arithmetic",
    "attention",
    "context",
    "layers",
    "newton_schulz",
    "products",
    "recurrence",
)


@pytest.fixture
def forgotten(monkeypatch):
    """Undo all imports of numba."""
    for name in MODULES:
        import_module(f"capnets.nn.kernels.{name}")
        monkeypatch.delattr(kernels, name)
        monkeypatch.delitem(sys.modules, f"capnets.nn.kernels.{name}")
    forget()
    yield
    forget()


def forget():
    kernels.available.cache_clear()


def predictions():
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    return {name: build(name, in_features=3, seed=0)(x) for name in ("c-gru", "c-deepset", "rnn")}


def choice():
    return explain(GRUCell(3, 4), torch.zeros(1, 2, 3))


def test_with_numba():
    assert "kernels" in choice()


@pytest.mark.usefixtures("forgotten")
def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "native (numba is not installed" in choice()
    without = predictions()
    monkeypatch.undo()
    forget()
    assert "kernels" in choice()
    torch.testing.assert_close(without, predictions())


@pytest.mark.usefixtures("forgotten")
def test_with_a_numba_that_cannot_be_imported(monkeypatch, tmp_path):
    """A numba that does not fit the installed numpy: one warning."""
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.2 or less')")
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(RuntimeWarning, match=r"Numba needs NumPy 2\.2 or less") as said:
        predictions()
    assert len(said) == 1
    predictions()  # not said again: that would be an error here


def test_stale_code_is_removed(tmp_path, monkeypatch):
    """numba does not notice changes in the functions that a cached one calls."""
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "__pycache__").mkdir()
    files = {"old.nbi": 1, "new.nbi": 3, "new.1.nbc": 1, "new.pyc": 1}
    for name, time in files.items():
        (tmp_path / "__pycache__" / name).touch()
        os.utime(tmp_path / "__pycache__" / name, (time, time))
    for name in ("loops.py", "layers.py"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2, 2))
    kernels._remove_stale_cache()
    assert {path.name for path in (tmp_path / "__pycache__").iterdir()} == files.keys() - {
        "old.nbi"
    }


class TestProducts:
    """Products of any number of rows, some at a time, against numpy's."""

    @pytest.mark.parametrize("rows", [1, 128, 129, 300])
    def test_gradients_of_a_layer(self, rows):
        from capnets.nn.kernels.products import linear_backward

        draw = np.random.default_rng(0)
        shapes = [(rows, 5), (rows, 7), (5, 7)]
        dy, x, weight = (draw.normal(size=s).astype(np.float32) for s in shapes)
        dweight, dx = np.full_like(weight, np.nan), np.full_like(x, np.nan)
        linear_backward(dy, x, weight, dweight, dx)
        np.testing.assert_allclose(dweight, dy.T @ x, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(dx, dy @ weight, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("shape", [(1, 1), (16, 16), (3, 50), (33, 17)])
    def test_transposed(self, shape):
        from capnets.nn.kernels.products import transposed

        matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        found = transposed(matrix)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, matrix.T)


class TestBlasThreads:
    """Products inside kernels run on one thread; afterwards BLAS has its threads again."""

    @pytest.fixture(autouse=True)
    def two_threads(self):
        self.libraries = kernels._blas()
        before = [library.num_threads for library in self.libraries]
        for library in self.libraries:
            library.set_num_threads(2)
        yield
        for library, n in zip(self.libraries, before, strict=True):
            library.set_num_threads(n)

    def threads(self):
        return {library.num_threads for library in self.libraries}

    def test_large_products(self):
        with kernels.one_blas_thread(kernels.SINGLE_THREADED + 1):
            assert self.threads() == {1}
        assert self.threads() == {2}

    def test_small_products_need_no_limit(self):
        with kernels.one_blas_thread(kernels.SINGLE_THREADED):
            assert self.threads() == {2}

    def test_after_an_error(self):
        with pytest.raises(ZeroDivisionError), kernels.one_blas_thread(10**9):
            1 / 0  # noqa: B018
        assert self.threads() == {2}

    def test_inside_a_wide_recurrence(self, monkeypatch):
        from capnets.nn.kernels import recurrence

        seen, run = [], recurrence._gru
        monkeypatch.setattr(recurrence, "_gru", lambda *a: (seen.append(self.threads()), run(*a)))
        GRUCell(8, 256)(torch.randn(2, 5, 8))
        assert seen == [{1}]
        assert self.threads() == {2}


def test_compilation_is_announced_once(caplog, monkeypatch, capsys):
    from capnets.nn.kernels import products

    kernels._announce.cache_clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    caplog.set_level(logging.INFO, logger="capnets")
    rows = np.ones((3, 2), np.float32)
    for _ in range(2):  # what is compiled here is in no cache
        numba.njit(products.sum_rows.py_func)(rows, np.zeros(2, np.float32))
    said = capsys.readouterr()
    assert [r.levelname for r in caplog.records if "compiling kernels" in r.message] == ["INFO"]
    assert said.err.count("compiling kernels") == 1
    assert not said.out
    numba.njit(lambda x: x)(1)  # code of others is not announced
    assert not capsys.readouterr().err
