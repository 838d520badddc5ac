"""Operations on padded batches agree with loops over sets without padding."""

import pytest
import torch

from capnets.errors import InputError
from capnets.models import build
from capnets.nn import masked

SIZES = (3, 1, 4)
MASK = torch.arange(4) < torch.tensor(SIZES)[:, None]


@pytest.fixture(params=[(), (2,), (2, 3)], ids=str)
def values(request):
    """Values per instance, of any shape; behind the ends stands something large."""
    values = torch.randn(3, 4, *request.param, generator=torch.Generator().manual_seed(0))
    values[~MASK] = 1e6
    return values


def test_total(values):
    expected = torch.stack([v[:n].sum(0) for v, n in zip(values, SIZES, strict=True)])
    torch.testing.assert_close(masked.total(values, MASK), expected)
    torch.testing.assert_close(masked.total(values, None), values.sum(1))


def test_last(values):
    expected = torch.stack([v[n - 1] for v, n in zip(values, SIZES, strict=True)])
    assert torch.equal(masked.last(values, MASK), expected)
    assert torch.equal(masked.last(values, None), values[:, -1])


def test_blank(values):
    blank = masked.blank(values, MASK)
    assert torch.equal(blank[MASK], values[MASK])
    assert not blank[~MASK].any()
    assert masked.blank(values, None) is values, "without a mask there is no work"


def test_softmax():
    scores = torch.randn(3, 4)
    weights = masked.softmax(scores, MASK)
    for k, n in enumerate(SIZES):
        torch.testing.assert_close(weights[k, :n], scores[k, :n].softmax(0))
        assert not weights[k, n:].any()
    torch.testing.assert_close(masked.softmax(scores, None), scores.softmax(-1))


def test_blank_hides_nan():
    values = torch.full((3, 4), torch.nan).masked_fill(MASK, 1.0)
    assert masked.total(values, MASK).tolist() == [3, 1, 4]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([[True, False, True]], "come before its padding, without gaps"),
        ([[False, True, True]], "come before its padding, without gaps"),
        ([[True, True]], r"mask has shape \(1, 2\), but x has \(1, 3\) sets x instances"),
    ],
)
def test_wrong_masks(mask, words):
    with pytest.raises(InputError, match=words):
        masked.check_mask(torch.zeros(1, 3, 2), torch.tensor(mask))


@pytest.mark.parametrize("mask", [[[True, True, False]], [[False, False, False]]])
def test_right_masks(mask):
    masked.check_mask(torch.zeros(1, 3, 2), torch.tensor(mask))
    masked.check_mask(torch.zeros(1, 3, 2), None)


@pytest.mark.parametrize("name", ["c-gru", "c-deepset", "gru", "attention", "set-transformer"])
def test_sets_of_similar_size_read_together(name, monkeypatch):
    """In groups or all at once: the same predictions, and the same derivatives."""
    monkeypatch.setattr(masked, "MUCH_PADDING", 0)
    torch.manual_seed(0)
    model = build(name, in_features=3, hidden=8, seed=0).double()
    sizes = torch.tensor([2, 40, 1, 9, 11, 3, 40])
    x = torch.randn(len(sizes), 40, 3, dtype=torch.float64)
    mask = torch.arange(40) < sizes[:, None]
    shapes, found = [], []
    for read in (lambda: model(x, mask), lambda: masked.in_groups(seen, x, mask)):

        def seen(x, mask):
            shapes.append((tuple(x.shape[:2]), mask is None))
            return model(x, mask)

        model.zero_grad()
        prediction = read()
        prediction.square().sum().backward()
        found.append([prediction, *(p.grad for p in model.parameters() if p.grad is not None)])
    for whole, grouped in zip(*found, strict=True):
        torch.testing.assert_close(grouped, whole)
    assert shapes == [((2, 40), True), ((2, 11), False), ((2, 3), False), ((1, 1), True)]


def test_little_padding_is_read_at_once():
    x, mask = torch.randn(3, 5, 2), torch.arange(5) < torch.tensor([[5], [1], [2]])
    calls = []
    masked.in_groups(lambda x, mask: calls.append(1) or x.sum(1), x, mask)
    masked.in_groups(lambda x, mask: calls.append(1) or x.sum(1), x, None)
    assert len(calls) == 2
