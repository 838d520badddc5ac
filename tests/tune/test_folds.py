"""Trials: folds are split correctly and trained like the final run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns
from capnets.learn import Plan, learn
from capnets.learn.folds import FOLDS, make_folds
from capnets.runs import Run
from capnets.sets import Sets
from capnets.training.priors import UpperBound
from capnets.tune import Space, tune
from tune.searching import QUICK, SPACE, columns_of, frame_of, sets_of, trials_in


class TestTrialsAreLikeTheFinalRun:
    @pytest.mark.parametrize(
        ("columns", "settings"),
        [
            ({"order": "t"}, {"orders": 4}),
            ({}, {"orders": 3}),
            ({}, {"sort": "a"}),
            ({}, {"network": {"activation": "abs"}, "priors": [UpperBound(bound=1.0)]}),
            ({"group": "g"}, {"early_stopping": 0.3, "epochs": 9}),
        ],
    )
    def test_planned_alike(self, tmp_path, monkeypatch, columns, settings):
        seen = []

        def note(problem, plan, parts):
            seen.append(plan)
            return np.zeros((len(problem.train), 1))

        monkeypatch.setattr("capnets.tune.trials.cross_validate", note)
        estimator = SetRegressor(
            columns=columns_of(**columns), members=1, random_state=0, **settings
        )
        tune(tmp_path / "t", frame_of(), estimator, trials=1, space=SPACE)
        run = Run(tmp_path / "t" / "run")
        assert (run.history[0]["valid"] is None) == (not seen[0].valid_share)
        assert [replace(plan, valid_share=0.0) for plan in seen] == [Plan.of(run.config)]

    def test_many_sets_stop_early_in_folds_too(self, tmp_path, monkeypatch):
        monkeypatch.setattr("capnets.learn.plan.SOME_SETS", 30)
        seen = []

        def note(*given, **how):
            learned = learn(*given, **how)
            seen.append(learned.history[0]["valid"])
            return learned

        monkeypatch.setattr("capnets.learn.folds.learn", note)
        tune(tmp_path / "t", sets_of(40), SetRegressor(**QUICK), trials=1, space=SPACE)
        assert len(seen) == FOLDS
        assert None not in seen

    def test_the_last_instance_can_be_told_from_the_others(self, tmp_path):
        """Unlearnable unless instances are read by the order column while searching."""
        generator = np.random.default_rng(0)
        rows = [(s, t, generator.normal()) for s in range(90) for t in generator.permutation(3)]
        frame = pd.DataFrame(rows, columns=["s", "t", "a"])
        frame["y"] = frame["s"].map(frame[frame["t"] == 2].set_index("s")["a"])
        columns = Columns(set="s", target="y", features=("a",), order="t")
        space = Space(
            models=("gru",), hidden=(8,), layers=(1,), dropout=(0.0,), epochs=(30,),
            learning_rate=(0.02, 0.02), weight_decay=(1e-4, 1e-4),
        )  # fmt: skip
        estimator = SetRegressor(columns=columns, members=1, random_state=0)
        tune(tmp_path, frame, estimator, trials=1, space=space)
        assert trials_in(tmp_path)[0]["loss"] < 0.3 * frame["y"].var()


class TestFolds:
    def folds(self, sets, kind=SetRegressor, groups=None, seed=0):
        return make_folds(replace(kind().problem(sets), groups=groups), seed=seed)

    @staticmethod
    def sets(y):
        return Sets.from_arrays([np.ones((1, 1))] * len(y), y=y)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("grouped", [False, True])
    def test_every_set_is_tested_once_and_groups_stay_whole(self, seed, grouped):
        generator = np.random.default_rng(seed)
        y = generator.permutation(np.repeat([0, 1, 2], [30, 12, 8]))
        groups = generator.integers(0, 25, len(y)) if grouped else None
        for kind in (SetRegressor, SetClassifier):
            parts = self.folds(self.sets(y), kind, groups, seed)
            assert sorted(np.concatenate([test for _, test in parts])) == list(range(len(y)))
            sizes = [len(test) for _, test in parts]
            assert max(sizes) - min(sizes) <= (8 if grouped else 3)
            for train, test in parts:
                assert sorted([*train, *test]) == list(range(len(y)))
                if grouped:
                    assert not set(groups[train]) & set(groups[test])

    @pytest.mark.parametrize("seed", range(5))
    def test_classes_are_in_equal_shares(self, seed):
        y = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2], [30, 13, 3]))
        for _, test in self.folds(self.sets(y), SetClassifier, seed=seed):
            assert np.abs(np.bincount(y[test], minlength=3) - np.array([30, 13, 3]) / 3).max() < 1

    @pytest.mark.parametrize("seed", range(10))
    def test_rare_labels_are_in_every_part_to_train_on(self, seed):
        generator = np.random.default_rng(seed)
        y = np.zeros((40, 4), dtype=int)
        for label, count in enumerate((20, 38, 4, 2)):
            y[generator.choice(40, count, replace=False), label] = 1
        for train, _ in self.folds(self.sets(y), SetClassifier, seed=seed):
            assert ((y[train].min(axis=0) == 0) & (y[train].max(axis=0) == 1)).all()

    def test_a_label_that_only_one_set_has(self, tmp_path):
        """Some fold has nothing to learn it from; the search goes on, as training does."""
        sets = sets_of(20)
        y = np.zeros((20, 2))
        y[::2, 0], y[1, 1] = 1, 1
        estimator = SetClassifier(members=1, orders=1, random_state=0)
        run = tune(tmp_path, replace(sets, y=y), estimator, trials=1, space=SPACE)
        assert 0 <= trials_in(tmp_path)[0]["loss"] <= 1
        assert run.finished

    def test_fewer_sets_than_folds(self, tmp_path):
        with pytest.raises(InputError, match="fewer than the 3 folds"):
            tune(tmp_path / "t", sets_of(3), SetRegressor(random_state=0), trials=1)
        with pytest.raises(InputError, match="1 sets of the rarest class"):
            self.folds(self.sets([0] * 9 + [1]), SetClassifier)
        with pytest.raises(InputError, match="2 groups to train on"):
            self.folds(self.sets([0, 1] * 4), groups=np.array([0, 1] * 4))
        groups = np.array([0, 1, 2, 3, 4, 4, 4, 4])
        with pytest.raises(InputError, match="so few groups"):
            self.folds(self.sets([0] * 4 + [1] * 4), SetClassifier, groups)

    def test_weights_count(self, tmp_path, monkeypatch):
        seen = []

        def note(job, problem, settings):
            seen.append(problem.train)
            return 1.0

        monkeypatch.setattr("capnets.tune.trials.Job.loss", note)
        estimator = SetRegressor(columns=columns_of(weight="w"), **QUICK)
        tune(tmp_path / "t", frame_of(), estimator, trials=1, space=SPACE)
        expected = seen[0].ids % 3 + 1.0
        np.testing.assert_allclose(seen[0].weights, expected / expected.mean(), rtol=1e-6)
