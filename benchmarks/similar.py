"""Which pairs `similar` names by tokens and by PTX: kernels that a program rewrote, and others written apart.

python benchmarks/similar.py [LAB …]

A class is made for each exercise: twenty have the lab's own solution, everybody else a kernel that is unlike
it, from `wrong/` and the red team's honest answers. Then somebody more hands in one of these, rewritten:
operands and comparisons turned round and branches exchanged, or besides every `for` made a `while`.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import jupytext

sys.path.pop(0)  # this folder, whose grading.py is another benchmark

from gpulab.checks import registry
from grading.authoring.release import released_notebook
from grading.core import sandbox
from grading.core.course import Course
from grading.core.graft import Graft
from grading.core.judge import job_bytes, judge_cases, recording_job
from grading.core.notebooks import Question, questions
from grading.core.sandbox import Limits
from grading.lms.preprocessors import StableIds
from grading.lms.similar import FEWEST, Pair, features, ranked, vocabulary
from grading.lms.similar import answers as answers_of_cells
from grading.lms.similar_ptx import KINDS, alike, runs_of_trace
from grading.redteam.plays import plays

LABS = ("04_memory_hierarchy", "05_reductions_scans_softmax")
USUAL = 20  # students with the lab's own solution
LEAST = 0.3  # of rare structure: as `similar` names a pair unless told otherwise
UNLIKE = 0.5  # of the solution's opcode runs: whoever shares more wrote much the same
TURNED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
COURSE = Course()
Runs = dict[str, list[str]]  # by kind


class Turned(ast.NodeTransformer):
    """Operands and comparisons turned round, branches exchanged."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Mult):
            node.left, node.right = node.right, node.left
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and (turned := TURNED.get(type(node.ops[0]))):
            return ast.Compare(node.comparators[0], [turned()], [node.left])
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body) if node.orelse else node


class WithoutFor(Turned):
    """… and every `for` over a range that counts up is a `while`."""

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        texts = [ast.unparse(a) for a in getattr(node.iter, "args", ())]
        if not ast.unparse(node.iter).startswith("range(") or any(
            isinstance(inner, ast.Continue) for inner in ast.walk(node)
        ):
            return node
        first, end, step = ("0", *texts, "1") if len(texts) == 1 else (*texts, "1")[:3]
        if step.startswith("-"):
            return node
        name = ast.unparse(node.target)
        start, loop = ast.parse(f"{name} = {first}\nwhile {name} < {end}:\n    {name} = {name} + {step}").body
        assert isinstance(loop, ast.While)
        loop.body = [*node.body, *loop.body]
        return [start, loop]


REWRITES = {"turned": Turned, "without for": WithoutFor}


