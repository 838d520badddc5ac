import json
import os
from dataclasses import replace

import numpy as np
import optuna
import pandas as pd
import pytest
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.sets import Sets
from capnets.tables import Columns
from capnets.training.priors import UpperBound
from capnets.tune import Space, tune
from capnets.tune.folds import FOLDS, make_folds
from capnets.tune.trials import FAILURES

SPACE = Space(models=("deepset", "c-rnn"), hidden=(4,), layers=(1,), epochs=(2, 4))
QUICK = {"members": 1, "orders": 1, "random_state": 0}


def sets_of(count=40, seed=0):
    generator = np.random.default_rng(seed)
    X = [generator.normal(size=(generator.integers(1, 4), 3)) for _ in range(count)]
    return Sets.from_arrays(X, y=[x[:, 0].sum() for x in X])


def frame_of(count=24):
    sets = sets_of(count)
    return pd.concat(
        pd.DataFrame(sets[k], columns=["a", "b", "c"]).assign(
            s=k, y=sets.y[k], label="up" if sets.y[k] > 0 else "down",
            g=k // 4, w=1.0 + k % 3, t=range(len(sets[k])),
        )
        for k in range(count)
    )  # fmt: skip


def columns_of(target="y", **others):
    return Columns(set="s", target=target, features=("a", "b", "c"), **others)


def trials_in(folder):
    return [json.loads(x) for x in (folder / "trials.jsonl").read_text().splitlines()]


