"""A new set function only needs its value and its added values."""

from itertools import pairwise

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.tasks import FUNCTIONS, make, parse_task
from capnets.tasks.functions import SetFunction
from capnets.tasks.statistics import expected_labels


class Largest(SetFunction):
    """The largest class of a set."""

    name, short, source = "largest", "Max", "digits"
    formula = "largest class"

    def value(self, classes, offsets):
        return np.array([classes[a:b].max(initial=0) for a, b in pairwise(offsets)], float)

    def added_values(self, classes, offsets):
        best = [np.maximum.accumulate(classes[a:b]) for a, b in pairwise(offsets)]
        return np.concatenate([np.diff(b, prepend=0) for b in best]).astype(float)


@pytest.fixture
def largest(monkeypatch):
    monkeypatch.setitem(FUNCTIONS, "largest", Largest())


@pytest.mark.usefixtures("largest")
class TestNewFunction:
    def test_task(self):
        task = make(parse_task("max", sets=50, valid_sets=5, test_sets=5, sizes=4))
        expected = np.add.reduceat(task.expected(task.train), task.train.offsets[:-1])
        np.testing.assert_array_equal(expected, task.train.y)

    def test_no_closed_form(self):
        with pytest.raises(InputError, match="largest has no closed form"):
            expected_labels(parse_task("max"))

    def test_command(self, capsys):
        from typer.testing import CliRunner

        from capnets.cli import app

        answer = CliRunner().invoke(app, ["tasks", "show", "max", "--sets", "100"])
        assert answer.exit_code == 0, answer.output
        assert "mean" in answer.output
