"""Invalid settings raise an error of one sentence."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor, SetSurvival
from capnets.estimators.runs import load_estimator
from capnets.learn import Options, Problem, make_plan
from capnets.models import ModelSpec
from capnets.sets import Sets

X = [np.random.default_rng(k).normal(size=(k % 3 + 1, 2)) for k in range(12)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dropout": "x"}, "dropout must be a number from 0 to 1, not 'x'"),
        ({"dropout": np.nan}, "dropout must be a number"),
        ({"orders": np.nan}, "orders must be a whole number, not nan"),
        ({"orders": 0}, "orders must be from 1"),
        ({"orders": 10**21}, "orders must be from 1 to 1,000,000"),
        ({"epochs": 10**30}, "epochs must be from 1 to 1,000,000"),
        ({"members": 10**30}, "members must be from 1 to 1,000,000"),
        ({"hidden": True}, "hidden must be a whole number, not True"),
        ({"recipe": 1.5}, r"recipe must be a name, .* not 1.5"),
        ({"recipe": {"learning_rate": np.nan}}, "learning_rate must be a finite number, not nan"),
        ({"seed": 10**21}, "seed must be from 0 to"),
        ({"seed": -1}, "seed must be from 0 to"),
    ],
)
def test_refused(asked, message):
    with pytest.raises(InputError, match=message):
        Options(**asked)


@pytest.mark.parametrize("kind", [SetRegressor, SetClassifier])
@pytest.mark.parametrize(
    "asked",
    [
        {"random_state": 10**30},
        {"random_state": "x"},
        {"network": {"dropout": "x"}},
        {"early_stopping": 1.0},
    ],
    ids=str,
)
def test_estimators_say_it_too(kind, asked):
    with pytest.raises(InputError):
        kind(**asked).fit(X, [0, 1] * 6)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SetRegressor(loss="huber"), "name a network"),
        (SetRegressor("c-gru", loss="hubber"), "unknown loss 'hubber': did you mean 'huber'"),
        (SetRegressor("c-gru", loss="quantile:2"), "quantile '2' is not a number between"),
        (SetRegressor("c-gru", loss="logistic"), "does not predict amounts"),
        (SetRegressor("c-trees", loss="absolute"), "trees grow by squared errors"),
        (SetSurvival("c-gru", loss="huber"), "this target is learned by 'cox'"),
    ],
    ids=str,
)
def test_losses_that_are_refused(model, message):
    y = [(k, 1) for k in range(12)] if isinstance(model, SetSurvival) else range(12)
    with pytest.raises(InputError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize(("loss", "share"), [("absolute", 0.5), ("quantile:0.9", 0.9)])
def test_a_loss_decides_what_is_predicted(loss, share, tmp_path):
    """Without anything to learn, the prediction is the quantile of skewed labels."""
    y = np.random.default_rng(0).exponential(size=200) ** 2
    x = [np.ones((1, 1))] * 200
    model = SetRegressor("c-deepset", loss=loss, members=1, epochs=2, random_state=0).fit(x, y)
    below = (y < model.predict(x[:1])).mean()
    assert below == pytest.approx(share, abs=0.05)
    again = load_estimator(model.save(tmp_path / "run").folder)
    assert again.loss == loss
    assert again.plan_.loss == loss


class TestLargeSets:
    """Defaults follow the width of the features and the size of the sets."""

    @staticmethod
    def plan(features, size, sets=40, **asked):
        x = np.zeros((1, features), dtype=np.float16)
        offsets = np.arange(sets + 1) * size
        y = np.arange(sets, dtype=np.float32)
        shared = Sets(x, np.zeros(sets * size, dtype=np.int64), offsets, y)
        return make_plan(Problem(shared), Options(**asked))

    @pytest.mark.parametrize(("features", "width"), [(64, None), (384, 64), (1024, 128)])
    def test_width_of_the_encoder(self, features, width):
        assert self.plan(features, 50).model.width == width

    def test_attention_scores_follow_the_encoder(self):
        """With 1,024 features, a square matrix of scores would be the most expensive part."""
        model = self.plan(1024, 5, model="attention", hidden=16, members=1).model.build(0)
        assert max(p.numel() for p in model.scores.parameters()) == 16 * 16
        paper = ModelSpec("attention", in_features=1024).build(0)
        assert paper.scores[0].weight.shape == (1024, 1024)

    def test_instances_per_step(self):
        assert self.plan(3, 5).recipe.batch_instances is None
        assert self.plan(1024, 20_000).recipe.batch_instances == 2**15
        sampled = {"sample_instances": 1000}
        assert self.plan(1024, 20_000, recipe=sampled).recipe.batch_instances is None
