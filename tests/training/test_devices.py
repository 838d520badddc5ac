"""Two processes that share every batch give the results of one."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import sharing
from capnets.errors import InputError
from capnets.runs import Run
from capnets.training.device import make_fabric
from processes import Command


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return sharing.train(1, tmp_path_factory.mktemp("alone") / "one")[0]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return sharing.train(2, tmp_path_factory.mktemp("two") / "two")


class TestTwo:
    def test_same_losses_as_one(self, alone, two):
        for part in ("train", "valid", "rate"):
            expected = [line[part] for line in alone["history"]]
            assert [line[part] for line in two[0]["history"]] == pytest.approx(expected, rel=1e-5)

    def test_same_weights_as_one(self, alone, two):
        for name, value in alone["state"].items():
            torch.testing.assert_close(two[0]["state"][name], value, rtol=1e-4, atol=1e-6)

    def test_both_end_with_the_same_bits(self, two):
        for name, value in two[0]["state"].items():
            assert torch.equal(two[1]["state"][name], value)
        for one, other in zip(two[0]["history"], two[1]["history"], strict=True):
            assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_accumulated_batches_are_shared(tmp_path, alone):
    """Two processes that read two batches each before a step do what one does with one."""
    two = sharing.train(2, tmp_path / "two", batch_size=25, accumulate=2)
    assert two[0]["history"][-1]["train"] == pytest.approx(alone["history"][-1]["train"], rel=1e-5)
    for name, value in alone["state"].items():
        torch.testing.assert_close(two[0]["state"][name], value, rtol=1e-4, atol=1e-6)


def test_priors_reach_all_processes(tmp_path, alone):
    """Added values are a method of the network: the wrapper around it has to know that."""
    one = sharing.train(1, tmp_path / "one", priors=True)[0]
    two = sharing.train(2, tmp_path / "two", priors=True)
    assert one["history"][-1]["train"] != alone["history"][-1]["train"]
    for name, value in two[0]["state"].items():
        assert torch.equal(two[1]["state"][name], value)
    # The mean over instances is taken in each process, and sets differ in size.
    assert two[0]["history"][-1]["valid"] == pytest.approx(one["history"][-1]["valid"], rel=0.05)


def test_one_device_needs_no_lightning():
    """The same bits as with a `Fabric` of one device, without the import, which takes seconds."""
    code = """
import sys
import torch
import sharing
from capnets.estimators import SetRegressor
from capnets.runs.config import versions

sys.modules["lightning_fabric"] = None  # an import raises
def state(**given):
    settings = dict(hidden=4, members=1, epochs=2, early_stopping=False, random_state=0)
    model = SetRegressor("c-gru", **settings).fit(sharing.sets_of(60, 0), **given)
    return list(model.model_.state_dict().values())
alone = state()
del sys.modules["lightning_fabric"]
from lightning_fabric import Fabric
with_fabric = state(fabric=Fabric(accelerator="cpu", devices=1))
print(all(map(torch.equal, alone, with_fabric)), "torch" in versions())
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert found.stdout.split() == ["True", "True"]


def test_several_devices_without_the_extra(monkeypatch):
    monkeypatch.setattr("capnets.errors.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"several devices needs .*'capnets\[devices\]'"):
        make_fabric(2)


@pytest.mark.slow
def test_command_line(tmp_path):
    """`--devices` starts the command once more for every other process."""
    options = ["--sets", 500, "--valid-sets", 100, "--test-sets", 100, "--epochs", 1]
    found = {}
    for devices in (1, 2):
        folder = tmp_path / str(devices)
        command = Command(
            "task", "train", "US:digits", *options, "--devices", devices, "-o", folder,
            log=tmp_path / f"{devices}.log",
        )  # fmt: skip
        assert command.wait() == 0, command.output
        assert command.output.count("The run is in") == 1, "one of them speaks"
        found[devices] = Run(folder).metrics
    assert found[2]["valid"]["mse"] == pytest.approx(found[1]["valid"]["mse"], rel=1e-2)


@pytest.mark.slow
def test_files_on_the_command_line(tmp_path):
    """Every process reads the file; the first one chooses the network and writes the run."""
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"basket": np.repeat(np.arange(201), draw.integers(1, 9, 201))})
    rows["price"] = draw.uniform(1, 9, len(rows)).round(2)
    rows["worth"] = rows.groupby("basket").price.transform("sum").round(2)
    rows.to_parquet(tmp_path / "baskets.parquet")
    options = ["--set-column", "basket", "--target", "worth", "--epochs", 2, "--members", 1]
    found = {}
    for devices in (1, 2):
        folder = tmp_path / str(devices)
        command = Command(
            "train", tmp_path / "baskets.parquet", *options, "--devices", devices, "-o", folder,
            log=tmp_path / f"{devices}.log",
        )  # fmt: skip
        assert command.wait() == 0, command.output
        assert command.output.count("The run is in") == 1, "one of them speaks"
        found[devices] = Run(folder)
    assert found[2].config == found[1].config
    for part in ("train", "test"):
        one, two = (found[n].metrics[part]["mse"] for n in (1, 2))
        assert two == pytest.approx(one, rel=1e-3)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    return {n: sharing.train(n, folder / str(n), estimator=True) for n in (1, 2)}


class TestEstimator:
    def test_same_weights_as_one(self, fitted):
        [alone], (first, _) = fitted[1], fitted[2]
        for name, value in alone["state"].items():
            torch.testing.assert_close(first["state"][name], value, rtol=1e-4, atol=1e-6)

    def test_all_processes_agree(self, fitted):
        """Without a seed, the first process draws one for all."""
        first, second = fitted[2]
        assert first["seed"] == second["seed"]
        for name, value in first["state"].items():
            assert torch.equal(second["state"][name], value)
