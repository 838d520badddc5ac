"""Memory and seconds per slide of training on a folder of features larger than memory should be.

    python benchmarks/slides.py [--slides 200] [--instances 20000] [--features 1024]

Writes synthetic slides as HDF5 files in float16 into a temporary folder, trains two epochs and
predicts in a process of its own, and reports the peak memory of that process. torchmil's ABMIL
takes steps on the same slides in the same process. Seconds are processor time of one thread.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

RECORDS = Path(__file__).with_suffix(".jsonl")


def write_slides(folder: Path, slides: int, instances: int, features: int) -> None:
    """Write slides whose label is the share of instances with a large first feature."""
    draw = np.random.default_rng(0)
    block = draw.standard_normal((instances, features), dtype=np.float32)
    side = int(np.ceil(instances**0.5))
    places = np.stack(np.divmod(np.arange(instances), side), 1)[:, ::-1] * 256
    lines = ["slide_id,burden"]
    (folder / "features").mkdir()
    for k in range(slides):
        share = draw.uniform(0.05, 0.5)
        x = np.roll(block, draw.integers(instances), axis=0)
        x[:, 0] += 3 * (draw.uniform(size=instances) < share)
        with h5py.File(folder / "features" / f"s{k}.h5", "w") as file:
            file["features"] = x.astype(np.float16)
            file["coords"] = places
            file["coords"].attrs["patch_size_level0"] = 256
        lines.append(f"s{k},{share:.6f}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def child(folder: Path) -> None:
    """Train and predict in this process; print a JSON object."""
    import torch

    from capnets.estimators import SetRegressor
    from capnets.ingest import Columns, FeatureFolder
    from capnets.memory import keep_freed

    torch.set_num_threads(1)
    keep_freed()
    data = FeatureFolder(folder / "features", folder / "labels.csv")
    columns = Columns(set="slide_id", target="burden")
    seconds = {}

    def timed(name, call):
        began = time.process_time()
        found = call()
        seconds[name] = time.process_time() - began
        return found

    model = SetRegressor("c-deepset", columns=columns, aggregation="mean", baseline="learned",
                         members=1, orders=1, epochs=2, random_state=0)  # fmt: skip
    problem = timed("convert and check", lambda: model.problem(data))
    seconds["train, 2 epochs"] = 0.0
    began = time.process_time()
    from capnets.learn import learn, make_plan
    from capnets.learn.averaging import mean_prediction
    from capnets.sets.orders import Orders

    plan = make_plan(problem, model.options())
    network, _ = learn(problem, plan)
    seconds["train, 2 epochs"] = time.process_time() - began
    predicted = timed("predict", lambda: mean_prediction(network, problem.train, Orders()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = float(np.square(predicted[:, 0] - problem.train.y).mean())
    record = {
        "slides": len(problem.train),
        "seconds": seconds,
        "peak_gb": peak,
        "relative_error": error / float(np.var(problem.train.y)),
        "recipe": plan.recipe.to_dict(),
        "width": plan.model.width,
        "abmil": abmil_step(problem.train),
    }
    print(json.dumps(record))


def abmil_step(sets, slides: int = 8) -> float:
    """Return the seconds of a training step of ABMIL per slide."""
    import torch
    from torchmil.models import ABMIL

    model = ABMIL(in_shape=(sets.in_features,), criterion=torch.nn.MSELoss())
    optimizer = torch.optim.AdamW(model.parameters())
    began = 0.0
    for k in range(min(slides, len(sets)) + 1):
        if k == 1:  # the first step warms up
            began = time.process_time()
        x = torch.from_numpy(np.asarray(sets[k % len(sets)])).float()[None]
        loss = (model(x) - float(sets.y[k % len(sets)])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.process_time() - began) / min(slides, len(sets))


def main() -> None:
    """Write slides, run the child, and record what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slides", type=int, default=200)
    parser.add_argument("--instances", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        child(args.child)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        folder = Path(scratch)
        write_slides(folder, args.slides, args.instances, args.features)
        command = [sys.executable, __file__, "--child", str(folder)]
        record = json.loads(subprocess.check_output(command).splitlines()[-1])
    record |= {"instances": args.instances, "features": args.features}
    with RECORDS.open("a") as file:
        file.write(json.dumps(record) + "\n")
    size = 2 * args.slides * args.instances * args.features / 1e9
    print(f"{size:.1f} GB of features, peak {record['peak_gb']:.2f} GB")
    for name, seconds in record["seconds"].items():
        print(f"{name}: {seconds / args.slides:.3f} s per slide")
    train = record["seconds"]["train, 2 epochs"] / args.slides / 2
    print(f"a step of training: {train:.3f} s per slide; ABMIL {record['abmil']:.3f}")
    print(f"error of the prediction, relative to the variance: {record['relative_error']:.3f}")


if __name__ == "__main__":
    main()
