"""What cells printed where JAX was installed, for machines on which it is not.

A function that `recorded` decorates runs where its package can be imported. Elsewhere the output of a
recorded run is shown, and the first line says so. ``python docs/make_recorded.py`` records, where the package
is installed.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message

FILE = Path(__file__).with_name("recorded.json")


def fingerprint(source: str) -> str:
    """What two texts of a function have in common if they differ in white space only."""
    words = "".join(source[source.index("def ") :].split())
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def recorded(package: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorates a function without arguments that prints, and whose result fits JSON."""

    def decorate(fn: Callable[[], Any]) -> Callable[[], Any]:
        @wraps(fn)
        def run() -> Any:
            try:
                version = importlib.import_module(package).__version__
            except ImportError:
                return _shown(fn, package)
            print(f"Run here, with {package} {version}.")
            return fn()

        return run

    return decorate


def _shown(fn: Callable[[], Any], package: str) -> Any:
    """Print what was recorded, and return what was returned. Raises Message for other code."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    entry = entries.get(fn.__name__)
    made_with = (made["with"].split()[:2] for made in entries.values())  # "jax", "0.10.2"
    release = next(("==".join(names) for names in made_with if names[0] == package), package)
    how = f"To run it, put `%pip install {release}` into a cell, run that cell, and restart the kernel."
    if entry is None or entry["code"] != fingerprint(inspect.getsource(fn)):
        raise Message(
            f"{package} is not installed here, and `{fn.__name__}` is not the code whose output was "
            f"recorded. So there is nothing to show. {how}"
        )
    print(f"RECORDED with {entry['with']}, because {package} is not installed here. {how}\n")
    print(entry["output"], end="")
    return entry["result"]
