"""The page about many machines: its commands run, and its calculation follows from a record."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "many-machines.md"


@pytest.mark.slow
def test_the_page_runs(tmp_path):
    """Run commands and Python in the order of the page, in one folder."""
    pytest.importorskip("distributed")
    blocks = re.findall(r"^```(python|console)\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    prelude = ""
    for kind, text in blocks:
        if kind == "python":
            (tmp_path / "page.py").write_text(prelude + text)
            prelude = "import pandas as pd\nrows = pd.read_parquet('baskets.parquet')\n"
            command = [sys.executable, "page.py"]
        else:
            command = [sys.executable, "-m", *shlex.split(text.removeprefix("$ "))]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert {"run", "predicted", "study"} <= {path.name for path in tmp_path.iterdir()}


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import many_machines

    yield many_machines
    for name in ("many_machines", "turns"):
        sys.modules.pop(name, None)


def test_calculation(benchmark):
    line = {"features": 16, "bytes_in": 80, "bytes_out": 20, "predict_us": 7.2}
    line["train_us"] = {"1": 36.0, "2": 20.0}
    table = "\n".join(benchmark.calculation(line))
    assert "80 GB" in table  # 10^9 x 80 bytes
    assert "2.0 hours" in table  # 10^9 x 7.2 us
    assert "cores to finish in 1 hour | 1 |" in table
    assert "10.0 hours" in table
    assert "second process | 1.80 |" in table


def test_the_page_shows_the_newest_record(benchmark):
    [line] = benchmark.newest(benchmark.RECORDS)
    for row in benchmark.calculation(json.loads(json.dumps(line))):
        assert row in PAGE.read_text()
