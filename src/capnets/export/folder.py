"""Write the graphs and the card of a network to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from capnets.errors import InputError
from capnets.files import write_bytes, write_json, write_text
from capnets.files.folders import replacing
from capnets.files.manifest import write_manifest
from capnets.models.base import SetModel
from capnets.runs import Run
from capnets.sets import Sets

if TYPE_CHECKING:
    from capnets.export.card import Card

__all__ = ["export"]


def export(
    source: SetModel | Run | str | Path,
    folder: str | Path,
    *,
    sets: Sets | None = None,
    force: bool = False,
) -> Card:
    """Write a network as ONNX graphs with a model card.

    The graphs are first compared with the network on sets of several sizes. If they differ by more
    than 1e-4 units, an error is raised and nothing is written.

    Parameters
    ----------
    source
        A network, or a run (or its folder), whose data, metrics and names go into the card.
    folder
        Output folder, for the graphs (see `capnets.export.onnx`), `card.json` and `README.md`.
    sets
        Real sets for the comparison, in addition to random ones.
    force
        Replace an earlier export. Other existing files and folders are never replaced.

    Returns
    -------
    card
        The content of `card.json`.
    """
    from capnets.export.card import Card
    from capnets.export.compare import compare
    from capnets.export.onnx import graphs, in_use

    _check_free(Path(folder), force=force)
    if isinstance(source, str | Path):
        source = Run(source)
    run = source if isinstance(source, Run) else None
    model = source.model if isinstance(source, Run) else source
    if not isinstance(model, SetModel):
        raise InputError(
            f"a run or a network can be exported, not {model!r}; save an estimator first, so that "
            "the card describes it: export(estimator.save(…), …)"
        )
    model = in_use(model)
    built = graphs(model)
    difference = compare(model, built, sets=sets)
    card = Card.of(model, built, difference=difference, run=run)
    busy = f"another process is exporting to {folder}"
    with replacing(Path(folder), busy=busy) as temporary:
        _check_free(Path(folder), force=force)  # check again: building the graphs takes a while
        for name, graph in built.items():
            write_bytes(temporary / f"{name}.onnx", graph)
        write_text(temporary / "README.md", card.page())
        write_json(temporary / "card.json", card.to_dict())
        write_manifest(temporary, {path.name: path.read_bytes() for path in temporary.iterdir()})
    return card


def _check_free(folder: Path, *, force: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / "card.json").is_file() or not (folder / "sets.onnx").is_file():
        raise InputError(f"{folder} exists and is no export; choose another folder")
    if not force:
        raise InputError(f"{folder} holds an export already; force=True (--force) replaces it")
