"""Writes the README's screenshots: a lab in JupyterLab as a learner sees it, in both themes.

``python docs/make_screens.py`` starts JupyterLab on a copy of the labs, opens it in Chromium, runs some cells
and photographs what is there.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from PIL import Image  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.browser.driving import Notebook, copy_of_labs, lab_server  # noqa: E402
from tests.conftest import find_browser  # noqa: E402

SIZE = {"width": 1240, "height": 1330}
LAB = "04_memory_hierarchy/04_memory_hierarchy.ipynb"
CELLS = ("gpulab.start", "def transpose_plain", "plain = gpulab.profile(transpose_plain", "show(plain)")
THEMES = {"lab_light": "JupyterLab Light", "lab_dark": "JupyterLab Dark"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        labs = copy_of_labs(Path(folder))
        with lab_server(labs.parent) as address:
            browser = playwright.chromium.launch(executable_path=find_browser())
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
            notebook = Notebook(page, address, LAB)
            page.evaluate("jupyterapp.commands.execute('application:toggle-left-area')")
            for words in CELLS:
                notebook.run(words)
            for name, theme in THEMES.items():
                notebook.theme(theme)
                notebook.cell(CELLS[-1])
                page.wait_for_timeout(1000)  # of scrolling
                image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                image.quantize(256).save(HERE / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
