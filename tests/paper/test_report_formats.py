"""What the report on the paper says in each format, from records that are made up."""

import re
from dataclasses import replace

import pytest

from capnets.paper.execute import made
from capnets.paper.names import CAPACITY, MODELS
from capnets.paper.published.interpretability import EXAMPLES
from capnets.paper.published.labels import STATISTICS
from capnets.paper.report import latex, summarise
from capnets.paper.report.html import to_html
from capnets.paper.report.latex import to_latex
from capnets.paper.report.markdown import to_markdown
from capnets.paper.report.trained import trained
from capnets.paper.results import Record
from capnets.paper.scales import find_scale

FULL = find_scale("full")
ORDERS = [0.1, 0.2, 0.3, 0.4, 0.5]


def record(job, **changes):
    values = {"metrics": {}, "failure": None, "reason": "", "cost": {}}
    return Record(job=job, made=made(job), **values | changes)


def on_images(job, **shared):
    metrics = {"curve": [3.0, 2.0], "shared": shared, "held-out": {**shared, "mse": 7.77}}
    return record(job, metrics=metrics)


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
    failed = record(FULL.job("rnn", "WTri"), failure="diverged", reason="{50 % of $x_1^2$ ~ \\0}")
    labels = record(
        FULL.labels("US", (10,)),
        metrics={f"label_{k}": v for k, v in STATISTICS["US/10"].items()}
        | {"label_variance": 50.0, "label_counts": [1, 2, 3]},
    )
    records = (*main, *examples(), failed, labels)
    return summarise({one.key: one for one in records})


@pytest.fixture(scope="module")
def texts(summary):
    return {"html": to_html(summary), "markdown": to_markdown(summary), "latex": to_latex(summary)}


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", ["html", "markdown", "latex"])
def test_how_ours_were_trained_is_told_as_it_was_recorded(texts, name):
    text = words(texts[name])
    assert "How ours were trained" in text
    assert "without any label, from small patches" in text
    assert "100,000 (scale full)" in text
    recorded = "epochs: 30, sets in a batch: 250, learning rate: 0.005, one-cycle"
    assert recorded in text
    assert "more than 30 times" in text
    assert "on images never seen it costs" in text
    assert "errors, not networks: recipe and features differ" in text
    assert "Equal are errors that agree in two digits, statistics of labels within one" in text


def test_training_is_told_no_further_than_it_was_recorded(summary):
    (recipe,) = summary.recipes
    plain = {k: v for k, v in recipe.settings.items() if k != "replay"}  # as it once was recorded
    told = trained(summary), trained(replace(summary, recipes=(replace(recipe, settings=plain),)))
    assert [any("Rehearsal" in words for words in one) for one in told] == [True, False]
    labels = [section for section in summary.sections if section.name == "label-statistics"]
    assert trained(replace(summary, sections=tuple(labels))) == []


def test_numbers_that_ought_to_be_equal_and_are_not_are_marked(texts):
    assert "29.34 (29.34) = |" in texts["markdown"]
    assert "50.00 (39.88) ≠ |" in texts["markdown"]
    assert '<td class="differs">50.00' in texts["html"]
    assert "\\textcolor{orange}{50.00}" in texts["latex"]


def test_exact_values_stand_above_those_of_networks(texts):
    rows = texts["markdown"].split("## Table 16")[1].split("## ")[0].splitlines()
    heads = [row.split("|")[1].strip() for row in rows if row.startswith("|")]
    assert heads[2:5] == ["WTri exact", "US+S exact", "WTri C-RNN"]
    assert "| US exact | 7.00 | 8.00 | 6.00 | 0.00 | 0.00 | 21.00 |" in texts["markdown"]
    assert "| US Δ C-GRU | 0.42 (0.42) | 0.53 (0.53) |" in texts["markdown"]
    assert '<tr class="exact"><th scope="row">US exact</th><td>7.00</td>' in texts["html"]
    assert "US exact & 7.00 & 8.00" in texts["latex"]


@pytest.mark.parametrize("name", ["html", "markdown", "latex"])
def test_curves_are_drawn_or_left_out_but_never_counted(texts, name):
    assert not re.search(r"\d numbers\b", texts[name].replace("All 486 numbers", ""))
    assert "learning curve<" not in texts[name]


def test_cards_have_both_protocols_also_where_they_agree(summary, texts):
    page = words(texts["html"])
    assert [c.ours for c in summary.claims] == [c.ours for c in summary.held_out_claims]
    counted = [c for c in summary.held_out_claims + summary.held_out_beyond if c.ours.cases]
    assert page.count("with held-out images.</div>") == len(counted) > 0


def test_latex_has_both_protocols_remarks_failures_and_versions(summary, texts):
    text = texts["latex"]
    tables = re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.S)
    held_out = [table for table in tables if "\\label{tab:main-mean-held-out}" in table]
    assert len(held_out) == 1
    assert "7.77" in held_out[0]
    assert "\\textcolor" not in held_out[0]  # the paper's numbers are no measure for these
    assert "C-DeepSet predicts better" in text
    assert "Sent is not compared" in text
    assert summary.versions[0]["torch"] in text
    assert "tab:label-histograms" not in text
    assert "diverged & " in text


def test_latex_escapes_all_that_is_special(texts):
    assert latex._text("\\{}$&%_#^~") == (
        r"\textbackslash{}\{\}\$\&\%\_\#\textasciicircum{}\textasciitilde{}"
    )
    assert (
        r"\{50 \% of \$x\_1\textasciicircum{}2\$ \textasciitilde{} \textbackslash{}0\}"
        in (texts["latex"])
    )
    assert texts["latex"].isascii()


def test_the_papers_rows_and_ours_are_counted_apart(texts):
    caption = re.search(r"\\caption\{(Table 1:.*?)\}\\label", texts["latex"])[1]
    assert (
        "20 of 60 entries run (scale full, recipe muon), 20 of them with fewer than 3 seeds. Of "
        "networks that the paper does not have: 2 of 12 entries, 2 of them with fewer than 3 "
        "seeds. A rule parts them from the paper's." in caption
    )
