"""Small sets and search spaces, shared by the tests of `capnets.tune`."""

import json

import numpy as np
import pandas as pd

from capnets.ingest import Columns
from capnets.sets import Sets
from capnets.tune import Space

SPACE = Space(models=("deepset", "c-rnn"), hidden=(4,), layers=(1,), epochs=(2, 4))
QUICK = {"members": 1, "orders": 1, "random_state": 0}


def sets_of(count=40, seed=0):
    generator = np.random.default_rng(seed)
    X = [generator.normal(size=(generator.integers(1, 4), 3)) for _ in range(count)]
    return Sets.from_arrays(X, y=[x[:, 0].sum() for x in X])


def frame_of(count=24):
    sets = sets_of(count)
    return pd.concat(
        pd.DataFrame(sets[k], columns=["a", "b", "c"]).assign(
            s=k, y=sets.y[k], label="up" if sets.y[k] > 0 else "down",
            g=k // 4, w=1.0 + k % 3, t=range(len(sets[k])),
        )
        for k in range(count)
    )  # fmt: skip


def columns_of(target="y", **others):
    return Columns(set="s", target=target, features=("a", "b", "c"), **others)


def trials_in(folder):
    return [json.loads(x) for x in (folder / "trials.jsonl").read_text().splitlines()]


def content(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
