"""Instance orders and priors of estimators."""

import numpy as np
import pytest
from sklearn.base import clone

from capnets.errors import InputError
from capnets.ingest import Columns
from capnets.training.priors import Sparse
from ragged import QUICK, frame_of
from training_runs import train_run


@pytest.mark.parametrize("orders", [1, 4])
@pytest.mark.parametrize("model", ["c-gru", "c-lstm", "c-rnn"])
def test_added_values_sum_to_the_prediction(case, model, orders):
    kind, X, y = case
    estimator = kind(**QUICK | {"model": model, "orders": orders, "members": 2}).fit(X, y)
    values = estimator.added_values(X)
    owners = np.repeat(np.arange(len(X)), [len(x) for x in X])
    raw = estimator.raw(X)[:, 0]
    np.testing.assert_allclose(np.bincount(owners, values), raw, atol=1e-4)
    explanation = estimator.explain(X)
    np.testing.assert_allclose(explanation.values, values, atol=1e-4)
    np.testing.assert_allclose(explanation.predictions, raw, atol=1e-4)


def test_order_column_is_respected(case):
    kind, X, y = case
    frame = frame_of(X, y)
    frame["place"] = np.arange(len(frame))
    columns = Columns(set="set", target="y", order="place")
    estimator = kind(columns=columns, **QUICK).fit(frame)
    assert estimator.n_orders_ == 1
    assert not estimator.recipe_.reshuffle
    shuffled = frame.sample(frac=1, random_state=5)
    there = dict(zip(shuffled["set"].unique(), estimator.raw(shuffled)[:, 0], strict=True))
    here = dict(zip(frame["set"].unique(), estimator.raw(frame)[:, 0], strict=True))
    assert there.keys() == here.keys()
    assert all(abs(there[k] - here[k]) < 1e-5 for k in here)


@pytest.mark.parametrize("sort", ["worth", "b", 1])
def test_sorted_instances(case, sort, tmp_path):
    """Predictions do not depend on the order of the instances in X, up to rounding."""
    kind, X, y = case
    frame = frame_of(X, y)
    estimator = kind(columns=Columns(set="set", target="y"), sort=sort, **QUICK).fit(frame)
    assert estimator.spec_.order == ("worth" if sort == "worth" else 1)
    assert estimator.n_orders_ == 1
    names = dict(zip(frame["set"].unique(), estimator.raw(frame)[:, 0], strict=True))
    shuffled = frame.sample(frac=1, random_state=5)
    for name, there in zip(shuffled["set"].unique(), estimator.raw(shuffled)[:, 0], strict=True):
        assert abs(there - names[name]) < 1e-5
    added = frame.assign(added=estimator.added_values(frame)).groupby("set", sort=False)["added"]
    np.testing.assert_allclose(added.sum(), estimator.raw(frame)[:, 0], atol=1e-4)
    estimator.save(tmp_path / "run")
    again = kind.load(tmp_path / "run")
    np.testing.assert_array_equal(again.raw(frame), estimator.raw(frame))
    assert clone(again).fit(frame).spec_ == estimator.spec_


def test_sorting_faults(case):
    kind, X, y = case
    frame = frame_of(X, y).assign(place=0)
    with pytest.raises(InputError, match="unknown feature 'prise'"):
        kind(sort="prise", **QUICK).fit(X, y)
    with pytest.raises(InputError, match="feature 3 does not exist"):
        kind(sort=3, **QUICK).fit(X, y)
    columns = Columns(set="set", target="y", order="place")
    with pytest.raises(InputError, match="order of 'place' and sorted by 'a'"):
        kind(columns=columns, sort="a", **QUICK).fit(frame)


def test_priors(case, tmp_path):
    """They change what is learned, in every member, and are kept with the run."""
    kind, X, y = case
    settings = QUICK | {"members": 2}
    plain = kind(**settings).fit(X, y)
    bounded = kind(priors=[Sparse(weight=100.0)], **settings).fit(X, y)
    assert np.abs(bounded.added_values(X)).mean() < 0.7 * np.abs(plain.added_values(X)).mean()
    bounded.save(tmp_path / "run")
    again = kind.load(tmp_path / "run")
    assert again.priors == [Sparse(weight=100.0)]
    np.testing.assert_array_equal(clone(again).fit(X, y).raw(X), bounded.raw(X))


@pytest.mark.parametrize("model", ["c-gru", "gru"])
def test_a_set_is_predicted_as_if_it_were_alone(case, model):
    """A mean over random orders does not depend on other sets, nor on the order of rows."""
    kind, X, y = case
    estimator = kind(**QUICK | {"model": model, "orders": 4}).fit(X, y)
    together = estimator.raw(X)
    alone = np.concatenate([estimator.raw([x]) for x in X])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    turned = estimator.raw([x[::-1] for x in X])
    np.testing.assert_allclose(together, turned, atol=1e-5)


@pytest.mark.parametrize("model", ["c-gru", "c-potential", "deepset", "attention"])
def test_added_values_follow_their_rows(case, model):
    """Also where order cannot matter to predictions: what is added depends on what came before."""
    kind, X, y = case
    estimator = kind(**QUICK | {"model": model, "orders": 6}).fit(X, y)
    ends = np.cumsum([len(x) for x in X])[:-1]
    values = np.split(estimator.added_values(X), ends)
    turned = np.split(estimator.added_values([x[::-1] for x in X]), ends)
    for here, there in zip(values, turned, strict=True):
        np.testing.assert_allclose(here, there[::-1], atol=1e-4)


def test_what_cannot_be_sorted_by_leaves_nothing_behind(case, tmp_path):
    kind, X, y = case
    estimator = kind(columns=Columns(set="set", target="y"), sort=99, **QUICK)
    with pytest.raises(InputError, match="feature 99 does not exist"):
        train_run(tmp_path / "run", frame_of(X, y), estimator)
    assert not (tmp_path / "run").exists()
