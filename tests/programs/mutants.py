"""Small changes of a right function, of which its tests see some."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.Mult, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def mutants(code: str, function: str) -> Iterator[str]:
    """Programs that differ from `code` in one place inside the last definition of `function`, or in its whole body."""
    tree = ast.parse(code)
    index = max(i for i, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef) and node.name == function)
    for number in range(sum(1 for _ in ast.walk(tree.body[index]))):
        changed = copy.deepcopy(tree)
        node = [*ast.walk(changed.body[index])][number]
        if _change(node):
            yield ast.unparse(ast.fix_missing_locations(changed))

    for body in ("return None", "return 0", "raise ValueError"):
        changed = copy.deepcopy(tree)
        definition = changed.body[index]
        assert isinstance(definition, ast.FunctionDef)
        definition.body = ast.parse(f"def f():\n    {body}").body[0].body  # type: ignore[attr-defined]
        yield ast.unparse(ast.fix_missing_locations(changed))


def _change(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        node.op = _OPERATORS[type(node.op)]()  # type: ignore[assignment]
        return True
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
        node.ops[0] = _OPERATORS[type(node.ops[0])]()  # type: ignore[assignment]
        return True
    if isinstance(node, ast.Return) and node.value is not None:
        node.value = ast.Tuple([node.value], ast.Load())
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return True
    return False
