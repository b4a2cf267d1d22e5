r"""The grammar: tokens of an answer to a tree, by recursive descent, bounded in depth and length.

answer    = item { ("," | ";" | "and" | "or") item }
item      = [label ":"] chain
chain     = setwise { relation setwise }
setwise   = sum { ("∪" | "∩" | "∖") sum }
sum       = ["+" | "-" | "±"] product { ("+" | "-" | "±") product }
product   = power { ["*" | "/" | "mod"] power }            side by side is a product
power     = atom { "^" … | "_" … | "!" | "°" | "%" | "'" | unit }

Long: the rules of one grammar call one another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.answers.grammar.cursor import CLOSING, OPENING, qualifies, times
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.powers import Powers
from harness.answers.grammar.source import plain_source
from harness.answers.grammar.tokens import Token, tokenize
from harness.answers.grammar.tree import SETS, Node, names, neg, num, sym, symbols
from harness.answers.grammar.units import smaller_unit

_OTHERWISE = re.compile(r"(?i)\b(?:else|otherwise|elif)\b|否则")
"""Words that make `1 if n > 0 else 0` two values and no one."""

_SIGNS = {"∧": "and", "∨": "or"}


def parse(source: str, *, list_commas: bool = False) -> Node:
    """The tree of an answer. Raises `Unreadable` when it is no mathematics of this grammar or breaks a bound."""
    return _parse(source, list_commas)


@lru_cache(maxsize=4_096)
def _parse(source: str, list_commas: bool) -> Node:
    if len(source) > MAX_ANSWER_CHARS:
        raise Unreadable("too long")
    if source.strip() == "{}":
        return Node("set", ())
    tokens = tokenize(plain_source(source), list_commas=list_commas)
    while tokens and (tokens[-1].text in (",", ";", ":", "row") and tokens[-1].kind == "op"):
        tokens.pop()
    if not tokens:
        raise Unreadable("empty")
    tokens = _in_rows(tokens)
    parser = _Parser(tokens)
    node = parser.answer()
    if parser.at < len(tokens):
        raise Unreadable(f"unexpected {parser.peek().text!r}")
    return node


_ALIGNED = names("aligned align gathered split eqnarray alignedat")


def _in_rows(tokens: list[Token]) -> list[Token]:
    r"""Lines outside of an environment as items, `\left\{` before one without its closing brace as cases."""
    if not any(token.text in ("row", "&") for token in tokens):
        return tokens
    begins = [at for at, token in enumerate(tokens) if token.kind == "begin"]
    if not begins:
        return [Token("op", ",", None, token.spaced) if token.text == "row" else token for token in tokens]
    if len(begins) > 1:
        return tokens
    at, name = begins[0], tokens[begins[0]].text
    opened = at > 0 and tokens[at - 1].text == "lset" and not any(token.text == "rset" for token in tokens)
    if name in _ALIGNED:
        tokens = [token for token in tokens if token.text != "&"]
    if not opened:
        return tokens
    named = "cases" if name == "array" else name
    tokens = [token._replace(text=named) if token.kind in ("begin", "end") else token for token in tokens]
    return tokens[: at - 1] + tokens[at:]


class _Parser(Powers):
    """The rules from a whole answer down to a factor."""

    def answer(self) -> Node:
        """Items between commas; inequalities joined by "and" hold together."""
        start = self.at
        node = self.items()
        pair = node.args if node.op == "list" and len(node.args) == 2 else None
        if pair is not None and self.connectives(start) == {"and"} and (whole := _compound(*pair)) is not None:
            return whole  # 1 hour and 20 minutes
        if node.op != "list":
            return node
        if (formula := self.formula_of_logic(node, start)) is not None:
            return formula
        if all(_is_inequality(item) for item in node.args) and self.are_together(node, start):
            return Node("inter", node.args)
        return Node("either", node.args) if self.is_alternative(node, start) else node

    def formula_of_logic(self, node: Node, start: int) -> Node | None:
        r"""`p \lor q` is one proposition; `x < 1 \lor x > 3` and `1 \lor 3` are several answers: None."""
        signs = tuple(token.text for token in self.tokens[start : self.at] if token.text in _SIGNS)
        if not signs or not any(item.op not in ("rel", "member") and symbols(item) for item in node.args):
            return None
        if len(signs) != len(node.args) - 1:
            raise Unreadable("a formula of logic among others")
        return Node("rel", (node.args, signs))

    def are_together(self, node: Node, start: int) -> bool:
        """Inequalities that all hold: joined by "and", or by commas where they are of different names."""
        said = self.connectives(start)
        return said == {"and"} or (not said and not _of_one_name(node.args))

    def is_alternative(self, node: Node, start: int) -> bool:
        """`a = 0 or b = 0`: statements of which one holds. Several values of one name are a list."""
        if self.connectives(start) != {"or"} or any(token.text in ",;" for token in self.tokens[start : self.at]):
            return False
        if all(_is_equation(item) for item in node.args):
            return len({name for item in node.args for name in _names(item)}) > 1
        return all(_is_equation(item) or _is_inequality(item) for item in node.args) and not _of_one_name(node.args)

    def connectives(self, start: int) -> set[str]:
        """The words "and" and "or" read since `start`; signs count as the words that they stand for."""
        return {_SIGNS.get(token.text, token.text) for token in self.tokens[start : self.at] if token.kind == "sep"}

    def items(self) -> Node:
        groups: list[Node] = []
        items: list[Node] = []
        while True:
            while self.peek().kind == "sep" or self.is_op(",", ";"):
                self.at += 1
            if (
                self.at >= len(self.tokens)
                or self.is_op(")", "]", "}", "rset", "row", "&")
                or self.peek().kind == "end"
            ):
                break
            items.append(self.item())
            if self.peek().kind == "sep" or self.is_op(","):
                continue
            if self.is_op(";"):
                groups.append(items[0] if len(items) == 1 else Node("list", tuple(items)))
                items = []
                continue
            break
        if groups:
            if items:
                groups.append(items[0] if len(items) == 1 else Node("list", tuple(items)))
            items = groups
        if not items:
            raise Unreadable("empty")
        return items[0] if len(items) == 1 else Node("list", tuple(items))

    def item(self) -> Node:
        """One answer, without its label in words and the qualification behind it."""
        self.deeper()
        if self.peek().kind == "rel" and self.peek().text in "=≈∼":
            self.at += 1  # "= 5", "≈ 5"
        label = self.take() if self.is_named() else None
        node = self.chain()
        if label is not None and node.op != "rel":
            node = Node("rel", ((Node("text", (label.text.rstrip(" :"),)), node), ("=",)))
        if self.is_op(":"):
            parts = [node]
            while self.accept(":"):
                if not self.starts_atom() and not self.is_op("-", "+"):
                    break
                parts.append(self.chain())
            node = parts[0] if len(parts) == 1 else self.colon(parts)
        self.skip_qualifier()
        self.depth -= 1
        return node

    def is_named(self) -> bool:
        r"""`\text{boys: } 5`: words that end in a colon name the value behind them."""
        token, after = self.peek(), self.peek(1)
        name = token.text.rstrip(" :")
        return (
            token.kind == "text" and token.text.endswith(":") and len(name) > 1 and after.kind in ("num", "sym", "cmd")
        )

    def skip_qualifier(self) -> None:
        token = self.peek()
        if qualifies(token):
            if self.is_one_of_several():
                raise Unreadable("a choice between two values")
            brackets = 0
            while self.at < len(self.tokens):
                if brackets == 0:
                    if self.is_op(",", ";") and (self.peek(1).kind == "sep" or self.labelled(self.at + 1)):
                        return
                    if self.peek().kind == "sep" and self.labelled(self.at + 1):
                        return
                    if self.is_op(*CLOSING, "row", "&") or self.peek().kind == "end":
                        return
                brackets += self.is_op(*OPENING) - self.is_op(*CLOSING)
                self.at += 1

    def is_one_of_several(self) -> bool:
        """`5 if n > 0, 8 if n < 0`, `1 if n > 0 else 0`, `5 with 3 left over`: the condition leads to another value."""
        if self.peek().text.strip().lower() == "with" and self.peek(1).kind == "num":
            return True
        comma = None
        for place, token in enumerate(self.tokens[self.at + 1 :]):
            if token.kind == "text" and _OTHERWISE.search(token.text):
                return True
            if token.kind == "sep" or token.text in (",", ";"):
                comma = place
            elif (
                comma is not None and place > comma + 1 and qualifies(token) and not self.labelled(self.at + comma + 2)
            ):
                return True
        return False

    def labelled(self, place: int) -> bool:
        """A new "f(x) = …" begins at `place`, close by."""
        return any(token.kind == "rel" and token.text == "=" for token in self.tokens[place : place + 6])

    def colon(self, parts: list[Node]) -> Node:
        if parts[0].op == "text" or (parts[0].op == "sym" and len(parts) == 2 and parts[1].op in ("rel",)):
            return Node("rel", ((parts[0], parts[-1]), ("=",)))
        last = parts[-1]
        if len(parts) == 2 and parts[1].op == "rel":  # 11:21 = V1:V2 written the other way round
            operands, signs = parts[1].args
            return Node("rel", ((Node("ratio", (parts[0], operands[0])), *operands[1:]), signs))
        half = ""
        if last.op == "quantity" and last.args[1] in ("am", "pm"):
            half, parts = last.args[1], [*parts[:-1], last.args[0]]
        clock = [part.args[0] for part in parts if part.op == "num" and part.args[0].denominator == 1]
        if half and len(clock) == len(parts) and len(parts) <= 3:
            return Node("time", (tuple(parts), half))
        if parts[0].op == "rel":  # V1:V2 = 11:21
            operands, signs = parts[0].args
            return Node("rel", ((*operands[:-1], Node("ratio", (operands[-1], *parts[1:]))), signs))
        return Node("ratio", tuple(parts))

    # --- relations and sets ---
    def chain(self) -> Node:
        operands = [self.classwise("")]
        signs: list[str] = []
        while self.peek().kind == "rel":
            sign = self.take().text
            signs.append(sign)
            if self.at >= len(self.tokens):
                raise Unreadable("a relation without a right side")
            operands.append(self.ratio_or_setwise() if sign in "=≈" else self.classwise(sign))
        if not signs:
            return operands[0]
        if len(signs) == 1 and signs[0] == "∈":
            return Node("member", (operands[0], operands[1]))
        return Node("rel", (tuple(operands), tuple(signs)))

    def classwise(self, sign: str) -> Node:
        r"""A side with its modulus: `5 (mod 7)`, `5 \pmod 7`; `5 \mod 7` behind ≡ or with nothing to compute."""
        node = self.setwise()
        bracketed = self.is_op("(") and self.peek(1).kind == "op" and self.peek(1).text in ("mod", "pmod")
        if bracketed or self.is_op("pmod"):
            self.at += 1 + bracketed
            modulus = self.signed_power()
            if bracketed:
                self.expect(")")
            return Node("congruence", (node, modulus))
        if node.op == "fn" and node.args[0] == "mod":
            _, value, modulus = node.args
            reduced = value.op == modulus.op == "num" and 0 <= value.args[0] < modulus.args[0]
            if sign == "≡" or reduced:
                return Node("congruence", (value, modulus))
        return node

    def ratio_or_setwise(self) -> Node:
        node = self.classwise("=")
        if self.is_op(":") and self.depth < 6:
            parts = [node]
            while self.accept(":"):
                parts.append(self.setwise())
            return self.colon(parts)
        return node

    def setwise(self) -> Node:
        node = self.sum()
        while True:
            if self.accept("∪") or self.written_union():
                right = self.sum()
                node = Node("union", (*node.args, right) if node.op == "union" else (node, right))
            elif self.accept("∩"):
                node = Node("inter", (node, self.sum()))
            elif self.accept("∖"):
                node = Node("minus", (node, self.sum()))
            else:
                return node

    def written_union(self) -> bool:
        """The letter U between two intervals."""
        token, before, after = self.peek(), self.peek(-1), self.peek(1)
        if (
            token.kind == "sym"
            and token.text in "Uu"
            and before.text in (")", "]", "rset")
            and after.text in ("(", "[", "lset")
        ):
            self.at += 1
            return True
        return False

    # --- sums and products ---
    def sum(self) -> Node:
        self.deeper()
        terms: list[Node] = []
        if self.accept("-"):
            terms.append(_opposite(self.product()))
        elif self.accept("±"):
            terms.append(Node("pm", (num(0), self.product())))
        elif self.accept("∓"):
            terms.append(Node("mp", (num(0), self.product())))
        else:
            self.accept("+")
            terms.append(self.product())
        while self.peek().kind == "op":
            if self.accept("+"):
                terms.append(self.product())
            elif self.accept("-"):
                right = self.product()
                if (
                    right.op in SETS
                    or terms[-1].op in SETS
                    or (terms[-1] == sym("R") and right.op in ("bracket", "tuple"))
                ):
                    terms[-1] = Node("minus", (terms[-1], right))
                else:
                    terms.append(neg(right))
            elif self.is_op("±", "∓"):
                op = "pm" if self.take().text == "±" else "mp"
                left = terms[0] if len(terms) == 1 else Node("add", tuple(terms))
                terms = [Node(op, (left, self.product()))]
            else:
                break
        self.depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def product(self) -> Node:
        node = self.signed_power()
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.at += 1
                node = _multiplied(node, self.signed_power())
            elif token.kind == "op" and token.text == "/":
                self.at += 1
                right = self.signed_power()
                if right.op in ("pct", "quantity") and node.op == "num":
                    node = Node(right.op, (Node("div", (node, right.args[0])), *right.args[1:]))  # 1/2 %, 1/2 hour
                else:
                    node = Node("div", (node, right))
            elif token.kind == "op" and token.text == "mod":
                self.at += 1
                node = Node("fn", ("mod", node, self.signed_power()))
            elif token.kind == "op" and token.text == "(" and self.peek(1).text in ("mod", "pmod"):
                return node
            elif token.kind == "op" and token.text == "(" and self.integer_condition():
                continue
            elif self.starts_atom():
                before = self.peek(-1)
                if token.kind == "num" and token.spaced and before.text == ")" and node.op == "num":
                    raise Unreadable("a number in brackets before another")  # (1) 5
                if token.kind == "num" and before.kind == "num" and not (token.spaced and _ends_in_power(node)):
                    node = self.spaced_mixed(node)
                    continue
                node = self.juxtaposed(node, self.power(), mixed=before.kind == "num" and token.text == "frac")
            else:
                return node

    def integer_condition(self) -> bool:
        """Skip "(k ∈ Z)"."""
        if self.peek(1).kind == "sym" and self.peek(2).text == "∈":
            while self.at < len(self.tokens) and not self.accept(")"):
                self.at += 1
            return True
        return False

    def signed_power(self) -> Node:
        if self.accept("-"):
            return _opposite(self.signed_power_of())
        if self.accept("+"):
            return self.signed_power_of()
        if self.is_op("±", "∓"):
            op = "pm" if self.take().text == "±" else "mp"
            return Node(op, (num(0), self.power()))
        return self.power()

    def signed_power_of(self) -> Node:
        self.deeper()
        node = self.signed_power()
        self.depth -= 1
        return node

    def spaced_mixed(self, whole: Node) -> Node:
        """`7 3/11`: an integer, a space, a proper fraction."""
        top = self.take()
        if (
            whole.op == "num" and whole.args[1] == -1 and top.spaced and top.value is not None
            and self.is_op("/") and self.peek(1).kind == "num" and not self.peek().spaced
        ):  # fmt: skip
            self.at += 1
            bottom = self.take()
            if bottom.value and top.value < bottom.value and top.value.denominator == bottom.value.denominator == 1:
                return num(whole.args[0] + top.value / bottom.value)
        raise Unreadable("two numbers side by side")

    def juxtaposed(self, left: Node, right: Node, *, mixed: bool) -> Node:
        """A product; an integer literal before a proper fraction is a mixed number. A unit belongs to the whole."""
        if (together := _compound(left, right)) is not None:
            return together
        if right.op == "quantity" or (right.op in ("pct", "deg") and (mixed or right.op == "deg")):
            inner = self.juxtaposed(left, right.args[0], mixed=mixed)
            return Node(right.op, (inner, *right.args[1:]))
        if mixed and right.op == "div" and left.op == "num" and left.args[1] == -1:
            top, bottom = right.args
            if (
                top.op == bottom.op == "num"
                and top.args[1] == bottom.args[1] == -1
                and 0 < top.args[0] < bottom.args[0]
            ):
                return num(left.args[0] + top.args[0] / bottom.args[0])
        return times(left, right)


def _multiplied(left: Node, right: Node) -> Node:
    """A product whose last factor has a unit has it as a whole: the 5 km of `5 × 10^3 m`."""
    signed = ("quantity", "pct", "deg")
    if right.op in signed and left.op not in signed:
        return Node(right.op, (times(left, right.args[0]), *right.args[1:]))
    return times(left, right)


def _compound(left: Node, right: Node) -> Node | None:
    """`1 hour 20 minutes`, `5 ft 3 in`, `30° 15′` as one quantity; None when the two are no such pair."""
    if left.op == right.op == "quantity":
        ratio = smaller_unit(left.args[1], right.args[1])
        if ratio is not None:
            return Node("quantity", (Node("add", (times(num(ratio), left.args[0]), right.args[0])), right.args[1]))
    if left.op == "deg" and right.op == "fn" and right.args[0] == "prime":
        inner, parts = right.args[1], num(60)
        if inner.op == "fn" and inner.args[0] == "prime":
            inner, parts = inner.args[1], num(3600)
        return Node("deg", (Node("add", (left.args[0], Node("div", (inner, parts)))),))
    return None


def _ends_in_power(node: Node) -> bool:
    """`2^6 3^5` is a product, `6 5` is none."""
    return (node.args[-1] if node.op == "mul" else node).op == "pow"


def _opposite(node: Node) -> Node:
    """The opposite of a quantity is a quantity."""
    return Node(node.op, (neg(node.args[0]), *node.args[1:])) if node.op in ("quantity", "pct", "deg") else neg(node)


def _names(statement: Node) -> set[str]:
    """Letters of an equation or inequality, or of what is a member of a set."""
    sides = statement.args[:1] if statement.op == "member" else statement.args[0]
    return {name for side in sides for name in symbols(side)}


def _of_one_name(statements: Sequence[Node]) -> bool:
    """They say something of one letter, which each of them has."""
    return bool(set.intersection(*map(_names, statements)))


def _is_equation(node: Node) -> bool:
    return node.op == "rel" and all(sign == "=" for sign in node.args[1])


def _is_inequality(node: Node) -> bool:
    return node.op == "member" or (
        node.op == "rel" and any(sign in ("<", ">", "<=", ">=", "!=") for sign in node.args[1])
    )
