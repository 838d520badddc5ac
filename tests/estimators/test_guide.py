"""The guide's code runs as it stands there, and gives what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "estimators.md"


@pytest.mark.slow
def test_code_runs(capsys):
    names: dict = {"__name__": "guide"}
    for block in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S):
        exec(compile(block, str(GUIDE), "exec"), names)
    expected = names["items"].groupby("basket").worth.first()
    error = names["worth"].sort_index() - expected
    assert np.abs(error).mean() < 1, "a set's prediction stands under its name"
    assert "nan" not in capsys.readouterr().out
