"""Describe the columns of an instance table and how they become numbers.

`Columns` holds the user's choices. `Schema` holds what was learned from the training table: the
features that match the patterns, their categories, offsets and imputed values, and the classes. A
schema is recorded with the run, so that later tables are read in exactly the same way. It is
learned from all rows of the table, before sets are held out for validation or test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from capnets.errors import InputError, unknown
from capnets.ingest.dates import PARTS
from capnets.records import Record

__all__ = [
    "MISSING",
    "MOLECULES",
    "ROW",
    "Columns",
    "Feature",
    "Schema",
    "matches",
    "missing_column",
]

MISSING = ("refuse", "mean", "zero")
#: Encoders of a text column that holds SMILES.
MOLECULES = ("atoms", "fragments", "conformers")
#: Name of the set column of a table whose rows are documents: each row is a set.
ROW = "(row)"


@dataclass(frozen=True)
class Columns(Record):
    """The meaning of the columns of a table with one row per instance.

    Parameters
    ----------
    set
        Column that names the set of an instance. The rows of a set need not be contiguous.
        Optional if rows are documents (see `text`).
    target
        Column or columns to predict; constant within a set. Several targets are several amounts
        or, for a classifier, several labels of 0 and 1.
    features
        Names or patterns (`atom_*`). By default every column that has no other meaning. A pattern
        does not match the stored index of a frame.
    categories
        Names or patterns of features that are categories although they look like numbers.
        Booleans and Arrow or pandas categories always are, and text with at most 20 values is.
    hashed
        Names or patterns of categories with very many values. Every value is hashed into one of
        `buckets` inputs, so unseen values are allowed and some values share an input.
    order
        Column that orders the instances of a set; by default the order of the rows.
    group
        Column that groups sets; no group is split between training and validation.
    weight
        Column with the training weight of a set; constant within a set.
    missing
        Imputation of missing numbers: `refuse` raises an error, `zero` and `mean` fill them. The
        mean is taken over all rows of the training table, including sets that are held out later.
        Unless refused, missing and unseen categories are encoded as all zeros.
    text
        Column of text, which estimators turn into sentence vectors. With a set column, a row is a
        sentence; without one, a row is a document and its sentences are the set. Other columns are
        features only if they are named.
    buckets
        Number of inputs of a hashed category.
    encoder
        Encoder of the text column: the name or the folder of a sentence-transformers model (empty:
        the one of the extra `text`), or `atoms`, `fragments` or `conformers` of a SMILES (extra
        `chem`).
    skip
        Whether to skip rows whose text has no instance, such as an unparseable SMILES; a warning
        names and counts them. By default they are an error.
    covariates
        Names or patterns of columns that are known of a set as a whole, such as the age of a
        patient; constant within a set, numbers or categories. The baseline depends on them, and
        every added value may. They are no features.
    split
        Column that assigns sets to training, validation and test: `train`, `valid` or `test`.
    file
        Column with the name of the feature file of a row, for tables of feature folders; by
        default a column with a usual name (FILENAME, SLIDE, slide_id), or the set column.
    coordinates
        Whether the coordinates of a feature folder, in sides of a tile, are two more features.
    """

    set: str = ""
    target: tuple[str, ...] = ()
    features: tuple[str, ...] = ("*",)
    categories: tuple[str, ...] = ()
    order: str | None = None
    group: str | None = None
    weight: str | None = None
    missing: str = "refuse"
    text: str | None = None
    hashed: tuple[str, ...] = ()
    buckets: int = 64
    encoder: str = ""
    skip: bool = False
    split: str | None = None
    file: str | None = None
    covariates: tuple[str, ...] = ()
    coordinates: bool = False

    def __post_init__(self) -> None:
        if not self.set:
            if self.text is None:
                raise InputError("name the set column: it names the set of each instance")
            object.__setattr__(self, "set", ROW)
        for name in ("target", "features", "categories", "hashed", "covariates"):
            object.__setattr__(self, name, _listed(name, getattr(self, name)))
        for name in ("set", "order", "group", "weight", "text", "split", "file"):
            if not isinstance(getattr(self, name), str | None):
                raise InputError(
                    f"{name} must be the name of a column, not {getattr(self, name)!r}"
                )
        if self.encoder in MOLECULES and (self.text is None or self.set != ROW):
            raise InputError(
                f"encoder {self.encoder!r}: name the SMILES column as text, and no set column; "
                "every row is a molecule"
            )
        if not 2 <= self.buckets <= 65536:
            raise InputError(f"buckets must be from 2 to 65,536, not {self.buckets}")
        if self.missing not in MISSING:
            raise unknown("rule for missing values", self.missing, MISSING)
        self._check_meanings()

    def _check_meanings(self) -> None:
        """Refuse a column with two meanings."""
        others = (self.order, self.group, self.weight, self.text, self.split)
        named = [self.set, *self.target, *self.covariates, *filter(None, others)]
        for name in named:
            if named.count(name) > 1 and (name != self.order or name in self.covariates):
                raise InputError(f"column {name!r} is given two meanings; name another column")

    def choose(self, names: list[str], *, where: str, index: Iterable[str] = ()) -> list[str]:
        """Return the feature columns among the names, in order.

        A pattern without a match is an error. Columns of a stored `index` are features only if they
        are named.
        """
        others = (self.order, self.group, self.weight, self.text, self.split, self.file)
        taken = {self.set, *self.target, *others, *index, *self.choose_covariates(names, where)}
        vectors = [n for n in names if self.text is not None and n.startswith(f"{self.text}[")]
        chosen: dict[str, None] = dict.fromkeys(vectors)
        for pattern in () if vectors and self.features == ("*",) else self.features:
            found = [n for n in names if matches(n, pattern)]
            found = [n for n in found if n not in taken or n == pattern]
            if not found:
                raise missing_column(pattern, names, where=where)
            chosen |= dict.fromkeys(found)
        for name in chosen:
            if name == self.set or name in self.target:
                raise InputError(f"column {name!r} cannot be a feature: it is the set or a target")
            if any(matches(name, pattern) for pattern in self.covariates):
                raise InputError(
                    f"column {name!r} is named as a feature and as a covariate; name it once"
                )
        return [n for n in names if n in chosen]

    def choose_covariates(self, names: list[str], where: str) -> list[str]:
        """Return the covariates among the names, in order; a pattern without a match is an error.

        Columns with another meaning match no pattern.
        """
        others = (self.order, self.group, self.weight, self.text, self.split, self.file)
        taken = {self.set, *self.target, *others}
        chosen: set[str] = set()
        for pattern in self.covariates:
            found = [n for n in names if matches(n, pattern) and n not in taken]
            if not found:
                raise missing_column(pattern, names, where=where)
            chosen |= set(found)
        return [n for n in names if n in chosen]

    def is_category(self, name: str) -> bool:
        """Return whether the user declared this column a category."""
        return any(matches(name, pattern) for pattern in self.categories)

    def is_hashed(self, name: str) -> bool:
        """Return whether the user declared this column a category to be hashed."""
        return any(matches(name, pattern) for pattern in self.hashed)


@dataclass(frozen=True)
class Feature(Record):
    """A feature column: a number, a category with known values, a hashed category, or a date.

    Parameters
    ----------
    name
        Name of the column.
    categories
        Known values of a category; None for a number.
    fill
        Value that replaces a missing number; None if missing numbers raise an error.
    offset
        Number that is subtracted in float64. It differs from 0 only if float32 cannot distinguish
        the values of the column, such as times in seconds or projected coordinates.
    buckets
        Number of inputs of a hashed category; 0 for other columns.
    date
        Whether the column holds dates; see `capnets.ingest.dates`.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | None = None
    offset: float = 0.0
    buckets: int = 0
    date: bool = False

    @property
    def kind(self) -> str:
        """Kind of the column: number, category, hashed or date."""
        if self.date:
            return "date"
        return "hashed" if self.buckets else "number" if self.categories is None else "category"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that the column becomes."""
        if self.categories is not None:
            return tuple(f"{self.name}={c}" for c in self.categories)
        if self.buckets:
            return tuple(f"{self.name}#{k}" for k in range(self.buckets))
        if self.date:
            return tuple(f"{self.name}{part}" for part in PARTS)
        if not self.offset:
            return (self.name,)
        amount = str(abs(self.offset)).removesuffix(".0")
        return (f"{self.name}{'-' if self.offset > 0 else '+'}{amount}",)


@dataclass(frozen=True)
class Schema(Record):
    """The encoding of tables for one network.

    Parameters
    ----------
    columns
        Meaning of the columns.
    features
        Feature columns, in order.
    classes
        Sorted classes of a target that is not an amount: integers, Booleans or text. Class k is
        output k.
    covariates
        Columns that describe sets as a whole, in order.
    """

    columns: Columns
    features: tuple[Feature, ...]
    classes: tuple[str | int, ...] | None = None
    covariates: tuple[Feature, ...] = ()

    @property
    def covariate_names(self) -> tuple[str, ...] | None:
        """Name of each number that the covariates become; None without covariates."""
        return tuple(name for feature in self.covariates for name in feature.names) or None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each input of the network."""
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """Column of each input of the network."""
        return tuple(feature.name for feature in self.features for _ in feature.names)

    @property
    def numbers(self) -> dict[Any, int]:
        """Position of each number column among the inputs of the network."""
        found, place = {}, 0
        for feature in self.features:
            if feature.kind == "number":
                found[feature.name] = place
            place += len(feature.names)
        return found

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read the output of `to_dict`."""
        features = tuple(Feature.from_dict(f) for f in values["features"])
        covariates = tuple(Feature.from_dict(f) for f in values.get("covariates", ()))
        columns = Columns.from_dict(values["columns"])
        read = {"columns": columns, "features": features, "covariates": covariates}
        return super().from_dict(values | read)


def _listed(name: str, value: Any) -> tuple[str, ...]:
    listed = (
        tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    )
    if not all(isinstance(v, str) for v in listed):
        raise InputError(f"{name} must be names of columns, not {value!r}")
    return listed


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a column; a name may itself look like a pattern.

    The name of a vector matches all of its entries:

    >>> matches("emb[3]", "emb"), matches("emb[3]", "e*"), matches("a[b]", "a[b]")
    (True, True, True)
    """
    whole = re.sub(r"\[\d+\]$", "", name)
    return pattern in (name, whole) or fnmatchcase(name, pattern)


def missing_column(name: str, names: list[str], *, where: str) -> InputError:
    """Return an error for a missing column that suggests similar names."""
    from capnets.ingest.summary import looks_like_data

    headless = looks_like_data(tuple(names))
    advice = ". The first row looks like data: add a row of column names" if headless else ""
    return InputError(f"{where}: {unknown('column', name, names)}{advice}")
