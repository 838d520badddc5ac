import io
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from capnets.errors import InputError
from capnets.explain import Explanation, Orders, interactions, shapley_values
from capnets.explain.evaluation import removal_curve
from capnets.explain.render.figures import class_matrix, curves
from capnets.explain.render.instances import Features, Images, Texts, instances_of, png
from capnets.explain.render.rows import number, rows_of
from capnets.explain.render.terminal import terminal_table
from capnets.sets import Sets

WIDTHS = (390, 1280)


@pytest.fixture
def signed() -> Explanation:
    """Two sets with values of both signs, errors, spreads and expected values."""
    values = np.array([2.0, -1.0, 0.5, 3.0, -0.25])
    return Explanation(
        method="mean added values",
        values=values,
        offsets=[0, 3, 5],
        predictions=[1.5, 2.75],
        baselines=[0, 0],
        orders=Orders.random(8),
        exact=False,
        passes=16,
        errors=np.full(5, 0.02),
        spreads=np.full(5, 0.1),
        prediction_spreads=[0.05, 0.1],
        ids=("first", "second <b>"),
        labels=[1, 3],
        expected=values + 0.1,
    )


INSTANCES = {
    "images": Images(np.arange(5 * 16).reshape(5, 4, 4), 80.0),
    "texts": Texts(("Very good.", "Not the [b]sound, though.", "Fine & well.", "Again!", "No.")),
    "features": Features(np.arange(15.0).reshape(5, 3) % 4, ("age", "height", "weight")),
    "none": None,
}


def test_rows_run_from_the_baseline_to_the_prediction(signed):
    first = rows_of(signed, 0)
    assert [row.start for row in first.rows] == [0, 2, 1]
    assert [row.end for row in first.rows] == [2, 1, 1.5]
    assert first.rows[-1].end == first.prediction
    assert first.levels == pytest.approx((0, 2.1))
    assert first.heights == pytest.approx((-1.1, 2.1))
    assert first.name == "first"


def test_rows_of_a_listed_order_are_in_the_order_of_reading():
    listed = Explanation(
        method="added values", values=[1, 2, 4], offsets=[0, 3], predictions=[7], baselines=[0],
        orders=Orders.of([2, 0, 1]),
    )  # fmt: skip
    assert [row.position for row in rows_of(listed, 0).rows] == [2, 0, 1]
    assert [row.end for row in rows_of(listed, 0).rows] == [4, 5, 7]


@pytest.mark.parametrize("look", INSTANCES)
def test_page_is_self_contained_and_says_every_number(look, signed, tmp_path):
    html = signed.to_html(tmp_path / "page.html", instances=INSTANCES[look], title="A & B")
    assert (tmp_path / "page.html").read_text() == html
    assert "<script" not in html
    assert not re.search(r"""(src|href)=["'](?!data:)""", html)
    assert "A &amp; B" in html
    assert "second &lt;b&gt;" in html
    for text in (
        "+2.00",
        "−1.00",
        "+0.50",
        "+3.00",
        "−0.25",
        "±0.05 over orders",
        "expected value",
    ):
        assert text in html, text
    assert "16 network passes" in html


def test_page_without_what_is_not_known(capacity, one_hot):
    sets = one_hot([[1, 2]])
    html = shapley_values(capacity("unique-sum"), sets).to_html()
    assert "expected value" not in html
    assert "lowered it" not in html
    assert "standard error" not in html
    assert "exact" in html


def test_what_is_not_explained_is_said():
    lacking = Explanation(
        method="gradient times input", values=[1, 2], offsets=[0, 2], predictions=[4], baselines=[0]
    )
    assert "not explained: 1" in lacking.to_html()


def test_pictures_are_the_pictures():
    from base64 import b64decode

    from matplotlib.image import imread

    look = Images(np.array([[[0, 8], [16, 4]]]), 16.0)
    png = imread(io.BytesIO(b64decode(look.uri(0).partition(",")[2])))
    assert png == pytest.approx(np.array([[0, 0.5], [1, 0.25]]), abs=0.01)


def test_pictures_may_have_colours():
    from base64 import b64decode

    from matplotlib.image import imread

    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, 5, 3))
    found = imread(io.BytesIO(b64decode(Images(pixels).uri(0).partition(",")[2])))
    np.testing.assert_array_equal((255 * found).round(), pixels[0])


def test_most_related_features():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 9))
    table[:, 4] = 1.0  # constant: tells nothing
    values = 2 * table[:, 7] - table[:, 2] + 0.1 * rng.normal(size=50)
    look = Features(table, tuple("abcdefghi"))
    assert {2, 7} <= set(look.most_related(values, 3))
    assert 4 not in look.most_related(values, 8)
    assert look.most_related(values, 9) == list(range(9))


def test_a_category_is_shown_whichever_it_is():
    """Of three kinds, the one whose indicator correlates least is shown like the others."""
    kinds = np.repeat(np.eye(3), 10, axis=0)
    table = np.column_stack([kinds, np.random.default_rng(0).normal(size=(30, 2))])
    look = Features(table, ("kind=a", "kind=b", "kind=c", "price", "weight"))
    values = kinds @ [1.0, 0.5, 0.0]
    assert look.most_related(values, 1) == [0, 1, 2]
    assert len(look.most_related(values, 2)) == 4
    assert look.most_related(values, 9) == [0, 1, 2, 3, 4]


