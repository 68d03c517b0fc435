"""Groups of submissions with more in common than independent work has: for a person to look at.

What the course itself holds of an exercise counts nothing, however many students have it: the released
notebook, the lab's solution and the wrong answers beside it. What is left counts however many have it, so
that half a class with one odd answer is a group; a feature that few have only weighs more (log of the class's
size over how many have it). There are three kinds of features: structure (runs of tokens of Python's normal
form, with names of one's own all alike, so that renaming, other loops and turned operands hide nothing),
letters (runs of tokens as they were typed, with a name or comment of one's own) and text (all runs as they
were typed, of all answers together: short answers may agree by chance, and a whole lab of them does not).
Only letters and text are compared with the solution as well, which takes part as if it were a student: its
structure is what everybody is to find.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import jupytext
import numpy as np
from nbformat import NotebookNode

from grading.core.course import Course
from grading.core.graft import solution_cells
from grading.core.notebooks import with_stable_ids
from grading.lms.normal_form import normal_form

TOGETHER = "all answers together"  # whose letters are compared, too: many an answer alone has too few
SOLUTION = "solutions/"  # what the lab's own solution is called; a student's id has no slash
LONG = 4  # letters of a name or of a word in a comment: many have i, tx or row
TOKEN = re.compile(r"(?P<comment>(?:#(?!include|pragma|define)|//).*)|(?P<word>[^\W\d]\w*)|\d[\w.]*|[^\w\s]")
WORD = re.compile(r"[^\W\d]\w*")
MARKS = re.compile(r"^.*### (?:BEGIN|END) SOLUTION.*\n?", re.M)
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
KNOWN = frozenset([*keyword.kwlist, *dir(builtins)])


@dataclass(frozen=True)
class Kind:
    """A kind of features, which are runs of tokens: how long they are, how many an answer needs to say
    anything, and the share that two must have in common to be named."""

    run: int
    fewest: int
    least: float


KINDS = {"structure": Kind(8, 12, 0.3), "letters": Kind(8, 40, 0.8), "text": Kind(8, 200, 0.9)}
STRUCTURE, LETTERS = KINDS["structure"], KINDS["letters"]


@dataclass(frozen=True)
class Answer:
    """One answer as features, and the words of its author."""

    structure: frozenset[str]
    letters: frozenset[str]
    text: frozenset[str]
    words: frozenset[str]


@dataclass(frozen=True)
class Pair:
    """Two students: how much they share of what weighs something, in all and by exercise."""

    students: tuple[str, str]
    share: float  # 0 … 1
    cells: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Students of whom each two are a pair: what they share on average, in all and by exercise, and the
    words that at least two of them have and nobody else."""

    students: tuple[str, ...]
    share: float  # 0 … 1
    cells: dict[str, float]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Given:
    """What the course holds of a notebook: nobody's own work."""

    released: NotebookNode
    solution: NotebookNode | None = None
    wrong: tuple[str, ...] = ()

    @cached_property
    def known(self) -> frozenset[str]:
        """Names that are nobody's own: Python's, and those that are in the released notebook."""
        return KNOWN | {word for cell in self.released.cells for word in WORD.findall(cell.source)}

    @cached_property
    def structure(self) -> frozenset[str]:
        """The structure of all code that the course holds."""
        cells = self.released.cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        code += [
            text for cell in cells if cell.cell_type == "markdown" for text in FENCED.findall(cell.source)
        ]
        code += [*(answers(self.solution).values() if self.solution else ()), *self.wrong]
        return frozenset().union(*(features(text, self.known).structure for text in code))

    @cached_property
    def text(self) -> frozenset[str]:
        """The text of the released notebook."""
        return frozenset().union(*(features(cell.source, self.known).text for cell in self.released.cells))


