"""The sets that are most wrong are read more often, and only those."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.evaluate import predict
from capnets.sets.batch import Batches
from capnets.training.fit import fit
from capnets.training.replay import TIMES, Rehearsal
from small_networks import LONG, bits, network, trained


@pytest.fixture
def read(monkeypatch):
    """How often every set was read, epoch by epoch."""
    epochs = []
    plain = Batches.epoch

    def watched(self, **how):
        counted = Counter() if "again" in how else None
        if counted is not None:
            epochs.append(counted)
        for batch in plain(self, **how):
            if counted is not None:
                counted.update(batch.set_index.tolist())
            yield batch

    monkeypatch.setattr(Batches, "epoch", watched)
    return epochs


class TestHardest:
    @staticmethod
    def noted(**far):
        """A thousand sets with an error of 1, but for some."""
        rehearsal = Rehearsal(1000, above=30)
        errors = torch.ones(1000)
        for name, error in far.items():
            errors[int(name[1:])] = error
        for part in np.array_split(np.random.default_rng(0).permutation(1000), 7):
            rehearsal.note(part, errors[part])
        return rehearsal

    def test_which(self):
        # The mean is 1.2: 35 is not more than thirty times as much.
        again = self.noted(_3=60, _7=35, _950=100).again()
        assert Counter(again.tolist()) == {3: TIMES, 950: TIMES}

    def test_the_last_reading_counts(self):
        rehearsal = self.noted(_3=60, _950=100)
        rehearsal.note(np.array([3, 5]), torch.tensor([0.0, 80.0]))
        assert set(rehearsal.again()) == {5, 950}

    def test_no_more_than_some(self):
        far = {f"_{k}": 1e6 - k for k in range(30)}
        assert set(self.noted(**far).again()) == set(range(10))

    def test_nothing_is_far_where_all_is_equally_wrong(self):
        assert not len(self.noted().again())

    def test_an_epoch_is_forgotten_with_the_next(self):
        rehearsal = self.noted(_3=60)
        assert len(rehearsal.again())
        assert not len(rehearsal.again())

    def test_none(self):
        rehearsal = Rehearsal(4, above=None)
        rehearsal.note(np.array([1]), torch.tensor([3.0]))
        assert not len(rehearsal.again())


class TestFit:
    HOW = replace(LONG, epochs=6, rehearse=20)

    @pytest.fixture
    def wrong(self, make):
        """Labels of three sets that nothing explains, so that they stay wrong."""

        def wrong(**about):
            sets = make(300, **about)
            sets.y[[7, 50, 120]] += 40
            return sets

        return wrong

    def test_the_wrong_ones(self, wrong, read):
        fit(network(), wrong(), recipe=self.HOW)
        assert all(set(counted) == set(range(300)) for counted in read)
        assert set(read[0].values()) == {1}, "nothing is known before the first epoch"
        assert {k: n for k, n in read[-1].items() if n > 1} == dict.fromkeys(
            (7, 50, 120), 1 + TIMES
        )

    def test_only_if_asked(self, wrong, read):
        fit(network(), wrong(), recipe=replace(self.HOW, rehearse=None))
        assert all(set(counted.values()) == {1} for counted in read)

    def test_sets_without_weight_are_not_rehearsed(self, wrong, read):
        weights = np.ones(300, np.float32)
        weights[7] = 0
        fit(network(), wrong(weights=weights), recipe=self.HOW)
        assert {k for k, n in read[-1].items() if n > 1} == {50, 120}

    def test_the_rate_falls_as_it_would(self, wrong):
        rates = [
            [line["rate"] for line in fit(network(), wrong(), recipe=recipe)]
            for recipe in (self.HOW, replace(self.HOW, rehearse=None))
        ]
        assert rates[0] == pytest.approx(rates[1], rel=0.3)
        assert rates[0][-1] < 1e-2 * self.HOW.learning_rate

    def test_same_seed_same_bits(self, make):
        assert bits(trained(make, recipe=self.HOW)) == bits(trained(make, recipe=self.HOW))

    def test_rare_instances_are_learned(self, make):
        """One set in two hundred has an instance like another, but of its own worth."""
        sets = make(1000)
        pool = np.concatenate([sets.instances, sets.instances[:1] + 0.3])
        rare = np.arange(0, 1000, 200)
        index, y = sets.index.copy(), sets.y.copy()
        index[sets.offsets[:-1][rare]] = 4
        y[rare] += 3
        sets = replace(sets, instances=pool, index=index, y=y)
        worst = {}
        for above in (None, 20):
            model = network()
            fit(model, sets, recipe=replace(LONG, epochs=12, batch_size=50, rehearse=above))
            worst[above] = np.square(predict(model, sets) - y)[rare].mean()
        assert worst[20] < 0.5 * worst[None]
