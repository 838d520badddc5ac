"""The code of the explanations guide runs and gives the documented results."""

import re

import numpy as np
import pytest

from pages import DOCS, run_code

GUIDE = DOCS / "how-to" / "explanations.md"


@pytest.mark.slow
def test_code_runs(capsys):
    names = run_code(GUIDE)
    assert names["explain"](names["model"], names["auction"]).values == pytest.approx(
        [30, 50, 0, 10], abs=8
    )
    assert names["rising"].values == pytest.approx([30, 30, 20, 10], abs=8)
    # Shapley values of a maximum: every stretch between bids is shared by those that reach it.
    assert names["shares"].values == pytest.approx([7.5, 29.2, 14.2, 39.2], abs=8)
    matrix = names["interactions"](names["model"], names["auction"]).matrix(0)
    assert (matrix[np.triu_indices(4, 1)] < 1).all()
    assert names["select"](names["model"], names["auction"], k=1).positions == ((3,),)
    assert capsys.readouterr().out


def test_every_call_it_names_exists():
    import capnets.explain
    import capnets.explain.evaluation

    for name in re.findall(r"`(\w+)\(model, ", GUIDE.read_text()):
        homes = (capnets.explain, capnets.explain.evaluation)
        assert any(hasattr(home, name) for home in homes), name
