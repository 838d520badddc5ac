"""Sets: ragged data in a shared table, whatever is done with it."""

import json
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capnets.errors import InputError
from capnets.sets import Sets, offsets_of, random_orders

# No deadline: how long an example takes says nothing on a machine that is busy with other things.
often = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw, min_sets=1):
    """A list of arrays (instances x features), some perhaps empty; no number occurs twice."""
    shape = draw(st.sampled_from([(1,), (3,), (1, 2, 2)]))
    sizes = draw(st.lists(st.integers(0, 4), min_size=min_sets, max_size=6))
    numbers = np.arange(sum(sizes) * np.prod(shape), dtype=np.float32)
    return np.split(numbers.reshape(-1, *shape), np.cumsum(sizes)[:-1])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(sets: Sets, arrays) -> None:
    assert len(sets) == len(arrays)
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(sets[k], array)


@pytest.fixture
def three() -> Sets:
    """Three sets of sizes 2, 0 and 3 over two features, with everything that sets can have."""
    pool = np.arange(10, dtype=np.float32).reshape(5, 2)
    return Sets(
        pool, np.arange(5), offsets_of([2, 0, 3]), np.array([1.0, 0.0, 2.0]),
        classes=np.array([0, 1, 0, 1, 2]), ids=np.array(["a", "b", "c"]),
        weights=np.array([1.0, 2.0, 3.0]), feature_names=("width", "height"),
    )  # fmt: skip


class TestRoundTrips:
    @often
    @given(tables())
    def test_arrays(self, arrays):
        sets = Sets.from_arrays(arrays, y=np.arange(len(arrays)))
        same(sets, arrays)
        assert sets.sizes.tolist() == [len(a) for a in arrays]
        assert sets.feature_shape == arrays[0].shape[1:]
        assert sets.pool.dtype == np.float32

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
        assert part.pool is sets.pool

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
        assert part.pool is three.pool
        assert np.shares_memory(part.index, three.index)
        assert np.shares_memory(part.y, three.y)

    def test_subsets_and_orders_share_the_pool(self, three):
        assert three.subset([2, 0]).pool is three.pool
        assert three.shuffled(generator()).pool is three.pool
        assert Sets.concatenate([three, three[:1]]).pool is three.pool

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


class TestOrders:
    def test_by_seed(self):
        sizes = [5, 3, 5]
        first = random_orders(sizes, generator(1))
        assert (first == random_orders(sizes, generator(1))).all()
        assert (first != random_orders(sizes, generator(2))).any()

    @pytest.mark.parametrize("sizes", [[3] * 6000, [3, 2] * 6000], ids=["equal", "varying"])
    def test_all_orders_are_equally_likely(self, sizes):
        order = random_orders(sizes, generator(3))
        parts = np.split(order, np.cumsum(sizes)[:-1])
        counts = Counter(tuple(p.tolist()) for p in parts if len(p) == 3)
        assert set(counts) == set(permutations(range(3)))
        # Chi-square with 5 degrees of freedom: above 20.5 once in a thousand seeds.
        assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 20.5

    @pytest.mark.parametrize("sizes", [[], [0], [0, 0], [1], [0, 2]])
    def test_small(self, sizes):
        assert len(random_orders(sizes, generator())) == sum(sizes)

    def test_shuffled_keeps_instances(self, three):
        shuffled = three.shuffled(generator())
        for k in range(3):
            assert sorted(shuffled[k].tolist()) == sorted(three[k].tolist())

    @pytest.mark.parametrize(
        ("order", "words"),
        [
            ([0, 1, 0, 1], "every position of every set once"),
            ([0, 2, 0, 1, 2], "every position of every set once"),
            ([0, 1, 0, -1, 2], "every position of every set once"),
            ([0, 1, 0, 1, 1], "order given for set 2 is not a permutation"),
            ([1, 1, 0, 1, 2], "order given for set 0 is not a permutation"),
        ],
    )
    def test_wrong_orders(self, three, order, words):
        with pytest.raises(InputError, match=words):
            three.reorder(order)


