"""Tables as sequences of sets, for everything in scikit-learn that has one entry per set."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestRegressor, VotingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetFeatures, SetFrame, SetRegressor, set_scorer
from capnets.estimators.splitting import SetKFold
from capnets.ingest import Columns
from capnets.sets import Sets
from ragged import QUICK, amounts, classes, frame_of, ragged

COLUMNS = Columns(set="set", target="y")
FAST = QUICK | {"epochs": 2}
ARRAYS = ragged(40)
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def table(kind=SetClassifier):
    """Return a shuffled table, whose sets are mixed, with a column that must be encoded."""
    y = classes(ARRAYS) if kind is SetClassifier else amounts(ARRAYS)
    frame = frame_of(ARRAYS, y)
    frame["colour"] = np.where(frame.a > 0, "red", "blue")
    return frame.sample(frac=1, random_state=0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_indices_choose_sets_in_their_order(kind):
    frame = table()
    X = SetFrame(KINDS[kind](frame), set="set")
    assert len(X) == X.shape[0] == 40
    assert X.ids.tolist() == frame.set.drop_duplicates().tolist()
    assert X.per_set("y").tolist() == frame.drop_duplicates("set").y.tolist()
    chosen = np.array([7, 0, 30])
    for part in (X[chosen], X[chosen, ...], X[chosen.tolist()]):
        assert part.ids.tolist() == X.ids[chosen].tolist()
        assert type(part.frame) is type(X.frame)
        assert len(part.frame) == frame.set.isin(X.ids[chosen]).sum()
    mask = np.isin(np.arange(40), chosen)
    assert X[mask].ids.tolist() == X.ids[np.sort(chosen)].tolist()


def test_scorers_by_name_equal_folds_by_hand():
    frame = table()
    X = SetFrame(frame, set="set")
    y, model = X.per_set("y"), SetClassifier(columns=COLUMNS, **FAST)
    found = cross_validate(model, X, y, cv=2, scoring=["roc_auc", "accuracy"], error_score="raise")
    for k, (train, test) in enumerate(StratifiedKFold(2).split(np.zeros(40), y)):
        rows = frame[frame.set.isin(X.ids[train])]
        held = frame[frame.set.isin(X.ids[test])]
        alone = SetClassifier(columns=COLUMNS, **FAST).fit(rows)
        score = roc_auc_score(held.drop_duplicates("set").y, alone.predict_proba(held)[:, 1])
        assert found["test_roc_auc"][k] == pytest.approx(score)
        assert found["test_accuracy"][k] == alone.score(held)
    by_rows = cross_val_score(
        model, frame, frame.y, cv=SetKFold(2, set="set"), scoring=set_scorer("roc_auc")
    )
    by_sets = cross_val_score(model, X, y, cv=KFold(2), scoring="roc_auc")
    np.testing.assert_allclose(by_sets, by_rows)


def test_what_needs_one_entry_per_set():
    frame = table()
    X = SetFrame(frame, set="set")
    y, model = X.per_set("y"), SetClassifier(columns=COLUMNS, **FAST)
    assert cross_val_predict(model, X, y, cv=2, method="predict_proba").shape == (40, 2)
    train, test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    fitted = model.fit(train, y_train)
    assert fitted.set_ids(test).tolist() == test.ids.tolist()
    np.testing.assert_array_equal(fitted.predict(test), fitted.predict(test.frame))
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(test).sum(axis=1), 1)
    assert VotingClassifier([("one", model)], voting="soft").fit(X, y).predict(X).shape == (40,)
    search = GridSearchCV(model, {"hidden": [4]}, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("kind", list(KINDS))
def test_pipelines_with_other_learners(kind):
    frame = table(SetRegressor)
    X = SetFrame(KINDS[kind](frame), set="set")
    columns = Columns(set="set", features=("a", "colour"))
    model = make_pipeline(SetFeatures(columns), RandomForestRegressor(20, random_state=0))
    assert (cross_val_score(model, X, X.per_set("y"), cv=2, scoring="r2") > 0).all()
    transformed = SetFeatures(columns).fit_transform(X)
    assert type(transformed) is type(X.frame)


def test_explanations_are_those_of_the_frame():
    frame = table(SetRegressor)
    model = SetRegressor(columns=COLUMNS, **FAST).fit(frame)
    by_set, by_row = (model.explain(X) for X in (SetFrame(frame, set="set"), frame))
    np.testing.assert_array_equal(by_set.values, by_row.values)
    np.testing.assert_array_equal(by_set.predictions, by_row.predictions)
    assert by_set.ids == by_row.ids


def test_sets_keep_covariates_and_weights_in_folds():
    """`Sets` used to be divided into lists of arrays, without what belongs to whole sets."""
    age = np.linspace(-1, 1, 40)[:, None]
    y = amounts(ARRAYS) + 5 * age[:, 0]
    sets = Sets.from_arrays(ARRAYS, y=y, covariates=age)
    train, test = train_test_split(sets, random_state=0)
    assert isinstance(train, Sets)
    assert train.n_covariates == test.n_covariates == 1
    model = SetRegressor(**FAST)
    found = cross_val_score(model, sets, y, cv=2, scoring="r2", error_score="raise")
    for score, (train, test) in zip(found, KFold(2).split(y), strict=True):
        alone = SetRegressor(**FAST).fit(sets.subset(train))
        assert score == pytest.approx(alone.score(sets.subset(test)))
        assert alone.model_.covariates == 1


def test_faults():
    frame = table()
    X = SetFrame(frame, set="set")
    with pytest.raises(InputError, match="unknown set column 'sett': did you mean 'set'"):
        SetFrame(frame, set="sett")
    with pytest.raises(InputError, match="the frame is a str; give one of pandas or polars"):
        SetFrame("baskets.csv", set="basket")
    with pytest.raises(InputError, match="column 'set' is empty in row 0"):
        SetFrame(frame.assign(set=None), set="set")
    with pytest.raises(InputError, match="column 'a' must be constant within a set"):
        X.per_set("a")
    with pytest.raises(InputError, match="unknown column 'ill'"):
        X.per_set("ill")
    with pytest.raises(InputError, match="a set is chosen twice"):
        X[[1, 1]]
    with pytest.raises(InputError, match="X has its sets by column 'y', the estimator by 'set'"):
        SetClassifier(columns=COLUMNS, **FAST).fit(SetFrame(frame, set="y"))
    plain = SetRegressor(**FAST).fit(SetFrame(frame.drop(columns="y"), set="set"), amounts(ARRAYS))
    assert plain.schema_.columns.set == "set"
