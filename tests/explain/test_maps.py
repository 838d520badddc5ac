"""Maps place every value; regions add up to the prediction; QuPath can read them."""

import io
import json
import re
from base64 import b64decode

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetClassifier
from capnets.estimators.runs import load_estimator
from capnets.explain import Explanation, ValueMap
from capnets.explain.maps import LOWERS, RAISES
from capnets.explain.render.map_image import TILE, raster
from capnets.explain.render.rows import LARGE, number
from capnets.explain.render.terminal import terminal_table
from capnets.ingest import Columns, FeatureFolder
from capnets.pages.explain_run import explain_run, map_run
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


def test_page_draws_every_tile_at_its_place(trained):
    run, data = trained
    found = explain_run(run, data, sets="s5,s6")
    html = found.to_html()
    assert html.count('<figure class="map">') == 2
    one, _ = found.maps()
    for total in one.grid(3, 3)[0].ravel():
        assert f"<span>{number(total, signed=True)}</span>" in html
    assert f"s5: all tiles add {number(one.total)}" in html
    uri = re.search(r'<div class="plane"><img src="data:image/png;base64,([^"]*)"', html)[1]
    shown = (255 * imread(io.BytesIO(b64decode(uri)))).round()
    assert shown.shape == (4 * TILE, 4 * TILE, 4)
    left, top = (one.coords // SIDE * TILE).astype(int).T
    full = np.array([RAISES if v >= 0 else LOWERS for v in one.values])
    strength = np.clip(np.abs(one.values) / one.largest, 0, 1)[:, None]
    colours = 255 + strength * (full - 255)
    np.testing.assert_allclose(shown[top + TILE // 2, left + TILE // 2, :3], colours, atol=1)
    # The map follows the sets that are shown, also in a notebook.
    assert found.subset([1]).to_html().count("s6: all tiles add") == 1
    assert "s6: all tiles add" in found._repr_html_()


def test_estimators_place_tiles_too(trained):
    run, data = trained
    found = load_estimator(run).explain(data)
    expected = map_run(run, data, sets="s5")[1][0]
    one = found.subset([found.ids.index("s5")]).maps()[0]
    np.testing.assert_allclose(one.values, expected.values, atol=1e-6)
    np.testing.assert_array_equal(one.coords, expected.coords)
    with pytest.raises(InputError, match="no coordinates"):
        Explanation(method="x", values=[1], offsets=[0, 1], predictions=[1], baselines=[0]).maps()


def test_tiles_that_leave_gaps_are_transparent():
    one = ValueMap("a", np.array([1.0, -1.0]), np.array([[0.0, 0.0], [20.0, 10.0]]), 10.0)
    pixels = raster(one)
    assert pixels.shape == (2 * TILE, 3 * TILE, 4)
    assert pixels[0, 0].tolist() == [*RAISES, 255]
    assert pixels[-1, -1].tolist() == [*LOWERS, 255]
    assert pixels[0, -1, 3] == 0
    far = ValueMap("a", np.ones(2), np.array([[0.0, 0.0], [1e6, 1e6]]), 1.0)
    assert max(raster(far).shape) <= 1201


def test_large_sets_show_their_extremes_only():
    values = np.random.default_rng(0).normal(size=LARGE + 50)
    found = Explanation(
        method="added values", values=values, offsets=[0, len(values)],
        predictions=[values.sum()], baselines=[0],
    )  # fmt: skip
    html = found.to_html()
    assert html.count("<tr style=") == 60
    assert "The 60 of 250 instances with the highest and the lowest values" in html
    assert "step by step" not in html
    text = Console(file=io.StringIO(), width=120)
    text.print(terminal_table(found, 0))
    lines = " ".join(text.file.getvalue().split())
    assert number(values.max(), 2) in lines
    assert number(values.min(), 2) in lines
    assert "The 20 of 250 instances" in lines


def test_command_writes_page_maps_and_records(trained, tmp_path):
    run, data = trained
    asked = ["explain", str(run), str(data.folder), "--sets", "s5"]
    page, folder = tmp_path / "page.html", tmp_path / "maps"
    done = CliRunner().invoke(app, [*asked, "--html", str(page), "--map", str(folder)])
    assert done.exit_code == 0, done.output
    assert "tile 3 at 768, 0" in done.output
    assert 'class="map"' in page.read_text()
    assert {path.name for path in folder.iterdir()} == {"s5.png", "s5.geojson"}
    done = CliRunner().invoke(app, [*asked, "--json"])
    (record,) = json.loads(done.output)
    assert record["set"] == "s5"
    assert record["instances"][3]["features"] == {"x": 3 * SIDE, "y": 0}


def test_command_refuses_maps_of_tables(trained, tmp_path):
    run, data = trained
    asked = ["explain", str(run), str(data.table), "--map", str(tmp_path)]
    done = CliRunner().invoke(app, asked)
    assert "--map needs a folder of features" in str(done.exception)


def test_tiles_without_places_have_numbers(trained, tmp_path):
    run, _ = trained
    _, features = make_folder(tmp_path, sets=2, kind="npy")
    found = explain_run(run, FeatureFolder(features), sets="s1")
    assert found.instances.label(0) == "tile 0"
    assert 'class="map"' not in found.to_html()
