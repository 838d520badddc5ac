"""What commands say when they cannot do what they are asked for."""

import pytest


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
            (["train", "US:digits", "--size", "ten"], "sizes must be a number"),
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
            (
                ["train", "US:digits", "-m", "c-potential", "--sort", "worth"],
                "--sort: no order changes what c-potential predicts; leave it out",
            ),
            (
                ["train", "US:digits", "-m", "deepset", "--consistent", 1],
                "--consistent: no order changes what deepset predicts",
            ),
            (
                ["train", "US:digits", "--sort", "worth", "--consistent", 1],
                "--consistent: sorted instances have one order only",
            ),
            (["train", "US:digits", "--prior-weight", -1], "Invalid value for '--prior-weight'"),
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
