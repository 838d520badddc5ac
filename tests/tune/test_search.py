"""Searches train the best trial and resume after interruptions."""

import json

import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.files import folders
from capnets.tune import tune
from capnets.tune.study import open_study
from processes import kill_at
from tune.searching import QUICK, SPACE, columns_of, content, frame_of, sets_of, trials_in


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
            patch.setattr("capnets.tune.search.train", fail)
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
        exchange = folders._exchange

        class KilledError(Exception):
            pass

        def killed(one, other):
            if step == 2:
                exchange(one, other)
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(folders, "_exchange", killed)
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


@pytest.mark.parametrize("room", range(4096, 120_000, 16_384))
def test_a_database_that_could_not_be_created_does_not_block_the_folder(tmp_path, room):
    """Files above a limit cannot be written, as on a full disk."""
    code = (
        "import resource, signal\nfrom capnets.errors import InputError\n"
        "from capnets.tune.study import open_study\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(arguments[1]), resource.RLIM_INFINITY))\n"
        "try:\n    open_study(arguments[0], 's', {})\nexcept InputError:\n    pass"
    )
    url = f"sqlite:///{tmp_path / 'study.db'}"
    assert kill_at(0, code, url, room) == 0
    assert open_study(url, "s", {}).user_attrs == {"about": {}}
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


def test_the_same_seed_tries_the_same_and_continues_so(tmp_path):
    def search(name, *counts, seed=0):
        estimator = SetRegressor(members=1, orders=1, random_state=seed)
        for trials in counts:
            tune(tmp_path / name, sets_of(), estimator, trials=trials, space=SPACE)
        return sorted(trials_in(tmp_path / name), key=lambda t: t["trial"])

    whole = search("a", 3)
    assert search("b", 3) == whole
    assert search("c", 1, 3) == whole
    assert search("d", 3, seed=1) != whole
