"""Fixtures of the scheduler tests."""

import pytest

from paper.processes import settled, swept


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The records of a sweep that nothing happened to, and how many lines they are."""
    folder = tmp_path_factory.mktemp("undisturbed") / "r"
    assert swept(folder)
    return settled(folder)
