"""Every network of the registry passes the contract checks, and every check can fail."""

import pytest
import torch
from torch import nn

from capnets import checks
from capnets.checks import CheckError, Subject, check_model, checks_for
from capnets.errors import InputError
from capnets.models import AGGREGATIONS, BASELINES, MODELS, ModelSpec, build
from capnets.models.base import AdditiveModel, SetModel
from capnets.models.capacity import CapacityNetwork
from capnets.models.deep_sets import DeepSet
from capnets.models.recurrent import RecurrentNetwork
from capnets.nn import masked
from capnets.nn.cells import GRUCell
from capnets.nn.encoders import mlp

SPECS = {"{}": {}, "{} with three outputs": {"outputs": 3, "layers": 2}}
CAPACITY = [name for name, entry in MODELS.items() if "mean" in entry.aggregations]
PARTS = [  # aggregation, baseline
    (aggregation, baseline)
    for aggregation in AGGREGATIONS
    for baseline in BASELINES
    if (aggregation, baseline) != ("sum", "none")  # covered by all other tests
]


def subject(name: str, **settings) -> Subject:
    return Subject.of(lambda: build(name, in_features=6, hidden=8, **settings))


CASES = [
    pytest.param(name, settings, check, id=f"{label.format(name)}: {check.__name__}")
    for name in MODELS
    for label, settings in SPECS.items()
    for check in checks_for(ModelSpec(name).build())
]


@pytest.mark.parametrize(("name", "settings", "check"), CASES)
def test_registry(name, settings, check):
    check(subject(name, **settings))


@pytest.mark.parametrize("activation", ["identity", "softplus"])
@pytest.mark.parametrize("name", CAPACITY)
def test_activations(name, activation):
    check_model(lambda: build(name, in_features=6, hidden=8, activation=activation))


@pytest.mark.parametrize(("aggregation", "baseline"), PARTS)
@pytest.mark.parametrize("name", ["c-rnn", "c-deepset"])
def test_aggregations(name, aggregation, baseline):
    settings = {"aggregation": aggregation, "baseline": baseline, "activation": "identity"}
    check_model(lambda: build(name, in_features=6, hidden=8, outputs=2, layers=2, **settings))


@pytest.mark.parametrize("settings", [{"members": 2}, {"order": "worth"}, {"order": 1}])
@pytest.mark.parametrize("aggregation", ["mean+sum", "any"])
def test_aggregations_in_other_networks(aggregation, settings):
    """A mean of additive networks is additive; a sorted one counts from the same baseline."""
    parts = {"aggregation": aggregation, "baseline": "learned", "activation": "identity"}
    check_model(lambda: build("c-gru", in_features=4, hidden=8, layers=2, **parts, **settings))


@pytest.mark.parametrize("name", ["c-deepset", "gru", "attention"])
def test_ensembles(name):
    names = check_model(lambda: build(name, in_features=3, hidden=8, layers=2, members=2))
    assert ("steps_equal_batches" in names) == (name == "c-deepset")


@pytest.mark.parametrize(
    ("name", "in_features", "hidden"),
    [("c-rnn", 1, 5), ("c-gru", 3, 1), ("c-deepset", 1, 4), ("deepset", 3, 2)],
)
def test_small_networks(name, in_features, hidden):
    """Small networks pass, though all of their units are dead for many seeds."""
    check_model(lambda: build(name, in_features=in_features, hidden=hidden))


@pytest.mark.parametrize("name", ["c-gru", "attention"])
def test_standardisation(name):
    check_model(lambda: build(name, in_features=6, hidden=8, inputs="standardize"))


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("name", ["c-gru", "set-transformer"])
def test_pictures(name, members):
    def make():
        return build(name, in_features=6, hidden=8, inputs="pictures", members=members)

    check_model(make, feature_shape=(1, 5, 5))


def test_feature_shape_must_be_known():
    def make():
        return CapacityNetwork(encoder=nn.Identity(), cell=GRUCell(3, 4), decoder=mlp(4, 1))

    with pytest.raises(InputError, match="pass feature_shape"):
        check_model(make)
    check_model(make, feature_shape=(3,))


def test_names_of_passed_checks():
    names = check_model(lambda: build("c-gru", in_features=3, hidden=4))
    assert {"steps_equal_batches", "prefixes_keep_their_values"} <= set(names)
    names = check_model(lambda: build("deepset", in_features=3, hidden=8))
    assert "values_are_differences_of_prefixes" in names
    assert "steps_equal_batches" not in names


# Networks that are wrong on purpose ---------------------------------------------------------------


class TakesLastPaddedStep(RecurrentNetwork):
    def predict(self, x, mask):
        return self.decoder(self.cell(self.encoder(x))[0][:, -1])


class SumsPadding(DeepSet):
    def predict(self, x, mask):
        return self.decoder(self.encoder(x).sum(1))


