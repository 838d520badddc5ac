"""Write benchmarks/README.md and the goals in docs/findings/speed.md from the newest records.

    python benchmarks/table.py

Reads speed.jsonl, grid.jsonl, stream.jsonl, ingest.jsonl and serve.jsonl. In
docs/findings/speed.md only the text between the markers is replaced.
"""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path
from typing import Any

from goals import goals
from turns import newest, recorded

from capnets.files import write_text

HERE = Path(__file__).parent
BATCHES = (100, 250, 1000)
HEAD = """\
# Benchmarks

`make bench` writes this page from the newest runs in `speed.jsonl`, `grid.jsonl`, `stream.jsonl`,
`ingest.jsonl` and `serve.jsonl`.

Times are microseconds of processor time with one thread, medians over interleaved rounds. Only
ratios within one run are meaningful, because other processes slow everything down. Sets have ten
instances of 64 features; networks have 32 hidden dimensions and the paper's encoder and decoder
(torchmil's ABMIL has a linear output layer instead). Rows with "ONNX Runtime" use `Engine.predict`,
which also builds the batches; the other rows start from finished batches.
"""
SCRIPTS = """
## All benchmarks

`make bench` runs {short} and `table.py`,
in twenty minutes. The others take longer and are run by name; their docstrings describe the
arguments.

| script | purpose |
|---|---|"""
#: Scripts that `make bench` runs; see the Makefile.
SHORT = ("speed.py", "grid.py", "stream.py", "ingest.py", "serve.py")
STEPS = {
    "compiled": "compiled",
    "nn": "torch cells",
}
Line = dict[str, Any]


def main() -> None:
    """Draw the page."""
    speed, stream = newest(HERE / "speed.jsonl"), newest(HERE / "stream.jsonl")
    parts = [HEAD]
    if speed and stream:
        about = [_about("speed.py", speed[0]), _about("stream.py", stream[0])]
        met = _goals(speed, stream)
        parts += [*map(_wrapped, about), "\n## Goals\n", *met]
        _fill(
            HERE.parent / "docs" / "findings" / "speed.md",
            "goals",
            "\n".join([*met, "", *map(_wrapped, about)]),
        )
    if speed:
        parts += [*_sets(speed, "train"), *_sets(speed, "infer"), *_fit(speed), *_large(speed)]
        parts += _few(speed)
    if stream:
        parts += _streams(stream)
    parts += _grid(recorded(HERE / "grid.jsonl"))
    parts += [*_ingest(), *_serve(newest(HERE / "serve.jsonl")), *_scripts()]
    write_text(HERE / "README.md", "\n".join(parts) + "\n")


def _about(script: str, line: Line) -> str:
    libraries = ", ".join(f"{name} {number}" for name, number in line["versions"].items())
    return (
        f"- `{script}`: {line['began']}, load before {line['load_before']} on "
        f"{line['cores']} cores; {libraries}"
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, subsequent_indent="  ", break_on_hyphens=False)


def _goals(speed: list[Line], stream: list[Line]) -> list[str]:
    rows = [
        f"| {g.what} | {g.limit:g} | {g.found:.2f} | {'met' if g.met else '**not met**'} |"
        for g in goals(speed, stream)
    ]
    return ["| | at most | found | |", "|---|---|---|---|", *rows]


def _fill(page: Path, name: str, text: str) -> None:
    """Replace the text between two markers of a page."""
    before, mark, rest = page.read_text().partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    write_text(page, f"{before}{mark}{text}\n{end}{after}")


