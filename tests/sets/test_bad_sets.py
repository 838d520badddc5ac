"""Invalid sets and their error messages."""

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.sets import Sets, offsets_of
from tables_of_sets import generator

ONES = np.ones((2, 3))


class TestBadInput:
    @pytest.mark.parametrize(
        ("arrays", "y", "words"),
        [
            ([], None, "zero sets"),
            ([ONES, np.ones((1, 4))], None, r"set 1 has instances of shape \(4,\), set 0 of shape"),
            ([ONES, np.ones(3)], None, r"set 1 has shape \(3,\); expected instances x features"),
            ([ONES], [1.0, 2.0], "y has 2 entries, but 1 are needed: one per set"),
            ([ONES, [["a", "b", "c"]]], None, "set 1 holds something that is not a number"),
            ([ONES], ["good"], "y holds something that is not a number"),
            ([ONES], np.ones((1, 1, 1)), r"y has shape \(1, 1, 1\); expected one label"),
        ],
    )
    def test_arrays(self, arrays, y, words):
        with pytest.raises(InputError, match=words):
            Sets.from_arrays(arrays, y)

    def test_ragged_lists(self):
        with pytest.raises(InputError, match="set 1 is a list that is no array"):
            Sets.from_arrays([ONES, [[1, 2, 3], [4]]])
        with pytest.raises(InputError, match="x is a list that is no array"):
            Sets.from_padded([[[1.0], [2.0]], [[3.0]]])
        with pytest.raises(InputError, match="x has shape"):
            Sets.from_padded(ONES)
        with pytest.raises(InputError, match="instances is missing"):
            Sets(None, [0], [0, 1])

    def test_padded(self):
        with pytest.raises(InputError, match=r"mask has shape \(2, 2\), but x begins with \(2, 3"):
            Sets.from_padded(np.ones((2, 3, 1)), np.ones((2, 2)))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"offsets": [0, 2, 4]}, r"offsets must run from 0 to the length of index \(5\)"),
            ({"offsets": [1, 2, 5]}, "not from 1 to 5"),
            ({"offsets": [0, 3, 2, 5]}, "offsets must not decrease; they do after set 1"),
            ({"offsets": []}, "offsets has no entry"),
            ({"offsets": [[0, 5]]}, "offsets must be a list of whole numbers"),
            ({"index": [0, 1, 2, 3, 5]}, "rows outside the 5 instances"),
            ({"index": [0, 1, 2, 3, -1]}, "rows outside the"),
            ({"index": [0, 1, 2, 3, 3.5]}, "index must be a list of whole numbers.*float64"),
            ({"y": [1.0]}, "y has 1 entries, but 3 are needed"),
            ({"y": ["a", "b", "c"]}, "y must hold numbers"),
            ({"ids": ["a"]}, "ids has 1 entries, but 3 are needed"),
            ({"weights": np.ones(4)}, "weights has 4 entries, but 3 are needed: one per set"),
            ({"classes": [1]}, "classes has 1 entries, but 5 .* one per instance"),
            ({"feature_names": ("a",)}, "feature_names has 1 entries, but 2 .* one per feature"),
            ({"instances": np.ones(5)}, r"instances has shape \(5,\)"),
            ({"instances": np.full((5, 2), "a")}, "instances must hold numbers"),
        ],
    )
    def test_layout(self, three, change, words):
        parts = {
            "instances": three.instances,
            "index": three.index,
            "offsets": three.offsets,
            "y": three.y,
        }
        with pytest.raises(InputError, match=words):
            Sets(**(parts | change))

    @pytest.mark.parametrize(
        ("chosen", "words"),
        [
            ([3], "no set 3: there are 3"),
            ([-4], "no set -4: there are 3"),
            ([True, False], "2 Booleans cannot choose among 3 sets"),
            ([0.5], "whole numbers or Booleans, not float64"),
        ],
    )
    def test_subset(self, three, chosen, words):
        with pytest.raises(InputError, match=words):
            three.subset(chosen)

    @pytest.mark.parametrize("shares", [[0.5, 0.6], [1.5, -0.5]])
    def test_split(self, three, shares):
        with pytest.raises(InputError, match="shares must be positive and sum to 1"):
            three.split(shares, generator())

    def test_concatenate(self, three):
        with pytest.raises(InputError, match="zero parts"):
            Sets.concatenate([])
        with pytest.raises(InputError, match=r"part 1 has feature_shape \(3,\), part 0 has \(2,\)"):
            Sets.concatenate([three, Sets.from_arrays([ONES])])
        plain = Sets.from_arrays([np.ones((1, 2))], feature_names=("width", "height"))
        with pytest.raises(InputError, match="either all parts or none must have classes"):
            Sets.concatenate([three, plain])

    def test_larger_than_memory(self):
        """Four terabytes a set, as far as anyone can tell: no copy of them is even begun."""
        table = np.broadcast_to(np.float32(0), (2**30, 2**10))
        with pytest.raises(InputError, match=r"3 sets with .* GB of memory are needed, but only"):
            Sets.from_arrays([table] * 3)