class LooksAhead(CapacityNetwork):
    def values(self, x):
        return super().values(x.flip(1)).flip(1)


class KnowsTheSize(CapacityNetwork):
    def values(self, x):
        return super().values(x) / x.shape[1]


class ForgetsParameter(DeepSet):
    def __init__(self, **parts):
        super().__init__(**parts)
        self.forgotten = nn.Linear(2, 2)


class HidesParameter(DeepSet):
    idle = ("decoder.*",)


class ClaimsNoOrder(RecurrentNetwork):
    ordered = False


class ClaimsOrder(DeepSet):
    ordered = True


class AddsOne(CapacityNetwork):
    def forward(self, x, mask=None):
        return super().forward(x, mask) + 1


class StepForgets(CapacityNetwork):
    def step(self, x, state):
        return super().step(x, torch.zeros_like(state))


class AcceptsAnyState(CapacityNetwork):
    def step(self, x, state):
        return super().step(x, self.initial_state(len(x)))


class StateOfTheWrongKind(CapacityNetwork):
    def step(self, x, state):
        if state.shape != (len(x), self.state_features) or state.dtype != x.dtype:
            raise RuntimeError("sizes do not match")
        return super().step(x, state)


class IgnoresUnit(DeepSet):
    def forward(self, x, mask=None):
        return self.predict(self.read(x, mask), mask)


class KeepsItsUnit(DeepSet):
    def start(self, *, unit, label, size):
        super().start(unit=torch.ones_like(unit), label=label / unit, size=size)


class ForgetsTheSize(CapacityNetwork):
    def start(self, *, unit, label, size):
        super().start(unit=unit, label=label, size=1.0)


class NeedsSets(DeepSet):
    def forward(self, x, mask=None):
        return super().forward(x, mask) if len(x) else self.unit.new_zeros(1, 1)


class SortsByOneFeature(RecurrentNetwork):
    ordered = False

    def predict(self, x, mask):
        order = x[..., 0].argsort(dim=1, stable=True)
        return super().predict(x[torch.arange(len(x))[:, None], order], mask)


class SeesNothing(DeepSet):
    def predict(self, x, mask):
        return super().predict(torch.zeros_like(x) + 0 * x.sum(), mask)


class ValuesBehindTheEnd(CapacityNetwork):
    def added_values(self, x, mask=None):
        return self.unit * self.values(self.read(x, mask))

    def forward(self, x, mask=None):
        return masked.total(self.added_values(x, mask), mask)


class MeanWhenMasked(DeepSet):
    def predict(self, x, mask):
        pooled = masked.total(self.encoder(x), mask)
        return self.decoder(pooled if mask is None else pooled / mask.sum(1, keepdim=True))


class NeedsTwo(DeepSet):
    def predict(self, x, mask):
        if mask is not None:
            x = x[:, : int(mask.sum(1).max())]
        return super().predict(x / x.std(1, keepdim=True), mask)


class AcceptsAnything(CapacityNetwork):
    def read(self, x, mask):
        return x[..., : self.in_features]


class RaisesTheWrongThing(DeepSet):
    def check_some(self, x, mask):
        if not x.shape[1] or (mask is not None and not mask[:, 0].all()):
            raise IndexError("index out of range")


class PredictsNothing(DeepSet):
    def check_some(self, x, mask):
        """An empty set is decoded like any other."""


class WrongPrefixes(DeepSet):
    def predict_prefixes(self, x):
        return super().predict_prefixes(x).roll(1, dims=1)


class KeepsWeightsAside(DeepSet):
    def __init__(self, **parts):
        super().__init__(**parts)
        self.aside = [torch.rand(1)]

    def predict(self, x, mask):
        return super().predict(x, mask) * self.aside[0].to(x)


class SharesItself(DeepSet):
    def __deepcopy__(self, memo):
        return self


class SharesItsDecoder(DeepSet):
    def __deepcopy__(self, memo):
        copy = type(self)(encoder=self.encoder, decoder=self.decoder)
        return copy.to(self.unit.dtype)


class DropsAlways(DeepSet):
    def predict(self, x, mask):
        return super().predict(nn.functional.dropout(x, 0.5, training=True), mask)


class WritesIntoInput(DeepSet):
    def predict(self, x, mask):
        return super().predict(x.relu_() if not x.requires_grad else x, mask)


class OneRowForAll(DeepSet):
    def forward(self, x, mask=None):
        return super().forward(x, mask)[:1]


def make(kind: type[SetModel]) -> SetModel:
    parts = {"encoder": mlp(6, 16, 8), "decoder": mlp(8, 16, 1)}
    if issubclass(kind, (RecurrentNetwork, CapacityNetwork)):
        parts["cell"] = GRUCell(8, 8)
    return kind(**parts)


