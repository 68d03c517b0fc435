"""Draws who imports whom into ARCHITECTURE.md: ``python docs/make_architecture.py``.

The layers are those that pyproject.toml asks for, the arrows those that the code has.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- drawn by docs/make_architecture.py -->\n", "<!-- end -->\n"


def layers(container: str) -> list[list[str]]:
    """The layers of a package, from top to bottom; packages of one layer know nothing of each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract["containers"] == [container]:
            return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    return []


def arrows(graph: grimp.ImportGraph, container: str) -> dict[str, list[str]]:
    """By package of the container: the other packages in it that its modules import, from top to bottom."""
    order = [name for layer in layers(container) for name in layer]

    def package(module: str) -> str:
        _, inside, rest = module.partition(f"{container}.")
        return rest.split(".")[0] if inside else ""

    found: dict[str, set[str]] = {name: set() for name in order}
    for module in graph.modules:
        if package(module) in found:
            found[package(module)] |= {package(m) for m in graph.find_modules_directly_imported_by(module)}
    return {name: [other for other in order if other in found[name] - {name}] for name in order}


def drawing() -> str:
    """The picture, as the text of a Markdown block."""
    graph = grimp.build_graph("gpulab", "grading", cache_dir=None)
    lines: list[str] = []
    for container, title in (("grading", "grading → gpulab"), ("gpulab", "gpulab")):
        imported = arrows(graph, container)
        width = max(map(len, imported)) + 1
        lines += ["", title]
        for number, layer in enumerate(layers(container), 1):
            for name in layer:
                lines.append(_row(f"  {number} {_bracket(name, layer)} {name:<{width}}", imported[name]))
                inside = arrows(graph, f"{container}.{name}")
                lines += [_row(f"      · {other:<{width}}", inside[other]) for other in inside]
    return "```text\n" + "\n".join(lines[1:]) + "\n```\n"


def _row(start: str, imported: list[str]) -> str:
    return f"{start}→ {'  '.join(imported)}" if imported else start.rstrip()


def _bracket(name: str, layer: list[str]) -> str:
    """Joins the packages of one layer."""
    if len(layer) == 1:
        return "─"
    return "┌" if name == layer[0] else "└" if name == layer[-1] else "│"


def page() -> str:
    """ARCHITECTURE.md with the picture as the code is now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + drawing() + END + after


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(
            "ARCHITECTURE.md shows other imports than the code has: run python docs/make_architecture.py"
        )
