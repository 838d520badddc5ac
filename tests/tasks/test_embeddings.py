"""Embeddings of scikit-learn's digits, small enough to compute in every test run."""

import json

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.tasks import embeddings
from capnets.tasks.embeddings import EMBEDDINGS, cnn, embed, patches
from capnets.tasks.embeddings.patches import Patches, steady_directions
from capnets.tasks.images import load_images


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """An empty cache, and little work."""
    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path))
    monkeypatch.setattr(patches, "CENTRES", 30)
    monkeypatch.setattr(patches, "SAMPLED_PATCHES", 5000)
    monkeypatch.setattr(cnn, "STEPS", 60)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for work this small threads mostly wait for each other
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_rows_scale_and_repetition(name, digits, tmp_path):
    features = embed(digits, name)
    assert features.shape == (1797, 64)
    assert features.dtype == np.float32
    seen = features[: digits.train].astype(float)
    np.testing.assert_allclose(seen.mean(0), 0, atol=1e-4)
    assert seen.var(0).mean() == pytest.approx(1, rel=1e-4)
    for file in tmp_path.rglob("*.*"):
        file.unlink()
    assert np.array_equal(embed(digits, name), features)


@pytest.mark.parametrize("name", [n for n in EMBEDDINGS if n != "none"])
def test_learns_from_training_images_only(name, digits):
    """Other test images do not change the features of any training image."""
    from dataclasses import replace

    other = digits.pixels.copy()
    other[digits.train :] = 16 - other[digits.train :]
    changed = replace(digits, name="changed", pixels=other)
    first, second = embed(digits, name), embed(changed, name)
    np.testing.assert_allclose(second[: digits.train], first[: digits.train], atol=1e-5)
    assert not np.allclose(second[digits.train :], first[digits.train :])


