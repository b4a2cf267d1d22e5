"""The last method of `scalars`: sympy, whose objects are built from our own tree below, never from text.

sympy decides only what numbers cannot: sums and products with symbolic or infinite limits, and limits. Its `simplify`
knows no bound of time or memory, so only a worker process may call it, which the parent can kill.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.answers.grammar.tree import INFINITY, Node, neg, symbols, walk
from harness.grading.bounds import MAX_SYMPY_NODES
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import NotExact, rational

_announce: Callable[[bool], None] | None = None


def permit(announce: Callable[[bool], None]) -> None:
    """Let this process use sympy; without this call `same_symbolically` returns None for every pair.

    announce: called with False before sympy is imported, and with True afterwards, so that a parent can wait.
    """
    global _announce  # one process, one permission
    _announce = announce


_MAX_LIMIT = 1_000
"""Largest number in the limits of a sum that sympy may evaluate."""

_sympy: Any = None


class NotSymbolic(ValueError):
    """The node has no counterpart in sympy here, or a number in it is too large for sympy."""


def same_symbolically(left: Node, right: Node) -> bool | None:
    """Whether the difference of two expressions is zero; None if sympy cannot tell or must not be asked."""
    if _announce is None:
        return None
    if sum(1 for _ in walk(left)) + sum(1 for _ in walk(right)) > MAX_SYMPY_NODES:
        return None
    if not any(here.op == "fn" and here.args[0] in ("sum", "prod", "lim") for here in (*walk(left), *walk(right))):
        return None
    try:
        sympy = _load()
        difference = _build(left) - _build(right)
        if difference == 0:
            return True
        settled = sympy.simplify(difference.doit())
        if settled == 0:
            return True
        # `is_zero` is None where sympy does not know, which is no proof of a difference.
        return False if settled.is_number and settled.is_zero is False else None
    # sympy raises these for expressions that it does not support; the pair then stays undecided.
    except (NotSymbolic, ValueError, TypeError, NotImplementedError, AttributeError, ArithmeticError, RecursionError):
        return None


def _load() -> Any:
    """Return sympy, imported on first use; the parent is told before and after the import."""
    global _sympy  # one import for all answers of this process
    if _sympy is None:
        # The parent must know beforehand, for the import takes longer than the deadline of an answer.
        assert _announce is not None
        _announce(False)
        import sympy

        _sympy = sympy
        _announce(True)
    return _sympy


def _build(node: Node) -> Any:
    """Return the sympy object of a tree. Raises `NotSymbolic`."""
    sympy = _load()
    op, args = node
    if op == "num":
        return sympy.Rational(args[0].numerator, args[0].denominator)
    if op == "sym":
        # Real, so that sympy simplifies √(x²) to |x| and no branch is left open.
        return sympy.Symbol(args[0], real=True)
    if op == "const":
        constants = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}
        if args[0] not in constants:
            raise NotSymbolic(args[0])
        return constants[args[0]]
    if op == "add":
        return sympy.Add(*(_build(term) for term in args))
    if op == "mul":
        return sympy.Mul(*(_build(factor) for factor in args))
    if op == "neg":
        return -_build(args[0])
    if op == "div":
        return _build(args[0]) / _build(args[1])
    if op == "pow":
        base, exponent = _build(args[0]), _build(args[1])
        # sympy would compute the power before anybody can stop it.
        if exponent.is_number and not (exponent.is_Rational and abs(exponent) < 1_000):
            raise NotSymbolic("a large power")
        return sympy.Pow(base, exponent)
    if op == "root":
        return sympy.Pow(_build(args[1]), 1 / _build(args[0]))
    if op == "fn":
        return _function(args[0], args[1:])
    raise NotSymbolic(op)


def _function(name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the sympy object of a function. Raises `NotSymbolic`."""
    sympy = _load()
    if name in ("sum", "prod"):
        variable, start, end, body = arguments
        for limit in (start, end):
            if not symbols(limit) and limit.op != "const" and limit != neg(INFINITY):
                _check_small(limit)
        index = _build(variable)
        make = sympy.Sum if name == "sum" else sympy.Product
        return make(_build(body), (index, _build(start), _build(end)))
    if name == "lim":
        variable, point, body = arguments
        return sympy.Limit(_build(body), _build(variable), _build(point))
    simple = {
        "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan, "cot": sympy.cot, "sec": sympy.sec, "csc": sympy.csc,
        "arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan, "sinh": sympy.sinh, "cosh": sympy.cosh,
        "tanh": sympy.tanh, "exp": sympy.exp, "ln": sympy.log, "abs": sympy.Abs, "factorial": sympy.factorial,
        "binom": sympy.binomial, "floor": sympy.floor, "ceil": sympy.ceiling, "log": sympy.log,
    }  # fmt: skip
    if name not in simple:
        raise NotSymbolic(name)
    built = [_build(argument) for argument in arguments]
    if name == "log":
        return sympy.log(built[0], built[1] if len(built) > 1 else 10)
    # sympy evaluates the factorial of a number at once, and has no bound for it.
    if name in ("factorial", "binom") and any(part.is_number and abs(part) > 1_000 for part in built):
        raise NotSymbolic("a large factorial")
    return simple[name](*built)


def _check_small(limit: Node) -> None:
    """Raise `NotSymbolic` unless `limit` is a rational number of at most `_MAX_LIMIT`."""
    try:
        value = rational(exact(limit))
    except NotExact as error:
        raise NotSymbolic("limits") from error
    if value is None or abs(value) > _MAX_LIMIT:
        raise NotSymbolic("large limits")
