"""Forward and backward passes compiled with numba (extra `compiled`), for float32 on a CPU.

Calling a torch operation takes some microseconds, and its result goes to memory before the next
operation reads it. With networks this small, that is most of the time. `capnets.nn.backend` decides
when kernels are used; without numba everything works, by torch's operations.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["available", "one_blas_thread"]

#: OpenBLAS uses one thread for products of up to this many multiplications.
SINGLE_THREADED = 2**18


@cache
def available() -> bool:
    """Return whether numba can be imported; warn once if it is installed but broken."""
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
    _remove_stale_cache()
    _announce_compilation()
    return True


def _remove_stale_cache() -> None:
    """Remove compiled code that is older than a file of this package.

    numba compares the file of a function, but not the files of the functions it calls.
    """
    folder = Path(__file__).parent
    with suppress(OSError):  # not ours to remove, or removed meanwhile
        changed = max(file.stat().st_mtime for file in folder.glob("*.py"))
        for index in folder.glob("__pycache__/*.nbi"):
            if index.stat().st_mtime < changed:
                index.unlink()


def _announce_compilation() -> None:
    """Report the first compilation of a kernel in this process."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = getattr(event.data.get("dispatcher"), "py_func", None)
            if getattr(function, "__module__", "").startswith(__name__):
                _announce()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


@cache
def _announce() -> None:
    """Log one line, and print it in a terminal or notebook; never to standard output."""
    message = "compiling kernels for this processor (once, 10 to 20 seconds)"
    logging.getLogger(__name__).info(message)
    if sys.stderr.isatty() or hasattr(sys, "ps1"):
        print(f"capnets: {message}", file=sys.stderr, flush=True)


@contextmanager
def one_blas_thread(multiplications: int) -> Iterator[None]:
    """Limit the BLAS behind numba's products to one thread inside this block.

    Kernels multiply some rows at a time. Several threads would spend their time waiting for each
    other: with 256 hidden units, one set took thirty times as long. The limit holds for the
    process, so another Python thread that uses scipy meanwhile is limited, too.
    """
    limited = []
    if multiplications > SINGLE_THREADED:
        limited = [(library, n) for library in _blas() if (n := library.num_threads) != 1]
    for library, _ in limited:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, n in limited:
            library.set_num_threads(n)


@cache
def _blas() -> list[Any]:
    """Return the BLAS libraries that numba may call: scipy's own, or else all that are loaded."""
    import scipy.linalg.cython_blas  # noqa: F401  (numba calls BLAS through it)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if "scipy.libs" in library.filepath] or [*found]
