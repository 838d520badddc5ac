"""Estimate the lowest error that misclassified digits allow for set predictions.

    python benchmarks/heldout/limit.py [--readers NAME ...] [--noise]

Readers are classifiers trained on the classes of 50,000 single training images. Set networks never
see these classes; readers only measure how well images can be classified. Their probabilities are
calibrated (one temperature) on the other 10,000 training images. On the held-out test sets of every
task, the script measures the error of

- `told`: the label of the most probable classes, and
- `mean`: the mean label under the probabilities, the best prediction if they are calibrated.

--noise: the same for classes of which a share was replaced at random. One line per reader and task
is appended to records.jsonl; recorded results are reused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from data import JUDGED_SETS, SIZE, Data, record, recorded
from expected_labels import mean_labels
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from capnets.evaluate import predict
from capnets.metrics import mse
from capnets.models import build
from capnets.models.base import SetModel
from capnets.sets import Sets
from capnets.tasks.functions import find_function
from capnets.training.callbacks import EpochEnd
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

TASKS = ("US", "WTri", "US+S")
WEIGHTS = Path("runs/heldout")
SHARES = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02)
READINGS = 8
#: What a reader sees, for how many epochs, whether pictures are warped, and how often it looks; the
#: probabilities of several are averaged.
PATCHES, WARPED = ("patches", 10, False, 1), ("none", 8, True, READINGS)
READERS = {
    "patches": [PATCHES],
    "convolutions": [("none", 5, False, 1)],
    "convolutions, warped": [("none", 8, True, 1)],
    "convolutions, warped, 8 readings": [WARPED],
    "patches and convolutions, warped, 8 readings": [PATCHES, WARPED],
}


def main() -> None:
    """Every reader asked for that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", nargs="*", default=list(READERS), choices=READERS)
    parser.add_argument("--noise", action="store_true", help="classes replaced at random instead")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.noise:
        return noise()
    for name in given.readers:
        if not all(recorded({"kind": "limit", "reader": name, "task": t}) for t in TASKS):
            judge(name)


def judge(name: str) -> None:
    """Predict sets with what a reader says, or several."""
    test = Data.load("test")
    judged, classes = test.images.rows("test"), test.images.classes
    p = np.zeros((len(classes), 10))
    p[judged] = np.mean([probabilities(*look) for look in READERS[name]], axis=0)
    told = p.argmax(1)
    for task in TASKS:
        sets = test.sets(task, test.instances("patches"), part="test", count=JUDGED_SETS)
        function = find_function(task)
        by_class = function.value(told[sets.index], sets.offsets)
        by_mean = mean_labels(function.name, p[sets.index].reshape(-1, SIZE, 10))
        record(
            {"kind": "limit", "reader": name, "task": task},
            {
                "confused": float((told[judged] != classes[judged]).mean()),
                "told": round(mse(sets.y, by_class), 4),
                "mean": round(mse(sets.y, by_mean), 4),
            },
        )


def probabilities(embedding: str, epochs: int, warped: bool, readings: int) -> np.ndarray:
    """Train a reader, calibrate it, and give its probabilities for the test images."""
    choose, test = Data.load("choose"), Data.load("test")
    model = reader(choose, embedding, epochs=epochs, warped=warped)
    pool, kept = test.instances(embedding), choose.images.rows("test")
    torch.manual_seed(0)  # of the warps
    looks = [
        np.stack([logits(model, pool, rows, warped=readings > 1) for _ in range(readings)])
        for rows in (kept, test.images.rows("test"))
    ]
    heat = temperature(looks[0], test.images.classes[kept])
    shares: np.ndarray = softmax(looks[1] / heat, axis=2).mean(0)
    return shares


def reader(data: Data, embedding: str, *, epochs: int, warped: bool) -> SetModel:
    """Train a classifier of single images: `fit` on sets of one instance."""
    inputs = "pictures" if embedding == "none" else "none"
    model = build("deepset", outputs=10, hidden=64, layers=1, inputs=inputs, warp=warped, seed=0)
    sets = data.singles(data.instances(embedding), data.images.classes.astype(np.float32))
    recipe = Recipe(epochs=epochs, batch_size=125, learning_rate=3e-3)
    WEIGHTS.mkdir(parents=True, exist_ok=True)
    path = WEIGHTS / f"reader-{embedding}-{epochs}-{warped}.safetensors"
    fit(
        model, sets, recipe=recipe, loss="softmax", checkpoint=path,
        callbacks=[EpochEnd(lambda line: print(line, flush=True))],
    )  # fmt: skip
    return model


@torch.no_grad()
def logits(model: SetModel, pool: np.ndarray, rows: np.ndarray, *, warped: bool) -> np.ndarray:
    """Return the logits of a reader for single images, as they are or warped."""
    if not warped:
        return predict(model, Sets(pool, rows, np.arange(len(rows) + 1)))
    model.train()  # the mode in which pictures are warped; nothing else depends on it
    parts = torch.from_numpy(rows).split(1000)
    found = torch.cat([model(torch.from_numpy(pool[part.numpy()])[:, None]) for part in parts])
    return found.numpy()


def temperature(looks: np.ndarray, classes: np.ndarray) -> float:
    """Return the temperature of the logits that fits the calibration images best."""

    def surprise(logarithm: float) -> float:
        shares = np.exp(log_softmax(looks / np.exp(logarithm), axis=2)).mean(0)
        return float(-np.log(shares[np.arange(len(classes)), classes]).mean())

    return float(np.exp(minimize_scalar(surprise, bounds=(-2, 2), method="bounded").x))


def noise() -> None:
    """Measure the error if a share of the classes is replaced by random ones."""
    stream = np.random.default_rng(0)
    sets = 200_000
    offsets = np.arange(sets + 1) * SIZE
    classes = stream.integers(10, size=sets * SIZE)
    for share in SHARES:
        replaced = stream.random(len(classes)) < share
        told = np.where(replaced, stream.integers(10, size=len(classes)), classes)
        for task in TASKS:
            choice = {"kind": "noise", "share": share, "task": task}
            value = find_function(task).value
            found = mse(value(classes, offsets), value(told, offsets))
            if not recorded(choice):
                record(
                    choice,
                    {"confused": float((told != classes).mean()), "told": round(found, 4)},
                )


if __name__ == "__main__":
    main()
