"""The code of the estimators guide runs and gives the documented results."""

import numpy as np
import pytest

from pages import DOCS, run_code

GUIDE = DOCS / "how-to" / "estimators.md"


@pytest.mark.slow
def test_code_runs(capsys):
    names = run_code(GUIDE)
    expected = names["items"].groupby("basket").worth.first()
    error = names["worth"].sort_index() - expected
    assert np.abs(error).mean() < 1, "a set's prediction stands under its name"
    assert "nan" not in capsys.readouterr().out
