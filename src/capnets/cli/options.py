"""Options that several commands share, as dataclasses: each option is declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from capnets.learn import Options
    from capnets.training.priors import Prior

__all__ = [
    "RUN",
    "DataFile",
    "FeatureFiles",
    "Json",
    "NetworkOptions",
    "RunOptions",
    "TrainingOptions",
    "grouped",
    "option",
    "options_of",
]

NETWORK, TRAINING, RUN = "Network", "Training", "Run"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
FeatureFiles = Annotated[
    Path | None, typer.Option("--features", help="Folder of feature files, for a run on one.")
]
DataFile = Annotated[str, typer.Argument(help="Parquet, CSV, TSV, Feather, JSON lines, .npz.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options; every field becomes an option."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        p.name: p.annotation for p in signature.parameters.values() if is_dataclass(p.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        group = groups.get(parameter.name)
        hints = get_type_hints(group, include_extras=True) if group else {}
        parameters += [
            parameter.replace(name=field.name, annotation=hints[field.name], default=field.default)
            for field in (fields(group) if group else ())
        ] or [parameter]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return run


def option(*names: str, panel: str, **settings: Any) -> Any:
    """Return an option in a panel of the help."""
    return typer.Option(*names, rich_help_panel=panel, **settings)


@dataclass(frozen=True)
class NetworkOptions:
    """The network."""

    model: Annotated[
        str | None,
        option(
            "--model",
            "-m",
            panel=NETWORK,
            help="Name from `capnets models`.",
            show_default="by validation; c-deepset on set tasks",
        ),
    ] = None
    hidden: Annotated[int | None, option(panel=NETWORK, help="Hidden dimensions.")] = None
    layers: Annotated[int | None, option(panel=NETWORK, help="Layers of the encoder.")] = None
    members: Annotated[int | None, option(panel=NETWORK, help="Number of networks to average.")] = (
        None
    )
    activation: Annotated[
        str | None,
        option(panel=NETWORK, help="identity, or without negative values: abs, softplus."),
    ] = None
    aggregation: Annotated[
        str | None, option(panel=NETWORK, help="Combine values: sum, mean, mean+sum, last or any.")
    ] = None
    baseline: Annotated[
        str | None, option(panel=NETWORK, help="Prediction for the empty set: none (0), learned.")
    ] = None
    sort: Annotated[
        str | None, option(panel=NETWORK, help="Read instances sorted by worth, or by a feature.")
    ] = None
    teacher: Annotated[
        str | None, option(panel=NETWORK, help="Also learn from subsets labelled by trees: pooled.")
    ] = None


@dataclass(frozen=True)
class TrainingOptions:
    """The recipe, and a penalty on order dependence."""

    recipe: Annotated[
        str | None,
        option(
            panel=TRAINING,
            help="muon, fast, large, medium, small or paper.",
            show_default="by the number of sets",
        ),
    ] = None
    loss: Annotated[
        str | None,
        option(
            panel=TRAINING,
            help="absolute, huber, quantile:0.9, or poisson for counts.",
            show_default="squared",
        ),
    ] = None
    epochs: Annotated[int | None, option(panel=TRAINING, help="Epochs of each network.")] = None
    batch_size: Annotated[int | None, option(panel=TRAINING, help="Sets per batch.")] = None
    batch_instances: Annotated[
        int | None,
        option(
            panel=TRAINING,
            min=1,
            metavar="N",
            help="Most instances per batch.",
            show_default="if sets are large",
        ),
    ] = None
    accumulate: Annotated[
        int | None,
        option(
            panel=TRAINING,
            min=1,
            metavar="N",
            help="Batches per step, whose gradients are added.",
            show_default="1",
        ),
    ] = None
    sample_instances: Annotated[
        int | None,
        option(
            panel=TRAINING,
            min=1,
            metavar="N",
            help="Random instances of a set that an epoch reads.",
            show_default="all",
        ),
    ] = None
    learning_rate: Annotated[
        float | None, option(panel=TRAINING, help="Highest learning rate.")
    ] = None
    patience: Annotated[
        int | None, option(panel=TRAINING, help="Epochs without improvement before a stop.")
    ] = None
    fixed_order: Annotated[
        bool, option("--fixed-order", panel=TRAINING, help="Do not shuffle instances every epoch.")
    ] = False
    consistent: Annotated[
        float | None,
        option(panel=TRAINING, min=0, metavar="X", help="Weight of a penalty on order dependence."),
    ] = None

    def changed_recipe(self) -> Any:
        """Return a recipe, or changes to the default recipe, as `Options` takes them."""
        from capnets.training.recipe import recipe

        names = (
            "batch_size", "batch_instances", "accumulate", "sample_instances", "learning_rate",
            "patience",
        )  # fmt: skip
        changes = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.fixed_order:
            changes["reshuffle"] = False
        if self.recipe is None:
            return changes or None
        return replace(recipe(self.recipe), **changes)

    def priors(self) -> tuple[Prior, ...]:
        """Return the priors that the options ask for."""
        from capnets.training.priors import Consistent

        return () if self.consistent is None else (Consistent(weight=self.consistent),)


@dataclass(frozen=True)
class RunOptions:
    """The run folder and the training process."""

    out: Annotated[
        Path | None,
        option("--out", "-o", panel=RUN, help="Run folder.", show_default="runs/NAME-MODEL-SEED"),
    ] = None
    seed: Annotated[int, option(panel=RUN, help="Random seed of weights, orders, splits.")] = 0
    threads: Annotated[
        int, option(panel=RUN, min=1, metavar="N", help="Number of CPU threads.")
    ] = 1
    devices: Annotated[
        int,
        option(panel=RUN, min=1, metavar="N", help="GPUs, or processes, that share every batch."),
    ] = 1
    resume: Annotated[bool, option("--resume", panel=RUN, help="Continue an interrupted run.")] = (
        False
    )
    force: Annotated[bool, option("--force", panel=RUN, help="Replace an existing run.")] = False
    as_json: Annotated[bool, option("--json", panel=RUN, help="Print JSON instead of a table.")] = (
        False
    )
    log: Annotated[
        list[str] | None,
        option(panel=RUN, help="tensorboard=FOLDER, mlflow=ADDRESS or wandb=PROJECT; repeatable."),
    ] = None


def options_of(network: NetworkOptions, training: TrainingOptions, *, seed: int) -> Options:
    """Return the settings of a training."""
    from capnets.learn import Options

    asked: dict[str, Any] = {field.name: getattr(network, field.name) for field in fields(network)}
    sort = network.sort
    return Options(
        **asked | {"sort": int(sort) if sort is not None and sort.isdigit() else sort},
        orders=1 if training.fixed_order else None,
        priors=training.priors(),
        recipe=training.changed_recipe(),
        loss=training.loss,
        epochs=training.epochs,
        early_stopping="auto" if training.patience is None else True,
        seed=seed,
    )
