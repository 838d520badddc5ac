"""Build networks by name and from parts: sizes, settings, initialization, errors."""

import json

import pytest
import torch

import capnets
from capnets.checks import check_model, check_spec
from capnets.errors import InputError
from capnets.export.onnx import feature_shape
from capnets.models import (
    MODELS,
    CapacityNetwork,
    Ensemble,
    ModelSpec,
    build,
    parameters,
    prefixes,
)
from capnets.nn.cells import GRUCell
from capnets.nn.encoders import ConvEncoder, Standardize, mlp

# At 64 features and 32 hidden dimensions: 3fc as the paper prints it (Attention: 17,794), 2fc by
# hand: one layer of 64 x 64 + 64 less in the encoder, one of 32 x 32 + 32 less in the decoder.
COUNTS = {
    "rnn": (15_681, 10_465),
    "lstm": (22_049, 16_833),
    "gru": (19_937, 14_721),
    "c-rnn": (15_681, 10_465),
    "c-lstm": (22_049, 16_833),
    "c-gru": (19_937, 14_721),
    "c-deepset": (19_873, 14_657),
    "c-potential": (16_705, 8_481),
    "c-pairs": (15_745, 10_529),
    "c-pool": (8_353, 7_297),
    "c-trees": (2, 2),
    "deepset": (13_601, 8_385),
    "attention": (17_826, 12_610),
    "set-transformer": (15_809, 15_809),
    "set-transformer-l": (34_753, 34_753),
}


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts(name):
    counts = tuple(parameters(build(name, in_features=64, layers=n)) for n in (3, 2))
    assert counts == COUNTS[name]


def test_attention_is_within_two_per_mille_of_the_paper():
    assert abs(COUNTS["attention"][0] / 17_794 - 1) < 0.002


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_counterparts_are_equally_large(name):
    assert parameters(build(f"c-{name}")) == parameters(build(name))


@pytest.mark.parametrize("name", MODELS)
def test_spec_goes_through_json(name):
    check_spec(ModelSpec(name, in_features=5, hidden=8, layers=2, outputs=3, inputs="standardize"))


def test_seed_leaves_the_global_generator_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    build("c-gru", in_features=4, seed=5)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "c-grue"}, "unknown model 'c-grue': did you mean 'c-gru'"),
        ({"name": "settransformer"}, "did you mean 'set-transformer'"),
        ({"name": "zzz"}, "Choices: rnn, lstm, gru, c-rnn"),
        ({"activation": "absolute"}, "unknown activation 'absolute'.*Choices: abs, identity"),
        ({"inputs": "standardise"}, "did you mean 'standardize'"),
        ({"hiden": 3}, "unknown .*'hiden': did you mean 'hidden'"),
        ({"hidden": 0}, "hidden must be a whole number of at least 1, not 0"),
        ({"hidden": "32"}, "hidden must be a whole number of at least 1, not '32'"),
        ({"layers": 2.5}, "layers must be a whole number"),
        ({"name": "set-transformer", "hidden": 6}, "must be divisible by the number of heads"),
    ],
)
def test_wrong_settings(settings, words):
    with pytest.raises(InputError, match=words):
        build(**{"name": "c-gru", **settings})


def test_spec_is_json():
    spec = ModelSpec("c-gru")
    assert json.loads(json.dumps(spec.to_dict()))["activation"] == "abs"
    assert ModelSpec.from_dict({"name": "c-gru"}) == spec


