"""Documents as sets of sentences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capnets import metrics
from capnets.errors import InputError
from capnets.learn.measure import measure_problem
from capnets.learn.tasks import task_of, task_problem
from capnets.tasks import sentences
from capnets.tasks.sentences import embed_sentences, split_sentences
from capnets.tasks.sentiment import (
    REVIEWS,
    ReviewSets,
    ReviewSpec,
    _means,
    is_sentiment,
    make_reviews,
    parse_reviews,
    pooled_ridge,
)
from capnets.training.recipe import recipe
from training_runs import train_task

TEXTS = [f"This dress has {n} buttons and I {'love' if n % 2 else 'hate'} it." for n in range(7)]


@given(st.text())
def test_splitting_keeps_all_text(text):
    parts = split_sentences(text)
    letters = [c for c in text if c.isalnum()]
    assert [c for part in parts for c in part if c.isalnum()] == letters
    assert all(part.strip() for part in parts)


@pytest.mark.slow
def test_vectors_are_computed_once_and_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "whole"))
    whole = embed_sentences("some", TEXTS)
    assert whole.shape == (7, 384)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    # Alike in meaning, near in space: both love it, or one loves and one hates it.
    assert whole[1] @ whole[3] > whole[1] @ whole[2]

    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "pieces"))
    monkeypatch.setattr(sentences, "PIECE", 3)

    class StoppedError(Exception):
        pass

    def stop(what, done, total):
        if done == 6:
            raise StoppedError

    with pytest.raises(StoppedError):
        embed_sentences("some", TEXTS, progress=stop)
    told = []
    model = sentences._model
    monkeypatch.setattr(sentences, "_model", lambda *name: told.append("loaded") or model(*name))
    pieces = embed_sentences("some", TEXTS, progress=lambda *args: told.append(args[1:]))
    assert told == [(3, 7), (6, 7), "loaded", (7, 7)]  # the first two were there
    np.testing.assert_allclose(pieces, whole, atol=1e-5)  # batches are padded differently

    monkeypatch.setattr(sentences, "_model", lambda: pytest.fail("computed again"))
    np.testing.assert_array_equal(embed_sentences("some", TEXTS), pieces)
    assert len(list((tmp_path / "pieces" / "embeddings").glob("*.npy"))) == 1


@pytest.fixture(scope="module")
def documents():
    """Documents whose rating is known: the mean of what their sentences are worth."""
    draw = np.random.default_rng(0)
    pool = draw.normal(size=(900, 8)).astype(np.float32)
    from capnets.sets import Sets, offsets_of

    offsets = offsets_of(draw.integers(1, 6, size=250))
    index = np.arange(offsets[-1])
    y = np.add.reduceat(pool[index, 0], offsets[:-1]) / np.diff(offsets)
    every = Sets(pool, index, offsets, y, ids=np.arange(250))
    spec = ReviewSpec("ted-comments")
    return ReviewSets(spec, every[:150], every[150:200], every[200:], [["…"]] * 250)


def test_the_mean_of_a_document_is_that_of_its_sentences(documents):
    slow = [documents.test[k].mean(0) for k in range(len(documents.test))]
    np.testing.assert_allclose(_means(documents.test), slow, atol=1e-5)


def test_ridge_finds_what_is_linear(documents):
    predict = pooled_ridge(documents)
    assert metrics.r2(documents.test.y, predict(documents.test)) > 0.99


def test_a_network_is_trained_and_measured_on_documents(documents, tmp_path):
    run = train_task(tmp_path / "run", documents, model="c-gru", recipe=recipe("fast", epochs=2))
    assert {"valid", "held-out", "orders"} <= set(run.metrics)
    assert "shared" not in run.metrics
    assert "added_value_error" not in run.metrics["held-out"]
    assert (
        measure_problem(run.model, task_problem(documents))["held-out"] == run.metrics["held-out"]
    )


def test_specs_refuse_what_is_unknown():
    with pytest.raises(InputError, match="did you mean 'ted-comments'"):
        ReviewSpec("ted-coments")
    with pytest.raises(InputError, match="unknown embedding of sentences"):
        ReviewSpec("ted-comments", "glove")
    spec = ReviewSpec("womens-clothing", seed=3)
    assert ReviewSpec.from_dict(spec.to_dict()) == spec


def test_specs_are_written_as_those_of_images():
    assert parse_reviews("sentiment") == ReviewSpec("womens-clothing")
    assert parse_reviews("SENT:Ted-Comments:minilm", seed=3) == ReviewSpec("ted-comments", seed=3)
    assert not is_sentiment("US:mnist")
    for wrong, message in (
        ("sentiment:ted", "unknown source of documents 'ted'"),
        ("sentiment:ted-comments:glove", "unknown embedding of sentences 'glove'"),
        ("sentiment:a:b:c", "sentiment:SOURCE:EMBEDDING, not sentiment:a:b:c"),
    ):
        with pytest.raises(InputError, match=message):
            parse_reviews(wrong)
    with pytest.raises(InputError, match="must not be negative"):
        parse_reviews("sentiment", seed=-1)


def test_documents_of_a_run_are_never_divided_anew(documents, tmp_path):
    run = train_task(tmp_path / "run", documents, model="deepset", epochs=1)
    for change in ({"test_sets": 5}, {"sizes": "3"}, {"seed": 1}):
        with pytest.raises(InputError, match="those that training left out"):
            task_of(run, **change)


@pytest.mark.data
@pytest.mark.parametrize(("source", "count"), [("womens-clothing", 22_641), ("ted-comments", 1200)])
def test_documents_have_sentences_and_ratings(source, count):
    documents, ratings = REVIEWS[source](None)
    assert len(documents) == len(ratings) == count
    assert all(documents)
    low, high = (1, 5) if source == "womens-clothing" else (0, 1)
    assert low <= ratings.min() < ratings.max() <= high


@pytest.mark.data
@pytest.mark.slow
def test_reviews_are_divided_without_overlap():
    task = make_reviews(ReviewSpec("ted-comments"))
    parts = [set(part.ids.tolist()) for part in (task.train, task.valid, task.test)]
    assert [len(part) for part in parts] == [960, 120, 120]
    assert set.union(*parts) == set(range(1200))
    assert [len(s) for s in task.sentences(task.test)] == task.test.sizes.tolist()
    other = make_reviews(ReviewSpec("ted-comments", seed=1))
    assert other.test.ids.tolist() != task.test.ids.tolist()
    # Better than the mean; the published bag-of-words baseline has the error .1638 here.
    predict = pooled_ridge(task)
    assert metrics.mae(task.test.y, predict(task.test)) < 0.16