class TestFinite:
    def test_clean(self, three):
        three.check_finite()

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_feature(self, three, value):
        three.instances[3, 1] = value
        words = rf"set 2 \('c'\) has the value {value} in column 1 \('height'\) of its instance 1"
        with pytest.raises(InputError, match=words):
            three.check_finite()

    def test_first_set_in_order_of_sets(self):
        """The pool's rows are in another order than the sets that use them."""
        pool = np.array([[np.nan], [1.0], [np.inf]])
        sets = Sets(pool, [1, 1, 2, 0], [0, 2, 3, 4])
        with pytest.raises(InputError, match="set 1 has the value inf in column 0"):
            sets.check_finite()

    def test_unused_rows_may_be_anything(self, three):
        three.instances[3, 1] = np.nan
        three[:2].check_finite()

    def test_pictures(self):
        x = np.zeros((4, 1, 2, 3), np.float32)
        x[3, 0, 1, 2] = np.nan
        with pytest.raises(InputError, match=r"set 1 .* nan in column \(0, 1, 2\) of"):
            Sets.from_arrays([x[:3], x[3:]]).check_finite()

    def test_too_large_for_32_bits(self):
        with pytest.raises(InputError, match="set 0 has the value inf"):
            Sets.from_arrays([np.full((1, 1), 1e300)]).check_finite()

    def test_far_into_the_pool(self):
        pool = np.zeros((70_000, 1), np.float32)
        pool[69_999] = np.nan
        sets = Sets(pool, np.arange(70_000), offsets_of([10] * 7000))
        with pytest.raises(InputError, match="set 6999 has the value nan in column 0"):
            sets.check_finite()

    @pytest.mark.parametrize("what", ["label", "weight"])
    def test_labels_and_weights(self, three, what):
        getattr(three, {"label": "y", "weight": "weights"}[what])[1] = np.nan
        with pytest.raises(InputError, match=rf"the {what} of set 1 \('b'\) is nan"):
            three.check_finite()


class TestDigits:
    FAR = 1.7e9 + np.random.default_rng(0).uniform(0, 20, (6, 1))

    def sets(self, column):
        return [np.hstack([np.ones((2, 1)), part]) for part in np.split(column, 3)]

    def test_values_that_32_bits_do_not_tell_apart(self):
        arrays = self.sets(self.FAR)
        with pytest.raises(
            InputError, match=r"column 1 lies .* Subtract a number such as 17000000"
        ):
            Sets.from_arrays(arrays, [0, 1, 2])
        with pytest.raises(InputError, match=r"column 1 \('time'\) lies"):
            Sets.from_arrays(arrays, learning=True, feature_names=("one", "time"))
        pictures = [a.reshape(2, 1, 1, 2) for a in arrays]
        with pytest.raises(InputError, match=r"column \(0, 0, 1\) lies"):
            Sets.from_arrays(pictures, [0, 1, 2])

    @pytest.mark.parametrize(
        "column",
        [
            FAR - 1.7e9,
            FAR.astype(np.float32),
            2020 + np.arange(6)[:, None],
            np.full((6, 1), 0.1),
            np.array([0.3, 0.1 + 0.2] * 3)[:, None],  # one number, rounded in two ways
            np.array([1e9] + [0.1] * 5)[:, None],
        ],
    )
    def test_values_that_may_be_learned_from(self, column):
        assert len(Sets.from_arrays(self.sets(column), [0, 1, 2])) == 3

    def test_sets_to_predict_may_be_alike(self):
        assert len(Sets.from_arrays([[[1.2345], [1.2346]]])) == 1

    def test_whole_labels_stay_apart(self):
        for y in ([20_000_000, 20_000_001, 2**53 + 1], [2e7, 2e7 + 1, 0.0]):
            assert Sets.from_arrays([ONES] * 3, y).y.tolist() == y
        assert Sets.from_arrays([ONES] * 3, [1, 2, 3]).y.dtype == np.float32
        assert Sets.from_arrays([ONES] * 3, [2e7, 0.5, 1e300]).y.dtype == np.float32
