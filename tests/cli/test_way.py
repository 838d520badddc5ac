"""Train, evaluate and explain in sequence, on images and documents."""

import html
import json
import re

import pytest

import capnets
from capnets.evaluate import added_values, predict
from capnets.learn.tasks import task_of


class TestWay:
    """train, evaluate, explain."""

    def test_progress_in_lines(self, trained):
        log = trained.with_name("log").read_text()
        lines = re.findall(
            r"c-gru on unique-sum:digits: epoch (\d)/5, validation error [\d.]+", log
        )
        assert lines == ["1", "2", "3", "4", "5"]
        assert not set(log) & set("\r\x1b━"), "bars and colours are for terminals"
        assert f"capnets explain {trained}" in log

    def test_train_json(self, say, trained, tmp_path):
        found = say(
            "task", "train", "US:digits", "--sets", 100, "--valid-sets", 50, "--test-sets", 50,
            "--epochs", 1, "-o", tmp_path / "run", "--json",
        ).json  # fmt: skip
        assert found["run"] == str(tmp_path / "run")
        assert (
            json.loads((tmp_path / "run" / "metrics.json").read_text())["shared"]
            == (found["shared"])
        )

    def test_default_folder(self, say, tmp_path, monkeypatch):
        found = say(
            "task", "train", "UC:digits", "-m", "deepset", "--sets", 50, "--valid-sets", 50,
            "--test-sets", 50, "--epochs", 1, "--seed", 3, "--json", folder=tmp_path,
        ).json  # fmt: skip
        assert found["run"] == "runs/unique-count-digits-deepset-3"
        assert (tmp_path / found["run"] / "metrics.json").exists()

    def test_settings_are_recorded(self, say, tmp_path):
        folder = tmp_path / "run"
        say(
            "task", "train", "US:digits", "--sets", 100, "--valid-sets", 50, "--test-sets", 50,
            "--recipe", "paper", "--epochs", 2, "--batch-size", 20, "--learning-rate", 0.002,
            "--fixed-order", "--patience", 1, "--consistent", 0.5,
            "--activation", "softplus", "--layers", 2, "--hidden", 4, "--seed", 5, "-o", folder,
        )  # fmt: skip
        config = capnets.load(folder).config
        how = config.recipe
        assert (how.epochs, how.batch_size, how.learning_rate) == (2, 20, 0.002)
        assert (how.reshuffle, how.patience, how.schedule) == (False, 1, "constant")
        assert config.priors == ({"kind": "consistent", "weight": 0.5},)
        assert (config.model.activation, config.model.layers, config.model.hidden) == (
            "softplus", 2, 4,
        )  # fmt: skip
        assert config.seed == config.data["task"]["seed"] == 5
        assert config.data["task"]["sets"] == 100

    def test_what_is_done_about_order_is_recorded(self, say, tmp_path):
        """And a sorted network comes back sorted."""
        small = (
            "task", "train", "US:digits", "--sets", 40, "--valid-sets", 20, "--test-sets", 20,
            "--epochs", 1, "--hidden", 4, "--layers", 1,
        )  # fmt: skip
        say(*small, "-m", "c-gru", "--consistent", 0.5, "-o", tmp_path / "free")
        run = capnets.load(tmp_path / "free")
        assert run.config.priors == ({"kind": "consistent", "weight": 0.5},)
        say(*small, "-m", "c-gru", "--sort", "2", "-o", tmp_path / "sorted")
        run = capnets.load(tmp_path / "sorted")
        assert run.config.model.order == run.model.by == 2
        assert "orders" not in run.metrics  # no order can matter

    def test_evaluate(self, say, trained):
        found = say("evaluate", trained, "--json").json
        metrics = capnets.load(trained).metrics
        for part in ("valid", "shared", "held-out"):
            assert found[part] == pytest.approx(metrics[part])

    def test_evaluate_on_other_sets(self, say, trained):
        changed = ("task", "evaluate", trained, "--test-sets", 50, "--size", 6)
        one, two, other = (say(*changed, "--seed", seed, "--json").json for seed in (1, 1, 2))
        assert one == two
        assert one != other

    def test_evaluate_for_people(self, say, trained):
        text = say("evaluate", trained).text
        assert re.search(r"held-out +\d", text)
        assert re.search(r"Order: MSE .* over 5 random\s+orders", text)

    def test_explain(self, say, trained):
        """Sums, labels and values are those of the library."""
        run = capnets.load(trained)
        task = task_of(run)
        for found, k in zip(
            say("explain", trained, "--sets", "3,0", "--json").json, (3, 0), strict=True
        ):
            chosen = task.test.subset([k])
            values = [i["added_value"] for i in found["instances"]]
            assert values == pytest.approx(added_values(run.model, chosen), abs=1e-5)
            assert sum(values) == pytest.approx(predict(run.model, chosen)[0], abs=1e-4)
            assert [i["expected"] for i in found["instances"]] == task.expected(chosen).tolist()
            assert found["label"] == chosen.y[0]

    def test_explain_as_text(self, say, trained):
        answer = say("explain", trained)
        assert answer.code == 0
        assert "expected" in answer.text


@pytest.mark.data
@pytest.mark.slow
class TestDocuments:
    """The same way with documents."""

    def test_recorded_and_chosen_by_their_number(self, reviewed):
        config = capnets.load(reviewed).config
        assert config.data["task"] == {
            "function": "sentiment", "source": "ted-comments", "embedding": "minilm", "seed": 0,
        }  # fmt: skip
        assert (config.model.in_features, config.model.activation) == (384, "identity")
        assert config.recipe.batch_size == 32  # the recipe for few sets

    def test_said(self, reviewed):
        log = reviewed.with_name("log").read_text()
        assert "c-gru on sentiment:ted-comments: epoch 2/2" in log
        assert "added values" not in log, "nobody knows the exact ones"

    def test_evaluate(self, say, reviewed):
        found = say("evaluate", reviewed, "--json").json
        assert found["held-out"] == pytest.approx(capnets.load(reviewed).metrics["held-out"])
        assert "shared" not in found
        answer = say("task", "evaluate", reviewed, "--seed", 3)
        assert (answer.code, "training left out" in answer.text) == (2, True)

    def test_explain(self, say, reviewed, tmp_path):
        task = task_of(capnets.load(reviewed))
        page = tmp_path / "page.html"
        found = say("explain", reviewed, "--sets", 2, "--html", page, "--json").json[0]
        sentences = task.sentences(task.test.subset([2]))[0]
        assert [instance["name"] for instance in found["instances"]] == sentences
        assert all(html.escape(sentence) in page.read_text() for sentence in sentences)

    def test_labels(self, say):
        found = say("task", "show", "sentiment:ted-comments", "--json").json
        assert found["rating"]["count"] == found["sentences"]["count"] == 1200
        assert 0 <= found["rating"]["smallest"] < found["rating"]["largest"] <= 1
