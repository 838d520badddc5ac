"""Two processes that share every batch give the results of one."""

import pytest
import torch

import sharing
from capnets.runs import Run
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


def test_priors_reach_all_processes(tmp_path, alone):
    """Added values are a method of the network: the wrapper around it has to know that."""
    one = sharing.train(1, tmp_path / "one", priors=True)[0]
    two = sharing.train(2, tmp_path / "two", priors=True)
    assert one["history"][-1]["train"] != alone["history"][-1]["train"]
    for name, value in two[0]["state"].items():
        assert torch.equal(two[1]["state"][name], value)
    # The mean over instances is taken in each process, and sets differ in size.
    assert two[0]["history"][-1]["valid"] == pytest.approx(one["history"][-1]["valid"], rel=0.05)


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
