"""Replace a folder in one step: the old or the new one is always there.

Linux exchanges two folders in one system call. Elsewhere two renames are needed; a process killed
between them leaves no folder of that name, and `recover_folder` completes the replacement. Callers
hold the lock of the folder (see `capnets.files.locks`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from capnets.errors import InputError
from capnets.files import flush
from capnets.files.locks import lock_folder

__all__ = [
    "keep_others",
    "recover_folder",
    "remove_folder",
    "replace_folder",
    "replacing",
    "staging_folder",
]

#: From Linux' fcntl.h and fs.h: paths are relative to the working directory; exchange two names.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
#: The system or file system has no exchange.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def staging_folder(folder: Path) -> Path:
    """Return the hidden sibling in which the next version of a folder is written."""
    return _sibling(folder, "new")


@contextmanager
def replacing(folder: Path, *, busy: str) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` if the block raises nothing.

    `busy` is the error to raise if another process is replacing the folder.
    """
    with lock_folder(folder, busy=busy):
        recover_folder(folder, locked=True)
        new = staging_folder(folder)
        try:
            remove_folder(new)
            new.mkdir(parents=True)
            yield new
            replace_folder(new, folder)
        except OSError as error:
            raise InputError(
                f"cannot write {folder}: {error.strerror or error}; "
                "what was there before is unchanged"
            ) from error
        finally:
            remove_folder(new)


def replace_folder(new: Path, folder: Path) -> None:
    """Move `new` to `folder`, and remove the folder that was there."""
    folder = Path(os.path.realpath(folder))
    for path in (*new.rglob("*"), new):
        flush(path)
    if not folder.exists():
        os.rename(new, folder)
    elif not _exchange(new, folder):
        old, next_one = _sibling(folder, "old"), staging_folder(folder)
        remove_folder(old)
        if new != next_one:
            os.rename(new, next_one)
        os.rename(folder, old)
        try:
            os.rename(next_one, folder)
        except OSError:
            os.rename(old, folder)
            raise
        remove_folder(old)
    flush(folder.parent)
    remove_folder(new)  # after an exchange: the previous version


def recover_folder(folder: Path, *, locked: bool = False) -> None:
    """Complete a replacement that was killed between its two renames.

    `locked` says that the caller holds the lock of the folder.
    """
    old = _sibling(folder, "old")
    if not old.exists():
        return
    if not locked:
        if not Path(folder).exists():
            _recover_unlocked(folder)
        return
    real = Path(os.path.realpath(folder))
    if not real.exists():
        new = staging_folder(folder)
        os.rename(new if new.exists() else old, real)
    remove_folder(old)


def _recover_unlocked(folder: Path) -> None:
    for _ in range(20):  # a running writer needs an instant for its second rename
        try:
            with lock_folder(folder, busy="busy"):
                recover_folder(folder, locked=True)
        except InputError:
            time.sleep(0.05)
        if Path(folder).exists():
            return


def remove_folder(folder: Path) -> None:
    """Remove a folder and its content; ignore missing files and missing permissions."""
    shutil.rmtree(folder, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders; return False if the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    paths = os.fsencode(one), os.fsencode(other)
    if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _sibling(folder: Path, suffix: str) -> Path:
    real = Path(os.path.realpath(folder))
    return real.with_name(f".{real.name}.{suffix}")


def keep_others(old: Path, new: Path, *, written: Iterable[str]) -> None:
    """Link or copy what a folder holds besides the files that its replacement writes itself.

    Parameters
    ----------
    old, new
        The folder and its replacement. What the replacement already has is kept.
    written
        Patterns of the files that are left behind.
    """
    for path in old.iterdir():
        if any(path.match(pattern) for pattern in written) or (new / path.name).exists():
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, new / path.name, symlinks=True, copy_function=_link)
        else:
            _link(path, new / path.name)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):  # no hard links in the file system, or on Windows
        shutil.copy2(source, target, follow_symlinks=False)
