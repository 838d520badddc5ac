"""Benchmarks: goals are computed from records, and missing peers are skipped."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from capnets.checks import check_model
from capnets.models import MODELS, build
from streaming import STEPPING

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in ("goals", "turns", "speed", "speed_peers", "stream", "table"):
        sys.modules.pop(name, None)


def test_the_newest_run_counts(tmp_path):
    from turns import newest, record

    path = tmp_path / "some.jsonl"
    assert newest(path) == []
    record(path, [{"began": "1", "us": 1.0}, {"began": "1", "us": 2.0}])
    record(path, [{"began": "2", "us": 3.0}])
    assert newest(path) == [{"began": "2", "us": 3.0}]


def test_works_take_turns():
    from turns import Work, in_turn

    calls = []
    works = {name: Work(lambda name=name: calls.append(name), 5, calls=2) for name in "ab"}
    assert set(in_turn(works, rounds=3)) == {"a", "b"}
    assert calls == ["a", "a", "b", "b"] * 4  # one round more, to warm up


def test_goals_tell_met_from_not_met():
    from goals import goals

    def trained(network, batch, us):
        return {"part": "sets", "what": "train", "network": network, "batch": batch, "us": us}

    costs = {"c-rnn": 10, "c-lstm": 10, "c-gru": 10, "c-deepset": 10, "torch-geometric GRU": 10}
    speed = [trained(n, b, us * (2 if b == 100 else 1)) for n, us in costs.items()
             for b in (100, 250, 1000)]  # fmt: skip
    speed += [{"part": "large", "network": "c-gru", "by": "engine", "us": 2.9},
              {"part": "large", "network": "c-gru", "by": "torch", "us": 1.9},
              {"part": "large", "network": "c-gru", "by": "nn", "us": 0.1},
              {"part": "large", "network": "c-deepset", "by": "engine", "us": 0.7}]  # fmt: skip
    stream = [{"part": "stream", "network": "c-gru", "how": "one", "us": 29.0},
              {"part": "stream", "network": "c-gru", "how": "1000 streams", "us": 9.0}]  # fmt: skip
    found = {goal.what: goal for goal in goals(speed, stream)}
    assert found["training c-gru : torch-geometric GRU, batch 250"].met
    assert not found["training c-deepset : torch-geometric GRU, batch 250"].met
    assert found["training c-gru, a set in batches of 100 : of 1000"].found == pytest.approx(2)
    assert found["set of 10,000, c-gru (torch), us an instance"].met
    assert not found["set of 10,000, c-deepset (ONNX Runtime), us an instance"].met
    assert found["streamed, one, c-gru, us an instance"].met
    assert not any("1000 streams" in what for what in found)
    without = [line for line in speed if line["network"] != "torch-geometric GRU"]
    assert not any("torch-geometric" in goal.what for goal in goals(without, stream))


def test_missing_peers_are_reported_and_not_fatal(monkeypatch, capsys):
    import speed

    packages = {"torch_geometric", "torchmil"}
    for name in [n for n in sys.modules if n.split(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)  # importing it now fails
    networks, missing = speed.every_network()
    assert len(missing) == 6
    assert not {line["network"] for line in missing} & set(networks)
    assert {"c-gru", "a loop over nn.GRUCell"} < set(networks)
    said = capsys.readouterr().out
    assert all(f"{line['network']} is left out" in said for line in missing)


def test_without_numba_nothing_is_called_compiled(monkeypatch):
    import speed

    from capnets.nn import kernels

    monkeypatch.setattr(speed, "in_turn", lambda works, rounds: dict.fromkeys(works, 1.0))
    lines = speed.of_few_sets(1)
    assert "compiled" in {line["by"] for line in lines}
    monkeypatch.setattr(kernels, "available", lambda: False)
    missing, *lines = speed.of_few_sets(1)
    assert "compiled" not in {line["by"] for line in lines}
    assert missing["package"] == "numba"


def test_all_networks_that_stream_are_measured(monkeypatch, tmp_path):
    import stream

    monkeypatch.setattr(stream, "in_turn", lambda works, rounds: dict.fromkeys(works, 1.0))
    monkeypatch.setattr(stream, "endless", lambda instances: {})
    monkeypatch.setattr(stream, "RECORDS", tmp_path / "stream.jsonl")
    monkeypatch.setattr(sys, "argv", ["stream.py"])
    stream.main()
    lines = map(json.loads, (tmp_path / "stream.jsonl").read_text().splitlines())
    measured = {line["network"] for line in lines if line["part"] == "stream"}
    assert measured == set(STEPPING)


def test_the_page_is_drawn_from_the_stored_records(monkeypatch):
    import table
    from turns import newest

    written = {}
    monkeypatch.setattr(table, "write_text", lambda path, text: written.update({path.name: text}))
    table.main()
    page = written["README.md"]
    for script in FOLDER.glob("*.py"):
        runs = "__main__" in script.read_text()
        assert (f"| `{script.name}` |" in page) == runs
    networks = {x["network"] for x in newest(FOLDER / "speed.jsonl") if x["part"] == "sets"}
    assert all(f"| {name} |" in page for name in networks)


@pytest.mark.parametrize("name", ["beyond.py", "figures.py", "mil/headline.py"])
def test_pages_show_the_records(name):
    """No table or figure of a page is older than the records."""
    script = [sys.executable, str(FOLDER / name), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class TestFuture:
    @pytest.fixture
    def future(self):
        yield __import__("future")
        MODELS.pop("difference", None)
        for name in ("future", "beyond", "forms"):
            sys.modules.pop(name, None)

    def test_page_shows_the_records(self, future):
        from beyond import fill

        fill(future.PAGE, future.tables(), check=True)

    def test_the_rank_of_a_graph(self, future):
        """A path of three edges, the edge that closes it, and one apart."""
        edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [5, 6]])
        assert future.joins(edges).tolist() == [1, 1, 1, 0, 1]
        sets, values = future.edges(50, seed=0)
        for k, (a, b) in enumerate(pairwise(sets.offsets)):
            graph = np.zeros((future.NODES, future.NODES))
            for edge in sets[k]:
                graph[tuple(np.flatnonzero(edge))] = 1
            components, _ = connected_components(graph, directed=False)
            assert sets.y[k] == future.NODES - components == values[a:b].sum()

    def test_the_explicit_difference_passes_the_checks(self, future):
        check_model(lambda: build("difference", in_features=6, hidden=8))
