import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from capnets.training.losses import LOSSES


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


@pytest.mark.parametrize("name", ["squared", "absolute", "logistic", "softmax"])
def test_training_begins_at_the_best_constant(name):
    """No small step away from the level makes the loss smaller (softmax: its counts are padded)."""
    draw = np.random.default_rng(0)
    y = {
        "logistic": draw.random((401, 1)) < 0.3,
        "softmax": draw.choice(3, p=[0.6, 0.3, 0.1], size=(401, 1)),
    }.get(name, draw.exponential(size=(401, 1)))
    labels = torch.tensor(y, dtype=torch.float32)
    outputs = 3 if name == "softmax" else 1
    loss = LOSSES[name]
    level = loss.level(labels, outputs)

    def at(constant):
        return float(loss(constant.expand(401, outputs), labels, unit=torch.ones(outputs)))

    here = at(level)
    for output in range(outputs):
        for step in (-0.05, 0.05):
            moved = level.clone()
            moved[output] += step
            assert at(moved) > here - 1e-6