def _sets(lines: list[Line], what: str) -> list[str]:
    title = {"train": "Training", "infer": "Inference"}[what]
    found = {
        (x["network"], x["batch"]): x["us"]
        for x in lines
        if x["part"] == "sets" and x["what"] == what
    }
    limits = {x["network"]: x for x in lines if x["part"] == "limit"}
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        limit = f"{limits[name][what]:.1f}" if name in limits else ""
        figures = " | ".join(f"{found[name, batch]:.1f}" for batch in BATCHES)
        rows.append(f"| {name} | {figures} | {limit} |")
    missing = [
        f"| {x['network']} | {x['package']} is not installed | | | |"
        for x in lines
        if x["part"] == "missing"
    ]
    rates = ", ".join(f"{x['gigaflops']:.0f} ({name})" for name, x in limits.items())
    return [
        f"\n## {title}, microseconds per set\n",
        "Limit: time of the matrix products alone, at the speed measured in the same run:\n"
        f"{rates} GFLOP/s.\n",
        "| network | batch 100 | 250 | 1000 | limit |",
        "|---|---|---|---|---|",
        *rows,
        *missing,
    ]


def _fit(lines: list[Line]) -> list[str]:
    found = {(x["network"], x["batch"]): x["us"] for x in lines if x["part"] == "fit"}
    rows = [
        f"| {name} | " + " | ".join(f"{found[name, batch]:.1f}" for batch in BATCHES) + " |"
        for name in dict.fromkeys(name for name, _ in found)
    ]
    return [
        "\n## Training by `fit`, microseconds per set\n",
        "A whole epoch of 20,000 sets, including initialization, random orders, batching and "
        "gradient clipping.\n",
        "| network | batch 100 | 250 | 1000 |",
        "|---|---|---|---|",
        *rows,
    ]


