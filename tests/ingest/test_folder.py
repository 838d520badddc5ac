"""Folders of feature files become sets over one mapped table."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.ingest import Columns, FeatureFolder, read_folder, read_table
from feature_folders import SIDE, WRITERS, make_folder, slide, write_trident

COLUMNS = Columns(set="slide_id", target="grade", file="slide_id")


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.parametrize("kind", WRITERS)
def test_formats(kind, tmp_path):
    """Every format gives the same instances, in half precision and from disk."""
    table, features = make_folder(tmp_path, sets=4, kind=kind)
    data = read_folder(FeatureFolder(features, table), COLUMNS)
    assert data.sets.instances.dtype == np.float16
    assert isinstance(data.sets.instances, np.memmap)
    assert data.sets.ids.tolist() == ["s0", "s1", "s2", "s3"]
    assert data.classes == ("high", "low")
    for k in range(4):
        x, coords = slide(k, label=k % 2, rows=8 + 4 * (k % 3))
        np.testing.assert_array_equal(data.sets[k], x)
        if kind == "npy":
            assert data.sets.coords is None
            continue
        found = data.sets.coords[data.sets.rows(k)]
        np.testing.assert_array_equal(found, coords / 2 if kind == "stamp" else coords)
    sides = {"trident": SIDE, "zarr": SIDE, "stamp": SIDE / 2}
    assert data.parts[0].side == sides.get(kind)
    assert data.parts[0].unit == {"stamp": "um", "npy": ""}.get(kind, "px")


class TestTables:
    def test_several_files_make_one_set(self, tmp_path):
        """Files of a patient, named in a second table, follow one another."""
        _, features = make_folder(tmp_path, sets=4)
        clini, slides = tmp_path / "patients.csv", tmp_path / "slides.csv"
        clini.write_text("PATIENT,age,site\na,50,x\nb,60,y\n")
        slides.write_text("FILENAME,PATIENT\ns0.svs,a\ns1.h5,b\ns2,a\ns3,b\n")
        columns = Columns(set="PATIENT", target="age", group="site")
        data = read_folder(FeatureFolder(features, clini, files=slides), columns)
        assert data.sets.y.tolist() == [50, 60]
        assert data.groups.tolist() == [0, 1]
        whole = np.concatenate([slide(k, label=0, rows=8 + 4 * (k % 3))[0] for k in (0, 2)])
        np.testing.assert_array_equal(data.sets[0], whole)

    def test_one_row_per_file(self, tmp_path):
        _, features = make_folder(tmp_path, sets=4)
        table = tmp_path / "rows.csv"
        table.write_text("slide_id,patient,y\ns3,a,1\ns0,b,2\ns1,a,1\ns2,b,2\n")
        data = read_folder(FeatureFolder(features, table), Columns(set="patient", target="y"))
        assert data.sets.ids.tolist() == ["a", "b"]
        assert data.sets.sizes.tolist() == [8 + 12, 8 + 16]

    def test_labels_must_agree(self, tmp_path):
        _, features = make_folder(tmp_path, sets=2)
        table = tmp_path / "rows.csv"
        table.write_text("slide_id,patient,y\ns0,a,1\ns1,a,2\n")
        with pytest.raises(InputError, match="it must be constant within a set"):
            read_folder(FeatureFolder(features, table), Columns(set="patient", target="y"))

    def test_splits(self, tmp_path):
        table, features = make_folder(tmp_path, sets=12)
        parts = ["train"] * 6 + ["val"] * 2 + ["test"] * 4
        lines = table.read_text().splitlines()
        rows = [f"{a},{b}" for a, b in zip(lines, ["part", *parts], strict=True)]
        table.write_text("\n".join(rows) + "\n")
        columns = Columns(set="slide_id", target="grade", split="part")
        problem = SetClassifier(columns=columns).problem(FeatureFolder(features, table))
        assert [len(problem.train), len(problem.valid), len(problem.tests["test"])] == [6, 2, 4]
        table.write_text(table.read_text().replace("val\n", "later\n"))
        with pytest.raises(InputError, match="the split 'later' is unknown"):
            read_folder(FeatureFolder(features, table), columns)

    def test_sets_to_predict_need_no_table(self, tmp_path):
        _, features = make_folder(tmp_path, sets=3)
        data = read_folder(FeatureFolder(features), None)
        assert data.sets.ids.tolist() == ["s0", "s1", "s2"]
        assert data.sets.y is None

    def test_mixed_precision_becomes_float32(self, tmp_path):
        table, features = make_folder(tmp_path, sets=2)
        write_trident(features / "s1.h5", *slide(1, label=1)[:1], slide(1, label=1)[1])
        with h5py.File(features / "s1.h5", "r+") as file:
            x = file["features"][:].astype(np.float64)
            del file["features"]
            file["features"] = x
        data = read_folder(FeatureFolder(features, table), COLUMNS)
        assert data.sets.instances.dtype == np.float32


FAULTS = {
    "another width": "s1.h5 has 5 features, but .*s0.h5 has 6",
    "an empty slide": "s1.h5 has no instances",
    "a slide without label": r"holds 1 file \('spare.h5'\) that .*clini.csv has no label for",
    "a label without slide": r"names 1 file \('s1'\) that .*features does not hold",
    "a damaged file": "s1.h5 cannot be read as h5: .*",
    "no features": "s1.h5 has no features: one of features, feats",
    "too few coordinates": "s1.h5 has 12 instances, but 3 coordinates",
    "a pickle": r"names 1 file \('s1'\) .* a .pt file is a pickle",
}


def break_folder(features: Path, fault: str) -> None:
    path, (x, coords) = features / "s1.h5", slide(1, label=1)
    if fault == "another width":
        write_trident(path, x[:, :5], coords)
    elif fault == "an empty slide":
        write_trident(path, x[:0], coords[:0])
    elif fault == "a slide without label":
        write_trident(features / "spare.h5", x, coords)
    elif fault == "a label without slide":
        path.unlink()
    elif fault == "a damaged file":
        path.write_bytes(path.read_bytes()[:700])
    elif fault == "no features":
        with h5py.File(path, "w") as file:
            file["other"] = x
    elif fault == "too few coordinates":
        write_trident(path, x, coords[:3])
    else:
        path.rename(path.with_suffix(".pt"))


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_and_nothing_is_written(fault, tmp_path):
    table, features = make_folder(tmp_path, sets=3)
    break_folder(features, fault)
    before = written(tmp_path)
    with pytest.raises(InputError, match=FAULTS[fault]) as error:
        read_folder(FeatureFolder(features, table), COLUMNS)
    assert "\n" not in str(error.value)
    assert written(tmp_path) == before


@pytest.mark.parametrize("fault", ["an empty slide", "a slide without label",
                                   "a label without slide"])  # fmt: skip
def test_partial_leaves_them_out(fault, tmp_path):
    table, features = make_folder(tmp_path, sets=3)
    break_folder(features, fault)
    data = read_folder(FeatureFolder(features, table, partial=True), COLUMNS)
    complete = fault == "a slide without label"
    assert data.sets.ids.tolist() == ["s0", "s1", "s2"] if complete else ["s0", "s2"]


def test_a_folder_without_features(tmp_path):
    (tmp_path / "a.pt").touch()
    with pytest.raises(InputError, match=r"holds no feature files \(a.pt: .*weights_only=True"):
        read_folder(FeatureFolder(tmp_path), None)


class TestPool:
    def test_is_converted_once(self, tmp_path):
        table, features = make_folder(tmp_path, sets=4)
        seen = []
        folder = FeatureFolder(features, table, progress=lambda *line: seen.append(line))
        read_folder(folder, COLUMNS)
        assert seen[-1] == ("converting features", 4, 4)
        seen.clear()
        read_folder(folder, COLUMNS)
        assert not seen

    def test_a_changed_file_is_converted_again(self, tmp_path):
        table, features = make_folder(tmp_path, sets=3)
        read_folder(FeatureFolder(features, table), COLUMNS)
        x, coords = slide(99, label=0)
        write_trident(features / "s1.h5", x, coords)
        data = read_folder(FeatureFolder(features, table), COLUMNS)
        np.testing.assert_array_equal(data.sets[1], x)

    def test_damage_is_found(self, tmp_path):
        table, features = make_folder(tmp_path, sets=3)
        read_folder(FeatureFolder(features, table), COLUMNS)
        pool = tmp_path / "features.pool" / "instances.bin"
        content = bytearray(pool.read_bytes())
        content[20] ^= 1
        pool.write_bytes(content)
        with pytest.raises(InputError, match=r"features.pool is damaged; remove it"):
            read_folder(FeatureFolder(features, table), COLUMNS)

    def test_continues_after_a_kill(self, tmp_path):
        """A process that dies while it writes the third file leaves two, and the rest follows."""
        table, features = make_folder(tmp_path, sets=4)
        program = f"""
