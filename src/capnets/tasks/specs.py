"""Specify a task: a set function, a source of images and how sets are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from capnets.errors import InputError, unknown
from capnets.records import Record
from capnets.tasks.embeddings import EMBEDDINGS, default_embedding
from capnets.tasks.functions import FUNCTIONS, SetFunction, find_function
from capnets.tasks.images import SOURCES

__all__ = ["PROTOCOLS", "VARYING", "TaskSpec", "parse_task"]

VARYING = (6, 8, 10, 12, 14)
"""Sizes of the paper's sets of varying size, equally likely."""

PROTOCOLS = {
    "shared": "test sets are new sets of the images that training sets are drawn from",
    "held-out": "test sets are drawn from images that no training set contains",
}


@dataclass(frozen=True)
class TaskSpec(Record):
    """A set task. The same spec always gives the same sets.

    Parameters
    ----------
    function
        Name of a set function, see `FUNCTIONS`.
    source
        Source of the images, see `SOURCES`.
    embedding
        Embedding of the images, see `EMBEDDINGS`.
    sizes
        Possible set sizes, equally likely.
    sets, valid_sets, test_sets
        Number of training, validation and test sets.
    protocol
        Which images test sets are drawn from, see `PROTOCOLS`. Validation sets always use training
        images, so that held-out images never influence a choice.
    seed
        Random seed of all sets.
    """

    function: str
    source: str
    embedding: str
    sizes: tuple[int, ...] = (10,)
    sets: int = 100_000
    valid_sets: int = 10_000
    test_sets: int = 10_000
    protocol: str = "shared"
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, name, choices in (
            ("set function", self.function, FUNCTIONS),
            ("source", self.source, SOURCES),
            ("embedding", self.embedding, EMBEDDINGS),
            ("protocol", self.protocol, PROTOCOLS),
        ):
            if name not in choices:
                raise unknown(kind, name, choices)
        object.__setattr__(self, "sizes", tuple(self.sizes))
        if not self.sizes or min(self.sizes) < 1:
            raise InputError(f"sizes must be at least 1, not {list(self.sizes)}")
        for part in ("sets", "valid_sets", "test_sets"):
            if getattr(self, part) < 1:
                raise InputError(f"{part} must be at least 1, not {getattr(self, part)}")
        if self.seed < 0:
            raise InputError(f"seed must not be negative: {self.seed}")

    @property
    def name(self) -> str:
        """The function and the source.

        >>> parse_task("US").name
        'unique-sum:mnist'
        """
        return f"{self.function}:{self.source}"

    @property
    def set_function(self) -> SetFunction:
        """The set function."""
        return FUNCTIONS[self.function]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read the output of `to_dict`; unknown and missing keys raise an error."""
        missing = [n for n in ("function", "source", "embedding") if n not in values]
        if missing:
            raise InputError(f"a task needs the fields {', '.join(missing)}")
        return super().from_dict(values)


def parse_task(
    text: str,
    *,
    embedding: str | None = None,
    sizes: int | str | Sequence[int] = 10,
    sets: int = 100_000,
    valid_sets: int = 10_000,
    test_sets: int = 10_000,
    protocol: str = "shared",
    seed: int = 0,
) -> TaskSpec:
    """Parse a short description of a task.

    Parameters
    ----------
    text
        `FUNCTION`, `FUNCTION:SOURCE` or `FUNCTION:SOURCE:EMBEDDING`. Functions are given by name
        or short name, in any case. The default source is the paper's.
    embedding
        Overrides the one in `text`. The default depends on the source.
    sizes
        One size, several, or "varying".
    sets, valid_sets, test_sets, protocol, seed
        See `TaskSpec`.

    Examples
    --------
    >>> parse_task("US:digits", sizes="varying").sizes
    (6, 8, 10, 12, 14)
    >>> parse_task("unique-cuont")
    Traceback (most recent call last):
    capnets.errors.InputError: unknown set function 'unique-cuont': did you mean 'unique-count' ...
    """
    name, *rest = text.split(":")
    if len(rest) > 2:
        raise InputError(
            f"a task is FUNCTION, FUNCTION:SOURCE or FUNCTION:SOURCE:EMBEDDING: {text}"
        )
    function = find_function(name)
    source = (rest[0].lower() if rest else "") or function.source
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    chosen = embedding or (rest[1].lower() if len(rest) > 1 else "") or default_embedding(source)
    return TaskSpec(
        function.name, source, chosen, sizes=_sizes(sizes), sets=sets, valid_sets=valid_sets,
        test_sets=test_sets, protocol=protocol, seed=seed,
    )  # fmt: skip


def _sizes(sizes: int | str | Sequence[int]) -> tuple[int, ...]:
    if isinstance(sizes, int):
        return (sizes,)
    if not isinstance(sizes, str):
        return tuple(sizes)
    if sizes == "varying":
        return VARYING
    try:
        return tuple(int(size) for size in sizes.split(","))
    except ValueError:
        raise InputError(
            f"sizes must be a number, comma-separated numbers or 'varying', not {sizes!r}"
        ) from None
