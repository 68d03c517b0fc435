"""The README and CONTRIBUTING.md say what the course's own records say, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpulab
from gpulab.app.course import catalogue
from gpulab.app.course.address import address
from gpulab.checks.registry import exercises

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_paths_are_those_of_the_course() -> None:
    section = README.partition("## Four paths\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \| (.+?) hours \|$", section, re.MULTILINE)
    paths = [(path.name, path.words, " · ".join(path.labs), f"{path.hours:g}") for path in catalogue.paths()]
    assert rows == paths


GUIDE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "instructors").glob("*.md"))


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "grading/README.md", *GUIDE]
)
def test_links_to_files_lead_somewhere(name: str) -> None:
    text = re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    links = [link for link in found if not link.startswith(("http", "#"))]
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


def said_by(*command: str, folder: Path) -> list[str]:
    """The lines that a command prints, indented as in the README, without the time that it took."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GPULAB_PROGRESS": str(folder / "progress.json")}
    environment |= {"GPULAB_SIMULATE": "1"}
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return without_times("".join(f"    {line}\n" for line in ran.stdout.splitlines())).splitlines()


def without_times(text: str) -> str:
    return re.sub(r" +[\d.]+ s$", "", text, flags=re.MULTILINE)


def test_the_report_that_the_readme_shows_is_what_its_kernel_gives(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code
    (tmp_path / "shown.py").write_text(re.sub(r"^(gpulab\.profile.*)$", r"print(\1)", code[1], flags=re.M))
    report = said_by("shown.py", folder=tmp_path)
    last = next(i for i, line in enumerate(report) if "costliest line" in line)
    assert "\n".join(report[: last + 1]) in without_times(README)


def test_the_verdict_that_the_readme_shows_is_what_a_kernel_without_a_guard_gets(tmp_path: Path) -> None:
    kernel = "@cuda.jit\ndef double(a, out):\n    i = cuda.grid(1)\n    out[i] = a[i] + a[i]\n"
    (tmp_path / "mine.py").write_text(f"from gpulab import cuda\n\n{kernel}")
    verdict = said_by("-m", "gpulab", "check", "mine.py::start.double", folder=tmp_path)
    assert "0 of 2.0 points" in verdict[0] and "\n".join(verdict[:7]) in README
