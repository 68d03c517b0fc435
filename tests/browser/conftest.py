"""One JupyterLab and one browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.driving import ROOT, Notebook, copy_of_labs, lab_server
from tests.conftest import find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

# A browser that calls nobody at home.
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
SIZE = {"width": 1280, "height": 1300}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=find_browser(), args=QUIET)


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_labs(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def address(labs: Path) -> Iterator[str]:
    with lab_server(labs.parent) as address:
        yield address


@pytest.fixture(scope="module")
def opened(chromium: Browser, address: str) -> Callable[[str], Notebook]:
    """Opens a lab's notebook, named without its ending, in a page of its own."""
    places = {path.stem: f"{path.parent.name}/{path.name}" for path in (ROOT / "labs").glob("*/*.ipynb")}
    return lambda notebook: Notebook(chromium.new_page(viewport=SIZE), address, places[notebook])


@pytest.fixture
def photograph(record_property: Callable[[str, object], None]) -> Callable[[Locator, str], None]:
    """Saves what an element looks like; the tests' summary names the file."""
    folder = ROOT / "build" / "screenshots"

    def save(element: Locator, name: str) -> None:
        element.screenshot(path=folder / f"{name}.png")
        record_property("screenshot", str((folder / f"{name}.png").relative_to(ROOT)))

    return save
