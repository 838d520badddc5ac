"""Statements, links and calls in the documentation are correct."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

import capnets
from capnets.cli import app

ROOT = Path(__file__).parent.parent
PACKAGE = Path(capnets.__file__).parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
#: Pages that `make docs` writes.
GENERATED = {
    ROOT / line.strip("/") for line in (ROOT / ".gitignore").read_text().split() if "/docs/" in line
}


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def document(request) -> Path:
    return request.param


def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        if not re.match(r"[a-z]+:", target):
            path = (document.parent / target).resolve()
            assert path.exists() or path in GENERATED, f"{document.name} links to {target}"


def test_make_targets_exist(document):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z]+)`", document.read_text())) <= targets


def test_every_room_is_described_and_has_its_layer():
    rooms = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("_")}
    rooms -= {"py.typed"}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = set(re.findall(r"\w+", " ".join(contract["contracts"][0]["layers"])))
    for room in rooms:
        assert f"`{room if room.endswith('.py') else room + '/'}`" in text, (
            f"{room} is not described"
        )
        assert room.removesuffix(".py") in layers


def test_paths_named_in_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in re.findall(r"`((?:src|tests)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path


def test_citation_is_of_this_version_and_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == capnets.__version__
    assert "Capacity Networks" in citation["preferred-citation"]["title"]


def test_changelog_has_a_place_for_the_next_change():
    assert re.search(r"^## \[Unreleased\]$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_every_promise_has_its_test():
    page = (ROOT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", page)
    assert len(named) > 15
    for path, name in named:
        assert f"def {name}" in (ROOT / path).read_text() if name else (ROOT / path).exists(), path


def test_the_command_line_reference_has_every_command(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import command_line

    sys.modules.pop("command_line")
    command_line.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    for name, command in get_command(app).commands.items():
        assert (f"## capnets {name}" in page) != command.hidden
        group = hasattr(command, "commands") or command.hidden
        for option in () if group else command.params:
            assert option.opts[0] in page or option.hidden, f"capnets {name} {option.opts[0]}"
