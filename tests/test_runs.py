"""Run folders: contents and error messages."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save

import capnets
from capnets.errors import InputError
from capnets.files.tensors import _digest, read_tensors
from capnets.models import ModelSpec
from capnets.runs import Run, RunConfig, load, versions
from capnets.training.priors import UpperBound
from capnets.training.recipe import Recipe

CONFIG = RunConfig(
    model=ModelSpec("c-gru", in_features=3, hidden=4, layers=1),
    recipe=Recipe(epochs=2),
    seed=7,
    data={"task": {"sizes": [1, 2]}},
    priors=({"kind": "upper-bound", "weight": 1.0, "bound": 2.0},),
)

FINISHED = [
    "config.json", "history.jsonl", "manifest.json", "metrics.json", "weights.safetensors",
]  # fmt: skip


@pytest.fixture
def run(tmp_path) -> Run:
    """A finished one."""
    run = Run.create(tmp_path / "run", CONFIG)
    finish(run, seed=3)
    return run


def finish(run: Run, *, seed: int) -> None:
    run.write_history([{"epoch": 1, "valid": 2.0}, {"epoch": 2, "valid": None}])
    run.write_weights(CONFIG.model.build(seed=seed))
    run.finish({"shared": {"mse": 0.5}})


def finished_names(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("checkpoint"))


class TestKeeping:
    def test_round_trip(self, run):
        again = capnets.load(run.folder)
        assert again.finished
        assert again.config == CONFIG
        assert again.metrics == {"shared": {"mse": 0.5}}
        assert [line["epoch"] for line in again.history] == [1, 2]
        built, loaded = CONFIG.model.build(seed=3).state_dict(), again.model.state_dict()
        assert all(torch.equal(loaded[k], v) for k, v in built.items())
        assert not again.model.training

    def test_config_through_json(self):
        assert RunConfig.from_dict(json.loads(json.dumps(CONFIG.to_dict()))) == CONFIG

    def test_versions(self, run):
        kept = json.loads((run.folder / "config.json").read_text())["versions"]
        assert kept == versions()
        assert kept["capnets"] == capnets.__version__
        assert kept["torch"] == torch.__version__

    def test_other_versions_are_the_same_training(self, run):
        (run.folder / "manifest.json").unlink()
        path = run.folder / "config.json"
        values = json.loads(path.read_text())
        values["versions"]["torch"] = "1.0"
        path.write_text(json.dumps(values))
        assert Run.create(run.folder, CONFIG, resume=True).finished

    def test_priors_with_tuples(self, tmp_path):
        """A user's prior may say what JSON says differently."""
        config = replace(CONFIG, priors=({"kind": "mine", "range": (0, 1)},))
        Run.create(tmp_path / "r", config)
        Run.create(tmp_path / "r", config, resume=True)

    def test_nothing_that_executes(self, run):
        for path in run.folder.iterdir():
            assert b"pickle" not in path.read_bytes()
        assert {p.suffix for p in run.folder.iterdir()} == {".json", ".jsonl", ".safetensors"}

    def test_same_run_same_bytes(self, run, tmp_path):
        other = Run.create(tmp_path / "other", CONFIG)
        other.write_weights(CONFIG.model.build(seed=3))
        for name in ("weights.safetensors", "config.json"):
            assert (run.folder / name).read_bytes() == (other.folder / name).read_bytes()


