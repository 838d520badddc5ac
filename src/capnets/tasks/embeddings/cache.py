"""Cache features on disk and verify them whenever they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from capnets.errors import InputError
from capnets.files import write_json, writing
from capnets.files.locks import lock_file
from capnets.tasks.embeddings.base import Features
from capnets.tasks.files import cache_folder

__all__ = ["alone", "load", "place", "save"]


def place(source: str, embedding: str, parameters: Mapping[str, int | float]) -> Path:
    """Return the cache path of the features of a source, which depends on the parameters."""
    key = json.dumps(dict(parameters), sort_keys=True).encode()
    name = f"{source}-{embedding}-{hashlib.sha256(key).hexdigest()[:12]}.npy"
    return cache_folder() / "embeddings" / name


def save(path: Path, features: Features, about: Mapping[str, object]) -> None:
    """Write features and a JSON description beside them."""
    with writing(path) as temporary, temporary.open("wb") as file:
        np.save(file, features, allow_pickle=False)
    # The description is written last: features without a matching checksum are ignored.
    write_json(path.with_suffix(".json"), {**about, "sha256": _sha256(features)})


def load(path: Path, *, rows: int) -> Features | None:
    """Return the cached features, or None if they are absent or damaged."""
    try:
        about = json.loads(path.with_suffix(".json").read_text())
        features: Features = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    intact = len(features) == rows and _sha256(features) == about.get("sha256")
    return features if intact else None


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lock the cache entry: one process computes the features, the others wait."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to the cache, {path.parent}: {error.strerror}; "
            "point CAPNETS_CACHE at a folder that can be written to"
        ) from error
    with lock_file(path.with_suffix(".lock")):
        yield


def _sha256(features: Features) -> str:
    return hashlib.sha256(np.ascontiguousarray(features).data).hexdigest()
