"""Priors: effect, recording, and custom priors."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import added_values, order_sensitivity, predict
from capnets.models import Ensemble, build
from capnets.sets import Sets
from capnets.sets.batch import Batches
from capnets.training.fit import fit
from capnets.training.priors import (
    PRIORS,
    Consistent,
    LowerBound,
    Sparse,
    UpperBound,
    prior_from_dict,
)
from capnets.training.recipe import Recipe

MODEL = build("c-gru", in_features=4, seed=0)
LONG = Recipe(epochs=25, batch_size=20, learning_rate=0.02)


def values_with(sets, *priors, activation="identity", model=None):
    model = model or build(
        "c-gru", in_features=4, hidden=8, layers=1, activation=activation, seed=0
    )
    fit(model, sets, recipe=LONG, priors=priors)
    return added_values(model, sets), predict(model, sets)


class TestEffect:
    def test_upper_bound(self, make):
        """An instance adds 1 or nothing; below 0.6 the labels cannot be reached."""
        sets = make()
        free, _ = values_with(sets)
        bound, prediction = values_with(sets, UpperBound(weight=1000.0, bound=0.6))
        assert free.max() > 0.9
        assert bound.max() < 0.7
        assert prediction.mean() < sets.y.mean()

    def test_lower_bound(self, make):
        sets = make()
        free, _ = values_with(sets)
        bound, _ = values_with(sets, LowerBound(weight=1000.0, bound=0.3))
        assert free.min() < 0.15
        assert bound.min() > 0.2

    def test_sparse(self, make):
        sets = make()
        free, _ = values_with(sets)
        sparse, _ = values_with(sets, Sparse(weight=100.0))
        assert np.abs(sparse).mean() < 0.5 * np.abs(free).mean()

    def test_consistent(self, make):
        """Labels that a network fits differently in different orders, until it is told not to."""
        sets = make()
        spreads = []
        for priors in ((), (Consistent(weight=30.0),)):
            model = build("c-gru", in_features=4, hidden=8, layers=1, seed=0)
            fit(model, sets, recipe=LONG, priors=priors)
            spreads.append(order_sensitivity(model, sets)["spread"])
        free, told = spreads
        assert told < 0.5 * free

    def test_without_weight_nothing_changes(self, make):
        """To float precision: the sum of values takes another way than the prediction."""
        sets = make()
        free, _ = values_with(sets)
        none, _ = values_with(sets, UpperBound(weight=0.0, bound=0.1), Sparse(weight=0.0))
        np.testing.assert_allclose(free, none, atol=1e-3)

    def test_network_that_is_not_additive(self, make):
        """Its values are differences of prefixes; the prior reaches them all the same."""
        sets = make()
        free, _ = values_with(sets, model=build("gru", in_features=4, hidden=8, layers=1, seed=0))
        bound, _ = values_with(
            sets,
            UpperBound(weight=1000.0, bound=0.6),
            model=build("gru", in_features=4, hidden=8, layers=1, seed=0),
        )
        assert free.max() > 0.9
        assert bound.max() < 0.75


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("scale", [128.0, 1 / 64])  # powers of 2, which round to the same bits
def test_the_unit_of_the_labels_does_not_matter(make, kind, scale):
    sets = make(60)

    def trained(factor):
        bound = {"bound": 0.5 * factor} if "bound" in kind else {}
        prior = prior_from_dict({"kind": kind, "weight": 2.0, **bound})
        model = build("c-gru", in_features=4, hidden=8, layers=1, activation="identity", seed=0)
        scaled = Sets(sets.instances, sets.index, sets.offsets, sets.y * np.float32(factor))
        fit(model, scaled, recipe=replace(LONG, epochs=2), priors=[prior])
        return model.state_dict()

    expected = trained(1.0)
    found = trained(scale)
    assert torch.equal(found.pop("unit"), scale * expected.pop("unit"))
    assert all(torch.equal(found[name], weights) for name, weights in expected.items())


@torch.no_grad()
@pytest.mark.parametrize("kind", PRIORS)
def test_ensembles_have_the_unit_of_their_members(make, kind):
    """An ensemble of one network is that network."""
    model = build("c-gru", in_features=4, hidden=8, seed=1)
    model.unit.fill_(5.0)
    batch = next(Batches(make(7)).epoch(size=7))
    penalties = []
    for network in (model, Ensemble([model])):
        torch.manual_seed(0)
        values = network.added_values(batch.x, batch.mask)
        prior = prior_from_dict({"kind": kind})
        penalties.append(float(prior.penalty(network, batch, values)))
    assert penalties[0] == pytest.approx(penalties[1], rel=1e-6)


@dataclass(frozen=True)
class FirstIs:
    """A prior of a user's own: the first instance of a set adds a known amount."""

    amount: float

    def penalty(self, model, batch, values):
        return 100 * (values[:, 0] - self.amount).square().mean()

    def to_dict(self):
        return {"kind": "first-is", "amount": self.amount}


def test_own_prior(make):
    sets = make()
    values, _ = values_with(sets, FirstIs(0.25))
    assert values[sets.offsets[:-1]] == pytest.approx(0.25, abs=0.1)


