"""Annotated shapes are checked while tests run; other types are not."""

import jaxtyping
import pytest
import torch

from capnets.errors import unknown
from capnets.nn.masked import total


def test_wrong_shape_is_caught():
    values, mask = torch.zeros(2, 3, 1), torch.ones(2, 4, dtype=torch.bool)
    with pytest.raises(jaxtyping.TypeCheckError, match="sets size"):
        total(values, mask)


def test_right_shape_passes():
    assert total(torch.ones(2, 3, 1), torch.ones(2, 3, dtype=torch.bool)).tolist() == [[3], [3]]


def test_functions_without_shapes_are_left_alone():
    assert "unknown 3" in str(unknown(3, "gru", ["rnn"]))  # the annotation says str
