"""Molecules as sets: the atoms, fragments or conformers of a SMILES, by RDKit.

- `atoms`: heavy atoms, with element, charge, degree, hydrogens, aromaticity, ring, hybridization;
- `fragments`: the pieces between BRICS bonds, with nine descriptors each;
- `conformers`: ten shapes by ETKDG (seeded), with energies and eleven descriptors of shape.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from capnets.errors import check_extra
from capnets.sets import Array

__all__ = ["Molecules", "draw"]

ELEMENTS = ("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I")
ATOM = (
    *ELEMENTS, "other", "degree", "charge", "hydrogens", "aromatic", "ring", "sp", "sp2", "sp3",
)  # fmt: skip
FRAGMENT = (
    "MolWt", "MolLogP", "TPSA", "NumHDonors", "NumHAcceptors", "NumRotatableBonds", "RingCount",
    "NumAromaticRings", "HeavyAtomCount",
)  # fmt: skip
SHAPE = (
    "Asphericity", "Eccentricity", "InertialShapeFactor", "NPR1", "NPR2", "PBF", "PMI1", "PMI2",
    "PMI3", "RadiusOfGyration", "SpherocityIndex",
)  # fmt: skip
#: Conformers of a molecule.
CONFORMERS = 10
RAISES, LOWERS = np.array([0.0, 0.447, 0.698]), np.array([0.835, 0.369, 0.0])


class Molecules:
    """Split a SMILES into instances and encode them as numbers.

    Parameters
    ----------
    kind
        `atoms`, `fragments` or `conformers`.
    """

    what = "a SMILES that RDKit can parse"

    def __init__(self, kind: str) -> None:
        check_extra("rdkit", "chem", purpose="reading SMILES")
        self.kind = kind

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the numbers of an instance."""
        if self.kind == "conformers":
            return ("energy", *SHAPE)
        return ATOM if self.kind == "atoms" else FRAGMENT

    def split(self, text: str) -> list[str]:
        """Return a label per instance; none if the SMILES cannot be parsed or embedded."""
        return [label for label, _ in _encoded(text, self.kind)]

    def encode(self, texts: Sequence[str], labels: Sequence[str]) -> Array:
        """Return the numbers of all instances, molecule after molecule."""
        rows = [numbers for text in texts for _, numbers in _encoded(text, self.kind)]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.features))


def draw(smiles: str, values: Array, kind: str) -> str | None:
    """Return a picture whose atoms are coloured by value, as a data URI; None for conformers."""
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = _parsed(smiles)
    if molecule is None or kind == "conformers":
        return None
    largest = float(np.abs(values).max(initial=0)) or 1.0
    colours: dict[int, Any] = {}
    for value, atoms in zip(values, _members(molecule, kind), strict=True):
        strength = 0.75 * abs(float(value)) / largest
        colour = (1 - strength) + strength * (RAISES if value >= 0 else LOWERS)
        colours |= {atom: tuple(colour.tolist()) for atom in atoms}
    drawing = rdMolDraw2D.MolDraw2DSVG(420, 300)
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawing, molecule, highlightAtoms=list(colours), highlightAtomColors=colours,
        highlightBonds=[],
    )  # fmt: skip
    drawing.FinishDrawing()
    content = base64.b64encode(drawing.GetDrawingText().encode()).decode()
    return f"data:image/svg+xml;base64,{content}"


def _parsed(smiles: str) -> Any:
    """Return the molecule of a SMILES, or None."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        molecule: Any = Chem.MolFromSmiles(smiles)
    return molecule if molecule is not None and molecule.GetNumAtoms() else None


@lru_cache(maxsize=4096)
def _encoded(smiles: str, kind: str) -> list[tuple[str, list[float]]]:
    """Return label and numbers of every instance of a molecule."""
    molecule = _parsed(smiles)
    if molecule is None:
        return []
    return {"atoms": _atoms, "fragments": _fragments, "conformers": _conformers}[kind](molecule)


def _atoms(molecule: Any) -> list[tuple[str, list[float]]]:
    found = []
    for atom in molecule.GetAtoms():
        symbol, hybrid = atom.GetSymbol(), str(atom.GetHybridization()).lower()
        elements = [symbol == e for e in ELEMENTS]
        numbers = [
            *elements, not any(elements), atom.GetDegree(), atom.GetFormalCharge(),
            atom.GetTotalNumHs(), atom.GetIsAromatic(), atom.IsInRing(),
            *(hybrid == name for name in ("sp", "sp2", "sp3")),
        ]  # fmt: skip
        found.append((f"{symbol}{atom.GetIdx() + 1}", [float(n) for n in numbers]))
    return found


def _fragments(molecule: Any) -> list[tuple[str, list[float]]]:
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    measures = dict(Descriptors.descList)
    pieces = Chem.GetMolFrags(Chem.FragmentOnBRICSBonds(molecule), asMols=True)
    return [
        (Chem.MolToSmiles(piece), [float(measures[name](piece)) for name in FRAGMENT])
        for piece in pieces
    ]


def _conformers(molecule: Any) -> list[tuple[str, list[float]]]:
    from rdkit import Chem, rdBase
    from rdkit.Chem import Descriptors3D, rdDistGeom, rdForceFieldHelpers

    whole = Chem.AddHs(molecule)
    how: Any = rdDistGeom.ETKDGv3()
    how.randomSeed = 0  # the same shapes in every process
    with rdBase.BlockLogs():
        numbers = list(rdDistGeom.EmbedMultipleConfs(whole, CONFORMERS, how))
        optimized = rdForceFieldHelpers.MMFFOptimizeMoleculeConfs(whole) if numbers else []
    energies = [energy for _, energy in optimized]
    lowest = min(energies, default=0.0)
    return [
        (
            f"conformer {k + 1}",
            [energy - lowest, *(getattr(Descriptors3D, n)(whole, confId=k) for n in SHAPE)],
        )
        for k, energy in zip(numbers, energies, strict=True)
    ]


def _members(molecule: Any, kind: str) -> list[tuple[int, ...]]:
    """Return the atoms of every instance."""
    from rdkit import Chem

    count = molecule.GetNumAtoms()
    if kind == "atoms":
        return [(k,) for k in range(count)]
    # Cut bonds end in dummy atoms, which are numbered after all atoms of the molecule.
    pieces = Chem.GetMolFrags(Chem.FragmentOnBRICSBonds(molecule))
    return [tuple(k for k in piece if k < count) for piece in pieces]
