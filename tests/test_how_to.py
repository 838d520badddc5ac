"""Code and commands in the documentation work."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from capnets.cli import app
from pages import DOCS, run_code

ROOT = DOCS.parent
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/*.py")])
# Code of these pages needs files or entry points; tests of their own prepare them.
ELSEWHERE = {
    "add-a-network.md", "add-a-task.md", "estimators.md", "explanations.md", "export.md",
    "large-data.md", "many-machines.md", "slides.md",
}  # fmt: skip
HOW_TO = [
    path
    for path in sorted(DOCS.glob("how-to/*.md"))
    if "```python" in path.read_text() and path.name not in ELSEWHERE
]


@pytest.mark.slow
@pytest.mark.parametrize("page", HOW_TO, ids=lambda path: path.stem)
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_code(page)


def commands(page: Path) -> list[list[str]]:
    """Return the words of every `capnets` command in the blocks of a page or tutorial."""
    block = r"^#     (.*?)$" if page.suffix == ".py" else r"^```(?:console|bash|sh)\n(.*?)^```"
    blocks = re.findall(block, page.read_text(), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    calls = [line.removeprefix("$ ") for line in lines]
    return [shlex.split(call, comments=True) for call in calls if call.startswith("capnets ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_and_their_options_exist(page):
    for words in commands(page):
        command = get_command(app)
        rest = words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        assert not hasattr(command, "commands"), f"no such command: {' '.join(words)}"
        known = {name for option in command.params for name in option.opts + option.secondary_opts}
        for word in rest:
            if re.match(r"--?[a-z]", word):
                assert word.split("=")[0] in known | {"--help"}, " ".join(words)
