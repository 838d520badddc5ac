"""Comparison with the published numbers, and the resulting claims."""

from dataclasses import replace

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.paper.beyond import count_beyond
from capnets.paper.claims import Count, count_claims
from capnets.paper.compare import compare
from capnets.paper.names import BEYOND, MODELS
from capnets.paper.published import effectiveness as published
from capnets.paper.published import interpretability
from capnets.paper.report.texts import case_count, progress_of
from capnets.paper.resample import replicates
from capnets.paper.results import Record
from capnets.paper.scales import find_scale
from capnets.paper.tables import TABLES

FULL = replace(find_scale("full"), seeds=(0,))


def record(job, metrics=None, **changes):
    values = {"job": job, "metrics": metrics or {}, "failure": None, "reason": ""}
    return Record(**values | {"made": {}, "cost": {}} | changes)


def found(*records):
    return {one.key: one for one in records}


def with_errors(jobs, errors):
    pairs = zip(jobs, errors, strict=True)
    return found(*(record(job, {"shared": {"mse": error}}) for job, error in pairs))


def as_printed(times=1.0):
    """Records that say what the paper says in its main table, with an error on held-out images."""
    records = []
    for model in MODELS:
        for task, number in published.MAIN_MEAN[model].items():
            metrics = {"shared": {"mse": times * number}, "held-out": {"mse": 100.0}}
            if task == "US" and model in interpretability.ORDER_POINTS:
                metrics["shared"]["order_mse"] = list(interpretability.ORDER_POINTS[model].values())
            records.append(record(FULL.job(model, task), metrics))
    return found(*records)


def claims(records, protocol="shared"):
    return {claim.name: claim for claim in count_claims(compare(records, protocol=protocol))}


def test_the_papers_own_numbers_give_its_own_claims():
    counted = claims(as_printed())
    assert counted["counterpart"].ours == counted["counterpart"].paper == Count(13, 15)
    assert counted["best"].ours == counted["best"].paper
    assert counted["counterpart"].verdict == "one seed, no interval"
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
    measured = count_beyond(compare(as_printed(), protocol="held-out"))[0]
    assert measured.ours == Count(0, 0)  # what the paper prints is no measure for new images


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
    jobs = [FULL.job("c-deepset", task) for task in ("US", "WTri", "US+S")]
    both = compare(as_printed() | with_errors(jobs, (0.0, 0.0, 0.0)), protocol="shared")
    assert count_claims(both) == count_claims(without)
    table = both.tables["main-mean"]
    assert table.printed == without.tables["main-mean"].printed
    assert table.beyond_rows == list(BEYOND) == table.rows[-len(BEYOND) :]
    assert [(s.ours, s.verdict) for s in table.beyond[1:4]] == [(0.0, None)] * 3
    # What is said of them is said apart.
    assert {claim.verdict for claim in count_beyond(without)[1:]} == {"not run"}
    better, added = count_beyond(both)[1:3]
    assert (better.ours, better.wanted) == (Count(3, 3), 5)
    assert added.verdict == "not run"  # these records have no added values
    worse = compare(as_printed() | with_errors(jobs, (0.26, 0.0, 9.0)), protocol="shared")
    assert count_beyond(worse)[1].ours == Count(1, 3)


def test_seeds_give_mean_and_deviation():
    jobs = find_scale("full").jobs("c-gru", "US")
    records = with_errors(jobs, (1.0, 2.0, 6.0))
    tables = compare(records, protocol="shared").tables
    shown = tables["main-mean"].by_place["c-gru", "US"]
    assert (shown.ours, shown.done, shown.wanted) == (3.0, 3, 3)
    assert shown.deviation == pytest.approx((14 / 3) ** 0.5)
    assert tables["main-median"].ours("c-gru", "US") == 2.0
    assert tables["main-deviation"].ours("c-gru", "US") == pytest.approx((14 / 3) ** 0.5)
    # One seed has no deviation.
    alone = compare(found(record(jobs[0], {"shared": {"mse": 1.0}})), protocol="shared").tables
    assert alone["main-mean"].by_place["c-gru", "US"].deviation is None
    assert alone["main-deviation"].ours("c-gru", "US") is None


def test_seeds_beyond_the_scale_count():
    job = replace(FULL.job("c-gru", "US"), seed=17)
    table = compare(found(record(job, {"shared": {"mse": 1.5}})), protocol="shared").tables
    assert table["main-mean"].ours("c-gru", "US") == 1.5


