"""The site's pages, as Sphinx reads them, from the course's own sources."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from gpulab.app.course import catalogue
from gpulab.app.course.lab_map import LabMap
from gpulab.plot.moving import Pattern, WarpAccess
from grading.authoring.release import released_notebook
from grading.core.course import sources
from grading.lms.preprocessors import StableIds

from . import interfaces
from .masks import HIDDEN, Mask, secret_lines
from .runs import ROOT, run

FIGURES = "_static/figures"
GUIDE = ROOT / "grading" / "README.md"  # leads to the pages for instructors
INSTRUCTORS = ROOT / "docs" / "instructors"
IMAGE = re.compile(
    r'<img\b(?P<before>[^>]*?)\ssrc="data:image/(?P<kind>png;base64|svg\+xml;base64|svg\+xml),(?P<data>[^"]+)"(?P<after>[^>]*)>'
)
SIZE = re.compile(rb'<svg [^>]*?width="(\d+)[^"]*" height="(\d+)')
SCRIPT = re.compile(r'<script type="module">(?P<code>.*?)</script>', re.DOTALL)
NOISE = "stderr"  # of libraries on the machine that built the site
PHONE = 640  # pixels: a wider image is not squeezed into a phone's width
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^()\s:#]+)\)")


@dataclass(frozen=True)
class Notebook:
    """One notebook of a lab: its source, and the row of the course's list that it belongs to."""

    source: Path
    lab: catalogue.Lab

    @property
    def page(self) -> str:
        """Its path on the site and in the repository, without the ending."""
        return f"labs/{self.source.parent.name}/{self.source.stem}"


def notebooks(numbers: Iterable[str] = ()) -> list[Notebook]:
    """The notebooks of these labs, or of all. Raises ValueError for a number that no lab has."""
    found = []
    for folder in sorted((ROOT / "solutions").glob("[0-9]*")):
        for source in sources(folder):
            names = (source.stem, folder.name)  # a row stands for one notebook or for all of a folder
            lab = next(lab for lab in catalogue.labs().values() if lab.notebook in names)
            found.append(Notebook(source, lab))
    wanted = set(numbers)
    if unknown := wanted - {notebook.lab.number for notebook in found}:
        raise ValueError(f"there is no lab {', '.join(sorted(unknown))}: labs have numbers such as 00 or 12")
    return [notebook for notebook in found if not wanted or notebook.lab.number in wanted]


