"""Frames as files of every format, for the tests of tables."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from capnets.ingest import Columns

NUMBERS = Columns(set="basket", target="worth", features=("x*",))


def write(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    match path.suffix:
        case ".parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=7)
        case ".csv":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".feather":
            pyarrow.feather.write_feather(table, path)
        case ".arrow":
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
    return path
