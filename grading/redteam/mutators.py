"""A catalogue of small dishonest changes: each takes the syntax tree of an answer and yields mutants.

A mutator rewrites one node. It is tried on every node of a cell, and each rewriting is one mutant:
``list(mutants("x[i] = 0"))`` has one, in which that store is gone. CUDA C++ is text in a Python cell, so
there one match of a pattern is replaced. A mutant may be right, wrong or no program at all.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Sense = Literal["weakens", "adds work"]
New = ast.AST | list[ast.stmt]
Rewrite = Callable[[Any], Iterator[New]]

BARRIERS = (
    "syncthreads", "syncwarp", "threadfence", "threadfence_block", "sync", "debug_barrier",
    "sync_threads", "cp_async_wait_group", "mbarrier_wait", "wait_group", "fence",
)  # fmt: skip
FEWER_BITS = {
    "float64": "float32", "float32": "float16", "int64": "int32", "uint64": "uint32", "int32": "int16",
    "double": "half", "float": "half",
}  # fmt: skip
IS_CUDA = re.compile(r"__global__")
TURNS = 32  # lanes of a warp


@dataclass(frozen=True)
class Mutator:
    """One kind of change. `nodes` are the types of nodes that `rewrite` is asked about, `in_kernels` limits
    them to kernels of numba."""

    name: str
    sense: Sense
    nodes: tuple[type[ast.AST], ...]
    rewrite: Rewrite
    in_kernels: bool = False


@dataclass(frozen=True)
class InText:
    """One kind of change of CUDA C++: each match of `pattern` is replaced by `instead`, one at a time."""

    name: str
    sense: Sense
    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True)
class Mutant:
    """A changed cell, and what was done to it in one line."""

    mutator: str
    sense: Sense
    what: str
    source: str


def _called(node: ast.AST) -> str:
    """The last name of what is called, such as ``add`` of ``cuda.atomic.add(…)``; empty if nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _is_atomic(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and "atomic" in ast.unparse(node.func)


def _statements(text: str, **parts: ast.AST) -> list[ast.stmt]:
    """Statements from a text in which the names in `parts` stand for expressions or whole statements."""

    class Fill(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.AST:
            part = parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
            return copy.deepcopy(part) if isinstance(part, ast.stmt) else self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return copy.deepcopy(parts.get(node.id, node))

    return Fill().visit(ast.parse(text)).body


def _subscripts(node: ast.AST) -> list[ast.Subscript]:
    """Elements of arrays that a statement loads or stores."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    return [n for n in found if not isinstance(n.slice, ast.Slice)]


def _touches(node: ast.stmt) -> bool:
    """Whether lanes can take turns with it: it uses memory, and no lane waits for another in it."""
    waits = any(_called(n) in (*BARRIERS, "array") or "shfl" in _called(n) for n in ast.walk(node))
    launches = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in ast.walk(node))
    return bool(_subscripts(node)) and not waits and not launches


def _drop_barrier(node: ast.Expr) -> Iterator[New]:
    if _called(node.value) in BARRIERS:
        yield ast.Pass()


def _drop_zeroing(node: ast.Assign) -> Iterator[New]:
    zero = isinstance(node.value, ast.Constant) and not node.value.value
    zero |= isinstance(node.value, ast.Call) and [ast.unparse(a) for a in node.value.args] in (["0"], ["0.0"])
    if zero and isinstance(node.targets[0], ast.Subscript):
        yield ast.Pass()


def _plain_atomic(node: ast.Expr) -> Iterator[New]:
    if _is_atomic(node.value) and _called(node.value) == "add" and len(node.value.args) == 3:  # type: ignore[attr-defined]
        array, index, value = node.value.args  # type: ignore[attr-defined]
        yield _statements("array[index] += value", array=array, index=index, value=value)
    if _called(node.value).startswith("atomic_add"):
        place, value = node.value.args[:2]  # type: ignore[attr-defined]
        yield _statements("tl.store(place, tl.load(place) + value)", place=place, value=value)


def _fewer_bits(node: ast.Attribute) -> Iterator[New]:
    if node.attr in FEWER_BITS and not hasattr(node, "holds_zero"):
        yield ast.Attribute(node.value, FEWER_BITS[node.attr], node.ctx)


def _mark_zeros(tree: ast.Module) -> None:
    """Mark the type in ``np.float32(0)``: zero has enough bits in each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and [ast.unparse(each) for each in node.args] in (["0"], ["0.0"]):
            node.func.holds_zero = True  # type: ignore[attr-defined]


def _drop_guard(node: ast.If) -> Iterator[New]:
    yield ast.If(ast.Constant(True), node.body, node.orelse)


def _drop_early_return(node: ast.If) -> Iterator[New]:
    if not node.orelse and isinstance(node.body[-1], ast.Return | ast.Continue | ast.Raise):
        yield ast.Pass()


def _drop_half_a_guard(node: ast.BoolOp) -> Iterator[New]:
    for left_out in range(len(node.values)):
        kept = [value for number, value in enumerate(node.values) if number != left_out]
        yield kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)


def _drop_mask(node: ast.Call) -> Iterator[New]:
    if any(k.arg == "mask" for k in node.keywords):
        kept = [k for k in node.keywords if k.arg not in ("mask", "other")]
        yield ast.Call(node.func, node.args, kept)


def _drop_launch(node: ast.Expr) -> Iterator[New]:
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Subscript):
        yield ast.Pass()


