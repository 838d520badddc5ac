"""Map printed numbers to their runs."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from capnets.errors import InputError
from capnets.paper.jobs import ShapeJob, TrainingJob
from capnets.paper.names import BEYOND, CAPACITY, COUNTERPART, MODELS, RECURRENT, RIDGE, SYSTEMS
from capnets.paper.plan import make_plan, narrow
from capnets.paper.published.interpretability import EXAMPLES
from capnets.paper.scales import REVIEWS, SCALES, find_scale
from capnets.paper.tables import GROUPS, TABLES, Reading, find_tables
from capnets.tasks import EMBEDDINGS, SOURCES, TaskSpec

FULL = find_scale("full")


@cache
def entries(name: str, scale=FULL):
    return {(entry.row, entry.column): entry for entry in TABLES[name].entries(scale)}


def keys(name: str, row: str, column: str, scale=FULL) -> list[str]:
    return [job.key for job in entries(name, scale)[row, column].jobs]


def test_every_table_and_figure_with_data_is_there():
    numbers = Counter(table.number for table in TABLES.values())
    assert numbers == Counter(
        [f"Table {n}" for n in range(1, 19)]
        + [f"Figure {n}" for n in (2, 3, 4, 5)]
        + ["Beyond Table 1"]  # documents: the paper's cannot be had
        + ["Related work"]  # systems that the paper discusses without comparing
    )


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("name", TABLES)
def test_entries_have_a_place_of_their_own(name, scale):
    found = TABLES[name].entries(scale)
    assert len({(entry.row, entry.column) for entry in found}) == len(found)
    # All rows have the same columns, but for the examples: their sets differ in size.
    columns = Counter(entry.row for entry in found)
    assert len(set(columns.values())) == 1
    assert all(job.key for entry in found for job in entry.needed)


def test_full_scale_runs_are_counted():
    plan = make_plan(["all"])
    kinds = Counter(job.kind for job in plan.jobs.values())
    main, larger, fewer, varying = 10 * 6 * 3, 10 * 3 * 3, 10 * 9 * 3, 6 * 4 * 3
    without_abs, prior, examples, grid = 3 * 4 * 3, 3, 3 * 4, 486
    printed = main + larger + fewer + varying + without_abs + prior + examples + grid
    # Two sources, of which one is in the main table; signed, mean; the baseline: no seeds.
    documents = (2 * 10 - 10 + 2 * 2 * 3) * 3 + 2
    ours = len(BEYOND) * (7 + 2 + 3 + 4) * 3  # main, documents, signed values, larger, varying
    shapes = 10 + len(BEYOND)
    ours += len(SYSTEMS) * 5
    assert kinds == {"run": printed + documents + ours, "labels": 11, "shape": shapes}
    assert printed == 1149


@pytest.mark.parametrize("name", TABLES)
def test_our_own_networks_stand_below_the_papers_rows_without_a_number(name):
    found = TABLES[name].entries(FULL)
    assert sorted(found, key=lambda entry: entry.beyond) == list(found)
    ours = [entry for entry in found if entry.beyond]
    assert {entry.published for entry in ours} <= {None}
    # As many columns as the paper's rows have, and runs behind each of them.
    assert len({entry.column for entry in ours}) in (0, len({entry.column for entry in found}))
    assert all(entry.jobs for entry in ours)
    main = name in (*GROUPS["main"], "larger-sets", *GROUPS["varying-sizes"], "added-value-error")
    if main:
        assert {entry.model for entry in ours} == set(BEYOND)


def test_our_own_networks_can_be_run_alone():
    plan = make_plan(["main"], models=["C-DeepSet"], tasks=["US"])
    assert [(c.model, c.seed) for c in plan.jobs.values()] == [("c-deepset", s) for s in range(3)]


def test_with_the_papers_recipe_the_search_shares_the_chosen_runs():
    plan = make_plan(["all"], scale=replace(FULL, recipe="paper"))
    shared = 10 * 3
    ours = make_plan(["all"]).jobs.values()
    everything = [job for job in ours if getattr(job, "model", None) not in BEYOND]
    assert len(plan.jobs) == len(everything) - shared


def test_tables_share_the_runs_of_the_main_table():
    main = {(m, t): keys("main-mean", m, t) for m in MODELS for t in ("UC", "US", "WTri", "TriC")}
    for model in MODELS:
        assert keys("larger-sets", model, "10") == main[model, "WTri"]
        assert keys("main-median", model, "US") == keys("main-deviation", model, "US")
        assert keys("main-median", model, "US") == main[model, "US"]
    for model in RECURRENT:
        assert keys("order-points", model, "1") == main[model, "US"]
        assert keys("order-statistics", model, "stdev") == main[model, "US"]
        assert keys("prefix-added-values", model, "TriC") == main[model, "TriC"]
        assert keys("varying-mean", model, "US") == keys("varying-median", model, "US")
        assert keys("varying-mean", model, "US") != main[model, "US"]
    for model in CAPACITY:
        assert keys("added-value-error", model, "WTri") == main[model, "WTri"]
        assert keys("without-abs", model, "WTri") != main[model, "WTri"]
    assert keys("regularisation", "without prior", "final") == main["c-gru", "UC"]
    assert keys("regularisation", "with prior", "final") != main["c-gru", "UC"]


def test_differences_are_from_the_counterpart_with_as_many_sets():
    absolute, accuracy = entries("training-absolute"), entries("training-accuracy")
    for (model, column), entry in entries("training-relative").items():
        assert entry.jobs == absolute[model, column].jobs
        if model in COUNTERPART:
            assert entry.minus == absolute[COUNTERPART[model], column].jobs
        else:
            assert entry.minus == ()
        if (model, column) in accuracy:
            assert accuracy[model, column].jobs == entry.jobs


def test_runs_are_as_large_as_the_scale_says():
    assert {c.sets for c in entries("training-absolute")["rnn", "US 30k"].jobs} == {30_000}
    small = find_scale("small")
    assert {c.sets for c in entries("training-absolute", small)["rnn", "US 30k"].jobs} == {3_000}
    assert {c.sizes for c in entries("larger-sets")["rnn", "40"].jobs} == {(40,)}
    assert [c.seed for c in entries("main-mean")["rnn", "US"].jobs] == [0, 1, 2]


@pytest.mark.parametrize("scale", SCALES)
def test_runs_on_images_are_tasks_and_recipes_that_exist(scale):
    from capnets.models import ModelSpec
    from capnets.training.priors import prior_from_dict
    from capnets.training.recipe import recipe

    for job in make_plan(["all"], scale=scale).jobs.values():
        if isinstance(job, TrainingJob):
            recipe(job.recipe, epochs=job.epochs, learning_rate=job.learning_rate)
            if job.model == RIDGE:
                assert job.task == "sentiment"
                continue
            ModelSpec(job.model, activation=job.activation or "abs", layers=job.layers)
            assert all(prior_from_dict(prior) for prior in job.priors)
        if not isinstance(job, ShapeJob) and job.task != "sentiment":
            assert job.source in SOURCES
            embedding = getattr(job, "embedding", "none")
            TaskSpec(job.task, job.source, embedding, job.sizes)
            assert embedding in EMBEDDINGS


def test_smoke_leaves_nothing_out_but_text_and_most_of_the_grid():
    smoke = find_scale("smoke")
    for name in TABLES:
        for entry in TABLES[name].entries(smoke):
            if name != "hyper-parameters":
                assert bool(entry.jobs) == (entry.task != "Sent")
    run = [entry for entry in entries("hyper-parameters", smoke).values() if entry.jobs]
    assert {entry.model for entry in run} == set(MODELS)
    assert {entry.task for entry in run} == {"US", "WTri", "US+S"}
    assert {job.hidden for entry in run for job in entry.jobs} == {8, 16, 32}
    assert {job.layers for entry in run for job in entry.jobs} == {2, 3}
    assert {job.learning_rate for entry in run for job in entry.jobs} == {
        0.01,
        0.001,
        0.0001,
    }
    assert len(run) < 40


def test_published_numbers_reach_their_entries():
    assert entries("main-mean")["c-gru", "WTri"].published == 0.48
    assert entries("main-median")["c-gru", "UC"].published is None
    assert entries("training-relative")["c-rnn", "US+S 30k"].published == -53.98
    assert entries("examples-more")["US+S c-gru", "sum"].published == 32.56
    assert entries("label-histograms")["US", "sets by label"].published[30] == 6321
    grid = entries("hyper-parameters")
    assert grid["attention 3 layers 8", "US 0.001"].dash
    assert grid["set-transformer 32", "WTri 0.001"].published == 8.40
    assert sum(entry.dash for entry in grid.values()) == 148


def test_numbers_that_cannot_be_compared_say_why():
    assert entries("main-mean")["rnn", "Sent"].caveat
    assert entries("varying-mean")["rnn", "TriC"].caveat
    assert entries("parameters")["attention", "parameters"].caveat
    assert entries("regularisation")["with prior", "learning curve"].published is None
    statistics = entries("label-statistics")
    assert all(statistics["US+S var", column].caveat for column in ("mean", "median"))
    for name in ("order-points", "main-deviation", *GROUPS["examples"]):
        assert all(entry.caveat for entry in entries(name).values())
    for (model, _), entry in entries("training-relative").items():
        assert bool(entry.caveat) == (model in CAPACITY)  # a difference, not an error
    assert not entries("main-mean")["rnn", "US"].caveat


def test_rates_of_the_search_are_compared_only_with_constant_ones():
    assert all("one-cycle" in entry.caveat for entry in entries("hyper-parameters").values())
    constant = TABLES["hyper-parameters"].entries(replace(FULL, recipe="paper"))
    assert not any(entry.caveat for entry in constant)


def test_the_spread_over_orders_is_ours_alone():
    for (_, column), entry in entries("order-statistics").items():
        if column == "spread":
            assert entry.published is None
            assert entry.reading.of({"order_spread": 0.3}) == 0.3


@pytest.mark.parametrize("name", GROUPS["examples"])
def test_examples_have_their_exact_values_and_the_distances_from_them(name):
    table = TABLES[name]
    for entry in table.entries(FULL):
        example = EXAMPLES[entry.task]
        exact = table.exact[f"{entry.task} exact"]
        assert list(exact.values()) == [*example.expected, example.total]
        assert entry.column in exact
        assert ", ".join(map(str, example.classes)) in table.shows
        # The paper's own values, with the sum of them as records have it, give what it prints.
        values = [*example.values[entry.model], example.totals[entry.model]]
        if entry.published is not None:
            assert entry.reading.of({"example": values}) == pytest.approx(entry.published)
    assert not set(table.exact) & {entry.row for entry in table.entries(FULL)}


def test_tables_are_found_by_name_number_alias_and_group():
    assert [t.name for t in find_tables(["Table 1"])] == ["main-mean"]
    assert [t.name for t in find_tables(["figure2", "larger-sets"])] == ["larger-sets"]
    assert [t.name for t in find_tables(["grid"])] == ["hyper-parameters"]
    assert {t.name for t in find_tables(["all"])} == set(TABLES)
    assert all(name in TABLES for names in GROUPS.values() for name in names)
    every = [name for table in TABLES.values() for name in table.names]
    assert len(set(every) | set(GROUPS)) == len(every) + len(GROUPS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["tabel1"]}, "unknown table 'tabel1': did you mean 'table1'"),
        ({"names": ["table1"], "scale": "smok"}, "unknown scale 'smok': did you mean 'smoke'"),
        ({"names": ["table1"], "models": ["c-gruu"]}, "did you mean 'c-gru'"),
        ({"names": ["table1"], "tasks": ["unique-sun"]}, "did you mean 'unique-sum'"),
        ({"names": ["table1"], "seeds": []}, "seeds must be different"),
        ({"names": ["table1"], "seeds": [1, 1]}, "seeds must be different"),
        ({"names": ["table5"], "models": ["rnn"]}, "nothing is left of added-value-error"),
    ],
)
def test_wrong_names_are_explained(arguments, message):
    with pytest.raises(InputError, match=message):
        make_plan(**arguments)


def test_plans_are_narrowed_by_models_tasks_and_seeds():
    plan = make_plan(
        iter(["main"]), models=iter(["C-GRU", "gru"]), tasks=iter(["us", "weighted-triangular"]),
        seeds=[5, 7],
    )  # fmt: skip
    assert [table.name for table, _ in plan.tables] == list(GROUPS["main"])
    assert Counter((c.model, c.task, c.seed) for c in plan.jobs.values()) == {
        (model, task, seed): 1
        for model in ("c-gru", "gru")
        for task in ("unique-sum", "weighted-triangular")
        for seed in (5, 7)
    }


def test_what_has_no_seed_is_run_once():
    for seeds in ([0], [0, 1, 2], [5]):
        plan = make_plan(["sentiment"], models=[RIDGE], seeds=seeds)
        assert Counter(job.source for job in plan.jobs.values()) == dict.fromkeys(REVIEWS, 1)


def test_narrowing_models_leaves_out_what_is_about_none():
    assert narrow(TABLES["label-statistics"].entries(FULL), models=["rnn"]) == ()
    assert len(narrow(TABLES["label-statistics"].entries(FULL), tasks=["TriC"])) == 8


def test_a_narrowed_difference_still_has_its_counterpart():
    plan = make_plan(["training-relative"], models=["c-rnn"], tasks=["US"], seeds=[0])
    assert {job.model for job in plan.jobs.values()} == {"rnn", "c-rnn"}


def test_readings():
    record = {"mse": 0.5, "accuracy": 0.25, "order_mse": [0.1, 0.2, 0.6], "curve": [3, 2]}
    assert Reading("mse").of(record) == 0.5
    assert Reading("accuracy", times=100).of(record) == 25
    assert Reading("order_mse", position=1).of(record) == 0.2
    assert Reading("order_mse", within="mean").of(record) == pytest.approx(0.3)
    assert Reading("curve").of(record) == (3.0, 2.0)
    with pytest.raises(InputError, match="no 'mae', only mse, accuracy"):
        Reading("mae").of(record)


def test_statistics_over_seeds():
    mean, middle, deviation = (
        entries(name)["rnn", "US"] for name in ("main-mean", "main-median", "main-deviation")
    )
    assert mean.of_seeds([1.0, 2.0, 6.0]) == 3
    assert middle.of_seeds([1.0, 2.0, 6.0]) == 2
    assert deviation.of_seeds([1.0, 3.0]) == 1
    assert deviation.of_seeds([1.0]) != deviation.of_seeds([1.0])
