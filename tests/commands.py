"""Run the command line and read its answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import Command


class Answer:
    """The output of a command (standard output and error together) and its exit code."""

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text

    @property
    def json(self) -> Any:
        """The document it printed; nothing else may be printed beside it."""
        assert self.code == 0, self.text
        return json.loads(self.text)


Say = Callable[..., Answer]


def speaker(log: Path) -> Say:
    def say(*arguments: object, **how: Any) -> Answer:
        command = Command(*arguments, log=log, **how)
        return Answer(command.wait(), command.output)

    return say
