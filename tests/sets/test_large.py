"""Pools in half precision and in mapped files give the same batches, and stay on disk."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch

from capnets import Recipe, fit
from capnets.evaluate import added_values, predict
from capnets.explain import explain
from capnets.models import build
from capnets.sets import Sets, batch, mapped, offsets_of
from capnets.sets.batch import Batches, Sample
from capnets.sets.fingerprint import fingerprint

HALVES = [np.float16, ml_dtypes.bfloat16]


@pytest.fixture
def sets() -> Sets:
    draw = np.random.default_rng(0)
    sizes = draw.integers(1, 9, 60)
    x = draw.normal(size=(sizes.sum(), 4)).astype(np.float16)
    y = draw.normal(size=60).astype(np.float32)
    return Sets(x, np.arange(len(x)), offsets_of(sizes), y)


@pytest.fixture
def streamed(monkeypatch):
    """Treat every mapped file as a large one."""
    monkeypatch.setattr(mapped, "LARGE", 0)
    monkeypatch.setattr(batch, "BLOCK_BYTES", 200)


def typed(sets: Sets, dtype) -> Sets:
    return Sets(sets.instances.astype(dtype), sets.index, sets.offsets, sets.y)


def saved(sets: Sets, folder) -> Sets:
    sets.save(folder)
    return Sets.load(folder)


@pytest.mark.parametrize("dtype", HALVES)
class TestHalfPrecision:
    def test_stays_what_it_is(self, sets, dtype, tmp_path):
        half = typed(sets, dtype)
        again = saved(half, tmp_path / "s")
        assert again.instances.dtype == half.instances.dtype == dtype
        assert fingerprint(again) == fingerprint(half)
        assert isinstance(again.instances, np.memmap)
        assert Sets.from_arrays([half[0], half[1]]).instances.dtype == dtype

    def test_trains_as_float32_does(self, sets, dtype):
        """Conversion is exact, so the same numbers in float32 give the same bits."""
        half = typed(sets, dtype)
        wide = typed(half, np.float32)
        found = []
        for one in (half, wide):
            model = build("c-gru", in_features=4, inputs="standardize", seed=0)
            fit(model, one, recipe=Recipe(epochs=2, batch_size=16))
            values = explain(model, one).values
            found.append((predict(model, one), added_values(model, one), values))
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_tensors(self, dtype):
        kind = torch.float16 if dtype == np.float16 else torch.bfloat16
        x = torch.randn(3, 2).to(kind)
        found = Sets.from_arrays([x]).instances
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(np.float32), x.float().numpy())


class TestStreaming:
    def test_reads_every_set_once(self, sets, streamed, tmp_path):
        data = Batches(saved(sets, tmp_path / "s"))
        assert data.streamed
        draw = torch.Generator().manual_seed(0)
        found = []
        for one in data.epoch(size=7, shuffle=draw, reorder=draw):
            for k, x in zip(one.set_index, one.x, strict=True):
                rows = x[: sets.sizes[k]].numpy().tolist()
                assert sorted(rows) == sorted(sets[k].astype(np.float32).tolist())
                found.append(int(k))
        assert sorted(found) == list(range(60))
        assert found != list(range(60))

    def test_shuffles_neighbours_together(self, sets, streamed, tmp_path):
        """A group of sets covers few blocks of the file; groups follow in random order."""
        data = Batches(saved(sets, tmp_path / "s"))
        width = data.sets.instances.strides[0]
        block = np.cumsum(data.sizes * width) // batch.BLOCK_BYTES
        plan = data.plan(size=1, shuffle=torch.Generator().manual_seed(0))
        order = [int(block[one[0]]) for one in plan]
        sizes = np.bincount(block)
        first = len(set(order[: sizes.max()]))
        assert first <= batch.BLOCKS < len(set(order))
        assert order != sorted(order)

    def test_predicts_as_in_memory(self, sets, streamed, tmp_path):
        model = build("c-deepset", in_features=4, seed=0)
        disk = saved(sets, tmp_path / "s")
        np.testing.assert_array_equal(predict(model, disk), predict(model, sets))
        np.testing.assert_array_equal(
            explain(model, disk, orders=2).values, explain(model, sets, orders=2).values
        )

    def test_small_files_stay_resident(self, sets, tmp_path):
        disk, memory = Batches(saved(sets, tmp_path / "s")), Batches(sets)
        assert not disk.streamed
        for a, b in zip(*(d.epoch(size=9, shuffle=torch.Generator().manual_seed(1))
                          for d in (disk, memory)), strict=True):  # fmt: skip
            assert torch.equal(a.x, b.x)


class TestBatchesByInstances:
    @pytest.mark.parametrize("bucket", [False, True])
    def test_limits(self, sets, bucket):
        draw = torch.Generator().manual_seed(0)
        seen = []
        for one in Batches(sets).epoch(size=5, instances=20, shuffle=draw, bucket=bucket):
            sets_read, longest = one.x.shape[:2]
            assert sets_read <= 5
            assert sets_read * longest <= 20 or sets_read == 1
            seen += one.set_index.tolist()
        assert sorted(seen) == list(range(60))

    def test_processes_take_equally_many_batches(self, sets):
        plans = [
            Batches(sets).plan(
                size=5, instances=20, shuffle=torch.Generator().manual_seed(0), share=(rank, 2)
            )
            for rank in range(2)
        ]
        assert len(plans[0]) == len(plans[1])
        both = np.concatenate([*plans[0], *plans[1]])
        assert len(np.unique(both)) == len(both)

    def test_no_limit_that_matters_changes_nothing(self, sets):
        plans = [
            Batches(sets).plan(size=5, instances=most, shuffle=torch.Generator().manual_seed(0))
            for most in (None, 10_000)
        ]
        assert all(np.array_equal(a, b) for a, b in zip(*plans, strict=True))


class TestSamples:
    @pytest.mark.parametrize("reorder", [False, True])
    @pytest.mark.parametrize("disk", [False, True])
    def test_parts_of_sets(self, sets, reorder, disk, tmp_path, request):
        if disk:
            request.getfixturevalue("streamed")
            sets = saved(sets, tmp_path / "s")
        epochs = []
        for seed in range(2):
            draw = torch.Generator().manual_seed(seed)
            read = {}
            for one in Batches(sets).epoch(
                size=7, reorder=draw if reorder else None, sample=Sample(3, draw)
            ):
                for place, k in enumerate(one.set_index):
                    count = min(3, sets.sizes[k])
                    x = one.x[place, :count].numpy().tolist()
                    whole = sets[k].astype(np.float32).tolist()
                    assert all(row in whole for row in x)
                    assert len(np.unique(x, axis=0)) == count
                    if not reorder:
                        assert x == [row for row in whole if row in x], "in the given order"
                    times = 1.0 if one.times is None else float(one.times[place])
                    assert times == pytest.approx(sets.sizes[k] / count)
                    read[int(k)] = x
            epochs.append(read)
        assert sorted(epochs[0]) == list(range(60))
        assert epochs[0] != epochs[1], "a new sample every epoch"


# Kilobytes; `ru_maxrss` begins with the peak of the process that starts this one.
PEAK = """
def peak():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1])
"""

# Pages of mapped files count as resident memory until they are released.
PROGRAM = """
import sys
import numpy as np
from capnets.sets import Sets, mapped
from capnets.sets.batch import Batches
from capnets.sets.fingerprint import fingerprint
mapped.LARGE = 2**20
sets = Sets.load(sys.argv[1])
data = Batches(sets)
for batch in data.epoch(size=1): pass  # warm
before = peak()
for _ in range(2):
    for batch in data.epoch(size=4): pass
