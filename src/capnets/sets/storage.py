"""Store sets in a folder of .npy files and a sets.json that describes them.

New arrays are written beside those of an earlier save; sets.json then changes from the old to the
new ones in one step. A reader never sees a mixture, and a save that fails leaves the earlier one
as it was.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.files import write_json, writing
from capnets.files.locks import lock_folder
from capnets.sets.precision import BFLOAT16
from capnets.sets.ragged import Array

__all__ = ["ARRAYS", "read", "write"]

ARRAYS = (
    "instances", "index", "offsets", "y", "classes", "coords", "ids", "weights", "covariates",
)  # fmt: skip

#: Names in sets.json; only sets with covariates have `covariate_names`.
NAMES = ("feature_names", "covariate_names")

#: Names of array files: the array and a token of the save.
ARRAY_FILE = re.compile(r"([a-z]+)-[0-9a-f]{8}\.npy")
#: Highest format; a reader refuses a higher number. Sets without covariates are written as 3.
FORMAT = 4
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, SyntaxError, TokenError)


def write(
    folder: Path,
    arrays: dict[str, Array],
    feature_names: tuple[str, ...] | None,
    covariate_names: tuple[str, ...] | None = None,
    *,
    ready: dict[str, Path] | None = None,
) -> None:
    """Write arrays and remove those of earlier saves; after a failure, the earlier save stays.

    `ready` names arrays that are .npy files in the folder already, too large to be written twice.
    Such a folder belongs to one process and gets no digests, which would take another pass.
    """
    names: dict[str, Any] = {"feature_names": feature_names}
    if covariate_names is not None:
        names["covariate_names"] = covariate_names
    with lock_folder(folder, busy=f"another process is saving sets to {folder}"):
        _write(folder, arrays, names, ready or {})


def _write(
    folder: Path,
    arrays: dict[str, Array],
    names: dict[str, Any],
    ready: dict[str, Path],
) -> None:
    token = secrets.token_hex(4)
    files = {name: f"{name}-{token}.npy" for name in (*arrays, *ready)}
    try:
        for name, values in arrays.items():
            with writing(folder / files[name]) as path, path.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        for name, path in ready.items():
            path.rename(folder / files[name])
        # Earlier versions would read the sets without their covariates.
        about = {"format": FORMAT if "covariates" in arrays else 3, "arrays": files, **names}
        if not ready:
            about["sha256"] = _digests(folder, about)
        write_json(folder / "sets.json", about)
    finally:
        current = _saved_files(folder)
        if current is not None:  # what killed saves left behind goes, too
            _sweep(folder, keep=current)


def _sweep(folder: Path, *, keep: set[str]) -> None:
    """Remove the array files of other saves."""
    for path in folder.glob("*.npy"):
        array = ARRAY_FILE.fullmatch(path.name)
        if array and array[1] in (*ARRAYS, "pool") and path.name not in keep:
            path.unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Any]:
    """Return the arrays, memory-mapped, and the feature names."""
    try:
        about = json.loads((folder / "sets.json").read_text())
        if about["format"] > FORMAT:
            raise InputError(
                f"{folder} was written by a newer version of capnets (format {about['format']}; "
                f"this one reads up to {FORMAT}); upgrade capnets to read it"
            )
        if about["format"] >= 3 and "sha256" in about:
            _verify(folder, about)
        names = {key: about[key] for key in NAMES if key in about}
        return {"feature_names": names.pop("feature_names"), **names} | {
            # Only a name: a folder may come from anywhere, and must not point elsewhere.
            name: _mapped(folder / Path(file).name)
            for name, file in _renamed(about["arrays"]).items()
            if name in ARRAYS
        }
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"{folder} holds no complete saved sets: {error}") from error


def _mapped(path: Path) -> Array:
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    # .npy files have no name for bfloat16 and store it as two raw bytes.
    return array.view(BFLOAT16) if array.dtype == np.dtype("V2") else array


def _digests(folder: Path, about: dict[str, Any]) -> dict[str, str]:
    """Return the digest of every array file, and of the description itself."""
    found = {}
    for name in sorted(about["arrays"].values()):
        with (folder / Path(name).name).open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    described = {key: about[key] for key in ("format", "arrays", *NAMES) if key in about}
    text = json.dumps([described, found], sort_keys=True)
    return found | {"sets.json": hashlib.sha256(text.encode()).hexdigest()}


def _verify(folder: Path, about: dict[str, Any]) -> None:
    for name, digest in _digests(folder, about).items():
        if about["sha256"].get(name) != digest:
            raise InputError(f"{folder / name} is damaged: its content does not match its digest")


def _renamed(files: dict[str, str]) -> dict[str, str]:
    """Map the array names of format 1 to the present ones."""
    return {"instances" if name == "pool" else name: file for name, file in files.items()}


def _saved_files(folder: Path) -> set[str] | None:
    """Return the array files of the current save; None if it cannot be read."""
    try:
        about = json.loads((folder / "sets.json").read_text())
        return {Path(name).name for name in about["arrays"].values()}
    except FileNotFoundError:
        return set()
    except DAMAGE:
        return None
