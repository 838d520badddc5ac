"""Tables at remote addresses, through fsspec: s3://, gs://, https://, memory:// and others."""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from capnets.errors import InputError

__all__ = ["is_address", "local_copy"]


def is_address(name: object) -> bool:
    """Return whether a name is an address rather than a path.

    >>> is_address("s3://bucket/sets.parquet"), is_address("C:/sets.parquet")
    (True, False)
    """
    return isinstance(name, str) and re.match(r"[A-Za-z][\w+.-]+://", name) is not None


def local_copy(address: str) -> Path:
    """Return a file or folder with the content of an address; it is removed at exit.

    An address that ends with a slash is a folder of Parquet files.
    """
    import fsspec

    try:
        system, place = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:  # the protocol needs another package, or is unknown
        raise InputError(f"{address} cannot be opened: {error}") from error
    try:
        target = _scratch() / hashlib.sha256(f"{address} {system.ukey(place)}".encode()).hexdigest()
        target /= place.rstrip("/").rpartition("/")[2] or "table"
        if target.exists():
            return target
        target.parent.mkdir()
        if address.endswith("/"):
            system.get(place, f"{target}/", recursive=True)
        else:
            system.get_file(place, str(target))
    except FileNotFoundError as error:
        raise InputError(f"{address}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{address} cannot be read: {error}") from error
    return target


@cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="capnets-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
