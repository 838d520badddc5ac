"""Ragged sets over a shared table of instances.

`Sets(instances, index, offsets, y)` stores the table once (`instances`), the rows of each set
(`index`) and where each set begins (`offsets`). A hundred thousand sets of ten images are a million
integers, not copies of images. Ragged arrays are the special case `index` = 0 … n - 1. Padding
exists only inside a batch (see `capnets.sets.batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import EllipsisType
from typing import Any, Self, overload

import numpy as np
import torch

from capnets.errors import InputError
from capnets.memory import check_memory
from capnets.sets import covariates, display, storage, validation
from capnets.sets.precision import HALF
from capnets.sets.ragged import (
    Array,
    offsets_of,
    owner_of,
    positions_of,
    random_orders,
    starts_of,
)  # fmt: skip

__all__ = ["Array", "Sets", "offsets_of", "random_orders"]


@dataclass(frozen=True, eq=False, repr=False)
class Sets:
    """Ragged sets over a shared table of instances.

    Parameters
    ----------
    instances
        Instances x features; features may have any shape (images are 1 x 28 x 28). A memory-mapped
        array stays on disk. float16 and bfloat16 are kept; batches are converted to float32.
    index
        Rows of `instances`, set after set, in the order in which a network reads them.
    offsets
        Set k is `index[offsets[k]:offsets[k + 1]]`.
    y
        One label, or a row of labels, per set; None for sets to predict.
    classes, coords
        Class of each row of `instances`, if a task knows it, and its place: rows x axes. Networks
        never see them.
    ids, weights
        Name and weight of each set.
    covariates
        Sets x covariates: features of whole sets; see `capnets.sets.covariates`.
    feature_names, covariate_names
        Name of each feature and of each covariate.

    Examples
    --------
    >>> s = Sets.from_arrays([np.ones((2, 3)), np.zeros((1, 3))], y=[5.0, 1.0])
    >>> len(s), s.sizes.tolist(), s[0].shape
    (2, [2, 1], (2, 3))
    """

    instances: Array
    index: Array
    offsets: Array
    y: Array | None = None
    classes: Array | None = field(default=None, kw_only=True)
    coords: Array | None = field(default=None, kw_only=True)
    ids: Array | None = field(default=None, kw_only=True)
    weights: Array | None = field(default=None, kw_only=True)
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    covariates: Array | None = field(default=None, kw_only=True)
    covariate_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in storage.ARRAYS:
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, validation.as_array(values, name))
        if (
            self.ids is not None and self.ids.dtype == object
        ):  # object arrays cannot be saved without pickle
            object.__setattr__(self, "ids", self.ids.astype(str))
        for name in ("feature_names", "covariate_names"):
            if (names := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(names))
        validation.check_kinds(self)
        for name in ("index", "offsets"):
            object.__setattr__(self, name, getattr(self, name).astype(np.int64, copy=False))
        validation.check_layout(self)
        covariates.check_covariates(self)

    # Construction -------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls, arrays: Sequence[Any], y: Any = None, *, learning: bool | None = None, **about: Any
    ) -> Self:
        """Build sets from a list with one array (instances x features) per set.

        With `learning` (default: if there are labels), columns whose values float32 cannot
        distinguish raise an error. Sets to predict are not checked: few sets may have equal values.
        """
        if not len(arrays):
            raise InputError("zero sets: give at least one array of instances x features")
        tables = [validation.as_array(a, f"set {k}") for k, a in enumerate(arrays)]
        shape = tables[0].shape[1:]
        for k, table in enumerate(tables):
            if table.ndim < 2:
                raise InputError(
                    f"set {k} has shape {table.shape}; expected instances x features "
                    "(one instance is an array of shape (1, features))"
                )
            if table.shape[1:] != shape:
                raise InputError(
                    f"set {k} has instances of shape {table.shape[1:]}, set 0 of shape {shape}; "
                    "all instances must have the same features"
                )
        offsets = offsets_of([len(t) for t in tables])
        check_memory(
            4 * sum(t.size for t in tables),
            what=f"{len(tables):,} sets with {offsets[-1]:,} instances of shape {shape}",
            advice="write the instances to a .npy file and pass it memory-mapped to Sets",
        )
        half = tables[0].dtype in HALF and all(t.dtype == tables[0].dtype for t in tables)
        pool = np.empty((offsets[-1], *shape), dtype=tables[0].dtype if half else np.float32)
        for k, table in enumerate(tables):
            part = pool[offsets[k] : offsets[k + 1]]
            part[:] = table if half else validation.numbers(table, f"set {k}")
        labels = None if y is None else validation.labels(y, "y")
        sets = cls(pool, np.arange(len(pool)), offsets, labels, **about)
        if y is not None if learning is None else learning:
            validation.check_digits(sets, tables)
        return sets

    @classmethod
    def from_padded(cls, x: Any, mask: Any = None, y: Any = None, **about: Any) -> Self:
        """Build sets from a padded array (sets x longest x features) and a mask.

        The mask is True at instances. Without a mask every set fills its row.
        """
        x = validation.as_array(x, "x")
        if x.ndim < 3:
            raise InputError(f"x has shape {x.shape}; expected sets x instances x features")
        mask = np.ones(x.shape[:2]) if mask is None else validation.as_array(mask, "mask")
        mask = mask.astype(bool)
        if x.shape[:2] != mask.shape:
            raise InputError(f"mask has shape {mask.shape}, but x begins with {x.shape[:2]}")
        return cls.from_arrays([row[keep] for row, keep in zip(x, mask, strict=True)], y, **about)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the sets of several parts; a shared instance table stays shared."""
        if not parts:
            raise InputError("zero parts to concatenate")
        first = parts[0]
        for k, part in enumerate(parts):
            for name in ("feature_shape", "feature_names", "covariate_names", "outputs"):
                here, there = getattr(part, name), getattr(first, name)
                if here != there:
                    raise InputError(f"part {k} has {name} {here}, part 0 has {there}")
        offsets = offsets_of(np.concatenate([p.sizes for p in parts]))
        if all(p.instances is first.instances for p in parts):
            pool, classes, coords = first.instances, first.classes, first.coords
            index = np.concatenate([p.index for p in parts])
        else:
            starts = np.cumsum([0] + [len(p.instances) for p in parts[:-1]])
            pool = np.concatenate([p.instances for p in parts])
            classes = _joined("classes", [p.classes for p in parts])
            coords = _joined("coords", [p.coords for p in parts])
            index = np.concatenate([p.index + s for p, s in zip(parts, starts, strict=True)])
        return cls(
            pool,
            index,
            offsets,
            _joined("y", [p.y for p in parts]),
            classes=classes,
            coords=coords,
            ids=_joined("ids", [p.ids for p in parts]),
            weights=_joined("weights", [p.weights for p in parts]),
            feature_names=first.feature_names,
            covariates=_joined("covariates", [p.covariates for p in parts]),
            covariate_names=first.covariate_names,
        )

    # Access -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return display.describe(self)

    def _repr_html_(self) -> str:
        return display.preview(self)

    @property
    def shape(self) -> tuple[int]:
        """Number of sets, as a shape: scikit-learn then divides `Sets` into `Sets`, not lists."""
        return (len(self),)

    @property
    def sizes(self) -> Array:
        """Number of instances of each set."""
        return np.diff(self.offsets)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of an instance."""
        return tuple(self.instances.shape[1:])

    @property
    def in_features(self) -> int:
        """Number of features (size of the last axis)."""
        return int(self.instances.shape[-1])

    @property
    def n_covariates(self) -> int:
        """Number of covariates."""
        return 0 if self.covariates is None else int(self.covariates.shape[1])

    @property
    def outputs(self) -> int:
        """Number of labels per set."""
        return 1 if self.y is None or self.y.ndim == 1 else int(self.y.shape[1])

    def rows(self, k: int) -> Array:
        """Return the rows of `instances` that make up set k."""
        return self.index[self.offsets[k] : self.offsets[k + 1]]

    @overload
    def __getitem__(self, key: int) -> Array: ...

    @overload
    def __getitem__(self, key: slice | Array | tuple[Array, EllipsisType]) -> Self: ...

    def __getitem__(self, key: int | slice | Array | tuple[Array, EllipsisType]) -> Array | Self:
        """Return the instances of one set, the sets of a slice without copying, or chosen sets."""
        if isinstance(key, tuple):
            key = key[0]
        if isinstance(key, list | np.ndarray):
            return self.subset(key)
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                return self.subset(np.arange(start, stop, step))
            stop = max(start, stop)
            begin, end = self.offsets[start], self.offsets[stop]
            offsets = self.offsets[start : stop + 1] - begin
            return self._part(slice(start, stop), self.index[begin:end], offsets)
        if not -len(self) <= key < len(self):
            raise IndexError(f"there is no set {key}: there are {len(self)}")
        instances: Array = self.instances[self.rows(key % len(self))]
        return instances

    def subset(self, chosen: Any) -> Self:
        """Return the chosen sets, by index or by a Boolean per set, in the given order."""
        chosen = np.asarray(chosen)
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise InputError(f"{chosen.size} Booleans cannot choose among {len(self)} sets")
            chosen = np.flatnonzero(chosen)
        elif chosen.size and chosen.dtype.kind not in "iu":
            raise InputError(f"sets are chosen by whole numbers or Booleans, not {chosen.dtype}")
        chosen = chosen.astype(np.int64)
        outside = (chosen < -len(self)) | (chosen >= len(self))
        if outside.any():
            raise InputError(f"there is no set {chosen[outside][0]}: there are {len(self)}")
        chosen = chosen % max(len(self), 1)
        sizes = self.sizes[chosen]
        rows = np.repeat(self.offsets[chosen], sizes) + positions_of(sizes)
        return self._part(chosen, self.index[rows], offsets_of(sizes))

    def _part(self, chosen: slice | Array, index: Array, offsets: Array) -> Self:
        names = ("y", "ids", "weights", "covariates")
        parts: dict[str, Any] = {
            n: None if (v := getattr(self, n)) is None else v[chosen] for n in names
        }
        return replace(self, index=index, offsets=offsets, **parts)

    def split(self, shares: Sequence[float], generator: torch.Generator) -> list[Self]:
        """Split the sets at random into parts of the given shares."""
        if abs(sum(shares) - 1) > 1e-6 or min(shares) < 0:
            raise InputError(f"shares must be positive and sum to 1, not {list(shares)}")
        order = torch.randperm(len(self), generator=generator).numpy()
        cuts = np.round(np.cumsum(shares)[:-1] * len(self)).astype(int)
        return [self.subset(np.sort(part)) for part in np.split(order, cuts)]

    def check_finite(self) -> None:
        """Raise an error that names the first set and column with a NaN or infinite feature.

        Rows of `instances` that no set uses may hold anything.
        """
        validation.check_finite(self)

    # Orders -------------------------------------------------------------------------------------

    def reorder(self, order: Any) -> Self:
        """Return the sets with their instances in another order.

        `order` lists, set after set, positions inside the set: position 0 is its first instance.
        """
        order = np.asarray(order)
        starts = starts_of(self.sizes)
        seen = np.zeros(len(self.index), dtype=bool)
        sizes = np.repeat(self.sizes, self.sizes)
        if order.shape != self.index.shape or ((order < 0) | (order >= sizes)).any():
            raise InputError("an order names every position of every set once, set after set")
        seen[starts + order] = True
        if not seen.all():
            bad = owner_of(self.offsets, np.argmin(seen))
            raise InputError(f"the order given for set {bad} is not a permutation of its instances")
        return replace(self, index=self.index[starts + order])

    def shuffled(self, generator: torch.Generator) -> Self:
        """Return the sets with the instances of each in a random order."""
        return self.reorder(random_orders(self.sizes, generator))

    # Storage ------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the sets to a folder of .npy files that `load` memory-maps."""
        arrays = {n: v for n in storage.ARRAYS if (v := getattr(self, n)) is not None}
        storage.write(Path(folder), arrays, self.feature_names, self.covariate_names)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; arrays stay on disk until they are used."""
        try:
            return cls(**storage.read(Path(folder)))
        except TypeError as error:
            raise InputError(f"{folder} holds no complete saved sets: {error}") from error


def _joined(name: str, parts: list[Array | None]) -> Array | None:
    present = [p for p in parts if p is not None]
    if present and len(present) < len(parts):
        raise InputError(f"either all parts or none must have {name}")
    return np.concatenate(present) if present else None
