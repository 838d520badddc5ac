"""Fixtures for external resources, and the behaviour if they are missing.

A test marked ``data`` needs the data files (``CAPNETS_DATA``), one marked ``browser`` needs
Chromium. Without them it is skipped, unless ``CAPNETS_REQUIRE_DATA`` is set: then a skip of such a
test is a failure, whatever the reason it gives.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

# Networks here are small, and several tests run at once: with more threads than cores, threads
# spend their time waiting for each other. Processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

NEEDS = {"data", "browser"}
CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None
)


def _data() -> Path | None:
    folder = os.environ.get("CAPNETS_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def _required() -> bool:
    return os.environ.get("CAPNETS_REQUIRE_DATA", "0") not in {"", "0"}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") and _data() is None:
        pytest.skip("no data files: point CAPNETS_DATA at their folder")
    if item.get_closest_marker("browser") and CHROMIUM is None:
        pytest.skip("no Chromium: install it to have the pages tested")


def _as_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"not allowed to be skipped (CAPNETS_REQUIRE_DATA is set): {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    marked = any(item.get_closest_marker(name) for name in NEEDS)
    if report.skipped and marked and _required() and not hasattr(report, "wasxfail"):
        _as_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    if report.skipped and _required():  # a whole file left out may hide marked tests
        _as_failure(report)
    return report


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of data files; only for tests marked ``data``."""
    folder = _data()
    assert folder is not None, "mark the test with @pytest.mark.data"
    return folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Compiled loops are for one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def page():
    """A page in a real browser that fails the test on anything its console calls an error."""
    from playwright.sync_api import sync_playwright

    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page()
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert not errors, f"the page reported errors: {errors}"


@pytest.fixture
def say(tmp_path_factory):
    """Run a command of the command line and return its answer."""
    from commands import speaker

    return speaker(tmp_path_factory.mktemp("log") / "log")
