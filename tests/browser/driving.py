"""JupyterLab as a learner starts it, and a notebook in it as a learner uses it."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.labs import notebooks

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = notebooks.ROOT
SECONDS = 1000  # of a browser's clock
PATIENCE = 180 * SECONDS  # until a notebook is there, on a machine that does other things
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*\?token=\w+")


def copy_of_labs(folder: Path) -> Path:
    """A checkout with labs of its own: nothing that a test does reaches the real ones."""
    shutil.copytree(ROOT / "labs", folder / "labs", ignore=shutil.ignore_patterns("progress*", ".*"))
    (folder / "gpulab").symlink_to(ROOT / "gpulab")
    return folder / "labs"


@contextmanager
def lab_server(checkout: Path, **environment: str) -> Iterator[str]:
    """Runs what `make lab ARGS=--no-browser` does, with settings of its own; gives the address it prints."""
    settings = checkout / "jupyterlab_settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    no_news = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(no_news))
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    folders = {name: str(checkout / name.lower().removesuffix("_dir")) for name in own}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("GPULAB_", "MPL"))}
    process = subprocess.Popen(
        # Exposed, the application tells a test where a cell is.
        [sys.executable, "-m", "gpulab", "lab", "--no-browser", "--expose-app-in-browser"],
        cwd=checkout,
        env=inherited | {"PYTHONPATH": str(ROOT)} | folders | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    addresses: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen() -> None:
        assert process.stderr
        for line in process.stderr:
            said.append(line)
            if match := ADDRESS.search(line):
                addresses.put(match.group())
        addresses.put(None)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        address = addresses.get(timeout=180)
        assert address, "JupyterLab did not start:\n" + "".join(said)
        wait_for(address)
        yield address
    finally:
        process.terminate()  # it ends its kernels
        process.wait(timeout=30)
        listener.join(timeout=10)


def wait_for(address: str, seconds: int = 60) -> None:
    """JupyterLab says its address before it listens there, on a busy machine seconds before."""
    place = urlsplit(address)
    for attempt in range(10 * seconds):
        try:
            socket.create_connection((place.hostname, place.port), 5).close()
            return
        except ConnectionRefusedError:
            if attempt == 10 * seconds - 1:
                raise
            time.sleep(0.1)


@dataclass(frozen=True)
class Output:
    """What a code cell shows: its first line of source, whether it ran, an error if none is meant, texts for the
    terminal and for screen readers, the images' widths, and pieces of text with their contrast."""

    source: str
    ran: bool
    error: str
    plain: list[str]
    alts: list[str]
    widths: list[float]
    texts: list[tuple[float, str]]


class Notebook:
    """A notebook that is open in a page; without a path, what the address opens. A cell is named by words that
    stand in its source."""

    def __init__(self, page: Page, address: str, path: str) -> None:
        self.page = page
        self.errors: list[str] = []  # what the browser's console was told
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(re.sub(r"/lab\S*\?", f"/lab/tree/{path}?reset&", address) if path else address)
        self._until_there()
        kernel = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
        page.wait_for_function(f"{kernel}?.status == 'idle'", timeout=PATIENCE)

    def _until_there(self) -> None:
        from playwright.sync_api import TimeoutError as TooLate

        try:
            self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=PATIENCE)
        except TooLate as error:
            picture = ROOT / "build" / "screenshots" / "no notebook.png"
            self.page.screenshot(path=picture)
            shown = self.page.inner_text("body")[-2000:]
            error.add_note(
                f"{self.page.url} shows: {shown}\nthe console was told: {self.errors}\nsee {picture}"
            )
            raise

    def cell(self, words: str) -> Locator:
        """The code cell, scrolled into sight: one that is far from it has no element in the page."""
        index = self.page.evaluate(
            """async words => {
                const notebook = jupyterapp.shell.currentWidget.content
                const index = notebook.widgets.findIndex(
                    cell => cell.model.type == "code" && cell.model.sharedModel.source.includes(words))
                if (index >= 0) {
                    notebook.activeCellIndex = index
                    await notebook.scrollToItem(index, "smart")
                }
                return index
            }""",
            words,
        )
        assert index >= 0, f"no cell has {words!r}"
        return self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')

    def start(self, words: str) -> None:
        """Press Shift+Enter on a cell."""
        self.cell(words).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Shift+Enter")

    def output(self, words: str) -> Locator:
        """What stands below a cell when it has ended."""
        from playwright.sync_api import expect

        cell = self.cell(words)
        prompt = cell.locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=PATIENCE)
        return cell.locator(".jp-Cell-outputWrapper")

    def run(self, words: str) -> Locator:
        """Run a cell; what stands below it then."""
        self.start(words)
        return self.output(words)

    def type(self, words: str, text: str) -> None:
        """Replace a cell's source by typing. The editor indents by itself after a colon."""
        self.cell(words).locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def click(self, command: str) -> None:
        """A button of the notebook's toolbar."""
        self.page.locator(f'.jp-NotebookPanel-toolbar [data-command="{command}"]').click()

    def run_all(self) -> None:
        """Run every cell, as the menu does; returns when all have run and the kernel has nothing left to say."""
        self.page.evaluate(
            """async () => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
                await jupyterapp.commands.execute("notebook:run-all-cells")
                for (let quiet = 0; quiet < 10; quiet++) {
                    await new Promise(done => setTimeout(done, 100))
                    if (kernel.status != "idle") quiet = 0
                }
            }"""
        )

    def outputs(self) -> list[Output]:
        """What stands below every code cell, looked at where a reader would scroll to."""
        return [Output(**output) for output in self.page.evaluate(OUTPUTS)]

    def theme(self, name: str) -> None:
        """Choose a theme, as the settings menu does."""
        self.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
        self.page.locator(f'body[data-jp-theme-name="{name}"]').wait_for(state="attached")