def _launch_again(node: ast.Expr) -> Iterator[New]:
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Subscript):
        yield [node, copy.deepcopy(node), copy.deepcopy(node)]


def _idle_blocks(node: ast.Call) -> Iterator[New]:
    if isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Tuple):
        grid, *rest = node.func.slice.elts
        if not isinstance(grid, ast.Tuple):
            more = ast.BinOp(ast.Constant(3), ast.Mult(), grid)
            yield ast.Call(
                ast.Subscript(node.func.value, ast.Tuple([more, *rest], ast.Load()), ast.Load()),
                node.args,
                node.keywords,
            )


def _in_turns(node: ast.stmt) -> Iterator[New]:
    if _touches(node):
        text = f"for its_turn in range({TURNS}):\n if cuda.laneid == its_turn:\n  statement"
        yield _statements(text, statement=node)


def _again_and_again(node: ast.Assign) -> Iterator[New]:
    if _touches(node):
        yield _statements("for again in range(4):\n cuda.threadfence()\n statement", statement=node)


def _add_zeros(node: ast.stmt) -> Iterator[New]:
    if not _touches(node):
        return
    for element in {ast.unparse(n): n for n in _subscripts(node)}.values():
        line = "for zero in range(4):\n cuda.atomic.add(array, index, 0)"
        yield [*_statements(line, array=element.value, index=element.slice), node]


def _generic_pointer(node: ast.Assign) -> Iterator[New]:
    if isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("shared.array"):
        local = copy.deepcopy(node.value)
        local.func = ast.parse("cuda.local.array", mode="eval").body
        text = "in_shared = shared\nif cuda.gridsize(1) > 0:\n found = in_shared\nelse:\n found = local"
        filled = _statements(text, shared=node.value, local=local)
        yield [*filled, ast.Assign(node.targets, ast.Name("found", ast.Load()))]


def _load_again(node: ast.Assign) -> Iterator[New]:
    if _called(node.value) == "load" and "tl" in ast.unparse(node.value):
        twice = copy.deepcopy(node)
        twice.value.keywords.append(ast.keyword("volatile", ast.Constant(True)))  # type: ignore[attr-defined]
        yield [twice, copy.deepcopy(twice), copy.deepcopy(twice)]


