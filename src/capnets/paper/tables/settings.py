"""Tables about the networks' sizes, the search for settings, and the labels."""

from __future__ import annotations

from capnets.paper.jobs import ShapeJob
from capnets.paper.names import BEYOND, MODELS
from capnets.paper.published import labels, search
from capnets.paper.scales import Scale
from capnets.paper.tables.effectiveness import OTHER_SIZES
from capnets.paper.tables.table import Entry, Reading, Table, vary
from capnets.training.recipe import recipe

__all__ = ["TABLES"]

OTHER_PAIRS = (
    "Mean and median of US+S with varying sizes are not compared: they do not fit the sizes stated."
)
OTHER_SCHEDULE = (
    "The search is not compared: the paper's learning rates are constant, ours are the peaks of a "
    "one-cycle schedule."
)
ATTENTION_SHAPE = "Attention is not compared: no network that fits the formula has as many."


def _parameters(scale: Scale) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            row=model,
            column="parameters",
            model=model,
            reading=Reading("parameters"),
            jobs=(ShapeJob(model=model),),
            published=None if model in BEYOND else float(search.PARAMETERS[model]),
            caveat=ATTENTION_SHAPE if model == "attention" else "",
        )
        for model in MODELS + BEYOND
    )


def _grid(scale: Scale) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    caveat = "" if recipe(scale.recipe).schedule == "constant" else OTHER_SCHEDULE
    for (model, layers, hidden), row in search.GRID.items():
        for (task, rate), number in row.items():
            run = vary(
                (scale.job(model, task),),
                hidden=hidden,
                layers=layers or 3,
                learning_rate=scale.learning_rate(rate),
            )
            entries.append(
                Entry(
                    row=f"{model} {layers} layers {hidden}" if layers else f"{model} {hidden}",
                    column=f"{task} {rate:g}",
                    model=model,
                    task=task,
                    reading=Reading("valid_mse"),
                    jobs=run if len(entries) % scale.grid_every == 0 else (),
                    published=number,
                    dash=number is None,
                    caveat=caveat,
                )
            )
    return tuple(entries)


def _statistics(scale: Scale) -> tuple[Entry, ...]:
    entries = []
    for row, numbers in labels.STATISTICS.items():
        task, _, size = row.partition("/")
        sizes = labels.VARYING_SIZES if size == "var" else (int(size),)
        for statistic, number in numbers.items():
            entries.append(
                Entry(
                    row=f"{task} {size}",
                    column=statistic,
                    task=task,
                    reading=Reading(f"label_{statistic}"),
                    jobs=(scale.labels(task, sizes),),
                    published=number,
                    caveat=_doubtful(row, statistic),
                )
            )
    return tuple(entries)


def _doubtful(row: str, statistic: str) -> str:
    if row == "TriC/var":
        return OTHER_SIZES
    return OTHER_PAIRS if row == "US+S/var" and statistic in ("mean", "median") else ""


def _histograms(scale: Scale) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            row=task,
            column="sets by label",
            task=task,
            reading=Reading("label_counts"),
            jobs=(scale.labels(task, (10,)),),
            published=tuple(map(float, counts)),
        )
        for task, counts in labels.HISTOGRAMS.items()
    )


TABLES = (
    Table(
        name="parameters",
        number="Table 6",
        title="Parameter counts",
        shows="Trainable parameters with 64 input features and 32 hidden dimensions.",
        better=None,
        build=_parameters,
    ),
    Table(
        name="hyper-parameters",
        number="Table 10",
        title="Hyper-parameter search",
        shows="Validation MSE by layers, hidden dimensions and learning rate.",
        aliases=("grid", "search"),
        build=_grid,
    ),
    Table(
        name="label-statistics",
        number="Table 7",
        title="Statistics of the labels",
        shows="Mean, median, variance and deviation of the labels of the training sets. Both are "
        "drawn: variances of two draws may be one or two per cent apart by chance.",
        better=None,
        aliases=("dataset-statistics",),
        build=_statistics,
    ),
    Table(
        name="label-histograms",
        number="Figure 5",
        title="Histograms of the labels",
        shows="How many training sets have which label.",
        better=None,
        aliases=("histograms",),
        build=_histograms,
    ),
)
