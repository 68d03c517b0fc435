"""The README and CONTRIBUTING.md say what the course's own records say, and their links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import gpulab
from gpulab.course import catalogue
from gpulab.course.address import address
from gpulab.exercises.registry import exercises

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_paths_are_those_of_the_course() -> None:
    section = README.partition("## Three paths\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \| (.+?) hours \|$", section, re.MULTILINE)
    paths = [(path.name, path.words, " · ".join(path.labs), f"{path.hours:g}") for path in catalogue.paths()]
    assert rows == paths


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "grading/README.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith(("http", "#"))]
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_badges_are_those_of_the_courses_own_address() -> None:
    badges = re.findall(r"\[!\[[^\]]*\]\((\S+?)\)\]\((\S+?)\)", README)
    if not address():
        assert badges == [], "a badge without an address leads to somebody else's course"
    for picture, target in badges:
        assert address().repository.removeprefix("https://") in picture + target


def test_a_citation_names_the_version_that_is_there() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^([a-z-]+): "?(.+?)"?$', citation, re.MULTILINE))
    assert fields["version"] == gpulab.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert fields["license"] == project["license"]
    assert ("repository-code" in fields) == bool(address())


def test_the_first_lines_count_the_course() -> None:
    labs = catalogue.labs().values()
    numbers, hours = {lab.number for lab in labs}, sum(lab.hours for lab in labs)
    said = f"{len(numbers)} labs, {len(list(exercises()))} exercises, about {int(hours)} hours"
    assert said in " ".join(README.partition("## ")[0].split())
