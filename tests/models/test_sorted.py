"""Networks that sort instances before reading them."""

import numpy as np
import pytest
import torch

from capnets.checks import check_model, check_spec
from capnets.errors import InputError
from capnets.evaluate import predict
from capnets.models import ModelSpec, build
from capnets.sets import Sets
from capnets.training.fit import fit
from capnets.training.recipe import Recipe


@pytest.mark.parametrize("by", ["worth", 2])
@pytest.mark.parametrize("name", ["c-gru", "gru", "c-deepset"])
def test_contract(name, by):
    check_model(lambda: build(name, in_features=5, hidden=8, outputs=2, order=by))


def test_spec_goes_through_json():
    for by in ("worth", 2):
        check_spec(ModelSpec("c-gru", in_features=5, hidden=8, order=by, inputs="standardize"))


@torch.no_grad()
def test_reads_by_a_feature():
    """Sorting by a feature equals sorting the input; padding stays behind."""
    plain = build("c-gru", in_features=3, hidden=8, seed=1).double().eval()
    model = build("c-gru", in_features=3, hidden=8, seed=1, order=1).double().eval()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 5, 3, generator=generator, dtype=torch.float64)
    sizes = [5, 2, 1, 4]
    mask = torch.arange(5) < torch.tensor(sizes)[:, None]
    found = model(x, mask)
    for k, size in enumerate(sizes):
        rows = sorted(x[k, :size], key=lambda instance: float(instance[1]))
        torch.testing.assert_close(found[k], plain(torch.stack(rows)[None])[0])


@torch.no_grad()
def test_reads_by_worth():
    plain = build("c-gru", in_features=3, hidden=8, seed=1).double().eval()
    model = build("c-gru", in_features=3, hidden=8, seed=1, order="worth").double().eval()
    x = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for k, found in enumerate(model(x)):
        rows = sorted(x[k], key=lambda instance: -float(plain(instance[None, None])))
        torch.testing.assert_close(found, plain(torch.stack(rows)[None])[0])


@torch.no_grad()
@pytest.mark.parametrize("ragged", [True, False])
@pytest.mark.parametrize("by", ["worth", 0, 1])
def test_ties_are_read_by_all_features(by, ragged):
    """Instances are sorted lexicographically, whatever their order in the input."""
    plain = build("c-gru", in_features=3, hidden=8, seed=1).double().eval()
    model = build("c-gru", in_features=3, hidden=8, seed=1, order=by).double().eval()
    model.scores = lambda x: torch.zeros_like(x[..., 0]) if by == "worth" else x[..., by]
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 2, (40, 6, 3), generator=generator).double()
    sizes = torch.randint(1, 7, (40,), generator=generator) if ragged else torch.full((40,), 6)
    mask = (torch.arange(6) < sizes[:, None]) if ragged else None
    found = model(x, mask)
    for k, size in enumerate(sizes):
        rows = x[k, :size].tolist()
        rows.sort(key=lambda row: row if by == "worth" else [row[by], *row])
        torch.testing.assert_close(found[k], plain(torch.tensor([rows]).double())[0])
    for k, size in enumerate(sizes):  # padding stays where it is
        x[k, :size] = x[k, torch.randperm(int(size), generator=generator)]
    assert torch.equal(model(x, mask), found)


@torch.no_grad()
def test_sorts_each_set_of_vmap():
    model = build("c-deepset", in_features=3, hidden=8, seed=1, order=0).double().eval()
    x = torch.randint(0, 2, (9, 6, 3)).double()
    torch.testing.assert_close(torch.func.vmap(lambda s: model(s[None])[0])(x), model(x))


def test_learns():
    """Training works, and the unit of the labels is applied once."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4, 2)).astype("f4")
    sets = Sets.from_padded(x, y=100 * x[..., 0].max(1))
    model = build("c-gru", in_features=2, hidden=8, layers=1, order="worth", seed=0)
    fit(model, sets, recipe=Recipe(epochs=60, batch_size=20, learning_rate=0.02))
    assert np.var(sets.y - predict(model, sets)) < 0.3 * np.var(sets.y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"order": "size"}, "sorted by 'worth' or by the index of a feature, not by 'size'"),
        ({"order": 3}, "feature 3 does not exist: there are 3"),
        ({"order": 0, "name": "deepset"}, "does not depend on the order"),
    ],
)
def test_wrong_settings(settings, words):
    with pytest.raises(InputError, match=words):
        build(**{"name": "c-gru", "in_features": 3, **settings})
