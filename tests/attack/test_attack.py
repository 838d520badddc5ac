"""Damaged files raise an error or are read correctly: a short attack with a fixed seed.

`make attack` runs the long one.
"""

import pytest

from attack.kills import kill
from attack.outcomes import FORBIDDEN, attack
from attack.targets import FORMATS, checkpoint, records, runs, tables
from attack.writers import recording, saving, streaming

INPUTS = 150


@pytest.mark.parametrize("name", [*FORMATS, "npz"])
def test_tables(tmp_path, name):
    (target,) = (t for t in tables(tmp_path) if t.name == name)
    counts, reports = attack(target, INPUTS, seed=1, log=tmp_path / "log")
    assert not reports, "\n".join(reports)
    assert sum(counts.values()) == INPUTS
    assert not any(counts[name] for name in FORBIDDEN)
    assert counts["sentence"] > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_runs_exports_and_states(tmp_path):
    for target in [*runs(tmp_path), checkpoint(tmp_path), records(tmp_path)]:
        counts, reports = attack(target, 15, seed=1, log=tmp_path / "log")
        assert not reports, "\n".join(reports)
        assert sum(counts.values()) == 15


@pytest.mark.slow
def test_killed_writers(tmp_path):
    """Old or new content is there after each kill, and the work can be completed."""
    kills = 0
    for name, tried, counts, reports in kill(tmp_path, 9, (saving, streaming, recording)):
        assert not reports, "\n".join(reports)
        assert counts["equal"] == tried > 0, name
        kills += tried
    assert kills == 9