def contrasts(elements: Locator) -> list[tuple[float, str]]:
    """Every piece of text in these elements with its contrast to what lies behind it."""
    return [(ratio, text) for element in elements.all() for ratio, text in element.evaluate(CONTRASTS)]


# As WCAG 2 defines contrast. Opacity mixes a text's colour with the background's.
CONTRASTS = """root => {
    const numbers = colour => {
        const [r, g, b, alpha = 1] = colour.match(/[\\d.]+/g).map(Number)
        const whole = colour.startsWith("color(") ? 255 : 1  // color(srgb 1 0 0) is rgb(255 0 0)
        return [r * whole, g * whole, b * whole, alpha]
    }
    const luminance = rgb => {
        const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
        const [r, g, b] = rgb.map(c => linear(c / 255))
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const behind = element => {
        for (; element; element = element.parentElement) {
            const [r, g, b, alpha] = numbers(getComputedStyle(element).backgroundColor)
            if (alpha == 1) return [r, g, b]
        }
        return [255, 255, 255]
    }
    const opacity = element =>
        element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1
    const found = []
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement
        const text = texts.currentNode.textContent.trim()
        if (!text || !element.checkVisibility()) continue
        const back = behind(element)
        const [r, g, b, alpha] = numbers(getComputedStyle(element).color)
        const share = alpha * opacity(element)
        const fore = [r, g, b].map((c, i) => share * c + (1 - share) * back[i])
        const [dark, bright] = [luminance(fore), luminance(back)].sort((a, b) => a - b)
        found.push([(bright + 0.05) / (dark + 0.05), text])
    }
    return found
}"""


OUTPUTS = (
    """async () => {
    const contrasts = """
    + CONTRASTS
    + """
    const notebook = jupyterapp.shell.currentWidget.content
    const found = []
    for (const [index, cell] of notebook.widgets.entries()) {
        if (cell.model.type != "code") continue
        const fails = (cell.model.getMetadata("tags") ?? []).includes("raises-exception")
        const outputs = cell.model.outputs.toJSON()
        const error = outputs.find(output => output.output_type == "error")
        const rich = outputs.filter(output => output.data?.["text/html"])
        const one = {source: cell.model.sharedModel.source.split("\\n")[0],
            ran: cell.model.executionCount > 0, error: error && !fails ? error.ename + ": " + error.evalue : "",
            plain: rich.map(output => [output.data["text/plain"] ?? ""].flat().join("")),
            alts: [], widths: [], texts: []}
        if (outputs.length) {
            await notebook.scrollToItem(index, "smart")
            await new Promise(done => setTimeout(done, 50))
            for (const image of cell.node.querySelectorAll(".jp-OutputArea img")) {
                await image.decode().catch(() => null)
                // Icons beside words, and first frames that a figure which moves has taken the place of.
                if (image.naturalWidth <= 100 || !image.offsetParent) continue
                one.alts.push(image.alt)
                one.widths.push(image.getBoundingClientRect().width)
            }
            for (const card of cell.node.querySelectorAll(".gpulab-card")) one.texts.push(...contrasts(card))
        }
        found.push(one)
    }
    return found
}"""
)