def test_differences_from_the_counterpart():
    jobs = [replace(FULL.job(m, "US"), sets=30_000) for m in ("gru", "c-gru")]
    records = with_errors(jobs, (2.0, 0.5))
    table = compare(records, protocol="shared").tables["training-relative"]
    assert table.ours("gru", "US 30k") == 2.0
    assert table.ours("c-gru", "US 30k") == -1.5
    only = compare(found(*list(records.values())[1:]), protocol="shared").tables
    assert only["training-relative"].ours("c-gru", "US 30k") is None
    assert only["training-absolute"].ours("c-gru", "US 30k") == 0.5


def test_failures_are_shown_as_what_they_are():
    job = FULL.job("rnn", "WTri")
    table = compare(found(record(job, failure="diverged")), protocol="shared").tables["main-mean"]
    shown = table.by_place["rnn", "WTri"]
    assert (shown.ours, shown.failures, shown.verdict) == (None, ("diverged",), None)


def test_failed_seeds_are_neither_averaged_away_nor_compared():
    jobs = find_scale("full").jobs("rnn", "WTri")
    good = with_errors(jobs[:1], (0.4,))
    bad = found(*(record(job, failure="diverged") for job in jobs[1:]))
    other = with_errors(find_scale("full").jobs("c-rnn", "WTri"), (0.3, 0.3, 0.3))
    table = compare(good | bad, protocol="shared").tables["main-mean"]
    shown = table.by_place["rnn", "WTri"]
    assert (shown.ours, shown.failures, shown.verdict) == (0.4, ("diverged",), None)
    assert claims(good | bad | other)["counterpart"].ours == Count(0, 0)


def test_a_failure_hides_no_smaller_experiment():
    small, full = find_scale("small"), find_scale("full")
    good = with_errors([small.job("c-gru", "US")], [2.0])
    bad = found(record(full.job("rnn", "US"), failure="diverged"))
    assert compare(good | bad, protocol="shared").tables["main-mean"].scale.name == "small"
    alone = compare(bad, protocol="shared").tables["main-mean"]
    assert (alone.scale.name, alone.done) == ("full", 0)


def test_documents_are_of_every_scale_and_begin_none():
    small = find_scale("small")
    jobs = [small.job("gru", "Sent"), small.job("gru", "US")]
    records = found(record(jobs[0], {"mse": 1.0}), record(jobs[1], {"shared": {"mse": 2.0}}))
    table = compare(records, protocol="shared").tables["main-mean"]
    assert (table.scale.name, table.done) == ("small", 2)


def test_one_seed_is_any_seed():
    """Entries that need one seed use any seed that was run, also among runs of other entries."""
    scale = replace(find_scale("small"), seeds=(1,))
    jobs = [c for e in TABLES["hyper-parameters"].entries(scale) for c in e.jobs][:2]
    metrics = {"shared": {"mse": 1.0}, "valid_mse": 1.0}
    records = found(*(record(job, metrics) for job in jobs))
    assert compare(records, protocol="shared").tables["hyper-parameters"].done == 2
    other = found(record(find_scale("small").job("gru", "US"), metrics))
    assert compare(records | other, protocol="shared").tables["hyper-parameters"].done >= 2


def test_parameters_are_compared_exactly():
    exact = {c.key: c for e in TABLES["parameters"].entries(FULL) for c in e.jobs}
    entry = next(e for e in TABLES["parameters"].entries(FULL) if e.published)
    for more, verdict in ((0, "equal"), (1, "differs")):
        one = record(exact[entry.jobs[0].key], {"parameters": int(entry.published) + more})
        table = compare(found(one), protocol="shared").tables["parameters"]
        assert table.by_place[entry.row, entry.column].verdict == verdict


def test_the_largest_scale_with_records_is_shown():
    small, full = (find_scale(n).job("c-gru", "US") for n in ("small", "full"))
    low, high = (record(c, {"shared": {"mse": m}}) for c, m in ((small, 9.0), (full, 1.0)))
    tables = compare(found(low), protocol="shared").tables
    assert tables["main-mean"].scale.name == "small"
    assert tables["main-mean"].ours("c-gru", "US") == 9.0
    assert compare(found(low, high), protocol="shared").tables["main-mean"].scale.name == "full"
    full_only = compare(found(low, high), protocol="shared", scales=[find_scale("small")])
    assert full_only.tables["main-mean"].ours("c-gru", "US") == 9.0


def test_a_table_is_of_one_recipe():
    muon, fast = (find_scale("full", recipe=name) for name in ("muon", "fast"))
    jobs = [*(fast.job(m, "US") for m in ("c-gru", "gru")), muon.job("c-gru", "US")]
    records = with_errors(jobs, (3.0, 2.0, 1.0))
    table = compare(records, protocol="shared").tables["main-mean"]
    assert (table.scale.recipe, table.done) == ("muon", 1)
    assert (table.ours("c-gru", "US"), table.ours("gru", "US")) == (1.0, None)
    assert "recipe muon" in progress_of(table)
    assert claims(records)["counterpart"].ours == Count(0, 0)
    asked = compare(records, protocol="shared", scales=[fast]).tables["main-mean"]
    assert (asked.scale.recipe, asked.done) == ("fast", 2)


