"""The interactive page in a real browser: its values are those of the library."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetClassifier, SetRegressor
from capnets.explain import Orders, explain, select
from capnets.ingest import Columns
from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_of, task_problem
from capnets.models import ModelSpec
from capnets.pages.interactive import interactive_page
from capnets.pages.runtime import NAME, find_runtime, install_runtime
from capnets.runs import Run, RunConfig
from capnets.sets import Sets
from capnets.tasks import make, parse_task
from nodes import STATIC, node
from screens import Screen

WIDTHS = (390, 1200)


@pytest.fixture(scope="session")
def runtime():
    try:
        return find_runtime()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> list[Run]:
    """Two networks on digits, one of them additive."""
    folder = tmp_path_factory.mktemp("digits")
    spec = parse_task("US:digits", sizes=range(1, 9), sets=300, valid_sets=20, test_sets=60)
    problem = task_problem(make(spec))
    return [
        train(problem, make_plan(problem, Options(model=name, epochs=1)), folder / name)
        for name in ("c-deepset", "gru")
    ]


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """A table with a category, a missing value and a classifier on it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"basket": np.repeat([f"b{n}" for n in range(40)], 3)})
    frame["kind"] = rng.choice(["cup", "plate", "a,b"], size=len(frame))
    frame["price"] = rng.uniform(1, 9, size=len(frame)).round(2)
    frame.loc[5, "price"] = np.nan
    frame["buyer"] = np.repeat(np.array(["anna", "bert", "carl"])[np.arange(40) % 3], 3)
    folder = tmp_path_factory.mktemp("shops")
    frame.to_csv(folder / "shops.csv", index=False)
    columns = Columns(set="basket", target="buyer", categories=("kind",), missing="mean")
    estimator = SetClassifier(columns=columns, members=1, orders=1, epochs=2, random_state=0)
    run = estimator.fit(frame).save(folder / "run")
    return estimator, run, folder / "shops.csv", frame


@pytest.mark.browser
def test_values_follow_what_people_do(digits, runtime, page, tmp_path):
    screen = Screen(page, interactive_page(digits), tmp_path)
    models = [run.model for run in digits]
    screen.check(models)
    first = screen.rows

    handles = page.locator("[data-handle]")
    screen.settled(lambda: (handles.nth(1).focus(), page.keyboard.press("ArrowUp")))
    assert screen.rows == [first[1], first[0], *first[2:]]
    assert page.evaluate("document.activeElement.dataset.handle") == ""
    screen.check(models)

    def drag() -> None:
        start, end = handles.nth(0).bounding_box(), handles.nth(3).bounding_box()
        page.mouse.move(start["x"] + 10, start["y"] + 10)
        page.mouse.down()
        page.mouse.move(end["x"] + 10, end["y"] + end["height"] + 4, steps=8)
        page.mouse.up()

    screen.settled(drag)
    assert screen.rows == [first[0], first[2], first[3], first[1], *first[4:]]
    screen.check(models)

    def drag_up() -> None:
        start, end = handles.nth(3).bounding_box(), handles.nth(0).bounding_box()
        page.mouse.move(start["x"] + 10, start["y"] + 10)
        page.mouse.down()
        page.mouse.move(end["x"] + 10, end["y"] - 4, steps=8)
        page.mouse.up()

    screen.settled(drag_up)
    assert screen.rows == [first[1], first[0], first[2], first[3], *first[4:]]
    screen.check(models)

    screen.settled(lambda: page.locator("[data-action=remove]").nth(2).click())
    assert len(screen.rows) == len(first) - 1
    screen.check(models)
    screen.settled(lambda: page.locator("#tray [data-row]").nth(3).click())
    assert len(screen.rows) == len(first)
    screen.check(models)
    screen.settled(lambda: page.locator("#reset").click())
    assert screen.rows == first
    assert "label" in page.locator(".network").first.inner_text()


@pytest.mark.browser
def test_order_lens_pins_and_best(digits, runtime, page, tmp_path):
    screen = Screen(page, interactive_page(digits[:1]), tmp_path)
    model = digits[0].model
    sets = Sets.from_arrays([screen.features()])
    pin = page.locator("[data-action=pin]").first
    screen.settled(pin.click)
    assert pin.get_attribute("aria-pressed") == "true"
    pinned = screen.rows[0]
    screen.settled(lambda: page.locator("#lens").fill("6"))
    assert page.evaluate("capnets.found[0].predictions.length") == 6
    assert page.locator(".dots span").count() == 6
    assert page.locator(".whisker:visible").count() > 0
    assert screen.values[:, 0].sum() == pytest.approx(screen.predictions[0], abs=1e-4)
    screen.settled(lambda: page.locator("#lens").fill("1"))
    for _ in range(3):
        screen.settled(lambda: page.locator("#shuffle").click())
        assert screen.rows[0] == pinned
    screen.settled(lambda: page.locator("#reset").click())
    page.locator("#k").fill("3")
    page.locator("#best").click()
    page.wait_for_selector("#best-text[data-value]")
    chosen = select(model, sets, k=3)
    value = float(page.locator("#best-text").get_attribute("data-value"))
    assert value == pytest.approx(chosen.values[0], abs=1e-4)
    picked = page.locator("#items > li.picked").count()
    assert picked == len(chosen.positions[0])
    screen.settled(lambda: page.locator("#keep").click())
    assert len(screen.rows) == picked


