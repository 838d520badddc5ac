"""Find the graphs of a network, and what is known of its training, wherever it is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from capnets.errors import InputError
from capnets.files.folders import recover_folder
from capnets.files.manifest import MANIFEST, Damaged, check, read_manifest
from capnets.models.base import SetModel
from capnets.runs import Run, RunConfig

__all__ = ["Source", "read_graphs", "trained_sizes"]


class Fitted(Protocol):
    """A fitted estimator."""

    model_: SetModel


Source = SetModel | Run | Fitted | str | Path


def read_graphs(source: Source) -> dict[str, bytes]:
    """Return the graphs of a network, a run, an estimator, or an exported folder."""
    if isinstance(source, str | Path):
        folder = Path(source)
        recover_folder(folder)
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: give a run or what `capnets export` wrote")
        if files := _read_export(folder):
            return files
        source = Run(folder)
    # The package onnx is needed to build graphs, not to run them.
    from capnets.export.onnx import graphs

    return graphs(_network(source))


def _read_export(folder: Path) -> dict[str, bytes]:
    """Read the graphs of an export and check them; empty if the folder is no export."""
    files = {file.name: file.read_bytes() for file in sorted(folder.glob("*.onnx"))}
    if not files:
        return {}
    if "sets.onnx" not in files:
        raise InputError(f"{folder} has no sets.onnx; export it again")
    name = MANIFEST
    try:
        digests = read_manifest(folder)
        if digests is not None:  # earlier versions wrote none
            files |= {name: (folder / name).read_bytes() for name in digests}
        for name, data in files.items():
            check(name, data, digests)
    except (OSError, Damaged) as error:
        raise InputError(f"{folder / name} is damaged ({error}); export it again") from error
    return {Path(name).stem: data for name, data in files.items() if name.endswith(".onnx")}


def trained_sizes(source: Source) -> tuple[int, int] | None:
    """Return the range of training set sizes that a run or the card of an export records."""
    data: Any = None
    if isinstance(source, str | Path):
        card = Path(source) / "card.json"
        if card.is_file():
            data = _card_data(card)
        elif not (card.parent / "sets.onnx").is_file():
            source = Run(source)
    if isinstance(source, Run):
        return source.config.sizes
    config: Any = getattr(source, "config_", None)
    if isinstance(config, RunConfig):
        return config.sizes
    sizes = data.get("sizes") if isinstance(data, dict) else None
    return None if sizes is None else (int(sizes[0]), int(sizes[1]))


def _card_data(path: Path) -> Any:
    try:
        return json.loads(path.read_text())["training"].get("data")
    except (ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error!r}); export it again") from error


def _network(source: Any) -> SetModel:
    found = source.model if isinstance(source, Run) else getattr(source, "model_", source)
    if isinstance(found, SetModel):
        return found
    if hasattr(source, "fit"):
        raise InputError(f"this {type(source).__name__} has no network yet; fit it first")
    raise InputError(
        f"expected a network, a run, a fitted estimator or a folder of one of them, not {source!r}"
    )