class TestKeeping:
    def test_everything_comes_back(self, three, tmp_path):
        three.save(tmp_path / "new" / "folder")
        loaded = Sets.load(tmp_path / "new" / "folder")
        for name in ("pool", "index", "offsets", "y", "classes", "ids", "weights"):
            kept = getattr(loaded, name)
            np.testing.assert_array_equal(kept, getattr(three, name))
            assert isinstance(kept, np.memmap), f"{name} should stay on disk"
        assert loaded.feature_names == ("width", "height")

    def test_saving_again_replaces(self, three, tmp_path):
        three.save(tmp_path)
        old = Sets.load(tmp_path)
        three[:1].save(tmp_path)
        assert len(Sets.load(tmp_path)) == 1
        assert len(list(tmp_path.glob("offsets*"))) == 1
        same(old, [three[k] for k in range(3)])  # whoever had it open goes on reading

    def test_saving_over_itself(self, three, tmp_path):
        three.save(tmp_path)
        Sets.load(tmp_path)[1:].save(tmp_path)
        same(Sets.load(tmp_path), [three[1], three[2]])

    def test_failure_keeps_the_earlier_save(self, three, tmp_path, monkeypatch):
        three.save(tmp_path)
        before = sorted(p.name for p in tmp_path.iterdir())
        real, written = np.save, []

        def full_disk(file, values, **options):
            written.append(values)
            if len(written) == 3:
                raise OSError(28, "No space left on device")
            real(file, values, **options)

        monkeypatch.setattr(np, "save", full_disk)
        with pytest.raises(InputError, match=r"cannot write .*offsets.*No space left"):
            three[:1].save(tmp_path)
        same(Sets.load(tmp_path), [three[k] for k in range(3)])
        assert sorted(p.name for p in tmp_path.iterdir()) == before

    def test_foreign_files_stay(self, three, tmp_path):
        (tmp_path / "mine.npy").write_bytes(b"mine")
        three.save(tmp_path)
        three.save(tmp_path)
        assert (tmp_path / "mine.npy").read_bytes() == b"mine"

    def test_nothing_there(self, tmp_path):
        with pytest.raises(InputError, match="holds no complete saved sets"):
            Sets.load(tmp_path)

    @pytest.mark.parametrize("damage", ["truncate", "remove", "pickle", "json", "list", "format"])
    def test_damage(self, three, tmp_path, damage):
        three.save(tmp_path)
        about = tmp_path / "sets.json"
        (pool,) = tmp_path.glob("pool*")
        if damage == "truncate":
            pool.write_bytes(pool.read_bytes()[:-8])
        elif damage == "remove":
            pool.unlink()
        elif damage == "pickle":
            np.save(pool, np.array([{}], dtype=object), allow_pickle=True)
        elif damage == "json":
            about.write_text(about.read_text()[:-5])
        elif damage == "list":
            about.write_text("[]")
        else:
            about.write_text("{}")
        with pytest.raises(InputError, match="holds no complete saved sets"):
            Sets.load(tmp_path)

    def test_missing_array(self, three, tmp_path):
        three.save(tmp_path)
        about = json.loads((tmp_path / "sets.json").read_text())
        del about["arrays"]["offsets"]
        (tmp_path / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=r"holds no complete saved sets.*offsets"):
            Sets.load(tmp_path)

    def test_newer_format(self, three, tmp_path):
        three.save(tmp_path)
        about = json.loads((tmp_path / "sets.json").read_text()) | {"format": 99}
        (tmp_path / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=r"newer version of capnets .*format 99.*upgrade"):
            Sets.load(tmp_path)

    def test_cannot_point_elsewhere(self, three, tmp_path):
        three.save(tmp_path / "sets")
        np.save(tmp_path / "secret.npy", np.zeros((9, 2)))
        about = json.loads((tmp_path / "sets" / "sets.json").read_text())
        about["arrays"]["pool"] = "../secret.npy"
        (tmp_path / "sets" / "sets.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match="holds no complete saved sets"):
            Sets.load(tmp_path / "sets")


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
            ({"index": [0, 1, 2, 3, 5]}, "rows outside the pool of 5 instances"),
            ({"index": [0, 1, 2, 3, -1]}, "rows outside the pool"),
            ({"index": [0, 1, 2, 3, 3.5]}, "index must be a list of whole numbers.*float64"),
            ({"y": [1.0]}, "y has 1 entries, but 3 are needed"),
            ({"y": ["a", "b", "c"]}, "y must hold numbers"),
            ({"ids": ["a"]}, "ids has 1 entries, but 3 are needed"),
            ({"weights": np.ones(4)}, "weights has 4 entries, but 3 are needed: one per set"),
            ({"classes": [1]}, "classes has 1 entries, but 5 .* one per instance of the pool"),
            ({"feature_names": ("a",)}, "feature_names has 1 entries, but 2 .* one per feature"),
            ({"pool": np.ones(5)}, r"the pool has shape \(5,\)"),
            ({"pool": np.full((5, 2), "a")}, "pool must hold numbers"),
        ],
    )
    def test_layout(self, three, change, words):
        parts = {"pool": three.pool, "index": three.index, "offsets": three.offsets, "y": three.y}
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
        three.pool[3, 1] = value
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
        three.pool[3, 1] = np.nan
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
