"""A recorded run gives the same bits again."""

import subprocess
from pathlib import Path

import pytest

from capnets.errors import InputError
from capnets.paper.plan import make_plan
from capnets.paper.results import Results
from capnets.paper.scales import find_scale
from capnets.paper.scheduler import reproduce
from capnets.paper.verify import verify

CHECK = Path(__file__).parents[2] / "results" / "check"
PLAN = make_plan(
    ["table1"],
    scale=find_scale("smoke", recipe="paper", epochs=20),
    models=["c-gru", "gru"],
    tasks=["US"],
)
AGAIN = """If the change of results is intended, make the record again:
rm -r results/check
capnets reproduce table1 --recipe paper --scale smoke --epochs 20 --models gru,c-gru \\
    --tasks US --results results/check"""


def changed_since(commit):
    """Whether the sources of the library differ from those of a commit, or nobody knows."""
    command = ["git", "diff", "--quiet", commit or "none", "--", "src/capnets", ":!*/paper/*"]
    return subprocess.run(command, cwd=CHECK, capture_output=True).returncode != 0


def test_recorded_runs_give_the_same_bits():
    """On the same versions of everything, sources included; else numbers of the same size."""
    found = list(verify(PLAN, CHECK))
    assert len(found) == 2
    for one in found:
        commit = one.record.made["commit"]
        if not one.versions and not changed_since(commit):
            assert one.same, f"{', '.join(one.metrics)} differ. {AGAIN}"
        for protocol in ("shared", "held-out"):
            old, new = one.record.metrics[protocol]["mse"], one.again.metrics[protocol]["mse"]
            assert new == pytest.approx(old, rel=0.05), AGAIN


def test_fresh_runs_give_the_same_bits(tmp_path):
    assert reproduce(PLAN, tmp_path / "r").complete
    assert all(one.same and not one.versions for one in verify(PLAN, tmp_path / "r"))


def test_a_changed_record_is_found(tmp_path):
    record = next(iter(Results(CHECK).read().values()))
    results = Results(tmp_path / "r", create=True)
    record.metrics["shared"]["mse"] += 1e-15 * record.metrics["shared"]["mse"]
    with results.hold() as writer:
        writer.append(record)
    (found,) = verify(PLAN, results.folder)
    assert "shared/mse" in found.metrics


def test_what_was_never_run_cannot_be_verified(tmp_path):
    Results(tmp_path / "r", create=True)
    with pytest.raises(InputError, match="no record of these runs"):
        list(verify(PLAN, tmp_path / "r"))
