"""Large sets: steps limited by instances, encoders in parts, samples of instances."""

import itertools
import weakref

import numpy as np
import pytest
import torch

from capnets import Recipe, fit
from capnets.errors import InputError
from capnets.evaluate import added_values, predict
from capnets.learn.plan import LARGE_STEP
from capnets.models import build, parts
from capnets.models.parts import in_parts
from capnets.nn import masked
from capnets.nn.random import draw_from
from capnets.sets import Sets, offsets_of
from capnets.sets.batch import Batches
from capnets.training.priors import UpperBound

NETWORKS = ["c-gru", "c-deepset", "c-pairs", "c-potential", "deepset", "attention", "gru"]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "LARGE", 10)
    monkeypatch.setattr(parts, "PART", 12)
    monkeypatch.setattr(parts, "AGAIN", 10)


def sized(sizes, *, seed=0, label=lambda x: x[:, 0].sum()) -> Sets:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(sum(sizes), 3)).astype(np.float32)
    cut = offsets_of(sizes)
    y = [label(x[a:b]) for a, b in itertools.pairwise(cut)]
    return Sets(x, np.arange(len(x)), cut, np.array(y, dtype=np.float32))


class TestParts:
    @pytest.mark.parametrize("name", NETWORKS)
    @pytest.mark.parametrize("dropout", [0.0, 0.5])
    @pytest.mark.parametrize("again", [True, False])
    def test_same_predictions_and_gradients(self, name, dropout, again, small_parts, monkeypatch):
        """In parts, with dropout drawn again in the backward pass, nothing changes."""
        if not again:
            monkeypatch.setattr(parts, "AGAIN", 1000)
        model = build(name, in_features=3, hidden=4, inputs="standardize", dropout=dropout,
                      width=8, seed=0).double().train()  # fmt: skip
        model.inputs.learn(torch.ones(3), torch.full((3,), 2.0))
        sets = 1 if dropout else 2  # cells read instance by instance: another order of drawing
        draw = torch.Generator().manual_seed(0)
        x = torch.randn(sets, 7, 3, dtype=torch.float64, generator=draw)
        view = in_parts(model, x)
        assert view is not model
        # One part draws as the whole does; several parts draw other numbers.
        if dropout:
            parts.PART = 1000
        found = []
        for network in (model, view):
            model.zero_grad()
            with draw_from(3):
                network(x).square().sum().backward()
            found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b)

    def test_every_part_is_drawn_again(self, small_parts):
        """Finite differences under the same dropout agree with the backward pass."""
        model = build("deepset", in_features=3, hidden=16, layers=1, inputs="standardize",
                      dropout=0.5, seed=0).double().train()  # fmt: skip
        x = torch.randn(1, 40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        weight = model.encoder[0].weight
        step = torch.zeros_like(weight)
        step[0, 0] = 1e-6
        with draw_from(0):
            y = in_parts(model, x)(x)
        (gradient,) = torch.autograd.grad(y.sum(), weight)
        assert float(gradient[0, 0]) != 0
        with torch.no_grad(), draw_from(0):
            weight += step
            higher = in_parts(model, x)(x)
        slope = float(higher - y.detach()) / 1e-6
        assert slope == pytest.approx(float(gradient[0, 0]), rel=1e-4)

    def test_default_steps_are_encoded_once(self):
        assert parts.LARGE < LARGE_STEP <= parts.AGAIN

    def test_attention_over_features_is_read_as_a_whole(self, small_parts):
        """Scores of the paper's form see the features themselves."""
        model = build("attention", in_features=3, inputs="standardize", seed=0)
        model.inputs.learn(torch.ones(3), torch.full((3,), 2.0))
        x = torch.randn(2, 7, 3)
        torch.testing.assert_close(in_parts(model, x)(x), model(x))

    def test_keeps_no_hidden_layers(self, small_parts):
        kept = []

        def size(tensor):
            kept.append(tensor.numel())
            return tensor

        model = build("deepset", in_features=3, hidden=4, layers=3, seed=0)
        x = torch.randn(1, 500, 3)
        with torch.autograd.graph.saved_tensors_hooks(size, lambda t: t):
            in_parts(model, x)(x)
        assert max(kept) <= 500 * 4, "only what the encoder returns"

    def test_training_and_prediction(self, small_parts):
        sets = sized([4, 9, 1, 6] * 4)
        model = build("c-gru", in_features=3, hidden=4, inputs="standardize", seed=0)
        fit(model, sets, recipe=Recipe(epochs=2, batch_size=3))
        np.testing.assert_allclose(
            predict(model, sets),
            np.add.reduceat(added_values(model, sets), sets.offsets[:-1]),
            rtol=1e-4,
            atol=1e-5,
        )


class TestBatchInstances:
    def test_one_batch_in_memory_at_a_time(self, monkeypatch):
        """A batch is freed before the next one is read, in training and in predictions."""
        take, read, alive = Batches.take, [], []

        def watched(*args, **options):
            alive.append(sum(one() is not None for one in read))
            batch = take(*args, **options)
            read.append(weakref.ref(batch.x))
            return batch

        monkeypatch.setattr(Batches, "take", watched)
        sets = sized([2] * 10)
        model = build("c-deepset", in_features=3, hidden=4, seed=0)
        fit(model, sets, sets, recipe=Recipe(epochs=2, batch_size=2))
        predict(model, sets, batch_size=2)
        added_values(model, sets, batch_size=2)
        assert len(alive) == 2 * (5 + 1) + 5 + 5
        assert alive == [0] * len(alive)

    def test_one_limit_for_baskets_and_slides(self):
        """Many small sets fit into a step, and a large one makes a step of its own."""
        sets = sized([2] * 30 + [50])
        batches = []

        class Count(torch.nn.Module):
            def forward(self, x):
                batches.append(tuple(x.shape[:2]))
                return x

        model = build("c-deepset", in_features=3, hidden=4, seed=0)
        model.inputs = Count()
        fit(model, sets, recipe=Recipe(epochs=1, batch_size=1000, batch_instances=20, scale=False))
        assert (1, 50) in batches
        assert max(n * m for n, m in batches if n > 1) <= 20
        assert sum(n for n, _ in batches) == 31

    def test_resumes_with_the_same_bits(self, tmp_path):
        sets = sized([3, 8, 2, 20] * 5)
        recipe = Recipe(epochs=4, batch_size=6, batch_instances=24, sample_instances=5)
        whole, halves = (build("c-gru", in_features=3, hidden=4, seed=0) for _ in range(2))
        fit(whole, sets, recipe=recipe)

        class Stop(Exception):  # noqa: N818
            pass

        from capnets.training.callbacks import EpochEnd

        def stop(line):
            if line["epoch"] == 2:
                raise Stop

        with pytest.raises(Stop):
            fit(halves, sets, recipe=recipe, checkpoint=tmp_path / "c", callbacks=[EpochEnd(stop)])
        fit(halves, sets, recipe=recipe, checkpoint=tmp_path / "c")
        for a, b in zip(whole.parameters(), halves.parameters(), strict=True):
            assert torch.equal(a, b)


class TestSamples:
    """A network whose values do not depend on other instances shows the scaling exactly."""

    @pytest.mark.parametrize(("name", "aggregation"), [("deepset", "sum"), ("c-deepset", "sum"),
                                                       ("c-deepset", "mean+sum")])  # fmt: skip
    def test_sums_are_scaled(self, name, aggregation):
        """Equal instances: a third of a set, scaled, predicts what the whole set does."""
        model = build(name, in_features=3, hidden=16, layers=1, activation="identity",
                      aggregation=aggregation, seed=0).double()  # fmt: skip
        x = torch.ones(1, 12, 3, dtype=torch.float64)
        with masked.sampled(torch.tensor([[3.0]], dtype=torch.float64)):
            part = model(x[:, :4])
        # Counts before an instance differ between the whole and a part by less than one step.
        torch.testing.assert_close(part, model(x), rtol=0.2, atol=0.02)
        assert (model(x[:, :4]) - model(x)).abs() > 2 * (part - model(x)).abs()

    @pytest.mark.parametrize("name", ["attention", "gru"])
    def test_means_are_not_scaled(self, name):
        model = build(name, in_features=3, hidden=4, seed=0)
        x = torch.randn(2, 4, 3)
        with masked.sampled(torch.tensor([[3.0], [2.0]])):
            assert torch.equal(model(x), model(x))
            sampled = model(x)
        assert torch.equal(sampled, model(x))

    def test_a_mean_counts_the_prior_as_the_whole_set_does(self):
        model = build("c-deepset", in_features=3, hidden=4, activation="identity",
                      aggregation="mean", baseline="learned", seed=0).double()  # fmt: skip
        model.cell.gate.weight.data.zero_()  # values of instances alone
        model.cell.gate.bias.data.zero_()
        x = torch.ones(1, 12, 3, dtype=torch.float64)
        with masked.sampled(torch.tensor([[3.0]], dtype=torch.float64)):
            part = model(x[:, :4])
        torch.testing.assert_close(part, model(x))

    def test_groups_keep_their_scales(self, monkeypatch):
        monkeypatch.setattr(masked, "MUCH_PADDING", 1)
        model = build("deepset", in_features=3, hidden=4, seed=0)
        x, mask = torch.randn(3, 9, 3), torch.arange(9) < torch.tensor([[9], [2], [1]])
        with masked.sampled(torch.tensor([[2.0], [3.0], [5.0]])):
            found = masked.in_groups(model, x, mask)
            for k in range(3):
                with masked.sampled(torch.tensor([[2.0, 3.0, 5.0][k]])[None]):
                    alone = model(x[k : k + 1, : int(mask[k].sum())])
                torch.testing.assert_close(found[k : k + 1], alone)

    def test_learns_a_sum_from_parts(self):
        """Trained on a quarter of every set, a network predicts the sums of whole sets."""
        sets = sized([40] * 200, label=lambda x: x[:, 0].sum())
        model = build("deepset", in_features=3, hidden=8, layers=1, seed=0)
        fit(model, sets, recipe=Recipe(epochs=30, batch_size=20, sample_instances=10))
        error = np.square(predict(model, sets) - sets.y).mean()
        assert error < 0.5 * np.var(sets.y)

    def test_priors_need_whole_sets(self):
        sets = sized([4] * 4)
        model = build("c-gru", in_features=3, seed=0)
        with pytest.raises(InputError, match="sample_instances: priors"):
            fit(model, sets, recipe=Recipe(sample_instances=2), priors=[UpperBound(1.0, bound=1)])