def given(course: Course, lab: str, name: str, released: NotebookNode) -> Given:
    """What the course holds of a notebook; a course without `solutions/` has the released one alone."""
    folder = course.solutions / lab
    source, solution = folder / f"{name}.py", None
    if source.is_file():
        solution = with_stable_ids(jupytext.read(source), name)
    wrong = tuple(path.read_text(encoding="utf-8") for path in sorted((folder / "wrong").glob("*.py")))
    return Given(released, solution, wrong)


def features(source: str, known: frozenset[str] = KNOWN) -> Answer:
    """The features of a text in Python or CUDA C++. Names that are not `known` are one's own."""
    typed: list[str] = []
    theirs: set[str] = set()
    for match in TOKEN.finditer(source):
        comment, word = match["comment"], match["word"]
        words = [each.lower() for each in WORD.findall(comment)] if comment else [match[0]]
        typed += words
        of_module = source[max(match.start() - 1, 0)] == "."  # as in np.sum
        if comment or (word and not of_module):
            theirs.update(words)
    own = frozenset(word for word in theirs if len(word) >= LONG) - known
    normal = [
        "name" if match["word"] and match["word"] not in known else match[0]
        for match in TOKEN.finditer(normal_form(source, known))
        if not match["comment"]
    ]
    text = list(runs(typed, LETTERS.run))
    letters = (run for run in text if not own.isdisjoint(run))
    return Answer(_texts(runs(normal, STRUCTURE.run)), _texts(letters), _texts(text), own)


