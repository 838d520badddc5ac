"""Run the Python blocks of the README in an empty folder."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def test_there_is_code_to_run():
    assert BLOCKS


@pytest.mark.slow
def test_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS, 1):
        exec(compile(block, f"README.md, Python block {number}", "exec"), names)
    assert "sum to" in capsys.readouterr().out
    # What the example claims to learn, it learns.
    np.testing.assert_allclose(names["values"], [30, 50, 0, 10], atol=8)
    shown = names["shown"]
    added = names["regressor"].added_values(shown)
    np.testing.assert_allclose(added, shown.price.where(shown.kind == "cup", 2), atol=1)
    np.testing.assert_allclose(added.sum(), names["regressor"].predict(shown), rtol=1e-4)
    assert (tmp_path / "runs" / "baskets" / "metrics.json").is_file()


def test_length():
    lines = README.splitlines()
    assert len(lines) <= 120
    assert max(len(line) for line in lines if not line.startswith(("|", "!["))) <= 120


def test_first_screen_has_the_two_commands():
    first_screen = "\n".join(README.splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen
