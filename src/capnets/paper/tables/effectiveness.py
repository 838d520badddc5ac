"""Tables about the error of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from capnets.paper.names import BEYOND, CAPACITY, COUNTERPART, MODELS, RECURRENT, RIDGE, SYSTEMS
from capnets.paper.published import effectiveness as published
from capnets.paper.published.labels import VARYING_SIZES
from capnets.paper.scales import REVIEWS, Scale
from capnets.paper.tables.table import Entry, Reading, Statistic, Table, grid, vary

__all__ = ["TABLES"]

MSE = Reading("mse")
MAIN_TASKS = ("UC", "US", "WTri", "US+S", "TriC", "Sent")
OTHER_REVIEWS = (
    "Sent is not compared: the paper's reviews cannot be had; ours are others, with other sentence "
    "vectors. Test documents are never seen in training, under either protocol."
)
FEW_SEEDS = (
    "Deviations are not compared: of three seeds they say little, and a lower one is no merit of a "
    "network."
)
DIFFERENCES = (
    "Differences from the counterpart are not compared: where both errors are lower, so is what "
    "they can differ by. Table 14 compares the errors themselves."
)
OTHER_SIZES = (
    "TriC with varying sizes is not compared: the paper's labels do not come from sets of 6 to 14 "
    "instances."
)


def _main(
    statistic: Statistic, table: Mapping[str, Mapping[str, float]], scale: Scale
) -> tuple[Entry, ...]:
    few = FEW_SEEDS if statistic == "stdev" else ""
    return grid(
        scale, table, MODELS + BEYOND, MSE,
        columns=MAIN_TASKS,
        statistic=statistic,
        caveat=lambda task: OTHER_REVIEWS if task == "Sent" else few,
    )  # fmt: skip


def _larger_sets(scale: Scale) -> tuple[Entry, ...]:
    return grid(
        scale, published.LARGER_SETS, MODELS + BEYOND, MSE,
        task="WTri", changes=lambda size: {"sizes": (size,)},
    )  # fmt: skip


def _training(
    table: Mapping[str, Mapping[tuple[str, int], float]],
    scale: Scale,
    *,
    reading: Reading = MSE,
    relative: bool = False,
) -> tuple[Entry, ...]:
    entries = []
    for model, row in table.items():
        other = COUNTERPART.get(model) if relative else None
        for (task, sets), number in row.items():
            fewer = scale.sets_of(sets)
            entries.append(
                Entry(
                    row=model,
                    column=f"{task} {sets // 1000}k",
                    model=model,
                    task=task,
                    reading=reading,
                    jobs=vary(scale.jobs(model, task), sets=fewer),
                    minus=vary(scale.jobs(other, task), sets=fewer) if other else (),
                    published=number,
                    caveat=DIFFERENCES if other else "",
                )
            )
    return tuple(entries)


def _without_abs(scale: Scale) -> tuple[Entry, ...]:
    signed = {"activation": "identity"}
    return grid(scale, published.WITHOUT_ABS, CAPACITY, MSE, changes=lambda task: signed)


def _varying(
    statistic: Statistic, table: Mapping[str, Mapping[str, float]], scale: Scale
) -> tuple[Entry, ...]:
    return grid(
        scale, table, RECURRENT + BEYOND, MSE,
        statistic=statistic,
        changes=lambda task: {"sizes": VARYING_SIZES},
        caveat=lambda task: OTHER_SIZES if task == "TriC" else "",
    )  # fmt: skip


def _sentiment(scale: Scale) -> tuple[Entry, ...]:
    """Add capacity networks with signed values, and with a mean of beliefs, to the paper's rows."""
    plain: dict[str, str] = {}
    signed = {"activation": "identity"}
    mean = signed | {"aggregation": "mean", "baseline": "learned"}
    rows = [(model, model, plain) for model in (RIDGE, *MODELS)]
    for model in CAPACITY:
        rows += [(f"{model} signed", model, signed), (f"{model} mean", model, mean)]
    for model in BEYOND:
        rows += [(model, model, plain), (f"{model} signed", model, signed)]
    return tuple(
        Entry(
            row=row,
            column=f"{source} {name}",
            model=model,
            task="Sent",
            reading=Reading(metric),
            jobs=vary(scale.jobs(model, "Sent"), source=source, **changes),
        )
        for row, model, changes in rows
        for source in REVIEWS
        for name, metric in (("MSE", "mse"), ("R²", "r2"))
    )


