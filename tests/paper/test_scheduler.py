"""The scheduler runs every job once and gives the same records after kills."""

import os
import signal
import subprocess
from collections import deque
from dataclasses import replace

import pytest

from capnets.errors import InputError
from capnets.paper import execute, scheduler
from capnets.paper.estimate import Estimate
from capnets.paper.plan import Plan, make_plan
from capnets.paper.pool import EpochDone, JobDone, LocalWorkers, attempt
from capnets.paper.results import Record, Results
from capnets.paper.scales import find_scale
from capnets.paper.scheduler import Outcome, reproduce
from capnets.paper.tables import Entry, Reading, Table
from paper.processes import children, gone, settled, started, sweep, swept, until

JOB = find_scale("smoke").job("c-gru", "US")


class Here:
    """A worker that is no process of its own: quick, for what is not about processes."""

    count = 3

    def __init__(self, runs):
        self.runs, self.begun, self.waiting = runs, [], None

    def room(self):
        return self.waiting is None

    def submit(self, job):
        self.waiting = job
        self.begun.append(job)

    def events(self, timeout):
        if timeout:  # it has not begun at the first look
            job, self.waiting = self.waiting, None
            yield attempt(job, self.runs)

    def stop(self):
        pass


@pytest.fixture
def here(tmp_path, monkeypatch):
    worker = Here(tmp_path / "runs")
    monkeypatch.setattr(scheduler, "_workers", lambda *_: worker)
    return worker


def plan_of(*jobs):
    entries = tuple(
        Entry(row=str(n), column="", reading=Reading("mse"), jobs=(job,))
        for n, job in enumerate(jobs)
    )
    table = Table(name="t", number="Table 0", title="", shows="", build=lambda scale: entries)
    return Plan(find_scale("smoke"), ((table, entries),))


@pytest.mark.slow
def test_killed_workers_and_runners_change_nothing(undisturbed, tmp_path):
    folder = tmp_path / "r"

    def training():
        return list(folder.glob("runs/*/checkpoint.safetensors"))

    with sweep(folder) as runner:
        until(training, runner)
        os.kill(children(runner.pid)[0], signal.SIGKILL)  # a worker, in the middle of a training
        until(lambda: (folder / "records.jsonl").stat().st_size > 0, runner)
        until(training, runner)
        workers = children(runner.pid)
        runner.kill()  # the runner itself
        until(lambda: all(map(gone, workers)))
    lines = len((folder / "records.jsonl").read_text().splitlines())
    assert 0 < lines < undisturbed[1], "killed too late to prove anything"

    assert swept(folder)
    assert settled(folder) == undisturbed
    assert not list(folder.glob("runs/*/checkpoint*"))


@pytest.mark.slow
def test_stopping_everything_at_once_loses_nothing(undisturbed, tmp_path):
    folder = tmp_path / "r"
    with sweep(folder) as runner:
        until(lambda: list(folder.glob("runs/*/checkpoint.safetensors")), runner)
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"key": "half a li')  # as a machine would leave it that lost its power
    assert swept(folder, processes=1)
    assert settled(folder) == undisturbed


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_finished(tmp_path):
    folder = tmp_path / "r"
    command = ["-m", "capnets", "reproduce", "main", "--scale", "smoke", "--results", folder]
    with started(*command, stderr=subprocess.PIPE, text=True) as runner:
        until(lambda: (p := folder / "records.jsonl").exists() and p.stat().st_size > 0, runner)
        os.killpg(runner.pid, signal.SIGINT)
        said = runner.communicate(timeout=100)[1]
    assert runner.returncode == 130
    assert "the same command resumes" in said
    assert "Traceback" not in said
    assert Results(folder).read()


@pytest.mark.slow
def test_nothing_is_done_twice(tmp_path):
    plan = make_plan(
        ["main", "order-statistics", "parameters"], scale="smoke", models=["gru"], tasks=["US"]
    )
    events = []
    outcome = reproduce(plan, tmp_path / "r", watch=lambda event, _: events.append(event))
    assert outcome.complete
    assert len(outcome.records) == len(plan.jobs) == 1  # five tables, one run
    happened = [type(event) for event in events if event is not None]
    assert happened == [EpochDone, EpochDone, JobDone]
    content = (tmp_path / "r" / "records.jsonl").read_bytes()
    again = reproduce(plan, tmp_path / "r", processes=2, watch=lambda *_: pytest.fail("worked"))
    assert again.complete
    assert (tmp_path / "r" / "records.jsonl").read_bytes() == content


