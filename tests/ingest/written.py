"""Frames as files of every format, for the tests of tables."""

import numpy as np
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
        case ".npz":
            offsets = [0, *frame.groupby("basket").size().cumsum()]
            X = frame.sort_values("basket")[["x1", "x2"]].to_numpy()
            np.savez_compressed(path, X=X, offsets=offsets, y=np.arange(len(offsets) - 1))
        case ".arrow":
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
    return path
