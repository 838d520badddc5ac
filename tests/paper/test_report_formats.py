"""Content of the report in each format, from synthetic records."""

import re
from dataclasses import replace

import pytest

from capnets.paper.execute import made
from capnets.paper.names import BEYOND, CAPACITY, MODELS
from capnets.paper.published.interpretability import EXAMPLES
from capnets.paper.published.labels import STATISTICS
from capnets.paper.report import summarise
from capnets.paper.report.html import to_html
from capnets.paper.report.markdown import to_markdown
from capnets.paper.results import Record
from capnets.paper.scales import find_scale

FULL, PAPER = find_scale("full"), find_scale("full", recipe="paper")
ORDERS = [0.1, 0.2, 0.3, 0.4, 0.5]


def record(job, **changes):
    values = {"metrics": {}, "failure": None, "reason": "", "cost": {}}
    return Record(job=job, made=made(job), **values | changes)


def on_images(job, **shared):
    metrics = {"epochs": 30, "curve": [3.0, 2.0], "shared": shared}
    metrics["held-out"] = {**shared, "mse": 7.77}
    seconds = 3.6 * job.sizes[0]
    return record(job, metrics=metrics, cost={"train_seconds": seconds, "cpu_seconds": seconds})


def examples():
    """Networks whose added values are those that the paper prints."""
    for task, example in EXAMPLES.items():
        for model in CAPACITY:
            job = replace(FULL.job(model, task), sizes=(len(example.classes),))
            values = [*example.values[model], example.totals[model]]
            yield on_images(job, mse=0.5, example=values)


@pytest.fixture(scope="module")
def summary():
    main = [
        on_images(FULL.job(model, task), mse=0.25, order_mse=ORDERS, order_spread=0.1)
        for model in (*MODELS, "c-deepset")
        for task in ("UC", "US")
    ]
    papers = [on_images(PAPER.job(m, "US"), mse=e) for m, e in (("gru", 0.47), ("c-gru", 345.6))]
    failed = record(FULL.job("rnn", "WTri"), failure="diverged", reason="50 % of <x>|")
    labels = record(
        FULL.labels("US", (10,)),
        metrics={f"label_{k}": v for k, v in STATISTICS["US/10"].items()}
        | {"label_variance": 50.0, "label_counts": [1, 2, 3]},
    )
    records = (*main, *papers, *examples(), failed, labels)
    return summarise({one.key: one for one in records})


@pytest.fixture(scope="module")
def texts(summary):
    return {"html": to_html(summary), "markdown": to_markdown(summary)}


both = pytest.mark.parametrize("name", ["html", "markdown"])


def parts_of(text):
    """Split a report at its three questions; what follows them is the last part."""
    marks = ("Does the paper’s recipe give", "What does a better recipe", "What do networks beyond")
    return re.split("|".join(marks) + "|>Missing</h2>|## Missing", text)


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@both
def test_three_questions_are_answered_apart(texts, name):
    _, paper, ours, beyond, _ = parts_of(texts[name])
    assert "recipe paper)" in paper
    assert "recipe muon)" not in paper
    assert "recipe muon)" in ours
    assert "recipe paper)" not in ours
    assert "345.6" in paper
    assert "345.6" not in ours
    for network in ("C-DeepSet", "C-Potential"):
        assert network in beyond
        assert network not in paper + ours


def test_a_table_is_of_one_recipe(summary):
    for part, name in ((summary.paper, {"paper"}), (summary.ours, {"muon", "fast", "large"})):
        for section in part.sections:
            jobs = [job for shown in section.shared.shown for job in shown.entry.needed]
            assert {job.recipe for job in jobs if hasattr(job, "recipe")} <= name


def test_claims_stand_beside_each_other(summary, texts):
    (row,) = [line for line in texts["markdown"].splitlines() if "| three pairs, five" in line][:1]
    assert "| 13 of 15 | 0 of 1 | one seed, no interval | 0 of 6 |" in row
    page = words(texts["html"])
    for column in ("The paper", "The paper’s recipe here", "Our best recipe here"):
        assert f'<th scope="col">{column}</th>' in page
    assert len(summary.paper.claims) == len(summary.ours.claims)


@both
def test_training_is_described(texts, name):
    text = words(texts[name])
    assert "Inferred: at most 500 epochs (one figure ends there)" in text
    assert "learning rate 0.001 (constant), batches of 1,000, 200 epochs" in text
    assert "Muon, learning rate 0.005 (one-cycle), batches of 250, 30 epochs, replay of" in text
    assert "from small image patches without labels" in text
    assert "100,000 (scale full)" in text
    assert "Equal: errors that agree to two digits" in text


def test_numbers_that_ought_to_be_equal_and_are_not_are_marked(texts):
    assert "29.34 (29.34) = |" in texts["markdown"]
    assert "50.00 (39.88) ≠ |" in texts["markdown"]
    assert '<td class="differs">50.00' in texts["html"]


def test_exact_values_stand_above_those_of_networks(texts):
    rows = texts["markdown"].split("### Table 16")[1].split("## ")[0].splitlines()
    heads = [row.split("|")[1].strip() for row in rows if row.startswith("|")]
    assert heads[2:5] == ["WTri exact", "US+S exact", "WTri C-RNN"]
    assert "| US exact | 7.00 | 8.00 | 6.00 | 0.00 | 0.00 | 21.00 |" in texts["markdown"]
    assert "| US Δ C-GRU | 0.42 (0.42) | 0.53 (0.53) |" in texts["markdown"]
    assert '<tr class="exact"><th scope="row">US exact</th><td>7.00</td>' in texts["html"]


@both
def test_curves_are_drawn_or_left_out_but_never_counted(texts, name):
    assert not re.search(r"\d numbers\b", texts[name].replace("All 486 numbers", ""))
    assert "learning curve<" not in texts[name]


@both
def test_failures_and_versions_are_told(summary, texts, name):
    assert "diverged" in texts[name]
    assert summary.made[0]["torch"] in texts[name]
    assert "&lt;x&gt;" in texts["html"]
    assert "<x>\\|" in texts["markdown"]


def test_missing_numbers_have_runs_cost_and_reason(summary):
    """36 s were recorded for 30 epochs with sets of ten, so 200 epochs take 240 s."""
    missing = {(one.number, one.recipe): one for one in summary.missing}
    main = missing["Table 1", "paper"]
    assert (main.printed, main.numbers, main.runs) == (60, 58, 58)
    images = 48 * 240 / 3600
    documents = 10 * 240 / 3600 * 80_000 / 1_000_000
    assert main.hours == pytest.approx(images + documents)
    assert missing["Table 8", "paper"].runs == 0
    assert missing["Table 8", "paper"].reason == "follows from runs listed above"
    assert missing["Table 1", "muon"].reason == "failed: diverged"
    assert not [one for one in summary.missing if one.title in BEYOND]
