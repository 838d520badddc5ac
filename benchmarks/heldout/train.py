"""Train networks on set labels alone and evaluate them on sets of unseen images.

    python benchmarks/heldout/train.py WAY ... [--tasks US WTri US+S] [--cut test] [--epochs N]

Ways from images to a prediction, all with C-DeepSet:

patches     features of `patches`, made without labels; nothing is learned from pixels
pictures    convolutions, end to end
warped      convolutions, end to end; images are warped at random in every step
taught      convolutions distilled, on warped single images, from the encoder of `patches`: each
            image is processed once, not once per set
tuned       `taught`, then fine-tuned end to end on set labels, warped
averaged    the mean of the predictions of `patches` and `taught`

Choices are made with `--cut choose` (see data.py); reported figures come from `--cut test`. Each
network is evaluated in four ways: as it is, as the mean over 8 orders, over 8 warped readings, and
over 8 of both. One line per training is appended to records.jsonl; recorded trainings are skipped,
and interrupted ones resume from their checkpoints. Times are processor seconds with one thread,
summed over all stages.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import JUDGED_SETS, Data, record, recorded
from torch import Tensor, nn

from capnets.evaluate import added_values, predict
from capnets.files import write_json
from capnets.metrics import added_value_error, mse
from capnets.models import build, parameters
from capnets.models.base import SetModel
from capnets.nn.encoders import ConvEncoder
from capnets.sets import Sets
from capnets.tasks.functions import find_function
from capnets.training.callbacks import EpochEnd
from capnets.training.fit import fit
from capnets.training.recipe import Recipe

WEIGHTS = Path("runs/heldout")
AVERAGED = 8
#: Ways of being judged, and what stands in for a network that reads no pictures.
JUDGED = {"given": "given", "orders": "orders", "readings": "given", "both": "orders"}
RECIPES = {
    "patches": Recipe(epochs=20),
    "pictures": Recipe(epochs=8, learning_rate=2e-3),
    "warped": Recipe(epochs=8, learning_rate=2e-3),
    "taught": Recipe(epochs=8, batch_size=125, learning_rate=3e-3),
    "tuned": Recipe(epochs=1, batch_size=100, learning_rate=1e-3, start="torch", scale=False),
    "averaged": Recipe(epochs=8, batch_size=125, learning_rate=3e-3),  # those of `taught`
}


class Taught(nn.Module):
    """Return the features that a student computes for every picture."""

    def __init__(self, student: SetModel) -> None:
        super().__init__()
        self.student = student

    def forward(self, x: Tensor) -> Tensor:
        """Pictures of sets to features of sets."""
        return self.student(x.flatten(0, 1)[:, None]).view(*x.shape[:2], -1)


def main() -> None:
    """Every training asked for that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ways", nargs="*", choices=RECIPES)
    parser.add_argument("--tasks", nargs="*", default=["US"])
    parser.add_argument("--cut", choices=("choose", "test"), default="test")
    parser.add_argument("--sets", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--rate", type=float, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for task, way in product(given.tasks, given.ways):
        recipe = RECIPES[way]
        choice = {
            "kind": "network", "way": way, "task": task, "cut": given.cut, "sets": given.sets,
            "epochs": given.epochs or recipe.epochs, "rate": given.rate or recipe.learning_rate,
        }  # fmt: skip
        if not recorded(choice):
            data = Data.load(given.cut)
            models, seconds = networks(choice, data)
            record(choice, judge(models, data, task) | {"seconds": round(seconds, 1)})


def networks(choice: dict[str, Any], data: Data) -> tuple[list[SetModel], float]:
    """Return the trained networks to average, and their total time in seconds."""
    if choice["way"] != "averaged":
        model, seconds = network(choice, data)
        return [model], seconds
    features, _ = network(earlier(choice, "patches"), data)
    pictures, seconds = network(earlier(choice, "taught"), data)  # its first stage is the other one
    return [features, pictures], seconds


def network(choice: dict[str, Any], data: Data) -> tuple[SetModel, float]:
    """Return the trained network of a way, and the seconds of all its stages."""
    way, task = choice["way"], choice["task"]
    if way == "taught":
        return taught(choice, data)
    if way == "tuned":
        model, before = taught(earlier(choice, "taught"), data)
    else:
        before = 0.0
        inputs = "none" if way == "patches" else "pictures"
        model = build("c-deepset", inputs=inputs, warp=way == "warped", seed=0)
    pool = data.instances("patches" if way == "patches" else "none")
    sets = data.sets(task, pool, part="train", count=choice["sets"])
    return model, before + train(model, sets, choice)


def taught(choice: dict[str, Any], data: Data) -> tuple[SetModel, float]:
    """Convolutions in the place of an encoder that read features."""
    teacher, before = network(earlier(choice, "patches"), data)
    features = torch.from_numpy(data.instances("patches")[: data.images.train])
    with torch.no_grad():
        encoded = teacher.encoder(features[None])[0].numpy()
    student = build(
        "deepset", outputs=encoded.shape[1], hidden=64, layers=1, inputs="pictures", warp=True,
        seed=0,
    )  # fmt: skip
    seconds = train(student, data.singles(data.instances("none"), encoded), choice)
    teacher.inputs, teacher.encoder, teacher.in_features = Taught(student), nn.Identity(), None
    return teacher, before + seconds


def earlier(choice: dict[str, Any], way: str) -> dict[str, Any]:
    """Return the settings of an earlier stage: those of its way, on all sets."""
    recipe = RECIPES[way]
    return choice | {
        "way": way, "sets": 100_000, "epochs": recipe.epochs, "rate": recipe.learning_rate
    }  # fmt: skip


def train(model: SetModel, sets: Sets, choice: dict[str, Any]) -> float:
    """Fit, or go on from a checkpoint, which may be finished; seconds of the processor."""
    recipe = RECIPES[choice["way"]]
    changed = {"epochs": choice["epochs"], "learning_rate": choice["rate"]}
    recipe = Recipe.from_dict(recipe.to_dict() | changed)
    name = "-".join(str(choice[k]) for k in ("way", "task", "cut", "sets", "epochs", "rate"))
    WEIGHTS.mkdir(parents=True, exist_ok=True)
    path = WEIGHTS / f"{name}.safetensors"
    clock = Clock(path.with_suffix(".json"))

    def tell(line: dict[str, Any]) -> None:
        clock.tick()
        print(choice["way"], choice["task"], line, f"{clock.seconds:.0f} s", flush=True)

    fit(model, sets, recipe=recipe, checkpoint=path, callbacks=[EpochEnd(tell)])
    return clock.seconds


class Clock:
    """Seconds of the processor that a training took, also when it was stopped in between."""

    def __init__(self, path: Path) -> None:
        self.path, self.last = path, time.process_time()
        self.seconds = json.loads(path.read_text()) if path.exists() else 0.0

    def tick(self) -> None:
        """Count what went by since the last tick."""
        now = time.process_time()
        self.seconds, self.last = self.seconds + now - self.last, now
        write_json(self.path, self.seconds)


def judge(models: list[SetModel], data: Data, task: str) -> dict[str, Any]:
    """Errors on sets of images that were not trained on, of the mean over networks."""
    answers = [answer(model, data, task) for model in models]
    sets = data.sets(task, data.instances("patches"), part="test", count=JUDGED_SETS)
    expected = find_function(task).added_values(data.images.classes[sets.index], sets.offsets)
    values = mean([found.pop("values") for found in answers])
    errors = {
        name: mse(sets.y, mean([found.get(name, found[instead]) for found in answers]))
        for name, instead in JUDGED.items()
        if any(name in found for found in answers)
    }
    errors["added_value_error"] = added_value_error(expected, values)
    rounded = {name: round(error, 4) for name, error in errors.items()}
    return rounded | {"parameters": sum(parameters(model) for model in models)}


def answer(model: SetModel, data: Data, task: str) -> dict[str, np.ndarray]:
    """Return the predictions of a network in all ways of evaluation."""
    reads = any(isinstance(m, ConvEncoder) for m in model.modules())
    pool = data.instances("none" if reads else "patches")
    sets = data.sets(task, pool, part="test", count=JUDGED_SETS)
    generator = torch.Generator().manual_seed(0)
    rest = copy.deepcopy(model)
    rest.inputs = nn.Identity()
    plain = read(model, sets, warped=False) if reads else sets
    found = {
        "given": predict(rest, plain),
        "orders": mean([predict(rest, plain.shuffled(generator)) for _ in range(AVERAGED)]),
        "values": added_values(rest, plain),
    }
    if reads:
        torch.manual_seed(0)
        readings = [read(model, sets, warped=True) for _ in range(AVERAGED)]
        found["readings"] = mean([predict(rest, again) for again in readings])
        found["both"] = mean([predict(rest, again.shuffled(generator)) for again in readings])
    return found


@torch.no_grad()
def read(model: SetModel, sets: Sets, *, warped: bool) -> Sets:
    """Return the sets with image features of the network's inputs, computed once per image."""
    model.eval()
    for module in model.modules():
        if isinstance(module, ConvEncoder):
            module.warp = warped
            module.train(warped)
    rows = np.unique(sets.index)
    parts = torch.from_numpy(rows).split(1000)
    features = [
        model.inputs(torch.from_numpy(sets.instances[p.numpy()])[:, None])[:, 0] for p in parts
    ]
    pool = np.zeros((len(sets.instances), features[0].shape[1]), dtype=np.float32)
    pool[rows] = torch.cat(features).numpy()
    return Sets(pool, sets.index, sets.offsets, sets.y)


def mean(predictions: list[np.ndarray]) -> np.ndarray:
    """Return the mean of several predictions of every set."""
    return np.mean(predictions, axis=0)


if __name__ == "__main__":
    main()
