"""Lock files and folders between processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from capnets.errors import InputError

__all__ = ["lock_file", "lock_folder"]


@contextmanager
def lock_file(path: Path, *, busy: str | None = None) -> Iterator[None]:
    """Hold a lock; it ends with the block or with the process.

    Parameters
    ----------
    path
        The lock file. It is removed at the end.
    busy
        The error to raise if another process or thread holds the lock; `{process}` in it becomes
        the number of that process. None waits for the lock.
    """
    lock = FileLock(path, thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=-1 if busy is None else 0)
        path.write_text(str(os.getpid()))
    except Timeout:
        raise InputError((busy or "").replace("{process}", _holder(path))) from None
    except OSError as error:
        raise InputError(
            f"cannot write to {path.parent}: {error.strerror or error}; choose another folder"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # safe while the lock is held: waiting processes detect the removal
            path.unlink()
        lock.release()


@contextmanager
def lock_folder(folder: Path, *, busy: str | None = None) -> Iterator[None]:
    """Hold the lock of a folder, which need not exist.

    The lock lies beside the folder, because the folder itself may be replaced; a mount point
    cannot be, and there it lies inside.
    """
    real = Path(os.path.realpath(folder))
    inside = os.path.ismount(real)
    with lock_file(real / ".lock" if inside else real.with_name(f".{real.name}.lock"), busy=busy):
        yield


def _holder(path: Path) -> str:
    try:
        return path.read_text() or "?"
    except OSError:
        return "?"
