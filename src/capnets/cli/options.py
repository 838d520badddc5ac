"""Options that several commands share, as dataclasses: each option is declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from capnets.errors import InputError, unknown

if TYPE_CHECKING:
    from capnets.ingest import Columns
    from capnets.learn import Options
    from capnets.training.priors import Prior

__all__ = [
    "RUN", "ColumnOptions", "DataFile", "FeatureFiles", "FolderOptions", "Json", "NetworkOptions",
    "RunOptions", "TrainingOptions", "grouped", "options_of",
]  # fmt: skip

COLUMNS, NETWORK, TRAINING, PRIORS, RUN = "Columns", "Network", "Training", "Priors", "Run"
FOLDER = "Folders of features"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
FeatureFiles = Annotated[
    Path | None, typer.Option("--features", help="Folder of feature files, for a run on one.")
]
DataFile = Annotated[str, typer.Argument(help="Parquet, CSV, TSV, Feather or .npz.")]


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


def _option(*names: str, panel: str, **settings: Any) -> Any:
    if panel == COLUMNS:
        settings = {"metavar": "NAME", **settings}
    return typer.Option(*names, rich_help_panel=panel, **settings)


@dataclass(frozen=True)
class ColumnOptions:
    """Meaning of the columns of a file."""

    set_column: Annotated[
        str | None, _option(panel=COLUMNS, help="Names the set of a row (needed).")
    ] = None
    target: Annotated[
        list[str] | None, _option(panel=COLUMNS, help="To predict (needed); repeatable.")
    ] = None
    time: Annotated[
        str | None,
        _option(panel=COLUMNS, help="Time until --event or censoring."),
    ] = None
    event: Annotated[
        str | None,
        _option(panel=COLUMNS, help="1 if the event happened, 0 if not."),
    ] = None
    features: Annotated[
        list[str] | None,
        _option(
            panel=COLUMNS,
            help="Name, pattern or folder; repeatable.",
            show_default="all others",
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        _option(panel=COLUMNS, help="Name or pattern; repeatable."),
    ] = None
    hashed: Annotated[
        list[str] | None,
        _option(panel=COLUMNS, help="Categories to hash; repeatable."),
    ] = None
    order_column: Annotated[
        str | None, _option(panel=COLUMNS, help="Orders the instances of a set.")
    ] = None
    group_column: Annotated[
        str | None, _option(panel=COLUMNS, help="Groups that splits keep whole.")
    ] = None
    split_column: Annotated[
        str | None, _option(panel=COLUMNS, help="Holds train, valid or test.")
    ] = None
    file_column: Annotated[
        str | None,
        _option(
            panel=COLUMNS,
            help="Names a feature file.",
            show_default="FILENAME, SLIDE, …",
        ),
    ] = None
    weight_column: Annotated[str | None, _option(panel=COLUMNS, help="Weight of a set.")] = None
    text_column: Annotated[
        str | None,
        _option(
            panel=COLUMNS,
            help="Text: a sentence per row; without --set-column, a document.",
        ),
    ] = None
    encoder: Annotated[
        str | None,
        _option(panel=COLUMNS, help="Sentence-transformers model of --text-column."),
    ] = None
    smiles: Annotated[str | None, _option(panel=COLUMNS, help="SMILES: a row is a molecule.")] = (
        None
    )
    instances: Annotated[
        str,
        _option(panel=COLUMNS, metavar="KIND", help="Of --smiles: atoms, fragments, conformers."),
    ] = "atoms"
    skip_unparseable: Annotated[
        bool,
        _option(
            "--skip-unparseable", panel=COLUMNS, metavar="", help="Skip rows that cannot be parsed."
        ),
    ] = False
    missing: Annotated[
        str, _option(panel=COLUMNS, metavar="RULE", help="Missing values: refuse, mean, zero.")
    ] = "refuse"
    classify: Annotated[
        bool | None,
        _option(
            "--classify/--regress",
            panel=COLUMNS,
            metavar="",
            help="Predict classes, or an amount.",
            show_default="by its values",
        ),
    ] = None

    @property
    def folder(self) -> Path | None:
        """Folder of feature files, if --features names one."""
        one = Path(self.features[0]) if self.features and len(self.features) == 1 else None
        return one if one is not None and one.is_dir() else None

    @property
    def survival(self) -> bool:
        """Return whether the targets are a time and an event."""
        return self.time is not None or self.event is not None

    def of(self, file: str) -> Columns | None:
        """Return the meaning of the columns of a file; None for .npz, which has none."""
        targets = self._targets()
        others = {
            "features": None if self.folder else self.features,
            "categories": self.categories, "hashed": self.hashed,
            "order": self.order_column, "group": self.group_column, "weight": self.weight_column,
            "missing": self.missing, "split": self.split_column, "file": self.file_column,
            **self._texts(),
        }  # fmt: skip
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in others.items() if v}
        if Path(file).suffix == ".npz":
            named = {"set": self.set_column, "target": targets, **given}
            wrong = [name for name, value in named.items() if value and value != "refuse"]
            if wrong:
                raise InputError(
                    f"{file} has no columns, so none can be named ({', '.join(wrong)}): an .npz "
                    "file holds the arrays X, offsets and y"
                )
            return None
        if (
            self.set_column is None and self.text_column is None and self.smiles is None
        ) or not targets:
            raise InputError(
                f"{file}: name its columns with --set-column … and --target …, "
                "the set that a row belongs to and the column to predict "
                f"(documents need no set column: --text-column …){_column_names(file)}"
            )
        from capnets.ingest import Columns

        return Columns(set=self.set_column or "", target=targets, **given)  # type: ignore[arg-type]

    def _texts(self) -> dict[str, Any]:
        """Return the text column and its encoder."""
        from capnets.ingest.columns import MOLECULES

        if self.smiles is None:
            if self.encoder in MOLECULES:
                raise InputError(f"--encoder {self.encoder}: name the column with --smiles")
            return {"text": self.text_column, "encoder": self.encoder}
        if self.text_column is not None or self.encoder is not None:
            raise InputError("--smiles and --text-column (with --encoder) exclude each other")
        if self.instances not in MOLECULES:
            raise unknown("kind of instances", self.instances, MOLECULES)
        return {"text": self.smiles, "encoder": self.instances, "skip": self.skip_unparseable}

    def _targets(self) -> tuple[str, ...]:
        if not self.survival:
            return tuple(self.target or ())
        if self.time is None or self.event is None or self.target:
            raise InputError(
                "--time and --event belong together and replace --target: the time until the event "
                "or until censoring, and whether the event happened"
            )
        return (self.time, self.event)


def _column_names(file: str) -> str:
    if not Path(file).is_file():
        return ""
    from capnets.ingest.sources import open_source

    return f". Its columns: {', '.join(open_source(file).names)}"


@dataclass(frozen=True)
class FolderOptions:
    """Folders of feature files."""

    files: Annotated[
        Path | None,
        _option(panel=FOLDER, help="Table that assigns files to sets, if FILE does not."),
    ] = None
    pool: Annotated[
        Path | None,
        _option(
            panel=FOLDER,
            help="Folder for converted features.",
            show_default="FOLDER.pool beside the folder",
        ),
    ] = None
    partial: Annotated[
        bool,
        _option(
            "--partial",
            panel=FOLDER,
            help="Leave out empty files, files without a row and rows without a file.",
        ),
    ] = False

    def of(self, file: str, features: Path | None, progress: Any = None) -> Any:
        """Return the data that arguments name: a file, or a folder of features and its table."""
        from capnets.ingest import FeatureFolder

        about = {"pool": self.pool, "partial": self.partial, "progress": progress}
        if features is not None:
            return FeatureFolder(features, file, self.files, **about)
        folder = Path(file)
        if folder.is_dir() and not any(folder.rglob("*.parquet")):
            return FeatureFolder(folder, **about)
        return file


@dataclass(frozen=True)
class NetworkOptions:
    """The network."""

    model: Annotated[
        str | None,
        _option(
            "--model",
            "-m",
            panel=NETWORK,
            help="Name from `capnets models`.",
            show_default="by validation; c-deepset on set tasks",
        ),
    ] = None
    hidden: Annotated[int | None, _option(panel=NETWORK, help="Hidden dimensions.")] = None
    layers: Annotated[int | None, _option(panel=NETWORK, help="Layers of the encoder.")] = None
    members: Annotated[
        int | None, _option(panel=NETWORK, help="Number of networks to average.")
    ] = None
    activation: Annotated[
        str | None,
        _option(panel=NETWORK, help="identity, or without negative values: abs, softplus."),
    ] = None
    aggregation: Annotated[
        str | None, _option(panel=NETWORK, help="Of added values: sum, mean, mean+sum.")
    ] = None
    baseline: Annotated[
        str | None, _option(panel=NETWORK, help="Prediction for the empty set: none (0), learned.")
    ] = None
    sort: Annotated[
        str | None, _option(panel=NETWORK, help="Read instances sorted by worth, or by a feature.")
    ] = None
    teacher: Annotated[
        str | None,
        _option(panel=NETWORK, help="Learn also from subsets labelled by trees: pooled."),
    ] = None


@dataclass(frozen=True)
class TrainingOptions:
    """The recipe, and prior knowledge about added values."""

    recipe: Annotated[
        str | None,
        _option(
            panel=TRAINING,
            help="muon, fast, large, medium, small or paper.",
            show_default="by the number of sets",
        ),
    ] = None
    epochs: Annotated[int | None, _option(panel=TRAINING, help="Epochs of each network.")] = None
    batch_size: Annotated[int | None, _option(panel=TRAINING, help="Sets per step.")] = None
    batch_instances: Annotated[
        int | None,
        _option(
            panel=TRAINING,
            min=1,
            metavar="N",
            help="Largest number of instances per step.",
            show_default="if sets are large",
        ),
    ] = None
    sample_instances: Annotated[
        int | None,
        _option(
            panel=TRAINING,
            min=1,
            metavar="N",
            help="Random instances of a set that an epoch reads.",
            show_default="all",
        ),
    ] = None
    learning_rate: Annotated[
        float | None, _option(panel=TRAINING, help="Highest learning rate.")
    ] = None
    patience: Annotated[
        int | None,
        _option(panel=TRAINING, help="Epochs without improvement before a stop."),
    ] = None
    fixed_order: Annotated[
        bool,
        _option("--fixed-order", panel=TRAINING, help="Do not shuffle instances every epoch."),
    ] = False
    upper_bound: Annotated[
        float | None, _option(panel=PRIORS, help="No added value exceeds this number.")
    ] = None
    prior_weight: Annotated[
        float,
        _option(
            panel=PRIORS, min=0, metavar="X", help="Weight of --upper-bound, in units of the loss."
        ),
    ] = 1.0
    consistent: Annotated[
        float | None,
        _option(panel=PRIORS, min=0, metavar="X", help="Weight of a penalty on order dependence."),
    ] = None

    def changed_recipe(self) -> Any:
        """Return a recipe, or changes to the default recipe, as `Options` takes them."""
        from capnets.training.recipe import recipe

        names = ("batch_size", "batch_instances", "sample_instances", "learning_rate", "patience")
        changes = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.fixed_order:
            changes["reshuffle"] = False
        if self.recipe is None:
            return changes or None
        return replace(recipe(self.recipe), **changes)

    def priors(self) -> tuple[Prior, ...]:
        """Return the priors that the options ask for."""
        from capnets.training.priors import Consistent, UpperBound

        priors: list[Prior] = []
        if self.upper_bound is not None:
            priors.append(UpperBound(weight=self.prior_weight, bound=self.upper_bound))
        if self.consistent is not None:
            priors.append(Consistent(weight=self.consistent))
        return tuple(priors)


@dataclass(frozen=True)
class RunOptions:
    """The run folder and the training process."""

    out: Annotated[
        Path | None,
        _option("--out", "-o", panel=RUN, help="Run folder.", show_default="runs/NAME-MODEL-SEED"),
    ] = None
    seed: Annotated[int, _option(panel=RUN, help="Random seed of weights, orders, splits.")] = 0
    threads: Annotated[
        int, _option(panel=RUN, min=1, metavar="N", help="Number of CPU threads.")
    ] = 1
    resume: Annotated[bool, _option("--resume", panel=RUN, help="Continue an interrupted run.")] = (
        False
    )
    force: Annotated[bool, _option("--force", panel=RUN, help="Replace an existing run.")] = False
    as_json: Annotated[
        bool, _option("--json", panel=RUN, help="Print JSON instead of a table.")
    ] = False
    log: Annotated[
        list[str] | None,
        _option(panel=RUN, help="tensorboard=FOLDER, mlflow=ADDRESS or wandb=PROJECT; repeatable."),
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
        epochs=training.epochs,
        early_stopping="auto" if training.patience is None else True,
        seed=seed,
    )
