"""Sets on disk: a folder of .npy files, and sets.json which says what they are.

The arrays of a save go beside those of an earlier one; sets.json changes from the old ones to the
new ones in one step. So a reader never meets a mixture, and a save that fails leaves the earlier
one as it was.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.files import write_json, writing
from capnets.sets.ragged import Array

__all__ = ["ARRAYS", "read", "write"]

ARRAYS = ("instances", "index", "offsets", "y", "classes", "ids", "weights")

#: What is written; a reader refuses a higher number.
FORMAT = 2
DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def write(
    folder: Path,
    arrays: dict[str, Array],
    feature_names: tuple[str, ...] | None,
    *,
    ready: dict[str, Path] | None = None,
) -> None:
    """Write the arrays and remove those of an earlier save; or, on failure, the other way round.

    `ready` names arrays that are .npy files in the folder already, too large to be written twice.
    """
    token = secrets.token_hex(4)
    ready = ready or {}
    files = {name: f"{name}-{token}.npy" for name in (*arrays, *ready)}
    useless, before = list(files.values()), _saved_files(folder)
    try:
        for name, values in arrays.items():
            with writing(folder / files[name]) as path, path.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        for name, path in ready.items():
            path.rename(folder / files[name])
        about = {"format": FORMAT, "arrays": files, "feature_names": feature_names}
        write_json(folder / "sets.json", about)
        useless = before
    finally:
        for name in useless:
            (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Any]:
    """The arrays, mapped into memory, and the names of the features."""
    try:
        about = json.loads((folder / "sets.json").read_text())
        if about["format"] > FORMAT:
            raise InputError(
                f"{folder} was written by a newer version of capnets (format {about['format']}; "
                f"this one reads up to {FORMAT}); upgrade capnets to read it"
            )
        return {"feature_names": about["feature_names"]} | {
            # Only a name: a folder may come from anywhere, and must not point elsewhere.
            name: np.load(folder / Path(file).name, mmap_mode="r", allow_pickle=False)
            for name, file in _renamed(about["arrays"]).items()
            if name in ARRAYS
        }
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"{folder} holds no complete saved sets: {error}") from error


def _renamed(files: dict[str, str]) -> dict[str, str]:
    """Map the array names of format 1 to the present ones."""
    return {"instances" if name == "pool" else name: file for name, file in files.items()}


def _saved_files(folder: Path) -> list[str]:
    """The array files of an earlier save, if there was one that can be read."""
    try:
        about = json.loads((folder / "sets.json").read_text())
        return [Path(name).name for name in about["arrays"].values()]
    except DAMAGE:
        return []
