"""Reading tokens one by one, with a bound on depth: the base class of the grammar's rules.

The rules stand in four modules because of their number, and call one another in both directions (brackets hold whole
answers). So the classes form one chain, Cursor ← Commands ← Atoms ← Powers ← _AnswerParser, and the rules that a lower
class calls in a higher one are declared here.
"""

from __future__ import annotations

import re

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.tokens import MathToken
from harness.answers.grammar.tree import Node

_END = MathToken("end", "")
_QUALIFIER = re.compile(r"(?i)(?:for|where|if|when|with|such\s+that|as|given|provided|on|over)\b|其中|为任意|当")
OPENING = ("(", "[", "{", "lset")
CLOSING = (")", "]", "}", "rset")


def qualifies(token: MathToken) -> bool:
    """Whether words begin a condition or a remark behind the answer: "for all x", not "forty"."""
    return token.kind == "text" and _QUALIFIER.match(token.text) is not None


class Cursor:
    """The tokens of an answer, the position in them, and what the rules around the position have opened.

    position: index of the next token. depth: rules inside one another, at most `MAX_DEPTH`. bars: open `|…|`, within
    which a bar closes and never opens. rows: a square bracket is open, whose items may be rows of a matrix. integrals:
    open integrals, in which a d before a letter ends a product.
    """

    def __init__(self, tokens: list[MathToken]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0
        self.bars = 0
        self.rows = False
        self.integrals = 0

    def peek(self, ahead: int = 0) -> MathToken:
        """The token `ahead` of the next one, which stays; behind the last one a token of kind "end"."""
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def take(self) -> MathToken:
        """The next token, passed."""
        token = self.peek()
        self.position += 1
        return token

    def is_op(self, *signs: str) -> bool:
        """Whether one of `signs` comes next."""
        token = self.peek()
        return token.kind == "op" and token.text in signs

    def accept(self, *signs: str) -> bool:
        """Pass one of `signs` if it comes next; whether it did."""
        if self.is_op(*signs):
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Pass `sign`. Raises `Unreadable` if something else comes next."""
        if not self.accept(sign):
            raise Unreadable(f"{sign!r} expected, {self.peek().text!r} found")

    def deeper(self) -> None:
        """Count one more open rule; the rule subtracts it at its end. Raises `Unreadable` beyond `MAX_DEPTH`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")

    def starts_atom(self) -> bool:
        """Whether the next token begins a factor, so that it multiplies what stands before it without a sign."""
        token = self.peek()
        if token.kind in ("num", "sym", "cmd", "begin"):
            return True
        if token.kind == "text":
            return not qualifies(token)
        if token.kind == "op":
            if token.text == "|":
                return self.bars == 0 and self.peek(1).kind in ("num", "sym", "cmd") and self.closing_bar()
            return token.text in ("(", "[", "{", "lset", "lfloor", "lceil", "∅", "…")
        return False

    def closing_bar(self) -> bool:
        """Whether another bar follows within 40 tokens."""
        near = self.tokens[self.position + 1 : self.position + 40]
        return any(token.kind == "op" and token.text == "|" for token in near)

    def answer(self) -> Node:
        """Everything up to the closing bracket or the end: items between commas. In `parse`."""
        raise NotImplementedError

    def setwise(self) -> Node:
        """A side of a relation: sums joined by ∪, ∩ and ∖. In `parse`."""
        raise NotImplementedError

    def product(self) -> Node:
        """A term of a sum. In `parse`."""
        raise NotImplementedError

    def signed_power(self) -> Node:
        """A factor with its sign. In `parse`."""
        raise NotImplementedError

    def power(self) -> Node:
        """A factor with its exponents, indices, units and marks. In `powers`."""
        raise NotImplementedError

    def postfix(self, node: Node) -> Node:
        """`node` with the exponents, indices, units and marks that follow. In `powers`."""
        raise NotImplementedError

    def atom(self) -> Node:
        """A number, a letter, words, a command, or something in brackets. In `atoms`."""
        raise NotImplementedError

    def group(self) -> Node:
        """The inside of LaTeX's braces, with the closing one. In `atoms`."""
        raise NotImplementedError


def times(left: Node, right: Node) -> Node:
    """The product of two nodes; a product on the left takes `right` as one more factor."""
    if left.op == "mul":
        return Node("mul", (*left.args, right))
    return Node("mul", (left, right))
