"""Read tables of texts: a row is a document, which is split, or one sentence of a set.

A text is a document of sentences or, with an encoder of molecules, a SMILES of atoms.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

from capnets.errors import DataWarning, InputError, unknown
from capnets.estimators.molecules import Molecules
from capnets.ingest import Columns, Schema
from capnets.ingest.columns import MOLECULES, ROW, missing_column
from capnets.ingest.kinds import is_text
from capnets.ingest.sources import Source, open_source
from capnets.sets import Array
from capnets.sets.ragged import owners_of
from capnets.tasks.sentences import dimensions, embed_sentences, split_sentences

__all__ = ["Encoder", "Sentences", "column_texts", "opened"]

#: Rows that are embedded at once.
ROWS = 2000
#: Rows that a message names.
NAMED = 5


class Encoder(Protocol):
    """Split a text into instances and encode them as numbers."""

    #: What a text has to hold, for messages.
    what: str

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the numbers of an instance."""

    def split(self, text: str) -> list[str]:
        """Return a label per instance; none if there is no instance in the text."""

    def encode(self, texts: Sequence[str], labels: Sequence[str]) -> Array:
        """Return instances x features; `labels` are those of all texts, one after another."""


class SentenceVectors:
    """Split documents into sentences and embed them by a sentence-transformers model.

    Parameters
    ----------
    model
        Name or folder of the model; empty for the one that ships with the extra `text`.
    """

    what = "a sentence"

    def __init__(self, model: str = "") -> None:
        self.model = model

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Numbers of the dimensions."""
        return tuple(map(str, range(dimensions(self.model))))

    def split(self, text: str) -> list[str]:
        """Return the sentences of a document."""
        return split_sentences(text)

    def encode(self, texts: Sequence[str], labels: Sequence[str]) -> Array:
        """Return the vectors of sentences, cached by their content."""
        digest = hashlib.sha256("\0".join([self.model, *labels]).encode()).hexdigest()[:24]
        return embed_sentences(f"text-{digest}", labels, model=self.model)


def encoder_of(columns: Columns) -> Encoder:
    """Return the encoder that the columns name."""
    if columns.encoder in MOLECULES:
        return Molecules(columns.encoder)
    return SentenceVectors(columns.encoder)


def opened(table: Any, columns: Columns | Schema) -> Source:
    """Open a table; with a text column, instances are sentences or parts of molecules."""
    if isinstance(columns, Schema):
        columns = columns.columns
    source = open_source(table)
    return source if columns.text is None else Sentences(source, columns)


def column_texts(source: Source, column: str, rows: Array) -> tuple[str, ...]:
    """Return the texts of a column in some rows of a table."""
    if column not in source.names:
        raise unknown("column", column, source.names)
    texts: list[Any] = []
    for batch in source.with_text([column]).batches([column]):
        texts += batch.column(0).to_pylist()
    return tuple("" if texts[r] is None else str(texts[r]) for r in rows)


class Sentences(Source):
    """A table with one row per instance of a text and one column per number that encodes it.

    The text column holds the sentence of a row. Without a set column every row of the table is a
    document, its sentences are the set, and the set is named after the row (from 0).

    Parameters
    ----------
    source
        The table as stored.
    columns
        Names the text column; without a set column, rows are documents.
    """

    def __init__(self, source: Source, columns: Columns) -> None:
        import pyarrow as pa

        assert columns.text is not None
        self.source, self.text, self.columns = source, columns.text, columns
        self.encoder = encoder_of(columns)
        self.untyped, self.header = source.untyped, source.header
        self.documents = columns.set == ROW
        self.name = f"{source.name} (sentence by sentence)" if self.documents else source.name
        self.rows = None if self.documents else source.rows
        if self.text not in source.names:
            raise missing_column(self.text, source.names, where=source.name)
        kind = source.schema.field(self.text).type
        if not is_text(kind):
            raise InputError(f"{source.name}: column {self.text!r} holds {kind}, not text")
        self.vectors = [f"{self.text}[{name}]" for name in self.encoder.features]
        fields = [*source.schema, *(pa.field(name, pa.float32()) for name in self.vectors)]
        fields += [pa.field(ROW, pa.int64())] if self.documents else []
        self.schema = pa.schema(fields, metadata=source.schema.metadata)

    def with_text(self, columns: Collection[str]) -> Sentences:
        """Return the same sentences with these columns of the table as written."""
        return Sentences(self.source.with_text(columns), self.columns)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        # Sentences become vectors only if a vector column is asked for.
        own = [name for name in columns if name in self.source.names and name != self.text]
        row = 0
        skipped: list[tuple[int, str | None]] = []
        for batch in self.source.batches([*own, self.text]):
            for start in range(0, len(batch), ROWS):
                piece = batch.slice(start, ROWS)
                yield self._instances(piece, columns, row + start, skipped)
            row += len(batch)
        if skipped and any(name in self.vectors for name in columns):
            warnings.warn(f"{self._fault(skipped, row)}; skipped", DataWarning, stacklevel=2)

    def _instances(
        self, batch: Any, columns: Sequence[str], row: int, skipped: list[tuple[int, str | None]]
    ) -> Any:
        import pyarrow as pa

        texts = batch.column(self.text).to_pylist()
        labels = self._split(texts, row, skipped)
        parents = owners_of([len(each) for each in labels])
        flat = [label for each in labels for label in each]
        found = {
            name: batch.column(name).take(pa.array(parents))
            for name in columns
            if name in batch.schema.names and name != self.text
        }
        if self.text in columns:
            found[self.text] = pa.array(flat, pa.string())
        if ROW in columns and self.documents:
            found[ROW] = pa.array(parents + row)
        if any(name in self.vectors for name in columns):
            kept = [text for text, each in zip(texts, labels, strict=True) if each]
            values = self.encoder.encode(kept, flat)
            numbers = dict(zip(self.vectors, values.T, strict=True))
            found |= {n: pa.array(numbers[n]) for n in columns if n in numbers}
        return pa.record_batch([found[name] for name in columns], names=list(columns))

    def _split(
        self, texts: list[str | None], row: int, skipped: list[tuple[int, str | None]]
    ) -> list[list[str]]:
        """Return the instances of every row."""
        if self.documents:
            found = [self.encoder.split(text or "") for text in texts]
        else:
            found = [[text] if text and text.strip() else [] for text in texts]
        empty = [(row + k, texts[k]) for k, each in enumerate(found) if not each]
        skipped += empty
        if empty and not self.columns.skip:
            advice = "correct or drop it"
            if self.columns.encoder in MOLECULES:
                advice += ", or skip all of them: --skip-unparseable, Columns(skip=True)"
            raise InputError(f"{self._fault(empty, row + len(texts))}; {advice}")
        return found

    def _fault(self, empty: list[tuple[int, str | None]], rows: int) -> str:
        shown = ", ".join(f"row {row} ({text!r})" for row, text in empty[:NAMED])
        more = ", …" if len(empty) > NAMED else ""
        return (
            f"{self.source.name}, column {self.text!r}: {len(empty)} of the first {rows} rows hold "
            f"no text that is {self.encoder.what}: {shown}{more} (rows from 0)"
        )
