"""Networks, runs and estimators give the same explanations; results display themselves."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.explain import (
    Explanation,
    GlobalExplanation,
    explain,
    interactions,
    select,
    shapley_values,
)
from capnets.ingest import Columns
from capnets.models import build
from capnets.models.base import SingleModel
from capnets.nn import masked
from capnets.sets import Sets


@pytest.fixture(scope="module")
def pets():
    """A classifier of three classes on a frame, its frame and its run."""
    rng = np.random.default_rng(0)
    names = np.array(["cat", "dog", "fish"])
    frame = pd.DataFrame({"home": np.repeat([f"home {n}" for n in range(30)], 3)})
    frame["pet"] = np.repeat(names[np.arange(30) % 3], 3)
    frame["size"] = rng.normal(np.repeat(np.arange(30) % 3, 3), 0.1)
    columns = Columns(set="home", target="pet")
    return SetClassifier("c-gru", columns=columns, members=1, epochs=3, random_state=0).fit(
        frame
    ), frame


@pytest.fixture(scope="module")
def baskets(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = [rng.uniform(1, 9, size=(n, 2)).astype(np.float32) for n in rng.integers(1, 5, size=40)]
    y = [x[:, 0].sum() for x in X]
    estimator = SetRegressor("c-gru", members=1, orders=1, epochs=2, random_state=0).fit(X, y)
    return estimator, X, estimator.save(tmp_path_factory.mktemp("run") / "run")


def test_network_run_and_estimator_agree(baskets):
    estimator, X, run = baskets
    sets = Sets.from_arrays(X)
    for call in (explain, shapley_values, interactions, select):
        more = {"k": 2} if call is select else {}
        sources = ((estimator.model_, sets), (run, sets), (estimator, X), (estimator, sets))
        one, *others = (call(source, x, **more) for source, x in sources)
        for other in others:
            np.testing.assert_allclose(other.values, one.values, atol=1e-5)
            assert other.passes == one.passes


def test_estimator_takes_method_and_orders(baskets):
    estimator, X, _ = baskets
    found = estimator.explain(X[:5], method="shapley")
    assert found.method == "Shapley values"
    assert found.gaps == pytest.approx(0, abs=1e-4)
    assert estimator.explain(X[:5], orders=6, seed=2).orders.count == 6
    with pytest.raises(InputError, match="did you mean 'shapley'"):
        estimator.explain(X, method="shaply")


def test_classes_by_name(pets):
    estimator, frame = pets
    found = estimator.explain(frame, output="dog")
    assert (found.output, found.unit) == ("dog", "logit")
    assert found.labels is None
    np.testing.assert_allclose(found.probabilities, estimator.predict_proba(frame)[:, 1], atol=1e-5)
    assert list(found.predicted_classes) == estimator.predict(frame).tolist()
    assert list(found.true_classes) == frame.groupby("home", sort=False)["pet"].first().tolist()
    assert found.ids[:2] == ("home 0", "home 1")
    html = found.to_html()
    assert "What each instance adds to dog" in html
    assert "probability of dog" in html
    by_index = explain(estimator, frame, output=1)
    np.testing.assert_allclose(by_index.values, found.values)
    with pytest.raises(InputError, match="unknown output 'dgo': did you mean 'dog'"):
        estimator.explain(frame, output="dgo")
    with pytest.raises(InputError, match="choose one with `output`: cat, dog, fish"):
        estimator.explain(frame)
    unlabelled = frame.drop(columns="pet")
    assert estimator.explain(unlabelled, output="cat").true_classes is None


def test_class_numbers_are_not_labels_of_logits(pets, tmp_path):
    estimator, frame = pets
    run = estimator.save(tmp_path / "run")
    sets = estimator.to_sets(frame)
    assert sets.y is not None
    for source in (estimator, run):
        found = shapley_values(source, sets, output="dog")
        assert found.labels is None
    assert shapley_values(estimator, frame, output="dog").true_classes is not None


def test_first_of_two_classes_has_no_logit(pets):
    _, frame = pets
    two = frame[frame["pet"] != "fish"]
    estimator = SetClassifier(
        columns=Columns(set="home", target="pet"), members=1, epochs=1, random_state=0
    ).fit(two)
    assert estimator.explain(two).output == "dog"
    with pytest.raises(InputError, match="only the second, 'dog', has a logit"):
        estimator.explain(two, output="cat")


def test_what_cannot_be_explained(baskets):
    _, X, run = baskets
    with pytest.raises(InputError, match="a run explains Sets, not list"):
        explain(run, X)
    with pytest.raises(InputError, match="cannot explain str"):
        explain("model", X)
    with pytest.raises(InputError, match="output 1 does not exist"):
        explain(run, Sets.from_arrays(X), output=1)


class Offset(SingleModel):
    """Every instance lowers a baseline of 10 by its only feature."""

    additive = True
    last = "layer"

    def __init__(self):
        from torch import nn

        super().__init__(in_features=1, outputs=1)
        self.layer = nn.Linear(1, 1)

    def values(self, x):
        return -x

    def predict(self, x, mask):
        return self.empty() + masked.total(self.values(x), mask)

    def empty(self):
        return 10 * self.unit.new_ones(1)

    def start(self, **about):
        raise NotImplementedError("nothing is trained here")


def test_values_are_counted_from_the_baseline():
    sets = Sets.from_arrays([[[1.0], [2.0]], [[4.0]]])
    for found in (explain(Offset(), sets), shapley_values(Offset(), sets)):
        assert found.baselines.tolist() == [10, 10]
        assert found.values == pytest.approx([-1, -2, -4])
        assert found.predictions == pytest.approx([7, 6])
        assert found.gaps == pytest.approx(0)
        assert "counted from the baseline 10" in found.to_html()
        assert "From 10 to 7" in found.to_html()
    bars = found.plot(0).axes[0].patches
    assert [bar.get_x() for bar in bars] == pytest.approx([10, 9])
    assert select(Offset(), sets, k=1).positions == ((), ())  # every instance lowers the prediction


def test_short_forms(baskets):
    estimator, X, run = baskets
    sets = Sets.from_arrays(X, y=np.arange(40.0))
    found = estimator.explain(X)
    pairs, chosen = interactions(estimator, X), select(estimator, X, k=1)
    assert (
        repr(found)
        == f"<Explanation: added values of {len(found.values)} instances in 40 sets, exact>"
    )
    assert repr(sets) == "<Sets: 40 sets of 1 to 4 instances, 2 features, 1 label(s)>"
    assert "finished" in repr(run)
    for one in (found, pairs, chosen, sets, run):
        assert len(repr(one)) < 200
        assert "<" in one._repr_html_()


@pytest.mark.browser
def test_cells_of_a_table_stand_in_one_line(baskets, page, tmp_path):
    estimator, X, _ = baskets
    for name, found in {
        "features": estimator.explain(X[:3]),
        "none": Explanation(
            method="made up", values=[1, 2], offsets=[0, 2], predictions=[3], baselines=[0]
        ),
    }.items():
        (tmp_path / f"{name}.html").write_text(found.to_html())
        page.goto(f"file://{tmp_path}/{name}.html")
        cells = page.locator("tbody tr").first.locator("td")
        tops = {round(cells.nth(n).bounding_box()["y"]) for n in range(cells.count())}
        assert len(tops) == 1, name


def test_every_page_has_a_content_security_policy(baskets):
    estimator, X, _ = baskets
    assert "default-src 'none'" in estimator.explain(X).to_html()


@pytest.mark.parametrize("name", [r"$\frac{$", "a $x_$ b", "5 $"])
def test_dollars_in_names_are_no_mathematics(name):
    from capnets.explain.render.instances import Features

    found = Explanation(
        method="made up", values=[1], offsets=[0, 1], predictions=[1], baselines=[0], ids=(name,),
        instances=Features(np.zeros((1, 0)), (), (name,)),
    )  # fmt: skip
    found.plot(0).savefig(io.BytesIO())


def test_plot_draws_into_given_axes(baskets):
    estimator, X, _ = baskets
    figure = Figure()
    axes = figure.subplots(1, 2)
    found = estimator.explain(X)
    assert found.plot(1, ax=axes[1]) is figure
    assert len(axes[1].patches) == len(X[1])
    assert not axes[0].patches


def test_instances_of_tables_are_described_by_their_features():
    """Not by a number that runs over all sets."""
    columns = {"feature_names": ("price", "kind=cup")}
    sets = Sets.from_arrays([[[1.0, 0.0]], [[2.0, 1.0], [4.5, 0.0]]], **columns)
    found = explain(build("c-deepset", in_features=2, seed=0), sets)
    words = ["price 2, kind=cup", "price 4.5"]
    labels = found.plot(1).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == words
    everything = GlobalExplanation(found, sets.instances, sets.feature_names)
    assert set(words) < set(everything.extremes()["name"])
    plain = replace(found, instances=None).plot(1).axes[0].get_yticklabels()
    assert [label.get_text() for label in plain] == ["instance 1", "instance 2"]
    pytest.importorskip("shap")
    assert found.subset([1]).to_shap().feature_names == words


def test_shap_draws_an_explanation():
    shap = pytest.importorskip("shap")
    import matplotlib

    matplotlib.use("Agg")
    sets = Sets.from_arrays([[[1.0], [2.0]], [[4.0]]])
    found = explain(Offset(), sets)
    one = found.subset([0]).to_shap()
    assert one.base_values == 10
    assert one.values.tolist() == [-1, -2]
    axes = shap.plots.waterfall(one, show=False)
    assert any(one.patches for one in axes.figure.axes)
    assert [e.values.sum() for e in found.to_shap()] == [-3, -4]


def test_all_networks_can_be_explained_by_name_of_output():
    model = build("c-gru", in_features=2, outputs=2, seed=0)
    sets = Sets.from_arrays([np.ones((3, 2))])
    assert explain(model, sets, output="1").values.shape == (3,)
