"""Writes docs/topics.md: what the course covers, topic by topic, with a link to where it is taught.

From docs/topics.toml. Run ``python docs/make_topics.py`` after a change; with ``--check`` it only says
whether the page is current. Exit code 1 where a topic is not taught yet.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LABS = HERE.parent / "labs"
TARGET = HERE / "topics.md"

HEAD = """# What the course covers

A line for each topic, with the section that teaches it, the exercises that practise it and
the labs that come back to it. Written by `docs/make_topics.py` from [topics.toml](topics.toml);
a test holds both to the labs.
"""


def themes(text: str) -> list[tuple[str, list[str]]]:
    """The headings of topics.toml, each with its topics' names."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if heading := re.match(r"# (?! )(.+)", line):
            found.append((heading[1], []))
        elif topic := re.match(r'"(C[\d.]+)"', line):
            found[-1][1].append(topic[1])
    return [(heading, topics) for heading, topics in found if topics]


def notebook_of(lab: str, section: str) -> str:
    """The notebook of a lab that has this heading, as a link from docs/; empty if none has."""
    for path in sorted((LABS / lab).glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        if re.search(rf"^#+ +{re.escape(section)}\s*$", text, re.MULTILINE):
            return f"../labs/{lab}/{path.name}"
    return ""


def row(topic: str, said: dict[str, Any]) -> str:
    """A line of the table."""
    lab, section = said["lab"], said["section"]
    link = notebook_of(lab, section) if section else ""
    where = f"[{lab[:2]}, {section}]({link})" if link else f"{lab[:2]}, planned"
    also = ", ".join(other[:2] for other in said.get("also", []))
    exercises = ", ".join(f"`{name}`" for name in said.get("exercises", []))
    return f"| {topic} | {said['words']} | {where} | {exercises} | {also} |"


def page() -> str:
    """The whole page."""
    text = (HERE / "topics.toml").read_text(encoding="utf-8")
    topics = tomllib.loads(text)
    taught = sum(said["status"] == "done" for said in topics.values())
    practised = sum("exercises" in said for said in topics.values())
    parts = [HEAD, f"{taught} of {len(topics)} topics are taught, {practised} of them with an exercise.\n"]
    for heading, names in themes(text):
        parts.append(f"## {heading}\n")
        parts.append("| topic | what | lab and section | exercises | also in labs |\n|---|---|---|---|---|")
        parts.append("\n".join(row(name, topics[name]) for name in names) + "\n")
    return "\n".join(parts)


def untaught() -> list[str]:
    """The topics without a section of a lab that is there."""
    topics = tomllib.loads((HERE / "topics.toml").read_text(encoding="utf-8"))
    return [name for name, said in topics.items() if not notebook_of(said["lab"], said["section"] or " ")]


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    made = page()
    missing = untaught()
    if missing:
        print(f"not taught yet: {', '.join(missing)}")
    if "--check" in arguments:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == made
        print(f"{TARGET.name} is {'current' if current else 'out of date: run python docs/make_topics.py'}")
        return int(not current or bool(missing))
    TARGET.write_text(made, encoding="utf-8")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
