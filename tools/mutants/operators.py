"""The mutants of a module: one small change each, made in its syntax tree.

| operator | before | after |
| --- | --- | --- |
| compare | `a < b`, `a == b`, `a in b`, `a is b` | `a <= b`, `a != b`, `a not in b`, `a is not b` |
| boolean | `a and b`; `not a` | `a or b`; `a` |
| arithmetic | `a + b`, `a * b`, `a // b`, `a & b`, `-a` | `a - b`, `a / b`, `a / b`, `a \\| b`, `a` |
| constant | `7`; `0.5`; `True` | `8`, `6`; `1.5`, `0.25`; `False` |
| condition | `if a`, `while a`, `x if a else y`, `[… if a]` | `if not a`, … |
| return | `return a` | `return None` |
| drop | `f(a)`, `raise a`, `a.b = c`, `a += b` | `pass` |
| arguments | `f(a, b)` | `f(b, a)` |
| jump | `break` | `continue`, and the reverse |
| slice | `a[b:c]` | `a[b + 1:c]`, `a[b:c - 1]`; `a[1:c]`, `a[b:-1]` where an end was open |
| extreme | `min`, `any` | `max`, `all`, and the reverse |

Left alone, since no test could or should see a change: annotations, docstrings, decorators, texts, `assert`,
`if TYPE_CHECKING`, `__all__`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In},
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift},
    **{ast.RShift: ast.LShift},
}
_EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SKIPPED_FIELDS = frozenset({"annotation", "returns", "decorator_list", "type_params", "ctx", "format_spec"})
MAX_TEXT = 90
"""Characters of each side of a mutant that its name shows."""


class Mutant(NamedTuple):
    """One change of a module. put: a function that makes the change in the module's syntax tree. runs_late: it stands
    in a function's body, so that the module need not be imported anew. first, last: the lines of its statement, or of a
    compound statement's head.
    """

    scope: str
    operator: str
    before: str
    after: str
    put: Callable[[], None]
    runs_late: bool
    first: int
    last: int


class _Spot(NamedTuple):
    """A node of the syntax tree in its surroundings. put: a function that replaces the node. statement: lines of the
    statement around it.
    """

    put: Callable[[ast.AST], None]
    scope: str
    runs_late: bool
    statement: tuple[int, int]


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """Every mutant (small change of the code) that can be made in the module, in the order of its source."""
    return _below(tree, _Spot(lambda _: None, "", False, (1, 1)))


def _below(node: ast.AST, spot: _Spot) -> Iterator[Mutant]:
    """Yield the mutants of all syntax nodes inside `node`."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        late = spot.runs_late or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and field == "body")
        if isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield from _of(child, spot._replace(put=_into(value, index), runs_late=late))
        elif isinstance(value, ast.AST):
            yield from _of(value, spot._replace(put=_attribute(node, field), runs_late=late))


def _into(nodes: list[ast.AST], index: int) -> Callable[[ast.AST], None]:
    """Return the function that replaces an entry of a list of nodes."""
    return lambda new: nodes.__setitem__(index, new)


def _attribute(node: ast.AST, field: str) -> Callable[[ast.AST], None]:
    """Return the function that replaces a field of a node."""
    return lambda new: setattr(node, field, new)


def _of(node: ast.AST, spot: _Spot) -> Iterator[Mutant]:
    """The mutants of the node, then those of the nodes inside it."""
    if _is_left_alone(node):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        spot = spot._replace(scope=f"{spot.scope}.{node.name}".lstrip("."))
    if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
        spot = spot._replace(statement=_lines(node, spot.statement))
    for operator, new in _changes(node):
        replacement = ast.fix_missing_locations(ast.copy_location(new, node))
        before, after = _text(node), _text(replacement)

        def put(replacement: ast.AST = replacement, put: Callable[[ast.AST], None] = spot.put) -> None:
            put(replacement)

        yield Mutant(spot.scope, operator, before, after, put, spot.runs_late, *spot.statement)
    yield from _below(node, spot)