import os
from capnets.ingest import Columns, FeatureFolder, read_folder, read_table
def progress(what, done, total):
    if done == 2:
        path = {str(tmp_path / "features.pool" / "instances.bin")!r}
        with open(path, "ab") as file: file.write(b"half a file")
        lines = {str(tmp_path / "features.pool" / "files.jsonl")!r}
        with open(lines, "ab") as file: file.write(b'{{"name": "s2')
        os.kill(os.getpid(), 9)
columns = Columns(set="slide_id", target="grade")
read_folder(FeatureFolder({str(features)!r}, {str(table)!r}, progress=progress), columns)
"""
        assert subprocess.run([sys.executable, "-c", program]).returncode == -9
        seen = []
        folder = FeatureFolder(features, table, progress=lambda *line: seen.append(line))
        data = read_folder(folder, COLUMNS)
        assert seen[-1] == ("converting features", 2, 2)
        for k in range(4):
            x, _ = slide(k, label=k % 2, rows=8 + 4 * (k % 3))
            np.testing.assert_array_equal(data.sets[k], x)
        lines = (tmp_path / "features.pool" / "files.jsonl").read_text().splitlines()
        assert [Path(json.loads(line)["name"]).stem for line in lines] == ["s0", "s1", "s2", "s3"]


def test_estimators_read_folders(tmp_path):
    """Train, save, load, predict and explain from a folder; coordinates are no features."""
    table, features = make_folder(tmp_path)
    folder = FeatureFolder(features, table)
    model = SetClassifier("c-deepset", columns=COLUMNS, members=1, random_state=0)
    model.fit(folder)
    assert model.n_features_in_ == 6
    model.save(tmp_path / "run")
    again = SetClassifier.load(tmp_path / "run")
    unlabelled = FeatureFolder(features)
    predicted = dict(zip(again.set_ids(unlabelled), again.predict(unlabelled), strict=True))
    assert list(again.predict(folder)) == [predicted[f"s{k}"] for k in range(24)]
    assert again.score(folder) > 0.8
    with pytest.raises(InputError, match="trained on a feature folder"):
        again.predict(str(table))


class TestCoordinates:
    """With `coordinates=True`, places in sides of a tile follow the features."""

    @pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind != "npy"])
    def test_are_features_in_tiles(self, kind, tmp_path):
        table, features = make_folder(tmp_path, sets=4, kind=kind)
        sets = read_folder(FeatureFolder(features, table), replace(COLUMNS, coordinates=True)).sets
        for k in range(4):
            x, coords = slide(k, label=k % 2, rows=8 + 4 * (k % 3))
            assert sets[k].dtype == np.float16
            np.testing.assert_array_equal(sets[k], np.hstack([x, coords / SIDE]))
        plain = read_folder(FeatureFolder(features, table), COLUMNS).sets
        assert plain.in_features == sets.in_features - 2, "both pools lie side by side"

    def test_runs_remember_them(self, tmp_path):
        """A label that only places reveal is learned; predictions read the places of new slides."""

        def write(folder, count, first):
            folder.mkdir()
            for k in range(first, first + count):
                x, coords = slide(k, label=0)
                write_trident(folder / f"s{k}.h5", x, coords * [1 + k % 4, 1])
            return [1 + k % 4 for k in sorted(range(first, first + count), key=str)]

        write(tmp_path / "features", 32, 100)
        lines = [f"s{k},{1 + k % 4}" for k in range(100, 132)]
        (tmp_path / "widths.csv").write_text("\n".join(["slide_id,width", *lines]) + "\n")
        columns = Columns(set="slide_id", target="width", coordinates=True)
        model = SetRegressor("deepset", columns=columns, epochs=40, members=1, random_state=0)
        model.fit(FeatureFolder(tmp_path / "features", tmp_path / "widths.csv"))
        model.save(tmp_path / "run")
        truth = write(tmp_path / "new", 12, 200)
        found = SetRegressor.load(tmp_path / "run").predict(FeatureFolder(tmp_path / "new"))
        assert np.corrcoef(found, truth)[0, 1] > 0.9

    def test_must_exist(self, tmp_path):
        table, features = make_folder(tmp_path, sets=2, kind="npy")
        with pytest.raises(InputError, match=r"s0\.npy has no coords, which coordinates=True"):
            read_folder(FeatureFolder(features, table), replace(COLUMNS, coordinates=True))

    def test_are_refused_for_tables(self, tmp_path):
        table, _ = make_folder(tmp_path, sets=2)
        with pytest.raises(InputError, match="is for feature folders"):
            read_table(table, replace(COLUMNS, coordinates=True))
