"""Groups and their answers side by side: for a terminal, and as a page that needs no other file.

Everything that somebody wrote is escaped, and the page allows no script and loads nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grading.core import texts
from grading.lms.similar import SOLUTION, TOKEN, Group, text_of

WIDTH = 52  # of each side in a terminal
MOST_LINES = 400  # of an answer
NO_PROOF = "Likeness is a reason to look, and no proof of anything."
SIGNS = {"same": "│", "alike": "┊", "different": " "}
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #59636e; --line: #d1d9e0;
  --same: #fff1c2; --alike: #e3edfb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --faint: #9198a1;
  --line: #3d444d; --same: #4a3a00; --alike: #14304f; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 90rem;
  margin: 2rem auto; padding: 0 1rem; }
.faint { color: var(--faint); }
table { border-collapse: collapse; width: 100%; }
.wide { overflow-x: auto; }
th { text-align: left; border-bottom: 1px solid var(--line); padding: .2rem .75rem .2rem 0; }
.list td { padding: .2rem .75rem .2rem 0; vertical-align: top; }
.code { table-layout: fixed; min-width: 48rem; font: 13px/1.45 ui-monospace, monospace; }
.code td { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .5rem; vertical-align: top;
  border-right: 1px solid var(--line); }
.same { background: var(--same); }
.alike { background: var(--alike); }
summary { cursor: pointer; padding: .25rem 0; }
"""
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
"""


@dataclass(frozen=True)
class Row:
    """A line of either answer, or an empty one, and whether they are the same, alike but for names, comments
    and spaces, or different."""

    left: str
    right: str
    how: Literal["same", "alike", "different"]


def aligned(first: str, second: str, known: frozenset[str]) -> Iterator[Row]:
    """Two answers beside one another. Names that are not `known` count as one."""
    left, right = ([texts.clean(line, 500) for line in _lines(text)] for text in (first, second))
    matcher = difflib.SequenceMatcher(
        None, [_plain(line, known) for line in left], [_plain(line, known) for line in right], autojunk=False
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        for i in range(max(b - a, d - c)):
            one = left[a + i] if a + i < b else ""
            two = right[c + i] if c + i < d else ""
            how: Literal["same", "alike"] = "same" if one == two else "alike"
            yield Row(one, two, how if tag == "equal" else "different")


def side_by_side(first: str, second: str, known: frozenset[str]) -> Iterator[str]:
    """The same for a terminal: a bar between lines that are the same, a broken one between those alike."""
    for row in aligned(first, second, known):
        yield f"{row.left[:WIDTH]:<{WIDTH}} {SIGNS[row.how]} {row.right[:WIDTH]}".rstrip()


def _plain(line: str, known: frozenset[str]) -> str:
    """A line without comment and spaces, in which all names of one's own are alike."""
    tokens = TOKEN.finditer(line.lstrip("·"))
    names = ("name" if m["word"] and m["word"] not in known else m[0] for m in tokens if not m["comment"])
    return " ".join(names)


def _lines(text: str) -> list[str]:
    """Lines whose indentation survives cleaning."""
    lines = text.splitlines()[:MOST_LINES]
    return [re.sub(r"^[ \t]+", lambda m: "·" * len(m[0].expandtabs(4)), line) for line in lines]


def show(console: Console, notebook: str, groups: Sequence[Group], students: int) -> None:
    """The groups of one notebook, with what they share in which answer."""
    if not groups:
        console.print(
            f"{notebook}: no group among {students} student{'s' * (students != 1)} stands out", markup=False
        )
        return
    console.print(f"{notebook}:", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("in common", "students", "most in", "words that only they have"):
        table.add_column(name, overflow="fold")
    for group in groups:
        words = texts.clean(", ".join(group.words), 100)
        row = (f"{group.share:.0%}", texts.clean(names(group), 1000), most_in(group), words)
        table.add_row(*map(Text, row))
    console.print(table)
    console.print(f"{NO_PROOF} --pair A B shows two side by side, --html FILE makes a page of all.")


def page(
    lab: str,
    notebooks: Mapping[str, tuple[Sequence[Group], Mapping[str, Mapping[str, str]], frozenset[str]]],
) -> str:
    """The groups of a lab as one page: by notebook its groups, everybody's answers by student and grade id,
    and the names that are nobody's own."""
    parts = [HEAD.format(title=escape(f"Similar answers in {lab}"), style=STYLE)]
    parts.append(
        f"<p>{NO_PROOF} "
        "Code in the released notebook, the lab's solution or a known wrong answer counts nothing. "
        '<span class="same">The same line</span>, <span class="alike">the same but for names, comments and '
        "spaces</span>. A dot is a space of indentation.</p>"
    )
    for name, (groups, answers, known) in notebooks.items():
        parts.append(f"<h2>{escape(name)}</h2>")
        if not groups:
            parts.append("<p>No group stands out.</p>")
            continue
        parts.append(_table(groups))
        parts += [_section(i, group, answers, known) for i, group in enumerate(groups, 1)]
    return "\n".join([*parts, "</body>", "</html>", ""])


def _table(groups: Sequence[Group]) -> str:
    head = "".join(
        f"<th>{word}</th>" for word in ("", "in common", "students", "most in", "words of theirs alone")
    )
    rows = []
    for i, group in enumerate(groups, 1):
        cells = (names(group), most_in(group), ", ".join(group.words[:20]))
        text = "".join(f"<td>{_shown(cell)}</td>" for cell in cells)
        rows.append(f"<tr><td>{i}</td><td>{group.share:.0%}</td>{text}</tr>")
    return f'<div class="wide"><table class="list"><tr>{head}</tr>{"".join(rows)}</table></div>'


def _section(
    number: int, group: Group, answers: Mapping[str, Mapping[str, str]], known: frozenset[str]
) -> str:
    """The first of a group beside each of the others, exercise by exercise. Who wrote the same to the letter
    shares a column."""
    parts = [f"<h3>{number}. {_shown(names(group))}</h3>"]
    for cell, _ in by_share(group):
        by_text: dict[str, list[str]] = {}
        for student in group.students:
            by_text.setdefault(text_of(answers[student], cell), []).append(student)
        (first, mine), *others = by_text.items()
        parts.append(f"<h4>{_shown(cell)}: {group.cells[cell]:.0%} in common</h4>")
        for text, theirs in others or [(first, mine)]:
            head = f"{' · '.join(mine)} beside {' · '.join(theirs)}" if others else "the same to the letter"
            rows = "".join(
                f'<tr class="{row.how}"><td>{escape(row.left)}</td><td>{escape(row.right)}</td></tr>'
                for row in aligned(first, text, known)
            )
            shown = " open" if len(others) < 2 else ""
            parts.append(
                f'<details{shown}><summary>{_shown(head)}</summary><div class="wide"><table class="code">'
                f"{rows}</table></div></details>"
            )
    return "\n".join(parts)


def _shown(text: str) -> str:
    return escape(texts.clean(text, 1000))


def names(group: Group) -> str:
    """Who is in a group; the lab's solution is last, where a long group does not hide it."""
    solution = ["the lab's solution"] * (SOLUTION in group.students)
    return " · ".join([s for s in group.students if s != SOLUTION] + solution)


def by_share(group: Group, most: int = 6) -> list[tuple[str, float]]:
    """The answers in which a group has most in common."""
    return sorted(group.cells.items(), key=lambda item: -item[1])[:most]


def most_in(group: Group) -> str:
    """The same as a line."""
    return ", ".join(f"{cell} {share:.0%}" for cell, share in by_share(group, 3))
