"""Options that describe a file: the meaning of its columns, and folders of feature files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from capnets.cli.options import option
from capnets.errors import InputError, unknown

if TYPE_CHECKING:
    from capnets.ingest import Columns

__all__ = ["ColumnOptions", "FolderOptions"]

COLUMNS, FOLDER = "Columns", "Folders of features"


def _column(*names: str, **settings: Any) -> Any:
    return option(*names, panel=COLUMNS, **{"metavar": "NAME", **settings})


@dataclass(frozen=True)
class ColumnOptions:
    """Meaning of the columns of a file."""

    set_column: Annotated[str | None, _column(help="Names the set of a row (required).")] = None
    target: Annotated[
        list[str] | None, _column(help="Label to predict (required); repeatable.")
    ] = None
    time: Annotated[str | None, _column(help="Time until --event or censoring.")] = None
    event: Annotated[str | None, _column(help="1 if the event happened, 0 if not.")] = None
    features: Annotated[
        list[str] | None,
        _column(help="Name, pattern or folder; repeatable.", show_default="all others"),
    ] = None
    categories: Annotated[list[str] | None, _column(help="Name or pattern; repeatable.")] = None
    hashed: Annotated[list[str] | None, _column(help="Categories to hash; repeatable.")] = None
    covariates: Annotated[
        list[str] | None, _column(help="Features of whole sets; repeatable, or A,B.")
    ] = None
    order_column: Annotated[str | None, _column(help="Order of the instances of a set.")] = None
    group_column: Annotated[str | None, _column(help="Groups to keep together in splits.")] = None
    split_column: Annotated[str | None, _column(help="Split: train, valid or test.")] = None
    file_column: Annotated[
        str | None, _column(help="Names a feature file.", show_default="FILENAME, SLIDE, …")
    ] = None
    coordinates: Annotated[
        bool,
        _column("--coordinates", metavar="", help="Places of a feature folder are features, too."),
    ] = False
    weight_column: Annotated[str | None, _column(help="Weight of a set.")] = None
    text_column: Annotated[
        str | None, _column(help="Text: a sentence per row; without --set-column, a document.")
    ] = None
    encoder: Annotated[
        str | None, _column(help="Sentence-transformers model of --text-column.")
    ] = None
    smiles: Annotated[str | None, _column(help="SMILES: a row is a molecule.")] = None
    instances: Annotated[
        str, _column(metavar="KIND", help="Instances of --smiles: atoms, fragments, conformers.")
    ] = "atoms"
    skip_unparseable: Annotated[
        bool, _column("--skip-unparseable", metavar="", help="Skip rows that cannot be parsed.")
    ] = False
    missing: Annotated[str, _column(metavar="RULE", help="Missing values: refuse, mean, zero.")] = (
        "refuse"
    )
    classify: Annotated[
        bool | None,
        _column(
            "--classify/--regress",
            metavar="",
            help="Predict classes, or an amount.",
            show_default="from its values",
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
        """Return the meaning of the columns of a file; None for an .npz file without options.

        The sets of an .npz file are in the column `set` and its labels in `y`, unless named.
        """
        self._check_features(file)
        targets, named = self._targets(), self.set_column
        others = {
            "features": None if self.folder else self.features,
            "categories": self.categories, "hashed": self.hashed,
            "covariates": [n for c in self.covariates or () for n in c.split(",") if n],
            "order": self.order_column, "group": self.group_column, "weight": self.weight_column,
            "missing": self.missing, "split": self.split_column, "file": self.file_column,
            "coordinates": self.coordinates,
            **self._texts(),
        }  # fmt: skip
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in others.items() if v}
        if Path(file).suffix == ".npz":
            if not (named or targets or given != {"missing": "refuse"}):
                return None
            named, targets = named or "set", targets or ("y",)
        if (named is None and self.text_column is None and self.smiles is None) or not targets:
            raise InputError(
                f"{file}: name its columns with --set-column … and --target …, "
                "the set that a row belongs to and the column to predict "
                f"(documents need no set column: --text-column …){_column_names(file)}"
            )
        from capnets.ingest import Columns

        return Columns(set=named or "", target=targets, **given)  # type: ignore[arg-type]

    def _check_features(self, file: str) -> None:
        """Raise if --features names neither a folder nor a column."""
        name, *more = self.features or [""]
        if not name or more or self.folder or not Path(file).is_file():
            return
        from capnets.ingest.columns import matches, missing_column
        from capnets.ingest.sources import open_source

        names = open_source(file).names
        if not any(matches(column, name) for column in names):
            lost = missing_column(name, names, where=file)
            raise InputError(f"--features: there is no folder {name!r}; {lost}")

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
        option(panel=FOLDER, help="Table that assigns files to sets, if FILE does not."),
    ] = None
    pool: Annotated[
        Path | None,
        option(
            panel=FOLDER,
            help="Folder for converted features.",
            show_default="FOLDER.pool beside the folder",
        ),
    ] = None
    partial: Annotated[
        bool,
        option(
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
