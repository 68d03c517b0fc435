"""What a learner has done so far, in one JSON file beside the labs.

Losing it costs hints and ticks, never points.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = "progress.json"
FORMAT = 1

_unsaved: dict[Path, dict[str, Any]] = {}  # what could not be written, for as long as this process lives


def place() -> Path:
    """The file: in the folder `labs` above or below the working directory, else in that directory itself.

    The environment variable GPULAB_PROGRESS names another one.
    """
    if named := os.environ.get("GPULAB_PROGRESS"):
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if folder.name == "labs":
            return folder / FILE
    return (here / "labs" if (here / "labs").is_dir() else here) / FILE


def load() -> dict[str, Any]:
    """Everything that is known.

    A file that is missing, damaged, or of another form (a later version's, say) counts as empty; one that
    is there is kept aside, because the next change would write over it.
    """
    path = place()
    if path in _unsaved:
        return _unsaved[path]
    empty: dict[str, Any] = {"format": FORMAT, "exercises": {}, "predictions": {}}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return empty
    except (OSError, ValueError):
        data = None
    if not _is_ours(data):
        with contextlib.suppress(OSError):
            path.replace(_free(path.with_suffix(".damaged.json")))
        return empty
    return {**empty, **data}


def _is_ours(data: Any) -> bool:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return False
    parts = [part for key, part in data.items() if key != "format"]
    return all(
        isinstance(part, dict) and all(isinstance(record, dict) for record in part.values()) for part in parts
    )


def _free(path: Path) -> Path:
    """This name or the first of its kind that nothing has."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([path], numbered) if not each.exists())


@contextlib.contextmanager
def change() -> Iterator[dict[str, Any]]:
    """Read, let the caller change, write back in one move; another notebook waits meanwhile. A folder that
    cannot be written is no error: `saved()` then says so, and the change lasts as long as the process."""
    path = place()
    with _alone_in(path.parent):
        data = load()
        yield data
        try:
            _write(path, json.dumps(data, ensure_ascii=False, sort_keys=True) + "\n")
        except OSError:
            _unsaved[path] = data
        else:
            _unsaved.pop(path, None)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Nobody else changes what lies there, where the file system knows locks (some of networks do not)."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)  # which unlocks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def saved() -> bool:
    """False if the last change could not be written."""
    return place() not in _unsaved


def _write(path: Path, text: str) -> None:
    """Write beside the file and swap it in, so that a reader or a crash never meets half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def of_exercise(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The record of one exercise: `attempts`, `failed`, `best` points, `passed`, `hints` shown,
    `failed_at_hint` (failed attempts when the last hint was given), `last` verdict."""
    start = {"attempts": 0, "failed": 0, "best": 0.0, "passed": False, "hints": 0, "failed_at_hint": -1}
    record: dict[str, Any] = data["exercises"].setdefault(name, {})
    for key, value in start.items():
        record.setdefault(key, value)
    return record


def remember(lab: str, names: tuple[str, ...]) -> None:
    """That somebody works in `lab` now, how many of its exercises (`names`) are passed, and in which notebook
    where Jupyter says so. The home page in JupyterLab reads this part of the file, without a kernel."""
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    name = f"{path.parent.name}/{path.name}" if path.suffix == ".ipynb" else ""
    with change() as data:
        passed = sum(bool(data["exercises"].get(each, {}).get("passed")) for each in names)
        data["recent"] = {"notebook": {"lab": lab, "name": name}}
        data.setdefault("labs", {})[lab] = {"passed": passed, "of": len(names)}


def recent() -> tuple[str, str]:
    """The lab that was worked in last, by its number, and its notebook, below ``labs/``; empty if unknown."""
    last = load().get("recent", {}).get("notebook", {})
    return str(last.get("lab", "")), str(last.get("name", ""))


def done(names: tuple[str, ...]) -> int:
    """How many of the exercises have been passed."""
    records = load()["exercises"]
    return sum(bool(records.get(name, {}).get("passed")) for name in names)