class TestEnsemble:
    def test_unit_is_that_of_its_members(self):
        members = [build("c-gru", in_features=3, hidden=4, outputs=2, seed=k) for k in range(2)]
        model = Ensemble(members)
        unit = torch.tensor([2.0, 0.5])
        model.start(unit=unit, label=torch.ones(2), size=3.0)
        assert torch.equal(model.unit, unit)
        members[0].unit.mul_(3)
        assert torch.equal(model.unit, 2 * unit)

    def test_weights_have_the_names_that_they_had(self):
        """The unit is still saved, though the units of the members are used."""
        model = build("c-gru", in_features=3, hidden=4, members=2)
        kept = model.state_dict()
        assert kept["unit"].tolist() == [1.0]
        model.load_state_dict(kept)

    def test_members_that_project_and_members_that_pool_wide_instances(self):
        """Networks that pool features read all of them; the others read components."""
        spec = ModelSpec(
            "c-gru", in_features=300, hidden=4, members=2, inputs="project",
            activation="identity", mixed=("c-gru:sum:none", "c-pool:sum:learned"),
            baseline="none",
        )  # fmt: skip
        model = spec.build(0)
        assert model.in_features == 300
        assert [m.in_features for m in model.each] == [256, 300]
        assert model(torch.randn(2, 3, 300)).shape == (2, 1)
        assert feature_shape(model) == (300,)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"in_features": 4}, "the same in_features, not 3 and 4"),
            ({"outputs": 2}, "the same outputs, not 1 and 2"),
        ],
    )
    def test_members_that_differ(self, settings, words):
        members = [build("c-gru", **{"in_features": 3, **s}) for s in ({}, settings)]
        with pytest.raises(InputError, match=words):
            Ensemble(members)

    def test_state_of_another_ensemble(self):
        model = build("c-gru", in_features=3, hidden=4, members=2)
        for state in (model.initial_state(), model.initial_state(2)[:, 1:]):
            with pytest.raises(InputError, match=r"expected \(2, 8\)"):
                model.step(torch.zeros(2, 3), state)


class TestFromParts:
    def test_front_door(self):
        net = capnets.CapacityNetwork(
            encoder=mlp(3, 8, 6), cell=GRUCell(6, 4), decoder=mlp(4, 5, 2), activation="softplus"
        )
        assert (net.in_features, net.outputs) == (3, 2)
        assert net(torch.randn(2, 7, 3)).shape == (2, 2)

    def test_width_is_checked(self):
        net = CapacityNetwork(encoder=mlp(3, 6), cell=GRUCell(6, 4), decoder=mlp(4, 1))
        with pytest.raises(InputError, match=r"shape \(4,\), but this network was built for 3"):
            net(torch.randn(2, 5, 4))

    def test_any_module_encodes(self):
        net = CapacityNetwork(encoder=ConvEncoder(6), cell=GRUCell(6, 4), decoder=mlp(4, 1))
        assert net.in_features is None
        x = torch.randn(2, 3, 1, 8, 8)
        values = net.added_values(x)
        torch.testing.assert_close(net(x), values.sum(1))
        value, _ = net.step(x[:, 0], net.initial_state(2))
        torch.testing.assert_close(value, values[:, 0])
        with pytest.raises(InputError, match=r"shape \(64,\); expected pictures"):
            net(torch.randn(2, 3, 64))

    @pytest.mark.parametrize("decoder", [torch.nn.Sequential(), mlp(4, 1).append(torch.nn.Tanh())])
    def test_decoder_must_end_linear(self, decoder):
        with pytest.raises(InputError, match="last layer of a decoder must be linear"):
            CapacityNetwork(encoder=mlp(3, 6), cell=GRUCell(6, 4), decoder=decoder)

    def test_unknown_activation(self):
        with pytest.raises(InputError, match="unknown activation 'soft': did you mean 'softplus'"):
            CapacityNetwork(
                encoder=mlp(3, 6), cell=GRUCell(6, 4), decoder=mlp(4, 1), activation="soft"
            )


