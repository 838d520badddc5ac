"""The interactive page with the service as its back-end, in a real browser."""

import json

import numpy as np
import pytest

from capnets.explain import explain
from capnets.learn import Options, make_plan, train
from capnets.learn.tasks import task_problem
from capnets.sets import Sets
from capnets.tasks import make, parse_task
from services import Service

READ = """() => ({
  features: capnets.session.items.map((i) => Array.from(capnets.session.data.values[i.row])),
  values: [...document.querySelectorAll("#items > li")].map((row) => row.dataset.values),
})"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    spec = parse_task("US:digits", sizes=range(1, 9), sets=100, valid_sets=20, test_sets=20)
    problem = task_problem(make(spec))
    return [
        train(problem, make_plan(problem, Options(model=name, epochs=1)), folder / name)
        for name in ("c-deepset", "gru")
    ]


@pytest.mark.browser
def test_values_on_the_page_are_those_of_the_library(digits, page):
    def check():
        found = page.evaluate(READ)
        sets = Sets.from_arrays([np.array(found["features"], dtype=np.float32)])
        values = np.array([json.loads(text) for text in found["values"]])
        for n, run in enumerate(digits):
            expected = explain(run, sets).values
            np.testing.assert_allclose(values[:, n], expected, atol=1e-5)
        return found["features"]

    with Service(*(run.folder for run in digits), "--page", "--seconds", 300) as service:
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{service.port}/")
        page.wait_for_selector("body[data-turn]", timeout=60_000)
        before = check()
        turn = page.locator("body").get_attribute("data-turn")
        page.locator("[data-handle]").nth(1).focus()
        page.keyboard.press("ArrowUp")
        # A selector: the policy of the page forbids evaluating a string.
        page.wait_for_selector(f"body:not([data-turn='{turn}'])")
        assert check() == [before[1], before[0], *before[2:]]
        assert any(url.endswith("/v2/models/gru/infer") for url in asked)
        assert service.stop() == 0
