from pathlib import Path

import pytest

from processes import Command


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A run on digits, made by the command line."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    command = Command(
        "task", "train", "US:digits", "-m", "c-gru", "--size", "3,4", "--sets", 1000,
        "--valid-sets", 200, "--test-sets", 100, "--epochs", 5, "-o", folder,
        log=folder.with_name("log"),
    )  # fmt: skip
    assert command.wait() == 0, command.output
    return folder


@pytest.fixture(scope="session")
def reviewed(tmp_path_factory) -> Path:
    """A run on documents, made by the command line."""
    folder = tmp_path_factory.mktemp("reviewed") / "run"
    command = Command(
        "task",
        "train",
        "sentiment:ted-comments",
        "-m",
        "c-gru",
        "--epochs",
        2,
        "-o",
        folder,
        log=folder.with_name("log"),
    )
    assert command.wait() == 0, command.output
    return folder
