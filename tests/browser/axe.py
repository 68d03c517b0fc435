"""axe-core: what keeps people with a screen reader or weak eyes from using a page."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.labs.notebooks import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

VERSION = "4.14.1"
FOLDER = ROOT / "build" / "npm"
GRAVE = ("serious", "critical")


@functools.cache
def script() -> str:
    """The library's text, fetched with npm once. Without npm or a network the test is skipped."""
    place = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
    if not place.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm here, which fetches axe-core")
        command = [npm, "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", f"axe-core@{VERSION}"]
        FOLDER.mkdir(parents=True, exist_ok=True)
        if subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL).returncode:
            pytest.skip("axe-core could not be fetched with npm")
    return Path(place).read_text(encoding="utf-8")


def grave(page: Page, within: str = "body", but: tuple[str, ...] = ()) -> list[str]:
    """What axe calls serious or critical inside `within`, as rule and element; `but` are selectors to leave out.

    An element that JupyterLab itself makes (its class begins with ``jp-`` or ``lm-``) is JupyterLab's to mend; all
    that is inside of it is looked at.
    """
    page.evaluate(script())
    found = page.evaluate(
        "([within, but]) => axe.run({include: [within], exclude: but.map(one => [one])}, {resultTypes: ['violations']})",
        [within, list(but)],
    )
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in found["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
        if not re.match(r'<\w+[^>]* class="(jp|lm)-', node["html"])
    ]
