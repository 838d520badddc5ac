"""Checkpoints resume bit by bit; damaged or unrelated ones raise an error."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from capnets.errors import InputError
from capnets.files.tensors import Damaged, read_tensors, write_tensors
from capnets.models import build
from capnets.sets import Sets
from capnets.training.callbacks import EpochEnd
from capnets.training.checkpoint import Checkpoint
from capnets.training.fit import fit
from capnets.training.priors import Sparse
from capnets.training.recipe import Recipe

HOW = Recipe(epochs=4, batch_size=50, patience=10)


class Stop(Exception):  # noqa: N818
    """Raised to end a training early."""


def network(**settings):
    return build("c-gru", **{"in_features": 4, "hidden": 8, "layers": 1, "seed": 0, **settings})


def train(make, path=None, *, model=None, recipe=HOW, stop_after=None, **how):
    model = model or network()

    def progress(line):
        if line["epoch"] == stop_after:
            raise Stop

    history = fit(
        model,
        make(),
        make(50, seed=1),
        recipe=recipe,
        checkpoint=path,
        callbacks=[EpochEnd(progress)],
        **how,
    )
    return model, history


@pytest.fixture
def stopped(make, tmp_path):
    """The checkpoint of a training that was stopped after two epochs."""
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Stop):
        train(make, path, stop_after=2)
    return path


def without_seconds(history):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in history]


class TestResume:
    @pytest.mark.parametrize(
        ("settings", "recipe"),
        [
            ({}, HOW),
            ({"inputs": "standardize", "dropout": 0.3}, replace(HOW, weight_decay=0.01)),
            ({}, replace(HOW, reshuffle=False)),
            ({}, replace(HOW, replay=2)),
            ({}, replace(HOW, optimizer="muon")),
        ],
    )
    @pytest.mark.parametrize("epochs", [1, 3, 4])
    def test_same_bits(self, make, tmp_path, settings, recipe, epochs):
        through, history = train(make, model=network(**settings), recipe=recipe)
        path = tmp_path / "c"
        with pytest.raises(Stop):
            train(make, path, model=network(**settings), recipe=recipe, stop_after=epochs)
        torch.manual_seed(99)  # whatever else the new process has drawn
        again, later = train(make, path, model=network(**settings, seed=7), recipe=recipe)
        assert without_seconds(later) == without_seconds(history)
        for name, value in through.state_dict().items():
            assert torch.equal(value, again.state_dict()[name]), name

    def test_a_finished_training_is_only_read(self, make, tmp_path):
        path = tmp_path / "c"
        one, history = train(make, path)
        before = path.read_bytes()
        two, again = train(make, path, model=network(seed=7))
        assert again == history
        assert path.read_bytes() == before
        assert torch.equal(one.final.bias, two.final.bias)

    def test_early_stopping_is_remembered(self, make, tmp_path):
        restless = Recipe(
            epochs=30, batch_size=20, learning_rate=0.1, schedule="constant", clip=None, patience=2
        )
        path = tmp_path / "c"
        _, history = train(make, path, recipe=restless)
        assert len(history) < 30
        assert train(make, path, recipe=restless)[1] == history


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ({"recipe": replace(HOW, epochs=9)}, "recipe"),
            ({"seed": 1}, "seed"),
            ({"loss": "absolute"}, "loss"),
            ({"priors": (Sparse(),)}, "priors"),
        ],
    )
    def test_another_training(self, make, stopped, change, what):
        before = stopped.read_bytes()
        with pytest.raises(InputError, match=rf"another training \(its {what} differs\)"):
            train(make, stopped, **change)
        assert stopped.read_bytes() == before

    def test_other_data(self, make, stopped):
        with pytest.raises(InputError, match="its sets differs"):
            fit(network(), make(20), recipe=HOW, checkpoint=stopped)

    def test_one_number_of_many_differs(self, tmp_path):
        draw = np.random.default_rng(0)
        X = draw.normal(size=(500, 10, 4)).astype(np.float32)
        path, y = tmp_path / "c", X[:, :, 0].sum(1)
        fit(network(), Sets.from_arrays(list(X), y), recipe=HOW, checkpoint=path)
        X[333, 7, 2] += 1
        with pytest.raises(InputError, match="its training data differs"):
            fit(network(), Sets.from_arrays(list(X), y), recipe=HOW, checkpoint=path)

    @pytest.mark.parametrize("what", ["labels", "instances", "sizes", "weights"])
    def test_as_many_other_sets(self, make, stopped, what):
        sets = make()
        pool, index, offsets, y = sets.instances, sets.index, sets.offsets, sets.y
        other = {
            "labels": lambda: Sets(pool, index, offsets, np.where(np.arange(200) == 7, 9, y)),
            "instances": lambda: Sets(2 * pool, index, offsets, y),
            "sizes": lambda: Sets(pool, index, offsets[-1] - offsets[::-1], y),
            "weights": lambda: Sets(pool, index, offsets, y, weights=np.linspace(0.5, 1, 200)),
        }[what]()
        before = stopped.read_bytes()
        with pytest.raises(InputError, match="its training data differs"):
            fit(network(), other, make(50, seed=1), recipe=HOW, checkpoint=stopped)
        with pytest.raises(InputError, match="its validation data differs"):
            fit(network(), sets, other, recipe=HOW, checkpoint=stopped)
        assert stopped.read_bytes() == before

    def test_what_was_not_recorded_is_not_compared(self, make, stopped):
        """A checkpoint from before sets were told apart goes on."""
        old = Checkpoint.read(stopped)
        del old.about["training data"], old.about["validation data"]
        old.write(stopped)
        _, history = train(make, stopped)
        assert len(history) == HOW.epochs

    def test_another_network(self, make, stopped):
        with pytest.raises(InputError, match="belongs to another network"):
            train(make, stopped, model=network(hidden=9))

    @pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
    def test_damaged(self, make, stopped, damage):
        data = stopped.read_bytes()
        stopped.write_bytes(
            {
                "cut": data[:-100],
                "flipped": data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
                "empty": b"",
                "text": b"these are not the bytes you are looking for",
            }[damage]
        )
        with pytest.raises(InputError, match=rf"{stopped} is damaged \(.+\); remove it"):
            train(make, stopped)

    def test_newer(self, make, stopped, monkeypatch):
        monkeypatch.setattr("capnets.training.checkpoint.FORMAT", 2)
        Checkpoint.read(stopped).write(stopped)
        monkeypatch.undo()
        with pytest.raises(InputError, match=r"written by a newer version of capnets; upgrade"):
            train(make, stopped)


class TestTensors:
    def test_round_trip(self, tmp_path):
        tensors = {"a": torch.randn(3, 2).T, "b": torch.tensor(5), "c.d": torch.empty(0, 4)}
        write_tensors(tmp_path / "t", tensors, {"x": [1, {"y": None}]})
        again, about = read_tensors(tmp_path / "t")
        assert about == {"x": [1, {"y": None}]}
        assert again.keys() == tensors.keys()
        for name, value in tensors.items():
            assert torch.equal(again[name], value)
            assert again[name].dtype == value.dtype

    def test_same_tensors_same_bytes(self, tmp_path):
        for name in "ab":
            tensors = {k: torch.ones(3) for k in ("x", "y", "z")}
            write_tensors(tmp_path / name, tensors, {"p": 1, "q": 2})
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_every_flipped_bit_is_seen(self, tmp_path):
        path = tmp_path / "t"
        write_tensors(path, {"a": torch.arange(4.0)}, {})
        data = path.read_bytes()
        for place in range(len(data)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
            try:
                tensors, _ = read_tensors(path)
            except Damaged:
                continue
            # Only in the header's own words can a bit be wrong and nothing else.
            assert torch.equal(tensors.get("a", torch.zeros(())), torch.arange(4.0)), place

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_tensors(tmp_path / "t")
