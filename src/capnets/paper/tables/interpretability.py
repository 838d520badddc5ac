"""Tables about added values, and about the order in which instances are read."""

from __future__ import annotations

from dataclasses import replace

from capnets.paper.names import BEYOND, BEYOND_ORDERED, CAPACITY, RECURRENT
from capnets.paper.published import interpretability as published
from capnets.paper.scales import Scale
from capnets.paper.tables.table import Entry, Reading, Statistic, Table, row_of, vary

__all__ = ["NO_MORE_THAN_ONE", "TABLES"]

ADDED_VALUE_ERROR = Reading("added_value_error")
# What is known about Unique Count: no instance adds more than 1. The paper gives no weight.
NO_MORE_THAN_ONE = {"kind": "upper-bound", "bound": 1.0, "weight": 1.0}


FIVE_RUNS = (
    "Deviations are not compared: the paper speaks of five runs with permuted instances, and their "
    "errors lie 22 to 46 % of their mean apart, so it seems to have trained five times. Ours are "
    "of one network under five orders of the same test sets."
)


def _orders(scale: Scale) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            row=model,
            column=str(place),
            model=model,
            task="US",
            reading=Reading("order_mse", position=place - 1),
            choices=scale.cells(model, "US"),
            published=number,
        )
        for model in RECURRENT
        for place, number in published.ORDER_POINTS[model].items()
    )


def _order_statistics(scale: Scale) -> tuple[Entry, ...]:
    statistics: tuple[Statistic, ...] = ("median", "mean", "stdev")
    return tuple(
        Entry(
            row=model,
            column=statistic,
            model=model,
            task="US",
            reading=Reading("order_mse", within=statistic),
            choices=scale.cells(model, "US"),
            published=row_of(published.ORDER_STATISTICS, model)[statistic],
            caveat=FIVE_RUNS if statistic == "stdev" else "",
        )
        for model in RECURRENT + BEYOND_ORDERED
        for statistic in statistics
    )


def _added_value_error(scale: Scale) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            row=model,
            column=task,
            model=model,
            task=task,
            reading=ADDED_VALUE_ERROR,
            choices=scale.cells(model, task),
            published=number,
        )
        for model in CAPACITY + BEYOND
        for task, number in row_of(published.ADDED_VALUE_ERROR, model).items()
    )


def _prefix_added_values(scale: Scale) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            row=model,
            column=task,
            model=model,
            task=task,
            reading=ADDED_VALUE_ERROR,
            choices=scale.cells(model, task),
            published=number,
        )
        for model in RECURRENT
        for task, number in published.PREFIX_ADDED_VALUE_ERROR[model].items()
    )


def _example(task: str, scale: Scale) -> tuple[Entry, ...]:
    """The added values of one set, by networks trained with sets of its size.

    The paper shows one network of a kind, so one seed is enough.
    """
    example = published.EXAMPLES[task]
    size = len(example.classes)
    entries = []
    for model in CAPACITY:
        run = replace(scale.cell(model, task), sizes=(size,))
        for place, number in enumerate((*example.values[model], example.totals[model])):
            entries.append(
                Entry(
                    row=f"{task} {model}",
                    column="sum" if place == size else str(place + 1),
                    model=model,
                    task=task,
                    reading=Reading("example", position=place),
                    choices=(run,),
                    published=number,
                )
            )
    return tuple(entries)


def _example_us(scale: Scale) -> tuple[Entry, ...]:
    return _example("US", scale)


def _example_product(scale: Scale) -> tuple[Entry, ...]:
    return _example("Mult", scale)


def _examples_more(scale: Scale) -> tuple[Entry, ...]:
    return _example("WTri", scale) + _example("US+S", scale)


def _regularisation(scale: Scale) -> tuple[Entry, ...]:
    plain = scale.cells("c-gru", "UC")
    rows = {"without prior": plain, "with prior": vary(plain, priors=(NO_MORE_THAN_ONE,))}
    return tuple(
        Entry(
            row=row,
            column=column,
            model="c-gru",
            task="UC",
            reading=Reading(metric),
            choices=runs,
            caveat="Curves are not compared: the paper draws them and prints no numbers.",
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
        shows="Median, mean and deviation of the test MSE over the five orders.",
        build=_order_statistics,
    ),
    Table(
        name="added-value-error",
        number="Table 5",
        title="Error of added values",
        shows="Mean absolute distance of added values from the exact ones.",
        build=_added_value_error,
    ),
    Table(
        name="prefix-added-values",
        number="Table 18",
        title="Added values by prefixes",
        shows="The same with networks that have no added values of their own: differences of their "
        "predictions for ever longer prefixes.",
        build=_prefix_added_values,
    ),
    Table(
        name="example-us",
        number="Table 3",
        title="Added values of a set, Unique Sum",
        shows="What each instance of one set adds, by network.",
        better=None,
        build=_example_us,
    ),
    Table(
        name="example-product",
        number="Table 4",
        title="Added values of a set, Product",
        shows="What each instance of one set adds to the product, by network.",
        better=None,
        aliases=("example-mult",),
        build=_example_product,
    ),
    Table(
        name="examples-more",
        number="Table 16",
        title="Added values of a set, Weighted Triangular and Unique Sum + Synergy",
        shows="What each instance of two more sets adds, by network.",
        better=None,
        build=_examples_more,
    ),
    Table(
        name="regularisation",
        number="Figure 4",
        title="A prior on added values",
        shows="Learning curves of C-GRU on Unique Count, with and without the prior that no "
        "instance adds more than 1.",
        aliases=("regularization",),
        build=_regularisation,
    ),
)
