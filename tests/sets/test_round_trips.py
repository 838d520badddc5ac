"""Operations on ragged sets over a shared table preserve their content."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capnets.sets import Sets, random_orders
from tables_of_sets import generator, often, same, tables


class TestRoundTrips:
    @often
    @given(tables())
    def test_arrays(self, arrays):
        sets = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        same(sets, arrays)
        assert sets.sizes.tolist() == [len(a) for a in arrays]
        assert sets.feature_shape == arrays[0].shape[1:]
        assert sets.instances.dtype == np.float32

    @often
    @given(tables(), st.floats(-10, 10))
    def test_padded(self, arrays, garbage):
        longest = max(map(len, arrays))
        x = np.full((len(arrays), longest, *arrays[0].shape[1:]), garbage, np.float32)
        mask = np.zeros((len(arrays), longest), bool)
        for k, array in enumerate(arrays):
            x[k, : len(array)] = array
            mask[k, : len(array)] = True
        same(Sets.from_padded(x, mask), arrays)

    def test_padded_without_mask(self):
        x = np.arange(12.0).reshape(2, 3, 2)
        same(Sets.from_padded(x, y=[1, 2]), list(x))

    def test_padded_with_gaps(self):
        """A mask may have gaps here: what it hides is left out."""
        sets = Sets.from_padded(np.arange(3.0).reshape(1, 3, 1), [[True, False, True]])
        assert sets[0].tolist() == [[0], [2]]

    @often
    @given(tables())
    def test_saved(self, tmp_path_factory, arrays):
        folder = tmp_path_factory.mktemp("saved")
        ids = [f"set {k}" for k in range(len(arrays))]
        Sets.from_arrays(arrays, y=np.arange(len(arrays)), ids=ids).save(folder)
        loaded = Sets.load(folder)
        same(loaded, arrays)
        assert loaded.ids is not None
        assert loaded.ids.tolist() == ids

    @often
    @given(tables(), st.data())
    def test_subset(self, arrays, data):
        chosen = data.draw(st.lists(st.integers(-len(arrays), len(arrays) - 1)))
        sets = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        part = sets.subset(chosen)
        same(part, [arrays[k] for k in chosen])
        assert part.y.tolist() == [k % len(arrays) for k in chosen]
        keep = data.draw(hnp.arrays(bool, len(arrays)))
        same(sets.subset(keep), [a for a, k in zip(arrays, keep, strict=True) if k])

    @often
    @given(tables(), st.data())
    def test_slice(self, arrays, data):
        cut = data.draw(st.slices(len(arrays)))
        sets = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        part = sets[cut]
        same(part, arrays[cut])
        assert part.y.tolist() == list(range(len(arrays)))[cut]
        assert part.instances is sets.instances

    @often
    @given(tables(), st.data())
    def test_concatenate(self, arrays, data):
        cut = data.draw(st.integers(0, len(arrays)))
        sets = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        same(Sets.concatenate([sets[:cut], sets[cut:]]), arrays)
        other = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        same(Sets.concatenate([sets, other[:cut]]), arrays + arrays[:cut])

    @often
    @given(tables(), st.integers(0, 99))
    def test_reorder(self, arrays, seed):
        sets = Sets.from_arrays(arrays)
        order = random_orders(sets.sizes, generator(seed))
        reordered = sets.reorder(order)
        parts = np.split(order, sets.offsets[1:-1])
        same(reordered, [a[p] for a, p in zip(arrays, parts, strict=True)])
        inverse = np.concatenate([np.argsort(p) for p in parts])
        same(reordered.reorder(inverse), arrays)

    @often
    @given(tables(min_sets=2), st.integers(0, 99))
    def test_split(self, arrays, seed):
        sets = Sets.from_arrays(arrays, ids=np.arange(len(arrays)))
        parts = sets.split([0.5, 0.25, 0.25], generator(seed))
        assert sorted(k for part in parts for k in part.ids) == list(range(len(arrays)))
        for part in parts:
            same(part, [arrays[k] for k in part.ids])


class TestSharing:
    def test_slices_copy_nothing(self, three):
        part = three[1:3]
        assert part.instances is three.instances
        assert np.shares_memory(part.index, three.index)
        assert np.shares_memory(part.y, three.y)

    def test_subsets_and_orders_share_the_instances(self, three):
        assert three.subset([2, 0]).instances is three.instances
        assert three.shuffled(generator()).instances is three.instances
        assert Sets.concatenate([three, three[:1]]).instances is three.instances

    def test_one_row_in_many_sets(self):
        pool = np.arange(3.0, dtype=np.float32)[:, None]
        sets = Sets(pool, np.array([2, 2, 0, 2]), np.array([0, 3, 4]))
        assert sets[0].flatten().tolist() == [2, 2, 0]
        assert sets.rows(1).tolist() == [2]

    def test_lists_will_do(self):
        sets = Sets([[1.0], [2.0]], [1, 0], [0, 1, 2], [5, 6], ids=["x", "y"])
        assert sets[0].tolist() == [[2.0]]
        assert sets.outputs == 1

    def test_names_from_a_table_can_be_saved(self, tmp_path):
        ids = np.array(["long name", "b"], dtype=object)
        Sets([[1.0]], [0, 0], [0, 1, 2], ids=ids).save(tmp_path)
        assert Sets.load(tmp_path).ids.tolist() == ["long name", "b"]


class TestLooking:
    def test_numbers(self, three):
        assert (len(three), three.in_features, three.outputs) == (3, 2, 1)
        assert three.feature_shape == (2,)
        assert three.sizes.tolist() == [2, 0, 3]
        assert three[-1].tolist() == [[4, 5], [6, 7], [8, 9]]
        assert three[1].shape == (0, 2)
        assert [len(instances) for instances in three] == [2, 0, 3]

    def test_several_labels(self):
        sets = Sets.from_arrays([np.ones((1, 2))] * 3, y=np.zeros((3, 4)))
        assert sets.outputs == 4
        assert sets[1:].y.shape == (2, 4)

    @pytest.mark.parametrize("k", [3, -4])
    def test_no_such_set(self, three, k):
        with pytest.raises(IndexError, match=f"no set {k}: there are 3"):
            three[k]

    def test_everything_comes_along(self, three):
        for part in (three[2:], three.subset([2]), three.subset([False, False, True])):
            assert part.ids.tolist() == ["c"]
            assert part.weights.tolist() == [3.0]
            assert part.y.tolist() == [2.0]
            assert part.feature_names == ("width", "height")
            assert part.classes is three.classes
