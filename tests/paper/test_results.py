"""Results folders: appended records are read back after any interruption."""

import json
import os
import shutil

import pytest

from capnets.errors import InputError
from capnets.paper.jobs import ShapeJob, TrainingJob
from capnets.paper.results import Record, Results
from processes import kill_at

MADE = {"version": 1, "versions": {}, "machine": {}}


def record(model="c-gru", mse=0.25, **changes):
    job = TrainingJob(model=model, task="unique-sum", source="digits", embedding="none")
    metrics = {"epochs": 2, "shared": {"mse": mse}, "held-out": {"mse": 2 * mse}}
    values = {"job": job, "metrics": metrics, "failure": None, "reason": ""}
    return Record(**values | {"made": MADE, "cost": {"train_seconds": 1.0}} | changes)


def appended(folder, *records):
    results = Results(folder, create=True)
    with results.hold() as writer:
        for one in records:
            writer.append(one)
    return results


def test_records_come_back_as_they_were(tmp_path):
    records = [record(), record("gru", 0.5), record(job=ShapeJob(model="c-gru"))]
    found = appended(tmp_path, *records).read()
    assert list(found.values()) == records
    assert found[records[0].key].under("held-out") == {"epochs": 2, "mse": 0.5}
    assert found[records[0].key].under("shared") == {"epochs": 2, "mse": 0.25}


def test_what_was_made_again_counts(tmp_path):
    found = appended(tmp_path, record(mse=1.0), record("gru"), record(mse=2.0)).read()
    assert len(found) == 2
    assert found[record().key].under("shared")["mse"] == 2.0


@pytest.mark.parametrize("kept", [1, 40, -2])
def test_a_half_written_line_is_recognised_and_cut_off(tmp_path, kept):
    results = appended(tmp_path, record(), record("gru"))
    whole = results.path.read_bytes()
    first = whole.index(b"\n") + 1
    results.path.write_bytes(whole[: first + kept] if kept > 0 else whole[:kept])
    assert list(results.read()) == [record().key]
    with results.hold() as writer:
        writer.append(record("gru"))
    assert results.path.read_bytes() == whole


def test_a_file_that_was_replaced_meanwhile_is_appended_to(tmp_path):
    results = Results(tmp_path, create=True)
    with results.hold() as writer:
        writer.append(record())
        other = tmp_path / "other"
        other.write_bytes(results.path.read_bytes())
        os.replace(other, results.path)
        writer.append(record("gru"))
    assert list(results.read()) == [record().key, record("gru").key]


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    results = appended(tmp_path, record(), record("gru"), record("rnn"))
    lines = results.path.read_text().splitlines()
    results.path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    with pytest.raises(InputError, match=r"line 2 of .*records.jsonl is damaged.*remove the line"):
        results.read()


def test_a_changed_digit_is_noticed(tmp_path):
    results = appended(tmp_path, record(mse=0.25))
    whole = results.path.read_text()
    results.path.write_text(whole.replace("0.25", "0.26"))
    with pytest.raises(InputError, match=r"line 1 .*does not match its digest"):
        results.read()
    line = json.loads(whole)
    del line["digest"]  # as earlier versions wrote it
    results.path.write_text(json.dumps(line) + "\n")
    assert list(results.read().values()) == [record(mse=0.25)]


def test_a_line_of_another_version_is_named(tmp_path):
    results = appended(tmp_path, record())
    line = json.loads(results.path.read_text())
    line["choice"]["colour"] = "blue"
    results.path.write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match=r"line 1 .*another version.*colour"):
        results.read()
    line["choice"].pop("colour")
    line["choice"]["seed"] = 5  # somebody changed it by hand: the key no longer fits
    results.path.write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="its job has"):
        results.read()


def test_a_kill_before_the_first_record_does_not_block_the_folder(tmp_path):
    folder = tmp_path / "r"
    code = "from capnets.paper.results import Results\nResults(arguments[0], create=True)"
    for moment in range(1, 20):
        if kill_at(moment, code, folder) == 0:
            break
        Results(folder, create=True)
        assert [path.name for path in folder.iterdir()] == ["results.json"]
        shutil.rmtree(folder)
    assert moment > 3


def test_folders_that_are_no_results_are_refused(tmp_path):
    with pytest.raises(InputError, match="no results folder"):
        Results(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds something"):
        Results(tmp_path, create=True)
    (tmp_path / "results.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="format 99"):
        Results(tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"results\.json is damaged"):
        Results(tmp_path)


def test_paths_that_cannot_be_folders_are_named(tmp_path):
    file = appended(tmp_path / "r", record()).path
    for create in (False, True):
        with pytest.raises(InputError, match=r"records\.jsonl is a file, not a folder"):
            Results(file, create=create)
    for folder in (file / "below", "/proc/nowhere/results"):
        with pytest.raises(InputError, match=f"{folder} cannot be written to"):
            Results(folder, create=True)
        with pytest.raises(InputError, match=f"{folder} is no results folder"):
            Results(folder)
    assert Results(tmp_path / "r").read().keys() == {record().key}


def test_a_second_runner_is_told_who_is_there(tmp_path):
    results = Results(tmp_path / "r", create=True)
    message = f"process {os.getpid()} is already"
    with (
        results.hold(),
        pytest.raises(InputError, match=message),
        Results(tmp_path / "r").hold(),
    ):
        pass
    with results.hold():  # free again
        pass


def test_numbers_that_are_none_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        appended(tmp_path, record(mse=float("nan")))
    assert Results(tmp_path).read() == {}
