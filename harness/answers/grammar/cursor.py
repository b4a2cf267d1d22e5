"""Reading tokens one by one, with a bound on depth: the base class of the grammar's rules.

The grammar is a recursive-descent parser: one method for each rule. A method reads the tokens of its rule, moves the
position behind them, and returns their node. There are too many rules for one module, and rules call one another in
both directions, since brackets hold whole answers. So the classes form one chain,
Cursor ← Commands ← Atoms ← Powers ← _AnswerParser. A rule of a later class that an earlier class calls is declared
here.
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


def begins_condition(token: MathToken) -> bool:
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
        """Return the token that comes `ahead` tokens after the next one, without moving; past the last one, a token of
        kind "end".
        """
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else _END

    def take(self) -> MathToken:
        """Return the next token and move past it."""
        token = self.peek()
        self.position += 1
        return token

    def is_op(self, *signs: str) -> bool:
        """Whether the next token is one of `signs`."""
        token = self.tokens[self.position] if self.position < len(self.tokens) else _END
        return token[0] == "op" and token[1] in signs

    def accept(self, *signs: str) -> bool:
        """Move past the next token if it is one of `signs`; return whether it was."""
        # `is_op` is written out here, since this is the most frequent call of the grammar.
        token = self.tokens[self.position] if self.position < len(self.tokens) else _END
        if token[0] == "op" and token[1] in signs:
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Move past `sign`. Raises `Unreadable` if the next token is another one."""
        if not self.accept(sign):
            raise Unreadable(f"{sign!r} expected, {self.peek().text!r} found")

    def enter_rule(self) -> None:
        """Count one more rule inside another; the rule subtracts 1 when it ends.

        Raises `Unreadable` past `MAX_DEPTH`.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")

    def starts_atom(self) -> bool:
        """Whether the next token can begin a factor. Two factors side by side are a product, as in `2x`."""
        token = self.peek()
        if token.kind in ("num", "sym", "cmd", "begin"):
            return True
        if token.kind == "text":
            return not begins_condition(token)
        if token.kind == "op":
            if token.text == "|":
                return self.bars == 0 and self.peek(1).kind in ("num", "sym", "cmd") and self.has_closing_bar()
            return token.text in ("(", "[", "{", "lset", "lfloor", "lceil", "∅", "…")
        return False

    def has_closing_bar(self) -> bool:
        """Whether the bar at the position may be closed: another bar follows fewer than 40 tokens later."""
        near = self.tokens[self.position + 1 : self.position + 40]
        return any(token.kind == "op" and token.text == "|" for token in near)

    def answer(self) -> Node:
        """Parse everything up to the closing bracket or the end: items between commas; defined in `parse`."""
        raise NotImplementedError

    def setwise(self) -> Node:
        """Parse one side of an equation or inequality: sums joined by ∪, ∩ and ∖; defined in `parse`."""
        raise NotImplementedError

    def product(self) -> Node:
        """Parse a term of a sum; defined in `parse`."""
        raise NotImplementedError

    def signed_power(self) -> Node:
        """Parse a factor with its sign; defined in `parse`."""
        raise NotImplementedError

    def power(self) -> Node:
        """Parse a factor with its exponents, indices, units and marks; defined in `powers`."""
        raise NotImplementedError

    def postfix(self, node: Node) -> Node:
        """Return `node` with the exponents, indices, units and marks that follow; defined in `powers`."""
        raise NotImplementedError

    def atom(self) -> Node:
        """Parse a number, a letter, words, a command, or something in brackets; defined in `atoms`."""
        raise NotImplementedError

    def group(self) -> Node:
        """Parse the inside of LaTeX's braces, with the closing one; defined in `atoms`."""
        raise NotImplementedError


def times(left: Node, right: Node) -> Node:
    """Return the product of two nodes; a product on the left takes `right` as one more factor."""
    if left.op == "mul":
        return Node("mul", (*left.args, right))
    return Node("mul", (left, right))
