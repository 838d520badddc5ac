"""Statements on results beyond the paper, counted like its claims."""

from __future__ import annotations

import numpy as np

from capnets.paper.claims import IMAGE_TASKS, Case, Claim, least, lower
from capnets.paper.compare import Comparison
from capnets.paper.compared import Compared, Number
from capnets.paper.names import BEYOND, CAPACITY, MODELS, label

__all__ = ["count_beyond"]


def count_beyond(comparison: Comparison) -> tuple[Claim, ...]:
    """Count one statement on the printed numbers and two on each network beyond the paper."""
    main, added = comparison.tables["main-mean"], comparison.tables["added-value-error"]
    found = [_below_the_papers_best(main)]
    for model in BEYOND:
        name = label(model)
        found += [
            _ahead(
                main,
                model,
                MODELS,
                IMAGE_TASKS,
                f"{name} has a lower error than each of the paper's networks.",
                "five image tasks, against the ten networks, all trained here",
            ),
            _ahead(
                added,
                model,
                CAPACITY,
                tuple(added.columns),
                f"Added values of {name} are closer to the exact ones than those of the paper's "
                "capacity networks.",
                "four tasks, against the three networks, all trained here",
            ),
        ]
    return tuple(found)


def _below_the_papers_best(main: Compared) -> Claim:
    """Compare with printed numbers, for experiments of the same size and protocol only."""
    alike = main.protocol == "shared" and main.scale.name == "full"
    return Claim.of(
        main,
        "the-papers-best",
        "The best of the three capacity networks is at or below the lowest error that the paper "
        "prints for any network.",
        "five image tasks, at two digits; recipe and features are ours, so this measures them too",
        [_at_most_the_printed(main, task) if alike else None for task in IMAGE_TASKS],
    )


def _at_most_the_printed(main: Compared, task: str) -> Case | None:
    ours = least([main.found(model, task) for model in CAPACITY])
    printed = [p for row in main.rows if (p := main.paper(row, task)) is not None]
    if ours is None:
        return None
    drawn = None if ours.replicates is None else np.round(ours.replicates, 2) <= min(printed)
    return Case(round(ours.value, 2) <= min(printed), drawn, ours.complete)


def _ahead(
    compared: Compared,
    model: str,
    others: tuple[str, ...],
    columns: tuple[str, ...],
    says: str,
    counted: str,
) -> Claim:
    def rivals(column: str) -> Number | None:
        return least([compared.found(other, column) for other in others])

    cases = [lower(compared.found(model, column), rivals(column)) for column in columns]
    return Claim.of(compared, f"{model} {compared.table.name}", says, counted, cases)
