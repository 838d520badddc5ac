"""Options that several commands share, grouped into panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capnets.errors import InputError

if TYPE_CHECKING:
    from capnets.training.priors import Prior

COLUMNS, NETWORK, TRAINING, PRIORS, RUN = "Columns", "Network", "Training", "Priors", "Run"


def _option(*names: str, panel: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


# Columns of a table -------------------------------------------------------------------------------

SetColumn = Annotated[
    str | None,
    _option("--set-column", panel=COLUMNS, help="Column that names the set of a row (needed)."),
]
Target = Annotated[
    list[str] | None,
    _option("--target", panel=COLUMNS, help="Column to predict (needed); repeatable."),
]
Time = Annotated[
    str | None,
    _option("--time", panel=COLUMNS, help="Column with the time until --event, or censoring."),
]
Event = Annotated[
    str | None,
    _option("--event", panel=COLUMNS, help="Column that is 1 if the event happened, 0 if not."),
]
Features = Annotated[
    list[str] | None,
    _option(
        "--features",
        panel=COLUMNS,
        help="Feature column or pattern; repeatable.",
        show_default="all others",
    ),
]
Categories = Annotated[
    list[str] | None,
    _option(
        "--categories",
        panel=COLUMNS,
        help="Column or pattern with categories: text, codes; repeatable.",
    ),
]
OrderColumn = Annotated[
    str | None,
    _option("--order-column", panel=COLUMNS, help="Column that orders the instances of a set."),
]
GroupColumn = Annotated[
    str | None,
    _option("--group-column", panel=COLUMNS, help="Column of groups that splits keep whole."),
]
WeightColumn = Annotated[
    str | None, _option("--weight-column", panel=COLUMNS, help="Column with the weight of a set.")
]
TextColumn = Annotated[
    str | None,
    _option(
        "--text-column",
        panel=COLUMNS,
        help="Text column: a sentence per row or, without --set-column, a document.",
    ),
]
Missing = Annotated[
    str, _option("--missing", panel=COLUMNS, help="Missing values: refuse, mean or zero.")
]
Classify = Annotated[
    bool | None,
    _option(
        "--classify/--regress",
        panel=COLUMNS,
        help="Treat the target as classes, or as an amount.",
        show_default="by its values",
    ),
]

# Network ------------------------------------------------------------------------------------------

Model = Annotated[
    str | None,
    _option(
        "--model",
        "-m",
        panel=NETWORK,
        help="Name from `capnets models`. Default: by validation on files, c-deepset on set tasks.",
    ),
]
Hidden = Annotated[int | None, _option("--hidden", panel=NETWORK, min=1, help="Hidden dimensions.")]
Layers = Annotated[
    int | None, _option("--layers", panel=NETWORK, min=1, help="Layers of the encoder.")
]
Members = Annotated[
    int | None, _option("--members", panel=NETWORK, min=1, help="Number of networks to average.")
]
Activation = Annotated[
    str | None,
    _option(
        "--activation",
        panel=NETWORK,
        help="Activation of added values: abs (never negative), identity or softplus.",
    ),
]
AggregationName = Annotated[
    str | None,
    _option("--aggregation", panel=NETWORK, help="Of added values: sum, mean, mean+sum."),
]
BaselineName = Annotated[
    str | None,
    _option("--baseline", panel=NETWORK, help="Prediction for the empty set: none (0), learned."),
]
Sort = Annotated[
    str | None,
    _option(
        "--sort", panel=NETWORK, help="Read instances sorted by worth or by a feature (its name)."
    ),
]

# Training -----------------------------------------------------------------------------------------

RecipeName = Annotated[
    str | None,
    _option(
        "--recipe",
        panel=TRAINING,
        help="muon, fast, large, medium, small, tiny, or paper.",
        show_default="by the number of sets",
    ),
]
Epochs = Annotated[int | None, _option("--epochs", panel=TRAINING, help="Epochs of each network.")]
BatchSize = Annotated[int | None, _option("--batch-size", panel=TRAINING, help="Sets per step.")]
BatchInstances = Annotated[
    int | None,
    _option(
        "--batch-instances", panel=TRAINING, min=1, help="Largest number of instances per step.",
        show_default="by the number of features, where sets are large",
    ),
]  # fmt: skip
SampleInstances = Annotated[
    int | None,
    _option(
        "--sample-instances", panel=TRAINING, min=1,
        help="Random instances of a set that an epoch reads.", show_default="all",
    ),
]  # fmt: skip
LearningRate = Annotated[
    float | None, _option("--learning-rate", panel=TRAINING, help="Highest learning rate.")
]
Patience = Annotated[
    int | None,
    _option("--patience", panel=TRAINING, help="Stop after this many epochs without improvement."),
]
FixedOrder = Annotated[
    bool,
    _option("--fixed-order", panel=TRAINING, help="Do not shuffle instances every epoch."),
]
UpperBound = Annotated[
    float | None,
    _option("--upper-bound", panel=PRIORS, help="No added value exceeds this number."),
]
PriorWeight = Annotated[
    float,
    _option(
        "--prior-weight", panel=PRIORS, min=0, help="Weight of --upper-bound, in units of the loss."
    ),
]
Consistent = Annotated[
    float | None,
    _option(
        "--consistent",
        panel=PRIORS,
        min=0,
        help="Weight of a penalty on order dependence.",
    ),
]

# Run ----------------------------------------------------------------------------------------------

Out = Annotated[
    Path | None,
    _option("--out", "-o", panel=RUN, help="Run folder.", show_default="runs/NAME-MODEL-SEED"),
]
Seed = Annotated[
    int,
    _option("--seed", panel=RUN, help="Random seed of initial weights, orders and splits."),
]
Threads = Annotated[int, _option("--threads", panel=RUN, min=1, help="Number of CPU threads.")]
Resume = Annotated[bool, _option("--resume", panel=RUN, help="Continue an interrupted run.")]
Force = Annotated[bool, _option("--force", panel=RUN, help="Replace an existing run.")]


@dataclass(frozen=True)
class RunOptions:
    """Options of the run folder and of the training process."""

    out: Path | None
    threads: int
    resume: bool
    force: bool
    as_json: bool
    devices: int = 1


def survival_of(
    target: list[str] | None, time: str | None, event: str | None
) -> tuple[list[str] | None, bool]:
    """Return the targets, and whether they are a time and an event."""
    if time is None and event is None:
        return target, False
    if time is None or event is None or target:
        raise InputError(
            "--time and --event belong together and replace --target: the time until the event "
            "or until censoring, and whether the event happened"
        )
    return [time, event], True


def columns_of(file: str, set_column: str | None, target: list[str] | None, **others: Any) -> Any:
    """Return the meaning of a file's columns; None for .npz, which has none."""
    others = {k: tuple(v) if isinstance(v, list) else v for k, v in others.items() if v}
    if Path(file).suffix == ".npz":
        named = {"set": set_column, "target": target, **others}
        given = [name for name, value in named.items() if value and value != "refuse"]
        if given:
            raise InputError(
                f"{file} has no columns, so none can be named ({', '.join(given)}): an .npz file "
                "holds the arrays X, offsets and y"
            )
        return None
    if (set_column is None and "text" not in others) or not target:
        raise InputError(
            f"{file}: name its columns with --set-column … and --target …, "
            "the set that a row belongs to and the column to predict "
            f"(documents need no set column: --text-column …){_column_names(file)}"
        )
    from capnets.ingest import Columns

    return Columns(set=set_column or "", target=tuple(target), **others)


