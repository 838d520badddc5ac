"""Requirements and pins agree with each other and with the installed versions."""

import re
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINES = [
    line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")
]
PINS = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LINES}
REQUIREMENTS = [
    Requirement(text)
    for group in (
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
    )
    for text in group
]


#: Large packages that only `make engines` installs.
BY_ENGINES = ("ray", "pyspark")


@pytest.mark.parametrize("line", LINES)
def test_pin_is_exact(line):
    assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line)


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda r: r.name)
def test_requirement_has_a_lower_bound_and_a_pin_that_is_installed(requirement):
    assert [s.operator for s in requirement.specifier] == [">="]
    pin = PINS[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pin)
    if requirement.name in BY_ENGINES and not find_spec(requirement.name):
        pytest.skip("installed by `make engines`")
    assert Version(version(requirement.name)).public == Version(pin).public


def test_torch_is_pinned():
    assert "torch==2.13.0" in LINES


def test_makefile_installs_every_extra():
    extras = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    known = set(PROJECT["project"]["optional-dependencies"])
    assert set(extras[1].split(",")) == known - {"ray", "spark"}
