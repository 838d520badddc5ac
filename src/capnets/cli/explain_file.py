"""`capnets explain RUN FILE`: what each instance of some sets of a file added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capnets.cli.printing import print_json, print_table

__all__ = ["explain_file"]


def explain_file(run: Path, file: str, numbers: str, *, as_json: bool) -> None:
    """Print the added values of the chosen sets, averaged over orders as predictions are."""
    from capnets.estimators.averaging import choose_orders, mean_added_values
    from capnets.estimators.runs import load_estimator
    from capnets.experiment import chosen_sets

    estimator = load_estimator(run)
    sets = chosen_sets(estimator._read(file).sets, numbers)
    orders = choose_orders(estimator.model_, estimator.n_orders_)
    values = mean_added_values(estimator.model_, sets, orders)
    names = estimator.output_names()
    answer: list[dict[str, Any]] = []
    for k in range(len(sets)):
        part = slice(int(sets.offsets[k]), int(sets.offsets[k + 1]))
        answer.append(
            {
                "set": str(k if sets.ids is None else sets.ids[k]),
                "prediction": dict(zip(names, values[part].sum(axis=0).tolist(), strict=True)),
                "instances": [
                    {"row": int(row), "added_value": dict(zip(names, v.tolist(), strict=True))}
                    for row, v in zip(sets.rows(k), values[part], strict=True)
                ],
            }
        )
    if as_json:
        print_json(answer)
        return
    for one in answer:
        sums = ", ".join(f"{n} {v:.4g}" for n, v in one["prediction"].items())
        rows = [[i["row"], *i["added_value"].values()] for i in one["instances"]]
        columns = ["row", *(f"added to {n}" for n in names)]
        print_table(columns, rows, title=f"Set {one['set']}: {sums}")