def _is_left_alone(node: ast.AST) -> bool:
    """Whether neither the node nor those inside it are changed."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
    return False


def _lines(node: ast.AST, around: tuple[int, int]) -> tuple[int, int]:
    """First and last line of a simple statement, or of the head of a compound one."""
    first = getattr(node, "lineno", around[0])
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if isinstance(body, list) and body:
        below = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
        head = int(below.lineno)
        return first, max(first, head - 1)
    return first, getattr(node, "end_lineno", first) or first


def _text(node: ast.AST) -> str:
    """The source of a node in one line, cut at `MAX_TEXT`."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The changes of one node: (operator, the node that takes its place)."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                ops = [*node.ops[:index], _COMPARE[type(operator)](), *node.ops[index + 1 :]]
                yield "compare", ast.Compare(node.left, ops, node.comparators)
        case ast.BoolOp():
            yield "boolean", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", node.operand
        case ast.UnaryOp(op=ast.USub()):
            yield "arithmetic", node.operand
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            yield "arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in _ARITHMETIC and not _is_text(node.value):
            yield "arithmetic", ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
            yield "drop", ast.Pass()
        case ast.Constant():
            for value in _values(node.value):
                yield "constant", ast.Constant(value)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", ast.Return(None)
        case ast.Break():
            yield "jump", ast.Continue()
        case ast.Continue():
            yield "jump", ast.Break()
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield "drop", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "drop", ast.Pass()
        case ast.Slice():
            yield from _slices(node)
    yield from _conditions(node)
    yield from _calls(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _values(value: object) -> tuple[bool | int | float, ...]:
    match value:
        case bool():
            return (not value,)
        case int():
            return value + 1, value - 1
        case float():
            return value + 1, value / 2 if value else -1.0
    return ()


def _conditions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.If() if _is_negatable(node.test):
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.While() if _is_negatable(node.test):
            yield "condition", ast.While(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp() if _is_negatable(node.test):
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.comprehension():
            for index, test in enumerate(node.ifs):
                if _is_negatable(test):
                    ifs = [*node.ifs[:index], ast.UnaryOp(ast.Not(), test), *node.ifs[index + 1 :]]
                    yield "condition", ast.comprehension(node.target, node.iter, ifs, node.is_async)


def _is_negatable(test: ast.expr) -> bool:
    """Whether negating this condition is a change that no other operator makes."""
    match test:
        case ast.Constant() | ast.UnaryOp(op=ast.Not()):
            return False
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return False
    return True


def _calls(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node, ast.Call):
        return
    if len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        first, second, *rest = node.args
        same = isinstance(node.func, ast.Name) and node.func.id in _EXTREMES
        if not same and not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
            yield "arguments", ast.Call(node.func, [second, first, *rest], node.keywords)
    if isinstance(node.func, ast.Name) and node.func.id in _EXTREMES:
        yield "extreme", ast.Call(ast.Name(_EXTREMES[node.func.id], ast.Load()), node.args, node.keywords)


def _slices(node: ast.Slice) -> Iterator[tuple[str, ast.AST]]:
    """The changes of a slice: it begins one later, or ends one earlier. A constant end is changed as a constant
    instead.
    """
    if node.lower is None or not _is_number(node.lower):
        lower = _plus(node.lower, 1) if node.lower else ast.Constant(1)
        yield "slice", ast.Slice(lower, node.upper, node.step)
    if node.upper is None or not _is_number(node.upper):
        upper = _plus(node.upper, -1) if node.upper else ast.UnaryOp(ast.USub(), ast.Constant(1))
        yield "slice", ast.Slice(node.lower, upper, node.step)


def _is_number(node: ast.expr) -> bool:
    """Whether the node is a number, also a negative one."""
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(operand, ast.Constant)


def _plus(node: ast.expr, n: int) -> ast.expr:
    """The node for `node + n`."""
    return ast.BinOp(node, ast.Add() if n > 0 else ast.Sub(), ast.Constant(abs(n)))