class TestCreate:
    def test_finished(self, run):
        with pytest.raises(InputError, match=r"force=True \(--force\) replaces it"):
            Run.create(run.folder, CONFIG)

    def test_unfinished(self, tmp_path):
        Run.create(tmp_path / "r", CONFIG).checkpoint.write_text("some epochs")
        with pytest.raises(InputError, match=r"resume=True \(--resume\) continues"):
            Run.create(tmp_path / "r", CONFIG)
        assert not Run.create(tmp_path / "r", CONFIG, resume=True).finished

    def test_not_begun(self, tmp_path):
        """A run without a finished epoch may be overwritten."""
        Run.create(tmp_path / "r", CONFIG)
        other = Run.create(tmp_path / "r", replace(CONFIG, seed=8))
        assert Run(tmp_path / "r").config.seed == other.config.seed == 8

    def test_resume_without_a_run(self, tmp_path):
        assert Run.create(tmp_path / "r", CONFIG, resume=True).config == CONFIG

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 8},
            {"recipe": Recipe(epochs=3)},
            {"model": ModelSpec("gru", in_features=3, hidden=4, layers=1)},
            {"data": {"task": {"sizes": [1, 3]}}},
            {"priors": ()},
            {"loss": "absolute"},
        ],
    )
    def test_other_settings(self, run, change):
        with pytest.raises(InputError, match="begun with other settings"):
            Run.create(run.folder, replace(CONFIG, **change), resume=True)

    @pytest.mark.parametrize("fault", [OSError, NotImplementedError])
    def test_force_without_hard_links(self, run, fault, monkeypatch):
        """Windows has no links that spare symbolic ones; some file systems have none at all."""

        def link(*paths, **settings):
            raise fault

        monkeypatch.setattr("os.link", link)
        (run.folder / "notes.txt").write_text("a user's own")
        Run.create(run.folder, replace(CONFIG, seed=8), force=True).finish({})
        assert (run.folder / "notes.txt").read_text() == "a user's own"

    def test_force(self, run):
        (run.folder / "checkpoint-0.safetensors").write_text("of a member of an ensemble")
        (run.folder / "notes.txt").write_text("a user's own")
        (run.folder / "plots").mkdir()
        (run.folder / "plots" / "a.svg").write_text("a user's own")
        kept = sorted([*FINISHED, "notes.txt", "plots"])
        new = Run.create(run.folder, replace(CONFIG, seed=8), force=True)
        assert new.config.seed == 8
        assert not new.finished
        assert finished_names(run.folder) == sorted([*FINISHED, "notes.txt", "plots"]), (
            "still the old run"
        )
        assert load(run.folder).config.seed == 7
        finish(new, seed=4)
        assert new.folder == run.folder
        assert load(run.folder).config.seed == 8
        assert finished_names(run.folder) == kept
        assert (run.folder / "plots" / "a.svg").read_text() == "a user's own"
        assert [p.name for p in run.folder.parent.iterdir()] == ["run"]

    def test_force_on_an_unfinished_run(self, tmp_path):
        Run.create(tmp_path / "r", CONFIG).checkpoint.write_text("some epochs")
        new = Run.create(tmp_path / "r", replace(CONFIG, seed=8), force=True)
        assert [p.name for p in new.folder.iterdir()] == ["config.json"]
        assert new.folder == tmp_path / "r"

    def test_resume_a_replacement(self, run):
        other = replace(CONFIG, seed=8)
        Run.create(run.folder, other, force=True).checkpoint.write_text("some epochs")
        assert Run.create(run.folder, CONFIG, resume=True).finished, "the old run"
        new = Run.create(run.folder, other, resume=True)
        assert new.checkpoint.read_text() == "some epochs"
        assert Run.in_training(run.folder).config == other
        with pytest.raises(InputError, match="begun with other settings"):
            Run.create(run.folder, replace(CONFIG, seed=9), resume=True)
        again = Run.create(run.folder, replace(CONFIG, seed=9), force=True)
        assert not again.checkpoint.exists(), "force starts over"

    def test_same_settings_again(self, run):
        """The replacement is continued, not the finished run returned."""
        Run.create(run.folder, CONFIG, force=True)
        assert not Run.create(run.folder, CONFIG, resume=True).finished

    def test_through_a_link(self, run, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "latest"
        link.symlink_to(run.folder)
        finish(Run.create(link, replace(CONFIG, seed=8), force=True), seed=4)
        assert link.is_symlink()
        assert load(run.folder).config.seed == 8

    def test_folder_of_something_else(self, tmp_path):
        (tmp_path / "letters.txt").write_text("dear")
        for how in ({}, {"force": True}, {"resume": True}):
            with pytest.raises(InputError, match="exists and is not a run"):
                Run.create(tmp_path, CONFIG, **how)
        assert [p.name for p in tmp_path.iterdir()] == ["letters.txt"]

    def test_file_in_its_place(self, tmp_path):
        (tmp_path / "r").write_text("x")
        with pytest.raises(InputError, match=r"cannot write to .*r: it is a file"):
            Run.create(tmp_path / "r", CONFIG)

    def test_leftovers_of_the_dead(self, tmp_path):
        run = Run.create(tmp_path / "r", CONFIG)
        (run.folder / ".weights.safetensors.0011aabb.part").write_text("half")
        Run.create(tmp_path / "r", CONFIG, resume=True)
        assert {p.name for p in run.folder.iterdir()} == {"config.json"}


class TestLock:
    def test_second_process_gets_an_error(self, run):
        with run.lock():
            with pytest.raises(InputError, match="another process is training into"):
                Run.create(run.folder, CONFIG, force=True)
            with pytest.raises(InputError, match="another process"), load(run.folder).lock():
                pass
            assert run.finished, "nothing was removed"
        with load(run.folder).lock():
            pass

    def test_replaced_in_between(self, tmp_path):
        first = Run.create(tmp_path / "r", CONFIG)
        Run.create(tmp_path / "r", replace(CONFIG, seed=9), force=True)
        with pytest.raises(InputError, match="another process has just replaced"), first.lock():
            pass


class TestDamaged:
    def test_no_run(self, tmp_path):
        with pytest.raises(InputError, match=r"is not a run: it has no config\.json"):
            load(tmp_path / "nothing")

    @pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '{"model": 3}', "\x00\x01"])
    def test_config(self, run, text):
        (run.folder / "config.json").write_text(text)
        with pytest.raises(InputError, match=r"config\.json is damaged"):
            _ = load(run.folder).config

    def test_unknown_setting(self, run):
        (run.folder / "manifest.json").unlink()
        values = CONFIG.to_dict() | {"sede": 3}
        values["model"], values["recipe"] = CONFIG.model.to_dict(), CONFIG.recipe.to_dict()
        (run.folder / "config.json").write_text(json.dumps(values))
        with pytest.raises(InputError, match=r"config\.json: unknown RunConfig setting 'sede'"):
            _ = load(run.folder).config

    def test_newer(self, run):
        (run.folder / "manifest.json").unlink()
        path = run.folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2, "new": []}))
        with pytest.raises(
            InputError, match=r"config\.json: a newer capnets wrote this .* upgrade"
        ):
            _ = load(run.folder).config

    @pytest.mark.parametrize("text", ["", '{"shared": ', "[]"])
    def test_metrics(self, run, text):
        (run.folder / "metrics.json").write_text(text)
        with pytest.raises(InputError, match=r"metrics\.json is damaged"):
            _ = load(run.folder).metrics

    def test_history(self, run):
        with (run.folder / "history.jsonl").open("a") as file:
            file.write('{"epoch": 3, "va')
        with pytest.raises(InputError, match=r"history\.jsonl is damaged"):
            _ = load(run.folder).history

    @pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
    def test_weights(self, run, damage):
        path = run.folder / "weights.safetensors"
        data = path.read_bytes()
        path.write_bytes(
            {
                "cut": data[:-1],
                "flipped": data[:-1] + bytes([data[-1] ^ 1]),
                "empty": b"",
            }[damage]
        )
        with pytest.raises(InputError, match=r"weights\.safetensors is damaged \(.+\); restore it"):
            _ = load(run.folder).model

    def test_weights_of_another_network(self, run, tmp_path):
        config = replace(CONFIG, model=replace(CONFIG.model, hidden=5))
        other = Run.create(tmp_path / "other", config)
        other.write_weights(config.model.build(seed=0))
        (other.folder / "weights.safetensors").replace(run.folder / "weights.safetensors")
        (run.folder / "manifest.json").unlink()
        with pytest.raises(InputError, match=r"weights\.safetensors is damaged \(Error"):
            _ = load(run.folder).model

    @pytest.mark.parametrize("name", ["weights.safetensors", "metrics.json"])
    def test_not_ended(self, run, name):
        (run.folder / name).unlink()
        again = load(run.folder)
        with pytest.raises(InputError, match=f"has no {name}: training has not ended"):
            _ = again.model if "weights" in name else again.metrics


