"""The interactive page in a real browser, as a user operates it."""

import json
from pathlib import Path

import numpy as np
import pytest

from capnets.explain import explain
from capnets.sets import Sets


def wait_until(page, condition: str, *, seconds: int = 60) -> None:
    """Wait for a condition; the page's policy forbids Playwright's own polling, which is `eval`."""
    for _ in range(50 * seconds):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not within {seconds} s: {condition}")


class Screen:
    """The page as a user operates it."""

    def __init__(self, page, text: str, folder: Path) -> None:
        self.page = page
        page.context.set_offline(True)
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        (folder / "page.html").write_text(text, encoding="utf-8")
        page.goto(f"file://{folder}/page.html")
        page.wait_for_selector("body[data-turn]", timeout=120_000)

    def settled(self, action) -> None:
        before = int(self.page.locator("body").get_attribute("data-turn"))
        action()
        wait_until(self.page, f"Number(document.body.dataset.turn) > {before}")
        wait_until(self.page, "Number(document.body.dataset.turn) === globalThis.capnets.turn")

    @property
    def rows(self) -> list[int]:
        """The instances of the set, as rows of the page's table."""
        return self.page.evaluate("capnets.session.items.map((item) => item.row)")

    @property
    def values(self) -> np.ndarray:
        """Instances x networks, read from the list."""
        items = self.page.locator("#items > li")
        return np.array([json.loads(v) for v in items.evaluate_all(
            "rows => rows.map((row) => row.dataset.values)")])  # fmt: skip

    @property
    def predictions(self) -> list[float]:
        cards = self.page.locator(".network")
        return [float(v) for v in cards.evaluate_all("c => c.map((one) => one.dataset.prediction)")]

    def features(self) -> np.ndarray:
        """The features of the set, taken from the page."""
        rows = self.page.evaluate(
            "capnets.session.items.map((item) => Array.from(capnets.session.data.values[item.row]))"
        )
        return np.array(rows, dtype=np.float32)

    def check(self, models, *, output: int | None = None) -> None:
        """Compare values and predictions on the page with the library; nothing was requested."""
        assert [u for u in self.requests if not u.startswith(("file:", "data:", "blob:"))] == []
        sets = Sets.from_arrays([self.features()])
        for n, model in enumerate(models):
            found = explain(model, sets, output=output)
            np.testing.assert_allclose(self.values[:, n], found.values, atol=1e-5)
            assert self.predictions[n] == pytest.approx(found.predictions[0], abs=1e-5)
