"""From a task to a finished run, on scikit-learn's digits."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.evaluate import added_values, evaluate, predict
from capnets.learn.measure import measure_problem
from capnets.learn.tasks import task_of, task_problem
from capnets.runs import Run
from capnets.tasks import make, parse_task
from capnets.training.callbacks import EpochEnd
from capnets.training.priors import UpperBound
from capnets.training.recipe import recipe
from training_runs import train_task

SPEC = parse_task("US:digits", sizes="3,5", sets=300, valid_sets=80, test_sets=60, seed=2)
HOW = recipe("fast", epochs=2, batch_size=50)
ASKED = {"model": "c-gru", "hidden": 8, "layers": 1, "recipe": HOW}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return train_task(tmp_path_factory.mktemp("task") / "run", SPEC, **ASKED, seed=1)


class TestTrain:
    def test_metrics_are_those_of_the_saved_network(self, run):
        task = make(SPEC)
        for name, sets in (
            ("valid", task.valid), ("shared", task.test), ("held-out", task.test_sets("held-out")),
        ):  # fmt: skip
            expected = evaluate(run.model, sets, expected=task.expected(sets))
            assert run.metrics[name] == pytest.approx(expected)
        assert run.metrics["valid"]["mse"] == pytest.approx(
            min(line["valid"] for line in run.history), rel=1e-5
        )
        assert run.metrics["epochs"] == len(run.history) == 2
        assert len(run.metrics["orders"]["mse"]) == 5

    def test_made_sets_or_their_spec(self, run, tmp_path):
        again = train_task(tmp_path / "run", make(SPEC), **ASKED, seed=1)
        assert again.config == run.config
        assert (again.folder / "weights.safetensors").read_bytes() == (
            run.folder / "weights.safetensors"
        ).read_bytes()

    def test_other_seed(self, run, tmp_path):
        other = train_task(tmp_path / "run", SPEC, **ASKED, seed=2)
        assert other.metrics["shared"]["mse"] != run.metrics["shared"]["mse"]

    def test_finished_run_is_returned(self, run):
        seen = []
        again = train_task(
            run.folder, SPEC, **ASKED, seed=1, resume=True, callbacks=[EpochEnd(seen.append)]
        )
        assert not seen
        assert again.metrics == run.metrics

    @pytest.mark.parametrize("wrong", [{"model": "deepset", "sort": "worth"}, {"sort": 64}])
    def test_what_cannot_be_built_leaves_nothing_behind(self, tmp_path, wrong):
        with pytest.raises(InputError):
            train_task(tmp_path / "run", SPEC, **ASKED | wrong)
        assert not [*tmp_path.iterdir()]

    def test_progress(self, tmp_path):
        seen = []
        train_task(tmp_path / "run", SPEC, **ASKED, callbacks=[EpochEnd(seen.append)])
        assert [line["epoch"] for line in seen] == [1, 2]

    def test_features_that_must_be_made_first_are_told_of(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "cache"))
        seen = []
        spec = replace(SPEC, embedding="patches")
        train_task(
            tmp_path / "run", spec, loading=lambda *line: seen.append(line), **ASKED
        )  # fmt: skip
        assert ("embedding digits", 1797, 1797) in seen

    def test_one_set_to_measure_on(self, tmp_path):
        """Labels that do not vary have no variance to explain; that is no reason to fail."""
        few = replace(SPEC, valid_sets=1, test_sets=1)
        run = train_task(tmp_path / "run", few, **ASKED)
        assert run.finished
        assert "r2" not in run.metrics["valid"]

    def test_no_order_no_sensitivity(self, tmp_path):
        run = train_task(tmp_path / "run", SPEC, **ASKED | {"model": "deepset"})
        assert "orders" not in run.metrics


class TestPriors:
    def test_recorded_and_used(self, run, tmp_path):
        prior = UpperBound(weight=100.0, bound=1.0)
        other = train_task(tmp_path / "run", SPEC, **ASKED, seed=1, priors=(prior,))
        assert Run(other.folder).config.priors == (prior.to_dict(),)
        sets = make(SPEC).train
        assert added_values(other.model, sets).mean() < added_values(run.model, sets).mean()

    def test_resume_without_it_is_refused(self, tmp_path):
        prior = UpperBound(bound=1.0)
        train_task(tmp_path / "run", SPEC, **ASKED, priors=(prior,))
        with pytest.raises(InputError, match="begun with other settings"):
            train_task(tmp_path / "run", SPEC, **ASKED, resume=True)

    def test_own(self, tmp_path):
        @dataclass(frozen=True)
        class Even:
            """Instances add alike."""

            def penalty(self, model, batch, values):
                return 100 * values.var(dim=1).mean()

            def to_dict(self):
                return {"kind": "even"}

        run = train_task(tmp_path / "run", SPEC, **ASKED, priors=(Even(),))
        assert Run(run.folder).config.priors == ({"kind": "even"},)


class TestAgain:
    def test_same_test_sets(self, run):
        task = task_of(run)
        np.testing.assert_array_equal(task.test.index, make(SPEC).test.index)
        assert measure_problem(run.model, task_problem(task))["shared"] == run.metrics["shared"]

    def test_changed(self, run):
        task = task_of(run, test_sets=7, sizes="2", seed=5)
        assert len(task.test) == 7
        assert set(task.test.sizes) == {2}
        assert len(predict(run.model, task.test)) == 7

    def test_not_of_a_task(self, run, tmp_path):
        other = Run.create(tmp_path / "run", replace(run.config, data={"file": "x.csv"}))
        with pytest.raises(InputError, match="not trained on a set task; give the file"):
            task_of(other)
