import numpy as np
import pytest

from capnets.errors import InputError
from capnets.tasks import parse_task
from capnets.tasks.statistics import expected_labels, histogram, statistics


def test_statistics_of_some_labels():
    found = statistics(np.array([1.0, 1.0, 4.0, 10.0]))
    assert (found.count, found.mean, found.median) == (4, 4.0, 2.5)
    assert found.variance == pytest.approx(13.5)
    assert found.deviation == pytest.approx(13.5**0.5)
    assert (found.smallest, found.largest) == (1.0, 10.0)


def test_histogram_counts_every_label_once():
    labels = np.random.default_rng(0).integers(-5, 3000, size=10_000)
    one = histogram(labels, bins=5000)
    assert (one.start, one.width) == (labels.min(), 1)
    assert sum(one.counts) == 10_000
    wide = histogram(labels, bins=100)
    assert len(wide.counts) <= 100
    assert sum(wide.counts) == 10_000
    low = wide.start + 7 * wide.width
    assert wide.counts[7] == ((labels >= low) & (labels < low + wide.width)).sum()


def test_huge_labels_have_a_histogram():
    assert len(histogram([0.0, 9.0**10], bins=50).counts) <= 50


def test_no_labels():
    for say in (statistics, histogram):
        with pytest.raises(InputError, match="at least one label"):
            say([])


def test_expected_labels_mix_the_sizes():
    one = [expected_labels(parse_task("US", sizes=n)) for n in (6, 14)]
    both = expected_labels(parse_task("US", sizes=(6, 14)))
    assert both.mean == pytest.approx((one[0].mean + one[1].mean) / 2)
    assert both.probabilities.sum() == pytest.approx(1)
