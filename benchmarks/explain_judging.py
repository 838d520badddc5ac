"""Compare the error and cost of explanation methods on tasks with known values.

    python benchmarks/explain_judging.py    # writes results/explain/judging.{json,md,html}

There are two ground truths: added values in the given order, and Shapley values. Every method is
compared with the one that it estimates.
"""

from __future__ import annotations

import base64
import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from explain_networks import JUDGED, explained_sets, trained
from explain_peers import attention_weights, captum_shapley, gradient_times_input

from capnets.explain import Explanation, explain, shapley_values
from capnets.explain.evaluation import evaluate_explanation, removal_curve
from capnets.explain.render.figures import curves
from capnets.explain.render.rows import number
from capnets.files import write_json, write_text
from capnets.models import SetModel
from capnets.runs import versions

OUT = Path("results/explain")
TASKS = ("US", "WTri")
MANY, ORDERS = 500, 32
TRUTHS = GIVEN, SHAPLEY = "given order", "Shapley"


def methods(task: str, ten: bool) -> Iterator[tuple[str, str, SetModel, Explanation]]:
    """Yield method, ground truth, network and explanation."""
    _, sets = explained_sets(task, MANY)
    nets = {name: trained(task, name, ten=ten).model for name in JUDGED}
    capacity, gru, deepset, attention = nets.values()
    some = partial(shapley_values, orders=ORDERS)
    captum = partial(captum_shapley, orders=ORDERS)
    for name, truth, net, method in (
        ("C-GRU: added values", GIVEN, capacity, explain),
        ("GRU: prefix differences", GIVEN, gru, explain),
        ("DeepSet: prefix differences", GIVEN, deepset, explain),
        ("C-GRU: mean added values", SHAPLEY, capacity, partial(explain, orders=ORDERS)),
        ("C-GRU: Shapley, sampled", SHAPLEY, capacity, some),
        ("C-GRU: Shapley, by captum", SHAPLEY, capacity, captum),
        ("C-GRU: Shapley, exact", SHAPLEY, capacity, shapley_values),
        ("GRU: Shapley, sampled", SHAPLEY, gru, some),
        ("DeepSet: Shapley, sampled", SHAPLEY, deepset, some),
        ("C-GRU: gradient times input", SHAPLEY, capacity, gradient_times_input),
        ("DeepSet: gradient times input", SHAPLEY, deepset, gradient_times_input),
        ("Attention: weights times prediction", SHAPLEY, attention, attention_weights),
    ):
        began = time.process_time()
        found = method(net, sets)  # type: ignore[operator]
        # Processor time: a busy machine changes it little.
        yield name, truth, net, replace(found, seconds=time.process_time() - began)


def judged(task: str, ten: bool) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a task, and its deletion curves as a figure."""
    drawn, sets = explained_sets(task, MANY)
    function, classes = drawn.spec.set_function, drawn.classes(sets)
    truths = {
        GIVEN: function.added_values(classes, sets.offsets),
        SHAPLEY: function.shapley(classes, sets.offsets),
    }
    rows, drops = [], {}
    for name, truth, model, explanation in methods(task, ten):
        explanation = explanation.with_expected(truths[truth])
        quality = evaluate_explanation(model, sets, explanation)
        rows.append(
            {"method": name, "truth": truth, **{k: round(v, 4) for k, v in quality.items()}}
        )
        if name.startswith("C-GRU") and "captum" not in name:
            drops[name.removeprefix("C-GRU: ")] = removal_curve(model, sets, explanation)
        print(task, rows[-1], flush=True)
    buffer = io.BytesIO()
    curves(drops).savefig(buffer, format="svg")
    return rows, "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


ABOUT = f"""\
Networks trained on sets of scikit-learn's digits, from labels of whole sets alone; {MANY} new sets
of ten explained, {ORDERS} orders wherever orders are sampled. *Error*: mean absolute distance from
the truth named, in the unit of the label. *Rank agreement*: Somers' D with the truth (1: every pair
of instances ranked right). *Completeness gap*: how far the values miss the prediction in sum.
*Deletion*, *insertion*: area over and under the curve of the network's own prediction while the
most valued instances are really taken out or put in (higher is better; only methods on the same
network can be compared). *Passes*: sets that the network has to read for one explained set.
*Seconds*: of one processor, for all sets."""

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Explanations judged</title><link rel="icon" href="data:,"><style>
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:76rem}
body{color:#1b1f24;background:#fff}p{max-width:52rem}h1{font-size:1.5rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #d5dae0;white-space:nowrap}
th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}.best{font-weight:700;background:#e3f0f8}
th:first-child,td:first-child{position:sticky;left:0;background:#fff}
@media(max-width:34rem){th:first-child,td:first-child{white-space:normal;min-width:8rem}}
img{max-width:100%;margin:1rem 0}</style></head><body><h1>Explanations judged</h1><p>ABOUT</p>
TABLES</body></html>
"""


def markdown(result: dict[str, Any]) -> str:
    """Format the tables as Markdown."""
    text = f"# Explanations judged\n\n`python benchmarks/explain_judging.py`. {ABOUT}\n"
    for task, rows in result["tasks"].items():
        head = list(rows[0])
        text += f"\n## {task}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head) + "\n"
        for row in rows:
            text += "| " + " | ".join(cell(row[name]) for name in head) + " |\n"
    return text


def page(result: dict[str, Any], pictures: dict[str, str]) -> str:
    """Format tables and curves as one HTML file; the smallest errors are highlighted."""
    tables = ""
    for task, rows in result["tasks"].items():
        least = {truth: min(r["error"] for r in rows if r["truth"] == truth) for truth in TRUTHS}
        head = "".join(f"<th>{name}</th>" for name in rows[0])
        body = ""
        for row in rows:
            best = {"error": " class=best"} if row["error"] == least[row["truth"]] else {}
            cells = (f"<td{best.get(name, '')}>{cell(v)}</td>" for name, v in row.items())
            body += f"<tr>{''.join(cells)}</tr>"
        tables += f"<h2>{task}</h2><div class=scroll><table><thead><tr>{head}</tr></thead>"
        tables += f"<tbody>{body}</tbody></table></div><img src='{pictures[task]}' "
        tables += f"alt='deletion curves of {task}'>"
    about = re.sub(r"\*(.*?)\*", r"<i>\1</i>", ABOUT)
    return PAGE.replace("ABOUT", about).replace("TABLES", tables)


def cell(value: Any) -> str:
    """Format a table cell."""
    return value if isinstance(value, str) else number(value)


if __name__ == "__main__":
    torch.set_num_threads(1)
    result: dict[str, Any] = {"sets": MANY, "versions": versions(), "tasks": {}}
    pictures = {}
    for ten in (False, True):
        for task in TASKS:
            name = f"{task}, trained on sets of {'ten only' if ten else 'one to ten'}"
            result["tasks"][name], pictures[name] = judged(task, ten)
    write_json(OUT / "judging.json", result)
    write_text(OUT / "judging.md", markdown(result))
    write_text(OUT / "judging.html", page(result, pictures))
    print(markdown(result))
