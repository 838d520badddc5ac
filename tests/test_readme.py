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
    # What the example claims to learn, it learns.
    new, regressor = names["new"], names["regressor"]
    added = regressor.added_values(new)
    np.testing.assert_allclose(added, new.price.where(new.kind == "cup", 2), atol=0.5)
    sums = np.bincount(new.basket - new.basket.min(), weights=added)
    np.testing.assert_allclose(sums, regressor.predict(new), rtol=1e-4)
    assert "added" in capsys.readouterr().out
    files = {"explained.html", "items.parquet", "new.parquet", "runs/baskets/metrics.json"}
    assert all((tmp_path / file).is_file() for file in files)


def test_length():
    lines = README.splitlines()
    assert len(lines) <= 120
    assert max(len(line) for line in lines if not line.startswith(("|", "!["))) <= 120


def test_first_screen_has_the_two_commands():
    first_screen = "\n".join(README.splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen
