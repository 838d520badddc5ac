"""Pages of runs on tasks, tables and text, and the command that writes them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.explain.render.instances import Features, Images, Texts
from capnets.explain.render.records import records
from capnets.ingest import Columns
from capnets.pages import explain_run
from capnets.pages.explain_run import choose_sets
from capnets.sets import Sets
from capnets.tasks import parse_task
from capnets.tasks.sentiment import ReviewSpec, make_reviews
from capnets.training.recipe import recipe
from training_runs import train_run, train_task


@pytest.fixture(scope="module")
def task_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("task") / "run"
    spec = parse_task("US:digits", sets=200, valid_sets=20, test_sets=30)
    train_task(folder, spec, model="c-gru", recipe=recipe("fast", epochs=1))
    return folder


@pytest.fixture(scope="module")
def baskets(tmp_path_factory):
    """A file of baskets, with what each item is, and a run on it."""
    folder = tmp_path_factory.mktemp("file")
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 5, size=60)
    frame = pd.DataFrame({"basket": np.repeat(np.arange(60), sizes)})
    frame["price"] = rng.uniform(1, 9, size=len(frame)).round(2)
    frame["weight"] = rng.uniform(0, 2, size=len(frame)).round(2)
    frame["worth"] = frame.groupby("basket")["price"].transform("sum")
    frame["item"] = [f"item {n}" for n in range(len(frame))]
    frame["sentence"] = [f"This is what was said about item {n}." for n in range(len(frame))]
    frame.to_csv(folder / "baskets.csv", index=False)
    columns = Columns(set="basket", target="worth", features=("price", "weight"))
    estimator = SetRegressor("c-gru", columns=columns, epochs=1, random_state=0)
    train_run(folder / "run", folder / "baskets.csv", estimator)
    return folder / "run", folder / "baskets.csv", frame


def test_task_shows_pictures_and_the_truth(task_run):
    found = explain_run(task_run, sets="0,5,17")
    assert isinstance(found.instances, Images)
    assert found.ids == ("0", "5", "17")
    names = np.array(found.instances.names, dtype=int)
    first = names[:10]
    assert found.expected[:10].sum() == sum(set(first)) == found.labels[0]
    assert "unique-sum:digits" in found.to_html()
    assert "sum of c over the classes c present" in found.to_html()


def test_averaged_and_shapley_are_held_against_the_closed_form(task_run):
    averaged = explain_run(task_run, sets="3", orders=4)
    exact = explain_run(task_run, sets="3", method="shapley")
    sampled = explain_run(task_run, sets="3", method="shapley", orders=2)
    assert averaged.expected.tolist() == exact.expected.tolist()
    names = list(averaged.instances.names)
    assert averaged.expected[0] == int(names[0]) / names.count(names[0])
    assert exact.exact
    assert not sampled.exact
    assert averaged.orders.count == 4


def test_file_shows_features_names_or_sentences(baskets):
    run, file, frame = baskets
    found = explain_run(run, file, sets="2,4")
    assert isinstance(found.instances, Features)
    assert found.instances.columns == ("price", "weight")
    assert found.labels == pytest.approx(frame.groupby("basket")["worth"].first()[[2, 4]])
    rows = np.flatnonzero(frame["basket"].isin([2, 4]))
    assert found.instances.names == tuple(str(r) for r in rows)
    assert found.ids == ("2", "4")
    items = explain_run(run, file, sets="2,4", show="item")
    assert items.instances.names == tuple(frame["item"][rows])
    said = explain_run(run, file, sets="2,4", show="sentence")
    assert isinstance(said.instances, Texts)
    assert frame["sentence"][rows[0]] in said.to_html()
    unlabelled = file.with_name("unlabelled.csv")
    frame.drop(columns="worth").to_csv(unlabelled, index=False)
    assert explain_run(run, unlabelled, sets="2").labels is None
    assert explain_run(run, file, sets="2", orders=6).orders.count == 6


@pytest.mark.slow
@pytest.mark.data
def test_documents_show_their_sentences(tmp_path):
    pytest.importorskip("sentence_transformers")
    task = make_reviews(ReviewSpec("ted-comments"))
    train_task(tmp_path / "run", task, model="c-gru", recipe=recipe("fast", epochs=1))
    found = explain_run(tmp_path / "run", sets="2,0")
    assert isinstance(found.instances, Texts)
    documents = task.sentences(task.test.subset([2, 0]))
    assert list(found.instances.sentences) == [s for document in documents for s in document]
    assert found.ids == ("2", "0")
    assert found.expected is None


@pytest.fixture(scope="module", params=[2, 3], ids="{} classes".format)
def labelled(request, tmp_path_factory):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"set": np.repeat(np.arange(30), 4), "a": rng.normal(size=120)})
    names = np.array(["high", "low", "middle"])[: request.param]
    frame["label"] = names[frame["set"] % request.param]
    file = tmp_path_factory.mktemp("labelled") / "sets.parquet"
    frame.to_parquet(file)
    estimator = SetClassifier(
        columns=Columns(set="set", target="label"), epochs=2, random_state=0
    ).fit(frame)
    return estimator, estimator.save(file.parent / "run").folder, file, frame


class TestClasses:
    """Values of a classifier speak of a class, which is named, and of its probability."""

    def test_names_and_probabilities(self, labelled):
        estimator, run, file, frame = labelled
        found = explain_run(run, file, sets="0,7", output="low")
        assert found.output == "low"
        assert found.unit == "logit"
        assert "What each instance adds to low" in found.to_html()
        chances = estimator.predict_proba(frame)[[0, 7], list(estimator.classes_).index("low")]
        np.testing.assert_allclose(found.probabilities, chances, atol=1e-5)
        one, two = records(found)
        assert (one["class"], two["class"]) == ("low", "low")
        assert one["probability"] == pytest.approx(chances[0], abs=1e-5)
        low, high = min(estimator.plan_.temperatures), max(estimator.plan_.temperatures)
        assert (
            f"divided by {low:.3g}" + (f" to {high:.3g}" if low < high else "") in found.to_html()
        )

    def test_of_two_the_second_unless_said(self, labelled):
        estimator, run, file, _ = labelled
        if len(estimator.classes_) == 2:
            assert explain_run(run, file).output == "low"

    def test_command(self, labelled):
        _, run, file, frame = labelled
        done = CliRunner().invoke(app, ["explain", str(run), str(file), "--output", "low"])
        assert "P(low) = 0." in done.output
        assert f"0: a {frame['a'][0]:.4g}" in done.output


@pytest.mark.parametrize("orders", [1, 4])
def test_as_many_random_orders_as_asked_for(baskets, orders):
    run, file, _ = baskets
    found = explain_run(run, file, orders=orders, seed=3).orders
    assert (found.kind, found.count, found.seed) == ("random", orders, 3)


def test_features_of_instances_are_shown(baskets):
    run, file, frame = baskets
    instance = records(explain_run(run, file, sets="1"))[0]["instances"][0]
    row = int(instance["name"])
    for name, value in instance["features"].items():
        if "=" in name:
            column, category = name.split("=")
            assert value == (str(frame[column][row]) == category)
        else:
            assert value == pytest.approx(frame[name][row], rel=1e-6)


def test_refuses(task_run, baskets, tmp_path):
    run, file, _ = baskets
    for wrong, message in (
        ({"folder": task_run, "sets": "999"}, "there is no set 999"),
        ({"folder": task_run, "sets": "a"}, "numbers separated by commas"),
        ({"folder": task_run, "method": "shaply"}, "did you mean 'shapley'"),
        ({"folder": task_run, "orders": 0}, "at least 1 order"),
        ({"folder": task_run, "show": "item"}, "shows its own images"),
        ({"folder": tmp_path}, "is not a run"),
        ({"folder": run}, "was not trained on a set task; give the file"),
        ({"folder": task_run, "file": file}, "trained on a set task, not on a table"),
        ({"folder": run, "file": file, "show": "itme"}, "did you mean 'item'"),
        ({"folder": run, "file": file, "output": "price"}, "unknown output 'price'"),
    ):
        with pytest.raises(InputError, match=message):
            explain_run(**wrong)


def test_command(task_run, tmp_path):
    page = tmp_path / "pages" / "explained.html"
    done = CliRunner().invoke(
        app, ["explain", str(task_run), "--sets", "0,5", "--orders", "4", "--html", str(page)]
    )
    assert done.exit_code == 0, done.output
    assert "Set 0: predicted" in done.output
    assert "4 random orders (2 and their reverses)" in done.output
    assert page.read_text().count("<section") == 2


def test_command_as_json(task_run, baskets):
    done = CliRunner().invoke(app, ["explain", str(task_run), "--sets", "5", "--json"])
    [one] = json.loads(done.output)
    assert one["set"] == "5"
    assert len(one["instances"]) == 10
    assert set(one["instances"][0]) == {"name", "added_value", "expected"}
    total = sum(i["added_value"] for i in one["instances"])
    assert total == pytest.approx(one["prediction"], abs=1e-4)
    run, file, _ = baskets
    done = CliRunner().invoke(app, ["explain", str(run), str(file), "--sets", "1", "--json"])
    assert set(json.loads(done.output)[0]["instances"][0]) >= {"name", "added_value"}


@pytest.mark.parametrize(
    ("ids", "asked", "found"),
    [
        (None, "2, 0", [2, 0]),
        (["anna", "bert", "carl"], "carl,anna", [2, 0]),
        (["anna", "bert", "carl"], "1", [1]),
        ([1, 2, 3], "3", [2]),
        ([1, 2, 3], None, [0]),
    ],
)
def test_sets_are_chosen_by_name(ids, asked, found):
    sets = Sets.from_arrays([[[0.0]], [[1.0]], [[2.0]]], ids=None if ids is None else np.array(ids))
    chosen = choose_sets(sets, asked)
    assert chosen.instances[chosen.index].ravel().tolist() == found


@pytest.mark.parametrize(
    ("ids", "asked", "message"),
    [
        (None, "3", "there is no set 3: the sets are 0 to 2"),
        (None, "anna", "have no names"),
        (["anna", "bert", "carl"], "ana", "did you mean 'anna'"),
        ([1, 2, 3], "0", "unknown set '0'"),
    ],
)
def test_sets_that_do_not_exist(ids, asked, message):
    sets = Sets.from_arrays([[[0.0]], [[1.0]], [[2.0]]], ids=None if ids is None else np.array(ids))
    with pytest.raises(InputError, match=message):
        choose_sets(sets, asked)
