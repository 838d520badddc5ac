"""The runner: every run once, whatever is killed, with the same records in the end."""

import os
import signal
import subprocess
from dataclasses import replace

import pytest

from capnets.errors import InputError
from capnets.paper import work
from capnets.paper.plan import Plan, make_plan
from capnets.paper.results import Results
from capnets.paper.runner import reproduce
from capnets.paper.scales import find_scale
from capnets.paper.tables import Entry, Reading, Table
from capnets.paper.workers import Done, LocalWorkers, Progressed
from paper.processes import children, gone, settled, started, sweep, swept, until

CELL = find_scale("smoke").cell("c-gru", "US")


def plan_of(*cells):
    entries = tuple(
        Entry(row=str(n), column="", reading=Reading("mse"), choices=(cell,))
        for n, cell in enumerate(cells)
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
    assert swept(folder, jobs=1)
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
    assert "the same command goes on" in said
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
    assert len(outcome.records) == len(plan.choices) == 1  # five tables, one run
    assert [type(event) for event in events] == [Progressed, Progressed, Done]
    content = (tmp_path / "r" / "records.jsonl").read_bytes()
    again = reproduce(plan, tmp_path / "r", jobs=2, watch=lambda *_: pytest.fail("worked"))
    assert again.complete
    assert (tmp_path / "r" / "records.jsonl").read_bytes() == content


@pytest.mark.slow
def test_failures_are_results_and_errors_are_not(tmp_path):
    diverging = replace(CELL, model="rnn", recipe="paper", learning_rate=1e30)
    impossible = replace(CELL, task="unique-sum", source="nowhere")
    alike = replace(impossible, seed=1)
    outcome = reproduce(plan_of(diverging, impossible, alike, CELL), tmp_path / "r")
    assert outcome.records[diverging.key].failure == "diverged"
    assert "epoch 1" in outcome.records[diverging.key].reason
    assert outcome.records[CELL.key].failure is None
    assert set(outcome.wrong) == {impossible.key, alike.key}
    assert all("unknown source 'nowhere'" in reason for reason in outcome.wrong.values())
    assert not outcome.complete
    recorded = Results(tmp_path / "r").read()
    assert set(recorded) == {diverging.key, CELL.key}
    # A failure counts as done, until it is asked for again.
    done = reproduce(plan_of(diverging), tmp_path / "r", watch=lambda *_: pytest.fail("worked"))
    assert done.complete
    events = []
    reproduce(plan_of(diverging), tmp_path / "r", retry=True, watch=lambda e, _: events.append(e))
    assert [type(event) for event in events] == [Done]


@pytest.mark.slow
def test_a_run_that_always_kills_its_process_is_recorded(tmp_path):
    """And the others are done all the same: the kill comes from outside, as from a full memory."""
    deadly = replace(CELL, epochs=10_000)

    def kill(event, outcome):
        if isinstance(event, Progressed) and event.choice == deadly:
            for child in children(os.getpid()):
                os.kill(child, signal.SIGKILL)

    outcome = reproduce(plan_of(deadly, CELL), tmp_path / "r", watch=kill)
    assert outcome.records[deadly.key].failure == "killed"
    assert outcome.records[CELL.key].failure is None


def test_running_out_of_memory_is_a_result(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(work, "train_task", full)
    record = work.perform(CELL, runs=tmp_path)
    assert record.failure == "out of memory"


def test_what_another_recipe_made_is_stale(tmp_path):
    record = work.perform(CELL, runs=tmp_path)
    assert not work.is_stale(record)
    for change in ({"recipe": record.made["recipe"] | {"batch_size": 7}}, {"version": -1}):
        assert work.is_stale(replace(record, made={**record.made, **change}))
    # A setting that recipes did not have yet has its default.
    recipe = {k: v for k, v in record.made["recipe"].items() if k != "patience"}
    assert not work.is_stale(replace(record, made={**record.made, "recipe": recipe}))


def test_a_run_begun_with_another_recipe_begins_anew(tmp_path, monkeypatch):
    from capnets.training import recipe as recipes

    first = work.perform(CELL, runs=tmp_path)
    changed = replace(recipes.RECIPES["fast"], batch_size=50)
    monkeypatch.setitem(recipes.RECIPES, "fast", changed)
    assert work.is_stale(first)
    assert not work.current({first.key: first})
    second = work.perform(CELL, runs=tmp_path)
    assert second.made["recipe"]["batch_size"] == 50
    assert second.metrics != first.metrics
    assert second.cost["cpu_seconds"] > 0, "nothing was resumed, so all of its time is known"
    assert work.perform(CELL, runs=tmp_path).metrics == second.metrics  # read back, not trained


def test_records_have_what_the_tables_read(tmp_path):
    metrics = work.perform(CELL, runs=tmp_path).under("held-out")
    assert {"mse", "accuracy", "added_value_error", "order_mse", "valid_mse", "curve"} <= set(
        metrics
    )
    assert len(metrics["order_mse"]) == 5
    assert metrics["order_mse"] == sorted(metrics["order_mse"])
    assert len(metrics["curve"]) == metrics["epochs"] == 2
    example = work.perform(replace(CELL, sizes=(5,)), runs=tmp_path).under("shared")["example"]
    assert example[-1] == pytest.approx(sum(example[:-1]))
    assert len(example) == 6


def test_bad_requests_are_refused(tmp_path):
    with pytest.raises(InputError, match="at least 1 job"):
        reproduce(plan_of(CELL), tmp_path, jobs=0)


def test_idle_workers_end_when_told(tmp_path):
    workers = LocalWorkers(2, runs=tmp_path)
    pids = [worker.process.pid for worker in workers.workers]
    assert workers.room() == 2
    workers.stop()
    assert all(map(gone, pids))
