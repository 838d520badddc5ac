"""The demonstration shows a clear and true advantage."""

import json

import pytest
from typer.testing import CliRunner

from capnets import demo
from capnets.cli import app
from capnets.errors import InputError
from capnets.pages.runtime import find_runtime
from screens import wait_until


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder and the result of `capnets demo`."""
    folder = tmp_path_factory.mktemp("demo")
    done = CliRunner().invoke(app, ["demo", "--out", str(folder), "--json"])
    return folder, json.loads(done.stdout)


@pytest.fixture
def runtime():
    try:
        find_runtime()
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_values_are_right_where_differences_of_prefixes_are_not(trained):
    folder, result = trained
    gru, capacity = result["networks"]
    assert (gru["model"], capacity["model"]) == demo.NETWORKS
    assert min(gru["right_seen"], capacity["right_seen"]) > 0.99
    assert capacity["values_seen"] < 0.05
    assert gru["values_seen"] > 0.5
    assert capacity["values_unseen"] < 0.7 * gru["values_unseen"]
    for digit in result["example"]:
        assert digit["capacity"] == pytest.approx(digit["expected"], abs=0.5)
    assert sum(d["expected"] for d in result["example"]) == result["label"]
    assert "What each digit adds" in (folder / "demo.html").read_text()


@pytest.mark.slow
@pytest.mark.browser
def test_the_second_of_two_equal_digits_adds_nothing_whichever_it_is(
    trained, runtime, page, monkeypatch
):
    """`make demo`, then `capnets play`: drag the second of two equal digits before the first."""
    folder, _ = trained
    monkeypatch.setattr(demo, "EPOCHS", 1)  # for the network that the demonstration lacks
    done = CliRunner().invoke(app, ["play", "--out", str(folder), "--no-open"])
    assert done.exit_code == 0, done.output
    page.set_viewport_size({"width": 1200, "height": 1400})
    page.goto(f"file://{folder}/play.html")
    page.wait_for_selector("body[data-turn]", timeout=120_000)
    shown = page.evaluate("capnets.session.items.map((i) => capnets.session.data.display[i.row])")
    digits = [one["label"] for one in shown]
    repeated = next(d for d in digits if d > "5" and digits.count(d) == 2)
    first, second = (k for k, d in enumerate(digits) if d == repeated)

    def values():
        items = page.locator("#items > li")
        return {
            int(key): json.loads(value)[0]
            for key, value in items.evaluate_all(
                "r => r.map((o) => [o.dataset.key, o.dataset.values])"
            )
        }

    keys = page.evaluate("capnets.session.items.map((i) => i.key)")
    before = values()
    assert before[keys[first]] == pytest.approx(float(repeated), abs=0.5)
    assert before[keys[second]] == pytest.approx(0, abs=0.5)
    handles = page.locator("[data-handle]")
    start, end = handles.nth(second).bounding_box(), handles.nth(first).bounding_box()
    page.mouse.move(start["x"] + 10, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(end["x"] + 10, end["y"] - 2, steps=10)
    page.mouse.up()
    wait_until(page, "Number(document.body.dataset.turn) === capnets.turn")
    moved = page.evaluate("capnets.session.items.map((i) => i.key)")
    assert moved.index(keys[second]) < moved.index(keys[first])
    after = values()
    assert after[keys[second]] == pytest.approx(float(repeated), abs=0.5)
    assert after[keys[first]] == pytest.approx(0, abs=0.5)


def test_play_takes_finished_runs(tmp_path, runtime, monkeypatch):
    demo.run(tmp_path, epochs=1)
    assert demo.to_train(tmp_path) == ["c-gru"]
    monkeypatch.setattr(demo, "EPOCHS", 1)
    demo.play(tmp_path)
    monkeypatch.setattr(demo, "_train", lambda *_, **__: pytest.fail("trained again"))
    text = demo.play(tmp_path).read_text()
    assert "images seen in training" in text