def runs(tokens: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    """Every so many tokens in a row."""
    return (tokens[i : i + length] for i in range(len(tokens) - length + 1))


def _texts(found: Iterable[Sequence[str]]) -> frozenset[str]:
    return frozenset(" ".join(run) for run in found)


def answers(notebook: NotebookNode) -> dict[str, str]:
    """The code of the solution cells, by grade id, without the marks of `solutions/`."""
    cells = [c for c in solution_cells(notebook) if c.cell_type == "code"]
    return {c.metadata.nbgrader.grade_id: MARKS.sub("", c.source) for c in cells}


def text_of(own: Mapping[str, str], cell: str) -> str:
    """A student's answer by grade id, or all of them where they are compared together."""
    return "\n\n".join(own.values()) if cell == TOGETHER else own.get(cell, "")


def compared(course_has: Given, submitted: Mapping[str, NotebookNode]) -> list[Group]:
    """The groups of a class, by what they wrote, most in common first."""
    known, everybody = course_has.known, {s: answers(notebook) for s, notebook in submitted.items()}
    if course_has.solution:
        everybody[SOLUTION] = answers(course_has.solution)
    found = {s: {cell: features(text, known) for cell, text in own.items()} for s, own in everybody.items()}
    by_kind: dict[str, dict[str, dict[str, frozenset[str]]]] = {kind: {} for kind in KINDS}
    words: dict[str, frozenset[str]] = {}
    for student, own in found.items():
        words[student] = frozenset().union(*(a.words for a in own.values()))
        for cell, answer in own.items():
            by_kind["structure"].setdefault(cell, {})[student] = answer.structure - course_has.structure
            by_kind["letters"].setdefault(cell, {})[student] = answer.letters - course_has.text
        letters = [answer.letters - course_has.text for answer in own.values()]
        if sum(map(bool, letters)) > 1:
            by_kind["letters"].setdefault(TOGETHER, {})[student] = frozenset().union(*letters)
        text = frozenset().union(*(answer.text for answer in own.values())) - course_has.text
        by_kind["text"].setdefault(TOGETHER, {})[student] = text
    return groups(alike(by_kind, KINDS), words)


def alike(
    by_kind: Mapping[str, Mapping[str, Mapping[str, frozenset[str]]]], kinds: Mapping[str, Kind]
) -> list[Pair]:
    """The pairs in features by kind, answer and student: whoever has enough of one kind in common."""
    found: dict[tuple[str, str], Pair] = {}
    for name, features_of in by_kind.items():
        for pair in ranked(features_of, kinds[name]):
            other = found.get(pair.students, pair)
            cells = {c: max(p.cells.get(c, 0) for p in (pair, other)) for c in {**pair.cells, **other.cells}}
            found[pair.students] = Pair(pair.students, max(pair.share, other.share), cells)
    return sorted(found.values(), key=most_in_common)


def ranked(features_of: Mapping[str, Mapping[str, frozenset[str]]], kind: Kind) -> list[Pair]:
    """The pairs that features of a kind, by answer and student, have in common, most in common first."""
    class_of = sorted({student for everybody in features_of.values() for student in everybody})
    place = {student: i for i, student in enumerate(class_of)}
    size = (len(class_of), len(class_of))
    shares: dict[str, np.ndarray] = {}
    shared, whole, most = np.zeros(size), np.zeros(size), np.zeros(size)
    for cell, everybody in features_of.items():
        own = {s: runs for s, runs in everybody.items() if len(runs) >= kind.fewest}
        if len(own) < 2:
            continue
        together = _together(list(own.values()), len(class_of))
        total = together.diagonal()
        either = np.where(together > 0, total[:, None] + total - together, 0)
        at = np.ix_([place[s] for s in own], [place[s] for s in own])
        shares[cell] = np.zeros(size)
        shares[cell][at] = np.divide(together, either, out=np.zeros_like(together), where=either > 0)
        shared[at] += together
        whole[at] += either
        most = np.maximum(most, shares[cell])
    result = []
    for i, j in np.argwhere(np.triu(most >= kind.least, 1)).tolist():
        cells = {cell: float(share[i, j]) for cell, share in shares.items() if share[i, j]}
        result.append(Pair((class_of[i], class_of[j]), float(shared[i, j] / whole[i, j]), cells))
    return sorted(result, key=most_in_common)


def _together(own: list[frozenset[str]], students: int) -> np.ndarray:
    """The weight of what each two (row, column) have in common."""
    column = {run: i for i, run in enumerate(sorted(frozenset().union(*own)))}
    have = np.zeros((len(own), len(column)))
    for row, runs_of in zip(have, own, strict=True):
        row[[column[run] for run in runs_of]] = 1
    weight = np.log((students + 1) / have.sum(0))
    product: np.ndarray = (have * weight) @ have.T
    return product


def most_in_common(pair: Pair) -> tuple[float, float, tuple[str, ...]]:
    """The order in which pairs are shown."""
    return -max(pair.cells.values()), -pair.share, pair.students


def groups(pairs: Sequence[Pair], words: Mapping[str, frozenset[str]] | None = None) -> list[Group]:
    """Pairs as groups in which each two are a pair, in their order. Every pair is in one of them."""
    by_name = {pair.students: pair for pair in pairs}
    partners: dict[str, set[str]] = {}
    for first, second in by_name:
        partners.setdefault(first, set()).add(second)
        partners.setdefault(second, set()).add(first)
    found: list[Group] = []
    shown: set[tuple[str, str]] = set()
    for pair in pairs:
        if pair.students in shown:
            continue
        members = set(pair.students)
        for student in sorted(partners[pair.students[0]] & partners[pair.students[1]]):
            if members <= partners[student]:
                members.add(student)
        within = [by_name[a, b] for a in sorted(members) for b in sorted(members) if (a, b) in by_name]
        shown |= {each.students for each in within}
        found.append(_group(members, within, words or {}))
    return found


def _group(members: set[str], within: list[Pair], words: Mapping[str, frozenset[str]]) -> Group:
    cells = {cell for pair in within for cell in pair.cells}
    average = {cell: sum(pair.cells.get(cell, 0) for pair in within) / len(within) for cell in sorted(cells)}
    share = sum(pair.share for pair in within) / len(within)
    others = frozenset().union(*(own for student, own in words.items() if student not in members))
    theirs = [words.get(student, frozenset()) for student in members]
    only = sorted(w for w in frozenset().union(*theirs) - others if sum(w in own for own in theirs) > 1)
    return Group(tuple(sorted(members)), share, average, tuple(only))
