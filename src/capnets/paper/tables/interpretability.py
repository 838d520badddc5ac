"""Tables about added values, and about the order in which instances are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from capnets.paper.names import BEYOND, CAPACITY, RECURRENT
from capnets.paper.published import interpretability as published
from capnets.paper.scales import Scale
from capnets.paper.tables.table import Entry, Reading, Statistic, Table, grid, vary

__all__ = ["NO_MORE_THAN_ONE", "TABLES"]

# Prior on Unique Count: no instance adds more than 1. The paper gives no weight.
NO_MORE_THAN_ONE = {"kind": "upper-bound", "bound": 1.0, "weight": 1.0}


FIVE_RUNS = (
    "Single errors and their deviations are not compared: the paper speaks of five runs with "
    "permuted instances, and their errors lie 22 to 46 % of their mean apart, so it seems to have "
    "trained five times. Ours are of one network under five orders of the same test sets."
)
OTHER_PICTURES = (
    "Values of one set are not compared: the paper names few of its pictures. Ours are other "
    "images, of digits that add the same."
)
DISTANCES = "Δ: distances from the exact values, in the last column their sum."
OTHER_CURVES = (
    "Curves are not compared: the paper draws test errors from epoch {} to {} and prints no "
    "numbers; ours are errors of validation sets after every epoch."
).format(*published.REGULARISATION_EPOCHS)


def _orders(scale: Scale) -> tuple[Entry, ...]:
    return grid(
        scale, published.ORDER_POINTS, RECURRENT,
        lambda place: Reading("order_mse", position=place - 1),
        task="US",
        caveat=lambda place: FIVE_RUNS,
    )  # fmt: skip


def _order_statistics(scale: Scale) -> tuple[Entry, ...]:
    statistics: tuple[Statistic, ...] = ("median", "mean", "stdev")
    readings = {str(name): Reading("order_mse", within=name) for name in statistics}
    readings["spread"] = Reading("order_spread")
    return grid(
        scale, published.ORDER_STATISTICS, (*RECURRENT, "c-deepset"), readings.__getitem__,
        columns=readings,
        task="US",
        caveat=lambda column: FIVE_RUNS if column == "stdev" else "",
    )  # fmt: skip


def _added_value_error(
    table: Mapping[str, Mapping[str, float]], models: tuple[str, ...], scale: Scale
) -> tuple[Entry, ...]:
    return grid(scale, table, models, Reading("added_value_error"))


def _examples(tasks: tuple[str, ...], scale: Scale) -> tuple[Entry, ...]:
    return tuple(entry for task in tasks for entry in _example(task, scale))


def _example(task: str, scale: Scale) -> list[Entry]:
    """Return the added values of one set, and their distances from the exact ones.

    The paper shows one network of a kind, so one seed is enough.
    """
    example = published.EXAMPLES[task]
    size = len(example.classes)
    entries: list[Entry] = []
    for model in CAPACITY:
        run = replace(scale.job(model, task), sizes=(size,))
        values = (*example.values[model], example.totals[model])
        distances = example.distances.get(model, (None,) * len(values))
        rows = (("", (), values), ("Δ ", example.expected, distances))
        entries += [
            Entry(
                row=f"{task} {sign}{model}",
                column=column,
                model=model,
                task=task,
                reading=Reading("example", position=place, exact=exact),
                jobs=(run,),
                published=number,
                caveat=OTHER_PICTURES,
            )
            for sign, exact, printed in rows
            for place, (column, number) in enumerate(zip(_places(size), printed, strict=True))
        ]
    return entries


def _places(size: int) -> tuple[str, ...]:
    return (*map(str, range(1, size + 1)), "sum")


def _exact(*tasks: str) -> Mapping[str, Mapping[str, float]]:
    examples = {task: published.EXAMPLES[task] for task in tasks}
    return {
        f"{task} exact": dict(
            zip(_places(len(one.classes)), (*one.expected, one.total), strict=True)
        )
        for task, one in examples.items()
    }


def _digits(task: str) -> str:
    return ", ".join(map(str, published.EXAMPLES[task].classes))


def _regularisation(scale: Scale) -> tuple[Entry, ...]:
    plain = scale.jobs("c-gru", "UC")
    rows = {"without prior": plain, "with prior": vary(plain, priors=(NO_MORE_THAN_ONE,))}
    return tuple(
        Entry(
            row=row,
            column=column,
            model="c-gru",
            task="UC",
            reading=Reading(metric),
            jobs=runs,
            caveat=OTHER_CURVES,
        )
        for row, runs in rows.items()
        for column, metric in (("learning curve", "curve"), ("final", "mse"))
    )


TABLES = (
    Table(
        name="order-points",
        number="Figure 3",
        title="Sensitivity to order",
        shows="Test MSE on Unique Sum under five random orders of the instances, smallest first.",
        build=_orders,
    ),
    Table(
        name="order-statistics",
        number="Table 15",
        title="Sensitivity to order, statistics",
        shows="Median, mean and deviation of the test MSE over the five orders. Spread: how far "
        "the prediction for one set moves over them (its deviation, the mean over sets); errors "
        "that move in opposite directions do not hide it, and the paper has no such number.",
        build=_order_statistics,
    ),
    Table(
        name="added-value-error",
        number="Table 5",
        title="Error of added values",
        shows="Mean absolute distance of added values from the exact ones.",
        build=partial(_added_value_error, published.ADDED_VALUE_ERROR, CAPACITY + BEYOND),
    ),
    Table(
        name="prefix-added-values",
        number="Table 18",
        title="Added values by prefixes",
        shows="The same with networks that have no added values of their own: differences of their "
        "predictions for ever longer prefixes.",
        build=partial(_added_value_error, published.PREFIX_ADDED_VALUE_ERROR, RECURRENT),
    ),
    Table(
        name="example-us",
        number="Table 3",
        title="Added values of a set, Unique Sum",
        shows=f"What each instance of one set adds, images of the digits {_digits('US')} read in "
        f"this order, by network. {DISTANCES}",
        better=None,
        exact=_exact("US"),
        build=partial(_examples, ("US",)),
    ),
    Table(
        name="example-product",
        number="Table 4",
        title="Added values of a set, Product",
        shows=f"What each instance of one set adds to the product, images of the digits "
        f"{_digits('Mult')} read in this order, by network. {DISTANCES}",
        better=None,
        exact=_exact("Mult"),
        aliases=("example-mult",),
        build=partial(_examples, ("Mult",)),
    ),
    Table(
        name="examples-more",
        number="Table 16",
        title="Added values of a set, Weighted Triangular and Unique Sum + Synergy",
        shows=f"What each instance of two more sets adds, by network: images of the digits "
        f"{_digits('WTri')} (WTri) and {_digits('US+S')} (US+S). {DISTANCES}",
        better=None,
        exact=_exact("WTri", "US+S"),
        build=partial(_examples, ("WTri", "US+S")),
    ),
    Table(
        name="regularisation",
        number="Figure 4",
        title="A prior on added values",
        shows="Learning curves of C-GRU on Unique Count, with and without the prior that no "
        "instance adds more than 1. Final: the test MSE.",
        aliases=("regularization",),
        build=_regularisation,
    ),
)
