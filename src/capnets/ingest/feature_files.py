"""Open files that hold the features of one set: HDF5, zarr, .npy and .npz.

HDF5 files of TRIDENT and CLAM hold `features` and `coords` (pixels of the full image), those of
STAMP `feats` and `coords` in micrometres. zarr groups and .npz files use the same names. Features
are read in blocks and keep their precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest.npz import DAMAGE, read_arrays
from capnets.ingest.sources import reading
from capnets.sets import Array
from capnets.sets.precision import HALF

__all__ = ["FORMATS", "FeatureFile", "open_features", "smallest_step"]

FEATURES = ("features", "feats", "patch_embeddings", "X")
#: Attributes with the side of a tile, in the unit of the coordinates.
SIDES = ("patch_size_level0", "tile_size_um", "tile_size")
#: Numbers that are read at once.
BLOCK = 2**22


@dataclass(frozen=True)
class FeatureFile:
    """The features of a file.

    Parameters
    ----------
    path
        The file.
    features
        Array or data set, instances x features.
    coords
        Place of each instance, instances x 2; None if the file has none.
    side
        Side of a tile in the unit of the coordinates; None if unknown.
    unit
        Unit of the coordinates: `px` or `um`.
    placed
        Whether the coordinates, in sides of a tile, are two more features.
    """

    path: Path
    features: Any
    coords: Array | None = None
    side: float | None = None
    unit: str = "px"
    placed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of instances and features; some writers put an axis of one before them."""
        shape = tuple(self.features.shape)
        shape = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
        if shape == (0,):
            return 0, 0
        if len(shape) != 2:
            raise InputError(f"{self.path}: features have shape {shape}; expected instances x d")
        return int(shape[0]), int(shape[1]) + 2 * self.placed

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which the features are kept: half precision, or float32."""
        found = np.dtype(self.features.dtype)
        if found.kind not in "fiu" and found not in HALF:
            raise InputError(f"{self.path}: features hold {found}; expected numbers")
        return found if found in HALF else np.dtype(np.float32)

    def blocks(self, dtype: np.dtype[Any]) -> Iterator[Array]:
        """Yield neighbouring instances, converted to a type."""
        count, width = self.shape
        rows = max(1, BLOCK // max(1, width))
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            with opening(self.path):
                part = self.features[start:stop]
                if len(self.features.shape) == 3:
                    part = self.features[0, start:stop]
            if self.placed and self.coords is not None:
                tiles = self.coords[start:stop] / (self.side or smallest_step(self.coords))
                part = np.hstack([part.astype(np.float32), tiles])
            yield np.ascontiguousarray(part, dtype=dtype)


@contextmanager
def open_features(path: Path, *, placed: bool = False) -> Iterator[FeatureFile]:
    """Open a file of features, with coordinates as features if `placed`; name a damaged one."""
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: features are read from {', '.join(FORMATS)}")
    with opening(path), FORMATS[path.suffix](path) as found:
        if found.coords is not None and found.coords.shape[:1] != found.shape[:1]:
            raise InputError(
                f"{path} has {found.shape[0]:,} instances, but {len(found.coords):,} coordinates"
            )
        if placed and found.coords is None:
            raise InputError(f"{path} has no coords, which coordinates=True (--coordinates) needs")
        yield replace(found, placed=placed)


def smallest_step(coords: Array) -> float:
    """Return the smallest distance between tiles along an axis: the side of a tile, if unknown."""
    steps = np.concatenate([np.diff(np.unique(axis)) for axis in coords.T])
    return float(steps[steps > 0].min(initial=np.inf)) if (steps > 0).any() else 1.0


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Name the file in errors of the libraries that read it."""
    with reading(str(path), path.suffix[1:], also=(*DAMAGE, AssertionError)):
        yield


@contextmanager
def _hdf5(path: Path) -> Iterator[FeatureFile]:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path} needs h5py: pip install 'capnets[slides]'") from error

    with h5py.File(path, "r") as file:
        yield _group(path, file)


@contextmanager
def _zarr(path: Path) -> Iterator[FeatureFile]:
    try:
        import zarr
    except ImportError as error:
        raise InputError(f"{path} needs zarr: pip install 'capnets[slides]'") from error

    yield _group(path, zarr.open_group(path, mode="r"))


@contextmanager
def _npz(path: Path) -> Iterator[FeatureFile]:
    arrays = read_arrays(path, (*FEATURES, "coords"))
    yield _group(path, arrays)


@contextmanager
def _npy(path: Path) -> Iterator[FeatureFile]:
    yield FeatureFile(path, np.load(path, mmap_mode="r", allow_pickle=False))


FORMATS = {".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr, ".npz": _npz, ".npy": _npy}


def _group(path: Path, group: Any) -> FeatureFile:
    """Return the features of anything that maps names to arrays."""
    name = next((name for name in FEATURES if name in group), None)
    if name is None:
        raise InputError(
            f"{path} has no features: one of {', '.join(FEATURES)} is needed, "
            f"found {', '.join(sorted(group)) or 'nothing'}"
        )
    coords, found = None, dict(getattr(group, "attrs", {}))
    if "coords" in group:
        data = group["coords"]
        found |= dict(getattr(data, "attrs", {}))
        coords = np.asarray(data[...], dtype=np.float32)
        coords = coords[0] if coords.ndim == 3 and len(coords) == 1 else coords
        if coords.ndim != 2 or coords.shape[1] < 2:
            raise InputError(f"{path}: coords have shape {coords.shape}; expected instances x 2")
        coords = coords[:, :2]
    side = next((float(found[key]) for key in SIDES if key in found), None)
    micrometres = str(found.get("unit", "")) in ("um", "µm") or "tile_size_um" in found
    return FeatureFile(path, group[name], coords, side, "um" if micrometres else "px")