def _spin(node: ast.Expr | ast.Assign) -> Iterator[New]:
    """Every thread adds 0 to the first element of a new array, 16 times."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) == "array":
        place = ", ".join("0" for _ in getattr(node.value.args[0], "elts", [0])) if node.value.args else "0"
        spin = f"for spin in range(16):\n cuda.atomic.add(array, ({place}), 0)"
        yield [node, *_statements(spin, array=node.targets[0])]


ASSIGNS = (ast.Assign, ast.AugAssign)
MUTATORS = (
    Mutator("drops a barrier", "weakens", (ast.Expr,), _drop_barrier),
    Mutator("drops a zeroing", "weakens", (ast.Assign,), _drop_zeroing),
    Mutator("makes an atomic plain", "weakens", (ast.Expr,), _plain_atomic),
    Mutator("takes fewer bits", "weakens", (ast.Attribute,), _fewer_bits),
    Mutator("drops a guard", "weakens", (ast.If,), _drop_guard),
    Mutator("drops an early end", "weakens", (ast.If,), _drop_early_return),
    Mutator("drops half a guard", "weakens", (ast.BoolOp,), _drop_half_a_guard),
    Mutator("drops a mask", "weakens", (ast.Call,), _drop_mask),
    Mutator("drops a launch", "weakens", (ast.Expr,), _drop_launch),
    Mutator("launches three times", "adds work", (ast.Expr,), _launch_again),
    Mutator("launches idle blocks", "adds work", (ast.Call,), _idle_blocks),
    Mutator("lets lanes take turns", "adds work", (*ASSIGNS, ast.For, ast.If), _in_turns, True),
    Mutator("loads or stores again", "adds work", (ast.Assign,), _again_and_again, True),
    Mutator("pads with atomics of zero", "adds work", ASSIGNS, _add_zeros, True),
    Mutator("hides a space behind a generic pointer", "adds work", (ast.Assign,), _generic_pointer, True),
    Mutator("loads three times", "adds work", (ast.Assign,), _load_again),
    Mutator("spins on an atomic", "adds work", (ast.Assign,), _spin, True),
)

# A statement that uses an array: no declaration, because its name must outlive the turn.
USES = r"(?m)^([ \t]*)(\w+(?:\[[^;=]*\])+ [-+*/]?= [^;]*;|\w+ [-+*/]?= [^;{}]*\[[^;]*;)[ \t]*$"
IN_TEXT = (
    InText("drops a barrier", "weakens", re.compile(r"__sync(?:threads|warp)\(\);"), ";"),
    InText("drops a fence", "weakens", re.compile(r"__threadfence(?:_block)?\(\);"), ";"),
    InText("drops a fence", "weakens", re.compile(r"ptx::(?:tcgen05_)?fence_\w+\([^;]*\);"), ";"),
    InText("drops a wait", "weakens", re.compile(r"(?<![\w:])wait\([^;{}]*\);|\w+_wait_prior\(\w+\);"), ";"),
    InText("drops a wait", "weakens", re.compile(r"wait_products<\d>\(\);|while \(!ptx::[^;{}]*\{\}"), ";"),
    InText(
        "drops an arrival", "weakens",
        re.compile(r"(?:if \([^;{}]*\) )?ptx::mbarrier_arrive\([^;]*\);"), ";",
    ),
    InText("drops a meeting of the cluster", "weakens", re.compile(r"meet\(\);|cluster\.sync\(\);"), ";"),
    InText("makes an atomic plain", "weakens", re.compile(r"atomicAdd\(&?([^,]+), ([^;]+)\);"), r"\1 += \2;"),
    InText("takes fewer bits", "weakens", re.compile(r"\bdouble\b"), "float"),
    InText("takes fewer bits", "weakens", re.compile(r"\blong long\b"), "int"),
    InText("drops an early end", "weakens", re.compile(r"if \([^;{}]*\) (?:return|continue);"), ";"),
    InText("drops a guard", "weakens", re.compile(r"if \([^;{}]*\)(?= *[\w{*])"), "if (true)"),
    InText("drops half a guard", "weakens", re.compile(r"&& [^&|;{}()]+(?=\))"), ""),
    InText("drops half a guard", "weakens", re.compile(r"(?<=\()[^&|;{}()]+ &&"), ""),
    InText("drops a zeroing", "weakens", re.compile(r"\w+(?:\[[^;=]*\])+ = 0(?:\.0?f?)?;"), ";"),
    InText(
        "lets lanes take turns", "adds work", re.compile(USES),
        r"\1for (int turn = 0; turn < 32; turn++) { if (threadIdx.x % 32 == turn) { \2 } }",
    ),
    InText(
        "loads or stores again", "adds work",
        re.compile(r"(?m)^([ \t]*)(\w+(?:\[[^;=]*\])+ = [^;]*;)[ \t]*$"),
        r"\1for (int again = 0; again < 4; again++) { __threadfence(); \2 }",
    ),
    InText(
        "hides a space behind a generic pointer", "adds work",
        re.compile(r"__shared__ (\w+) (\w+)\[([^\]]+)\];"),
        r"__shared__ \1 \2_there[\3]; \1 \2_here[1]; \1* volatile \2_kept = gridDim.x ? \2_there : \2_here; "
        r"\1* \2 = \2_kept;",
    ),
)  # fmt: skip


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a cell, one change each. Raises SyntaxError for a cell that is no Python."""
    tree = ast.parse(source)
    _mark_zeros(tree)
    kernels = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_kernel(n)]
    within = {id(node) for kernel in kernels for node in ast.walk(kernel)}
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and IS_CUDA.search(node.value):
            for text in IN_TEXT:
                for match in text.pattern.finditer(node.value):
                    instead = match.expand(text.instead)
                    changed = node.value[: match.start()] + instead + node.value[match.end() :]
                    what = f"{match[0].strip()} → {instead.strip()}"
                    yield _mutant(tree, number, ast.Constant(changed), text, what)
            continue
        for mutator in MUTATORS:
            if isinstance(node, mutator.nodes) and (id(node) in within or not mutator.in_kernels):
                for new in mutator.rewrite(copy.deepcopy(node)):
                    what = f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node).splitlines()[0]}"
                    yield _mutant(tree, number, new, mutator, what)


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any("cuda.jit" in ast.unparse(decorator) for decorator in node.decorator_list)


def _mutant(tree: ast.Module, number: int, new: New, mutator: Mutator | InText, what: str) -> Mutant:
    changed = copy.deepcopy(tree)
    target = list(ast.walk(changed))[number]

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return new if node is target else self.generic_visit(node)

    return Mutant(
        mutator.name, mutator.sense, what, ast.unparse(ast.fix_missing_locations(Put().visit(changed)))
    )
