"""Store tensors in a file: safetensors with a digest, written atomically, never executed.

Everything that is not a tensor is JSON in the header of the file, under one key: the order of
several keys would vary from one write to the next, and equal runs have equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from capnets.files import write_bytes
from capnets.files.manifest import Damaged

__all__ = [
    "Damaged",
    "check_finite",
    "parse_tensors",
    "read_tensors",
    "write_tensors",
]

KEY = "capnets"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, Any]) -> None:
    """Write tensors and a JSON object about them, atomically."""
    kept = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    header = {"digest": _digest(kept, about), **about}
    write_bytes(path, save(kept, {KEY: json.dumps(header)}))


def read_tensors(path: Path, *, unchecked: bool = False) -> tuple[dict[str, Tensor], Any]:
    """Read a file that `write_tensors` wrote: the tensors and the JSON object about them.

    Parameters
    ----------
    unchecked
        Accept a file without a digest.

    Raises
    ------
    OSError
        The file cannot be read.
    Damaged
        The file is truncated, is something else, or was altered.
    """
    return parse_tensors(path.read_bytes(), unchecked=unchecked)


def parse_tensors(data: bytes, *, unchecked: bool = False) -> tuple[dict[str, Tensor], Any]:
    """Read the content of such a file."""
    try:
        tensors = load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
        header = json.loads(metadata.get(KEY, "{}"))
        given, old = header.pop("digest", None), header.pop("sha256", None)
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise Damaged(str(error).splitlines()[0]) from error
    if given is None and old is None and not unchecked:
        raise Damaged("it has no digest")
    # Earlier versions wrote a digest of the tensors alone.
    if given not in (None, _digest(tensors, header)) or old not in (None, _digest(tensors)):
        raise Damaged("its contents do not match its digest")
    return tensors, header


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refuse NaN and infinite numbers."""
    for name, value in tensors.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise Damaged(f"{name} holds NaN or infinite numbers")


def _digest(tensors: Mapping[str, Tensor], about: dict[str, Any] | None = None) -> str:
    digest = hashlib.sha256()
    if about is not None:
        digest.update(json.dumps(json.loads(json.dumps(about)), sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()
