import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processes import Command


class Answer:
    """What a command said (standard output and error together) and how it ended."""

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text

    @property
    def json(self) -> Any:
        """The document it printed; nothing else may be printed beside it."""
        assert self.code == 0, self.text
        return json.loads(self.text)


Say = Callable[..., Answer]


@pytest.fixture
def say(tmp_path_factory) -> Say:
    return speaker(tmp_path_factory.mktemp("log") / "log")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A run on digits, made by the command line."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    command = Command(
        "train", "US:digits", "--size", "3,4", "--sets", 1000, "--valid-sets", 200,
        "--test-sets", 100, "--epochs", 5, "-o", folder, log=folder.with_name("log"),
    )  # fmt: skip
    assert command.wait() == 0, command.output
    return folder


@pytest.fixture(scope="session")
def reviewed(tmp_path_factory) -> Path:
    """A run on documents, made by the command line."""
    folder = tmp_path_factory.mktemp("reviewed") / "run"
    command = Command(
        "train", "sentiment:ted-comments", "--epochs", 2, "-o", folder, log=folder.with_name("log")
    )
    assert command.wait() == 0, command.output
    return folder


def speaker(log: Path) -> Say:
    def say(*arguments: object, **how: Any) -> Answer:
        command = Command(*arguments, log=log, **how)
        return Answer(command.wait(), command.output)

    return say
