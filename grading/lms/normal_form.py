"""Python as text in which what is easily written in another way is written in one.

A `for` over a range is a `while` with a counter, `x += 1` is `x = x + 1`; the operands of sums and products
stand in one order whatever they are called, comparisons ask for less, and where there are two branches the
first one is not that of a `not`. What runs may differ by it (a `continue` skips the counter, NaN is less than
nothing): this is for comparing texts. Strings, such as kernels in CUDA C++, stand behind, as they are.
"""

from __future__ import annotations

import ast
import re
import warnings

TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPPOSITE = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq}
OPPOSITE |= {ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
MAGIC = re.compile(r"^\s*[%!].*", re.M)


def normal_form(source: str, known: frozenset[str]) -> str:
    """A cell's text in its normal form, or as it is where it is no Python. Names that are not `known` are
    one's own and alike."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes, say
            tree = ast.parse(MAGIC.sub("", source))
        form = _Normal(known)
        text = ast.unparse(ast.fix_missing_locations(form.visit(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    return "\n".join([text, *form.strings])


class _Normal(ast.NodeTransformer):
    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.strings: list[str] = []

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            self.strings.append(node.value)
            return ast.Constant("")
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[end]):
                first, step = ast.Constant(0), ast.Constant(1)
            case ast.Call(func=ast.Name(id="range"), args=[first, end]):
                step = ast.Constant(1)
            case ast.Call(func=ast.Name(id="range"), args=[first, end, step]):
                pass
            case _:
                return node
        counter = ast.parse(ast.unparse(node.target), mode="eval").body
        down = isinstance(step, ast.UnaryOp)
        test = ast.Compare(end, [ast.Lt()], [counter]) if down else ast.Compare(counter, [ast.Lt()], [end])
        onward = ast.Assign([node.target], self._sum(counter, ast.Add(), step))
        loop = ast.While(test, [*node.body, onward], node.orelse)
        return [ast.Assign([node.target], first), loop]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], self._sum(before, node.op, node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._sum(node.left, node.op, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return self._asked(node.left, node.ops[0], node.comparators[0]) if len(node.ops) == 1 else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(ast.Not(), ast.Compare(left, [op], [right])) if type(op) in OPPOSITE:
                return self._asked(left, OPPOSITE[type(op)](), right)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse and (other := self._other(node.test)):
            return ast.If(other, node.orelse, node.body)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        other = self._other(node.test)
        return ast.IfExp(other, node.orelse, node.body) if other else node

    def _other(self, test: ast.expr) -> ast.expr | None:
        """The opposite question, where that is the simpler one."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                return operand
            case ast.Compare(left, [ast.LtE() | ast.NotEq() | ast.IsNot() | ast.NotIn() as op], [right]):
                return self._asked(left, OPPOSITE[type(op)](), right)
        return None

    def _asked(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.Compare:
        if type(op) in TURNED:
            left, op, right = right, TURNED[type(op)](), left
        if isinstance(op, ast.Eq | ast.NotEq) and self._key(right) < self._key(left):
            left, right = right, left
        return ast.Compare(left, [op], [right])

    def _sum(self, left: ast.expr, op: ast.operator, right: ast.expr) -> ast.BinOp:
        if isinstance(op, ast.Add | ast.Mult) and self._key(right) < self._key(left):
            left, right = right, left
        return ast.BinOp(left, op, right)

    def _key(self, node: ast.expr) -> str:
        """A text of an expression in which all names of one's own are alike."""
        return re.sub(
            r"[^\W\d]\w*", lambda word: word[0] if word[0] in self.known else "_", ast.unparse(node)
        )
