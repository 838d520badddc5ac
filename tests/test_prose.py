"""Numbers in sentences of the documentation are those of the records."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def prose(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    import prose

    yield prose
    from capnets.models import MODELS

    MODELS.pop("difference", None)  # benchmarks/future.py registers it
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_pages_say_what_the_records_say():
    script = [sys.executable, str(FOLDER / "prose.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_numbers_are_replaced_across_a_line_break(prose):
    page = "It is off by 0.1\nto 2 units, in 3 cases."
    after = prose.with_numbers(page, "off by {} to {} units", ["0.2", "40"])
    assert after == "It is off by 0.2\nto 40 units, in 3 cases."


@pytest.mark.parametrize("page", ["Nothing of the kind.", "It has 1 part. It has 2 parts."])
def test_a_sentence_that_is_not_on_the_page_once_is_an_error(prose, page):
    with pytest.raises(SystemExit, match="once"):
        prose.with_numbers(page, "has {} part", ["3"])


def test_a_changed_record_is_noticed(prose, tmp_path, monkeypatch):
    """The count of pairs on other test sets falls if one capacity network gets worse."""
    import prose_numbers

    lines = prose_numbers.read(FOLDER / "pairs.jsonl")
    for line in lines:
        if (line["model"], line["task"]) == ("c-gru", "US"):
            line["shared"] += 100
    monkeypatch.setattr(prose_numbers, "read", lambda path: lines)
    with pytest.raises(SystemExit, match=r"beyond-the-paper\.md: the records say"):
        prose.tie(prose.SENTENCES, check=True)
