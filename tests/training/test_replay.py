"""Sets with outlier losses are repeated, and only those."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.evaluate import predict
from capnets.training.fit import fit
from capnets.training.replay import REPEATS, Replay
from capnets.training.setup import Setup
from small_networks import LONG, bits, network, trained


@pytest.fixture
def read(monkeypatch):
    """Count how often every set is read, epoch by epoch."""
    epochs = []
    plain = Setup.batches

    def watched(self, *about):
        steps, batches = plain(self, *about)
        counted = Counter()
        epochs.append(counted)

        def counting():
            for batch in batches:
                counted.update(batch.set_index.tolist())
                yield batch

        return steps, counting()

    monkeypatch.setattr(Setup, "batches", watched)
    return epochs


class TestHardest:
    @staticmethod
    def noted(**far):
        """Record a loss of 1 for a thousand sets, apart from those given."""
        replay = Replay(1000, threshold=30)
        errors = torch.ones(1000)
        for name, error in far.items():
            errors[int(name[1:])] = error
        for part in np.array_split(np.random.default_rng(0).permutation(1000), 7):
            replay.record(part, errors[part])
        return replay

    def test_which(self):
        # The mean is 1.2: 35 is not more than thirty times as much.
        again = self.noted(_3=60, _7=35, _950=100).next_epoch()
        assert Counter(again.tolist()) == {3: REPEATS, 950: REPEATS}

    def test_the_last_reading_counts(self):
        replay = self.noted(_3=60, _950=100)
        replay.record(np.array([3, 5]), torch.tensor([0.0, 80.0]))
        assert set(replay.next_epoch()) == {5, 950}

    def test_no_more_than_some(self):
        far = {f"_{k}": 1e6 - k for k in range(30)}
        assert set(self.noted(**far).next_epoch()) == set(range(10))

    def test_nothing_is_far_where_all_is_equally_wrong(self):
        assert not len(self.noted().next_epoch())

    def test_an_epoch_is_forgotten_with_the_next(self):
        replay = self.noted(_3=60)
        assert len(replay.next_epoch())
        assert not len(replay.next_epoch())

    def test_none(self):
        replay = Replay(4, threshold=None)
        replay.record(np.array([1]), torch.tensor([3.0]))
        assert not len(replay.next_epoch())


class TestFit:
    HOW = replace(LONG, epochs=6, replay=20)

    @pytest.fixture
    def wrong(self, make):
        """Return sets of which three have labels that nothing explains."""

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
            (7, 50, 120), 1 + REPEATS
        )

    def test_only_if_asked(self, wrong, read):
        fit(network(), wrong(), recipe=replace(self.HOW, replay=None))
        assert all(set(counted.values()) == {1} for counted in read)

    def test_sets_without_weight_are_not_replayed(self, wrong, read):
        weights = np.ones(300, np.float32)
        weights[7] = 0
        fit(network(), wrong(weights=weights), recipe=self.HOW)
        assert {k for k, n in read[-1].items() if n > 1} == {50, 120}

    def test_the_rate_falls_as_it_would(self, wrong):
        rates = [
            [line["rate"] for line in fit(network(), wrong(), recipe=recipe)]
            for recipe in (self.HOW, replace(self.HOW, replay=None))
        ]
        assert rates[0] == pytest.approx(rates[1], rel=0.3)
        assert rates[0][-1] < 1e-2 * self.HOW.learning_rate

    def test_same_seed_same_bits(self, make):
        assert bits(trained(make, recipe=self.HOW)) == bits(trained(make, recipe=self.HOW))

    def test_rare_instances_are_learned(self, make):
        """One set in two hundred has an instance that resembles another but adds more."""
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
            fit(model, sets, recipe=replace(LONG, epochs=12, batch_size=50, replay=above))
            worst[above] = np.square(predict(model, sets) - y)[rare].mean()
        assert worst[20] < 0.5 * worst[None]
