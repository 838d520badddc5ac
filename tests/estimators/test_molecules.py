"""Molecules as sets of atoms, fragments and conformers."""

import base64
import re

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import DataWarning, InputError
from capnets.estimators.documents import opened
from capnets.estimators.molecules import ATOM, FRAGMENT, SHAPE, Molecules, draw
from capnets.ingest import Columns, read_table

ASPIRIN, CAFFEINE = "CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"
SMILES = [ASPIRIN, CAFFEINE, "CCO", "c1ccccc1", "CC(=O)N", "C[NH3+]"]


def frame(smiles=SMILES):
    nitrogens = [(s or "").upper().count("N") for s in smiles]
    return pd.DataFrame({"smiles": smiles, "y": np.arange(len(smiles)) + 0.5, "n": nitrogens})


def read(table, **settings):
    columns = Columns(text="smiles", target="y", **settings)
    return read_table(opened(table, columns), columns)


def test_atoms_are_those_of_the_molecule():
    sets = read(frame(), encoder="atoms").sets
    assert sets.sizes.tolist() == [Chem.MolFromSmiles(s).GetNumHeavyAtoms() for s in SMILES]
    assert sets.feature_names == tuple(f"smiles[{name}]" for name in ATOM)
    at = {name: k for k, name in enumerate(ATOM)}
    nitrogens = [int(sets[k][:, at["N"]].sum()) for k in range(len(sets))]
    assert nitrogens == frame().n.tolist()
    elements = sets.instances[:, : at["other"] + 1]
    assert (elements.sum(axis=1) == 1).all()
    assert sets[3][:, at["aromatic"]].tolist() == [1] * 6
    assert sets[2][:, at["hydrogens"]].tolist() == [3, 2, 1]
    assert sets[5][:, at["charge"]].tolist() == [0, 1]


def test_fragments_and_conformers():
    fragments = read(frame(), encoder="fragments").sets
    assert fragments.sizes[0] == 4  # acetyl, oxygen, ring and carboxyl of aspirin
    assert fragments.in_features == len(FRAGMENT)
    atoms = fragments.instances[:, FRAGMENT.index("HeavyAtomCount")]
    owner = np.repeat(np.arange(len(SMILES)), fragments.sizes)
    assert np.bincount(owner, atoms)[2:4].tolist() == [3, 6]
    one = read(frame(SMILES[:3]), encoder="conformers").sets
    two = read(frame(SMILES[:3]), encoder="conformers").sets
    assert one.in_features == 1 + len(SHAPE)
    np.testing.assert_array_equal(one.instances, two.instances)
    assert (one.instances[:, 0] >= 0).all()


def test_unparseable_smiles_are_named_counted_and_skipped_only_when_told_to():
    table = frame([*SMILES[:2], "C1CC", "CCO", None])
    with pytest.raises(
        InputError, match=r"2 of the first 5 rows .* row 2 \('C1CC'\), row 4 \(None"
    ):
        read(table, encoder="atoms")
    with pytest.warns(DataWarning, match=r"2 of the first 5 rows .*row 2 \('C1CC'\).*skipped"):
        sets = read(table, encoder="atoms", skip=True).sets
    assert sets.ids.tolist() == [0, 1, 3]
    assert sets.y.tolist() == [0.5, 1.5, 3.5]


def test_colours_follow_the_values():
    values = np.zeros(13)
    values[0], values[3] = 1.0, -2.0
    picture = draw(ASPIRIN, values, "atoms")
    svg = base64.b64decode(picture.partition(",")[2]).decode()
    fills = {tuple(bytes.fromhex(code)) for code in re.findall(r"fill:#([0-9A-F]{6})", svg)}

    def shown(colour):
        return any(np.abs(np.subtract(fill, colour)).max() <= 1 for fill in fills)

    orange, blue = np.array([0.835, 0.369, 0.0]), np.array([0.0, 0.447, 0.698])
    assert shown(255 * (0.25 + 0.75 * orange))  # the largest value lowers
    assert shown(255 * (0.625 + 0.375 * blue))  # one half as large raises, in a lighter colour
    assert draw(ASPIRIN, np.ones(4), "fragments") is not None
    assert draw(ASPIRIN, np.ones(3), "conformers") is None
    labels = Molecules("atoms").split("CCO")
    assert labels == ["C1", "C2", "O3"]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


SMALL = ("-m", "c-gru", "--members", 1, "--epochs", 2, "--hidden", 4)


@pytest.mark.filterwarnings("ignore::capnets.errors.DataWarning")
def test_command_line(tmp_path):
    file, run, page = tmp_path / "m.csv", tmp_path / "run", tmp_path / "page.html"
    frame(SMILES * 4).to_csv(file, index=False)
    done = invoke("train", file, "--smiles", "smiles", "--target", "n", *SMALL, "-o", run)
    assert done.exit_code == 0, done.output
    assert invoke("explain", run, file, "--sets", "0", "--html", page).exit_code == 0
    text = page.read_text()
    assert "data:image/svg+xml;base64," in text
    assert "O4" in text  # the name of an atom
    out = tmp_path / "p.csv"
    assert invoke("predict", run, file, "-o", out).exit_code == 0
    rows = pd.read_csv(out)
    assert rows[rows["set"] == 2].sentence.tolist() == ["C1", "C2", "O3"]
    sums = rows.groupby("set").added_value.sum() + rows.get("baseline", 0 * rows["set"]).iloc[0]
    np.testing.assert_allclose(sums, rows.groupby("set").prediction.first(), atol=1e-4)


def test_faults(tmp_path):
    file = tmp_path / "m.csv"
    frame(["CCO", "C1CC"] * 4).to_csv(file, index=False)
    base = ("train", file, "--target", "n", *SMALL, "-o", tmp_path / "run")
    for more, message in (
        (("--smiles", "smiles"), "4 of the first 8 rows"),
        (("--smiles", "simles"), "unknown column 'simles'"),
        (("--smiles", "smiles", "--instances", "bonds"), "unknown kind of instances 'bonds'"),
        (("--smiles", "smiles", "--text-column", "smiles"), "exclude each other"),
        (("--text-column", "smiles", "--encoder", "atoms"), "name the column with --smiles"),
        (("--smiles", "smiles", "--set-column", "n"), "no set column"),
    ):
        with pytest.raises(InputError, match=message):
            invoke(*base, *more)
    assert not (tmp_path / "run").exists()
