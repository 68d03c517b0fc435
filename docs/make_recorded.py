"""Runs what lab 11 shows of JAX, and writes what it printed to recorded.json beside the lab's exercises.

Run ``python docs/make_recorded.py`` after a change of these cells, where JAX runs on a CPU:
``.venv/bin/pip install -c constraints.txt -e ".[jax]"`` installs the pinned release.
A test fails until the recording is one of the current cells.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpulab.content.lab_11_triton_and_fusion.recorded import FILE, fingerprint

SOURCE = Path(__file__).parents[1] / "solutions" / "11_triton_and_fusion" / "11_triton_and_fusion.py"


def functions() -> Iterator[tuple[str, str, str]]:
    """Name, package and text, without the decorator, of each function that `recorded` decorates."""
    text = SOURCE.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "recorded":
                source = ast.get_source_segment(text, node)
                assert source is not None
                yield node.name, ast.literal_eval(decorator.args[0]), source


def record(name: str, package: str, source: str) -> dict[str, Any]:
    """An entry of the file."""
    names: dict[str, Any] = {}
    exec(source, names)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        result = names[name]()
    return {
        "code": fingerprint(source),
        "with": f"{package} {version(package)} on a CPU",
        "output": output.getvalue(),
        "result": result,
    }


def main() -> None:
    """Record all of them anew."""
    entries = {name: record(name, package, source) for name, package, source in functions()}
    FILE.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
