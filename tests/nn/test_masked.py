"""What knows about padding: compared with loops over sets that have none."""

import pytest
import torch

from capnets.errors import InputError
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


def test_blank_hides_what_is_not_a_number():
    values = torch.full((3, 4), torch.nan).masked_fill(MASK, 1.0)
    assert masked.total(values, MASK).tolist() == [3, 1, 4]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([[True, False, True]], "stand before its padding, without gaps"),
        ([[False, True, True]], "stand before its padding, without gaps"),
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