def test_instances_of_sets():
    sets = Sets.from_arrays([np.ones((2, 3))], feature_names=("a", "b", "c"))
    assert instances_of(sets).columns == ("a", "b", "c")
    assert isinstance(instances_of(Sets.from_arrays([np.ones((2, 1, 4, 4))])), Images)


def test_terminal(signed):
    console = Console(file=io.StringIO(), width=160)
    console.print(terminal_table(signed, 0, instances=INSTANCES["texts"]))
    text = console.file.getvalue()
    assert "Set first: predicted 1.50, label 1, ±0.05 over orders" in text
    assert "Not the [b]sound, though." in text
    for cell in ("2.00", "−1.00", "±0.020", "±0.10", "2.10", "█", "░"):
        assert cell in text, cell


def test_figures(signed, capacity, random_sets):
    pictures = INSTANCES["images"]
    for kind, look in (
        ("waterfall", INSTANCES["texts"]),
        ("waterfall", pictures),
        ("strip", pictures),
    ):
        figure = signed.plot(1, kind=kind, instances=look)
        assert isinstance(figure, Figure)
        figure.savefig(io.BytesIO())
    bars = signed.plot(0).axes[0].patches
    assert [round(b.get_width(), 6) for b in bars] == [2, -1, 0.5]
    with pytest.raises(InputError, match="unknown kind of figure 'fall'"):
        signed.plot(0, kind="fall")
    with pytest.raises(InputError, match="a strip needs images"):
        signed.plot(0, kind="strip")

    sets = random_sets("unique-sum", [6] * 8)
    model = capacity("unique-sum")
    class_matrix(interactions(model, sets).by_class(sets.index)).savefig(io.BytesIO())
    found = shapley_values(model, sets)
    curves({"shapley": removal_curve(model, sets, found)}).savefig(io.BytesIO())


def test_refuses(signed):
    with pytest.raises(InputError, match="2 instances given, but 5"):
        signed.to_html(instances=Texts(("a", "b")))
    with pytest.raises(InputError, match="set 2 does not exist"):
        signed.plot(2)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1e-9, "0"), (-1e-9, "0"), (3.0, "3"), (-2.345, "−2.35"), (123456.0, "123456")],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.browser
@pytest.mark.parametrize("look", INSTANCES)
def test_fits_any_width_without_scripts(look, signed, page, tmp_path):
    (tmp_path / "page.html").write_text(signed.to_html(instances=INSTANCES[look]))
    plain = page.context.browser.new_context(java_script_enabled=False)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"file://{tmp_path}/page.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = plain.new_page()
    shown.goto(f"file://{tmp_path}/page.html")
    assert shown.get_by_text("predicted").first.is_visible()


@pytest.mark.browser
def test_table_sorts_without_scripts(signed, page, tmp_path):
    (tmp_path / "page.html").write_text(signed.to_html(instances=INSTANCES["features"]))
    plain = page.context.browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"file://{tmp_path}/page.html")

    def positions() -> list[str]:
        rows = plain.locator("section").first.locator("tbody tr")
        placed = [(rows.nth(n).bounding_box()["y"], rows.nth(n)) for n in range(rows.count())]
        return [
            row.locator("td").first.inner_text() for _, row in sorted(placed, key=lambda p: p[0])
        ]

    assert positions() == ["1", "2", "3"]
    section = plain.locator("section").first
    section.get_by_text("value", exact=True).click()
    assert positions() == ["1", "3", "2"]  # 2, 0.5, -1
    section.get_by_text("reversed").click()
    assert positions() == ["2", "3", "1"]
    section.get_by_text("reversed").click()
    section.get_by_text("age", exact=True).first.click()
    assert positions() == ["2", "3", "1"]  # ages 0, 3, 2


def test_images_are_png_files_without_a_drawing_library():
    from matplotlib.image import imread

    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    read = imread(io.BytesIO(png(pixels)))
    np.testing.assert_array_equal(np.round(read * 255), pixels)


def test_indicators_of_a_category_are_one_column(signed):
    kinds = np.array([[1, 0, 7], [0, 1, 8], [0, 0, 9], [1, 0, 1], [0, 1, 2]], dtype=float)
    shown = Features(kinds, ("kind=cup", "kind=tea", "price"), names=tuple("01234"))
    text = signed.to_html(instances=shown)
    assert "<th>row</th>" in text
    assert re.findall(r'<th title="(\w+)">\1</th>', text) == ["kind", "price"] * 2
    assert re.findall(r"<td>(cup|tea|–)</td>", text) == ["cup", "tea", "–", "cup", "tea"]
    # Sorted by price, largest first: 9, 8, 7.
    orders = [re.search(r"--o3:(\d)", row)[1] for row in re.findall(r'<tr style="[^"]*"', text)]
    assert orders[:3] == ["2", "1", "0"]
