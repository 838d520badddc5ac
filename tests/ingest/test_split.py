import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capnets.errors import InputError
from capnets.ingest import hold_out
from capnets.sets import Sets


def sets_of(count):
    return Sets.from_arrays([np.ones((2, 1))] * count, y=np.arange(count), ids=np.arange(count))


@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.integers(0, 5))
def test_no_set_and_no_group_is_in_both_parts(groups, seed):
    sets = sets_of(len(groups))
    if len(set(groups)) < 2:
        with pytest.raises(InputError, match="two groups"):
            hold_out(sets, 0.3, seed=seed, groups=groups)
        return
    stays, held = hold_out(sets, 0.3, seed=seed, groups=groups)
    assert sorted([*stays.ids, *held.ids]) == list(range(len(groups)))
    assert not {groups[k] for k in stays.ids} & {groups[k] for k in held.ids}
    assert len(stays)
    assert len(held)


def test_classes_keep_their_shares_and_seeds_differ():
    classes = np.repeat([0, 1, 2], [60, 30, 2])
    sets = sets_of(92)
    _, held = hold_out(sets, 0.2, seed=0, stratify=classes)
    assert np.bincount(classes[held.ids]).tolist() == [12, 6, 1]
    _, other = hold_out(sets, 0.2, seed=1, stratify=classes)
    assert held.ids.tolist() != other.ids.tolist()
    _, again = hold_out(sets, 0.2, seed=0, stratify=classes)
    assert held.ids.tolist() == again.ids.tolist()


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_impossible_share(share):
    with pytest.raises(InputError, match="between 0 and 1"):
        hold_out(sets_of(5), share, seed=0)
