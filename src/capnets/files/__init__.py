"""Write files and folders atomically: a reader sees the old content or the new, never a part.

New content goes to a hidden sibling, is flushed to disk, and takes the name in one step. A full
disk, an unwritable folder or a killed process leaves the previous content as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from capnets.errors import InputError

__all__ = ["flush", "write_bytes", "write_json", "write_text", "writing"]


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it becomes `path` if the block raises nothing."""
    path = Path(path)
    owner = f"{_machine()}-{os.getpid()}"
    temporary = path.with_name(f".{path.name}.{owner}-{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
        flush(path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; "
            "what was there before is unchanged. Free some space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):  # nothing to remove after a success, or if nothing was written
            temporary.unlink()


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes atomically."""
    with writing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text (UTF-8) atomically."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write an indented JSON document atomically, with a final newline."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def flush(path: Path) -> None:
    """Force the content of a file, or the names in a folder, to disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    # Windows flushes only files that are open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(path: Path) -> None:
    """Remove temporary files of `path` whose writers were killed."""
    start = f".{path.name}.{_machine()}-"
    for name in os.listdir(path.parent):
        if name.startswith(start) and name.endswith(".part"):
            process = name.removeprefix(start).partition("-")[0]
            if process.isdecimal() and not _is_running(int(process)):
                with suppress(OSError):
                    (path.parent / name).unlink()


@cache
def _machine() -> str:
    """Return an identifier of the PID namespace: process ids are only comparable within it."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # containers count processes on their own
    except OSError:
        space = ""
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]


def _is_running(process: int) -> bool:
    if os.name == "nt":  # os.kill(pid, 0) would end the process there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