@pytest.mark.slow
def test_failures_are_results_and_errors_are_not(tmp_path):
    diverging = replace(JOB, model="rnn", recipe="paper", learning_rate=1e30)
    impossible = replace(JOB, task="unique-sum", source="nowhere")
    alike = replace(impossible, seed=1)
    outcome = reproduce(plan_of(diverging, impossible, alike, JOB), tmp_path / "r")
    assert outcome.records[diverging.key].failure == "diverged"
    assert "epoch 1" in outcome.records[diverging.key].reason
    assert outcome.records[JOB.key].failure is None
    assert set(outcome.errors) == {impossible.key, alike.key}
    assert all("unknown source 'nowhere'" in reason for reason in outcome.errors.values())
    assert not outcome.complete
    recorded = Results(tmp_path / "r").read()
    assert set(recorded) == {diverging.key, JOB.key}
    # A failure counts as done, until it is asked for again.
    done = reproduce(plan_of(diverging), tmp_path / "r", watch=lambda *_: pytest.fail("worked"))
    assert done.complete
    events = []
    reproduce(plan_of(diverging), tmp_path / "r", retry=True, watch=lambda e, _: events.append(e))
    assert [type(event) for event in events if event is not None] == [JobDone]


def test_what_is_wrong_with_one_run_leaves_the_others_alone(here, tmp_path):
    wrong = replace(JOB, activation="sideways")
    outcome = reproduce(plan_of(wrong, JOB), tmp_path / "r")
    assert set(outcome.errors) == {wrong.key}
    assert set(outcome.records) == {JOB.key}


