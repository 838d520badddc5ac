"""`capnets explain`: what each instance of some sets added."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capnets.cli.explain_file import explain_file
from capnets.cli.printing import Json, print_json, print_table

__all__ = ["add_to", "explain"]


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    file: Annotated[str | None, typer.Argument(help="The sets, for a run on a file.")] = None,
    sets: Annotated[str, typer.Option(help="Which sets: numbers with commas between.")] = "0",
    as_json: Json = False,
) -> None:
    """Show instance by instance what was added, and what was expected."""
    if file is not None:
        explain_file(run, file, sets, as_json=as_json)
        return
    from capnets.evaluate import added_values
    from capnets.experiment import chosen_sets, task_of
    from capnets.runs import load

    trained = load(run)
    task = task_of(trained)
    chosen = chosen_sets(task.test, sets)
    values, expected = added_values(trained.model, chosen), task.expected(chosen)
    classes, names = task.classes(chosen), sets.split(",")
    answer = []
    for k, name in enumerate(names):
        part = slice(chosen.offsets[k], chosen.offsets[k + 1])
        answer.append(
            {
                "set": int(name),
                "prediction": float(values[part].sum()),
                "label": float(chosen.y[k]),
                "instances": [
                    {"class": int(c), "added_value": float(v), "expected": float(e)}
                    for c, v, e in zip(classes[part], values[part], expected[part], strict=True)
                ],
            }
        )
    if as_json:
        print_json(answer)
        return
    for one in answer:
        running = 0.0
        rows = []
        for number, i in enumerate(one["instances"], 1):
            running += i["added_value"]
            rows.append((number, i["class"], i["added_value"], i["expected"], running))
        title = f"Set {one['set']}: predicted {one['prediction']:.2f}, label {one['label']:g}"
        print_table(
            ["instance", "class", "added value", "expected", "running sum"], rows, title=title
        )


def add_to(app: typer.Typer) -> None:
    """Make the command known."""
    app.command()(explain)
