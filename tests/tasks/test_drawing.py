"""Sets drawn from scikit-learn's digits: no files needed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from capnets.errors import InputError
from capnets.tasks import FUNCTIONS, make, parse_task
from capnets.tasks.statistics import expected_labels

SPEC = parse_task("US:digits", sizes="varying", sets=3000, valid_sets=400, test_sets=500)


@pytest.fixture(scope="module")
def task():
    return make(SPEC)


def test_numbers_and_sizes(task):
    assert (len(task.train), len(task.valid), len(task.test)) == (3000, 400, 500)
    sizes, counts = np.unique(task.train.sizes, return_counts=True)
    assert sizes.tolist() == [6, 8, 10, 12, 14]
    assert chisquare(counts).pvalue > 1e-4


def test_all_parts_share_the_instances(task):
    assert task.train.instances is task.valid.instances is task.test.instances
    assert len(task.train.instances) == len(task.images.pixels)
    assert task.train.instances.dtype == np.float32


def test_classes_are_uniform_and_images_of_a_class_too():
    task = make(replace(SPEC, sizes=(10,), sets=20_000))
    classes = task.classes(task.train)
    assert chisquare(np.bincount(classes)).pvalue > 1e-4
    for c in range(10):
        rows = task.train.index[classes == c]
        available = np.flatnonzero(task.images.classes[: task.images.train] == c)
        counts = np.bincount(np.searchsorted(available, rows), minlength=len(available))
        assert len(counts) == len(available)
        assert chisquare(counts).pvalue > 1e-5


def test_position_does_not_reveal_the_class():
    """Sorted instances would tell an ordered network part of the label."""
    task = make(replace(SPEC, sizes=(10,)))
    table = task.classes(task.train).reshape(-1, 10)
    for place in range(10):
        assert chisquare(np.bincount(table[:, place], minlength=10)).pvalue > 1e-5
    rising = (np.diff(table, axis=1) >= 0).mean()
    assert rising == pytest.approx(0.55, abs=0.02)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_labels_and_expected_added_values(function):
    task = make(replace(SPEC, function=function, sets=300))
    for sets in (task.train, task.valid, task.test, task.train.shuffled(torch.Generator())):
        sums = np.add.reduceat(task.expected(sets), sets.offsets[:-1])
        np.testing.assert_allclose(sums, sets.y, rtol=1e-6)


def test_pictures_belong_to_the_instances(task):
    some = task.test.subset([3, 7])
    pictures = task.pictures(some)
    assert pictures.shape == (len(some.index), 8, 8)
    # Without an embedding the features are the pixels, shifted and scaled.
    flat = pictures.reshape(len(pictures), 64).astype(float)
    features = some.instances[some.index]
    slopes = [np.polyfit(flat[:, p], features[:, p], 1)[0] for p in (20, 28, 36)]
    assert np.ptp(slopes) < 1e-5


def test_the_same_seed_gives_the_same_sets_another_seed_others(task):
    again, other = make(SPEC), make(replace(SPEC, seed=1))
    for part in ("train", "valid", "test"):
        first, same, differs = (getattr(t, part) for t in (task, again, other))
        assert np.array_equal(first.index, same.index)
        assert np.array_equal(first.offsets, same.offsets)
        assert np.array_equal(first.y, same.y)
        assert not np.array_equal(first.index[:100], differs.index[:100])
    assert np.array_equal(task.train.instances, other.train.instances)


def test_parts_do_not_depend_on_each_others_numbers(task):
    more = make(replace(SPEC, sets=4000, valid_sets=600))
    assert np.array_equal(more.test.index, task.test.index)
    for part in ("train", "valid"):
        few, many = getattr(task, part), getattr(more, part)
        assert np.array_equal(many.offsets[: len(few.offsets)], few.offsets)
        assert np.array_equal(many.index[: len(few.index)], few.index)


def test_parts_are_drawn_independently(task):
    n = 400
    parts = [task.train, task.valid, task.test, task.test_sets("held-out")]
    firsts = [task.classes(p)[p.offsets[:n]] for p in parts]
    for a in range(4):
        for b in range(a):
            assert (firsts[a] == firsts[b]).mean() == pytest.approx(0.1, abs=0.07)


def test_shared_sets_hold_training_images_only(task):
    for sets in (task.train, task.valid, task.test):
        assert sets.index.max() < task.images.train


def test_held_out_sets_hold_test_images_only(task):
    held_out = make(replace(SPEC, protocol="held-out"))
    assert held_out.test.index.min() >= task.images.train
    assert held_out.valid.index.max() < task.images.train
    for part in ("train", "valid"):
        assert np.array_equal(getattr(held_out, part).index, getattr(task, part).index)


def test_one_task_gives_the_test_sets_of_both_protocols(task):
    held_out = make(replace(SPEC, protocol="held-out"))
    assert np.array_equal(task.test_sets("held-out").index, held_out.test.index)
    assert np.array_equal(held_out.test_sets("shared").index, task.test.index)
    assert task.test_sets("shared") is task.test
    with pytest.raises(InputError, match="did you mean 'held-out'"):
        task.test_sets("held out")


def test_too_much_is_said_before_it_is_allocated():
    with pytest.raises(InputError, match=r"GB of memory are needed.*fewer or smaller"):
        make(replace(SPEC, sets=10**12))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f != "product"])
@pytest.mark.parametrize("sizes", [(10,), (6, 8, 10, 12, 14)], ids=["ten", "varying"])
def test_drawn_labels_follow_their_exact_distribution(function, sizes):
    spec = replace(SPEC, function=function, sizes=sizes, sets=100_000, seed=11)
    labels = make(spec).train.y.astype(int)
    exact = expected_labels(spec)
    expected = np.zeros(max(labels.max(), int(exact.values[-1])) + 1)
    expected[exact.values.astype(int)] = exact.probabilities * len(labels)
    observed = np.bincount(labels, minlength=len(expected))
    usual = expected >= 5
    assert observed[expected == 0].sum() == 0
    table = [[*counts[usual], counts[~usual].sum() + 1e-9] for counts in (observed, expected)]
    assert chisquare(*table).pvalue > 1e-4
    error = np.sqrt(exact.variance / len(labels))
    assert labels.mean() == pytest.approx(exact.mean, abs=4 * error)
