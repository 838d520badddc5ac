"""Reviews in a real browser: a page from a file, and pasted text in the service."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from capnets.cli import app
from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.explain import explain
from capnets.ingest import Columns
from capnets.pages.runtime import find_runtime
from capnets.sets import Sets
from capnets.tasks.sentences import encode_sentences, split_sentences
from screens import Screen
from services import Service

pytest.importorskip("sentence_transformers")
TEXTS = ["Lovely! It fits well. I wear it daily.", "Too small. It tore at once. Never again!"]
READ = """() => ({
  words: [...document.querySelectorAll("#items .words > span")].map((one) => one.textContent),
  values: [...document.querySelectorAll("#items > li")].map((row) => row.dataset.values),
})"""


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """A regressor on a few documents, its run and the file."""
    folder = tmp_path_factory.mktemp("reviews")
    patch = pytest.MonkeyPatch()
    patch.setenv("CAPNETS_CACHE", str(folder / "cache"))
    frame = pd.DataFrame({"review": TEXTS * 8, "stars": [5.0, 1.0] * 8})
    frame.to_csv(folder / "reviews.csv", index=False)
    columns = Columns(text="review", target="stars")
    estimator = SetRegressor(
        "c-deepset", columns=columns, members=1, orders=1, epochs=2, random_state=0
    )
    run = estimator.fit(frame).save(folder / "run")
    yield estimator, run, folder / "reviews.csv"
    patch.undo()


@pytest.mark.browser
def test_page_of_reviews_works_without_a_network(reviews, page, tmp_path):
    try:
        find_runtime()
    except InputError as error:
        pytest.skip(str(error))
    estimator, run, file = reviews
    out = tmp_path / "reviews.html"
    done = CliRunner().invoke(app, ["page", str(run.folder), str(file), "-o", str(out)])
    assert done.exit_code == 0, done.output
    screen = Screen(page, out.read_text(), tmp_path)
    screen.check([estimator.model_])
    assert page.evaluate(READ)["words"] == split_sentences(TEXTS[0])
    assert page.locator("#text").is_hidden()  # a file cannot embed new sentences
    screen.settled(lambda: page.locator("[data-action=remove]").first.click())
    screen.check([estimator.model_])
    strengths = page.locator("#items .face").evaluate_all(
        "faces => faces.map((face) => face.style.getPropertyValue('--strength'))"
    )
    assert "40%" in strengths  # the sentence with the largest value has the strongest colour


@pytest.fixture(scope="module")
def service(reviews):
    _, run, file = reviews
    with Service(run.folder, file, "--seconds", 300, env={"HF_HUB_OFFLINE": "1"}) as found:
        yield found
        assert found.stop() == 0


def test_text_becomes_instances(service):
    path = "/v2/models/run/embed"
    status, answer = service.call("POST", path, {"text": TEXTS[1]})
    assert (status, answer["sentences"]) == (200, split_sentences(TEXTS[1]))
    expected = encode_sentences(answer["sentences"])
    np.testing.assert_allclose(answer["vectors"], expected, atol=1e-6)
    _, answer = service.call("POST", path, {"text": " One. Two. ", "split": False})
    assert answer["sentences"] == ["One. Two."]
    for text, status in (("...", 422), ("   ", 422), ("", 422), ("Word. " * 300, 413)):
        assert service.call("POST", path, {"text": text})[0] == status
    assert service.call("POST", path, {"text": " ", "split": False})[0] == 422


@pytest.mark.browser
def test_paste_edit_and_delete(reviews, service, page):
    def check(sentences):
        found = page.evaluate(READ)
        assert found["words"] == sentences
        sets = Sets.from_arrays([encode_sentences(sentences)])
        values = [json.loads(text)[0] for text in found["values"]]
        np.testing.assert_allclose(values, explain(reviews[1], sets).values, atol=1e-5)

    def settled(action):
        turn = page.locator("body").get_attribute("data-turn")
        action()
        # A selector: the policy of the page forbids evaluating a string.
        page.wait_for_selector(f"body:not([data-turn='{turn}'])")

    page.set_default_timeout(120_000)
    page.goto(f"http://127.0.0.1:{service.port}/")
    page.wait_for_selector("body[data-turn]")
    page.locator("#text summary").click()
    page.locator("#document").fill("The cut is odd. I love the colour! It arrived late.")
    settled(lambda: page.locator("#show-text").click())
    check(["The cut is odd.", "I love the colour!", "It arrived late."])
    settled(lambda: page.locator("[data-action=remove]").nth(2).click())
    check(["The cut is odd.", "I love the colour!"])

    def rewrite():
        page.locator("[data-action=edit]").first.click()
        page.locator("textarea.edit").fill("The cut is perfect.")
        page.keyboard.press("Enter")

    settled(rewrite)
    check(["The cut is perfect.", "I love the colour!"])
    page.locator("[data-action=edit]").first.click()
    page.keyboard.press("Escape")
    check(["The cut is perfect.", "I love the colour!"])