def _column_names(file: str) -> str:
    if not Path(file).is_file():
        return ""
    from capnets.ingest.sources import open_source

    return f". Its columns: {', '.join(open_source(file).names)}"


def priors_of(
    upper_bound: float | None, prior_weight: float, consistent: float | None
) -> tuple[Prior, ...]:
    """Return the priors that the options ask for."""
    from capnets.training.priors import Consistent as ConsistentPrior
    from capnets.training.priors import UpperBound as UpperBoundPrior

    priors: list[Prior] = []
    if upper_bound is not None:
        priors.append(UpperBoundPrior(weight=prior_weight, bound=upper_bound))
    if consistent is not None:
        priors.append(ConsistentPrior(weight=consistent))
    return tuple(priors)


def recipe_of(
    name: str | None,
    *,
    fixed_order: bool,
    **settings: Any,
) -> Any:
    """Return a recipe, or changes to the default recipe, as `Options` takes them."""
    from dataclasses import replace

    from capnets.training.recipe import recipe

    changes: dict[str, Any] = {**settings, "reshuffle": False if fixed_order else None}
    changes = {key: value for key, value in changes.items() if value is not None}
    return replace(recipe(name), **changes) if name is not None else changes or None


def sort_of(text: str | None) -> str | int | None:
    """Return the feature to sort by: a number if the text is one."""
    return int(text) if text is not None and text.isdigit() else text