class TestPenalty:
    """Against sums written out, on ragged sets with garbage behind their ends."""

    def ragged(self, make):
        batch = next(Batches(make(7)).epoch(size=7))
        assert batch.mask is not None
        values = torch.randn(7, 5, 2, generator=torch.Generator().manual_seed(0))
        return batch, values * batch.mask[..., None]

    @pytest.mark.parametrize(
        ("prior", "each"),
        [
            (UpperBound(weight=2.0, bound=0.3), lambda v: max(v - 0.3, 0) ** 2),
            (UpperBound(weight=2.0, bound=-0.3), lambda v: max(v + 0.3, 0) ** 2),
            (LowerBound(weight=2.0, bound=0.3), lambda v: max(0.3 - v, 0) ** 2),
            (LowerBound(weight=2.0, bound=-0.3), lambda v: max(-0.3 - v, 0) ** 2),
            (Sparse(weight=2.0), abs),
        ],
    )
    def test_mean_over_instances(self, make, prior, each):
        batch, values = self.ragged(make)
        real = [float(v) for v in values[batch.mask].flatten()]
        expected = 2 * sum(map(each, real)) / len(real)
        assert float(prior.penalty(MODEL, batch, values)) == pytest.approx(expected, rel=1e-5)

    def test_equal_sizes(self, make):
        batch, values = self.ragged(make)
        full = replace(batch, mask=None)
        assert float(Sparse().penalty(MODEL, full, values)) == pytest.approx(
            float(values.abs().mean())
        )


class TestConsistent:
    """Neighbours exchanged one pair after the other, set by set, by hand."""

    def by_hand(self, model, batch, first):
        gaps = []
        sizes = [batch.x.shape[1]] * len(batch.x) if batch.mask is None else batch.mask.sum(1)
        for x, size in zip(batch.x, sizes, strict=True):
            instances = list(x[: int(size)])
            exchanged = list(instances)
            ends = range(first + 1, len(instances), 2)
            for end in ends:
                exchanged[end - 1], exchanged[end] = exchanged[end], exchanged[end - 1]
            for end in ends:
                worth = [model(torch.stack(i[: end + 1])[None]) for i in (instances, exchanged)]
                gaps.append((worth[0] - worth[1]) / model.unit)
        return float(torch.stack(gaps).square().mean())

    @torch.no_grad()
    @pytest.mark.parametrize("ragged", [True, False])
    @pytest.mark.parametrize("name", ["c-gru", "c-deepset", "gru"])
    def test_penalty(self, make, name, ragged):
        model = build(name, in_features=4, hidden=8, outputs=2, seed=1).double().eval()
        model.unit.copy_(torch.tensor([2.0, 0.5]))
        batch = next(Batches(make(7)).epoch(size=7))
        batch = replace(batch, x=batch.x.double(), mask=batch.mask if ragged else None)
        found = set()
        for seed in range(8):
            torch.manual_seed(seed)
            values = model.added_values(batch.x, batch.mask)
            penalty = float(Consistent(weight=2.0).penalty(model, batch, values))
            found.add(round(penalty, 12))
        expected = {round(2 * self.by_hand(model, batch, first), 12) for first in (0, 1)}
        assert found == expected

    @torch.no_grad()
    @pytest.mark.parametrize("name", ["deepset", "c-potential"])
    def test_nothing_to_say_where_order_cannot_matter(self, make, name):
        model = build(name, in_features=4, hidden=8, seed=1).double()
        batch = next(Batches(make(7)).epoch(size=7))
        batch = replace(batch, x=batch.x.double())
        values = model.added_values(batch.x, batch.mask)
        assert float(Consistent().penalty(model, batch, values)) < 1e-20

    @torch.no_grad()
    def test_sets_of_one_have_no_neighbours(self, make):
        batch = next(Batches(make(7)).epoch(size=7))
        one = replace(batch, x=batch.x[:, :1], mask=None)
        values = MODEL.added_values(one.x)
        assert float(Consistent().penalty(MODEL, one, values)) == 0

    def test_same_seed_same_weights(self, make):
        sets, weights = make(), []
        for _ in range(2):
            model = build("c-gru", in_features=4, hidden=8, layers=1, seed=0)
            fit(model, sets, recipe=replace(LONG, epochs=2), priors=[Consistent()], seed=3)
            weights.append(model.state_dict())
        assert all(torch.equal(w, weights[1][k]) for k, w in weights[0].items())


class TestRecord:
    @pytest.mark.parametrize(
        "prior",
        [UpperBound(bound=2.0), LowerBound(weight=0.5), Sparse(weight=3.0), Consistent(weight=2.0)],
    )
    def test_json(self, prior):
        values = json.loads(json.dumps(prior.to_dict()))
        assert values["kind"] in PRIORS
        assert prior_from_dict(values) == prior

    def test_unknown(self):
        with pytest.raises(InputError, match="unknown prior 'upper-bund': did you mean 'upper-b"):
            prior_from_dict({"kind": "upper-bund"})
        with pytest.raises(InputError, match="unknown Sparse setting 'bound'"):
            prior_from_dict({"kind": "sparse", "bound": 1.0})

    def test_negative_weight(self):
        with pytest.raises(InputError, match="must not be negative, but is -1"):
            Sparse(weight=-1.0)

    @pytest.mark.parametrize("value", [np.nan, np.inf, "1", None])
    def test_no_number(self, value):
        for kind in (Sparse, Consistent, UpperBound):
            with pytest.raises(
                InputError, match="the weight of a prior must be a finite number, not"
            ):
                kind(weight=value)
        with pytest.raises(InputError, match="the bound of a prior must be a finite number, not"):
            LowerBound(bound=value)

    @pytest.mark.parametrize(
        ("priors", "words"),
        [
            (Consistent(), r"priors must be a list, such as \[Consistent\(\)\], not Consistent\("),
            ("consistent", "priors must be a list"),
            (None, "priors must be a list"),
            (["consistent"], "'consistent' is not a prior: pass an object such as"),
            ([Consistent], "is not a prior"),
        ],
    )
    def test_no_list_of_priors(self, make, priors, words):
        with pytest.raises(InputError, match=words):
            fit(MODEL, make(10), recipe=Recipe(epochs=1), priors=priors)