@pytest.mark.parametrize("name", ["pca", "patches", "cnn"])
def test_only_cnn_uses_classes(name, digits):
    from dataclasses import replace

    turned = replace(digits, name="turned", classes=(digits.classes + digits.classes // 5) % 10)
    same = np.allclose(embed(digits, name), embed(turned, name), atol=1e-5)
    assert same == (name != "cnn")


def test_without_an_embedding_features_are_pixels(digits):
    features = embed(digits, "none")
    flat = digits.pixels.reshape(len(features), 64).astype(float)
    varies = flat[: digits.train].std(0) > 0
    slope = flat[:, varies].std(0) / features[:, varies].std(0)
    np.testing.assert_allclose(slope, slope[0], rtol=1e-4)


def test_an_unknown_embedding(digits):
    with pytest.raises(InputError, match="did you mean 'patches'"):
        embed(digits, "patchs")


# The cache ----------------------------------------------------------------------------------------


def counted(monkeypatch):
    calls = []
    compute = embeddings._computed

    def count(*args):
        calls.append(1)
        return compute(*args)

    monkeypatch.setattr(embeddings, "_computed", count)
    return calls


def test_computed_once(digits, monkeypatch):
    calls = counted(monkeypatch)
    first = embed(digits, "pca")
    assert np.array_equal(embed(digits, "pca"), first)
    assert len(calls) == 1


def damage_features(path):
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)


def damage_note(path):
    path.with_suffix(".json").write_text("{")


@pytest.mark.parametrize(
    "damage",
    [
        damage_features,
        damage_note,
        lambda path: path.write_bytes(path.read_bytes()[:1000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.with_suffix(".json").unlink(),
        lambda path: path.unlink(),
    ],
    ids=["a bit", "the note", "truncated", "empty", "no note", "no features"],
)
def test_a_damaged_cache_is_computed_anew(digits, monkeypatch, tmp_path, damage):
    calls = counted(monkeypatch)
    first = embed(digits, "pca")
    (path,) = tmp_path.rglob("*.npy")
    damage(path)
    assert np.array_equal(embed(digits, "pca"), first)
    assert len(calls) == 2
    assert np.array_equal(embed(digits, "pca"), first)
    assert len(calls) == 2


def test_two_processes_compute_once(digits, tmp_path, monkeypatch):
    """The second one waits for the first and takes what it made."""
    from threading import Thread

    calls = counted(monkeypatch)
    results = []
    threads = [Thread(target=lambda: results.append(embed(digits, "pca"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert np.array_equal(*results)


def test_a_cache_that_cannot_be_written_is_named(digits, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot write to the cache.*CAPNETS_CACHE"):
        embed(digits, "pca")


def test_other_parameters_have_another_place(digits, monkeypatch, tmp_path):
    embed(digits, "pca")
    monkeypatch.setattr(embeddings.Pca, "parameters", {"version": 99})
    embed(digits, "pca")
    notes = [json.loads(p.read_text()) for p in tmp_path.rglob("*.json")]
    assert sorted(n["parameters"]["version"] for n in notes) == [1, 99]


def test_progress_is_told(digits):
    seen = []
    embed(digits, "patches", progress=lambda *what: seen.append(what))
    assert seen[-1] == ("embedding digits", 1797, 1797)
    assert any(what.startswith("patches of") for what, _, _ in seen)


# Patches ------------------------------------------------------------------------------------------


def test_region_features_equal_the_definition(digits):
    """Distances, triangle and averages once more, patch by patch."""
    fitted = Patches().fit(digits)
    image = torch.rand(9, 9, generator=torch.Generator().manual_seed(1))
    activations = torch.empty(4, 4, 30)
    for row in range(4):
        for column in range(4):
            patch = image[row : row + 6, column : column + 6].flatten()
            patch = (patch - patch.mean()) / (patch.var(correction=0) + 0.01).sqrt()
            distances = (fitted.whitening_ @ (patch - fitted.mean_) - fitted.centres_).norm(dim=1)
            activations[row, column] = (distances.mean() - distances).clamp(min=0)
    bands = [slice(0, 2), slice(1, 3), slice(2, 4)]
    expected = torch.stack([activations[a, b].mean((0, 1)) for a in bands for b in bands]).sqrt()
    torch.testing.assert_close(
        fitted._regions(image[None]), expected.flatten()[None], rtol=1e-3, atol=1e-4
    )


def test_whitened_patches_are_white(digits):
    """Up to the amount added to keep out noise: variances v become v / (v + amount)."""
    fitted = Patches()
    correlated = torch.randn(4000, 36, generator=torch.Generator().manual_seed(0)).cumsum(1)
    fitted._fit_centres(correlated)
    white = torch.cov(((correlated - fitted.mean_) @ fitted.whitening_).T)
    before = torch.linalg.eigvalsh(torch.cov(correlated.T))
    torch.testing.assert_close(
        torch.linalg.eigvalsh(white), before / (before + patches.WHITENING), rtol=1e-3, atol=1e-3
    )


def test_steady_directions_solve_their_problem():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(50, 12, generator=generator, dtype=torch.float64) for _ in range(2))
    total, change = a.T @ a, b.T @ b
    found = steady_directions(total, change, count=3, ridge=0.5)
    ridged = change + 0.5 * total.diagonal().mean() * torch.eye(12)
    ratios = torch.linalg.eigvals(torch.linalg.solve(ridged, total)).real.sort(descending=True)[0]
    torch.testing.assert_close(found.T @ ridged @ found, torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(found.T @ total @ found, torch.diag(ratios[:3]))


def test_steady_directions_prefer_what_warps_keep():
    """Two equally varying features: the one that does not change comes first."""
    total = torch.eye(2, dtype=torch.float64)
    change = torch.diag(torch.tensor([1.0, 0.01], dtype=torch.float64))
    first = steady_directions(total, change, count=1, ridge=0.01)[:, 0]
    assert abs(first[1]) > 0.99 * first.norm()


# What they are good for ---------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("source", "least"), [("mnist", 0.955), ("fashion-mnist", 0.83)])
def test_patches_tell_classes_apart(source, least, monkeypatch):
    """A linear probe, fitted and judged on training images, from a part of them."""
    from sklearn.linear_model import RidgeClassifier

    monkeypatch.undo()  # the real size, and the user's cache
    images = load_images(source)
    features, classes = embed(images, "patches")[: images.train], images.classes[: images.train]
    probe = RidgeClassifier().fit(features[:20_000], classes[:20_000])
    assert probe.score(features[-10_000:], classes[-10_000:]) > least
    pixels = embed(images, "pca")[: images.train]
    plain = RidgeClassifier().fit(pixels[:20_000], classes[:20_000])
    assert probe.score(features[-10_000:], classes[-10_000:]) > plain.score(
        pixels[-10_000:], classes[-10_000:]
    )