@pytest.mark.browser
def test_lens_averages_over_the_orders_that_it_names(digits, runtime, page, tmp_path):
    screen = Screen(page, interactive_page(digits[:1]), tmp_path)
    screen.settled(lambda: page.locator("#lens").fill("4"))
    sets = Sets.from_arrays([screen.features()])
    size = len(screen.rows)
    orders = node(f"""
        import {{ draw }} from "{STATIC / "orders.js"}";
        console.log(JSON.stringify(draw({size}, 4, Array({size}).fill(false), 0)));
    """)
    each = [explain(digits[0].model, sets, orders=Orders.of(order)).values for order in orders]
    np.testing.assert_allclose(screen.values[:, 0], np.mean(each, axis=0), atol=1e-5)


def test_rows_do_not_repeat_their_label(shops, runtime):
    _, run, file, _ = shops
    text = interactive_page([run], file, show="kind", runtime=runtime)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert {row["label"] for row in data["display"]} == {"cup", "plate", "a,b"}
    for row in data["display"]:
        assert not any(feature.startswith("kind=") for feature in row["features"])
        assert any(feature.startswith("price ") for feature in row["features"])


@pytest.mark.browser
def test_classes_and_pasted_rows(shops, runtime, page, tmp_path):
    estimator, run, file, frame = shops
    screen = Screen(page, interactive_page([run], file), tmp_path)
    text = page.locator(".network").inner_text()
    assert "probability of anna" in text
    assert "label anna" in text
    screen.settled(lambda: page.locator("#output").select_option(label="bert"))
    screen.check([estimator.model_], output=1)
    share = float(page.locator(".network").get_attribute("data-probability"))
    shares = estimator.predict_proba(frame)
    assert share == pytest.approx(shares[0, 1], abs=1e-5)
    page.locator("#paste summary").click()
    page.locator("#rows").fill('kind,price\n"a,b",3.5\ncup,\nspoon,1\n')
    screen.settled(lambda: page.locator("#add-rows").click())
    assert len(screen.rows) == 6
    pasted = pd.DataFrame({"basket": "x", "kind": ["a,b", "cup", "spoon"], "price": [3.5, None, 1]})
    np.testing.assert_allclose(
        screen.features()[3:], estimator.to_sets(pasted).instances, rtol=1e-6
    )
    screen.check([estimator.model_], output=1)
    page.locator("#rows").fill("kind\ncup\n")
    page.locator("#add-rows").click()
    assert "column price is missing" in page.locator("#paste-error").inner_text()


DROP = """([area, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "rows.csv", { type: "text/csv" }));
  area.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
}"""


@pytest.mark.browser
def test_files_are_dropped_and_values_downloaded(shops, runtime, page, tmp_path):
    estimator, run, file, _ = shops
    screen = Screen(page, interactive_page([run], file), tmp_path)
    many = len(screen.rows)
    text = "kind\tprice\ncup\t3.5\nplate\t\n"
    area = page.locator("#paste").element_handle()
    screen.settled(lambda: page.evaluate(DROP, [area, text]))
    assert len(screen.rows) == many + 2
    (tmp_path / "rows.csv").write_text(text.replace("\t", ","))
    screen.settled(lambda: page.locator("#file").set_input_files(tmp_path / "rows.csv"))
    features = screen.features()
    np.testing.assert_array_equal(features[many : many + 2], features[many + 2 :])
    screen.check([estimator.model_], output=0)
    with page.expect_download() as found:
        page.locator("#download").click()
    table = pd.read_csv(found.value.path())
    assert table["position"].tolist() == list(range(1, many + 5))
    np.testing.assert_allclose(table.iloc[:, 2], screen.values[:, 0], rtol=1e-6)


