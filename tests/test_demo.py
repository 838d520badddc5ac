"""The demonstration shows a clear and true advantage."""

import json

import pytest
from typer.testing import CliRunner

from capnets import demo
from capnets.cli import app


@pytest.mark.slow
def test_values_are_right_where_differences_of_prefixes_are_not(tmp_path):
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--json"])
    result = json.loads(done.stdout)
    gru, capacity = result["networks"]
    assert (gru["model"], capacity["model"]) == demo.NETWORKS
    assert min(gru["right_seen"], capacity["right_seen"]) > 0.99
    assert capacity["values_seen"] < 0.05
    assert gru["values_seen"] > 0.5
    assert capacity["values_unseen"] < 0.7 * gru["values_unseen"]
    for digit in result["example"]:
        assert digit["capacity"] == pytest.approx(digit["expected"], abs=0.5)
    assert sum(d["expected"] for d in result["example"]) == result["label"]
    assert "What each digit adds" in (tmp_path / "demo.html").read_text()


def test_play_takes_finished_runs(tmp_path, monkeypatch):
    from capnets.errors import InputError
    from capnets.pages.runtime import find_runtime

    try:
        find_runtime()
    except InputError as error:
        pytest.skip(str(error))
    demo.run(tmp_path, epochs=1)
    monkeypatch.setattr(demo, "_train", lambda *_, **__: pytest.fail("trained again"))
    text = demo.play(tmp_path).read_text()
    assert "images seen in training" in text
