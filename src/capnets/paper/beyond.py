"""What networks that the paper does not have are worth here, counted like its claims."""

from __future__ import annotations

from capnets.paper.claims import IMAGE_TASKS, Claim, Count
from capnets.paper.compare import Compared, Comparison
from capnets.paper.names import BEYOND, CAPACITY, LABELS, MODELS

__all__ = ["count_beyond"]


def count_beyond(comparison: Comparison) -> tuple[Claim, ...]:
    """Two statements on each network of ours, counted in numbers of ours alone."""
    main, added = comparison.tables["main-mean"], comparison.tables["added-value-error"]
    found = []
    for model in BEYOND:
        name = LABELS[model]
        found += [
            _claim(
                main,
                model,
                MODELS,
                IMAGE_TASKS,
                f"{name} predicts better than any of the paper's networks does here.",
                "five image tasks, against those of the ten networks that were run",
            ),
            _claim(
                added,
                model,
                CAPACITY,
                tuple(added.columns),
                f"Added values of {name} are nearer to the exact ones than those of the paper's "
                "capacity networks here.",
                "four tasks, against those of the three networks that were run",
            ),
        ]
    return tuple(found)


def _claim(
    compared: Compared,
    model: str,
    others: tuple[str, ...],
    columns: tuple[str, ...],
    says: str,
    counted: str,
) -> Claim:
    cases: list[bool | None] = []
    for column in columns:
        ours = compared.ours(model, column)
        rivals = [n for other in others if (n := compared.ours(other, column)) is not None]
        cases.append(None if ours is None or not rivals else ours < min(rivals))
    return Claim(
        f"{model} {compared.table.name}",
        says,
        counted,
        scale=compared.scale.name,
        ours=Count.of(cases),
        paper=Count(0, 0),
        wanted=len(columns),
    )
