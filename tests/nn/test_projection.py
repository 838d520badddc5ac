"""Principal components in front of a network."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.utils.extmath import randomized_svd

from capnets.errors import InputError
from capnets.nn.projection import COMPONENTS, RECENT, Project, _recent

FEATURES = COMPONENTS + 44


@pytest.fixture
def rows() -> torch.Tensor:
    draw = np.random.default_rng(0)
    low = draw.normal(size=(900, 20)) * np.linspace(9, 1, 20)  # 20 directions, and noise
    x = low @ draw.normal(size=(20, FEATURES)) + 0.1 * draw.normal(size=(900, FEATURES)) + 3
    return torch.from_numpy(x.astype(np.float32))


def test_same_as_pca(rows):
    layer = Project(FEATURES)
    layer.learn(rows, seed=0)
    found = layer(rows).numpy()[:, :20]
    other = PCA(20, whiten=True, svd_solver="full").fit_transform(rows.numpy())
    signs = np.sign((found * other).sum(0))
    np.testing.assert_allclose(found * signs, other, atol=2e-2)
    assert not list(layer.parameters()), "it is saved, but never trained"


def test_deviation_is_one(rows):
    layer = Project(FEATURES)
    layer.learn(rows, seed=0)
    deviations = layer(rows).std(0, correction=0)
    torch.testing.assert_close(deviations, torch.ones(COMPONENTS), atol=1e-2, rtol=0)


def test_few_instances_give_few_components(rows):
    layer = Project(FEATURES)
    layer.learn(rows[:30], seed=0)
    found = layer(rows)
    assert (found[:, :10] != 0).all()
    assert (found[:, 10:] == 0).all()


def test_equal_instances_give_zeros(rows):
    layer = Project(FEATURES)
    layer.learn(rows[:1].expand(50, -1), seed=0)
    assert torch.isfinite(layer(rows)).all()


def test_components_of_the_same_instances_are_computed_once(rows, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "sklearn.utils.extmath.randomized_svd",
        lambda *args, **how: calls.append(how) or randomized_svd(*args, **how),
    )
    layers = [Project(FEATURES) for _ in range(4)]
    asked = ((rows[:300], 0), (rows[:300].clone(), 0), (rows[:300], 1), (rows[1:301], 0))
    for layer, (x, seed) in zip(layers, asked, strict=True):
        layer.learn(x, seed=seed)
    assert len(calls) == 3
    assert torch.equal(layers[0].components, layers[1].components)
    for other in layers[2:]:
        assert not torch.equal(layers[0].components, other.components)


def test_few_results_are_kept(rows):
    for seed in range(RECENT + 2):
        Project(FEATURES).learn(rows[:10], seed=seed)
    assert len(_recent) == RECENT


def test_dropout_in_training_only(rows):
    layer = Project(FEATURES, dropout=0.5)
    layer.learn(rows, seed=0)
    assert abs(float((layer(rows) == 0).float().mean()) - 0.5) < 0.01
    layer.eval()
    torch.testing.assert_close(layer(rows), layer.project(rows))


def test_bad_input():
    with pytest.raises(InputError, match="more than 256 features, not 5"):
        Project(5)
    with pytest.raises(InputError, match="299 features, expected 300"):
        Project(300)(torch.zeros(1, 299))