@pytest.mark.browser
def test_a_drawing_is_an_instance(digits, runtime, page, tmp_path):
    screen = Screen(page, interactive_page(digits), tmp_path)
    many = len(screen.rows)
    page.locator("#draw summary").click()
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 90, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 150, steps=6)
    page.mouse.up()
    screen.settled(lambda: page.locator("#add-drawing").click())
    assert len(screen.rows) == many + 1
    pixels = np.array(page.evaluate("Array.from(capnets.session.data.display.at(-1).pixels)"))
    image = pixels.reshape(8, 8)
    assert image[:, 3:5].mean() > 0.5 > 0.05 > image[:, [0, 1, 6, 7]].mean()  # a vertical stroke
    images = task_of(digits[0]).images
    seen = (images.pixels / images.white).reshape(len(images.pixels), -1)[: images.train]
    expected = (pixels - seen.mean(0)) / np.sqrt(seen.var(0).mean())
    np.testing.assert_allclose(screen.features()[-1], expected, atol=1e-4)
    screen.check([run.model for run in digits])


@pytest.mark.browser
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_bars_start_at_the_baseline(aggregation, digits, runtime, page, tmp_path):
    spec = ModelSpec(
        "c-gru", in_features=64, activation="identity", aggregation=aggregation, baseline="learned"
    )
    model = spec.build(0)
    model.start(unit=torch.ones(1), label=torch.tensor([12.0]), size=5.0)
    like = digits[0].config
    run = Run.create(tmp_path / "run", RunConfig(spec, like.recipe, 0, like.data))
    run.write_weights(model)
    run.finish({})
    screen = Screen(page, interactive_page([run]), tmp_path)
    assert "baseline 12" in page.locator(".network").inner_text()
    screen.check([model])
    total = 12 + screen.values[:, 0].sum()
    assert total == pytest.approx(screen.predictions[0], abs=1e-4)
    while page.locator("[data-action=remove]").count():
        screen.settled(lambda: page.locator("[data-action=remove]").first.click())
    assert screen.predictions == [12]  # the set is empty
    assert page.locator("#empty").is_visible()


@pytest.mark.browser
def test_step_gives_the_values_of_infer(digits, runtime, page, tmp_path):
    screen = Screen(page, interactive_page(digits[:1]), tmp_path)
    stepped = page.evaluate(
        """async () => {
          const { session } = capnets;
          let state = null;
          const values = [];
          for (const item of session.items) {
            const backend = session.backends[0];
            const found = await backend.step(session.data.values[item.row], state, 1);
            values.push(found.value[0]);
            state = found.state;
          }
          return values;
        }"""
    )
    np.testing.assert_allclose(stepped, screen.values[:, 0], atol=1e-5)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_any_width(scheme, digits, runtime, page, tmp_path):
    page.emulate_media(color_scheme=scheme)
    Screen(page, interactive_page(digits), tmp_path)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_cannot_run_scripts(shops, tmp_path):
    _, run, _, frame = shops
    frame = frame.assign(basket=frame["basket"] + "</script><script>alert(1)</script>")
    hostile = tmp_path / "hostile.csv"
    frame.to_csv(hostile, index=False)
    from capnets.pages.runtime import Runtime

    text = interactive_page([run], hostile, runtime=Runtime(b"", b""))
    assert "<script>alert" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "unsafe-inline" not in policy
    assert "default-src &#39;none&#39;" in policy


def test_runtime_is_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPNETS_RUNTIME", str(tmp_path))
    with pytest.raises(InputError, match=r"not installed; install it once: `make page`"):
        find_runtime()
    for name in ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"):
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(InputError, match="its SHA-256 differs"):
        find_runtime()
    (tmp_path / "package.tgz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=f"is not the npm package of {NAME}"):
        install_runtime(tmp_path / "package.tgz")


def test_command_says_what_is_missing(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("CAPNETS_RUNTIME", str(tmp_path))
    done = CliRunner().invoke(app, ["page", str(digits[0].folder)])
    assert isinstance(done.exception, InputError)
    assert "npm pack onnxruntime-web" in str(done.exception)
    done = CliRunner().invoke(app, ["page", str(tmp_path / "none")])
    assert "none does not exist" in str(done.exception)


@pytest.mark.browser
def test_command(digits, runtime, tmp_path):
    out = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["page", *(str(run.folder) for run in digits), "-o", str(out), "--sets", "0,3"]
    )
    assert done.exit_code == 0, done.output
    assert len(task_of(digits[0]).test) == 60
    data = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text(), re.S)[1])
    assert [one["name"] for one in data["sets"]] == ["0", "3"]
    assert [one["name"] for one in data["networks"]] == ["c-deepset", "gru"]


def test_runs_must_read_the_same_features(digits, tmp_path):
    from capnets.pages.examples import examples_of
    from capnets.pages.interactive import page_data

    X = [np.ones((2, 3))] * 20
    other = SetRegressor(members=1, epochs=1, random_state=0).fit(X, np.arange(20.0))
    run = other.save(tmp_path / "run")
    with pytest.raises(InputError, match="read different features"):
        page_data([digits[0], run], examples_of(digits[0]))
