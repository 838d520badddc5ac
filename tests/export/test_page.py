"""The code on docs/how-to/export.md runs, from top to bottom."""

import re
from pathlib import Path

import numpy as np

from capnets.models import build

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "export.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {
        "run": build("c-gru", in_features=3, seed=0),
        "sets": [np.ones((2, 3)), np.ones((5, 3))],
        "instances": np.ones((4, 3)),
        "one_each": np.ones((1000, 3)),
        "five_for_two": np.ones((2, 5, 3)),
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec("\n".join(blocks), names)
    assert names["worth"] == np.float64(names["values"].sum(dtype=float))
    assert len(names["again"]) == 4
    assert names["streams"].instances[[0, 7]].tolist() == [1, 6]
