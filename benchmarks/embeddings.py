"""Compare embeddings by the accuracy of a small classifier trained on each.

    python benchmarks/embeddings.py [SOURCE ...] [--embedding NAME ...] [--test]

The classifier (the probe) has the size of the encoder. It is trained on 50,000 training images and
evaluated on the other 10,000; with --test, it is trained on all of them and evaluated on the test
images. Only the probe uses the classes (and `cnn`, by design). One line per result is appended to
benchmarks/embeddings.jsonl. Times are processor seconds with one thread, recorded only for
embeddings that were not cached.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from capnets.nn.encoders import mlp
from capnets.runs import versions
from capnets.tasks.embeddings import EMBEDDINGS, embed
from capnets.tasks.images import Images, load_images

RECORDS = Path(__file__).with_suffix(".jsonl")
EPOCHS, BATCH, RATE = 30, 250, 3e-3


def main() -> None:
    """Probe every embedding asked for, on every source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", default=["mnist", "fashion-mnist"])
    parser.add_argument("--embedding", nargs="*", default=[e for e in EMBEDDINGS if e != "none"])
    parser.add_argument("--test", action="store_true", help="judge on the test images")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for source in given.sources:
        images = load_images(source)
        for embedding in given.embedding:
            begin = time.process_time()
            features = torch.from_numpy(embed(images, embedding)).flatten(1)
            seconds = time.process_time() - begin
            learn, judge = parts(images, test=given.test)
            classes = torch.from_numpy(images.classes)
            figures = probe(features, classes, learn=learn, judge=judge, seed=given.seed)
            record = {
                "source": source, "embedding": embedding, "seed": given.seed,
                "judged_on": "test" if given.test else "train", **figures,
                "seconds": round(seconds, 1), "versions": versions(),
            }  # fmt: skip
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(
                f"{source:14}{embedding:9} learned {figures['learned']:7.2%}  "
                f"judged on {record['judged_on']} images {figures['judged']:7.2%}  {seconds:.0f} s",
                flush=True,
            )


def parts(images: Images, *, test: bool) -> tuple[Tensor, Tensor]:
    """Return the training rows and the evaluation rows."""
    if test:
        return torch.from_numpy(images.rows("train")), torch.from_numpy(images.rows("test"))
    order = torch.randperm(images.train, generator=torch.Generator().manual_seed(123))
    cut = images.train * 5 // 6
    return order[:cut], order[cut:]


def probe(
    features: Tensor, classes: Tensor, *, learn: Tensor, judge: Tensor, seed: int
) -> dict[str, float]:
    """Train the paper's encoder with ten outputs, one-cycle; shares of classes told right."""
    torch.manual_seed(seed)
    network = mlp(features.shape[1], 64, 64, 32, 10)
    optimizer = torch.optim.Adam(network.parameters())
    steps = EPOCHS * -(-len(learn) // BATCH)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    for _ in range(EPOCHS):
        for rows in learn[torch.randperm(len(learn))].split(BATCH):
            loss = F.cross_entropy(network(features[rows]), classes[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    with torch.no_grad():
        return {
            name: (network(features[rows]).argmax(1) == classes[rows]).double().mean().item()
            for name, rows in (("learned", learn), ("judged", judge))
        }


if __name__ == "__main__":
    main()
