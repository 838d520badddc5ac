"""Sets of instances: a set is a list of rows of an instance table.

`Sets(pool, index, offsets, y)` holds the table once (`pool`), the rows that every set consists of
(`index`) and where each set begins (`offsets`). A hundred thousand sets of ten images are a million
integers, not copies of pictures; a user's ragged data is the same thing with `index` = 0 … n-1.
Padding exists only inside a batch (see `capnets.batches`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from capnets.atomic import write_json, writing
from capnets.errors import InputError

__all__ = ["Sets", "offsets_of", "random_orders"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sets:
    """Ragged sets over a shared table of instances.

    Parameters
    ----------
    pool
        Instances x features; features may have any shape (images are 1 x 28 x 28).
    index
        Rows of `pool`, set after set, in the order in which instances are read.
    offsets
        Set k consists of `index[offsets[k]:offsets[k + 1]]`.
    y
        One label (or a row of labels) per set; None for sets to predict.
    classes
        The class of every pool row where a set task knows it. No model ever sees it.
    ids, weights
        A name and a weight per set.
    feature_names
        One name per feature column.

    Examples
    --------
    >>> s = Sets.from_arrays([np.ones((2, 3)), np.zeros((1, 3))], y=[5.0, 1.0])
    >>> len(s), s.sizes.tolist(), s[0].shape
    (2, [2, 1], (2, 3))
    """

    pool: Array
    index: Array
    offsets: Array
    y: Array | None = None
    classes: Array | None = field(default=None, kw_only=True)
    ids: Array | None = field(default=None, kw_only=True)
    weights: Array | None = field(default=None, kw_only=True)
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check_layout()

    def _check_layout(self) -> None:
        index, offsets = self.index, self.offsets
        if offsets.ndim != 1 or len(offsets) < 1 or index.ndim != 1:
            raise InputError(
                "index and offsets must be one-dimensional, offsets with one entry more than sets"
            )
        if offsets[0] != 0 or offsets[-1] != len(index):
            raise InputError(
                f"offsets must run from 0 to the length of index ({len(index)}), "
                f"not from {offsets[0]} to {offsets[-1]}"
            )
        sizes = np.diff(offsets)
        if (sizes < 0).any():
            raise InputError(
                f"offsets must not decrease; they do after set {int(np.argmax(sizes < 0))}"
            )
        if len(index) and (index.min() < 0 or index.max() >= len(self.pool)):
            raise InputError(f"index names rows outside the pool of {len(self.pool)} instances")
        for name, values, expected in (
            ("y", self.y, len(self)),
            ("ids", self.ids, len(self)),
            ("weights", self.weights, len(self)),
            ("classes", self.classes, len(self.pool)),
            ("feature_names", self.feature_names, self.pool.shape[-1]),
        ):
            if values is not None and len(values) != expected:
                raise InputError(f"{name} has {len(values)} entries, but {expected} are needed")

    # Making -------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays: Sequence[Any], y: Any = None, **about: Any) -> Self:
        """Sets from a list with one array (instances x features) per set."""
        if not len(arrays):
            raise InputError("zero sets: give at least one array of instances x features")
        tables = [np.asarray(a, dtype=np.float32) for a in arrays]
        shape = tables[0].shape[1:]
        for k, table in enumerate(tables):
            if table.ndim < 2:
                raise InputError(
                    f"set {k} has shape {table.shape}; expected instances x features "
                    "(one instance is an array of shape (1, features))"
                )
            if table.shape[1:] != shape:
                raise InputError(
                    f"set {k} has instances of shape {table.shape[1:]}, set 0 of shape {shape}"
                )
        sizes = [len(t) for t in tables]
        pool = np.concatenate(tables)
        labels = None if y is None else np.asarray(y, dtype=np.float32)
        return cls(pool, np.arange(len(pool)), offsets_of(sizes), labels, **about)

    @classmethod
    def from_padded(cls, x: Any, mask: Any, y: Any = None, **about: Any) -> Self:
        """Sets from a padded array (sets x longest x features) and a mask that is True at instances."""
        x, mask = np.asarray(x, dtype=np.float32), np.asarray(mask, dtype=bool)
        if x.shape[:2] != mask.shape:
            raise InputError(f"mask has shape {mask.shape}, but x begins with {x.shape[:2]}")
        return cls.from_arrays([row[keep] for row, keep in zip(x, mask, strict=True)], y, **about)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """All sets of several parts; parts that share a pool go on sharing it."""
        if not parts:
            raise InputError("zero parts to concatenate")
        first = parts[0]
        offsets = offsets_of(np.concatenate([p.sizes for p in parts]))
        if all(p.pool is first.pool for p in parts):
            pool, classes = first.pool, first.classes
            index = np.concatenate([p.index for p in parts])
        else:
            starts = np.cumsum([0] + [len(p.pool) for p in parts[:-1]])
            pool = np.concatenate([p.pool for p in parts])
            classes = _joined([p.classes for p in parts])
            index = np.concatenate([p.index + s for p, s in zip(parts, starts, strict=True)])
        return cls(
            pool, index, offsets, _joined([p.y for p in parts]),
            classes=classes, ids=_joined([p.ids for p in parts]),
            weights=_joined([p.weights for p in parts]), feature_names=first.feature_names,
        )  # fmt: skip

    # Looking ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Array:
        """How many instances each set has."""
        return np.diff(self.offsets)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of one instance."""
        return tuple(self.pool.shape[1:])

    @property
    def in_features(self) -> int:
        """How many features an instance has (the last axis)."""
        return int(self.pool.shape[-1])

    @property
    def outputs(self) -> int:
        """How many labels a set has."""
        return 1 if self.y is None or self.y.ndim == 1 else int(self.y.shape[1])

    def rows(self, k: int) -> Array:
        """The pool rows of set k."""
        return self.index[self.offsets[k] : self.offsets[k + 1]]

    def __getitem__(self, key: int | slice) -> Any:
        """The instances of one set, or (for a slice) the sets of a range, without copying."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                return self.subset(np.arange(start, stop, step))
            stop = max(start, stop)
            begin, end = self.offsets[start], self.offsets[stop]
            return replace(
                self, index=self.index[begin:end], offsets=self.offsets[start : stop + 1] - begin,
                **{n: None if v is None else v[start:stop] for n, v in self._per_set()},
            )  # fmt: skip
        if not -len(self) <= key < len(self):
            raise IndexError(f"set {key} of {len(self)}")
        return self.pool[self.rows(key % len(self))]

    def subset(self, chosen: Any) -> Self:
        """The chosen sets, by number or by a Boolean per set, in the order given."""
        chosen = np.asarray(chosen)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        sizes = self.sizes[chosen]
        offsets = offsets_of(sizes)
        positions = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return replace(
            self, index=self.index[positions], offsets=offsets,
            **{n: None if v is None else v[chosen] for n, v in self._per_set()},
        )  # fmt: skip

    def split(self, shares: Sequence[float], generator: torch.Generator) -> list[Self]:
        """Random parts of the sets in the given shares; no set is in two parts."""
        if abs(sum(shares) - 1) > 1e-6 or min(shares) < 0:
            raise InputError(f"shares must be positive and sum to 1, not {list(shares)}")
        order = torch.randperm(len(self), generator=generator).numpy()
        cuts = np.round(np.cumsum(shares)[:-1] * len(self)).astype(int)
        return [self.subset(np.sort(part)) for part in np.split(order, cuts)]

    def check_finite(self) -> None:
        """Raise an error that names the first set and column with a NaN or infinite feature."""
        for start in range(0, len(self.pool), 65536):
            bad = ~np.isfinite(self.pool[start : start + 65536])
            if bad.any():
                row, *column = np.argwhere(bad)[0]
                row += start
                where = np.flatnonzero(self.index == row)
                owner = (
                    f"set {np.searchsorted(self.offsets, where[0], 'right') - 1}"
                    if len(where)
                    else "no set"
                )
                name = self.feature_names[column[-1]] if self.feature_names else column[-1]
                raise InputError(
                    f"instance {row} (of {owner}) has the value {self.pool[(row, *column)]} in column {name}; "
                    "replace or drop missing and infinite values first"
                )
        if self.y is not None and not np.isfinite(self.y).all():
            raise InputError(
                f"the label of set {int(np.argwhere(~np.isfinite(self.y))[0][0])} is not finite"
            )

    # Orders -------------------------------------------------------------------------------------

    def reorder(self, order: Any) -> Self:
        """The same sets with their instances in another order.

        `order` holds, set after set, positions inside the set: position 0 is its first instance.
        """
        order = np.asarray(order)
        starts = np.repeat(self.offsets[:-1], self.sizes)
        seen = np.zeros(len(self.index), dtype=bool)
        sizes = np.repeat(self.sizes, self.sizes)
        if order.shape != self.index.shape or ((order < 0) | (order >= sizes)).any():
            raise InputError("an order names every position of every set once, set after set")
        seen[starts + order] = True
        if not seen.all():
            bad = int(np.searchsorted(self.offsets, np.argmin(seen), "right") - 1)
            raise InputError(f"the order given for set {bad} is not a permutation of its instances")
        return replace(self, index=self.index[starts + order])

    def shuffled(self, generator: torch.Generator) -> Self:
        """The same sets, the instances of each in a random order."""
        return self.reorder(random_orders(self.sizes, generator))

    # Keeping ------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the sets as a folder of .npy files that `load` maps into memory."""
        folder = Path(folder)
        arrays = {
            "pool": self.pool,
            "index": self.index,
            "offsets": self.offsets,
            "classes": self.classes,
        }
        present = []
        for name, values in (*arrays.items(), *self._per_set()):
            if values is not None:
                with writing(folder / f"{name}.npy") as path, path.open("wb") as file:
                    np.save(file, values, allow_pickle=False)
                present.append(name)
        names = None if self.feature_names is None else list(self.feature_names)
        write_json(folder / "sets.json", {"format": 1, "arrays": present, "feature_names": names})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; arrays stay on disk until they are used."""
        folder = Path(folder)
        try:
            about = json.loads((folder / "sets.json").read_text())
            arrays = {
                n: np.load(folder / f"{n}.npy", mmap_mode="r", allow_pickle=False)
                for n in about["arrays"]
            }
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{folder} holds no complete saved sets: {error}") from error
        names = about["feature_names"]
        return cls(**arrays, feature_names=None if names is None else tuple(names))

    def _per_set(self) -> list[tuple[str, Array | None]]:
        return [("y", self.y), ("ids", self.ids), ("weights", self.weights)]


def offsets_of(sizes: Any) -> Array:
    """Where each set begins, and where the last one ends.

    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def random_orders(sizes: Any, generator: torch.Generator) -> Array:
    """A random order for sets of the given sizes, as `Sets.reorder` takes it."""
    sizes = np.asarray(sizes, dtype=np.int64)
    keys = torch.rand(int(sizes.sum()), generator=generator, dtype=torch.float64)
    if len(sizes) and (sizes == sizes[0]).all():  # one sort of rows is far quicker than one of all
        return keys.view(len(sizes), -1).argsort(dim=1).flatten().numpy()
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((keys.numpy(), owner))
    return order - np.repeat(offsets_of(sizes)[:-1], sizes)


def _joined(parts: list[Array | None]) -> Array | None:
    present = [p for p in parts if p is not None]
    if present and len(present) < len(parts):
        raise InputError("either all parts or none must have y, ids, weights and classes")
    return np.concatenate(present) if present else None