def test_priors_are_recorded(tmp_path):
    prior = UpperBound(bound=2.0)
    config = replace(CONFIG, priors=(prior.to_dict(),))
    assert Run.create(tmp_path / "r", config).config.priors == (
        {"kind": "upper-bound", "weight": 1.0, "bound": 2.0},
    )


class TestDigests:
    def test_verified(self, run, tmp_path):
        assert load(run.folder).verified
        (run.folder / "manifest.json").unlink()
        old = load(run.folder)
        assert not old.verified, "unchecked"
        assert old.model is not None
        unfinished = Run.create(tmp_path / "r", CONFIG)
        assert not unfinished.verified

    @pytest.mark.parametrize("name", FINISHED)
    def test_one_flipped_bit(self, run, name):
        """Damage in any file raises an error before anything is used."""
        path = run.folder / name
        data = path.read_bytes()
        rng = np.random.default_rng(0)
        for place in rng.choice(len(data) * 8, size=40, replace=False):
            flipped = bytearray(data)
            flipped[place // 8] ^= 1 << (place % 8)
            path.write_bytes(flipped)
            with pytest.raises(InputError, match="is damaged"):
                read_all(load(run.folder))
        path.write_bytes(data)
        read_all(load(run.folder))

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    def test_weights_that_are_no_numbers(self, run, number):
        model = CONFIG.model.build(seed=3)
        with torch.no_grad():
            next(model.parameters()).view(-1)[0] = number
        run.write_weights(model)
        run.finish({})
        with pytest.raises(InputError, match="holds NaN or infinite numbers"):
            _ = load(run.folder).model

    def test_weights_of_earlier_versions(self, run):
        """Their digest covers the tensors only; without a manifest it is still checked."""
        (run.folder / "manifest.json").unlink()
        path = run.folder / "weights.safetensors"
        tensors, _ = read_tensors(path)
        data = save(tensors, {"capnets": json.dumps({"sha256": _digest(tensors)})})
        path.write_bytes(data)
        assert load(run.folder).model is not None
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(InputError, match="do not match its digest"):
            _ = load(run.folder).model


def read_all(run: Run) -> None:
    _ = run.config, run.history, run.metrics, run.model
    assert run.verified
