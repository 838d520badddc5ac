"""Tensors in a file: safetensors with a checksum, written atomically, never executed.

What is not a tensor stands as JSON in the file's header, under one key: the order of several would
change from one writing to the next, and equal runs have equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from capnets.files import write_bytes

__all__ = ["Damaged", "read_tensors", "write_tensors"]

KEY = "capnets"


class Damaged(ValueError):  # noqa: N818
    """A file does not hold what was written."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, Any]) -> None:
    """Replace the file in one step."""
    kept = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    header = {"sha256": _checksum(kept), **about}
    write_bytes(path, save(kept, {KEY: json.dumps(header)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote: the tensors, and what stands about them.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    Damaged
        The file is cut off, is something else, or was altered.
    """
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {}).get(KEY, "{}"))
            tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise Damaged(str(error).splitlines()[0]) from error
    # Files of others have no checksum; they are held to the shapes of the network only.
    if header.pop("sha256", None) not in (None, _checksum(tensors)):
        raise Damaged("its contents do not match its checksum")
    return tensors, header


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()
