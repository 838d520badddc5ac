"""Invalid searches and failing trials."""

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.tune import Space, tune
from capnets.tune.trials import FAILURES
from tune.searching import QUICK, SPACE, frame_of, sets_of, trials_in


class TestFaults:
    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            ({"models": ("c-grue",)}, "unknown model 'c-grue': did you mean 'c-gru'"),
            ({"models": ()}, "models is empty"),
            ({"hidden": (8, 0)}, "hidden must be a whole number of at least 1"),
            ({"dropout": (1.0,)}, "dropout must be"),
            ({"epochs": (0,)}, "epochs must be a number above 0"),
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
