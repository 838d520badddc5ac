"""Jobs: JSON, keys, errors."""

import json
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from capnets.errors import InputError
from capnets.paper.jobs import LabelJob, ShapeJob, TrainingJob, job_from_dict

JOB = TrainingJob(model="c-gru", task="unique-sum", source="mnist", embedding="pca")
CHOICES = [
    JOB,
    replace(JOB, sizes=(6, 8), priors=({"kind": "upper-bound", "bound": 1.0},), epochs=3),
    LabelJob(task="unique-sum", source="mnist"),
    ShapeJob(model="rnn"),
]


@pytest.mark.parametrize("job", CHOICES)
def test_json_and_back(job):
    again = job_from_dict(json.loads(json.dumps(job.to_dict())))
    assert again == job
    assert again.key == job.key


def test_every_field_changes_the_key():
    other = {
        "sizes": (20,),
        "priors": ({"kind": "sparse"},),
        "activation": "identity",
        "learning_rate": 0.01,
    }
    for field in fields(TrainingJob):
        value = getattr(JOB, field.name)
        if field.name in other:
            value = other[field.name]
        elif isinstance(value, str):
            value += "x"
        else:
            value = (value or 0) + 1
        assert replace(JOB, **{field.name: value}).key != JOB.key, field.name


def test_keys_are_the_same_in_another_process():
    code = f"from capnets.paper.jobs import *; print(TrainingJob.from_dict({JOB.to_dict()!r}).key)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == JOB.key == "eebd352bfdce2751"


def test_keys_survive_new_fields_that_are_none():
    record = {k: v for k, v in JOB.to_dict().items() if v is not None}
    assert TrainingJob.from_dict(record).key == JOB.key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "rnn"}, "modle.*did you mean 'model'"),
        ({"kind": "labels"}, "kind 'run', not 'labels'"),
        ({"sets": 0}, "sets .* must be positive"),
        ({"sizes": [10, -1]}, "sizes .* must be positive"),
        ({"learning_rate": 0.0}, "learning_rate .* must be positive"),
        ({"epochs": -1}, "epochs .* must be positive"),
    ],
)
def test_bad_records_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        TrainingJob.from_dict(JOB.to_dict() | change)


def test_missing_fields_and_unknown_kinds_are_named():
    with pytest.raises(InputError, match="lacks model, source"):
        TrainingJob.from_dict({"task": "unique-sum", "embedding": "pca"})
    with pytest.raises(InputError, match="unknown kind of record 'rnu': did you mean 'run'"):
        job_from_dict({"kind": "rnu"})
