"""Aggregations and baselines: their equations, long sets, training and explanations."""

import json
import math

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import predict
from capnets.explain import explain, shapley_values
from capnets.models import AGGREGATIONS, CapacityNetwork, ModelSpec, build
from capnets.models.aggregations import Any, Last, Mean, MeanAndSum, Sum
from capnets.nn.cells import GRUCell
from capnets.nn.encoders import mlp
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

OUTPUTS = 2


def aggregation(name, *, learned, heads_scale=1.0):
    """An aggregation with weights as training might leave them."""
    made = AGGREGATIONS[name](OUTPUTS, learned=learned).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        for buffer in made.buffers():
            buffer.fill_(1.7)
    return made


def decoded(name, size=6, seed=2):
    shape = (3, size, AGGREGATIONS[name].heads * OUTPUTS)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sigmoid(a):
    return 1 / (1 + math.exp(-a))


def softplus(a):
    return math.log(1 + math.exp(a))


def mean_prefixes(made: Mean, numbers, output):
    """p_0, p_1, …, p_n as the equation says."""
    b = 0.0 if made.base is None else float(made.base[output])
    c = math.exp(float(made.log_prior[output]))
    top, bottom, beliefs = c * b, c, [b]
    for row in numbers:
        u = 1.7 * float(row[output])
        w = math.exp(10 * math.tanh(float(row[OUTPUTS + output]) / 10))
        top, bottom = top + w * u, bottom + w
        beliefs.append(top / bottom)
    return beliefs


def prefixes(made, numbers, output):
    """Predictions of all prefixes, the empty one first."""
    if isinstance(made, Sum):
        b = 0.0 if made.base is None else float(made.base[output])
        return [b + sum(float(row[output]) for row in numbers[:k]) for k in range(len(numbers) + 1)]
    if isinstance(made, Mean):
        return mean_prefixes(made, numbers, output)
    if isinstance(made, MeanAndSum):
        beliefs = mean_prefixes(made.mean, numbers, output)
        sums = [
            sum(float(r[2 * OUTPUTS + output]) for r in numbers[:k]) for k in range(len(beliefs))
        ]
        return [p + s for p, s in zip(beliefs, sums, strict=True)]
    if isinstance(made, Last):
        b = 0.0 if made.base is None else float(made.base[output])
        return [b, *(b + 1.7 * float(row[output]) for row in numbers)]
    assert isinstance(made, Any)
    missed = 1.0 if made.base is None else math.exp(-softplus(float(made.base[output])))
    out = [1 - missed]
    for row in numbers:
        missed *= 1 - sigmoid(float(row[output]))
        out.append(1 - missed)
    return out


@torch.no_grad()
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_equations(name, learned):
    made, numbers = aggregation(name, learned=learned), decoded(name)
    mask = torch.arange(6) < torch.tensor([6, 2, 0])[:, None]
    values, prediction = made.values(numbers), made.predict(numbers, mask)
    for k, size in enumerate([6, 2, 0]):
        for output in range(OUTPUTS):
            expected = prefixes(made, numbers[k, :size], output)
            assert float(made.empty(numbers)[output]) == pytest.approx(expected[0], abs=1e-12)
            assert float(prediction[k, output]) == pytest.approx(expected[-1], abs=1e-12)
            np.testing.assert_allclose(values[k, :size, output], np.diff(expected), atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_steps(name, learned):
    made, numbers = aggregation(name, learned=learned), decoded(name)
    state, values = numbers.new_zeros(3, made.memory * OUTPUTS), []
    for row in numbers.unbind(1):
        value, state = made.next_value(row, state)
        values.append(value)
    torch.testing.assert_close(torch.stack(values, dim=1), made.values(numbers))


@torch.no_grad()
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_long_sets_in_float32(name):
    """100,000 instances: values have the digits of float32, and sum to the prediction."""
    made, numbers = aggregation(name, learned=True), decoded(name, size=100_000)
    numbers[..., :OUTPUTS] -= 8.0 if name == "any" else 0.0  # rare events
    exact, total = made.values(numbers), made.predict(numbers, None)
    made, numbers = made.float(), numbers.float()
    found = made.values(numbers)
    scale = exact.abs().amax(1, keepdim=True)
    assert ((found - exact).abs() / scale).max() < 1e-4
    sums = made.empty(numbers) + found.double().sum(1)
    torch.testing.assert_close(sums, total, rtol=1e-3, atol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("size", [1e30, -1e30])
@pytest.mark.parametrize("name", ["mean", "any"])
def test_extreme_numbers_stay_finite(name, size):
    made = AGGREGATIONS[name](1)
    numbers = torch.full((1, 5, made.heads), size)
    numbers[..., 0] = size if name == "any" else 1.0
    for result in (made.values(numbers), made.predict(numbers, None)):
        assert result.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("baseline", ["none", "learned"])
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_start(name, baseline):
    """With the last weights at 0 a network predicts the mean label, exactly."""
    spec = ModelSpec(
        "c-gru", in_features=3, hidden=8, outputs=2, activation="identity",
        aggregation=name, baseline=baseline,
    )  # fmt: skip
    model = spec.build(0)
    torch.nn.init.zeros_(model.final.weight)
    label = torch.tensor([0.3, 0.8]) if name == "any" else torch.tensor([12.0, -3.0])
    model.start(unit=torch.tensor([0.5, 2.0]), label=label, size=4.0)
    torch.testing.assert_close(model(torch.randn(5, 4, 3)), label.expand(5, 2))
    if baseline == "learned" and name != "any":
        torch.testing.assert_close(model.baseline, label)
        assert model.added_values(torch.randn(5, 4, 3)).abs().max() < 1e-5
    if name == "mean+sum":
        assert not model.final.weight[4:].any()


def test_recorded_settings():
    spec = ModelSpec("c-gru", activation="identity", aggregation="mean+sum", baseline="learned")
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    old = {k: v for k, v in spec.to_dict().items() if k not in ("aggregation", "baseline")}
    loaded = ModelSpec.from_dict(old)
    assert (loaded.aggregation, loaded.baseline) == ("sum", "none")


def test_weights_of_older_runs_fit():
    """A network with the paper's sum has the parameters it had before there were others."""
    names = {name.partition(".")[0] for name in build("c-gru").state_dict()}
    assert names == {"unit", "encoder", "cell", "decoder"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"aggregation": "max"}, "unknown aggregation 'max'.*: sum, mean, mean.sum, any, last"),
        ({"baseline": "zero"}, "unknown baseline 'zero'"),
        ({"aggregation": "mean", "activation": "abs"}, "'mean' needs activation='identity'"),
        ({"baseline": "learned", "activation": "abs"}, "learned baseline needs activation"),
        ({"name": "gru", "aggregation": "mean"}, "gru does not support aggregation='mean'.*c-gru"),
        ({"name": "deepset", "baseline": "learned"}, "deepset does not support baseline"),
    ],
)
def test_wrong_settings(settings, words):
    with pytest.raises(InputError, match=words):
        build(**{"name": "c-gru", "activation": "identity", **settings})


