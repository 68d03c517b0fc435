"""The script that every figure carries: the modules of this folder as one, without a build step.

The modules import each other with one-line ``import … from "./name.js";`` and are valid ES modules as they
stand. Inline there is no address to import from, so they are joined in order and those lines left out; hence
names at the top of a module are unique among all modules.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from . import meanings

MODULES = ("elements", "player", "kernel_steps", "warp_sectors", "figure")  # each after those it imports


def source(name: str) -> str:
    """The text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _body() -> str:
    style = source("moving.css").replace("/* MEANINGS */", meanings.css())
    joined = "\n".join(source(f"{module}.js") for module in MODULES)
    joined = re.sub(r"^import .*\n", "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export ", "", joined, flags=re.MULTILINE)
    return f"const STYLE = {json.dumps(style)};\n{joined}"


@cache
def tag() -> str:
    """The name of the custom element: another version of the script has another one."""
    return f"gpulab-moving-{hashlib.sha256(_body().encode()).hexdigest()[:8]}"


@cache
def script() -> str:
    """The whole module, to be put inline or into a file that all pages of a site share."""
    return f'{_body()}define("{tag()}", STYLE);\n'
