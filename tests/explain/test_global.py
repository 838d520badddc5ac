"""Global explanations recover what set tasks and simple networks are known to do."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.explain import explain_global
from capnets.explain.global_explanation import category_interactions
from capnets.ingest import Columns
from capnets.models.base import AdditiveModel
from capnets.sets import Sets
from capnets.tasks import FUNCTIONS
from capnets.tasks.functions import PAIRS


class Priced(AdditiveModel):
    """An instance adds twice its second feature less its first."""

    last = "layer"

    def __init__(self):
        from torch import nn

        super().__init__(in_features=3, outputs=1)
        self.layer = nn.Linear(1, 1)

    def values(self, x):
        return (2 * x[..., 1] - x[..., 0])[..., None]


@pytest.fixture
def priced():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)).astype(np.float32) for n in rng.integers(1, 6, size=80)]
    return explain_global(Priced(), Sets.from_arrays(X, feature_names=("weight", "price", "noise")))


@pytest.mark.parametrize("function", ["unique-sum", "weighted-triangular", "unique-count"])
def test_categories_of_set_tasks_have_their_exact_means(function, capacity, random_sets):
    sets = random_sets(function, [6] * 200)
    found = explain_global(capacity(function), sets)
    table = found.by_category()
    truth = FUNCTIONS[function].added_values(sets.index, sets.offsets)
    expected = pd.Series(truth).groupby(sets.index)
    for name in ("count", "mean", "std", "min", "max"):
        known = expected.agg(name)[table.index]
        np.testing.assert_allclose(table[name], known, atol=1e-5)
    assert table["mean"].is_monotonic_decreasing


def test_averages_over_orders_are_shapley_values(capacity, random_sets):
    sets = random_sets("unique-sum", [5] * 60)
    found = explain_global(capacity("unique-sum"), sets, orders=64)
    closed = pd.Series(FUNCTIONS["unique-sum"].shapley(sets.index, sets.offsets))
    means = found.by_category()["mean"].sort_index()
    np.testing.assert_allclose(means, closed.groupby(sets.index).mean(), atol=0.25)


def test_interactions_between_categories_find_the_pairs(capacity, random_sets):
    sets = random_sets("unique-sum-synergy", [6] * 150)
    matrix, names = category_interactions(capacity("unique-sum-synergy"), sets, sets.index)
    assert names == [str(c) for c in range(10)]
    upper = sorted((matrix[a, b], (a, b)) for a in range(10) for b in range(a + 1, 10))
    assert {pair for _, pair in upper[-5:]} == set(PAIRS)
    found = explain_global(
        capacity("unique-sum-synergy"), sets, categories=sets.index, interactions=True
    )
    np.testing.assert_array_equal(found.interactions.to_numpy(), matrix)
    assert list(found.interactions.columns) == names
    assert "Interactions between categories" in found.to_html()
    with pytest.raises(InputError, match="interactions need categories"):
        explain_global(Priced(), Sets.from_arrays([np.ones((3, 3))]), interactions=True)


def test_interactions_leave_out_large_sets(capacity, random_sets):
    sizes = [40, *[6] * 20]
    sets = random_sets("unique-sum-synergy", sizes)
    model = capacity("unique-sum-synergy")
    matrix, _ = category_interactions(model, sets, sets.index)
    small = sets.subset(range(1, len(sets)))
    expected, _ = category_interactions(model, small, small.index)
    np.testing.assert_array_equal(matrix, expected)


def test_features_and_dependence(priced):
    table = priced.by_feature()
    assert list(table.index) == ["price", "weight", "noise"]
    assert table["correlation"]["price"] == pytest.approx(2 / np.sqrt(5), abs=0.1)
    assert table["correlation"]["weight"] < -0.3
    bins = priced.dependence("price", bins=8)
    assert bins["count"].sum() == len(priced.values)
    slope = np.polyfit(bins["price"], bins["mean"], 1)[0]
    assert slope == pytest.approx(2, abs=0.3)
    indicator = explain_global(Priced(), Sets.from_arrays([[[1, 0, 0], [0, 1, 0], [1, 1, 0]]]))
    assert indicator.dependence(0)["mean"].tolist() == [2, 0]
    with pytest.raises(InputError, match="unknown feature 'prize': did you mean 'price'"):
        priced.dependence("prize")
    with pytest.raises(InputError, match="feature 7 does not exist"):
        priced.plot(7)


def test_extremes(priced):
    table = priced.extremes(most=3)
    assert table["value"].tolist() == [
        *np.sort(priced.values)[::-1][:3], *np.sort(priced.values)[:3][::-1],
    ]  # fmt: skip
    for row in table.itertuples():
        place = priced.explanation.offsets[int(row.set)] + row.instance
        assert priced.values[place] == row.value


def test_categories_of_a_table_are_found(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"basket": np.repeat(np.arange(200), rng.integers(1, 6, size=200))})
    frame["kind"] = rng.choice(["cup", "$plate$", "<b>"], size=len(frame))
    price = frame["kind"].map({"cup": 1.0, "$plate$": 5.0, "<b>": 9.0})
    frame["worth"] = price.groupby(frame["basket"]).transform("sum")
    columns = Columns(set="basket", target="worth", categories=("kind",))
    estimator = SetRegressor(
        "c-deepset", columns=columns, members=1, orders=1, epochs=60, random_state=0
    )
    found = explain_global(estimator.fit(frame), frame)
    table = found.by_category()
    assert list(table.index) == ["<b>", "$plate$", "cup"]
    # A learned baseline may take a share of every value; the differences remain.
    np.testing.assert_allclose(-np.diff(table["mean"]), [4, 4], atol=0.7)
    html = found.to_html(title="A & B", source="baskets")
    assert "A &amp; B" in html
    assert "<b>" not in html
    assert "default-src 'none'" in html
    found.plot().savefig(io.BytesIO())


def test_figures_and_short_forms(priced, capacity, random_sets):
    assert isinstance(priced.plot(), Figure)
    figure = Figure()
    axes = figure.subplots()
    assert priced.plot("price", ax=axes) is figure
    assert axes.get_xlabel() == "price"
    figure.savefig(io.BytesIO())
    assert "3 features" in repr(priced)
    assert "price" in priced._repr_html_()
    with pytest.raises(InputError, match="categories of these instances are unknown"):
        priced.by_category()
    with pytest.raises(InputError, match="2 categories given"):
        explain_global(Priced(), Sets.from_arrays([np.ones((3, 3))]), categories=["a", "b"])


@pytest.mark.browser
def test_page_fits_any_width(capacity, random_sets, page, tmp_path):
    found = explain_global(capacity("unique-sum"), random_sets("unique-sum", [6] * 50))
    assert found.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
    for width in (390, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"file://{tmp_path}/page.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
