"""Pairs of submissions with more in common than the class has: for a person to look at, no accusation.

What everybody writes weighs nothing, because a feature counts by how rare it is in the class (log of the
class's size over how many have it), and what the released notebook holds does not count at all. Two kinds of
features: structure (runs of tokens of Python's normal form, with names of one's own all alike, so that
renaming, other loops and turned operands hide nothing) and words (one's own names and the words of comments).
"""

from __future__ import annotations

import builtins
import difflib
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from nbformat import NotebookNode

from grading.core import texts
from grading.core.graft import solution_cells
from grading.lms.normal_form import normal_form

RUN = 8  # tokens: about a line; shorter runs are everybody's
FEWEST = 12  # features of an answer; with fewer it says nothing
MOST_HAVE = 0.25  # of the class: what more have is no sign of anything
TOKEN = re.compile(r"(?P<comment>(?:#(?!include|pragma|define)|//).*)|(?P<word>[^\W\d]\w*)|\d[\w.]*|[^\w\s]")
KNOWN = frozenset([*keyword.kwlist, *dir(builtins)])


@dataclass(frozen=True)
class Answer:
    """One answer as features."""

    structure: frozenset[str]
    words: frozenset[str]


@dataclass(frozen=True)
class Pair:
    """Two students: how much rare structure they share, by exercise and in all, and words only few have."""

    students: tuple[str, str]
    share: float  # 0 … 1
    cells: dict[str, float]
    words: tuple[str, ...]


def features(source: str, known: frozenset[str] = KNOWN) -> Answer:
    """The features of a text in Python or CUDA C++. Names that are not `known` are one's own."""
    words: set[str] = set()
    for match in TOKEN.finditer(source):
        if comment := match["comment"]:
            words |= {w.lower() for w in re.findall(r"[^\W\d]\w{3,}", comment)}
        elif word := match["word"]:
            words.add(word)
    tokens = [
        "name" if match["word"] and match["word"] not in known else match[0]
        for match in TOKEN.finditer(normal_form(source, known))
        if not match["comment"]
    ]
    runs = {" ".join(tokens[i : i + RUN]) for i in range(len(tokens) - RUN + 1)}
    return Answer(frozenset(runs), frozenset(words - known))


def vocabulary(notebook: NotebookNode) -> frozenset[str]:
    """Names that are nobody's own: Python's, and those that stand in the released notebook."""
    return KNOWN | {w for cell in notebook.cells for w in re.findall(r"[^\W\d]\w*", cell.source)}


def answers(notebook: NotebookNode) -> dict[str, str]:
    """The code of the solution cells, by grade id."""
    cells = [c for c in solution_cells(notebook) if c.cell_type == "code"]
    return {c.metadata.nbgrader.grade_id: c.source for c in cells}


def pairs(released: NotebookNode, submitted: dict[str, NotebookNode], least: float = 0.3) -> list[Pair]:
    """All pairs that share at least `least` of their rare structure in an answer, most in common first."""
    known, given = vocabulary(released), answers(released)
    own: dict[str, dict[str, frozenset[str]]] = {}
    words: dict[tuple[str, str], set[str]] = {}
    for cell, source in given.items():
        stub = features(source, known)
        texts_of = {student: answers(notebook).get(cell, "") for student, notebook in submitted.items()}
        found = {student: features(text, known) for student, text in texts_of.items()}
        own[cell] = {s: a.structure - stub.structure for s, a in found.items()}
        rare = {s: a.words for s, a in found.items() if len(own[cell][s]) >= FEWEST}
        for pair, common in _rare_words(rare):
            words.setdefault(pair, set()).update(common)
    return ranked(own, len(submitted), least, words)


def ranked(
    features_of: Mapping[str, Mapping[str, frozenset[str]]],
    students: int,
    least: float,
    words: Mapping[tuple[str, str], set[str]] | None = None,
    fewest: int = FEWEST,
) -> list[Pair]:
    """The pairs that features, by answer and student, have in common; `students` is the size of the class.

    Answers with fewer than `fewest` features are left out.
    """
    shared: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for cell, everybody in features_of.items():
        own = {s: runs for s, runs in everybody.items() if len(runs) >= fewest}
        weight = _weights(own.values(), students)
        total = {s: sum(weight[f] for f in runs) for s, runs in own.items()}
        for pair, together in _together(own, weight, students):
            whole = total[pair[0]] + total[pair[1]] - together
            shared.setdefault(pair, {})[cell] = (together, whole)
    result, words = [], words or {}
    for pair, by_cell in shared.items():
        cells = {cell: together / whole for cell, (together, whole) in by_cell.items() if whole}
        if cells and max(cells.values()) >= least:
            share = sum(t for t, _ in by_cell.values()) / sum(w for _, w in by_cell.values())
            result.append(Pair(pair, share, cells, tuple(sorted(words.get(pair, ())))))
    return sorted(result, key=most_in_common)


def most_in_common(pair: Pair) -> tuple[float, float, tuple[str, str]]:
    """The order in which pairs are shown."""
    return -max(pair.cells.values()), -pair.share, pair.students


def _weights(all_runs: Iterable[frozenset[str]], students: int) -> dict[str, float]:
    have = Counter(run for runs in all_runs for run in runs)
    return {run: math.log((students + 1) / count) for run, count in have.items()}


def _together(
    own: dict[str, frozenset[str]], weight: dict[str, float], students: int
) -> Iterator[tuple[tuple[str, str], float]]:
    """The weight that each pair has in common; only what few have makes a pair worth a look."""
    holders: dict[str, list[str]] = {}
    for student in sorted(own):
        for run in own[student]:
            holders.setdefault(run, []).append(student)
    most = max(2, int(MOST_HAVE * students))
    candidates = {p for who in holders.values() if 2 <= len(who) <= most for p in combinations(who, 2)}
    for first, second in sorted(candidates):
        yield (first, second), sum(weight[run] for run in own[first] & own[second])


def _rare_words(words: dict[str, frozenset[str]]) -> Iterator[tuple[tuple[str, str], set[str]]]:
    """Words that exactly two students have."""
    holders: dict[str, list[str]] = {}
    for student in sorted(words):
        for word in words[student]:
            holders.setdefault(word, []).append(student)
    for word, who in holders.items():
        if len(who) == 2:
            yield (who[0], who[1]), {word}


def side_by_side(first: str, second: str, width: int = 52) -> Iterator[str]:
    """Two texts beside one another; a bar between lines that are the same."""
    left, right = ([texts.clean(line, 500) for line in _lines(text)] for text in (first, second))
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for i in range(max(b - a, d - c)):
            one = left[a + i] if a + i < b else ""
            two = right[c + i] if c + i < d else ""
            yield f"{one[:width]:<{width}} {'│' if tag == 'equal' else ' '} {two[:width]}".rstrip()


def _lines(text: str) -> list[str]:
    """Lines whose indentation survives cleaning."""
    return [re.sub(r"^[ \t]+", lambda m: "·" * len(m[0].expandtabs(4)), line) for line in text.splitlines()]
