"""Frozen dataclasses that round-trip through JSON; an unknown key is an error."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Self

from capnets.errors import unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Base = DataclassInstance
else:
    Base = object

__all__ = ["Record"]


class Record(Base):
    """A mixin for dataclasses whose fields are JSON values (tuples become lists and back)."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a record from the output of `to_dict`."""
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown(f"{cls.__name__} setting", key, known)
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
