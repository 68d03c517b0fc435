"""The drawings in the labs' texts, as data: each module lists those of some labs.

`python -m grading draw` writes them to ``solutions/NN_name/drawings/``, and a release copies them beside the
notebooks: files, not attachments, because a file can be seen in a diff, is served by JupyterLab, VS Code, GitHub
and the site alike, and a notebook stays as small as its text. A notebook that travels without its folder shows
the alt text in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from gpulab.plot.drawing import page
from grading.core.course import Course

from .drawing import Drawing

MODULES = (
    "first_steps",
    "kernels",
    "languages",
    "attention",
    "many_gpus",
    "serving",
    "pipelines",
    "tensor_cores",
    "layouts",
    "attention_now",
    "training",
    "experts",
)


def drawings() -> Iterator[Drawing]:
    """All of them."""
    for module in MODULES:
        yield from import_module(f"{__name__}.{module}").DRAWINGS


def files(course: Course) -> dict[Path, str]:
    """The text of every file, by its place."""
    return {
        course.solutions / each.lab / "drawings" / f"{each.name}.svg": page(each.part, each.alt)
        for each in drawings()
    }


def draw(course: Course) -> list[Path]:
    """Write what changed and remove what is no longer drawn; the files that changed."""
    wanted, changed = files(course), []
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    for old in course.solutions.glob("*/drawings/*.svg"):
        if old not in wanted:
            old.unlink()
            changed.append(old)
    return changed
