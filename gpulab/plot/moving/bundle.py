"""The script that a figure carries: the modules that its scene needs as one, without a build step.

The modules import each other with one-line ``import … from "./name.js";`` and are valid ES modules as they
stand. Inline there is no address to import from, so they are joined in order and those lines left out; hence
names at the top of a module are unique among all modules. A scene may have a style sheet of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from . import meanings

AROUND = ("elements", "player"), ("figure",)  # before and behind the modules of a scene

# The modules of each scene, after those that they import; the last one draws it.
SCENES = {
    "kernel steps": ("kernel_steps",),
    "warp access": ("warp_access",),
    "frames": ("frames",),
    "roof trail": ("roof_trail",),
}


def modules(scene: str) -> tuple[str, ...]:
    """All modules of a scene's script, in order."""
    before, behind = AROUND
    return (*before, *SCENES[scene], *behind)


def source(name: str) -> str:
    """The text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def style(scene: str) -> str:
    """The style sheets of a scene as one."""
    own = [f"{module}.css" for module in SCENES[scene]]
    there = [name for name in own if files(__package__).joinpath(name).is_file()]
    base = source("moving.css").replace("/* MEANINGS */", meanings.css())
    return "\n".join([base, source("marks.css"), *map(source, there)])


@cache
def _body(scene: str) -> str:
    joined = "\n".join(source(f"{module}.js") for module in modules(scene))
    joined = re.sub(r"^import .*\n", "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export ", "", joined, flags=re.MULTILINE)
    return f"const STYLE = {json.dumps(style(scene))};\n{joined}"


@cache
def tag(scene: str) -> str:
    """The name of the custom element: another version of the script has another one."""
    return f"gpulab-moving-{hashlib.sha256(_body(scene).encode()).hexdigest()[:8]}"


@cache
def script(scene: str) -> str:
    """The whole module, to be put inline or into a file that all pages of a site share."""
    first, *rest = SCENES[scene][-1].split("_")
    draws = first + "".join(word.capitalize() for word in rest)  # kernel_steps.js exports kernelSteps
    return f'{_body(scene)}define("{tag(scene)}", STYLE, {draws});\n'
