import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.evaluate import added_values, predict
from capnets.explain.value import SetValue, groups_of_equal_size
from capnets.models import MODELS, build
from capnets.sets import Sets


@pytest.fixture
def ragged() -> Sets:
    rng = np.random.default_rng(0)
    return Sets.from_arrays([rng.normal(size=(n, 4)) for n in (3, 7, 1, 7, 5)])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chunk", [1, 8, 30, 10_000])
def test_same_as_evaluation_whatever_the_chunk(name, chunk, ragged):
    model = build(name, in_features=4, seed=0)
    value = SetValue(model, ragged, chunk=chunk)
    assert value.predict(ragged.index, ragged.offsets) == pytest.approx(
        predict(model, ragged), abs=1e-5
    )
    assert value.passes == len(ragged)
    values = value.added_values(ragged.index, ragged.offsets)
    assert values == pytest.approx(added_values(model, ragged), abs=1e-5)


def test_batches_stay_within_the_chunk(ragged):
    model = build("c-gru", in_features=4)
    seen = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[:2].numel()))
    SetValue(model, ragged, chunk=14).predict(ragged.index, ragged.offsets)
    assert max(seen) <= 14
    assert len(seen) > 1


def test_passes_count_rereading(ragged):
    for name, passes in (("c-gru", 5), ("deepset", 5), ("gru", 5), ("set-transformer", 23)):
        value = SetValue(build(name, in_features=4), ragged)
        value.added_values(ragged.index, ragged.offsets)
        assert value.passes == passes, name


def test_subsets_are_read_in_the_order_of_the_set(ragged):
    model = build("gru", in_features=4, seed=1)
    value = SetValue(model, ragged)
    members = np.array([[1, 0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0], [1] * 7], dtype=bool)
    table = value.predict_subsets(np.array([1, 3]), members)
    for row, k in enumerate((1, 3)):
        left = torch.from_numpy(ragged[k][members[0]])[None]
        assert table[row, 0] == pytest.approx(model(left).item(), abs=1e-6)
        assert table[row, 1] == 0
        assert table[row, 2] == pytest.approx(predict(model, ragged)[k], abs=1e-6)


def test_empty_sets_have_the_baseline_value():
    sets = Sets(np.ones((2, 4), np.float32), np.array([0, 1]), np.array([0, 0, 2, 2]))
    value = SetValue(build("gru", in_features=4), sets).predict(sets.index, sets.offsets)
    assert value[0] == value[2] == 0
    assert [g.tolist() for g in groups_of_equal_size(sets.sizes, most=5)] == [[1]]


def test_several_outputs_must_be_told_apart(ragged):
    model = build("c-gru", in_features=4, outputs=3, seed=0)
    with pytest.raises(InputError, match="3 outputs; say which one"):
        SetValue(model, ragged)
    with pytest.raises(InputError, match="output 3 does not exist"):
        SetValue(model, ragged, output=3)
    value = SetValue(model, ragged, output=2).predict(ragged.index, ragged.offsets)
    assert value == pytest.approx(predict(model, ragged)[:, 2], abs=1e-6)
    with pytest.raises(InputError, match="chunk must be at least 1"):
        SetValue(model, ragged, output=0, chunk=0)
