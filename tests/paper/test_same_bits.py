"""A recorded run gives the same bits again."""

from pathlib import Path

import pytest

from capnets.errors import InputError
from capnets.paper.plan import make_plan
from capnets.paper.results import Results
from capnets.paper.scales import find_scale
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


def test_recorded_runs_give_the_same_bits():
    found = list(verify(PLAN, CHECK))
    assert len(found) == 2
    for one in found:
        if one.versions:
            pytest.skip(f"not the same as recorded: {', '.join(one.versions)}")
        assert one.same, f"{', '.join(one.metrics)} differ. {AGAIN}"


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
