"""Read tables of text: a row is a document, which is split, or one sentence of a set."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from capnets.errors import InputError, unknown
from capnets.ingest import Columns, Schema
from capnets.ingest.columns import ROW, missing_column
from capnets.ingest.sources import Source, open_source
from capnets.runs import Run
from capnets.sets import Array
from capnets.sets.ragged import owners_of
from capnets.tasks.sentences import PARAMETERS, embed_sentences, split_sentences

__all__ = ["Sentences", "column_texts", "opened", "reads_sentences"]

#: Rows that are embedded at once.
ROWS = 2000


def opened(table: Any, columns: Columns | Schema) -> Source:
    """Open a table; if a text column is named, its instances are sentences."""
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


def reads_sentences(run: Run) -> bool:
    """Return whether the instances of a run are sentence vectors and nothing else."""
    data = run.config.data
    if (data.get("task") or {}).get("function") == "sentiment":
        return True
    if not data.get("schema"):
        return False
    schema = Schema.from_dict(data["schema"])
    vectors = {f"{schema.columns.text}[{k}]" for k in range(int(PARAMETERS["features"]))}
    return {feature.name for feature in schema.features} == vectors


class Sentences(Source):
    """A table with one row per sentence and one column per dimension of the sentence vectors.

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
        self.untyped, self.header = source.untyped, source.header
        self.documents = columns.set == ROW
        self.name = f"{source.name} (sentence by sentence)" if self.documents else source.name
        self.rows = None if self.documents else source.rows
        if self.text not in source.names:
            raise missing_column(self.text, source.names, where=source.name)
        kind = source.schema.field(self.text).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise InputError(f"{source.name}: column {self.text!r} holds {kind}, not text")
        self.vectors = [f"{self.text}[{k}]" for k in range(int(PARAMETERS["features"]))]
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
        for batch in self.source.batches([*own, self.text]):
            for start in range(0, len(batch), ROWS):
                piece = batch.slice(start, ROWS)
                yield self._instances(piece, columns, row + start)
            row += len(batch)

    def _instances(self, batch: Any, columns: Sequence[str], row: int) -> Any:
        import pyarrow as pa

        sentences, parents = self._split(batch.column(self.text).to_pylist(), row)
        found = {
            name: batch.column(name).take(pa.array(parents))
            for name in columns
            if name in batch.schema.names and name != self.text
        }
        if self.text in columns:
            found[self.text] = pa.array(sentences)
        if ROW in columns and self.documents:
            found[ROW] = pa.array(parents + row)
        if any(name in self.vectors for name in columns):
            # Cached by content: the same sentences in another file are not embedded again.
            digest = hashlib.sha256("\0".join(sentences).encode()).hexdigest()[:24]
            values = embed_sentences(f"text-{digest}", sentences)
            numbers = dict(zip(self.vectors, values.T, strict=True))
            found |= {n: pa.array(numbers[n]) for n in columns if n in numbers}
        return pa.record_batch([found[name] for name in columns], names=list(columns))

    def _split(self, texts: list[str | None], row: int) -> tuple[list[str], Array]:
        """Return the sentences of some rows and the row of each sentence."""
        if self.documents:
            found = [split_sentences(text or "") for text in texts]
        else:
            found = [[text] if text and text.strip() else [] for text in texts]
        for k, sentences in enumerate(found):
            if not sentences:
                raise InputError(
                    f"{self.source.name}, row {row + k} (from 0), column {self.text!r}: there is "
                    "no sentence in it; fill it or drop the row"
                )
        parents = owners_of([len(sentences) for sentences in found])
        return [sentence for sentences in found for sentence in sentences], parents
