"""Damaged files are refused in a sentence or read as what they say: a short attack, fixed seed.

`make attack` runs the long one.
"""

import pytest

from attack.outcomes import FORBIDDEN, attack
from attack.targets import FORMATS, tables

INPUTS = 150


@pytest.mark.parametrize("name", [*FORMATS, "npz"])
def test_tables(tmp_path, name):
    (target,) = (t for t in tables(tmp_path) if t.name == name)
    counts, reports = attack(target, INPUTS, seed=1, log=tmp_path / "log")
    assert not reports, "\n".join(reports)
    assert sum(counts.values()) == INPUTS
    assert not any(counts[name] for name in FORBIDDEN)
    assert counts["sentence"] > 10
