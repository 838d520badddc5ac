"""Functions compiled with numba (extra `compiled`), for where operations of torch are slow.

An operation of torch takes some microseconds before it computes anything, and leaves all it
computed in memory before the next one begins. `recurrence` and `fused` say when the compiled way is
the quicker one; without numba everything works, by operations of torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = ["by_operations", "compiled"]

_wanted = ContextVar("compiled functions are wanted", default=True)


def compiled(name: str) -> ModuleType | None:
    """A module of this package; None where numba is not there, or does not fit what else is."""
    return _module(name) if _wanted.get() else None


@contextmanager
def by_operations() -> Iterator[None]:
    """Use nothing compiled inside this block, as if numba were not there; for comparisons.

    It holds for the thread it stands in.
    """
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)


@cache
def _module(name: str) -> ModuleType | None:
    return import_module(f"capnets.nn.kernels.{name}") if _numba_works() else None


@cache
def _numba_works() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError as error:
        if error.name != "numba" or not isinstance(error, ModuleNotFoundError):
            warnings.warn(
                f"numba is installed, but cannot be imported ({error}): networks are slower "
                "without it; upgrade it, or remove it",
                RuntimeWarning,
                stacklevel=2,
            )
        return False
    _forget_stale()
    return True


def _forget_stale() -> None:
    """Throw away what was compiled before a file of this package changed.

    numba looks at the file of a function, but not at those of the functions that it calls.
    """
    folder = Path(__file__).parent
    with suppress(OSError):  # of others, or gone meanwhile
        changed = max(file.stat().st_mtime for file in folder.glob("*.py"))
        for index in folder.glob("__pycache__/*.nbi"):
            if index.stat().st_mtime < changed:
                index.unlink()
