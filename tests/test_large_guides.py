"""The commands and the code of the guides on large data and slides run."""

import re
import shlex

import numpy as np
import pytest

from commands import speaker
from feature_folders import make_folder
from pages import DOCS, run_code


def test_code_of_large_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_code(DOCS / "how-to" / "large-data.md")
    assert names["sets"].instances.dtype == np.float16


def test_commands_and_code_of_slides(tmp_path, monkeypatch, capsys):
    guide = DOCS / "how-to" / "slides.md"
    make_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    say = speaker(tmp_path / "log")
    blocks = re.findall(r"^```bash\n(.*?)^```", guide.read_text(), re.M | re.S)
    lines = [line for line in "".join(blocks).replace("\\\n", " ").splitlines() if line.strip()]
    commands = [shlex.split(line)[1:] for line in lines]
    assert [c[0] for c in commands] == ["train", "predict", "evaluate", "explain", "explain"]
    for command in commands:
        answer = say(*command)
        assert answer.code == 0, answer.text
    assert (tmp_path / "slides.html").read_text().count('class="map"') == 2
    assert {p.name for p in (tmp_path / "maps").iterdir()} == {"s5.png", "s5.geojson"}
    assert (tmp_path / "maps" / "s5.png").read_bytes()[:4] == b"\x89PNG"
    run_code(guide)
    regions, whole = map(float, capsys.readouterr().out.split())
    assert regions == pytest.approx(whole)
