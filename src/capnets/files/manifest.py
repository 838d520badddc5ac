"""Record the SHA-256 digests of a folder's files, and check the files when they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from capnets.files import write_json

__all__ = ["MANIFEST", "Damaged", "check", "read_manifest", "write_manifest"]

MANIFEST = "manifest.json"


class Damaged(ValueError):  # noqa: N818
    """A file differs from what was written."""


def write_manifest(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the digests of the files that a folder holds, or will hold."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}
    write_json(folder / MANIFEST, {"sha256": digests})


def read_manifest(folder: Path) -> dict[str, str] | None:
    """Read the digests by file name; None for a folder of an older version, which has none."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"{MANIFEST}: {error.strerror or error}") from error
    try:
        digests = json.loads(text)["sha256"]
        return {str(name): str(digest) for name, digest in digests.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{MANIFEST} cannot be read: {error}") from error


def check(name: str, data: bytes, digests: Mapping[str, str] | None) -> None:
    """Refuse the content of a file that differs from its digest or has none."""
    if digests is None:
        return
    if name not in digests:
        raise Damaged(f"{MANIFEST} has no digest of it")
    if hashlib.sha256(data).hexdigest() != digests[name]:
        raise Damaged(f"its contents do not match {MANIFEST}")