sets.check_finite()
fingerprint(sets)
print(peak() - before)
"""


# Statistics of all instances and every step need memory for a block or a batch only.
TRAINING = """
import sys
from capnets import Recipe, fit
from capnets.memory import keep_freed
from capnets.models import build
from capnets.sets import Sets, mapped
mapped.LARGE = 2**20
keep_freed()
sets = Sets.load(sys.argv[1])
model = build("c-deepset", in_features=1024, width=64, inputs="standardize", seed=0)
fit(model, sets[:2], recipe=Recipe(epochs=1, batch_size=2))  # warm
before = peak()
fit(model, sets, recipe=Recipe(epochs=2, batch_size=32, batch_instances=4096))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident pages of Linux")
@pytest.mark.slow
def test_memory_of_training_does_not_grow_with_the_file(tmp_path):
    x = np.random.default_rng(0).integers(0, 2, (64 * 1000, 1024)).astype(np.float16)  # 131 MB
    y = np.arange(64, dtype=np.float32)
    Sets(x, np.arange(len(x)), offsets_of([1000] * 64), y).save(tmp_path / "s")
    grown = int(
        subprocess.check_output([sys.executable, "-c", PEAK + TRAINING, str(tmp_path / "s")])
    )
    assert grown < 120_000, "kilobytes"


@pytest.mark.skipif(sys.platform != "linux", reason="resident pages of Linux")
def test_memory_does_not_grow_with_the_file(tmp_path):
    x = np.zeros((64 * 1000, 1024), dtype=np.float16)  # 131 MB
    Sets(x, np.arange(len(x)), offsets_of([1000] * 64)).save(tmp_path / "s")
    grown = int(
        subprocess.check_output([sys.executable, "-c", PEAK + PROGRAM, str(tmp_path / "s")])
    )
    assert grown < 60_000, "kilobytes"