def content(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def losses(monkeypatch):
    """Trials that train nothing: their losses are taken from this list, one after another."""
    left = []
    monkeypatch.setattr("capnets.tune.trials.cross_validate", lambda *given: left.pop(0))
    return left


class TestSearch:
    def test_trains_the_best(self, tmp_path):
        counted = []
        run = tune(
            tmp_path / "t", sets_of(), SetRegressor(**QUICK), trials=3, space=SPACE,
            progress=lambda done, total: counted.append((done, total)),
        )  # fmt: skip
        rows = trials_in(tmp_path / "t")
        assert len(rows) == 3
        assert [r["loss"] for r in rows] == sorted(r["loss"] for r in rows)
        assert counted[-1] == (3, 3)
        assert run.config.model.name == rows[0]["model"]
        assert run.config.recipe.epochs == rows[0]["epochs"]
        assert "test" in run.metrics
        page = (tmp_path / "t" / "trials.html").read_text()
        assert page.count("<tr>") == 4

    def test_goes_on_after_it_was_stopped(self, tmp_path, losses):
        class StoppedError(Exception):
            pass

        def stop(done, total):
            if done == 2:
                raise StoppedError

        losses += [1.0, 2.0, 3.0]
        settings = {"trials": 3, "space": SPACE}
        with pytest.raises(StoppedError):
            tune(tmp_path / "t", sets_of(), SetRegressor(**QUICK), progress=stop, **settings)
        seen = []
        tune(
            tmp_path / "t", sets_of(), SetRegressor(**QUICK),
            progress=lambda done, total: seen.append(done), **settings,
        )  # fmt: skip
        assert seen == [2, 3]

    @pytest.mark.slow
    def test_two_workers_and_how_far_they_are(self, tmp_path):
        columns = columns_of("label")
        estimator = SetClassifier(columns=columns, members=1, random_state=0)
        frame, seen = frame_of(60), []
        run = tune(
            tmp_path / "t", frame, estimator, trials=4, space=SPACE, workers=2,
            progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip
        assert len(trials_in(tmp_path / "t")) >= 4
        assert seen == sorted(seen)
        assert seen[-1][0] >= seen[-1][1] == 4
        again = load_estimator(run.folder)
        assert set(again.predict(frame.drop(columns="label"))) <= {"up", "down"}


class TestMoreTrials:
    """The same command with more trials."""

    def search(self, folder, trials):
        return tune(folder, sets_of(), SetRegressor(**QUICK), trials=trials, space=SPACE)

    def test_a_better_trial_replaces_the_run(self, tmp_path, losses):
        losses += [2.0, 1.0]
        self.search(tmp_path, 1)
        run = self.search(tmp_path, 2)
        assert run.folder == tmp_path / "run"
        told = json.loads((run.folder / "trial.json").read_text())
        assert (told["trial"], told["loss"]) == (1, 1.0)
        assert run.config.recipe.learning_rate == told["learning_rate"]
        assert "test" in run.metrics
        left = {p.name for p in tmp_path.iterdir()}
        assert left == {"run", "study.db", "study.json", "trials.html", "trials.jsonl"}

    @pytest.mark.parametrize("trials", [1, 2])
    def test_otherwise_it_stays(self, tmp_path, losses, trials):
        losses += [1.0, 2.0]
        before = content(self.search(tmp_path, 1).folder)
        assert content(self.search(tmp_path, trials).folder) == before
        assert len(trials_in(tmp_path)) == trials

    def test_a_run_that_was_removed_is_trained_again(self, tmp_path, losses):
        losses += [1.0]
        run = self.search(tmp_path, 1)
        weights = (run.folder / "weights.safetensors").read_bytes()
        run.folder.rename(tmp_path / "elsewhere")
        again = self.search(tmp_path, 1)
        assert (again.folder / "weights.safetensors").read_bytes() == weights

    def test_the_run_stays_if_the_better_one_fails(self, tmp_path, losses, monkeypatch):
        losses += [2.0, 1.0]
        before = content(self.search(tmp_path, 1).folder)

        def fail(*given, **how):
            raise InputError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("capnets.tune.search.train_run", fail)
            with pytest.raises(InputError, match="disk is full"):
                self.search(tmp_path, 2)
        assert content(tmp_path / "run") == before
        assert (
            json.loads((self.search(tmp_path, 2).folder / "trial.json").read_text())["trial"] == 1
        )

    @pytest.mark.parametrize("step", [1, 2])
    def test_there_is_a_run_again_after_a_kill_while_it_was_replaced(
        self, tmp_path, losses, monkeypatch, step
    ):
        losses += [2.0, 1.0]
        self.search(tmp_path, 1)
        steps = []

        class KilledError(Exception):
            pass

        def rename(path, target):
            steps.append(target)
            if len(steps) == step:
                raise KilledError
            os.rename(path, target)

        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.rename", rename)
            with pytest.raises(KilledError):
                self.search(tmp_path, 2)
        run = self.search(tmp_path, 2)
        assert json.loads((run.folder / "trial.json").read_text())["trial"] == 1
        assert not list(tmp_path.glob(".*"))

    def test_a_run_that_no_search_made_is_not_touched(self, tmp_path, losses):
        SetRegressor(epochs=1, **QUICK).fit(sets_of()).save(tmp_path / "run")
        before = content(tmp_path)
        with pytest.raises(InputError, match="not of this search; choose another folder"):
            self.search(tmp_path, 1)
        assert content(tmp_path) == before


class TestWhatAStudyIsAbout:
    def search(self, folder, target="y", *, space=SPACE, frame=None, seed=0, **how):
        kind = SetClassifier if target == "label" else SetRegressor
        settings = {**QUICK, "random_state": seed}
        estimator = kind(columns=columns_of(target, group=how.pop("group", None)), **settings)
        frame = frame_of(40) if frame is None else frame
        return tune(folder, frame, estimator, trials=1, space=space, **how)

    @pytest.mark.parametrize(
        ("change", "difference"),
        [
            ({"target": "label"}, 'loss was "squared", is "logistic"; target was'),
            ({"target": "w"}, r'target was \["y"\], is \["w"\]; other data'),
            ({"frame": frame_of(41)}, "other data"),
            ({"group": "g"}, "other folds"),
            ({"seed": 1}, "seed was 0, is 1"),
            (
                {"space": Space(models=("deepset",), hidden=(4,), layers=(1,), epochs=(2, 4))},
                r'models was \["c-rnn", "deepset"\], is \["deepset"\]',
            ),
        ],
    )
    def test_a_folder_keeps_to_one_search(self, tmp_path, losses, change, difference):
        losses += [1.0]
        self.search(tmp_path)
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        before = content(tmp_path)
        with pytest.raises(InputError, match=difference) as error:
            self.search(tmp_path, **change)
        assert "choose another folder" in str(error.value)
        assert content(tmp_path) == before

    def test_searches_share_a_storage_and_no_trials(self, tmp_path, losses):
        losses += [1.0, 2.0]
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        self.search(tmp_path / "a", storage=storage)
        self.search(tmp_path / "b", "label", storage=storage)
        assert [t["loss"] for t in trials_in(tmp_path / "a")] == [1.0]
        assert [t["loss"] for t in trials_in(tmp_path / "b")] == [2.0]

    def test_the_same_search_from_elsewhere_joins(self, tmp_path, losses):
        losses += [1.0]
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        self.search(tmp_path / "a", storage=storage)
        # The same choices, told in another order.
        space = Space(models=SPACE.models[::-1], hidden=(4,), layers=(1,), epochs=(4, 2))
        self.search(tmp_path / "b", storage=storage, space=space)
        assert trials_in(tmp_path / "a") == trials_in(tmp_path / "b")

    def test_a_named_study_keeps_to_one_search(self, tmp_path, losses):
        losses += [1.0]
        where = {"storage": f"sqlite:///{tmp_path / 'all.db'}", "study": "mine"}
        self.search(tmp_path / "a", **where)
        assert optuna.get_all_study_names(where["storage"]) == ["mine"]
        with pytest.raises(InputError, match=r"the study 'mine' holds another search.*other data"):
            self.search(tmp_path / "b", "label", **where)
        assert not (tmp_path / "b").exists()
        with pytest.raises(InputError, match="is of the study 'mine', not 'yours'"):
            self.search(tmp_path / "a", storage=where["storage"], study="yours")

    def test_a_study_of_somebody_else(self, tmp_path):
        storage = f"sqlite:///{tmp_path / 'all.db'}"
        foreign = optuna.create_study(storage=storage, study_name="theirs")
        foreign.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        with pytest.raises(InputError, match="'theirs' in the storage is not a search of capnets"):
            self.search(tmp_path / "t", storage=storage, study="theirs")


class TestTrialsAreLikeTheFinalRun:
    @pytest.mark.parametrize(
        ("columns", "settings"),
        [
            ({"order": "t"}, {"orders": 4}),
            ({}, {"orders": 3}),
            ({}, {"sort": "a"}),
            ({}, {"activation": "abs", "priors": [UpperBound(bound=1.0)]}),
            ({"group": "g"}, {"early_stopping": True, "validation_fraction": 0.3, "epochs": 9}),
        ],
    )
    def test_planned_alike(self, tmp_path, monkeypatch, columns, settings):
        seen = []

        def note(estimator, sets):
            planned = estimator.spec_, estimator.recipe_, estimator.n_orders_, estimator.loss_
            seen.append((*planned, estimator.priors, estimator.history_[0]["valid"] is None))
            return {"mse": 1.0}

        monkeypatch.setattr("capnets.tune.trials.quality", note)
        estimator = SetRegressor(
            columns=columns_of(**columns), members=1, random_state=0, **settings
        )
        tune(tmp_path / "t", frame_of(), estimator, trials=1, space=SPACE)
        monkeypatch.undo()
        final = load_estimator(tmp_path / "t" / "run")
        planned = final.spec_, final.recipe_, final.n_orders_, final.loss_, final.priors
        assert seen == [(*planned, final.history_[0]["valid"] is None)] * FOLDS

    def test_many_sets_stop_early_in_folds_too(self, tmp_path, monkeypatch):
        monkeypatch.setattr("capnets.tune.trials.SOME_SETS", 30)
        monkeypatch.setattr("capnets.estimators.base.SOME_SETS", 30)
        seen = []

        def note(estimator, sets):
            seen.append(estimator.history_[0]["valid"])
            return {"mse": 1.0}

        monkeypatch.setattr("capnets.tune.trials.quality", note)
        tune(tmp_path / "t", sets_of(40), SetRegressor(**QUICK), trials=1, space=SPACE)
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
        estimator = kind(random_state=0)
        labelled = estimator._plan(estimator._given(sets, None), None)
        return make_folds(estimator, labelled, groups=groups, seed=seed)

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

        def note(estimator, given, settings, parts):
            seen.append(given.sets)
            return 1.0

        monkeypatch.setattr("capnets.tune.trials.cross_validate", note)
        estimator = SetRegressor(columns=columns_of(weight="w"), **QUICK)
        tune(tmp_path / "t", frame_of(), estimator, trials=1, space=SPACE)
        np.testing.assert_allclose(seen[0].weights, seen[0].ids % 3 + 1.0)


class TestFaults:
    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            ({"models": ("c-grue",)}, "unknown model 'c-grue': did you mean 'c-gru'"),
            ({"models": ()}, "models is empty"),
            ({"hidden": (8, 0)}, "hidden must be a whole number of at least 1"),
            ({"dropout": (1.0,)}, "dropout must be"),
            ({"epochs": (0,)}, "epochs must be above 0"),
            ({"learning_rate": (1e-2, 1e-3)}, "learning_rate is searched from a lowest"),
            ({"weight_decay": (0.0, 0.1)}, "weight_decay is searched from a lowest"),
        ],
    )
    def test_choices_that_nothing_can_be_made_of(self, choices, message):
        with pytest.raises(InputError, match=message):
            Space(**choices)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["-m", "nosuch"], "unknown model 'nosuch'"),
            (["--trials", "0"], "at least 1 trial"),
            (["--storage", "bogus://x"], "the storage bogus://x cannot be used"),
            (["--storage", "nonsense"], "cannot be used"),
            (["--storage", "mysql://me:secret@host:port/x"], "cannot be used"),
            (["--storage", "nosuch+driver://me:secret@host/x"], "cannot be used"),
            (["--storage", "sqlite:////nowhere/at/all.db"], "unable to open database file"),
        ],
    )
    def test_said_before_anything_is_written(self, tmp_path, options, message):
        file, out = tmp_path / "t.parquet", tmp_path / "out"
        frame_of().to_parquet(file)
        told = ["--set-column", "s", "--target", "y", "--features", "a", "-o", str(out)]
        result = CliRunner().invoke(app, ["tune", str(file), *told, *options])
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
        assert "\n" not in str(result.exception)
        assert "secret" not in str(result.exception)
        assert not out.exists()

    def test_a_storage_that_stops_answering(self, tmp_path, monkeypatch):
        def gone(*given):
            raise optuna.exceptions.StorageInternalError("the connection was closed")

        monkeypatch.setattr("capnets.tune.trials.complete", gone)
        with pytest.raises(InputError, match="cannot be used: the connection was closed"):
            tune(tmp_path, sets_of(), SetRegressor(**QUICK), trials=1, space=SPACE)

    @pytest.mark.parametrize("loss", [np.nan, np.inf])
    def test_ends_if_no_loss_is_a_number(self, tmp_path, losses, loss):
        losses += [loss] * (FAILURES + 1)
        with pytest.raises(InputError, match=rf"the loss is {loss} \({FAILURES} times\)"):
            tune(tmp_path, sets_of(), SetRegressor(**QUICK), trials=3, space=SPACE)
        assert len(losses) == 1

    def test_ends_with_the_reasons_if_all_trials_fail(self, tmp_path):
        rate = (1e30, 1e30)
        space = Space(("deepset",), (4,), (1,), (0.0,), (2,), learning_rate=rate)
        with pytest.raises(InputError, match=r"0 of 3 are complete: .*diverged") as error:
            tune(tmp_path, sets_of(), SetRegressor(**QUICK), trials=3, space=space)
        assert "\n" not in str(error.value)
        assert not (tmp_path / "run").exists()

    def test_goes_on_after_single_failures(self, tmp_path, losses):
        losses += [np.nan, 2.0, *[np.nan] * (FAILURES - 1), 1.0]
        tune(tmp_path, sets_of(), SetRegressor(**QUICK), trials=2, space=SPACE)
        assert [t["loss"] for t in trials_in(tmp_path)] == [1.0, 2.0]
