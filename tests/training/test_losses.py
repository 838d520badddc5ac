import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance

from capnets.errors import InputError
from capnets.training.losses import LOSSES, find_loss


def drawn(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


ONE = torch.ones(1)
P, Y, W = drawn((6, 2), 0), drawn((6, 2), 1), torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0, 1.0])


class TestValues:
    def test_squared(self):
        assert float(LOSSES["squared"](P, Y, unit=ONE)) == pytest.approx(
            float(((P - Y) ** 2).mean())
        )

    def test_absolute_weighted(self):
        expected = float((W[:, None] * (P - Y).abs()).sum() / (2 * W.sum()))
        assert float(LOSSES["absolute"](P, Y, unit=ONE, weights=W)) == pytest.approx(expected)

    def test_counted_in_units(self):
        unit = torch.tensor([2.0, 0.5])
        expected = (((P - Y) / unit) ** 2).mean()
        assert float(LOSSES["squared"](P, Y, unit=unit)) == pytest.approx(float(expected))

    def test_logistic(self):
        y = (Y[:, :1] > 0).float()
        expected = log_loss(y.numpy(), P[:, :1].sigmoid().numpy().astype(float))
        assert float(LOSSES["logistic"](P[:, :1], y, unit=ONE)) == pytest.approx(expected, rel=1e-5)

    def test_softmax(self):
        logits, y = drawn((6, 3), 2), torch.tensor([0.0, 1, 2, 2, 1, 0])[:, None]
        shares = logits.softmax(1).numpy().astype(float)
        expected = log_loss(y[:, 0].numpy(), shares / shares.sum(1, keepdims=True))
        assert float(LOSSES["softmax"](logits, y, unit=ONE)) == pytest.approx(expected, rel=1e-5)

    def test_huber(self):
        error = (P - Y).abs()
        expected = torch.where(error < 1, error.square() / 2, error - 0.5).mean()
        assert float(LOSSES["huber"](P, Y, unit=ONE)) == pytest.approx(float(expected))

    @pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
    def test_quantile(self, q):
        expected = mean_pinball_loss(Y.numpy(), P.numpy(), alpha=q)
        assert float(find_loss(f"quantile:{q}")(P, Y, unit=ONE)) == pytest.approx(expected)

    def test_poisson(self):
        """Half the deviance of scikit-learn, up to what does not depend on the prediction."""
        y = Y.abs().round()
        loss = [float(LOSSES["poisson"](p, y, unit=ONE)) for p in (P, 0 * P)]
        deviance = [mean_poisson_deviance(y.flatten(), p.exp().flatten()) for p in (P, 0 * P)]
        assert loss[0] - loss[1] == pytest.approx((deviance[0] - deviance[1]) / 2, rel=1e-4)


class TestLabels:
    @pytest.mark.parametrize(
        ("loss", "y", "message"),
        [
            ("softmax", [0, 3], "the training sets .*: classes must be whole numbers from 0 to 1"),
            ("softmax", [[0, 1]], "sets have 2 labels each, this loss needs 1"),
            ("logistic", [[0, 2]], "they must be from 0 to 1"),
            ("bernoulli", [[0, -1]], "they must be from 0 to 1"),
            ("poisson", [[1, -1]], "counts must not be negative"),
            ("cox", [1, 2], "sets have 1 labels each, this loss needs 2"),
            ("cox", [[-1, 1]], "times of at least 0"),
            ("cox", [[1, 0.5]], r"events 0 \(censored\) or 1"),
            ("cox", [[1, 0]], "at least one event"),
            ("squared", [1], "sets have 1 labels each, the network gives 2"),
        ],
    )
    def test_refused(self, loss, y, message):
        with pytest.raises(InputError, match=message):
            find_loss(loss).check(np.array(y, dtype=float), outputs=2, name="training")

    @pytest.mark.parametrize("name", ["quantile:2", "quantile:x", "quantile:nan"])
    def test_a_quantile_is_a_share(self, name):
        with pytest.raises(InputError, match="is not a number between 0 and 1"):
            find_loss(name)

    def test_unknown(self):
        with pytest.raises(InputError, match="unknown loss 'huger': did you mean 'huber'"):
            find_loss("huger")


BEST = ["squared", "absolute", "quantile:0.2", "poisson", "logistic", "bernoulli", "softmax"]


@pytest.mark.parametrize("name", BEST)
def test_training_begins_at_the_best_constant(name):
    """No small step away from the level makes the loss smaller (softmax: its counts are padded)."""
    draw = np.random.default_rng(0)
    y = {
        "logistic": draw.random((401, 1)) < 0.3,
        "softmax": draw.choice(3, p=[0.6, 0.3, 0.1], size=(401, 1)),
        "bernoulli": draw.random((401, 1)) < 0.3,
    }.get(name, draw.exponential(size=(401, 1)))
    labels = torch.tensor(y, dtype=torch.float32)
    outputs = 3 if name == "softmax" else 1
    loss = find_loss(name)
    level = loss.level(labels, outputs)

    def at(constant):
        return float(loss(constant.expand(401, outputs), labels, unit=torch.ones(outputs)))

    here = at(level)
    for output in range(outputs):
        for step in (-0.05, 0.05):
            moved = level.clone()
            moved[output] += step
            assert at(moved) > here - 1e-6
