"""A lab of several notebooks: what is in the one that runs, and what waits in the next."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

CHECKED = re.compile(r'gpulab\.check\(\s*"([\w.]+)"')
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A notebook: its file, its title, and the exercises that it checks."""

    path: Path
    title: str
    exercises: tuple[str, ...]


def read(path: Path) -> Part | None:
    """What a notebook says of itself; None where it cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    title = next(
        (found[1] for kind, text in texts if kind == "markdown" and (found := TITLE.search(text))), ""
    )
    code = "\n".join(text for kind, text in texts if kind == "code")
    return Part(path, title or path.stem, tuple(dict.fromkeys(CHECKED.findall(code))))


def running() -> Part | None:
    """The notebook that runs here, where Jupyter says which it is."""
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    return read(path) if path.suffix == ".ipynb" else None


def following(part: Part) -> Part | None:
    """The lab's next notebook that has exercises; None behind the last."""
    later = (path for path in sorted(part.path.parent.glob("*.ipynb")) if path.name > part.path.name)
    return next((found for path in later if (found := read(path)) is not None and found.exercises), None)
