"""Batches contain every set once, with minimal padding and masks only if needed."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capnets import memory
from capnets.errors import InputError
from capnets.sets import Sets, offsets_of
from capnets.sets.batch import Batches, batches

often = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def ragged(sizes, **about) -> Sets:
    """Sets whose instances are all different numbers."""
    numbers = np.arange(2.0 * sum(sizes), dtype=np.float32).reshape(-1, 2)
    y = np.arange(len(sizes), dtype=np.float32)
    return Sets(numbers, np.arange(sum(sizes)), offsets_of(sizes), y, **about)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def unpadded(batch) -> list[np.ndarray]:
    if batch.mask is None:
        return list(batch.x.numpy())
    return [x[keep].numpy() for x, keep in zip(batch.x, batch.mask, strict=True)]


class TestOneBatch:
    @often
    @given(SIZES, st.integers(1, 5))
    def test_contents(self, sizes, size):
        sets = ragged(sizes, weights=np.arange(len(sizes)))
        for number, batch in enumerate(batches(sets, size=size)):
            assert batch.set_index.tolist() == list(range(len(sizes)))[number * size :][:size]
            assert batch.y[:, 0].tolist() == batch.set_index.tolist() == batch.weights.tolist()
            for k, instances in zip(batch.set_index, unpadded(batch), strict=True):
                np.testing.assert_array_equal(instances, sets[k])

    @often
    @given(SIZES, st.integers(1, 5), st.booleans())
    def test_padding_is_as_short_as_possible(self, sizes, size, bucket):
        sets = ragged(sizes)
        for batch in batches(sets, size=size, bucket=bucket):
            within = sets.sizes[batch.set_index]
            assert batch.x.shape == (len(within), within.max(), 2)
            assert (batch.mask is None) == (within == within.max()).all()
            if batch.mask is not None:
                assert batch.mask.sum(1).tolist() == within.tolist()
                assert not (batch.mask[:, 1:] & ~batch.mask[:, :-1]).any(), "padding stands behind"

    @often
    @given(SIZES)
    def test_shuffled(self, sizes):
        """The same instances of the same sets; padding stays behind."""
        batch = next(batches(ragged(sizes), size=len(sizes)))
        other = batch.shuffled(generator())
        assert other.mask is batch.mask
        for before, after in zip(unpadded(batch), unpadded(other), strict=True):
            assert sorted(after.tolist()) == before.tolist()

    def test_shuffled_draws_every_order(self):
        batch = next(batches(ragged([3, 2]), size=2))
        draw = generator()
        found = {str(unpadded(batch.shuffled(draw))[0][:, 0].tolist()) for _ in range(100)}
        assert len(found) == 6

    def test_reorder(self):
        batch = next(batches(ragged([3, 2]), size=2))
        order = torch.tensor([[2, 0, 1], [1, 0, 2]])
        first, second = unpadded(batch.reorder(order))
        assert first[:, 0].tolist() == [4.0, 0.0, 2.0]
        assert second[:, 0].tolist() == [8.0, 6.0]

    def test_equal_sizes_have_no_mask(self):
        assert all(batch.mask is None for batch in batches(ragged([3] * 7), size=2))

    def test_no_labels(self):
        (batch,) = batches(Sets.from_arrays([np.ones((2, 3))]), size=5)
        assert batch.y is None
        assert batch.weights is None

    def test_several_labels(self):
        (batch,) = batches(Sets.from_arrays([np.ones((2, 3))], y=[[1.0, 2.0]]), size=5)
        assert batch.y.tolist() == [[1.0, 2.0]]

    def test_pictures(self):
        sets = Sets.from_arrays([np.ones((2, 1, 4, 5)), np.ones((3, 1, 4, 5))])
        (batch,) = batches(sets, size=2)
        assert batch.x.shape == (2, 3, 1, 4, 5)
        assert batch.mask.shape == (2, 3)

    def test_empty_sets_only(self):
        (batch,) = batches(ragged([0, 0]), size=2)
        assert batch.x.shape == (2, 0, 2)
        assert batch.mask is None

    def test_other_types_become_float32(self):
        sets = Sets(np.arange(6, dtype=np.uint8).reshape(3, 2), [2, 0], [0, 2], np.array([1]))
        (batch,) = batches(sets, size=1)
        assert batch.x.dtype == batch.y.dtype == torch.float32
        assert batch.x.tolist() == [[[4, 5], [0, 1]]]

    def test_pool_is_shared(self):
        sets = ragged([2, 3])
        assert np.shares_memory(Batches(sets).instances.numpy(), sets.instances)

    def test_mapped_files(self, tmp_path):
        ragged([2, 3]).save(tmp_path)
        (batch,) = batches(Sets.load(tmp_path), size=2)
        np.testing.assert_array_equal(unpadded(batch)[1], ragged([2, 3])[1])

    def test_moves(self):
        (batch,) = batches(ragged([2, 3], weights=[1, 2]), size=2)
        moved = batch.to(torch.device("meta"))
        assert {t.device.type for t in (moved.x, moved.mask, moved.y, moved.weights)} == {"meta"}
        (plain,) = batches(Sets.from_arrays([np.ones((2, 3))]), size=2)
        assert plain.to(torch.device("meta")).mask is None


class TestEpoch:
    @often
    @given(SIZES, st.integers(1, 5), st.booleans(), st.booleans())
    def test_all_sets_once(self, sizes, size, shuffle, bucket):
        seen = Batches(ragged(sizes)).epoch(
            size=size, shuffle=generator() if shuffle else None, bucket=bucket
        )
        assert sorted(chain(*(b.set_index for b in seen))) == list(range(len(sizes)))

    @often
    @given(SIZES, st.integers(1, 5), st.booleans())
    def test_some_again(self, sizes, size, bucket):
        again = [0, len(sizes) - 1, 0]
        seen = Batches(ragged(sizes)).epoch(
            size=size, shuffle=generator(), bucket=bucket, again=again
        )
        expected = sorted([*range(len(sizes)), *again])
        assert sorted(chain(*(b.set_index for b in seen))) == expected

    def test_shuffled_by_seed(self):
        data = Batches(ragged([2] * 50))

        def order(seed):
            return [k for b in data.epoch(size=7, shuffle=generator(seed)) for k in b.set_index]

        assert order(1) == order(1) != order(2)
        assert order(1) != sorted(order(1))

    def test_one_generator_gives_another_order_each_epoch(self):
        data, draws = Batches(ragged([2] * 50)), generator()
        first, second = (
            [k for b in data.epoch(size=7, shuffle=draws) for k in b.set_index] for _ in range(2)
        )
        assert first != second

    @often
    @given(SIZES, st.integers(0, 99))
    def test_reorder_keeps_the_instances(self, sizes, seed):
        sets = ragged(sizes)
        for batch in Batches(sets).epoch(size=3, reorder=generator(seed)):
            for k, instances in zip(batch.set_index, unpadded(batch), strict=True):
                assert sorted(instances.tolist()) == sorted(sets[k].tolist())

    def test_reorder_is_fresh(self):
        data, draws = Batches(ragged([6] * 20)), generator()
        first, second = (next(data.epoch(size=20, reorder=draws)).x for _ in range(2))
        assert not torch.equal(first, second)
        assert torch.equal(first, next(data.epoch(size=20, reorder=generator())).x)

    def test_buckets_save_padding(self):
        sizes = [1, 9] * 20
        sets = ragged(sizes)

        def padded(bucket):
            return sum(b.x[..., 0].numel() for b in batches(sets, size=4, bucket=bucket))

        assert padded(True) == sum(sizes) < padded(False)

    def test_drawn_sets_are_put_together_by_size_where_there_are_many_batches(self):
        def padded(sets, bucket):
            data = Batches(ragged([1, 9] * (sets // 2)))
            drawn = data.epoch(size=4, shuffle=generator(), bucket=bucket)
            return [b.x.shape[1] for b in drawn]

        assert sum(padded(400, True)) < 0.8 * sum(padded(400, False))
        assert padded(12, True) == padded(12, False)

    def test_sizes_that_differ_much_are_ragged(self):
        assert Batches(ragged([5, 5, 50])).ragged
        assert not Batches(ragged([6, 8, 10, 12, 14])).ragged

    def test_buckets_still_differ_between_epochs(self):
        data, draws = Batches(ragged([1, 2, 3] * 30)), generator()
        first, second = (
            [b.set_index.tolist() for b in data.epoch(size=5, shuffle=draws, bucket=True)]
            for _ in range(2)
        )
        assert first != second

    @often
    @given(SIZES, st.integers(1, 4), st.integers(1, 4), st.booleans())
    def test_shares(self, sizes, size, world, bucket):
        """Processes side by side read the batches of one process."""
        how = {"size": size, "bucket": bucket}
        data = Batches(ragged(sizes))
        alone = data.plan(**how, shuffle=generator())
        parts = [data.plan(**how, shuffle=generator(), share=(r, world)) for r in range(world)]
        together = [sorted(np.concatenate(step).tolist()) for step in zip(*parts, strict=True)]
        assert together == [sorted(cut.tolist()) for cut in alone]

    def test_no_sets(self):
        assert list(batches(ragged([2])[:0], size=3)) == []

    @pytest.mark.parametrize("size", [0, -1])
    def test_wrong_size(self, size):
        with pytest.raises(InputError, match=f"at least 1 set, not {size}"):
            list(batches(ragged([2]), size=size))


class TestMemory:
    def test_padding_that_does_not_fit(self):
        """One set of a million instances among a million of size one: 4 TB when padded."""
        index = np.zeros(2_000_000, dtype=np.int64)
        sets = Sets(np.zeros((1, 1), np.float32), index, offsets_of([1] * 1_000_000 + [1_000_000]))
        with pytest.raises(
            InputError, match=r"batch of 1,000,001 sets padded to 1,000,000 .*bucket=True"
        ):
            next(batches(sets, size=2_000_000))

    def test_conversion_that_does_not_fit(self):
        pool = np.broadcast_to(np.uint16(0), (2**40, 8))
        with pytest.raises(InputError, match=r"as float32: .* GB of memory are needed"):
            Batches(Sets(pool, [0], [0, 1]))

    def test_small_things_are_not_asked_for(self, monkeypatch):
        monkeypatch.setattr(memory, "free_memory", lambda: 0.0)
        memory.check_memory(1000, what="a small thing", advice="-")
        with pytest.raises(InputError, match=r"a large thing: 1.0 GB .* only 0.0 GB are free"):
            memory.check_memory(1e9, what="a large thing", advice="wait")

    def test_free_memory_is_plausible(self):
        assert 2**20 < memory.free_memory() < 2**60


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[:, ::-1][:, ::-1],
        lambda x: x[::-1][::-1],
        lambda x: x.astype(">f4"),
        lambda x: x.astype(">f8"),
        lambda x: x.astype(np.longdouble),
        lambda x: np.asfortranarray(x),
        lambda x: torch.tensor(x, requires_grad=True),
        lambda x: torch.tensor(x).bfloat16(),
        lambda x: torch.tensor(x).double(),
    ],
)
def test_any_layout_of_instances_gives_the_same_batch(change):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (batch,) = batches(Sets(change(x), [0, 3, 1], [0, 2, 3]), size=2)
    assert batch.x[0].tolist() == x[[0, 3]].tolist()
    (batch,) = batches(Sets.from_arrays([change(x), change(x)]), size=2)
    assert batch.x[1].tolist() == x.tolist()


def test_reversed_instances_are_read_reversed():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (batch,) = batches(Sets(x[:, ::-1], [0, 1], [0, 2]), size=1)
    assert batch.x[0].tolist() == x[:2, ::-1].tolist()
