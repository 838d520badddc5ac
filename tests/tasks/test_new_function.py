"""A new set function only needs its value and its added values."""

import os
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

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

        answer = CliRunner().invoke(app, ["task", "show", "max", "--sets", "100"])
        assert answer.exit_code == 0, answer.output
        assert "mean" in answer.output


def test_an_installed_package_adds_its_function(tmp_path):
    """The code and the lines of the page, as an installed package has them."""
    page = (Path(__file__).parents[2] / "docs/how-to/add-a-task.md").read_text()
    blocks = dict(re.findall(r"```(python|toml)\n(.*?)```", page, re.DOTALL)[:2])
    (group, entries), *_ = tomllib.loads(blocks["toml"])["project"]["entry-points"].items()
    ((name, value),) = entries.items()
    file = tmp_path / Path(*value.partition(":")[0].split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True)
    file.write_text(blocks["python"])
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "from capnets.tasks import FUNCTIONS; print(FUNCTIONS['largest'].short)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "Max", done.stderr