def test_what_was_only_done_with_an_earlier_recipe_is_shown():
    muon, fast = (find_scale("full", recipe=name) for name in ("muon", "fast"))
    larger = replace(fast.job("c-gru", "WTri"), sizes=(40,))
    jobs = [larger, fast.job("c-gru", "WTri"), muon.job("c-gru", "WTri")]
    tables = compare(with_errors(jobs, (9.0, 3.0, 1.0)), protocol="shared").tables
    assert tables["main-mean"].ours("c-gru", "WTri") == 1.0
    assert tables["larger-sets"].scale.recipe == "fast"
    # Its smallest sets are those of the main table, trained as the larger ones were.
    assert tables["larger-sets"].ours("c-gru", "10") == 3.0
    assert tables["larger-sets"].ours("c-gru", "40") == 9.0


def test_no_claim_compares_recipes():
    muon, fast = (find_scale("full", recipe=name) for name in ("muon", "fast"))
    signed = replace(fast.job("c-gru", "US"), activation="identity")
    records = with_errors([signed, muon.job("c-gru", "US")], (1.0, 2.0))
    assert claims(records)["without-abs"].ours == Count(0, 0)
    # Beside the main table as it was trained then, whatever the main table shows now.
    both = records | with_errors([fast.job("c-gru", "US")], (3.0,))
    assert compare(both, protocol="shared").tables["main-mean"].scale.recipe == "muon"
    assert claims(both)["without-abs"].ours == Count(1, 1)


def test_claims_say_what_they_rest_on():
    small = find_scale("small")
    records = with_errors([small.job(model, "US") for model in ("c-gru", "gru")], (9.0, 1.0))
    counted = claims(records)
    for name, paper in (("counterpart", "13 of 15"), ("best", "4 of 5")):
        assert counted[name].verdict == "one seed, no interval"
        assert case_count(counted[name].ours) == "0 of 1"
        assert case_count(counted[name].paper) == paper
    assert counted["counterpart"].limits == "1 of 15 cases run; 1 with one seed and no interval"
    # The best of two networks is not the best of ten.
    assert "1 with fewer runs than wanted" in counted["best"].limits
    smoke = find_scale("smoke")
    records = with_errors([smoke.job(model, "US") for model in ("c-gru", "gru")], (9.0, 1.0))
    assert claims(records)["counterpart"].verdict == "too small to say"


def test_a_claim_holds_only_if_it_survives_other_seeds():
    full = find_scale("full")
    jobs = [*full.jobs("c-gru", "US"), *full.jobs("gru", "US")]
    apart = claims(with_errors(jobs, (1.0, 1.1, 1.2, 2.0, 2.1, 2.2)))["counterpart"]
    close = claims(with_errors(jobs, (1.0, 1.1, 1.8, 1.0, 1.1, 2.0)))["counterpart"]
    against = claims(with_errors(jobs, (2.0, 2.1, 2.2, 1.0, 1.1, 1.2)))["counterpart"]
    assert apart.ours == close.ours == Count(1, 1)
    assert (apart.ours.low, apart.verdict) == (1, "holds so far")
    assert (close.ours.low, close.ours.high, close.verdict) == (0, 1, "undecided so far")
    assert (against.ours.high, against.verdict) == (0, "does not hold so far")


def test_one_seed_is_judged_on_blocks_of_test_sets():
    """Blocks are pairs: what is common to both networks does not blur their difference."""
    common = np.random.default_rng(0).exponential(size=100)
    noise = np.random.default_rng(1).exponential(size=100)
    for gain, other, expected in (
        (0.05, common, "holds so far"),
        (-0.05, common, "does not hold so far"),
        (0.0, noise - noise.mean() + common.mean(), "undecided so far"),
    ):
        blocks = {"c-gru": common, "gru": other + gain}
        records = found(
            *(
                record(FULL.job(m, "US"), {"shared": {"mse": 9.0, "block_mse": list(errors)}})
                for m, errors in blocks.items()
            )
        )
        assert claims(records)["counterpart"].verdict == expected


