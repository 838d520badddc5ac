"""Splitters, scorers and metadata routing of scikit-learn on tables with one row per instance."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from capnets.errors import InputError, SplitWarning
from capnets.estimators import SetClassifier, SetRegressor, set_scorer
from capnets.estimators.splitting import GroupSetKFold, SetKFold, StratifiedSetKFold
from capnets.ingest import Columns
from capnets.sets import Sets
from ragged import QUICK, amounts, classes, frame_of, ragged

COLUMNS = Columns(set="set", target="y")


def labelled(kind=SetClassifier):
    X = ragged(40)
    return X, classes(X) if kind is SetClassifier else amounts(X)


def group_of(frame):
    return frame.set.str[1:].astype(int) // 4


SPLITTERS = [SetKFold, StratifiedSetKFold, GroupSetKFold]


@pytest.mark.parametrize("kind", SPLITTERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_no_set_is_divided_and_every_row_is_tested_once(kind, shuffle):
    frame = frame_of(*labelled())
    splitter = kind(4, set="set", shuffle=shuffle, random_state=0 if shuffle else None)
    groups = group_of(frame) if kind is GroupSetKFold else None
    tested = []
    for train, test in splitter.split(frame, frame.y, groups):
        assert not {*frame.set.iloc[train]} & {*frame.set.iloc[test]}
        assert sorted([*train, *test]) == list(range(len(frame)))
        if groups is not None:
            assert not {*groups.iloc[train]} & {*groups.iloc[test]}
        tested += test.tolist()
    assert sorted(tested) == list(range(len(frame)))
    assert splitter.get_n_splits() == 4


def test_folds_hold_equal_numbers_of_sets_and_of_classes():
    frame = frame_of(*labelled())
    sizes = [frame.set.iloc[test].nunique() for _, test in SetKFold(4, set="set").split(frame)]
    assert sizes == [10] * 4
    per_set = frame.groupby("set").y.first()
    for _, test in StratifiedSetKFold(4, set="set").split(frame, frame.y):
        held = per_set[frame.set.iloc[test].unique()]
        assert abs((held == "yes").mean() - (per_set == "yes").mean()) < 0.1


def test_labels_per_set_are_in_order_of_first_rows():
    frame = frame_of(*labelled())
    per_set = frame.drop_duplicates("set").y.to_numpy()
    splitter = StratifiedSetKFold(4, set="set")
    pairs = zip(splitter.split(frame, frame.y), splitter.split(frame, per_set), strict=True)
    for (_, by_row), (_, by_set) in pairs:
        np.testing.assert_array_equal(by_row, by_set)


def test_lists_and_sets_are_divided_as_by_scikit_learn():
    X, _ = labelled()
    for data in (X, Sets.from_arrays(X)):
        for one, two in zip(SetKFold(4).split(data), KFold(4).split(X), strict=True):
            np.testing.assert_array_equal(one[1], two[1])


def test_faults_of_splitters():
    X, y = labelled()
    frame = frame_of(X, y)
    faults = [
        (SetKFold(4), frame, {}, "name its set column"),
        (SetKFold(4, set="sett"), frame, {}, "unknown set column 'sett'"),
        (SetKFold(4, set="set"), X, {}, "not a table"),
        (SetKFold(41, set="set"), frame, {}, "40 sets cannot be divided into 41 folds"),
        (StratifiedSetKFold(4, set="set"), frame, {}, "y is missing"),
        (GroupSetKFold(4, set="set"), frame, {}, "groups are missing"),
        (GroupSetKFold(4, set="set"), frame, {"groups": frame.index}, "constant within a set"),
        (GroupSetKFold(4, set="set"), frame, {"groups": [1, 2]}, "2 classes or groups"),
        (SetKFold(4, set="set"), frame.assign(set=None), {}, "empty in row 0"),
    ]
    for splitter, data, given, message in faults:
        with pytest.raises(InputError, match=message):
            next(splitter.split(data, **given))


def test_scorer_by_name_on_frames_and_on_sets():
    X, y = labelled()
    frame = frame_of(X, y)
    model = SetClassifier(columns=COLUMNS, **QUICK)
    how = {"cv": StratifiedSetKFold(2, set="set"), "error_score": "raise"}
    found = cross_val_score(model, frame, frame.y, scoring=set_scorer("roc_auc"), **how)
    for score, (train, test) in zip(found, how["cv"].split(frame, frame.y), strict=True):
        fitted = model.fit(frame.iloc[train], frame.y.iloc[train])
        held = frame.iloc[test]
        labels = held.groupby("set").y.first()[fitted.set_ids(held)] == "yes"
        assert score == roc_auc_score(labels, fitted.predict_proba(held)[:, 1])
    assert set_scorer("roc_auc")(fitted, held) == score  # the target column instead of y
    by_name = cross_val_score(SetClassifier(**QUICK), X, y, scoring="roc_auc", cv=2)
    assert np.isfinite(by_name).all()


def test_scorer_of_a_pipeline_and_weights():
    X, y = labelled(SetRegressor)
    frame = frame_of(X, y)
    pipeline = make_pipeline(
        FunctionTransformer(lambda t: t.assign(a=2 * t.a)), SetRegressor(columns=COLUMNS, **QUICK)
    ).fit(frame)
    scorer = set_scorer("neg_mean_absolute_error")
    doubled = frame.assign(a=2 * frame.a)
    assert scorer(pipeline, frame) == scorer(pipeline[-1], doubled)
    weight = pd.Series(np.arange(40), index=pipeline[-1].set_ids(frame))
    errors = abs(
        pipeline[-1].predict(doubled) - frame.groupby("set").y.first()[weight.index].to_numpy()
    )
    found = scorer(pipeline, frame, frame.y, sample_weight=weight)
    assert found == pytest.approx(-np.average(errors, weights=weight), rel=1e-4)
    with pytest.raises(InputError, match="not of KFold"):
        scorer(KFold(), frame)


@pytest.mark.parametrize("kind", [SetRegressor, SetClassifier])
def test_metadata_reaches_estimator_and_splitter(kind):
    """A search with routing equals folds by hand, with the weights and groups given to it."""
    X, y = labelled(kind)
    groups, weight = np.arange(40) // 4, np.linspace(0.1, 3, 40)
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(**QUICK).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        for cv in (GroupKFold(2), GroupSetKFold(2)):
            search = GridSearchCV(model, {"hidden": [4]}, cv=cv, error_score="raise", refit=False)
            search.fit(X, y, sample_weight=weight, groups=groups)
            parts = cv.split(X, y, groups)
            for k, (train, test) in enumerate(parts):
                alone = kind(**QUICK | {"hidden": 4})
                alone.fit([X[i] for i in train], y[train], sample_weight=weight[train])
                held = [X[i] for i in test]
                expected = alone.score(held, y[test], sample_weight=weight[test])
                found = search.cv_results_[f"split{k}_test_score"][0]
                assert found == pytest.approx(expected, abs=1e-6)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            GridSearchCV(kind(**QUICK), {"hidden": [4]}, cv=2).fit(X, y, sample_weight=weight)


def test_groups_of_rows_through_a_search():
    frame = frame_of(*labelled(SetRegressor))
    search = GridSearchCV(
        SetRegressor(columns=COLUMNS, **QUICK), {"hidden": [4]}, refit=False,
        cv=GroupSetKFold(2, set="set"), error_score="raise",
    )  # fmt: skip
    search.fit(frame, frame.y, groups=group_of(frame))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_score_warns_if_a_split_cut_sets_apart():
    frame = frame_of(*labelled(SetRegressor))
    model = SetRegressor(columns=COLUMNS, **QUICK)
    with pytest.warns(SplitWarning, match=r"of 3\d sets, e.g. .* but other rows") as warned:
        cross_val_score(model, frame, cv=KFold(2, shuffle=True, random_state=0))
    assert len(warned) >= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", SplitWarning)
        cross_val_score(model, frame, cv=SetKFold(2, set="set"), error_score="raise")
        model.fit(frame).score(frame)  # whole training sets