def test_missing_data_is_looked_for_once(here, tmp_path, monkeypatch):
    """Jobs that do not need the missing data still run."""
    import pooch

    def unreachable(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr("capnets.tasks.files.SYSTEM_FOLDER", tmp_path / "none")
    monkeypatch.delenv("CAPNETS_DATA", raising=False)
    monkeypatch.setenv("CAPNETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", unreachable)
    jobs = [replace(JOB, source="mnist", seed=seed) for seed in range(3)]
    labels = replace(find_scale("smoke"), source="mnist").labels("US", (10,))
    outcome = reproduce(plan_of(*jobs, labels), tmp_path / "r")
    assert here.begun == [jobs[0], labels]
    assert set(outcome.errors) == {job.key for job in jobs}
    assert all("was not found" in reason for reason in outcome.errors.values())
    assert set(outcome.records) == {labels.key}


def test_whoever_watches_sees_it_begin(here, tmp_path):
    seen = []

    def watch(event, outcome):
        seen.append((event, list(outcome.running), outcome.workers))

    reproduce(plan_of(JOB), tmp_path / "r", watch=watch)
    assert seen[0] == (None, [JOB.key], Here.count)
    assert isinstance(seen[1][0], JobDone)


@pytest.mark.slow
def test_a_run_that_always_kills_its_process_is_recorded(tmp_path):
    """And the others are done all the same: the kill comes from outside, as from a full memory."""
    deadly = replace(JOB, epochs=10_000)

    def kill(event, outcome):
        if isinstance(event, EpochDone) and event.job == deadly:
            for child in children(os.getpid()):
                os.kill(child, signal.SIGKILL)

    outcome = reproduce(plan_of(deadly, JOB), tmp_path / "r", watch=kill)
    assert outcome.records[deadly.key].failure == "killed"
    assert outcome.records[JOB.key].failure is None


def test_running_out_of_memory_is_a_result(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(execute, "train", full)
    record = execute.run_job(JOB, runs=tmp_path)
    assert record.failure == "out of memory"


def test_what_another_recipe_made_is_stale(tmp_path):
    record = execute.run_job(JOB, runs=tmp_path)
    assert not execute.is_stale(record)
    for change in ({"recipe": record.made["recipe"] | {"batch_size": 7}}, {"version": -1}):
        assert execute.is_stale(replace(record, made={**record.made, **change}))
    # A setting that recipes did not have yet has its default.
    recipe = {k: v for k, v in record.made["recipe"].items() if k != "patience"}
    assert not execute.is_stale(replace(record, made={**record.made, "recipe": recipe}))
    # A run of all epochs is kept whatever the patience, one that stopped early is not.
    patient = replace(record, made={**record.made, "recipe": recipe | {"patience": 1}})
    assert not execute.is_stale(patient)
    early = {**record.metrics, "epochs": record.metrics["epochs"] - 1}
    assert execute.is_stale(replace(patient, metrics=early))


def test_blocks_of_test_sets_begin_with_the_tested_ones(tmp_path):
    """The larger draw continues the test sets, so its first blocks have their mean error."""
    metrics = execute.run_job(JOB, runs=tmp_path).metrics
    for protocol in ("shared", "held-out"):
        blocks = metrics[protocol]["block_mse"]
        assert len(blocks) == execute.BLOCKS
        first = blocks[: execute.BLOCKS // execute.LARGER]
        assert sum(first) / len(first) == pytest.approx(metrics[protocol]["mse"], rel=1e-4)


def test_a_run_begun_with_another_recipe_begins_anew(tmp_path, monkeypatch):
    from capnets.training import recipe as recipes

    first = execute.run_job(JOB, runs=tmp_path)
    changed = replace(recipes.RECIPES[JOB.recipe], batch_size=50)
    monkeypatch.setitem(recipes.RECIPES, JOB.recipe, changed)
    assert execute.is_stale(first)
    assert not execute.current({first.key: first})
    second = execute.run_job(JOB, runs=tmp_path)
    assert second.made["recipe"]["batch_size"] == 50
    assert second.metrics != first.metrics
    assert second.cost["cpu_seconds"] > 0, "nothing was resumed, so all of its time is known"
    assert execute.run_job(JOB, runs=tmp_path).metrics == second.metrics  # read back, not trained


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.json", b'{"valid": {"mse"'),
        ("metrics.json", b"{}"),
        ("history.jsonl", b""),
        ("weights.safetensors", b"\0" * 100),
        ("config.json", None),
        ("config.json", b"\xff"),
    ],
)
def test_a_damaged_run_begins_anew(tmp_path, name, content):
    first = execute.run_job(JOB, runs=tmp_path)
    (path,) = tmp_path.glob(f"*/{name}")
    path.unlink() if content is None else path.write_bytes(content)
    again = execute.run_job(JOB, runs=tmp_path)
    assert again.metrics == first.metrics
    assert not again.cost["resumed"]
    assert execute.run_job(JOB, runs=tmp_path).cost["resumed"], "whole again"


def test_a_damaged_checkpoint_begins_anew(tmp_path):
    def kill(epoch):
        raise KeyboardInterrupt

    whole = execute.run_job(JOB, runs=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        execute.run_job(JOB, runs=tmp_path, progress=kill)
    (path,) = tmp_path.glob("*/checkpoint.safetensors")
    path.write_bytes(path.read_bytes()[:-20])
    assert execute.run_job(JOB, runs=tmp_path).metrics == whole.metrics


def test_records_have_what_the_tables_read(tmp_path):
    metrics = execute.run_job(JOB, runs=tmp_path).under("held-out")
    assert {"mse", "accuracy", "added_value_error", "order_mse", "valid_mse", "curve"} <= set(
        metrics
    )
    assert len(metrics["order_mse"]) == 5
    assert metrics["order_mse"] == sorted(metrics["order_mse"])
    assert len(metrics["curve"]) == metrics["epochs"] == 2
    example = execute.run_job(replace(JOB, sizes=(5,)), runs=tmp_path).under("shared")["example"]
    assert example[-1] == pytest.approx(sum(example[:-1]))
    assert len(example) == 6


def test_bad_requests_are_refused(tmp_path):
    with pytest.raises(InputError, match="processes must be at least 1"):
        reproduce(plan_of(JOB), tmp_path, processes=0)
    with pytest.raises(InputError, match="exclude each other"):
        reproduce(plan_of(JOB), tmp_path, processes=2, cluster="tcp://127.0.0.1:8786")
    assert not list(tmp_path.iterdir())


def test_idle_workers_end_when_told(tmp_path):
    workers = LocalWorkers(2, runs=tmp_path)
    pids = [worker.process.pid for worker in workers.workers]
    assert workers.room() == workers.count == 2
    workers.stop()
    assert all(map(gone, pids))


class TestTimeLeft:
    """Estimates of the remaining time."""

    RIDGE = find_scale("small").job("ridge", "Sent")
    JOB = find_scale("small").job("gru", "Sent")

    def record(self, job, epochs, seconds):
        return Record(
            job=job,
            metrics={"epochs": epochs},
            failure=None,
            reason="",
            made={},
            cost={"train_seconds": seconds},
        )

    def test_a_baseline_says_nothing_about_networks(self):
        estimate = Estimate([self.record(self.RIDGE, 0, 1.0)])
        outcome = Outcome({}, deque([self.JOB]))
        assert estimate.left(outcome) is None
        estimate.see(self.record(self.JOB, 10, 20.0))
        assert estimate.left(outcome) == Estimate([self.record(self.JOB, 10, 20.0)]).left(outcome)
        assert estimate.left(Outcome({}, deque([self.RIDGE]))) == 0

    def test_is_shared_by_the_workers(self):
        estimate = Estimate([self.record(self.JOB, 10, 20.0)])
        waiting = deque(replace(self.JOB, seed=seed) for seed in range(8))
        alone = estimate.left(Outcome({}, waiting))
        assert alone > 0
        assert estimate.left(Outcome({}, waiting, workers=4)) == pytest.approx(alone / 4)
        assert estimate.left(Outcome({}, waiting, workers=0)) == alone