def test_replicates_have_the_standard_error_of_the_mean():
    errors = np.random.default_rng(0).normal(5.0, 1.0, size=100)
    drawn = replicates(5.0, [5.0], [errors], name="a")
    assert drawn.std() == pytest.approx(errors.std() / 10, rel=0.1)
    assert drawn.mean() == pytest.approx(5.0, abs=0.01)
    assert replicates(5.0, [5.0], [], name="a") is None
    seeds = replicates(2.0, [1.0, 2.0, 3.0, 2.0, 2.0], [], name="a")
    # A t distribution with 4 degrees of freedom: 95 % are within 2.776 standard errors.
    error = np.std([1, 2, 3, 2, 2], ddof=1) / 5**0.5
    assert np.mean(np.abs(seeds - 2.0) < 2.776 * error) == pytest.approx(0.95, abs=0.015)
    assert np.array_equal(seeds, replicates(2.0, [1.0, 2.0, 3.0, 2.0, 2.0], [], name="a"))


def test_one_unlucky_run_moves_a_mean_and_not_a_median():
    full = find_scale("full")
    jobs = [*full.jobs("c-gru", "US"), *full.jobs("gru", "US")]
    counted = claims(with_errors(jobs, (1.0, 1.1, 9.0, 2.0, 2.1, 2.2)))
    assert counted["counterpart"].ours == Count(0, 1)
    assert counted["counterpart-median"].ours == Count(1, 1)


def test_the_best_is_measured_among_our_own_networks():
    """Errors below the paper's do not count as evidence for capacity networks."""
    jobs = [FULL.job(model, "US") for model in ("c-gru", "gru")]
    records = with_errors(jobs, (0.02, 0.01))
    assert claims(records)["best"].ours == Count(0, 1)
    assert count_beyond(compare(records, protocol="shared"))[0].ours == Count(1, 1)


def test_a_claim_never_mixes_scales():
    small, full = find_scale("small"), find_scale("full")
    without = [replace(small.job("c-gru", "US"), activation="identity")]
    records = with_errors([*without, full.job("c-gru", "US")], (9.0, 1.0))
    assert claims(records)["without-abs"].verdict == "not run"
    same = with_errors([*without, small.job("c-gru", "US")], (9.0, 1.0))
    assert claims(same)["without-abs"].ours == Count(0, 1)


def test_runs_shared_with_the_main_table_do_not_hide_a_smaller_experiment():
    small, full = find_scale("small"), find_scale("full")
    shared = record(full.job("c-gru", "WTri"), {"shared": {"mse": 1.0}})  # also: sets of ten
    other = [replace(small.job("c-gru", "WTri"), sizes=(n,)) for n in (10, 40)]
    records = found(shared) | with_errors(other, (2.0, 3.0))
    tables = compare(records, protocol="shared").tables
    assert tables["larger-sets"].scale.name == "small"
    assert [tables["larger-sets"].ours("c-gru", n) for n in ("10", "40")] == [2.0, 3.0]
    assert tables["main-mean"].scale.name == "full"
    # Begun at full scale, it is of that scale; alone, the shared run is better than nothing.
    begun = record(replace(full.job("gru", "WTri"), sizes=(20,)), {"shared": {"mse": 4.0}})
    table = compare(records | found(begun), protocol="shared").tables["larger-sets"]
    assert {s.ours for s in table.shown if s.ours} == {1.0, 4.0}
    assert compare(found(shared), protocol="shared").tables["larger-sets"].done == 1


def test_smaller_experiments_get_no_verdict():
    small = find_scale("small")
    records = with_errors([small.job("c-gru", "US")], [0.1])
    shown = compare(records, protocol="shared").tables["main-mean"].by_place["c-gru", "US"]
    assert (shown.ours, shown.entry.published, shown.verdict) == (0.1, 0.25, None)


def test_missing_seeds_are_reported():
    one = with_errors([FULL.job("c-gru", "US")], [1.0])
    table = compare(one, protocol="shared").tables["main-mean"]
    assert (table.by_place["c-gru", "US"].done, table.by_place["c-gru", "US"].wanted) == (1, 3)
    assert progress_of(table) == (
        "1 of 60 entries run (scale full, recipe muon), 1 with fewer than 3 seeds."
    )
    other = with_errors([replace(FULL.job("c-gru", "US"), seed=9)], [1.0])
    table = compare(one | other, protocol="shared").tables["main-mean"]
    assert (table.by_place["c-gru", "US"].done, table.by_place["c-gru", "US"].wanted) == (2, 4)
    assert table.by_place["gru", "US"].wanted == 3


def test_nothing_to_compare_is_told():
    with pytest.raises(InputError, match="run something first"):
        compare({}, protocol="shared")


def test_records_of_other_experiments_are_no_part_of_the_tables():
    other = replace(find_scale("smoke").job("c-gru", "US"), sets=77)
    tables = compare(found(record(other, {"shared": {"mse": 1.0}})), protocol="shared").tables
    assert not any(table.done for table in tables.values())
