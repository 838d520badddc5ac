"""What was found beside what was printed, and the claims that follow."""

from dataclasses import replace

import pytest

from capnets.errors import InputError
from capnets.paper.beyond import count_beyond
from capnets.paper.cells import Cell
from capnets.paper.claims import Count, count_claims
from capnets.paper.compare import compare
from capnets.paper.names import BEYOND, MODELS
from capnets.paper.published import effectiveness as published
from capnets.paper.published import interpretability
from capnets.paper.results import Record
from capnets.paper.scales import find_scale
from capnets.report.paper.texts import case_count, cases_of, progress_of

FULL = replace(find_scale("full"), seeds=(0,))


def record(cell, metrics=None, **changes):
    values = {"choice": cell, "metrics": metrics or {}, "failure": None, "reason": ""}
    return Record(**values | {"made": {}, "cost": {}} | changes)


def found(*records):
    return {one.key: one for one in records}


def with_errors(cells, errors):
    pairs = zip(cells, errors, strict=True)
    return found(*(record(cell, {"shared": {"mse": error}}) for cell, error in pairs))


def as_printed(times=1.0):
    """Records that say what the paper says in its main table, with an error on held-out images."""
    records = []
    for model in MODELS:
        for task, number in published.MAIN_MEAN[model].items():
            metrics = {"shared": {"mse": times * number}, "held-out": {"mse": 100.0}}
            if task == "US" and model in interpretability.ORDER_POINTS:
                metrics["shared"]["order_mse"] = list(interpretability.ORDER_POINTS[model].values())
            records.append(record(FULL.cell(model, task), metrics))
    return found(*records)


def claims(records, protocol="shared"):
    return {claim.name: claim for claim in count_claims(compare(records, protocol=protocol))}


def test_the_papers_own_numbers_give_its_own_claims():
    counted = claims(as_printed())
    assert counted["counterpart"].ours == counted["counterpart"].paper == Count(13, 15)
    assert counted["best"].ours == counted["best"].paper
    assert counted["counterpart"].verdict == "holds"
    # The printed deviation of C-LSTM is that of LSTM after rounding; the points say more.
    assert counted["order"].ours == counted["order"].paper == Count(2, 3)
    assert counted["larger-sets"].verdict == "not run"
    assert counted["larger-sets"].paper == Count(3, 3)


def test_held_out_numbers_never_enter_the_comparison():
    table = compare(as_printed(), protocol="held-out").tables["main-mean"]
    assert {shown.ours for shown in table.shown if shown.ours} == {100.0}
    assert {shown.verdict for shown in table.shown} == {None}
    counted = claims(as_printed(), "held-out")
    assert counted["counterpart"].ours == Count(0, 15)
    assert counted["best"].ours == Count(0, 0)


@pytest.mark.parametrize(("times", "verdict"), [(1.0, "equal"), (0.5, "better"), (2.0, "worse")])
def test_verdicts(times, verdict):
    tables = compare(as_printed(times), protocol="shared").tables
    table = tables["main-mean"]
    assert {s.verdict for s in table.printed if s.entry.task != "Sent"} == {verdict}
    # Our documents are others: no verdict, whatever the numbers are.
    assert {s.verdict for s in table.printed if s.entry.task == "Sent"} == {None}
    # Nor for deviations over orders: the paper's are of something else.
    orders = tables["order-statistics"].printed
    assert {s.verdict for s in orders if s.entry.column == "stdev"} == {None}
    assert {s.verdict for s in orders if s.entry.column == "median"} == {"equal"}


def test_our_own_networks_change_no_claim_and_get_no_verdict():
    without = compare(as_printed(), protocol="shared")
    cells = [FULL.cell("c-deepset", task) for task in ("US", "WTri", "US+S")]
    both = compare(as_printed() | with_errors(cells, (0.0, 0.0, 0.0)), protocol="shared")
    assert count_claims(both) == count_claims(without)
    table = both.tables["main-mean"]
    assert table.printed == without.tables["main-mean"].printed
    assert table.beyond_rows == list(BEYOND) == table.rows[-len(BEYOND) :]
    assert [(s.ours, s.verdict) for s in table.beyond[1:4]] == [(0.0, None)] * 3
    # What is said of them is said apart.
    assert {claim.verdict for claim in count_beyond(without)} == {"not run"}
    better, added = count_beyond(both)[:2]
    assert (better.ours, better.wanted, better.verdict) == (Count(3, 3), 5, "holds so far")
    assert added.verdict == "not run"  # these records have no added values
    worse = compare(as_printed() | with_errors(cells, (0.26, 0.0, 9.0)), protocol="shared")
    assert count_beyond(worse)[0].ours == Count(1, 3)


def test_seeds_give_mean_and_deviation():
    cells = find_scale("full").cells("c-gru", "US")
    records = with_errors(cells, (1.0, 2.0, 6.0))
    tables = compare(records, protocol="shared").tables
    shown = tables["main-mean"].by_place["c-gru", "US"]
    assert (shown.ours, shown.done, shown.wanted) == (3.0, 3, 3)
    assert shown.deviation == pytest.approx((14 / 3) ** 0.5)
    assert tables["main-median"].ours("c-gru", "US") == 2.0
    assert tables["main-deviation"].ours("c-gru", "US") == pytest.approx((14 / 3) ** 0.5)
    # One seed has no deviation.
    alone = compare(found(record(cells[0], {"shared": {"mse": 1.0}})), protocol="shared").tables
    assert alone["main-mean"].by_place["c-gru", "US"].deviation is None
    assert alone["main-deviation"].ours("c-gru", "US") is None


