"""Every command in a process of its own: what people read, and what programs read."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import capnets
from capnets.cli import app
from capnets.evaluate import added_values, predict
from capnets.experiment import task_of
from capnets.paper.names import BEYOND, MODELS

COUNTS = {  # the paper's; for attention no sizes give its 17,794
    "rnn": 15_681, "c-rnn": 15_681, "lstm": 22_049, "c-lstm": 22_049, "gru": 19_937,
    "c-gru": 19_937, "deepset": 13_601, "attention": 17_826, "set-transformer": 15_809,
    "set-transformer-l": 34_753,
}  # fmt: skip
COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands] + ["tasks"]


class TestHelp:
    def test_all_commands(self, say):
        answer = say("--help")
        assert answer.code == 0
        for name in ("demo", "models", "tasks", "data", "train", "evaluate", "explain"):
            assert name in COMMANDS
            assert re.search(rf"\b{name}\b", answer.text)

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command(self, say, name):
        answer = say(name, "--help")
        assert answer.code == 0
        assert f"Usage: capnets {name}" in answer.text.replace("__main__.py", "capnets")
        assert say(name, "-h").text == answer.text

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_option_is_explained(self, name):
        command = get_command(app).commands[name]
        assert command.help
        for option in command.params:
            assert getattr(option, "help", ""), f"{name} {option.name}"

    def test_version(self, say):
        assert say("--version").text.strip() == capnets.__version__

    def test_as_a_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "capnets", "--version"], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.strip()) == (0, capnets.__version__)


class TestModels:
    def test_counts(self, say):
        rows = {row["name"]: row for row in say("models", "--json").json}
        assert {name: rows[name]["parameters"] for name in COUNTS} == COUNTS
        for name in COUNTS:
            assert rows[name]["additive"] == name.startswith("c-")
            free = name in {"deepset", "attention", "set-transformer", "set-transformer-l"}
            assert rows[name]["ordered"] != free

    def test_table(self, say):
        text = say("models").text
        assert re.search(r"c-gru +19,937 +its own +yes", text)
        assert re.search(r"deepset +13,601 +by prefixes +no", text)

    def test_sizes(self, say):
        rows = {r["name"]: r for r in say("models", "--features", 8, "--layers", 2, "--json").json}
        assert rows["deepset"]["parameters"] == capnets.models.parameters(
            capnets.build("deepset", in_features=8, layers=2)
        )


class TestTasks:
    def test_listing(self, say):
        found = say("tasks", "--json").json
        assert {f["short"] for f in found["functions"]} >= {
            "US", "WTri", "US+S", "UC", "TriC", "Mult",
        }  # fmt: skip
        assert found["sources"] == ["digits", "mnist", "fashion-mnist"]
        assert found["documents"]["sources"] == ["womens-clothing", "ted-comments"]
        assert "unique-sum" in (text := say("tasks").text)
        assert "sentiment:ted-comments" in text

    @pytest.mark.parametrize(
        ("task", "size", "mean"),
        [
            ("US", 10, 45 * (1 - 0.9**10)),
            ("unique-sum:digits", 4, 45 * (1 - 0.9**4)),
            ("UC", 10, 10 * (1 - 0.9**10)),
            ("WTri", 10, 45 * (10 * 0.1 + 90 * 0.01 / 2)),  # c (E[count] + E[pairs])
            ("TriC", 10, 10 * (10 * 0.1 + 90 * 0.01 / 2)),
        ],
    )
    def test_show(self, say, task, size, mean):
        found = say("tasks", "show", task, "--size", size, "--sets", 20_000, "--json").json
        assert found["exact"]["mean"] == pytest.approx(mean)
        error = (found["exact"]["variance"] / 20_000) ** 0.5
        assert found["drawn"]["mean"] == pytest.approx(mean, abs=5 * error)
        assert found["drawn"]["variance"] == pytest.approx(found["exact"]["variance"], rel=0.1)
        histogram = found["histogram"]
        assert sum(histogram["counts"]) == found["drawn"]["count"] == 20_000
        values = histogram["start"] + np.arange(len(histogram["counts"]))
        assert found["drawn"]["mean"] == pytest.approx(
            np.average(values, weights=histogram["counts"])
        )

    def test_show_for_people(self, say):
        text = say("tasks", "show", "US", "--size", "varying").text
        assert "size 6, 8, 10, 12, 14" in text
        assert re.search(r"mean +\d+\.\d+ +28\.\d+", text)
        assert "█" in text


class TestReproduce:
    """What programs read of the commands on the paper."""

    def test_tables(self, say):
        found = say("reproduce", "--json").json
        assert {"name": "main-mean", "number": "Table 1"}.items() <= found["tables"][0].items()
        assert found["groups"]["main"] == ["main-mean", "main-median", "main-deviation"]

    def test_plan(self, say, tmp_path):
        found = say("reproduce", "table1", "--dry-run", "--json", "-o", tmp_path / "r").json
        networks = len(MODELS) + len(BEYOND)
        assert (found["runs"], found["done"]) == (networks * 6 * 3, 0)
        assert found["tables"][0]["entries"] == networks * 6
        assert not (tmp_path / "r").exists()

    def test_runs_and_report(self, tmp_path):
        """Progress goes to standard error: what is read is one document."""
        results = tmp_path / "r"
        small = ["main", "--scale", "smoke", "--models", "c-deepset", "--tasks", "US"]
        found, said = read("reproduce", *small, "-o", results, "--json")
        assert found == {"results": str(results), "done": 1, "failed": [], "not_done": {}}
        assert "1/1 c-deepset unique-sum: MSE" in said
        told, _ = read("report", results, "--json")
        assert [Path(path).name for path in told["written"]] == [
            "index.html", "report.md", "report.tex", "report.json",
        ]  # fmt: skip
        assert told["runs"] == 1
        assert {claim["verdict"] for claim in told["claims"]["shared"]} == {"not run"}


def read(*arguments):
    """The document on standard output, and what was said beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "capnets", *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


