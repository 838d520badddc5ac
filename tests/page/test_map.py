"""The map of an interactive page in a real browser: regions, removal, keys, several files."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetClassifier
from capnets.explain import ValueMap, explain
from capnets.ingest import Columns, FeatureFolder
from capnets.pages.examples import examples_of
from capnets.pages.interactive import interactive_page
from capnets.pages.runtime import find_runtime
from capnets.sets import Sets
from feature_folders import SIDE, make_folder, write_trident
from screens import Screen

LARGE = 18, 16  # columns and rows of the slide `large`


@pytest.fixture(scope="module")
def slides(tmp_path_factory):
    """A network on small slides, its run, the folder, and a folder with one large slide."""
    folder = tmp_path_factory.mktemp("slides")
    table, features = make_folder(folder)
    columns = Columns(set="slide_id", target="grade")
    estimator = SetClassifier("c-deepset", columns=columns, members=1, epochs=5, random_state=0)
    run = estimator.fit(FeatureFolder(features, table)).save(folder / "run")
    large = folder / "large"
    large.mkdir()
    places = np.stack(np.meshgrid(*map(np.arange, LARGE)), -1).reshape(-1, 2) + 7
    x = np.random.default_rng(0).normal(size=(len(places), 6)).astype(np.float16)
    write_trident(large / "large.h5", x, places * SIDE)
    return estimator, run, features, large


@pytest.fixture
def screen(slides, page, tmp_path):
    try:
        find_runtime()
    except InputError as error:
        pytest.skip(str(error))
    _, run, _, large = slides
    out = tmp_path / "map.html"
    done = CliRunner().invoke(app, ["page", str(run.folder), str(large), "-o", str(out)])
    assert done.exit_code == 0, done.output
    return Screen(page, out.read_text(), tmp_path)


def values_of(screen) -> np.ndarray:
    return np.array(screen.page.evaluate("capnets.found[0].values"))


def shown_sum(screen) -> float:
    return float(screen.page.locator("#map").get_attribute("data-sum"))


def drag(screen, left, top, right, bottom) -> None:
    """Drag over the columns left to right and the rows top to bottom of the large slide."""
    page, box = screen.page, screen.page.locator("#map canvas").bounding_box()
    columns, rows = LARGE

    def at(x, y):
        return box["x"] + (x + 0.2) / columns * box["width"], box["y"] + (y + 0.2) / rows * box[
            "height"
        ]

    page.mouse.move(*at(left, top))
    page.mouse.down()
    page.mouse.move(*at(right, bottom), steps=4)
    page.mouse.up()


@pytest.mark.browser
def test_regions_add_up_and_can_be_removed(slides, screen, page):
    estimator, _, _, large = slides
    sets = estimator.to_sets(FeatureFolder(large))
    values = values_of(screen)
    np.testing.assert_allclose(values, explain(estimator.model_, sets).values, atol=1e-5)
    assert page.locator("#items > li").count() == 20  # the highest and the lowest values
    assert "20 of 288 instances" in page.locator("#part").inner_text()
    assert shown_sum(screen) == pytest.approx(values.sum(), abs=1e-4)

    drag(screen, 3, 2, 8, 6)
    columns, rows = np.tile(np.arange(LARGE[0]), LARGE[1]), np.repeat(np.arange(LARGE[1]), LARGE[0])
    inside = (columns >= 3) & (columns < 8) & (rows >= 2) & (rows < 6)
    one = ValueMap("large", values, np.stack([columns, rows], 1) * SIDE, SIDE)
    expected = one.region_sum(3 * SIDE, 2 * SIDE, 8 * SIDE, 6 * SIDE)
    assert shown_sum(screen) == pytest.approx(expected, abs=1e-5)
    assert "20 of 288 tiles are selected" in page.locator("#map [role=status]").inner_text()

    screen.settled(lambda: page.locator("#remove-region").click())
    kept = np.asarray(sets.instances[sets.index])[~inside]
    left = explain(estimator.model_, Sets.from_arrays([kept]))
    np.testing.assert_allclose(values_of(screen), left.values, atol=1e-5)
    assert screen.predictions[0] == pytest.approx(left.predictions[0], abs=1e-4)
    screen.settled(lambda: page.locator("#reset").click())
    drag(screen, 3, 2, 8, 6)
    screen.settled(lambda: page.locator("#keep-region").click())
    assert page.locator("#items > li").count() == 20 == inside.sum()  # all of them
    assert page.locator("#part").is_hidden()
    screen.check([estimator.model_])


@pytest.mark.browser
def test_keys_move_a_selection(screen, page):
    canvas = page.locator("#map canvas")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    first = page.evaluate("Object.values(capnets.map.region)")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    left, top, right, bottom = page.evaluate("Object.values(capnets.map.region)")
    assert [left, top, right, bottom] == [
        first[0],
        first[1] + SIDE,
        first[2] + SIDE,
        first[3] + SIDE,
    ]
    assert page.locator("#remove-region").is_enabled()
    page.keyboard.press("Escape")
    assert page.locator("#remove-region").is_disabled()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_map_fits_any_width(scheme, screen, page):
    page.emulate_media(color_scheme=scheme)
    for width in (390, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator("#map canvas").bounding_box()
        assert box["width"] / box["height"] == pytest.approx(LARGE[0] / LARGE[1], rel=0.02)


def test_files_of_a_set_stand_side_by_side(slides, tmp_path):
    _, run, features, _ = slides
    table = tmp_path / "patients.csv"
    table.write_text("slide_id,FILENAME\na,s1\na,s2\n")
    data = FeatureFolder(features, table, partial=True)
    text = interactive_page([run], data, service=["run"])
    found = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    places = np.array(found["places"])
    assert len(places) == 12 + 16
    assert places[:12, 0].max() + SIDE < places[12:, 0].min()
    assert (places[:, 2] == SIDE).all()
    assert found["title"] == "What each tile adds"
    assert found["display"][12]["label"] == "tile 0"


def test_pages_have_a_limit(slides, monkeypatch):
    _, run, features, _ = slides
    monkeypatch.setattr("capnets.pages.examples.FEW_NUMBERS", 6 * 20)
    assert len(examples_of(run, FeatureFolder(features)).sets) == 2  # 8 and 12 tiles
    monkeypatch.setattr("capnets.pages.examples.MOST_NUMBERS", 100)
    with pytest.raises(InputError, match=r"120 numbers, too many for a page \(the limit is 100\)"):
        examples_of(run, FeatureFolder(features))


def test_command_names_a_folder_that_does_not_exist(slides, tmp_path):
    _, run, features, _ = slides
    for arguments, message in (
        ([run.folder, tmp_path / "none"], "none does not exist"),
        ([features], "at least one run folder"),
    ):
        done = CliRunner().invoke(app, ["page", *map(str, arguments)])
        assert isinstance(done.exception, InputError)
        assert message in str(done.exception)
