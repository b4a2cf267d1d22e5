r"""A Pratt parser: `expression(power)` reads an operand, and the operators after it that bind at least that tightly.

    power      operators                                          rule
    SIDE       ∪ ∩ ∖                                              one side of a relation, such as A = B
    SUM        + - ± ∓                                            a sign before the first term holds for the term
    PRODUCT    * / mod, or nothing between two factors            from the left
    POWER      ^ _ ! ° % ', words, arguments of a function        what directly follows an operand

`operators` defines the power and the rule of each operator. The rule is a function of the parser and the left operand;
it reads the operator and what follows. `operands` has the rules for what an expression begins with, and `parse` the
rules for what is above expressions: relations, conditions, lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from reasoning_answers.bounds import MAX_DEPTH
from reasoning_answers.grammar.numerals import Unreadable
from reasoning_answers.grammar.tokens import MathToken
from reasoning_answers.grammar.tree import Node, neg, num, sym

_END = MathToken("end", "")
_CONDITION = re.compile(r"(?i)(?:for|where|if|when|with|such\s+that|as|given|provided|on|over)\b|其中|为任意|当")
"""Words that begin a condition or a remark after an answer."""

OPENING = ("(", "[", "{", "lset")
CLOSING = (")", "]", "}", "rset")
"""Kinds of tokens that open and that close a bracket."""

SIDE, SUM, PRODUCT, POWER = range(4)
"""The binding powers of operators, the weakest first."""

WITH_UNIT = ("quantity", "pct", "deg")
"""Kinds of nodes for a value and the unit, percent or degree sign directly after it, which is the outermost node."""

_DEPTH_OF_BRACKET = 3
"""Levels that a bracket adds to the depth: Python allows about a thousand frames, and a bracket takes ten."""

_STARTS = frozenset(("num", "sym", "cmd", "begin", "(", "[", "{", "lset", "lfloor", "lceil", "∅", "…"))
"""Tokens that can begin a factor."""


_MAX_TOKENS_TO_BAR = 39
"""A bar opens an absolute value only if another bar follows within this many tokens."""


class Operator(NamedTuple):
    """An operator: how tightly it binds, and the rule that reads it and what follows.

    The rule receives the parser, positioned before the operator, and the left operand; it returns the node of the
    whole.
    """

    power: int
    rule: Callable[[Parser, Node], Node]


class Grammar(NamedTuple):
    """The rules. operands: kind of a token → rule for the operand that it begins. operator: returns the operator that
    follows an operand, or None. answer: rule for a whole answer, such as the inside of a bracket.
    """

    operands: Mapping[str, Callable[[Parser], Node]]
    operator: Callable[[Parser, Node], Operator | None]
    answer: Callable[[Parser], Node]


class Parser:
    """The tokens of an answer, the position in them, and what the rules around the position have opened.

    depth: number of nested rules. bars: number of open `|…|`, inside which a bar closes and never opens. rows: whether
    a square bracket is open whose items may be rows of a matrix. No rule catches `Unreadable`: it ends the parse, so a
    rule that raises restores nothing.
    """

    def __init__(self, tokens: list[MathToken], grammar: Grammar) -> None:
        self.tokens, self.grammar = tokens, grammar
        self.position = self.depth = self.bars = 0
        self.rows = False

    def peek(self, ahead: int = 0) -> MathToken:
        """Return a token without moving: 0 is the next one, -1 the one just taken; past the last, a token of kind
        "end".
        """
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def take(self) -> MathToken:
        """Return the next token and move past it."""
        token = self.peek()
        self.position += 1
        return token

    def accept(self, *kinds: str) -> str:
        """Move past the next token if it is of one of `kinds`; return its kind, or "" if it is of none of them."""
        kind = self.peek().kind
        if kind not in kinds:
            return ""
        self.position += 1
        return kind

    def expect(self, *kinds: str) -> None:
        """Move past the next token. Raises `Unreadable` if it is of none of `kinds`."""
        if not self.accept(*kinds):
            raise Unreadable(f"{kinds[0]!r} expected, {self.peek().text!r} found")

    def enter(self, levels: int = 1) -> None:
        """Add levels to the depth; the rule subtracts them when it ends. Raises `Unreadable` past `MAX_DEPTH`."""
        self.depth += levels
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")

    def inside(self, *closing: str, bars: int = 0, rows: bool = False) -> Node:
        """Parse the answer inside a bracket, and the token that closes it, of one of the kinds `closing`.

        bars, rows: values of the attributes of these names while the inside is parsed. Raises `Unreadable`.
        """
        outside = self.bars, self.rows
        self.bars, self.rows = bars, rows
        self.enter(_DEPTH_OF_BRACKET)
        node = self.grammar.answer(self)
        self.depth -= _DEPTH_OF_BRACKET
        self.bars, self.rows = outside
        self.expect(*closing)
        return node

    def expression(self, power: int = SIDE) -> Node:
        """Parse an operand, perhaps after a sign, and the operators after it that bind at least that tightly."""
        self.enter()
        sign = self.accept("-", "+", "±", "∓")
        if not sign:
            node = self.operand()
        else:
            node = self.expression(PRODUCT if power <= SUM else POWER)
            if sign == "-":
                node = negate(node)
            elif sign != "+":
                node = Node("pm" if sign == "±" else "mp", (num(0), node))
        operator = self.grammar.operator(self, node)
        while operator is not None and operator.power >= power:
            node = operator.rule(self, node)
            operator = self.grammar.operator(self, node)
        self.depth -= 1
        return node

    def operand(self) -> Node:
        """Parse a number, a letter, words, a command, or something in brackets."""
        token = self.take()
        rule = self.grammar.operands.get(token.kind)
        if rule is None:
            raise Unreadable(f"unexpected {token.text!r}")
        return rule(self)

    def starts_operand(self, ahead: int = 0) -> bool:
        """Whether a token can begin a factor. Two adjacent factors form a product, as in `2x`."""
        token = self.peek(ahead)
        if token.kind == "|":
            behind = self.position + ahead + 1
            return (
                not self.bars
                and self.peek(ahead + 1).kind in ("num", "sym", "cmd")
                and any(near.kind == "|" for near in self.tokens[behind : behind + _MAX_TOKENS_TO_BAR])
            )
        return token.kind in _STARTS or (token.kind == "text" and not begins_condition(token))

    def starts_value(self, ahead: int = 0) -> bool:
        """Whether a factor can begin at a token, perhaps with a sign."""
        return self.starts_operand(ahead) or self.peek(ahead).kind in ("-", "+")

    def argument(self, whole_number: bool = False) -> Node:
        r"""Parse the argument of a command: a group in braces, or the next token.

        Without braces, LaTeX takes only the first digit of a number, as in `\frac12`. whole_number: take all digits,
        which is what writers mean by `x^10`.
        """
        self.enter()
        token = self.peek()
        if sign := self.accept("-", "+"):
            node = self.argument(whole_number)
            node = neg(node) if sign == "-" else node
        elif self.accept("*", "text"):
            node = Node("text", (token.text,)) if len(token.text) > 1 else sym(token.text)  # sym("*") of the set ℤ^*
        elif token.kind == "num" and not whole_number and len(token.text) > 1 and token.text.isdigit():
            digit, further = token.text[0], token.text[1:]
            self.tokens[self.position] = MathToken("num", further, Fraction(int(further)))  # what is left of the number
            node = num(int(digit))
        else:
            node = self.operand()
            while whole_number and token.kind != "{" and self.accept("!"):
                node = Node("fn", ("factorial", node))
        self.depth -= 1
        return node

    def scripts(self) -> tuple[Node | None, Node | None]:
        """Parse the subscript and the superscript after a command, in either order; None for a missing one."""
        below: Node | None = None
        above: Node | None = None
        while sign := self.accept("_", "^"):
            if sign == "_":
                below = self.argument(whole_number=True)
            else:
                above = self.argument(whole_number=True)
        return below, above

    def mark(self) -> Node | None:
        """Parse a degree sign or primes in an exponent; return None without moving if neither comes next.

        Two or more primes are read as one.
        """
        sign = self.accept("°", "'")
        while sign == "'" and self.accept("'"):
            pass
        return Node("mark", (sign,)) if sign else None


def begins_condition(token: MathToken) -> bool:
    """Whether words begin a condition or a remark after the answer: "for all x", not "forty"."""
    return token.kind == "text" and _CONDITION.match(token.text) is not None


def negate(node: Node) -> Node:
    """Return -node; the minus goes inside a unit, percent or degree sign."""
    return Node(node.op, (neg(node.args[0]), *node.args[1:])) if node.op in WITH_UNIT else neg(node)