class Site:
    """Writes pages into `folder`; `runs` holds the notebooks that were run before."""

    def __init__(self, chosen: list[Notebook], folder: Path, runs: Path, keep_runs: bool = False) -> None:
        self.chosen, self.folder, self.runs, self.keep_runs = chosen, folder, runs, keep_runs
        texts = [GUIDE, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]
        self.texts = [*texts, *sorted((ROOT / "docs").rglob("*.md"))]
        self.files = {f"{n.page}.ipynb" for n in chosen} | {
            p.relative_to(ROOT).as_posix() for p in self.texts
        }

    def write(self) -> None:
        """All pages. Raises RunFailed for a notebook that does not run to its end."""
        for notebook in self.chosen:
            self._write_notebook(notebook)
        for path in self.texts:
            place = path.relative_to(ROOT).as_posix()
            self._write(place, self.linked(path.read_text(encoding="utf-8"), place))
        for place, text in interfaces.pages().items():
            self._write(place, text)
        guide = GUIDE.relative_to(ROOT).as_posix()
        self._write(
            guide, f"{self.linked(GUIDE.read_text(encoding='utf-8'), guide)}\n{self._filled('guide.md')}"
        )
        self._write("index.md", self._filled("index.md"))
        self._write("labs/index.md", self._filled("labs.md"))
        self._write("docs/index.md", self._filled("reference.md"))
        self._write("glossary.md", self._filled("glossary.md"))
        (self.folder / "docs").mkdir(parents=True, exist_ok=True)
        (self.folder / "docs" / "picture.svg").write_bytes((ROOT / "docs" / "picture.svg").read_bytes())

    # ------------------------------------------------------------ notebooks

    def _write_notebook(self, notebook: Notebook) -> None:
        released = released_notebook(notebook.source)
        solved = jupytext.read(notebook.source)
        solved, _ = StableIds().preprocess(solved, {"unique_key": notebook.source.stem})
        secrets = sorted(secret_lines(_code(solved), _code(released)))
        ran = run(notebook.source.stem, solved, secrets, self.runs, self.keep_runs)
        mask = Mask(secrets)
        outputs = {cell.id: cell.get("outputs", []) for cell in ran.cells}
        for cell in released.cells:
            if cell.cell_type == "markdown":
                cell.source = self.linked(cell.source, f"{notebook.page}.ipynb")
            elif cell.cell_type == "code":
                if cell.metadata.get("jupyter", {}).get("source_hidden"):
                    cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
                shown = [o for o in outputs.get(cell.id, []) if o.get("name") != NOISE]
                cell.outputs = [self._shown(output, mask, notebook) for output in shown]
        released.cells.insert(1, new_markdown_cell(self._how_to_read(notebook)))
        path = self.folder / f"{notebook.page}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        jupytext.write(released, path)
        drawings = notebook.source.parent / "drawings"
        if drawings.is_dir():
            shutil.copytree(drawings, path.parent / "drawings", dirs_exist_ok=True)

    def _shown(self, output: NotebookNode, mask: Mask, notebook: Notebook) -> NotebookNode:
        """An output without secret lines, its images in files of their own."""
        if output.output_type == "stream":
            output.text = mask.hide(output.text)
        elif output.output_type == "error":
            output.traceback = [mask.hide(line) for line in output.traceback]
            output.evalue = mask.hide(output.evalue)
        elif "text/html" in output.data:
            text = IMAGE.sub(lambda image: self._image(image, notebook), mask.hide(output.data["text/html"]))
            text = SCRIPT.sub(lambda script: self._script(script, notebook.page), text)
            output.data = {"text/html": text}
        elif "text/plain" in output.data:
            output.data["text/plain"] = mask.hide(output.data["text/plain"])
        return output

    def _image(self, image: re.Match[str], notebook: Notebook) -> str:
        kind, data = image["kind"], image["data"]
        content = base64.b64decode(data) if kind.endswith("base64") else unquote(unescape(data)).encode()
        png = kind.startswith("png")
        place = self._file(content, "png" if png else "svg", notebook.page)
        if png:  # the size is in its first chunk
            width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
        else:
            found = SIZE.search(content)
            width, height = (int(found[1]), int(found[2])) if found else (0, 0)
        size = f'width="{width}" height="{height}"' + (' class="wide"' if width > PHONE else "")
        return f'<img{image["before"]} src="{place}" {size} loading="lazy"{image["after"]}>'

    def _script(self, script: re.Match[str], page: str) -> str:
        """A link to the script of a figure that moves, which all figures of its kind share. It is no module:
        a browser loads those from a server only, and pages may be looked at as files."""
        content = f"(() => {{\n{script['code']}\n}})();\n".encode()
        return f'<script defer src="{self._file(content, "js", page)}"></script>'

    def _file(self, content: bytes, ending: str, page: str) -> str:
        """Write a file that pages share; its address from a notebook's page."""
        name = f"{FIGURES}/{hashlib.sha256(content).hexdigest()[:16]}.{ending}"
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return os.path.relpath(name, Path(page).parent)

    def _how_to_read(self, notebook: Notebook) -> str:
        lab = notebook.lab
        needs = [self.name(catalogue.labs()[key]) for key in lab.needs]
        after = f" Before it: {', '.join(needs)}." if needs else ""
        start = os.path.relpath("index.md", Path(notebook.page).parent)
        return (
            "```{admonition} To read, and to do\n:class: tip\n\n"
            f"Outputs and figures are those of a solution, whose lines are"
            f" left out: {HIDDEN} stands for them.{after}\n\n"
            f"To do the lab: `make lab`, then open `{notebook.page}.ipynb`;"
            f" [how to start]({start}#start).\n```"
        )

    # ------------------------------------------------------------ links

    def linked(self, text: str, place: str) -> str:
        """Links to files of the repository that are not on the site become plain words."""

        def put(link: re.Match[str]) -> str:
            target = os.path.normpath(os.path.join(os.path.dirname(place), link["target"]))
            on_site = target in self.files or not (ROOT / target).exists()
            return link[0] if on_site else link["text"]

        return LINK.sub(put, text)

    def name(self, lab: catalogue.Lab, place: str = "") -> str:
        """A lab's key and title, with a link to its first page if that is on the site."""
        words = f"{lab.key} {lab.title}"
        pages = [n.page for n in self.chosen if n.lab == lab]
        return f"[{words}](/{pages[0]}.ipynb)" if pages else words

    # ------------------------------------------------------------ pages of the site's own

    def _filled(self, template: str) -> str:
        """A page of templates/ with its `<!-- marks -->` filled."""
        text = Path(__file__).with_name("templates").joinpath(template).read_text(encoding="utf-8")
        fill = {
            "start": lambda: _section(ROOT / "README.md", "Two commands"),
            "paths": self._paths,
            "map": self._map,
            "labs": self._labs,
            "notebooks": lambda: "\n".join(f"/{n.page}" for n in self.chosen),
            "how": lambda: _section(ROOT / "solutions" / "index.py", "How a lab works"),
            "honest": lambda: _section(ROOT / "solutions" / "index.py", "Honest work"),
            "docs": lambda: "\n".join(
                f"/{p.relative_to(ROOT).with_suffix('').as_posix()}"
                for p in self.texts
                if p.is_relative_to(ROOT / "docs") and not p.is_relative_to(INSTRUCTORS)
            ),
            "guide": lambda: "\n".join(
                f"/{link.removesuffix('.md')}"
                for link in re.findall(
                    r"\(\.\./(docs/instructors/.+?\.md)\)", GUIDE.read_text(encoding="utf-8")
                )
            ),
            "terms": self._terms,
            "read": self._read,
            "try": self._try,
        }
        return re.sub(r"<!-- (\w+) -->", lambda mark: fill[mark[1]](), text)

    def _paths(self) -> str:
        parts = []
        for path in catalogue.paths():
            steps = "\n".join(f"1. {self.name(catalogue.labs()[key])}" for key in path.labs)
            parts.append(f"### {path.name}\n\n{path.words} {path.hours:g} hours.\n\n{{.path}}\n{steps}\n")
        return "\n".join(parts)

    def _labs(self) -> str:
        rows = ["| lab | hours | before it |", "|---|---|---|"]
        for lab in catalogue.labs().values():
            rows.append(f"| {self.name(lab)} | {lab.hours:g} | {', '.join(lab.needs)} |")
        return "\n".join(rows)

    def _read(self) -> str:
        """A button that leads to the first lab of the site."""
        link = f"/{self.chosen[0].page}.ipynb"
        return f"```{{container}} begin\n[Read lab {self.chosen[0].lab.number}]({link})\n```"

    def _try(self) -> str:
        """A figure to play with, before anybody has read a word of a lab."""
        figure = WarpAccess([Pattern(stride=1)]).figure()
        html = SCRIPT.sub(lambda script: self._script(script, "index"), figure.html())
        return f"```{{raw}} html\n{html}\n```"

    def _terms(self) -> str:
        """The terms by their first letter, under headings to jump to."""
        first = {lab.number: lab for lab in reversed(catalogue.labs().values())}
        letters: dict[str, list[str]] = {}
        for term in sorted(catalogue.terms().values(), key=lambda term: term.name.casefold()):
            letter = term.name[0].upper()
            means = f"{term.name}\n  {term.means} Lab {self.name(first[term.lab])}."
            letters.setdefault(letter if letter.isalpha() else "0–9", []).append(means)
        jump = " ".join(f"[{letter}](#letter-{letter.lower()})" for letter in letters)
        parts = [f"```{{container}} letters\n{jump}\n```"]
        for letter, terms in letters.items():
            words = "\n\n".join(terms)
            parts.append(f"(letter-{letter.lower()})=\n## {letter}\n\n```{{glossary}}\n{words}\n```")
        return "\n\n".join(parts)

    def _map(self) -> str:
        """The map of the home page, with links to the labs that are on the site."""
        on_site = {n.page for n in self.chosen}
        return LabMap({}).html(lambda page: f"{page}.html" if f"labs/{page}" in on_site else "")

    def _write(self, place: str, text: str) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _code(notebook: NotebookNode) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def _section(path: Path, heading: str) -> str:
    """What stands under a heading of a text or of a notebook's source, without the heading."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        cells = jupytext.read(path).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"{path.name} has no heading '## {heading}'")
    return found[1].strip()