def _large(lines: list[Line]) -> list[str]:
    found = {(x["network"], x["by"]): x["us"] for x in lines if x["part"] == "large"}
    limits = {x["network"]: x["instance"] for x in lines if x["part"] == "limit"}
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        figures = " | ".join(f"{found[name, by]:.2f}" for by in ("engine", "torch", "nn"))
        rows.append(f"| {name} | {figures} | {limits[name]:.2f} |")
    return [
        "\n## Added values of one set of 10,000, microseconds per instance\n",
        "| network | Engine (ONNX Runtime) | torch | torch's own cells | limit |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _few(speed: list[Line]) -> list[str]:
    found = {(x["network"], x["sets"], x["by"]): x["us"] for x in speed if x["part"] == "few"}
    if not found:
        return []
    # Records may hold backends that no longer exist.
    rows = dict.fromkeys((name, by) for name, _, by in found if by in STEPS)
    counts = sorted({sets for _, sets, _ in found})
    return [
        "\n## Training on few sets at a time, microseconds per instance\n",
        "2,000 instances in all, 16 hidden dimensions. Compiled: with numba (extra `compiled`).\n",
        "| network | steps | " + " | ".join(f"sets: {sets}" for sets in counts) + " |",
        "|---|---|" + "---|" * len(counts),
        *(
            f"| {name} | {STEPS[by]} | "
            + " | ".join(f"{found[name, sets, by]:.2f}" for sets in counts)
            + " |"
            for name, by in rows
        ),
    ]


def _streams(lines: list[Line]) -> list[str]:
    found = {(x["network"], x["how"]): x["us"] for x in lines if x["part"] == "stream"}
    ways = list(dict.fromkeys(how for _, how in found))
    rows = [
        f"| {name} | " + " | ".join(f"{found[name, how]:.2f}" for how in ways) + " |"
        for name in dict.fromkeys(name for name, _ in found)
    ]
    [endless] = [x for x in lines if x["part"] == "endless"]
    return [
        "\n## Streams, microseconds per instance\n",
        f"| network | {' | '.join(ways)} |",
        "|---" * (len(ways) + 1) + "|",
        *rows,
        f"\nOne {endless['network']} stream of {endless['instances']:,} instances: peak memory "
        f"{endless['peak_mb_after_first']} MB after 100,000 instances, "
        f"{endless['peak_mb_at_end']} MB at the end.",
    ]


def _grid(lines: list[Line]) -> list[str]:
    """Format our time as a ratio of plain PyTorch and of the fastest peer, cell by cell."""
    if not lines:
        return []
    axes = ("network", "hidden", "features", "size", "batch", "threads")
    lines = [*{tuple(x[axis] for axis in axes): x for x in lines}.values()]  # the newest of a cell
    rows = []
    for x in lines:
        slower = x["ratio"] > 1
        ratio = f"**{x['ratio']:.2f}**" if slower else f"{x['ratio']:.2f}"
        limit = f"{x['of_limit']:.1f}" if "of_limit" in x else ""
        rows.append(
            f"| {x['network']} | {x['hidden']} | {x['features']} | {x['size']:,} | {x['batch']} "
            f"| {x['threads']} | {x['us'][x['network']]:.2f} | {ratio} | {x['best']} | {limit} |"
        )
    above = [sum(x["ratio"] > bound for x in lines) for bound in (1, 1.05)]
    return [
        "\n## Forward and backward pass over widths and sizes\n",
        "Microseconds per instance, divided by those of the fastest peer that computes the same\n"
        "function. Limit: the time divided by that of the matrix\n"
        f"products alone. The ratio is above 1 in {above[0]} of {len(lines)} cells (bold), above "
        f"1.05 in {above[1]}.\n",
        _wrapped(_about("grid.py", lines[0])),
        "",
        "| network | hidden | features | size | sets | threads | µs | ratio | peer | limit |",
        "|---" * 10 + "|",
        *rows,
    ]


def _ingest() -> list[str]:
    """Format the newest line of every step and size."""
    lines = [json.loads(line) for line in (HERE / "ingest.jsonl").read_text().splitlines()]
    last = {(x["step"], x["instances"]): x for x in lines}
    return [
        "\n## Instances from Parquet: to sets, and to predictions and added values\n",
        "| step | instances | seconds of wall time | peak memory, GB |",
        "|---|---|---|---|",
        *[f"| {s} | {n:,} | {x['seconds']} | {x['peak_gb']} |" for (s, n), x in last.items()],
    ]


def _serve(lines: list[Line]) -> list[str]:
    """Format the load on the service and its peer, and the malformed requests."""
    if not lines:
        return []
    loads = {(x["server"], x["clients"]): x for x in lines if x["part"] == "load"}
    own = "capnets serve"
    rows = []
    for (server, clients), x in loads.items():
        ratio = loads[own, clients]["per_second"] / x["per_second"]
        rows.append(
            f"| {clients} | {server} | {x['per_second']:,} | "
            f"{'' if server == own else f'{ratio:.1f}'} | {x['p50_ms']} | {x['p99_ms']} | "
            f"{x['server_us']} | {x['memory_mb']} |"
        )
    [bad] = [x for x in lines if x["part"] == "malformed"]
    statuses = ", ".join(f"{status}: {count:,}" for status, count in bad["statuses"].items())
    return [
        "\n## Service on the loopback interface, one set of ten instances per request\n",
        _wrapped(_about("serve.py", lines[0])) + "\n",
        "`def` computes in threads, as FastAPI advises; `async def` blocks the event loop. Times\n"
        "are wall time except the server's processor time.\n",
        "| clients | server | requests/s | service : this | p50, ms | p99, ms | server, us | MB |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        textwrap.fill(
            f"{bad['requests']:,} malformed requests, by status: {statuses}. Memory after each "
            f"fifth: {', '.join(map(str, bad['memory_mb']))} MB.",
            110,
        ),
    ]


def _scripts() -> list[str]:
    """List every script with the first line of its docstring."""
    rows = []
    for path in sorted(HERE.rglob("*.py")):
        source = path.read_text()
        if "__main__" in source:  # the others are imported by these
            about, *_ = (ast.get_docstring(ast.parse(source)) or "").splitlines() or [""]
            rows.append(f"| `{path.relative_to(HERE).as_posix()}` | {about} |")
    return [SCRIPTS.format(short=", ".join(f"`{name}`" for name in SHORT)), *rows]


if __name__ == "__main__":
    main()
