"""Compare the speed of mean added values with captum's Shapley sampling.

    python benchmarks/explain_speed.py           # writes results/explain/speed.json and speed.md

Both explain the same network and sets, at the same number of orders, on one thread. captum gets its
cheapest form as well (absent instances become zeros: no sorting, but no removal either). Times are
processor time of this process, so that other load hardly matters; repeats are interleaved and the
minimum is taken. Only the ratios are meaningful.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from captum.attr import ShapleyValueSampling
from explain_peers import captum_shapley

from capnets.explain import explain, shapley_values
from capnets.files import write_json, write_text
from capnets.models import build
from capnets.runs import versions
from capnets.sets import Sets
from capnets.sets.batch import batches

OUT = Path("results/explain")
SETS, SIZE, ORDERS, REPEATS = 1000, 20, 32, 2


def drawn(sets: int, size: int) -> Sets:
    """Random instances: only the cost matters here."""
    rng = np.random.default_rng(0)
    return Sets.from_arrays(rng.normal(size=(sets, size, 64)))


def with_zeros(model: torch.nn.Module, sets: Sets) -> None:
    """Run captum without a bridge: absent instances are vectors of zeros."""
    [batch] = batches(sets, size=len(sets))
    groups = (
        torch.arange(batch.x.shape[1])[None, :, None].expand(1, -1, batch.x.shape[2]).contiguous()
    )
    method = ShapleyValueSampling(lambda x: model(x)[:, 0].detach())
    with torch.no_grad():
        method.attribute(batch.x, feature_mask=groups, n_samples=ORDERS)


def seconds(do: Callable[[], object]) -> float:
    """Processor time of one call."""
    began = time.process_time()
    do()
    return time.process_time() - began


def against_captum() -> list[dict[str, object]]:
    """Ours and theirs in turns."""
    model, sets = build("c-gru", seed=0), drawn(SETS, SIZE)
    methods: dict[str, Callable[[], object]] = {
        "mean added values": lambda: explain(model, sets, orders=ORDERS),
        "Shapley values, sampled": lambda: shapley_values(model, sets, orders=ORDERS),
        "captum, zeros": lambda: with_zeros(model, sets),
        "captum, real removal": lambda: captum_shapley(model, sets, orders=ORDERS),
    }
    explain(model, sets, orders=2)
    taken = {name: [] for name in methods}
    for _ in range(REPEATS):
        for name, do in methods.items():
            taken[name].append(seconds(do))
    ours = min(taken["mean added values"])
    return [
        {"method": name, "seconds": round(min(t), 2), "ratio": round(min(t) / ours, 1)}
        for name, t in taken.items()
    ]


def growth() -> list[dict[str, object]]:
    """Measure the cost of more orders and of larger sets."""
    model = build("c-gru", seed=0)
    plan = [(orders, SIZE) for orders in (8, 16, 32, 64)] + [(ORDERS, n) for n in (10, 40, 80)]
    rows = []
    for orders, size in plan:
        sets = drawn(SETS, size)
        taken = min(seconds(lambda: explain(model, sets, orders=orders)) for _ in range(2))  # noqa: B023
        each = taken / (orders * size * SETS)
        row = {"orders": orders, "instances": size, "seconds": round(taken, 2)}
        rows.append({**row, "microseconds per instance and order": round(1e6 * each, 2)})
    return rows


PEAK = """
import sys
sys.path.insert(0, "benchmarks")
from pathlib import Path
import torch
from explain_speed import drawn
from capnets.explain import explain
from capnets.models import build

def held(name):  # megabytes, by Linux' own account
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024

torch.set_num_threads(1)
model, sets = build("c-gru", seed=0), drawn(20_000, 20)
explain(model, sets[:10], orders=2)
before = held("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
explain(model, sets, orders=int(sys.argv[1]), chunk=int(sys.argv[2]))
print(held("VmHWM") - before)
"""


def memory() -> list[dict[str, object]]:
    """Measure the memory of explanations by number of orders and by chunk."""
    rows = []
    for orders, chunk in ((2, 32_768), (8, 32_768), (32, 32_768), (2, 4_096), (2, 400_000)):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(orders), str(chunk)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        rows.append({"orders": orders, "chunk": chunk, "MB": round(float(done.stdout))})
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """Format a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(row[name]) for name in head) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    result = {
        "sets": SETS, "size": SIZE, "orders": ORDERS, "versions": versions(),
        "against_captum": against_captum(), "growth": growth(), "memory": memory(),
    }  # fmt: skip
    write_json(OUT / "speed.json", result)
    text = (
        f"# Speed of explanations\n\n`python benchmarks/explain_speed.py`: C-GRU, {SETS:,} sets of "
        f"{SIZE} instances with 64 features, {ORDERS} orders, one thread, processor time.\n\n"
        + table(result["against_captum"])
        + "\nCost grows linearly with orders and instances:\n\n"
        + table(result["growth"])
        + "\nMemory beyond the data (20,000 sets of 20) is bounded by the chunk:\n\n"
        + table(result["memory"])
    )
    write_text(OUT / "speed.md", text)
    print(text)
    print(json.dumps(result["versions"]))
