"""Read labels and weights: one value per set, given per set or per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from capnets.errors import InputError
from capnets.ingest import SetData
from capnets.ingest.encode import as_text
from capnets.sets import Array, Sets
from capnets.sets.ragged import owner_of

__all__ = ["labels_of", "named", "per_set", "weighted", "weights_of"]


#: Types of amounts and labels; None is a missing value.
NUMBERS = (bool, int, float, np.bool_, np.number)


def labels_of(y: Any, data: SetData) -> Array:
    """Return labels per set: y, the target columns of the table, or those of the sets."""
    import pandas as pd

    if y is None and data.sets.y is None:
        raise InputError("y is missing: give one label per set, or name the target column")
    labels = np.asarray(data.sets.y) if y is None else per_set(y, data, name="y")
    missing = np.argwhere(pd.isna(labels))
    if len(missing):
        raise InputError(
            f"the label of {named(data.sets, missing[0][0])} is {labels[tuple(missing[0])]}; "
            "give it one or drop the set"
        )
    return labels


def per_set(values: Any, data: SetData, *, name: str) -> Array:
    """Return one value, or row of values, per set; a table may repeat it in every row of the set.

    A pandas index is matched with the names of sets or rows: values grouped by set are sorted by
    name, while sets are numbered by first appearance.
    """
    listed = _array(values, name)
    sets = data.sets
    if listed.shape[:1] not in {(len(sets),), (data.n_rows,)}:
        rows = "" if data.n_rows is None else f" or {data.n_rows} (one per row)"
        count = f"{len(listed)} entries" if listed.ndim else "no entries"
        raise InputError(f"{name} has {count}; {len(sets)} (one per set){rows} needed")
    if hasattr(values, "iloc"):
        listed = listed[_places(values.index, data, name)]
    return listed if len(listed) == len(sets) else _constant(listed, sets, name)


def weights_of(sample_weight: Any, data: SetData) -> Array:
    """Return one weight per set; a frame of one column counts as that column."""
    if hasattr(sample_weight, "iloc") and sample_weight.shape[1:] == (1,):
        sample_weight = sample_weight.iloc[:, 0]
    return per_set(sample_weight, data, name="sample_weight")


def weighted(sets: Sets, *weights: Array | None) -> Sets:
    """Return the sets with their weights multiplied by the given ones."""
    factors = [_weights(w, sets) for w in (sets.weights, *weights) if w is not None]
    if not factors:
        return sets
    product: Array = np.prod(factors, axis=0)
    if not product.any():
        raise InputError("all weights are zero; some must be above 0")
    # Mean 1, so that weights do not change the effective learning rate.
    return replace(sets, weights=(product / product.mean()).astype(np.float32))


def _weights(values: Array, sets: Sets) -> Array:
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights must be numbers: {error}") from error
    if weights.shape != (len(sets),):
        raise InputError(f"weights have shape {weights.shape}; expected one per set")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(
            f"the weight of {named(sets, k)} is {weights[k]:g}; "
            "weights must be finite and not negative. Correct it, or drop the set."
        )
    return weights


def _array(values: Any, name: str) -> Array:
    try:
        listed = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} has rows of unequal lengths; expected one per set") from error
    if listed.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} holds complex numbers")
    # pandas returns columns of several types, or with missing values, as objects.
    if listed.dtype == object and all(isinstance(v, NUMBERS) for v in listed.flat):
        return np.array(listed.tolist()).reshape(listed.shape)
    return listed


def _constant(listed: Array, sets: Sets, name: str) -> Array:
    """Return the value of every set from values in the order of the rows of a table."""
    import pandas as pd

    listed = listed[sets.index]
    first: Array = listed[sets.offsets[:-1]]
    expected = np.repeat(first, sets.sizes, axis=0)
    gaps, expected_gaps = pd.isna(listed), pd.isna(expected)
    varies = gaps != expected_gaps  # NaN is not equal to itself
    both = ~(gaps | expected_gaps)
    varies[both] = listed[both] != expected[both]
    if varies.any():
        k = owner_of(sets.offsets, np.argwhere(varies)[0][0])
        raise InputError(f"{name} varies within {named(sets, k)}; it must be constant within a set")
    return first


def _places(index: Any, data: SetData, name: str) -> Array:
    """Find the sets (or rows) of X in a pandas index; return positions in the order of X."""
    found = [p for p in _readings(index, data) if p is not None]
    if not found:
        raise InputError(
            f"the index of {name} ({index[0]!r}, …) names neither the sets of X nor its rows; "
            f"index {name} by the names of the sets, or give {name}.to_numpy() in the order in "
            "which the sets first appear in X"
        )
    if any((p != found[0]).any() for p in found):
        raise InputError(
            f"the index of {name} may name the sets of X or its rows, which are in another order; "
            f"give {name}.to_numpy() in the order of X"
        )
    return found[0]


def _readings(index: Any, data: SetData) -> Iterator[Array | None]:
    """Yield the positions of the sets and of the rows in an index; None if it lacks them."""
    import pandas as pd

    if data.set_names is None and data.row_names is None:
        yield np.arange(len(index))  # nothing in X has a name
    if data.set_names is not None and len(index) == len(data.sets):
        # Set names are integers or text, whatever the type of their column was.
        names, listed = ([as_text(n) for n in names] for names in (data.set_names, index))
        yield _found(pd.Index(names), pd.Index(listed))
    if data.row_names is not None and len(index) == data.n_rows:
        yield _found(pd.Index(data.row_names), index)


def _found(names: Any, index: Any) -> Array | None:
    if index.equals(names):
        return np.arange(len(index))
    if not (index.is_unique and names.is_unique):
        return None
    places: Array = index.get_indexer(names)
    return None if (places < 0).any() else places


def named(sets: Sets, k: int) -> str:
    """Name a set in a message, by its name or its number."""
    return f"set {k if sets.ids is None else sets.ids[k]}"
