"""Frames in and frames out: answer in the kind of frame that the caller uses, by narwhals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capnets.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_pandas", "like"]


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a frame of any library as one of pandas; a lazy one is computed."""
    import narwhals as nw

    found: pd.DataFrame
    if hasattr(frame, "iloc"):
        found = frame
        return found
    try:
        known = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"the frame is a {type(frame).__name__}; give one of pandas, polars, Arrow or DuckDB"
        ) from error
    eager = known.collect("pyarrow") if isinstance(known, nw.LazyFrame) else known
    found = eager.to_pandas()
    return found


def like(frame: Any, answer: pd.DataFrame) -> Any:
    """Return an answer as a frame of the library of `frame`.

    Lazy frames (DuckDB, polars) are answered by an Arrow table or an eager frame. Only pandas has
    an index; it is dropped for others.
    """
    import narwhals as nw

    kind = nw.get_native_namespace(frame) if _is_frame(frame) else None
    if kind is None or kind.__name__ == "pandas":
        return answer
    import pyarrow as pa

    table = pa.Table.from_pandas(answer, preserve_index=False).replace_schema_metadata(None)
    if kind.__name__ in ("pyarrow", "duckdb"):
        return table
    return nw.from_arrow(table, backend=kind).to_native()


def _is_frame(frame: Any) -> bool:
    import narwhals as nw

    try:
        nw.from_native(frame)
    except TypeError:
        return False
    return True
