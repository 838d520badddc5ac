"""The built documentation, browsed in a real browser (`make docs` builds it)."""

import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
WIDTHS = (390, 1280)

pytestmark = pytest.mark.browser


@pytest.fixture
def site() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.skip("the documentation is not built: make docs")
    return SITE


@pytest.fixture
def browser(page):
    """A browser without a network: the site must not ask for anything."""
    asked: list[str] = []

    def refuse(route):
        asked.append(route.request.url)
        route.abort()

    page.route(re.compile("^https?:"), refuse)
    yield page
    assert not asked


@pytest.mark.slow
def test_every_internal_link_leads_to_a_page_and_a_place_on_it(site, browser):
    """Follow all links from the first page on, as a reader would."""
    start = (site / "index.html").as_uri()
    waiting, seen = [start], {start}
    wanted: dict[str, set[str]] = {}
    places: dict[str, set[str]] = {}
    while waiting:
        address = waiting.pop()
        browser.goto(address, wait_until="domcontentloaded")
        places[address] = set(browser.eval_on_selector_all("[id]", "all => all.map(e => e.id)"))
        for link in browser.eval_on_selector_all("a[href]", "all => all.map(a => a.href)"):
            page, place = urldefrag(link)
            if urlsplit(page).scheme != "file":
                continue
            path = Path(unquote(urlsplit(page).path))
            assert path.is_file(), f"{address} links to {page}"
            if place:
                wanted.setdefault(page, set()).add(place)
            if path.suffix == ".html" and site in path.parents and page not in seen:
                seen.add(page)
                waiting.append(page)
    assert len(seen) > 40
    for page, names in wanted.items():
        assert names <= places.get(page, names), f"{page} lacks {names - places[page]}"


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_their_width(site, browser, width):
    browser.set_viewport_size({"width": width, "height": 900})
    for path in sorted(site.rglob("*.html")):
        if {"_modules", "_static", "generated"} & set(path.relative_to(site).parts):
            continue
        browser.goto(path.as_uri(), wait_until="domcontentloaded")
        wide = browser.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path.name} is {wide} pixels wide"


@pytest.mark.parametrize("name", ["networks", "capacities"])
def test_formulas_are_set_without_a_network(site, browser, name):
    browser.goto((site / "explanation" / f"{name}.html").as_uri())
    browser.wait_for_function("document.querySelectorAll('.math mjx-container').length > 0")
    browser.wait_for_function(
        "[...document.querySelectorAll('.math')].every(e => e.children.length)"
    )
    assert browser.locator("mjx-merror").count() == 0
