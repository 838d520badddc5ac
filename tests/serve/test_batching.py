"""Requests that are computed together get the answers that they would get alone."""

import asyncio

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.export.engine import ROWS, Engine
from capnets.serve import batching
from capnets.serve.tensors import Given


def given_sets(*sizes, seed):
    rows = np.random.default_rng(seed).normal(size=(sum(sizes), 3)).astype(np.float32)
    return Given(rows, np.array(sizes))


@pytest.mark.parametrize("quick", [0.0, np.inf], ids=["thread", "loop"])
@pytest.mark.parametrize(
    "sizes",
    [
        [(3,), (3,), (3,)],
        [(0, 4), (1,), (7, 2, 0)],
        [(0,), (0, 0)],
        [(ROWS // 2,), (1, 1, 1)],  # padded to one size they exceed a call
        [(ROWS,), (ROWS + 1,), (2,)],
    ],
)
def test_answers_are_those_of_single_requests(runs, monkeypatch, quick, sizes):
    monkeypatch.setattr(batching, "QUICK", quick)
    engine = Engine(runs["c-gru"])
    requests = [given_sets(*own, seed=k) for k, own in enumerate(sizes)]
    observed = []

    async def ask():
        batcher = batching.Batcher(engine, observe=observed.append)
        try:
            # The first answer shows the pace; the others find it known.
            await batcher.infer(requests[0])
            return await asyncio.gather(*map(batcher.infer, requests))
        finally:
            batcher.close()

    answers = asyncio.run(ask())
    assert sum(observed) == 1 + len(requests)
    assert observed[1] == (1 if len(requests[0].rows) >= ROWS else len(requests))
    for given, (predictions, values) in zip(requests, answers, strict=True):
        expected = engine.infer(given.to_sets())
        np.testing.assert_allclose(predictions, expected[0], atol=1e-5)
        np.testing.assert_allclose(values, expected[1], atol=1e-5)


def test_networks_that_need_instances_refuse_empty_sets(runs):
    engine = Engine(runs["gru"])
    x, mask = np.zeros((2, 1, 3), dtype=np.float32), np.array([[True], [False]])
    with pytest.raises(InputError, match="set 1 has no instances"):
        engine.infer_padded(x, mask)
