"""Maps place every value; regions add up to the prediction; QuPath can read them."""

import json

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetClassifier
from capnets.explain import ValueMap
from capnets.ingest import Columns, FeatureFolder
from capnets.pages.explain_run import map_run
from feature_folders import SIDE, make_folder

COLUMNS = Columns(set="slide_id", target="grade")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    table, features = make_folder(folder)
    data = FeatureFolder(features, table)
    SetClassifier("c-deepset", columns=COLUMNS, members=1, epochs=20, random_state=0).fit(
        data
    ).save(folder / "run")
    return folder / "run", data


def test_regions_add_up_to_the_prediction(trained):
    run, data = trained
    found, (one,) = map_run(run, data, sets="s5")
    whole = found.predictions[0] - found.baselines[0]
    assert one.total == pytest.approx(whole, rel=1e-12)
    for rows, columns in ((1, 1), (2, 3), (5, 4), (7, 7)):
        assert one.grid(rows, columns)[0].sum() == pytest.approx(whole, rel=1e-9)
    left = one.region_sum(-np.inf, -np.inf, 2 * SIDE, np.inf)
    right = one.region_sum(2 * SIDE, -np.inf, np.inf, np.inf)
    assert left + right == pytest.approx(whole, rel=1e-12)
    assert left != pytest.approx(whole)


def test_several_files_of_a_set_have_a_map_each(trained, tmp_path):
    run, data = trained
    table = tmp_path / "patients.csv"
    table.write_text("slide_id,FILENAME\na,s1\na,s2\n")
    patients = FeatureFolder(data.folder, table, partial=True)
    found, maps = map_run(run, patients, sets="a")
    assert [one.name for one in maps] == ["s1", "s2"]
    assert [len(one.values) for one in maps] == [12, 16]
    total = sum(one.total for one in maps)
    assert total == pytest.approx(found.predictions[0] - found.baselines[0], rel=1e-12)


def test_geojson_is_a_collection_of_tiles(trained):
    """The objects that QuPath imports: polygons with a type, a class and measurements."""
    _, (one,) = map_run(*trained, sets="s5")
    found = json.loads(json.dumps(one.to_geojson()))
    assert found["type"] == "FeatureCollection"
    assert len(found["features"]) == len(one.values)
    for tile, value, corner in zip(found["features"], one.values, one.coords, strict=True):
        assert tile["type"] == "Feature"
        assert tile["geometry"]["type"] == "Polygon"
        (ring,) = tile["geometry"]["coordinates"]
        assert ring[0] == ring[-1] == corner.tolist()
        assert len(ring) == 5
        assert ring[2] == (corner + SIDE).tolist()
        about = tile["properties"]
        assert about["objectType"] in ("annotation", "detection", "tile", "cell")
        assert about["classification"]["name"] == ("adds" if value >= 0 else "subtracts")
        assert all(0 <= part <= 255 for part in about["classification"]["color"])
        assert about["measurements"] == {"added value": value}


def test_micrometres_become_pixels():
    one = ValueMap("a", np.ones(1), np.array([[10.0, 20.0]]), 5.0, "um")
    (tile,) = one.to_geojson(pixel=0.5)["features"]
    assert tile["geometry"]["coordinates"][0][0] == [20.0, 40.0]
    assert tile["geometry"]["coordinates"][0][2] == [30.0, 50.0]
    with pytest.raises(InputError, match="give the side of a pixel"):
        one.to_geojson()


def test_extremes():
    one = ValueMap("a", np.array([0.5, -2.0, 3.0]), np.zeros((3, 2)), 1.0)
    top, bottom = one.extremes(2)
    assert top.tolist() == [2, 0]
    assert bottom.tolist() == [1, 0]


def test_figure_has_a_colour_bar_in_the_unit(trained):
    _, (one,) = map_run(*trained, sets="s5")
    figure = one.plot(regions=2)
    axes, bar = figure.axes
    assert bar.get_ylabel() == one.unit == "added value to low (logits)"
    assert len(axes.collections[0].get_paths()) == len(one.values)
    shown = [float(text.get_text()) for text in axes.texts]
    np.testing.assert_allclose(shown, one.grid(2, 2)[0].ravel(), rtol=0.01)


def test_files_without_coordinates(trained, tmp_path):
    run, _ = trained
    _, features = make_folder(tmp_path, sets=2, kind="npy")
    with pytest.raises(InputError, match="no coordinates"):
        map_run(run, FeatureFolder(features))
