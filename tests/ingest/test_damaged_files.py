"""Damaged files raise an error that names the file; they never end the process."""

import io
import json
import multiprocessing
import resource
import signal
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from capnets import memory
from capnets.errors import InputError
from capnets.ingest import Columns, read_npz, read_table
from ingest.written import write

COLUMNS = Columns(set="basket", target="worth", categories=("colour", "kind", "basket2"))
MUTANTS = 300


def mutants(content, count, *, seed=0):
    """Copies with up to four bytes changed, cut off, or exchanged for random ones."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        bytes_ = bytearray(content)
        for _ in range(generator.integers(1, 5)):
            bytes_[generator.integers(len(bytes_))] ^= 1 << int(generator.integers(8))
        if generator.random() < 0.1:
            del bytes_[int(generator.integers(len(bytes_))) :]
        yield bytes(bytes_)


def read_all(path, contents, log):
    """Read each content in a process of its own, with 8 GB of address space; log what happened."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    signal.alarm(100)
    with log.open("w", buffering=1) as lines:
        for content in contents:
            path.write_bytes(content)
            try:
                read_npz(path) if path.suffix == ".npz" else read_table(path, COLUMNS)
                outcome = "read"
            except InputError as error:
                outcome = "refused" if str(path) in str(error) else f"without its name: {error}"
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"
            print(outcome, file=lines)


@pytest.mark.parametrize("suffix", [".feather", ".arrow", ".parquet", ".tsv", ".npz"])
def test_no_mutant_crashes_or_raises_anything_else(frame, tmp_path, suffix):
    frame["basket2"] = frame["basket"].astype("category")
    path = write(frame, tmp_path / f"t{suffix}")
    contents = list(mutants(path.read_bytes(), MUTANTS))
    log = tmp_path / "log"
    process = multiprocessing.get_context("fork").Process(
        target=read_all, args=(path, contents, log)
    )
    process.start()
    process.join(120)
    outcomes = log.read_text().splitlines()
    assert process.exitcode == 0, f"ended by {process.exitcode} at mutant {len(outcomes)}"
    assert len(outcomes) == MUTANTS
    assert set(outcomes) <= {"read", "refused"}
    assert outcomes.count("refused") > 20


def test_arrow_tables_with_wrong_offsets(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    offsets = pa.py_buffer(np.array([0, 2, -(2**30), *range(38)], np.int32))
    broken = pa.StringArray.from_buffers(40, offsets, pa.py_buffer(b"b0" * 40))
    table = table.set_column(0, "basket", pa.chunked_array([broken]))
    with pytest.raises(InputError, match=r"the table cannot be read.*offset"):
        read_table(table, Columns(set="basket", target="worth", features=("x*",)))


@pytest.mark.parametrize("metadata", [b"{", b"[]", b'"index_columns"', b"\xff", b"null"])
@pytest.mark.parametrize("suffix", [".feather", ".parquet"])
def test_damaged_metadata_of_pandas_is_ignored(frame, tmp_path, suffix, metadata):
    table = pa.Table.from_pandas(frame.drop(columns="colour"), preserve_index=False)
    table = table.replace_schema_metadata({b"pandas": metadata})
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, path)
    columns = Columns(set="basket", target="worth", features=("x*",))
    assert len(read_table(path, columns).sets) == 8


def test_the_index_of_a_stored_frame_is_no_feature(frame, tmp_path):
    table = pa.Table.from_pandas(frame[["basket", "x1", "worth"]].assign(row=range(40)))
    stored = json.dumps({"index_columns": ["row", {"kind": "range"}]}).encode()
    pa.feather.write_feather(
        table.replace_schema_metadata({b"pandas": stored}), tmp_path / "t.feather"
    )
    table = read_table(tmp_path / "t.feather", Columns(set="basket", target="worth"))
    assert table.schema.feature_names == ("x1",)


def npy(shape, descr="<f4", version=b"\x01\x00", order="False"):
    about = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(about).to_bytes(2, "little") + about


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (npy("(1000000, 4000000)"), "bytes, but .* are stored"),  # 14 TiB
        (npy("(-1, 3)"), "damaged"),
        (npy("()"), "instances x features"),
        (npy("(2, 3"), "cannot be read"),
        (npy("(2L, 3L"), "cannot be read"),
        (npy("(2, 3)", descr="|O"), "cannot be read as npz: Object"),
        (npy("(2, 3)", version=b"\x07\x00"), "has the format"),
        (npy("(2, 3)")[:20], "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_npz_with_headers_that_lie(tmp_path, header, words):
    path = tmp_path / "t.npz"
    data = b"" if "4000000" in str(header) else bytes(24 if b"2, 3" in header else 4)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header + data)
        for name, values in (("offsets", [0, 1, 2]), ("y", [1.0, 2.0])):
            content = io.BytesIO()
            np.save(content, np.array(values))
            archive.writestr(f"{name}.npy", content.getvalue())
    with pytest.raises(InputError, match=words) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)


def test_npz_that_would_fill_the_memory_when_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2.0**28)
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((2**21, 40), np.float32), offsets=[0, 2**21], y=[1.0])
    assert path.stat().st_size < 2**20
    with pytest.raises(InputError, match=r"t\.npz.*GB of memory are needed"):
        read_npz(path)


@pytest.mark.parametrize("place", ["method", "encrypted", "version"])
def test_npz_of_unknown_zip_features(tmp_path, place):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.ones((2, 3)), offsets=[0, 1, 2], y=[1.0, 2.0])
    content = bytearray(path.read_bytes())
    for mark, where in ((b"PK\x03\x04", 4), (b"PK\x01\x02", 6)):
        start = content.find(mark)
        while start >= 0:
            at = start + where + {"version": 0, "encrypted": 2, "method": 4}[place]
            content[at] = 1 if place == "encrypted" else 99
            start = content.find(mark, start + 4)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"t\.npz cannot be read as npz"):
        read_npz(path)


def test_a_npy_file_called_npz(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((2, 3)))
    (tmp_path / "t.npy").rename(tmp_path / "t.npz")
    with pytest.raises(InputError, match=r"t\.npz cannot be read as npz"):
        read_npz(tmp_path / "t.npz")


@pytest.mark.parametrize("name", ["ids", "feature_names"])
def test_npz_names_without_an_axis(tmp_path, name):
    parts = {"X": np.ones((2, 3)), "offsets": [0, 1, 2], "y": [1.0, 2.0]}
    np.savez(tmp_path / "t.npz", **parts, **{name: np.array("a")})
    with pytest.raises(InputError, match=rf"t\.npz: {name} holds"):
        read_npz(tmp_path / "t.npz")
