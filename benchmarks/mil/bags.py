"""Load multiple-instance data sets: real sets ("bags") with one label each.

>>> sorted(MIL)
['birds', 'elephant', 'musk1', 'musk2', 'mutagenesis', 'protein', 'thrombin', 'web1']
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from capnets.errors import unknown
from capnets.sets import Sets
from capnets.tasks import files

__all__ = ["MIL", "MilData", "load_mil", "load_wmil"]


@dataclass(frozen=True)
class MilData:
    """Description of a data set: its sets, instances and labels."""

    about: str
    instance: str
    classes: tuple[str, ...] | None
    unit: str = ""


MIL: dict[str, MilData] = {
    "musk1": MilData("molecules, musk or not", "conformation", ("other", "musk")),
    "musk2": MilData("more molecules, musk or not", "conformation", ("other", "musk")),
    "elephant": MilData("pictures, with an elephant or not", "region", ("none", "elephant")),
    "mutagenesis": MilData("molecules, mutagenic or not", "atom", ("no", "mutagenic")),
    "thrombin": MilData("molecules and their affinity to thrombin", "atom", None, "pKi"),
    "birds": MilData("recordings and the species heard in them", "segment", ("absent", "heard")),
    "protein": MilData("proteins, thioredoxin fold or not", "segment", ("other", "fold")),
    "web1": MilData("index pages, recommended or not", "linked page", ("no", "recommended")),
}


def load_mil(name: str) -> Sets:
    """Load a data set; labels are 0 and 1 (`birds`: one column per species), or amounts.

    The classes of instances are known in `birds` only: 1 to 13, the species; -1 if unknown.
    Instances are in the order of the file. Shuffle them, because that order may carry information.
    """
    if name not in MIL:
        raise unknown("multiple-instance data set", name, MIL)
    with np.load(io.BytesIO(files.read(f"mil/{name}.npz")), allow_pickle=False) as file:
        X = file["X"].astype(np.float32)
        names = tuple(map(str, file["feature_names"])) if "feature_names" in file.files else None
        ids = file["bag_id"] if "bag_id" in file.files else None
        offsets = file["offsets"].astype(np.int64)
        y = file["Y" if "Y" in file.files else "y"].astype(np.float32)
        known = "instance_label" in file.files
        classes = file["instance_label"].astype(np.int64) if known else None
    return Sets(X, np.arange(len(X)), offsets, y, ids=ids, feature_names=names, classes=classes)


def load_wmil(name: str) -> Sets:
    """Load `ted_comments` or `audible`: sentences as bags of words, labels between 0 and 1."""
    if name not in ("ted_comments", "audible"):
        raise unknown("review data set", name, ["ted_comments", "audible"])
    from scipy.sparse import csr_matrix

    with np.load(io.BytesIO(files.read(f"reviews/{name}.npz")), allow_pickle=False) as file:
        parts = file["data"], file["indices"], file["indptr"]
        words = csr_matrix(parts, shape=tuple(file["shape"])).toarray().astype(np.float32)
        offsets, y = file["offsets"].astype(np.int64), file["Y"].astype(np.float32)
        names = tuple(map(str, file["words"]))
    if y.shape[1] == 1:
        y = y[:, 0]
    return Sets(words, np.arange(len(words)), offsets, y, feature_names=names)
