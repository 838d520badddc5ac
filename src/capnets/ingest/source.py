"""Read tables as streams of Arrow record batches.

Parquet is read row group by row group and CSV block by block, so no file is held as a whole. Every
batch is validated before it is used: Arrow trusts the offsets in its buffers, and one flipped bit
in a file can otherwise end the process.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from capnets.errors import InputError

__all__ = ["BLOCK", "GAPS", "ROWS", "Source", "first_line", "reading"]

#: Maximum number of rows of a batch.
ROWS = 65536
#: Spellings of a missing number in text files. In columns of names only an empty field is missing.
GAPS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
#: Bytes of a CSV file that are held in memory at once.
BLOCK = 2**23


class Source(ABC):
    """A table with a name, a schema, and batches of rows.

    Attributes
    ----------
    name
        Name of the table in messages.
    schema
        Arrow schema of the columns.
    rows
        Number of rows, or None if it is unknown before the end.
    untyped
        Whether the table is stored as text, so that column types are guesses.
    header
        The first row of a text file, which names the columns.
    """

    name: str
    schema: Any
    rows: int | None = None
    untyped: bool = False
    header: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The column names; a duplicate is an error."""
        names = list(self.schema.names)
        for name, count in Counter(names).items():
            if count > 1:
                raise InputError(f"{self.name}: there are two columns {name!r}; rename one of them")
        return names

    @property
    def index(self) -> list[str]:
        """Columns that were the index of a stored frame; they carry no information."""
        try:
            stored = json.loads((self.schema.metadata or {}).get(b"pandas", b"{}"))
            return [name for name in stored["index_columns"] if isinstance(name, str)]
        except (ValueError, TypeError, KeyError):  # no metadata of pandas, or damaged
            return []

    def with_text(self, columns: Collection[str]) -> Source:
        """Return the same table with these columns as text, if column types are guesses.

        Names must not pass through a number: 0001 is not 1, and two large integers may become the
        same float.
        """
        return self

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield validated record batches with the given columns, in the order of the rows."""
        with reading(self.name):
            for batch in self._batches(columns):
                batch.validate(full=True)
                yield batch

    @abstractmethod
    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches as they are stored."""


@contextmanager
def reading(name: str, kind: str = "", *, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Convert library errors about a damaged file to an `InputError` that names the file."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{name}: there is no such file") from error
    except MemoryError as error:
        raise InputError(
            f"{name} cannot be read: it claims to hold more than fits into memory; "
            "it may be damaged. Write it again, or read it on a larger machine."
        ) from error
    except (OSError, ValueError, OverflowError, pa.ArrowException, *also) as error:
        kind = kind and f" as {kind}"
        raise InputError(f"{name} cannot be read{kind}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of a message, or the type of the error."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