class TestStart:
    """With the last weights at 0, an untrained network predicts the mean label."""

    def begun(self, name, label, *, unit, size=4.0, **settings):
        model = build(name, in_features=3, hidden=8, outputs=len(label), **settings)
        torch.nn.init.zeros_(model.final.weight)
        model.start(unit=torch.tensor(unit), label=torch.tensor(label), size=size)
        return model(torch.randn(5, 4, 3))

    @pytest.mark.parametrize("activation", ["abs", "identity", "softplus"])
    @pytest.mark.parametrize("label", [[12.0, 0.5], [1e4, 3.0]])
    def test_capacity(self, activation, label):
        prediction = self.begun("c-gru", label, unit=[0.5, 0.1], activation=activation)
        torch.testing.assert_close(prediction, torch.tensor(label).expand(5, 2), rtol=1e-4, atol=0)

    @pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("c-")])
    def test_others(self, name):
        prediction = self.begun(name, [12.0, -3.0], unit=[0.5, 2.0])
        torch.testing.assert_close(prediction, torch.tensor([12.0, -3.0]).expand(5, 2))


class TestInputs:
    def test_standardize(self):
        plain = build("c-gru", in_features=3, seed=1)
        model = build("c-gru", in_features=3, inputs="standardize", seed=1)
        assert isinstance(model.inputs, Standardize)
        mean, deviation = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 4.0, 0.0])
        model.inputs.learn(mean, deviation)
        x = torch.randn(4, 5, 3)
        expected = plain((x - mean) / torch.tensor([2.0, 4.0, 1.0]))  # a constant column: scale 1
        torch.testing.assert_close(model(x), expected)
        assert {"inputs.mean", "inputs.scale"} <= model.state_dict().keys()

    @pytest.mark.parametrize("width", [1, 2, 4])
    def test_standardize_refuses_another_width(self, width):
        model = build("c-gru", in_features=3, inputs="standardize")
        with pytest.raises(InputError, match=f"{width} features, expected 3"):
            model(torch.randn(2, 2, width))

    @pytest.mark.parametrize("shape", [(64,), (3, 8, 8), (1, 2, 2), (8, 8)])
    def test_pictures_refuse_other_shapes(self, shape):
        model = build("c-gru", in_features=6, inputs="pictures")
        with pytest.raises(InputError, match="expected pictures of shape 1 x height x width"):
            model(torch.randn(2, 3, *shape))


@torch.no_grad()
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_attention_values_in_one_pass(spread):
    """Running sums give the predictions of all prefixes, however far apart the scores are."""
    model = build("attention", in_features=3, hidden=8, seed=0)
    model.scores[-1].weight *= spread
    x = torch.randn(4, 50, 3, generator=torch.Generator().manual_seed(0))
    one_by_one = prefixes.prefix_by_prefix(model.predict, x)
    torch.testing.assert_close(model.predict_prefixes(x), one_by_one, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_many_prefixes_take_several_passes(monkeypatch):
    model = build("set-transformer", in_features=3, hidden=8, seed=0).double()
    x = torch.randn(3, 6, 3, dtype=torch.float64)
    at_once = model.added_values(x)
    monkeypatch.setattr(prefixes, "PREFIX_NUMBERS", 6 * (6 + 3) * 4)  # four prefixes a pass
    torch.testing.assert_close(model.added_values(x), at_once, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(prefixes, "PREFIX_NUMBERS", 1)
    torch.testing.assert_close(model.added_values(x), at_once, rtol=1e-12, atol=1e-12)


def test_own_network_needs_only_a_prediction():
    class Largest(prefixes.WholeSetModel):
        ordered = False

        def __init__(self):
            super().__init__(in_features=3, outputs=1)
            self.encoder, self.decoder = mlp(3, 16, 8), mlp(8, 8, 1)

        def predict(self, x, mask):
            hidden = self.encoder(x)
            if mask is not None:
                hidden = hidden.masked_fill(~mask[..., None], -torch.inf)
            return self.decoder(hidden.amax(1))

    check_model(Largest)


@pytest.mark.parametrize(
    "settings",
    [{"members": 10**30}, {"layers": 2**31}, {"hidden": 10**9}, {"in_features": 10**12}],
)
def test_sizes_beyond_memory_are_refused(settings):
    """A damaged configuration must not hang."""
    with pytest.raises(InputError, match=r"at most 1,000|too large"):
        ModelSpec("c-gru", **settings)