def test_decoder_must_have_all_heads():
    with pytest.raises(InputError, match="needs 2 numbers per output, but the decoder ends in 3"):
        CapacityNetwork(
            encoder=mlp(3, 6), cell=GRUCell(6, 4), decoder=mlp(4, 3), activation="identity",
            aggregation="mean",
        )  # fmt: skip


def sets_of(values, function):
    """Ragged sets of one feature, labelled by a function of their numbers."""
    sets = Sets.from_arrays([np.asarray(v, dtype=np.float32)[:, None] for v in values])
    return Sets(sets.instances, sets.index, sets.offsets, np.array([function(v) for v in values]))


def drawn(count=150, seed=0):
    draw = np.random.default_rng(seed)
    return [draw.normal(size=n) for n in draw.integers(1, 8, size=count)]


class TestTraining:
    def fitted(self, sets, *, loss="squared", **settings):
        model = build(
            "c-deepset",
            in_features=1,
            hidden=8,
            layers=2,
            activation="identity",
            seed=0,
            **settings,
        )
        fit(model, sets, recipe=Recipe(epochs=60, batch_size=25, learning_rate=0.02), loss=loss)
        return model

    def test_mean_learns_a_mean(self):
        """Labels far from 0 that do not grow with the size; the baseline is near their mean."""
        sets = sets_of(drawn(), lambda v: 100 + np.mean(v))
        model = self.fitted(sets, aggregation="mean", baseline="learned")
        assert np.mean((predict(model, sets) - sets.y) ** 2) < 0.1 * np.var(sets.y)
        assert abs(model.baseline.item() - 100) < 1

    def test_any_learns_a_positive_instance(self):
        sets = sets_of(drawn(), lambda v: float(np.any(v > 1)))
        model = self.fitted(sets, aggregation="any", loss="bernoulli")
        prediction = predict(model, sets)
        assert ((prediction >= 0) & (prediction <= 1)).all()
        assert ((prediction > 0.5) == sets.y).mean() > 0.95
        values = explain(model, sets).values
        assert values[sets.instances[sets.index, 0] < 0.5].max() < 0.2

    def test_labels_outside_the_range(self):
        with pytest.raises(InputError, match=r"label 4 is outside \[0, 1\]"):
            self.fitted(sets_of(drawn(), len).subset([2]), aggregation="any")

    def test_any_needs_probabilities(self):
        sets = sets_of(drawn(), lambda v: float(np.any(v > 1)))
        with pytest.raises(InputError, match="use the loss 'bernoulli'"):
            self.fitted(sets, aggregation="any", loss="logistic")


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_explanations_count_from_the_baseline(name):
    """Values and Shapley values sum to prediction minus baseline; an empty set is the baseline."""
    model = build(
        "c-deepset", in_features=1, hidden=8, activation="identity", aggregation=name,
        baseline="learned", seed=1,
    )  # fmt: skip
    one = torch.ones(1)
    model.start(unit=one, label=0.4 * one, size=3.0)
    sets = sets_of(drawn(6), len)
    sets = Sets(sets.instances, sets.index, np.append(sets.offsets, sets.offsets[-1]))  # one empty
    for explanation in (
        explain(model, sets),
        explain(model, sets, orders=4),
        shapley_values(model, sets),
        shapley_values(model, sets, orders=8),
    ):
        np.testing.assert_allclose(explanation.gaps, 0, atol=1e-5)
        np.testing.assert_allclose(explanation.baselines, model.baseline.item(), rtol=1e-6)
        assert explanation.predictions[-1] == pytest.approx(model.baseline.item())


@torch.no_grad()
def test_last_is_a_recurrent_network():
    """With the same weights, `last` without a baseline predicts what a GRU predicts."""
    gru = build("gru", in_features=3, hidden=8, seed=0)
    model = build("c-gru", in_features=3, hidden=8, activation="identity", aggregation="last")
    model.load_state_dict(gru.state_dict(), strict=False)
    x, mask = torch.randn(4, 6, 3), torch.arange(6) < torch.tensor([6, 1, 3, 5])[:, None]
    torch.testing.assert_close(model(x, mask), gru(x, mask))
    torch.testing.assert_close(model.added_values(x, mask), gru.added_values(x, mask))