def test_seeds_beyond_the_scale_count():
    cell = replace(FULL.cell("c-gru", "US"), seed=17)
    table = compare(found(record(cell, {"shared": {"mse": 1.5}})), protocol="shared").tables
    assert table["main-mean"].ours("c-gru", "US") == 1.5


def test_differences_from_the_counterpart():
    cells = [replace(FULL.cell(m, "US"), sets=30_000) for m in ("gru", "c-gru")]
    records = with_errors(cells, (2.0, 0.5))
    table = compare(records, protocol="shared").tables["training-relative"]
    assert table.ours("gru", "US 30k") == 2.0
    assert table.ours("c-gru", "US 30k") == -1.5
    only = compare(found(*list(records.values())[1:]), protocol="shared").tables
    assert only["training-relative"].ours("c-gru", "US 30k") is None
    assert only["training-absolute"].ours("c-gru", "US 30k") == 0.5


def test_failures_are_shown_as_what_they_are():
    cell = FULL.cell("rnn", "WTri")
    table = compare(found(record(cell, failure="diverged")), protocol="shared").tables["main-mean"]
    shown = table.by_place["rnn", "WTri"]
    assert (shown.ours, shown.failures, shown.verdict) == (None, ("diverged",), None)


def test_the_largest_scale_with_records_is_shown():
    small, full = (find_scale(n).cell("c-gru", "US") for n in ("small", "full"))
    low, high = (record(c, {"shared": {"mse": m}}) for c, m in ((small, 9.0), (full, 1.0)))
    tables = compare(found(low), protocol="shared").tables
    assert tables["main-mean"].scale.name == "small"
    assert tables["main-mean"].ours("c-gru", "US") == 9.0
    assert compare(found(low, high), protocol="shared").tables["main-mean"].scale.name == "full"
    counted = claims(found(low))["best"]
    assert counted.verdict == "does not hold so far at scale small"
    assert case_count(counted) == ("0 of 1", "4 of 5")
    assert cases_of(counted) == "five image tasks, at two digits; 1 of 5 were run"


def test_runs_shared_with_the_main_table_do_not_hide_a_smaller_experiment():
    small, full = find_scale("small"), find_scale("full")
    shared = record(full.cell("c-gru", "WTri"), {"shared": {"mse": 1.0}})  # also: sets of ten
    other = [replace(small.cell("c-gru", "WTri"), sizes=(n,)) for n in (10, 40)]
    records = found(shared) | with_errors(other, (2.0, 3.0))
    tables = compare(records, protocol="shared").tables
    assert tables["larger-sets"].scale.name == "small"
    assert [tables["larger-sets"].ours("c-gru", n) for n in ("10", "40")] == [2.0, 3.0]
    assert tables["main-mean"].scale.name == "full"
    # Begun at full scale, it is of that scale; alone, the shared run is better than nothing.
    begun = record(replace(full.cell("gru", "WTri"), sizes=(20,)), {"shared": {"mse": 4.0}})
    table = compare(records | found(begun), protocol="shared").tables["larger-sets"]
    assert {s.ours for s in table.shown if s.ours} == {1.0, 4.0}
    assert compare(found(shared), protocol="shared").tables["larger-sets"].done == 1


def test_smaller_experiments_get_no_verdict():
    small = find_scale("small")
    records = with_errors([small.cell("c-gru", "US")], [0.1])
    shown = compare(records, protocol="shared").tables["main-mean"].by_place["c-gru", "US"]
    assert (shown.ours, shown.entry.published, shown.verdict) == (0.1, 0.25, None)


def test_missing_seeds_are_told():
    one = with_errors([FULL.cell("c-gru", "US")], [1.0])
    table = compare(one, protocol="shared").tables["main-mean"]
    assert (table.by_place["c-gru", "US"].done, table.by_place["c-gru", "US"].wanted) == (1, 3)
    assert "1 of 60 entries run (scale full), 0 of 12 for networks" in progress_of(table)
    assert progress_of(table).endswith("1 of them with fewer than 3 seeds.")
    other = with_errors([replace(FULL.cell("c-gru", "US"), seed=9)], [1.0])
    table = compare(one | other, protocol="shared").tables["main-mean"]
    assert (table.by_place["c-gru", "US"].done, table.by_place["c-gru", "US"].wanted) == (2, 4)
    assert table.by_place["gru", "US"].wanted == 3


def test_nothing_to_compare_is_told():
    with pytest.raises(InputError, match="run something first"):
        compare({}, protocol="shared")


def test_records_of_other_experiments_are_no_part_of_the_tables():
    other = Cell(model="c-gru", task="unique-sum", source="digits", embedding="none", sets=77)
    tables = compare(found(record(other, {"shared": {"mse": 1.0}})), protocol="shared").tables
    assert not any(table.done for table in tables.values())
