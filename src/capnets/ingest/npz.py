"""Sets from an .npz file: X (instances x features), offsets, y."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array, Sets, validation

__all__ = ["npz_classes", "read_npz"]


def read_npz(path: str | Path, *, labels: bool = True, learning: bool | None = None) -> Sets:
    """Read `X`, `offsets` (set k is X[offsets[k]:offsets[k + 1]]) and, if wanted, `y` or `Y`.

    Labels that are text become numbers, those of `npz_classes`. `feature_names` and `ids` are taken
    too where they are there. Nothing in the file is executed. `learning` as in `Sets.from_arrays`.
    """
    path = Path(path)
    wanted = ("X", "offsets", "ids", "feature_names")
    arrays = _arrays(path, (*wanted, "y", "Y") if labels else wanted)
    y = arrays.get("y", arrays.get("Y"))
    missing = [n for n in ("X", "offsets") if n not in arrays]
    if labels and y is None:
        missing.append("y")
    if missing:
        raise InputError(
            f"{path} has no {' and no '.join(missing)}; X (instances x features), "
            "offsets (sets + 1) and y (one label per set) are needed"
        )
    X, offsets = arrays["X"], arrays["offsets"]
    if X.dtype.kind not in "fiub":
        raise InputError(f"{path}: X holds {X.dtype} where numbers belong")
    names = arrays.get("feature_names")
    try:
        sets = Sets(
            validation.numbers(X, "X"),
            np.arange(len(X)),
            offsets,
            None if y is None else _numbers(y),
            ids=arrays.get("ids"),
            feature_names=None if names is None else tuple(map(str, names)),
        )
        if (sets.sizes == 0).any():
            raise InputError(f"set {int(np.argmin(sets.sizes))} has no instances; remove it")
        sets.check_finite()
        if labels if learning is None else learning:
            validation.check_digits(sets, [X])
    except (InputError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    return sets


def npz_classes(path: str | Path) -> tuple[str, ...] | None:
    """The classes that the labels of a file name, sorted; None where labels are numbers."""
    arrays = _arrays(Path(path), ("y", "Y"))
    y = arrays.get("y", arrays.get("Y"))
    return None if y is None or y.dtype.kind != "U" else tuple(np.unique(y).tolist())


def _arrays(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name in names}
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read as npz: {str(error).splitlines()[0]}") from error


def _numbers(y: Array) -> Array:
    if y.dtype.kind == "U":
        if y.ndim != 1:
            raise InputError(f"y holds text of shape {y.shape}; text names one class per set")
        y = np.unique(y, return_inverse=True)[1]
    if y.dtype.kind not in "fiub":
        raise InputError(f"y holds {y.dtype}; expected numbers, or text that names classes")
    return validation.labels(y, "y")
