"""What one run is: JSON, keys, errors."""

import json
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from capnets.errors import InputError
from capnets.paper.jobs import Cell, Labels, Shape, choice_from_dict

CELL = Cell(model="c-gru", task="unique-sum", source="mnist", embedding="pca")
CHOICES = [
    CELL,
    replace(CELL, sizes=(6, 8), priors=({"kind": "upper-bound", "bound": 1.0},), epochs=3),
    Labels(task="unique-sum", source="mnist"),
    Shape(model="rnn"),
]


@pytest.mark.parametrize("choice", CHOICES)
def test_json_and_back(choice):
    again = choice_from_dict(json.loads(json.dumps(choice.to_dict())))
    assert again == choice
    assert again.key == choice.key


def test_every_field_changes_the_key():
    other = {
        "sizes": (20,),
        "priors": ({"kind": "sparse"},),
        "activation": "identity",
        "learning_rate": 0.01,
    }
    for field in fields(Cell):
        value = getattr(CELL, field.name)
        if field.name in other:
            value = other[field.name]
        elif isinstance(value, str):
            value += "x"
        else:
            value = (value or 0) + 1
        assert replace(CELL, **{field.name: value}).key != CELL.key, field.name


def test_keys_are_the_same_in_another_process():
    code = f"from capnets.paper.jobs import *; print(Cell.from_dict({CELL.to_dict()!r}).key)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == CELL.key == "eebd352bfdce2751"


def test_keys_survive_new_fields_that_are_none():
    record = {k: v for k, v in CELL.to_dict().items() if v is not None}
    assert Cell.from_dict(record).key == CELL.key


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
        Cell.from_dict(CELL.to_dict() | change)


def test_missing_fields_and_unknown_kinds_are_named():
    with pytest.raises(InputError, match="lacks model, source"):
        Cell.from_dict({"task": "unique-sum", "embedding": "pca"})
    with pytest.raises(InputError, match="unknown kind of record 'rnu': did you mean 'run'"):
        choice_from_dict({"kind": "rnu"})
