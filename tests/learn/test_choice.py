"""The automatic choice of a network, and the calibration of its probabilities."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.learn import Options, Target, choose, make_plan
from capnets.learn import choice as choices
from capnets.learn.plan import Plan
from capnets.learn.train import divide_outputs
from capnets.models import ModelSpec
from capnets.sets import Sets

GENERATOR = np.random.default_rng(0)
X = [GENERATOR.normal(size=(GENERATOR.integers(1, 6), 2)) for _ in range(48)]
MEANS = np.array([x[:, 0].mean() for x in X])
QUICK = {"members": 1, "orders": 1, "epochs": 2, "hidden": 4, "random_state": 0}


#: Error of candidates in `trainings`: two of them cancel each other.
OFF = {"c-gru": 3.0, "c-deepset": 1.0, "c-pool": -1.5}


def problem(kind=SetRegressor, y=MEANS):
    return kind().problem(X, y)


@pytest.fixture
def trainings(monkeypatch):
    """Sets and cost of every training of the comparison, instead of the trainings."""
    seen = []

    def note(problem, plan, parts, progress=None):
        cost = next(c.cost for c in choices.CANDIDATES if c.model == plan.model.name)
        seen.extend((len(train), cost) for train, _ in parts)
        off = OFF.get(plan.model.name, 4.0) + (plan.model.aggregation == "mean")
        return np.asarray(problem.train.y).reshape(-1, 1) + off

    monkeypatch.setattr("capnets.learn.choice.cross_validate", note)
    return seen


@pytest.mark.parametrize("members", [1, 2, 3, 5, None])
def test_choosing_and_training_costs_at_most_five_networks(trainings, members):
    plan = choose(problem(), Options(members=members))
    spent = sum(sets * cost for sets, cost in trainings) / len(X)
    assert spent <= choices.BUDGET * plan.model.members + 1e-9
    assert len(plan.choice["compared"]) == (5 if members == 1 else len(choices.CANDIDATES))


def test_one_size_leaves_the_values_to_networks_without_a_baseline():
    """Labels of sets of one size determine neither a baseline nor values by position."""
    same = [GENERATOR.normal(size=(4, 2)) for _ in range(40)]
    plan = choose(SetRegressor().problem(same, MEANS[:40]), Options(epochs=1, members=1))
    assert {one["baseline"] for one in plan.choice["compared"]} == {"none"}
    assert not any(one.build(0).positional for one in plan.model.each())
    asked = choose(SetRegressor().problem(same, MEANS[:40]), Options(epochs=1, baseline="learned"))
    assert {one["baseline"] for one in asked.choice["compared"]} == {"learned"}


def test_many_sets_are_compared_on_one_held_out_part(trainings, monkeypatch):
    monkeypatch.setattr("capnets.learn.choice.SOME_SETS", 40)
    plan = choose(problem())
    assert {sets for sets, _ in trainings} == {32}
    assert plan.choice["reason"] == "lowest held-out loss"


def test_the_network_with_the_lowest_loss_is_taken_and_recorded(trainings):
    plan = choose(problem(), Options(members=1))
    compared = plan.choice["compared"]
    best = min(compared, key=lambda c: c["loss"])
    assert (plan.model.name, plan.model.aggregation, plan.model.baseline) == (
        best["model"], best["aggregation"], best["baseline"],
    )  # fmt: skip
    assert [c["members"] for c in compared] == [int(c is best) for c in compared]
    assert plan.config(problem()).data["choice"] == plan.choice


def test_members_are_added_that_lower_the_loss_of_the_average(trainings):
    """Errors of 1 and -1.5: the best three of them are 1, -1.5 and 1 with a mean of 1 / 6."""
    plan = choose(problem(), Options(members=3))
    assert plan.model.mixed == ("c-deepset:sum:none",) * 2 + ("c-pool:sum:learned",)
    assert [c["members"] for c in plan.choice["compared"]] == [0, 0, 0, 1, 0, 2, 0]
    assert [type(m).__name__ for m in plan.model.build(0).each] == [
        "CapacityNetwork", "CapacityNetwork", "PoolNetwork",
    ]  # fmt: skip
    assert ModelSpec.from_dict(plan.model.to_dict()) == plan.model


def test_members_are_calibrated_before_they_are_averaged(monkeypatch):
    """Logits ten times too large do not outvote others of the same knowledge."""
    y = np.arange(len(X)) % 2
    signs, noise = 2 * y - 1, 2 * np.random.default_rng(5).normal(size=len(X))
    # The same noise on other sets: equally good, and better together.
    logits = {"c-gru": 10 * (signs + noise), "c-deepset": signs + np.roll(noise, 2)}

    def outputs(problem, plan, parts, progress=None):
        return logits.get(plan.model.name, np.zeros(len(X)))[:, None]

    monkeypatch.setattr("capnets.learn.choice.cross_validate", outputs)
    plan = choose(problem(SetClassifier, y), Options(members=2))
    names = [title.split(":")[0] for title in plan.model.mixed]
    assert sorted(names) == ["c-deepset", "c-gru"]
    heats = dict(zip(names, plan.temperatures, strict=True))
    assert 5 < heats["c-gru"] / heats["c-deepset"] < 20
    assert Plan.of(plan.config(problem(SetClassifier, y))).temperatures == plan.temperatures


@pytest.mark.parametrize(("outputs", "trees"), [(4, True), (5, False)])
def test_many_outputs_have_no_trees(monkeypatch, outputs, trees):
    y = np.random.default_rng(0).integers(0, 2, (len(X), outputs))
    monkeypatch.setattr(
        "capnets.learn.choice.cross_validate",
        lambda problem, plan, parts, progress: np.zeros((len(X), outputs)),
    )
    plan = choose(problem(SetClassifier, y), Options(members=3))
    assert ("c-trees" in [c["model"] for c in plan.choice["compared"]]) == trees


def test_a_named_network_is_not_compared(trainings):
    plan = choose(problem(), Options(model="c-lstm"))
    assert (plan.model.name, plan.choice, trainings) == ("c-lstm", None, [])


@pytest.mark.parametrize(
    "asked",
    [Options(sort=0), Options(activation="abs"), Options(aggregation="mean", orders=2)],
    ids=["sort", "abs", "mean"],
)
def test_candidates_keep_to_what_is_asked(trainings, asked):
    plan = choose(problem(), asked)
    for one in plan.choice["compared"]:
        assert asked.sort is None or one["model"] not in ("c-pairs", "c-pool", "c-trees")
        assert asked.aggregation in (None, one["aggregation"])
        if asked.activation == "abs":
            assert (one["aggregation"], one["baseline"]) == ("sum", "none")


def test_too_few_sets_get_a_stated_default():
    few = SetClassifier().problem(X[:4], [0, 0, 0, 1])
    plan = choose(few)
    assert plan.model == choices.CANDIDATES[0].plan(few, Options()).model
    assert "not compared: there are 1 sets of the rarest class" in plan.choice["reason"]


def test_from_nothing_to_values_that_sum_to_the_prediction(tmp_path):
    model = SetRegressor(**QUICK).fit(X, MEANS)
    assert model.choice_["compared"]
    sums = np.add.reduceat(model.added_values(X), np.cumsum([0, *map(len, X)])[:-1])
    np.testing.assert_allclose(model.baseline_ + sums, model.predict(X), atol=1e-4)
    model.save(tmp_path / "run")
    again = SetRegressor.load(tmp_path / "run")
    assert again.choice_ == model.choice_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


class TestTemperature:
    def test_found_where_the_log_loss_is_lowest(self):
        generator = np.random.default_rng(1)
        logits = generator.normal(size=4000)
        y = (generator.random(4000) < expit(logits)).astype(float)
        target = Target.of_classes([0, 1])
        found = choices.temperature(target, y, 3 * logits[:, None])
        assert found == pytest.approx(3, rel=0.1)
        grid = [log_loss(y, expit(3 * logits / t)) for t in np.linspace(1, 6, 60)]
        assert log_loss(y, expit(3 * logits / found)) <= min(grid) + 1e-6

    def test_never_sharpens(self):
        y = np.array([0.0, 1.0] * 10)
        raw = np.where(y > 0, 0.1, -0.1)[:, None]
        assert choices.temperature(Target.of_classes([0, 1]), y, raw) == 1

    @pytest.mark.parametrize("kind", ["class", "labels"])
    def test_log_loss_is_that_of_scikit_learn(self, kind):
        generator = np.random.default_rng(2)
        raw = generator.normal(size=(20, 3))
        if kind == "class":
            y, target = generator.integers(0, 3, 20), Target.of_classes([0, 1, 2])
            expected = log_loss(y, target.probabilities(raw), labels=[0, 1, 2])
        else:
            y, target = generator.integers(0, 2, (20, 3)), Target("labels", 3, flat=False)
            expected = np.mean([log_loss(y[:, k], expit(raw[:, k])) for k in range(3)])
        assert target.log_loss(y, raw) == pytest.approx(expected)

    @pytest.mark.parametrize("members", [1, 3])
    @pytest.mark.parametrize("baseline", ["none", "learned"])
    def test_divides_predictions_values_and_baseline(self, members, baseline):
        spec = ModelSpec(
            "c-gru", in_features=2, activation="identity", baseline=baseline, members=members
        )
        one, two = spec.build(0), spec.build(0)
        divide_outputs(two, [4.0] * members)
        from capnets.evaluate import added_values, predict

        sets = Sets.from_arrays(X[:5])
        np.testing.assert_allclose(predict(one, sets), 4 * predict(two, sets), rtol=1e-5)
        np.testing.assert_allclose(added_values(one, sets), 4 * added_values(two, sets), rtol=1e-4)

    def test_noise_is_predicted_no_worse_than_by_a_coin(self):
        """Labels that nothing can predict: overconfidence shows at once."""
        y = np.random.default_rng(3).integers(0, 2, len(X))
        new = np.random.default_rng(4).integers(0, 2, len(X))
        settings = {"members": 1, "orders": 1, "epochs": 60, "random_state": 0}
        plain, calibrated = (
            SetClassifier("c-gru", calibrate=c, **settings).fit(X, y) for c in (False, True)
        )
        losses = [log_loss(new, m.predict_proba(X)) for m in (plain, calibrated)]
        assert losses[1] < losses[0]
        assert losses[1] < np.log(2) + 0.05


def test_settings_that_no_candidate_has():
    with warnings.catch_warnings(), pytest.raises(InputError, match="aggregation"):
        choose(problem(), Options(aggregation="median"))
    assert make_plan(problem(), Options(model="c-gru")).temperature == 1


def test_classifiers_refuse_probabilities():
    few = problem(SetClassifier, np.arange(len(X)) % 2)
    with pytest.raises(InputError, match="use SetRegressor with labels 0 and 1"):
        make_plan(few, Options(model="c-deepset", aggregation="any"))
