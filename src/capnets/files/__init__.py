"""Writing files so that a reader sees the old content or the new one, never a part.

The new content goes to a hidden neighbour, is forced to disk, and takes the name in one step.
A full disk, an unwritable folder or a kill leaves the previous file as it was.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from capnets.errors import InputError

__all__ = ["write_bytes", "write_json", "write_text", "writing"]


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; when the block ends well it becomes `path`."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _force_to_disk(temporary)
        os.replace(temporary, path)
        _force_to_disk(path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; "
            "what was there before is unchanged. Free some space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):  # where nothing could be written, there may be nothing to remove
            temporary.unlink()


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes atomically."""
    with writing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text (UTF-8) atomically."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON document atomically, indented for people, with a final newline."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