def _systems(scale: Scale) -> tuple[Entry, ...]:
    """Return one entry per network and task, with one seed."""
    return tuple(
        Entry(
            row=model,
            column=task,
            model=model,
            task=task,
            reading=MSE,
            jobs=scale.jobs(model, task)[:1],
        )
        for model in SYSTEMS
        for task in MAIN_TASKS
        if task != "Sent"
    )


TABLES = (
    Table(
        name="main-mean",
        number="Table 1",
        title="Main results, mean",
        shows="Mean test MSE over the seeds: ten networks, six tasks, sets of ten.",
        build=partial(_main, "mean", published.MAIN_MEAN),
    ),
    Table(
        name="main-median",
        number="Table 8",
        title="Main results, median",
        shows="Median test MSE over the seeds of the main results.",
        build=partial(_main, "median", published.MAIN_MEDIAN),
    ),
    Table(
        name="main-deviation",
        number="Table 9",
        title="Main results, deviation",
        shows="Standard deviation of the test MSE over the seeds of the main results.",
        build=partial(_main, "stdev", published.MAIN_STDEV),
    ),
    Table(
        name="larger-sets",
        number="Figure 2",
        title="Larger sets",
        shows="Test MSE on Weighted Triangular for sets of 10, 20, 30 and 40 instances.",
        build=_larger_sets,
    ),
    Table(
        name="training-absolute",
        number="Table 14",
        title="Fewer training sets",
        shows="Test MSE after training with 30, 50 and 70 % of the sets: 30k, 50k and 70k of the "
        "paper's 100,000.",
        build=partial(_training, published.TRAINING_SIZES),
    ),
    Table(
        name="training-relative",
        number="Table 2",
        title="Fewer training sets, against the counterpart",
        shows="The same for the recurrent networks; capacity networks as the difference from "
        "their counterpart.",
        build=partial(_training, published.TRAINING_RELATIVE, relative=True),
    ),
    Table(
        name="training-accuracy",
        number="Table 17",
        title="Fewer training sets, accuracy",
        shows="Percentage of test sets whose rounded prediction is the label.",
        better="higher",
        build=partial(
            _training, published.TRAINING_ACCURACY, reading=Reading("accuracy", times=100)
        ),
    ),
    Table(
        name="without-abs",
        number="Table 11",
        title="Without the absolute value",
        shows="Test MSE of capacity networks whose added values may be negative.",
        build=_without_abs,
    ),
    Table(
        name="varying-mean",
        number="Table 12",
        title="Varying set sizes, mean",
        shows="Mean test MSE over the seeds for sets of 6, 8, 10, 12 or 14 instances.",
        build=partial(_varying, "mean", published.VARYING_MEAN),
    ),
    Table(
        name="varying-median",
        number="Table 13",
        title="Varying set sizes, median",
        shows="Median test MSE over the seeds of the same runs.",
        build=partial(_varying, "median", published.VARYING_MEDIAN),
    ),
    Table(
        name="sentiment",
        number="Beyond Table 1",
        title="Sentiment of documents, ours alone",
        shows="Test error and explained variance on reviews other than the paper's, which cannot "
        "be had, with ridge regression on the mean sentence vector as the plain baseline. Signed: "
        "without the absolute value, as a sentence can also lower a rating. Mean: every sentence "
        "has a belief about the rating and a weight, and their mean is predicted.",
        better=None,
        build=_sentiment,
    ),
    Table(
        name="other-systems",
        number="Related work",
        title="Systems that the paper discusses",
        shows="Test MSE of networks of other authors on the image tasks of the main results, one "
        "seed. The paper compares with none of them.",
        better=None,
        build=_systems,
    ),
)