def rewritten(source: str, how: type[Turned]) -> str:
    """A cell with its kernels rewritten."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "jit" in "".join(map(ast.unparse, node.decorator_list)):
            how().generic_visit(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def answers(lab: str) -> Iterator[tuple[Question, dict[str, str], tuple[Any, Any]]]:
    """Each question that kernels answer, cells that answer it by name, the solved notebook and its cell."""
    honest = plays("honest")
    wrong = {path: path.read_text() for path in sorted((COURSE.solutions / lab / "wrong").glob("*.py"))}
    for path in sorted((COURSE.solutions / lab).glob("*.py")):
        solved, _ = StableIds()(jupytext.read(path), {"unique_key": path.stem})
        marked = [c for c in solved.cells if c.metadata.get("nbgrader")]
        for question in questions(solved):
            if registry.find(question.exercise).evidence.kind != "launch trace":
                continue
            at = next(i for i, c in enumerate(marked) if c.metadata.nbgrader.grade_id == question.cell)
            cell = next(c for c in marked[at::-1] if c.metadata.nbgrader.solution and c.cell_type == "code")
            found = {"solution": cell.source}
            found |= {p.name: p.source for p in honest if p.exercise == question.exercise}
            head = re.compile(rf"# exercise: {re.escape(question.exercise)}\s")
            found |= {p.stem: text for p, text in wrong.items() if head.match(text)}
            for name, how in REWRITES.items():
                found |= {f"{name}: {whose}": rewritten(text, how) for whose, text in list(found.items())}
            yield question, {k: v for k, v in found.items() if k.count(":") < 2}, (solved, cell)


def recorded(lab: str) -> dict[str, dict[str, Runs]]:
    """By exercise and answer what is launched; all in one process, because these cells are ours."""
    steps: list[dict[str, Any]] = []
    for question, cells, (solved, cell) in answers(lab):
        chosen = {question.exercise: judge_cases(registry.find(question.exercise))[:1]}
        seeds = {(question.exercise, case.name): 0 for case in chosen[question.exercise]}
        before = cell.source
        for name, source in cells.items():
            cell.source = source
            job = recording_job(Graft(copy.deepcopy(solved), {}, ""), (question,), chosen, seeds, 60)
            for step in job["steps"]:
                steps.append(
                    {**step, "exercise": f"{question.exercise}@{name}"} if "exercise" in step else step
                )
        cell.source = before
    limits = Limits(seconds=3600, patience=60, file=1 << 30)
    content = sandbox.record(job_bytes({"patience": 60, "steps": steps}), limits, unsafe=True).content
    found: dict[str, dict[str, Runs]] = {}
    for place, runs in runs_of_trace(content).items():
        exercise, _, name = place.partition("@")
        found.setdefault(exercise, {})[name] = runs
    return found


@dataclass(frozen=True)
class View:
    """One way of comparing: the features of an answer that tell whether it is unlike the solution, how few of
    them say nothing, and which pairs of a class have much in common."""

    features: Callable[[Any], Set[str]]
    fewest: int
    pairs: Callable[[dict[str, Any]], list[Pair]]


def by_tokens(answers_of: dict[str, Any]) -> list[Pair]:
    return ranked({"": answers_of}, len(answers_of), LEAST)


VIEWS = {
    "tokens": View(frozenset, FEWEST, by_tokens),
    "ptx": View(lambda runs: set(runs["opcodes"]), KINDS["opcodes"].fewest, lambda runs: alike({"": runs})),
}


def structures(lab: str) -> dict[str, dict[str, frozenset[str]]]:
    """By exercise and answer the runs of tokens that are nobody else's."""
    found = {}
    released = {p.stem: released_notebook(p) for p in sorted((COURSE.solutions / lab).glob("*.py"))}
    for question, cells, (_, cell) in answers(lab):
        given = next(n for n in released.values() if question.exercise in str(n))
        known = vocabulary(given)
        stub = features(answers_of_cells(given)[cell.metadata.nbgrader.grade_id], known)
        found[question.exercise] = {
            name: features(source, known).structure - stub.structure for name, source in cells.items()
        }
    return found


def counted(view: View, by_exercise: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """How many pairs are named, and of how many, by how they came to be. Those written apart are shown."""
    named = {"written apart": 0, **dict.fromkeys(REWRITES, 0)}
    of = dict(named)
    for exercise, by_name in by_exercise.items():
        usual = view.features(by_name["solution"])
        rare = {}
        for name, runs in by_name.items():
            mine = view.features(runs)
            unlike = len(mine & usual) < UNLIKE * len(mine | usual)
            if ":" not in name and unlike and len(mine) >= view.fewest:
                rare[name] = runs
        crowd = {f"usual {i}": by_name["solution"] for i in range(USUAL)}
        pairs = [p for p in view.pairs(rare | crowd) if rare.keys() >= set(p.students)]
        named["written apart"] += len(pairs)
        of["written apart"] += len(rare) * (len(rare) - 1) // 2
        for pair in pairs:
            print(f"{exercise}: {' and '.join(pair.students)} share {max(pair.cells.values()):.0%}")
        for name in REWRITES:
            for whose in rare:
                if (copied := by_name.get(f"{name}: {whose}")) is None:
                    continue
                found = view.pairs(rare | crowd | {"copy": copied})
                of[name] += 1
                named[name] += any(set(p.students) == {"copy", whose} for p in found)
    return {name: (count, of[name]) for name, count in named.items()}


def main() -> None:
    labs = sys.argv[1:] or LABS
    for name, read in {"tokens": structures, "ptx": recorded}.items():
        print(f"by {name}:")
        found = counted(VIEWS[name], {e: runs for lab in labs for e, runs in read(lab).items()})
        for how, (count, of) in found.items():
            print(f"{how:<14} {count:>4} of {of} pairs are named")


if __name__ == "__main__":
    main()
