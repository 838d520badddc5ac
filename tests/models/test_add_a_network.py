"""Follow docs/how-to/add-a-network.md literally, in a package of its own."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from capnets.errors import InputError
from capnets.export.compare import compare
from capnets.export.onnx import graphs
from capnets.models import MODELS, AdditiveModel
from capnets.models.registry import Registry
from capnets.nn.encoders import mlp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add-a-network.md").read_text()


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The file and the line of the page, as an installed package has them."""
    (tmp_path / "independent.py").write_text(block("python"))
    points = tomllib.loads(block("toml"))["project"]["entry-points"]
    lines = [
        line
        for group, entries in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    info = tmp_path / "independent-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: independent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(package: Path, *command: str) -> str:
    paths = os.pathsep.join([str(package), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=package,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_page(package):
    """Contract checks, the list of networks, training on a file, and export."""
    assert "'values_sum_to_prediction'" in run(package, "-c", block("python", 1))
    draw = np.random.default_rng(0)
    basket = np.repeat(np.arange(60), 3)
    frame = pd.DataFrame({"basket": basket, "price": draw.normal(size=180)})
    frame["worth"] = frame.groupby("basket")["price"].transform("sum")
    frame.to_csv(package / "baskets.csv", index=False)
    commands = [shlex.split(line)[2:] for line in block("console").splitlines()]
    assert [words[0] for words in commands] == ["models", "train", "export"]
    commands[1] += ["--epochs", "2", "--members", "1"]
    listed, _, _ = [run(package, "-m", "capnets", *words) for words in commands]
    assert "independent" in listed
    code = "from capnets.export.engine import Engine; print(Engine('exported').additive)"
    assert run(package, "-c", code).strip() == "True"


class Plain(AdditiveModel):
    """An additive network without an ONNX graph."""

    def __init__(self, compute):
        super().__init__(in_features=3, outputs=2)
        self.encoder, self.decoder, self.wide = mlp(3, 4), mlp(4, 2), mlp(8, 2)
        self.register_buffer("shift", torch.arange(2.0))
        self.compute = compute

    def values(self, x):
        return self.compute(self, x)


TRANSLATED = {
    "layers": lambda net, x: net.decoder(net.encoder(x).relu()),
    "operators": lambda net, x: -net.decoder(torch.tanh(net.encoder(x)) * 2 - 1) / 3 + net.shift,
    "functions": lambda net, x: F.softplus(net.decoder(F.relu(net.encoder(x)))).abs(),
    "features": lambda net, x: net.wide(torch.cat([net.encoder(x), net.encoder(x).exp()], -1)),
}
REFUSED = {
    "cumsum": lambda net, x: net.decoder(net.encoder(x).cumsum(1)),
    "softmax": lambda net, x: net.decoder(torch.softmax(net.encoder(x), dim=1)),
    "control flow": lambda net, x: net.decoder(net.encoder(x)) if x.sum() > 0 else x[..., :2],
}


@pytest.mark.parametrize("compute", TRANSLATED.values(), ids=TRANSLATED)
def test_values_of_single_instances_are_translated(compute):
    model = Plain(compute).eval()
    assert compare(model, graphs(model)) < 1e-5


@pytest.mark.parametrize("compute", REFUSED.values(), ids=REFUSED)
def test_a_network_without_a_graph_says_so(compute):
    with pytest.raises(InputError, match=r"no ONNX graph for a network of type Plain: .*register"):
        graphs(Plain(compute))


class Point:
    name, value = "gru", "elsewhere:ENTRY"

    def __init__(self, entry):
        self.entry = entry

    def load(self):
        return self.entry


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (object(), "must be a capnets.models.Entry"),
        (MODELS["gru"], "two networks are named 'gru': see elsewhere:ENTRY"),
    ],
)
def test_wrong_entry_points(entry, words, monkeypatch):
    monkeypatch.setattr("capnets.models.registry.entry_points", lambda group: [Point(entry)])
    with pytest.raises(InputError, match=words):
        _ = Registry({"gru": MODELS["gru"]}).plug_ins