# A broken network, the check that must fail, and a part of its message.
BROKEN = [
    (TakesLastPaddedStep, checks.batch_mates_do_not_matter, "changes beside larger sets"),
    (SumsPadding, checks.padding_does_not_matter, "the padding changes the prediction"),
    (SumsPadding, checks.padding_has_no_gradient, "padding changes the gradient"),
    (ValuesBehindTheEnd, checks.padding_does_not_matter, "changes the added values"),
    (MeanWhenMasked, checks.full_mask_is_no_mask, "a mask without padding changes"),
    (LooksAhead, checks.later_instances_do_not_matter, "depend on instances that come later"),
    (KnowsTheSize, checks.prefixes_keep_their_values, "change when more follow"),
    (KnowsTheSize, checks.differences_are_values, "does not change by the added value"),
    (AddsOne, checks.values_sum_to_prediction, "do not sum to the prediction"),
    (AddsOne, checks.empty_sets_are_worth_the_baseline, "is not the baseline"),
    (ForgetsParameter, checks.gradients_reach_every_parameter, "forgotten.bias, forgotten.weight"),
    (HidesParameter, checks.gradients_reach_every_parameter, "declared idle"),
    (ClaimsNoOrder, checks.order_is_as_declared, "another order changes the prediction"),
    (ClaimsOrder, checks.order_is_as_declared, "no order changes the prediction"),
    (StepForgets, checks.steps_equal_batches, "are not those of the batch"),
    (AcceptsAnyState, checks.refuses_other_states, "fewer sets is accepted without an error"),
    (StateOfTheWrongKind, checks.refuses_other_states, "an InputError, not RuntimeError"),
    (SortsByOneFeature, checks.order_is_as_declared, "another order changes the prediction"),
    (SeesNothing, checks.padding_has_no_gradient, "no gradient in the instances"),
    (IgnoresUnit, checks.several_outputs_and_units, "not proportional to the unit"),
    (KeepsItsUnit, checks.several_outputs_and_units, "not the one given to start"),
    (ForgetsTheSize, checks.starts_near_the_mean, "must account for the set size"),
    (NeedsSets, checks.several_outputs_and_units, "a batch without sets must have no"),
    (OneRowForAll, checks.several_outputs_and_units, "must be sets x outputs"),
    (NeedsTwo, checks.sets_of_one, "set of size one is not finite"),
    (AcceptsAnything, checks.refuses_wrong_input, "accepted without an error"),
    (PredictsNothing, checks.refuses_empty_sets, "accepted without an error"),
    (RaisesTheWrongThing, checks.refuses_empty_sets, "must raise an InputError, not IndexError"),
    (WrongPrefixes, checks.values_are_differences_of_prefixes, "not the difference of two"),
    (KeepsWeightsAside, checks.weights_round_trip, "it uses something that is not saved"),
    (SharesItself, checks.copies_predict_the_same, "changing a deep copy changes the original"),
    (SharesItsDecoder, checks.copies_predict_the_same, "changing a deep copy changes"),
    (DropsAlways, checks.repeats_itself, "a repeated call gives another prediction"),
    (WritesIntoInput, checks.repeats_itself, "modifies its instances"),
]


@pytest.mark.filterwarnings("ignore:std")  # of one instance: that is what is wrong with NeedsTwo
@pytest.mark.parametrize(
    ("kind", "check", "words"), BROKEN, ids=lambda v: getattr(v, "__name__", " ")
)
def test_broken(kind, check, words):
    with pytest.raises(CheckError, match=words):
        check(Subject.of(lambda: make(kind)))


def test_unbroken_parts_pass():
    """The same parts without the mistake pass."""
    for kind in (DeepSet, RecurrentNetwork, CapacityNetwork):
        check_model(lambda kind=kind: make(kind))


def test_fixed_seed_is_found():
    one = Subject.of(lambda: build("deepset", in_features=6, hidden=8, seed=0))
    with pytest.raises(CheckError, match="different seeds give the same network"):
        checks.seeds_decide(one)


def test_unseeded_is_found():
    weights = iter(range(100))

    def drifting():
        model = make(DeepSet)
        nn.init.constant_(model.final.bias, next(weights))
        return model

    with pytest.raises(CheckError, match="the same seed gives different networks"):
        checks.seeds_decide(Subject.of(drifting))


def test_every_check_was_seen_failing():
    seen = {check for _, check, _ in BROKEN} | {checks.seeds_decide}
    every = {*checks.EVERY, *checks.ADDITIVE, *checks.NOT_ADDITIVE, *checks.STEPPING}
    assert seen == every


def test_check_model_says_what_is_broken():
    with pytest.raises(AssertionError, match="beside larger sets"):
        check_model(lambda: make(TakesLastPaddedStep))


def test_additive_models_cannot_forget_the_mask():
    """The base class sums the values, so an additive network need not handle padding."""

    class Weights(AdditiveModel):
        ordered = False

        def __init__(self):
            super().__init__(in_features=3, outputs=1)
            self.decoder = mlp(3, 4, 1)

        def values(self, x):
            return self.decoder(x)

    check_model(Weights)
