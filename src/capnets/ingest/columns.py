"""What the columns of an instance table mean, and how they become numbers.

`Columns` is what a user says; `Schema` is what was learned from the training table (the features
that the patterns stood for, their categories and offsets, what fills a gap, the classes). A schema
is recorded with the run, so that every later table is read in exactly the same way. It is learned
from all rows of that table, before any of its sets are held out for validation or test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from capnets.errors import InputError, unknown
from capnets.records import Record

__all__ = ["MISSING", "ROW", "Columns", "Feature", "Schema", "matches", "missing_column"]

MISSING = ("refuse", "mean", "zero")
#: The set column of a table whose rows are documents: each row is a set.
ROW = "(row)"


@dataclass(frozen=True)
class Columns(Record):
    """The meaning of the columns of a table with one row per instance.

    Parameters
    ----------
    set
        Says to which set an instance belongs. The rows of a set need not stand together. May be
        left out where rows are documents (see `text`).
    target
        What is to be predicted; constant within a set. Several are as many amounts or, for a
        classifier, as many labels of 0 and 1.
    features
        Names or patterns (`atom_*`); by default every column that has no other meaning. A pattern
        never means the index that a frame was stored with.
    categories
        Names or patterns of features that are categories, also where they look like numbers.
        Booleans and Arrow or pandas categories always are.
    order
        Instances are read in rising order of this column; otherwise in the order of the rows.
    group
        Sets of one group are never split between training and validation.
    weight
        The weight of a set in training; constant within a set.
    missing
        `refuse`, or what fills a gap in a number: `zero`, or the `mean` of all rows of the table
        that the schema is learned from, those of sets that are held out later included. Unless
        refused, a missing or unseen category belongs to none of the known ones.
    text
        A column of text, for estimators: sentences become vectors. With a set column every row is
        one sentence; without, a row is a document and its sentences are the set. Other columns are
        features only if they are named.
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

    def __post_init__(self) -> None:
        if not self.set:
            if self.text is None:
                raise InputError("name the set column: it says to which set an instance belongs")
            object.__setattr__(self, "set", ROW)
        for name in ("target", "features", "categories"):
            object.__setattr__(self, name, _listed(name, getattr(self, name)))
        for name in ("set", "order", "group", "weight", "text"):
            if not isinstance(getattr(self, name), str | None):
                raise InputError(
                    f"{name} must be the name of a column, not {getattr(self, name)!r}"
                )
        if self.missing not in MISSING:
            raise unknown("rule for missing values", self.missing, MISSING)
        others = (self.order, self.group, self.weight, self.text)
        named = [self.set, *self.target, *filter(None, others)]
        for name in named:
            if named.count(name) > 1 and name != self.order:
                raise InputError(f"column {name!r} is given two meanings; name another column")

    def choose(self, names: list[str], *, where: str, index: Iterable[str] = ()) -> list[str]:
        """The feature columns among the names, in order; a pattern without any is an error.

        Columns of a stored `index` are features only if they are named.
        """
        taken = {self.set, *self.target, self.order, self.group, self.weight, self.text, *index}
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
        return [n for n in names if n in chosen]

    def is_category(self, name: str) -> bool:
        """Whether the user calls this column a category."""
        return any(matches(name, pattern) for pattern in self.categories)


@dataclass(frozen=True)
class Feature(Record):
    """A feature column: a number, or a category with known values.

    Parameters
    ----------
    name
        The column.
    categories
        The known values; None for a number.
    fill
        What stands for a missing number; None where it is refused.
    offset
        What is taken off the number while it still has 64 bits. It is not 0 only where 32 bits
        would not tell the column's values apart: times in seconds, projected coordinates.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | None = None
    offset: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers that the column becomes: itself (less its offset), or one per category."""
        if self.categories is not None:
            return tuple(f"{self.name}={c}" for c in self.categories)
        if not self.offset:
            return (self.name,)
        amount = str(abs(self.offset)).removesuffix(".0")
        return (f"{self.name}{'-' if self.offset > 0 else '+'}{amount}",)


@dataclass(frozen=True)
class Schema(Record):
    """How tables are read for one network.

    Parameters
    ----------
    columns
        The meaning of the columns.
    features
        Every feature column, in order.
    classes
        The classes of a target that is not an amount, rising, as the table has them: whole
        numbers, Booleans or text. Class k is output k.
    """

    columns: Columns
    features: tuple[Feature, ...]
    classes: tuple[str | int, ...] | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name per number that a network sees."""
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The column that each number comes from."""
        return tuple(feature.name for feature in self.features for _ in feature.names)

    @property
    def numbers(self) -> dict[Any, int]:
        """Where the columns that are numbers stand among all that a network sees."""
        columns = self.feature_columns
        return {f.name: columns.index(f.name) for f in self.features if f.categories is None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        features = tuple(Feature.from_dict(f) for f in values["features"])
        columns = Columns.from_dict(values["columns"])
        return super().from_dict(values | {"columns": columns, "features": features})


def _listed(name: str, value: Any) -> tuple[str, ...]:
    listed = (
        tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    )
    if not all(isinstance(v, str) for v in listed):
        raise InputError(f"{name} must be names of columns, not {value!r}")
    return listed


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern means this column; a name may itself look like a pattern."""
    return name == pattern or fnmatchcase(name, pattern)


def missing_column(name: str, names: list[str], *, where: str) -> InputError:
    """An error for a column that is not there; it names the near ones."""
    return InputError(f"{where}: {unknown('column', name, names)}")