class TestData:
    def test_listing(self, say):
        rows = say("data", "--json").json
        assert {"name", "status", "path", "terms", "origin"} == set(rows[0])
        names = {row["name"] for row in rows}
        assert any("mnist" in n or "idx" in n for n in names)
        for row in rows:
            assert row["path"] is None or Path(row["path"]).exists()

    def test_for_people(self, say):
        assert "Looked for in CAPNETS_DATA" in say("data").text

    def test_unknown_file(self, say):
        answer = say("data", "--fetch", "mnits")
        assert answer.code == 2
        assert "Error: unknown" in answer.text


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
            "train", "US:digits", "--sets", 100, "--valid-sets", 50, "--test-sets", 50,
            "--epochs", 1, "-o", tmp_path / "run", "--json",
        ).json  # fmt: skip
        assert found["run"] == str(tmp_path / "run")
        assert (
            json.loads((tmp_path / "run" / "metrics.json").read_text())["shared"]
            == (found["shared"])
        )

    def test_default_folder(self, say, tmp_path, monkeypatch):
        found = say(
            "train", "UC:digits", "-m", "deepset", "--sets", 50, "--valid-sets", 50,
            "--test-sets", 50, "--epochs", 1, "--seed", 3, "--json", folder=tmp_path,
        ).json  # fmt: skip
        assert found["run"] == "runs/unique-count-digits-deepset-3"
        assert (tmp_path / found["run"] / "metrics.json").exists()

    def test_settings_are_recorded(self, say, tmp_path):
        folder = tmp_path / "run"
        say(
            "train", "US:digits", "--sets", 100, "--valid-sets", 50, "--test-sets", 50,
            "--recipe", "paper", "--epochs", 2, "--batch-size", 20, "--learning-rate", "find",
            "--fixed-order", "--patience", 1, "--upper-bound", 9, "--prior-weight", 0.5,
            "--activation", "softplus", "--layers", 2, "--hidden", 4, "--seed", 5, "-o", folder,
        )  # fmt: skip
        config = capnets.load(folder).config
        how = config.recipe
        assert (how.epochs, how.batch_size, how.learning_rate) == (2, 20, None)
        assert (how.reshuffle, how.patience, how.schedule) == (False, 1, "constant")
        assert config.priors == ({"kind": "upper-bound", "weight": 0.5, "bound": 9.0},)
        assert (config.model.activation, config.model.layers, config.model.hidden) == (
            "softplus", 2, 4,
        )  # fmt: skip
        assert config.seed == config.data["task"]["seed"] == 5
        assert config.data["task"]["sets"] == 100

    def test_what_is_done_about_order_is_recorded(self, say, tmp_path):
        """And a sorted network comes back sorted."""
        folder = tmp_path / "run"
        say(
            "train", "US:digits", "--sets", 40, "--valid-sets", 20, "--test-sets", 20,
            "--epochs", 1, "--hidden", 4, "--layers", 1, "--consistent", 0.5, "--orders", 3,
            "--sort", "2", "-o", folder,
        )  # fmt: skip
        run = capnets.load(folder)
        assert run.config.priors == ({"kind": "consistent", "weight": 0.5},)
        assert run.config.recipe.orders == 3
        assert run.config.model.order == run.model.by == 2
        assert "orders" not in run.metrics  # no order can matter

    def test_evaluate(self, say, trained):
        found = say("evaluate", trained, "--json").json
        metrics = capnets.load(trained).metrics
        for part in ("valid", "shared", "held-out"):
            assert found[part] == pytest.approx(metrics[part])

    def test_evaluate_on_other_sets(self, say, trained):
        one, two, other = (
            say("evaluate", trained, "--test-sets", 50, "--size", 6, "--seed", seed, "--json").json
            for seed in (1, 1, 2)
        )
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

    def test_explain_for_people(self, say, trained):
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
        answer = say("evaluate", reviewed, "--seed", 3)
        assert (answer.code, "what training left out" in answer.text) == (2, True)

    def test_explain(self, say, reviewed, tmp_path):
        task = task_of(capnets.load(reviewed))
        page = tmp_path / "page.html"
        found = say("explain", reviewed, "--sets", 2, "--html", page, "--json").json[0]
        sentences = task.sentences(task.test.subset([2]))[0]
        assert [instance["name"] for instance in found["instances"]] == sentences
        assert all(html.escape(sentence) in page.read_text() for sentence in sentences)

    def test_labels(self, say):
        found = say("tasks", "show", "sentiment:ted-comments", "--json").json
        assert found["rating"]["count"] == found["sentences"]["count"] == 1200
        assert 0 <= found["rating"]["smallest"] < found["rating"]["largest"] <= 1


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["train", "uniqe-sum"], "unknown set function 'uniqe-sum': did you mean 'unique-sum'"),
            (["train", "US:mnits"], "unknown source 'mnits': did you mean"),
            (
                ["train", "US:digits", "-m", "c-grue"],
                "unknown model 'c-grue': did you mean 'c-gru'",
            ),
            (["train", "US:digits", "--recipe", "papre"], "unknown recipe 'papre': did you mean"),
            (["train", "US:digits", "--activation", "ab"], "unknown activation 'ab': did you mean"),
            (["train", "US:digits", "--sets", 0], "sets must be at least 1, not 0"),
            (["train", "US:digits", "--size", "ten"], "sizes are a number"),
            (["train", "US:digits", "--epochs", 0], "epochs must be above 0, not 0"),
            (["train", "US:digits", "--learning-rate", "fast"], "a learning rate is a number or"),
            (["train", "US:digits", "--sets", 10**12], "GB of memory are needed"),
            (["train", "US:digits", "--threads", 0], "Invalid value for '--threads'"),
            (["train", "US:digits", "--hidden", 0], "Invalid value for '--hidden'"),
            (["train", "sentiment:ted"], "unknown source of documents 'ted': Choices: womens"),
            (["train", "Sent", "--size", 3, "--sets", 9], "--size, --sets: documents are as many"),
            (["train", "sentiment", "--embedding", "pca"], "unknown embedding of sentences 'pca'"),
            (["tasks", "show", "sentiment", "--sets", 9], "--sets: documents are as many"),
            (["tasks", "show", "US", "--size", 0], "sizes must be at least 1"),
            (["models", "--hidden", 0], "hidden must be a whole number"),
            (["evaluate", "nowhere"], "nowhere is not a run: it has no config.json"),
            (["explain", "nowhere"], "nowhere is not a run: it has no config.json"),
            (["trian"], "No such command 'trian'"),
        ],
    )
    def test_said_without_a_traceback(self, say, tmp_path, arguments, message):
        answer = say(*arguments, folder=tmp_path)
        assert answer.code == 2
        assert message in answer.text.replace("\n", " ")
        assert "Traceback" not in answer.text
        results = [p for p in tmp_path.rglob("*") if p.name not in {".lock", "config.json"}]
        assert all(p.is_dir() for p in results), "nothing was begun"

    def test_traceback_if_asked_for(self, say):
        answer = say("evaluate", "nowhere", environment={"CAPNETS_TRACEBACK": "1"})
        assert answer.code == 1
        assert "Traceback" in answer.text
        assert "nowhere is not a run" in answer.text

    def test_diverged(self, say, tmp_path):
        answer = say(
            "train", "US:digits", "--sets", 100, "--valid-sets", 10, "--test-sets", 10,
            "--recipe", "paper", "--epochs", 20, "--batch-size", 10, "--learning-rate", "1e20",
            "-o", tmp_path / "run",
        )  # fmt: skip
        assert answer.code == 2
        assert "training diverged in epoch" in answer.text
        assert "Traceback" not in answer.text

    def test_sets_that_are_not_there(self, say, trained):
        answer = say("explain", trained, "--sets", "100")
        assert answer.code == 2
        assert "there is no set 100" in answer.text

    @pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
    def test_damaged_run(self, say, trained, tmp_path, name):
        folder = tmp_path / "run"
        folder.mkdir()
        for path in trained.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        (folder / name).write_bytes((folder / name).read_bytes()[:-20])
        for command in ("evaluate", "explain"):
            answer = say(command, folder)
            assert answer.code == 2
            assert f"{folder / name} is damaged" in answer.text.replace("\n", "")

    def test_options_for_tasks_on_a_file(self, say, tmp_path):
        (tmp_path / "t.csv").write_text("set,y,x\n1,2,3\n")
        answer = say("train", tmp_path / "t.csv", "--devices", 2)
        assert answer.code == 2
        assert "for tasks only, not for a file" in answer.text
