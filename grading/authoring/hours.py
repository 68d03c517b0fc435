"""How long a notebook takes: one formula from its words, exercises and lines of answers.

    minutes = words / 140 + 8 · exercises + lines of answers
              + 2 · predictions + 10 · written answers + 0.75 · cells of code

An answer's lines are those of the solution that are not empty. In a project (lab 22) the way is not shown: an
exercise takes 45 minutes and a report 40. A learner who knows the field needs about 0.8 of this, and one who
gets stuck now and then 1.3 of it. The front of each notebook states this range. Its metadata state one number
within the range, from which the hours of labs and paths are added up.

A notebook of more than four hours is cut into sittings. A cell of text with the heading "End of sitting 1"
ends the first one, and the same formula says how long each of them takes.

The constants are estimates and not measurements: they were chosen so that the sum over the course agrees with
what its authors had estimated lab by lab. When learners' times are known, fit them again.

`python -m grading.authoring.hours` prints the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAST, SLOW = 0.8, 1.3  # of the formula

PROJECTS = re.compile(r"22_capstones_[abc]$")
LOOKED_UP = re.compile(r"^### (?:Cheat sheet|References)\n.*?(?=^##|\Z)", re.DOTALL | re.MULTILINE)
NO_TEXT = re.compile(r"!?\[[^\]]*\]\([^)]*\)|<!--.*?-->|</?\w[^>]*>", re.DOTALL)
END = re.compile(r"^# ## End of sitting \d+$", re.MULTILINE)
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)


@dataclass(frozen=True)
class Effort:
    """What there is to do in a notebook; `answers` are written ones."""

    words: int
    exercises: int
    lines: int
    predictions: int
    answers: int
    cells: int
    project: bool = False

    @property
    def hours(self) -> float:
        """The middle of the range."""
        exercise, answer = (45, 40) if self.project else (8, 10)
        minutes = (
            self.words / 140
            + exercise * self.exercises
            + self.lines
            + 2 * self.predictions
            + answer * self.answers
            + 0.75 * self.cells
        )
        return minutes / 60

    @property
    def range(self) -> tuple[float, float]:
        """From fast to slow, in half hours."""
        return round(2 * FAST * self.hours) / 2, round(2 * SLOW * self.hours) / 2

    @property
    def said(self) -> str:
        """The range as the front of a notebook states it."""
        low, high = self.range
        return f"{low:g} to {high:g} hours"


def effort(notebook: Path) -> Effort:
    """What a notebook's source asks for."""
    return _effort(_cells(notebook), bool(PROJECTS.search(notebook.stem)))


def sittings(notebook: Path) -> list[Effort]:
    """What each sitting of a notebook asks for; a single one where nothing ends a sitting before the last."""
    parts: list[list[str]] = [[]]
    for cell in _cells(notebook):
        parts[-1].append(cell)
        if END.search(cell):
            parts.append([])
    return [_effort(cells, bool(PROJECTS.search(notebook.stem))) for cells in parts]


def notebooks() -> list[Path]:
    """The sources of all notebooks."""
    return sorted((ROOT / "solutions").glob("[0-9]*/[0-9]*.py"))


def stated(notebook: Path) -> float:
    """The hours in a notebook's metadata."""
    found = re.search(r"^#     hours: ([\d.]+)$", notebook.read_text(encoding="utf-8"), re.MULTILINE)
    return float(found[1]) if found else 0.0


def _cells(notebook: Path) -> list[str]:
    return re.split(r"(?m)^(?=# %%)", notebook.read_text(encoding="utf-8"))[1:]


def _effort(cells: list[str], project: bool) -> Effort:
    texts = [cell for cell in cells if cell.startswith("# %% [markdown]")]
    written = [cell for cell in texts if '"solution": true' in cell.partition("\n")[0]]
    source, read = "".join(cells), "\n".join(_text(cell) for cell in texts if cell not in written)
    plain = NO_TEXT.sub(" ", LOOKED_UP.sub("", read))
    return Effort(
        words=sum(any(letter.isalnum() for letter in word) for word in plain.split()),
        exercises=len(re.findall(r"^gpulab\.check\(", source, re.MULTILINE)),
        lines=sum(
            bool(line.strip(" #")) for found in SOLUTION.findall(source) for line in found.splitlines()
        ),
        predictions=len(re.findall(r"^gpulab\.predict\(.*\.\.\.\)$", source, re.MULTILINE)),
        answers=len(written),
        cells=len(cells) - len(texts),
        project=project,
    )


def _text(cell: str) -> str:
    return "\n".join(line[2:] for line in cell.splitlines()[1:])


if __name__ == "__main__":
    for each in notebooks():
        found, parts = effort(each), sittings(each)
        cut = f"   sittings: {', '.join(part.said for part in parts)}" if len(parts) > 1 else ""
        print(f"{each.stem:36} {found.hours:5.1f}   {found.said:20} stated: {stated(each):<4g}{cut}")
