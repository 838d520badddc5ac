"""The whole report at the smallest scale, made by the commands."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from capnets.paper.plan import make_plan
from capnets.paper.report import summarise, write_report
from capnets.paper.results import Results
from capnets.paper.tables import TABLES

pytestmark = pytest.mark.slow
PARTS = ("paper", "ours")


def capnets(*arguments, timeout=590):
    done = subprocess.run(
        [sys.executable, "-m", "capnets", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All of the paper at the scale smoke: what a new user would see first."""
    folder = tmp_path_factory.mktemp("smoke") / "results"
    capnets("reproduce", "all", "--scale", "smoke", "--jobs", 2, "--results", folder)
    return folder


@pytest.fixture(scope="module")
def report(results):
    said = capnets("report", results)
    assert "claim of the paper" in said.stdout
    return results / "report"


def test_everything_was_run_once(results):
    plan = make_plan(["all"], scale="smoke")
    records = Results(results).read()
    assert set(records) == set(plan.jobs)
    assert not [record for record in records.values() if record.failure]
    assert len((results / "records.jsonl").read_text().splitlines()) == len(plan.jobs)
    said = capnets("reproduce", "all", "--scale", "smoke", "--results", results, "--dry-run")
    assert f"{len(records)} runs in all, {len(records)} done" in said.stdout


def test_every_table_that_was_run_is_in_every_format(report):
    data = json.loads((report / "report.json").read_text())
    without_training = ["parameters", "label-statistics", "label-histograms"]
    parts = {part: [t["name"] for t in data["tables"] if t["part"] == part] for part in PARTS}
    assert parts["paper"] == without_training
    trained = [name for name in TABLES if name not in (*without_training, "sentiment")]
    assert parts["ours"] == trained  # sentiment needs data
    texts = {name: (report / name).read_text() for name in ("index.html", "report.md")}
    for table in TABLES.values():
        for name, text in texts.items():
            assert (table.title in text) == (table.name != "sentiment"), (table.title, name)
    us = next(t for t in data["tables"] if t["name"] == "main-mean")
    shown = next(s for s in us["shared"] if (s["row"], s["column"]) == ("c-gru", "US"))
    assert f"{shown['ours']:.2f} ({shown['paper']:.2f})" in texts["report.md"]
    assert f"{shown['ours']:.2f}" in texts["index.html"]
    assert "50 of 60 entries run (scale smoke, 300 sets, recipe muon)." in texts["report.md"]


def test_the_page_needs_no_other_file(report):
    page = (report / "index.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert page.count("<figure>") == 12 + 9 + 1 + 3 + 1  # sizes, sets, orders, labels, prior
    identifiers = Counter(re.findall(r'id="([^"]+)"', page))
    assert max(identifiers.values()) == 1
    assert {s[1:] for s in sources if s.startswith("#")} <= set(identifiers)


def test_markdown_tables_are_rectangular(report):
    for block in re.findall(r"(?:^\|.*\n)+", (report / "report.md").read_text(), re.M):
        assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1


def test_the_same_records_give_the_same_bytes(results, report, tmp_path):
    for path in write_report(summarise(Results(results).read()), tmp_path):
        assert path.read_bytes() == (report / path.name).read_bytes()


def test_what_an_earlier_recipe_made_is_left_out_and_counted(results, tmp_path):
    records = Results(results).read()
    earlier = {
        key: replace(record, made={**record.made, "recipe": {**record.made["recipe"], "clip": 7.0}})
        for key, record in records.items()
        if "recipe" in record.made
    }
    summary = summarise(records | earlier)
    assert summary.stale == len(earlier) > 0
    assert summary.runs == 0
    page, text, *_ = write_report(summary, tmp_path)
    for path in (page, text):
        assert f"{len(earlier)} records made with an earlier recipe" in path.read_text()
    assert summarise(records).stale == 0


def test_versions_machine_and_time_are_told(results, report):
    summary = summarise(Results(results).read())
    page = (report / "index.html").read_text()
    assert summary.hours > 0
    assert summary.longest is None  # nothing is at full scale here
    for text in (summary.made[0]["torch"], summary.made[0]["processor"], "batch_size"):
        assert text in page


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_phone_and_desktop(report, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((report / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for image in page.locator("figure img").all():
        assert image.evaluate("i => i.complete && i.naturalWidth > 0")
    for summary in page.locator("summary").all():
        summary.click()  # opened, too, nothing is wider than the page
    assert page.evaluate("document.documentElement.scrollWidth") == width
