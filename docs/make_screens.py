"""Writes the README's screenshots: the home page and a lab in JupyterLab as a learner sees them, in both
themes.

``python docs/make_screens.py`` starts JupyterLab on a copy of the labs, opens it in Chromium, runs some cells
and photographs what is there. ``python docs/make_screens.py home`` makes those of the home page alone.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from tests.browser.driving import Notebook, copy_of_labs, lab_server  # noqa: E402
from tests.conftest import find_browser  # noqa: E402

SIZE = {"width": 1240, "height": 1330}
HOME_SIZE = {"width": 1240, "height": 900}
LAB = "04_memory_hierarchy/04_memory_hierarchy.ipynb"
CELLS = ("gpulab.start", "def transpose_plain", "plain = gpulab.profile(transpose_plain", "show(plain)")
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# What somebody has done whose home page is shown.
DONE = {
    "format": 1, "exercises": {}, "predictions": {},
    "labs": {"00": {"passed": 3, "of": 3}, "03": {"passed": 5, "of": 7}, "04": {"passed": 2, "of": 8}},
    "recent": {"notebook": {"lab": "04", "name": LAB}},
}  # fmt: skip


def photograph(page: Page, name: str) -> None:
    page.wait_for_timeout(1000)  # of scrolling
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(256).save(HERE / f"{name}.png", optimize=True)


def home(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport=HOME_SIZE, device_scale_factor=1.5)
    notebook = Notebook(page, address, "index.ipynb")
    page.locator(".gpulab-continue a").wait_for()
    for name, theme in THEMES.items():
        notebook.theme(theme)
        photograph(page, f"home_{name}")
    page.close()


def lab(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
    notebook = Notebook(page, address, LAB)
    page.evaluate("jupyterapp.commands.execute('application:toggle-left-area')")
    for words in CELLS:
        notebook.run(words)
    for name, theme in THEMES.items():
        notebook.theme(theme)
        notebook.cell(CELLS[-1])
        photograph(page, f"lab_{name}")
    page.close()


SCREENS = {"home": home, "lab": lab}


def main() -> None:
    wanted = sys.argv[1:] or list(SCREENS)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        labs = copy_of_labs(Path(folder))
        (labs / "progress.json").write_text(json.dumps(DONE))
        with lab_server(labs.parent) as address:
            browser = playwright.chromium.launch(executable_path=find_browser())
            for name in wanted:
                SCREENS[name](browser, address)


if __name__ == "__main__":
    main()
