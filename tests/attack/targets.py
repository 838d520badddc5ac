"""Define the files to damage, the readers under attack, and independent checks of their results."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from capnets.ingest import Columns, read_npz, read_table
from capnets.sets import Sets

COLUMNS = Columns(set="set", target="y", features=("a", "b", "kind"), categories="kind")
FORMATS = ("csv", "tsv", "parquet", "feather", "arrow")


@dataclass(frozen=True)
class Target:
    """A file and the reader that is given damaged copies of it.

    Parameters
    ----------
    name
        Name in the table of outcomes.
    path
        The file.
    read
        Returns arrays from the damaged file, or raises.
    expected
        Returns the arrays that would be right. For tables, what another reader finds in the damaged
        file, because a changed digit is legal data; for everything with a checksum, the original.
    """

    name: str
    path: Path
    read: Callable[[], Any]
    expected: Callable[[], Any]


def frame() -> pd.DataFrame:
    """Return sixty instances of twelve sets."""
    generator = np.random.default_rng(0)
    owner = np.sort(generator.integers(0, 12, 60))
    return pd.DataFrame(
        {
            "set": [f"s{k}" for k in owner],
            "a": generator.normal(size=60).round(3),
            "b": generator.integers(0, 99, size=60),
            "kind": generator.choice(["red", "green", "blue"], size=60),
            "y": generator.normal(size=12).round(3)[owner],
        }
    )


def tables(folder: Path) -> list[Target]:
    """Return a target for every format of tables, and .npz."""
    return [*(_table(kind, folder / f"t.{kind}") for kind in FORMATS), _npz(folder / "t.npz")]


def _table(kind: str, path: Path) -> Target:
    data = frame()
    if kind in ("csv", "tsv"):
        data.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    elif kind == "parquet":
        pa.parquet.write_table(pa.Table.from_pandas(data), path, row_group_size=25)
    else:
        data["kind"] = data["kind"].astype("category")
        pa.feather.write_feather(
            data, path, compression="lz4" if kind == "feather" else "uncompressed"
        )

    def read() -> Any:
        table = read_table(path, COLUMNS)
        numbers = table.sets.instances[:, :2].astype(np.float64)
        numbers += [feature.offset for feature in table.schema.features[:2]]
        owner = np.empty(len(numbers), dtype=np.int64)
        owner[table.sets.index] = np.repeat(np.arange(len(table.sets)), table.sets.sizes)
        kinds = table.schema.features[2].categories
        return {
            "set": np.asarray(table.sets.ids).astype(str)[owner],
            "numbers": numbers,
            "y": table.sets.y[owner],
            "kind": np.asarray(kinds)[table.sets.instances[:, 2:].argmax(axis=1)],
        }

    def expected() -> Any:
        found = _read_again(kind, path)
        with np.errstate(over="ignore"):
            return {
                "set": found["set"].astype(str).to_numpy(),
                "numbers": found[["a", "b"]].to_numpy(dtype=np.float64),
                "y": _labels(found["y"]),
                "kind": found["kind"].astype(str).to_numpy(),
            }

    return Target(kind, path, read, expected)


def _labels(y: pd.Series) -> np.ndarray:
    """Return amounts; text, to which a damaged number may turn, names classes."""
    if y.dtype == object or pd.api.types.is_string_dtype(y):
        return np.unique(y.astype(str), return_inverse=True)[1]
    return y.to_numpy(dtype=np.float64).astype(np.float32)


def _read_again(kind: str, path: Path) -> pd.DataFrame:
    """Read a table by pandas or pyarrow alone."""
    if kind in ("csv", "tsv"):
        text = {"set": str, "kind": str}
        separator = "\t" if kind == "tsv" else ","
        return pd.read_csv(path, sep=separator, dtype=text, keep_default_na=False)
    reader = pa.parquet.read_table if kind == "parquet" else pa.feather.read_table
    table = reader(path, columns=["set", "a", "b", "kind", "y"], use_threads=False)
    return pd.DataFrame(table.to_pydict())  # without the metadata of pandas, which may be damaged


def _npz(path: Path) -> Target:
    sets = read_table(frame(), Columns(set="set", target="y", features=("a", "b"))).sets
    np.savez_compressed(path, X=sets.instances, offsets=sets.offsets, y=sets.y)

    def read() -> Any:
        found = read_npz(path).sets
        return {"X": found.instances, "offsets": found.offsets, "y": found.y}

    original = read()
    return Target("npz", path, read, lambda: original)


def written(folder: Path) -> list[Target]:
    """Return a target for every file that capnets writes."""
    return [*saved_sets(folder), *runs(folder), checkpoint(folder), records(folder)]


def checkpoint(folder: Path) -> Target:
    """Return the checkpoint of a training; the damaged file is read to resume it."""
    from capnets.models import build
    from capnets.training.fit import fit
    from capnets.training.recipe import Recipe

    sets = read_table(frame(), Columns(set="set", target="y", features=("a", "b"))).sets
    path = folder / "checkpoint.safetensors"

    def train(epochs: int) -> Any:
        model = build("c-gru", in_features=2, hidden=4, layers=1, seed=0)
        fit(model, sets, sets, recipe=Recipe(epochs=epochs, batch_size=6), checkpoint=path)
        return model.state_dict()

    train(2)

    def read() -> Any:
        return train(2)

    original = read()
    return Target("checkpoint", path, read, lambda: original)


def records(folder: Path) -> Target:
    """Return the records of a reproduction; a line that was cut off counts as not written."""
    from capnets.paper.results import Record, Results
    from capnets.paper.scales import find_scale

    results, scale = Results(folder / "results", create=True), find_scale("smoke")
    with results.hold() as writer:
        for seed in range(5):
            job = scale.job("c-gru", "US", seed=seed)
            measured = {"mse": 0.5 + seed, "values": [1.0, 2.0]}
            writer.append(
                Record(job=job, metrics=measured, failure=None, reason="", made={"a": "b"}, cost={})
            )
    content = results.path.read_bytes()

    def read() -> Any:
        found = results.read()
        return {key: json.dumps(record.to_dict()) for key, record in found.items()}

    original = read()

    def expected() -> Any:
        there = read() if results.path.read_bytes() != content else original
        return {key: original[key] for key in there}

    return Target("records", results.path, read, expected)


def saved_sets(folder: Path) -> list[Target]:
    """Return a target for every file of a folder that `Sets.save` wrote."""
    sets = read_table(frame(), Columns(set="set", target="y", features=("a", "b"))).sets
    sets.save(folder / "sets")

    def read() -> Any:
        found = Sets.load(folder / "sets")
        return {
            n: np.array(getattr(found, n)) for n in ("instances", "index", "offsets", "y", "ids")
        }

    original = read()
    return [
        Target(f"sets/{path.name.split('-')[0]}", path, read, lambda: original)
        for path in sorted((folder / "sets").iterdir())
    ]


def runs(folder: Path) -> list[Target]:
    """Return a target for every file of a run, of its export and of a stream state."""
    from capnets.estimators import SetRegressor
    from capnets.estimators.runs import load_estimator
    from capnets.export import Engine, Stream, StreamState, export
    from capnets.runs import Run

    columns = Columns(set="set", target="y", features=("a", "b"))
    small = {"hidden": 4, "members": 1, "orders": 1, "epochs": 1, "random_state": 0}
    estimator = SetRegressor("c-gru", columns=columns, **small).fit(frame())
    estimator.save(folder / "run")
    export(folder / "run", folder / "export")
    stream = Stream(folder / "export")
    stream.push(np.ones((3, 2), np.float32))
    stream.state.save(folder / "state")
    sets = [np.ones((2, 2), np.float32), np.zeros((3, 2), np.float32)]

    def read_run() -> Any:
        found = load_estimator(folder / "run").predict(frame())
        return {"y": found, "metrics": json.dumps(Run(folder / "run").metrics)}

    def read_export() -> Any:
        stream = Stream(folder / "export")
        chunk = stream.push(sets[1])
        values = Engine(folder / "export").predict(sets)
        return {"y": values, "step": stream.push(sets[0][0]), "chunk": chunk}

    def read_state() -> Any:
        return {str(k): v for k, v in enumerate(vars(StreamState.load(folder / "state")).values())}

    # Runs of earlier versions have no digests: damage may go unnoticed, but gives no traceback.
    shutil.copytree(folder / "run", folder / "old")
    (folder / "old" / "manifest.json").unlink()

    def read_old() -> Any:
        load_estimator(folder / "old").predict(frame())
        return {}

    found = [Target("run without digests", folder / "old" / "config.json", read_old, dict)]
    for name, read in (("run", read_run), ("export", read_export), ("state", read_state)):
        original = read()
        place = folder / name
        paths = sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
        found += [
            Target(f"{name}/{path.name}", path, read, lambda original=original: original)
            for path in paths
            if path.stat().st_size and not path.name.startswith(".")
        ]
    return found
