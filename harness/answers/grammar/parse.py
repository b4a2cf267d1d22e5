r"""The grammar: from the tokens of an answer to its tree, by recursive descent, bounded in depth and length.

answer    = item { ("," | ";" | "and" | "or") item }
item      = [label ":"] chain
chain     = setwise { relation setwise }
setwise   = sum { ("∪" | "∩" | "∖") sum }
sum       = ["+" | "-" | "±"] product { ("+" | "-" | "±") product }
product   = power { ["*" | "/" | "mod"] power }            side by side is a product
power     = atom { "^" … | "_" … | "!" | "°" | "%" | "'" | unit }
atom      = number | letter | words | command | bracket

Mathematical notation is ambiguous; what the rules decide beyond this grammar:

- commas without brackets are a list, "and" joins conditions, "or" joins statements of which any holds (`answer`);
- `3\frac12` and `7 3/11` are mixed numbers, `3 \cdot \frac12` is a product (`join_factors`, `spaced_mixed`);
- a unit, percent or degree sign belongs to the whole product before it, not to its last factor;
- a condition behind the answer stays beside it, unless it says nothing ("for all x", `with_condition`).

Long: the rules of one grammar call one another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.answers.grammar.atoms import is_name, name_in
from harness.answers.grammar.characters import plain_source
from harness.answers.grammar.cursor import CLOSING, OPENING, begins_condition, times
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.powers import Powers
from harness.answers.grammar.remarks import APPROXIMATE, says_nothing, words_of_remark
from harness.answers.grammar.spellings import usual_spelling
from harness.answers.grammar.tokens import MathToken, tokenize
from harness.answers.grammar.tree import SETS, Node, is_scalar, names, neg, num, sym, symbols
from harness.answers.grammar.units import smaller_unit

_OTHERWISE = re.compile(r"(?i)\b(?:else|otherwise|elif)\b|否则")
"""Words before a second value: `1 if n > 0 else 0` is two answers, not one."""

_DIGITS = re.compile(r"[0-9]{1,400}")
"""A natural number, which most answers are; no rule reads it otherwise."""

_CONNECTIVES = {"∧": "and", "∨": "or", "且": "and"}
"""Signs of logic, and 且, with the word that each stands for between items."""

_LOGIC_SIGNS = frozenset("∧∨")
_HOLD_TOGETHER = frozenset("∧且")
"""Connectives of statements that hold together; "and" and 和 may also join the items of a list."""


def parse(source: str, *, list_commas: bool = False) -> Node:
    """Return the tree of an answer. list_commas: a plain comma separates items, `1,234` is two numbers.

    Raises `Unreadable` if the grammar cannot read the answer or the answer exceeds a bound.
    """
    return _parse(source, list_commas)


@lru_cache(maxsize=4_096)
def _parse(source: str, list_commas: bool) -> Node:
    """Return what `parse` returns, from a cache. Raises `Unreadable`."""
    if len(source) > MAX_ANSWER_CHARS:
        raise Unreadable("too long")
    if _DIGITS.fullmatch(source):
        return num(int(source))
    if source.strip() == "{}":
        return Node("set", ())
    tokens = tokenize(plain_source(usual_spelling(source)), list_commas=list_commas)
    while tokens and (tokens[-1].text in (",", ";", ":", "row") and tokens[-1].kind == "op"):
        tokens.pop()
    if not tokens:
        raise Unreadable("empty")
    tokens = _in_rows(tokens)
    parser = _AnswerParser(tokens)
    node = parser.answer()
    if parser.position < len(tokens):
        raise Unreadable(f"unexpected {parser.peek().text!r}")
    return node


@lru_cache(maxsize=1_024)
def connectives(source: str) -> frozenset[str]:
    """Return which of "and" and "or" join the items of an answer, in words or signs; empty if it cannot be read."""
    try:
        tokens = tokenize(plain_source(usual_spelling(source)))
    except Unreadable:
        return frozenset()
    return frozenset(_CONNECTIVES.get(token.text, token.text) for token in tokens if token.kind == "sep")


_ALIGNED = names("aligned align gathered split eqnarray alignedat")


def _in_rows(tokens: list[MathToken]) -> list[MathToken]:
    r"""Return `tokens` with line breaks that a parser can read.

    Lines outside of an environment become items between commas. In an environment of aligned lines the marks `&` are
    removed. An array behind a `\left\{` that is never closed becomes `cases`, and the bracket is removed.
    """
    if not any(token.text in ("row", "&") for token in tokens):
        return tokens
    begins = [begin for begin, token in enumerate(tokens) if token.kind == "begin"]
    if not begins:
        return [MathToken("op", ",", None, token.spaced) if token.text == "row" else token for token in tokens]
    if len(begins) > 1:
        return tokens
    begin, name = begins[0], tokens[begins[0]].text
    behind_brace = begin > 0 and tokens[begin - 1].text == "lset"
    never_closed = not any(token.text == "rset" for token in tokens)
    if name in _ALIGNED:
        tokens = [token for token in tokens if token.text != "&"]
    if not (behind_brace and never_closed):
        return tokens
    named = "cases" if name == "array" else name
    tokens = [token._replace(text=named) if token.kind in ("begin", "end") else token for token in tokens]
    return tokens[: begin - 1] + tokens[begin:]


_HALVES = {"am": "am", "pm": "pm", "noon": "pm", "点": ""}
"""Words behind a time of day → the half of the day that they say; 点 says none."""


class _AnswerParser(Powers):
    """The rules from a whole answer down to a factor."""

    def answer(self) -> Node:
        """Parse items between commas, "and" and "or": a list, conditions that hold together, or alternatives."""
        start = self.position
        node = self.items()
        pair = node.args if node.op == "list" and len(node.args) == 2 else None
        if pair is not None and self.connectives(start) == {"and"} and (whole := _compound_quantity(*pair)) is not None:
            return whole  # "1 hour and 20 minutes" is one quantity
        if node.op != "list":
            return node
        if (formula := self.logic_formula(node, start)) is not None:
            return formula
        if self.holds_two_values(node, start):
            raise Unreadable("two values of one name that hold together")  # no x is 2 and 3 at once
        if any(item.op == "text" for item in node.args) and "or" in self.connectives(start):
            raise Unreadable("alternatives in words")  # "red or blue" leaves open which; "red and blue" names both
        if all(_is_inequality(item) for item in node.args) and self.are_together(node, start):
            return Node("inter", node.args)
        return Node("either", node.args) if self.is_alternative(node, start) else node

    def logic_formula(self, node: Node, start: int) -> Node | None:
        r"""Return `p \lor q`, letters joined by connectives, as one `rel` node; None where every item is itself a
        relation, as in `x < 1 \lor x > 3`.

        node: the list of items; start: index of the first token of the list.
        """
        signs = tuple(token.text for token in self.tokens[start : self.position] if token.text in _LOGIC_SIGNS)
        has_proposition = any(item.op not in ("rel", "member") and symbols(item) for item in node.args)
        if not signs or not has_proposition:
            return None
        if len(signs) != len(node.args) - 1:
            raise Unreadable("a formula of logic in a list with other items")
        return Node("rel", (node.args, signs))

    def are_together(self, node: Node, start: int) -> bool:
        """Whether inequalities all hold: joined by "and", or by commas if they have no letter in common."""
        connectives = self.connectives(start)
        return connectives == {"and"} or (not connectives and not _share_a_letter(node.args))

    def holds_two_values(self, node: Node, start: int) -> bool:
        """Whether 且 or ∧ joins two values of one name: `x=2 且 x=3`, `2 且 3`."""
        signs = {token.text for token in self.tokens[start : self.position] if token.kind == "sep"}
        if not signs or not signs <= _HOLD_TOGETHER:
            return False
        if all(_is_equation(item) for item in node.args):
            named = [item.args[0][0] for item in node.args]
            return len(set(named)) < len(named)
        return all(item.op == "tuple" or (is_scalar(item) and not symbols(item)) for item in node.args)

    def is_alternative(self, node: Node, start: int) -> bool:
        """Whether statements joined by "or" are alternatives: `a = 0 or b = 0`. `x = 1 or x = 2` is a list."""
        if self.connectives(start) != {"or"} or any(token.text in ",;" for token in self.tokens[start : self.position]):
            return False
        if all(_is_equation(item) for item in node.args):
            return len({name for item in node.args for name in _names(item)}) > 1
        return all(_is_equation(item) or _is_inequality(item) for item in node.args) and not _share_a_letter(node.args)

    def connectives(self, start: int) -> set[str]:
        """Return which of "and" and "or" occur since token `start`; ∧ counts as "and", ∨ as "or"."""
        return {
            _CONNECTIVES.get(token.text, token.text)
            for token in self.tokens[start : self.position]
            if token.kind == "sep"
        }

    def items(self) -> Node:
        """Parse items between commas into a list; a single item stays itself. Semicolons part groups: `1, 2; 3, 4`."""
        groups: list[Node] = []
        items: list[Node] = []
        while True:
            while self.peek().kind == "sep" or self.is_op(",", ";"):
                self.position += 1
            if (
                self.position >= len(self.tokens)
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
        """Parse one item: a relation, ratio or expression, with the name before it and the condition behind it."""
        self.enter_rule()
        if self.peek().kind == "rel" and self.peek().text in "=≈∼":
            self.position += 1  # "= 5" is 5
        hedge = self.take() if self.is_hedged() else None
        label = self.take() if self.is_named() else None
        node = self.chain()
        if label is not None and node.op != "rel":
            node = Node("rel", ((Node("text", (name_in(label.text),)), node), ("=",)))
        if self.is_op(":"):
            parts = [node]
            while self.accept(":"):
                if not self.starts_atom() and not self.is_op("-", "+"):
                    break
                parts.append(self.chain())
            node = parts[0] if len(parts) == 1 else self.colon(parts)
        node = self.with_condition(node)
        if hedge is not None:
            node = Node("given", (node, "approximately"))
        self.depth -= 1
        return node

    def is_named(self) -> bool:
        r"""Whether words that end in a colon name the value behind them: `\text{boys: } 5`."""
        token, after = self.peek(), self.peek(1)
        if token.kind != "text" or (len(token.text) < 3 and token.text.isascii()):
            return False
        if token.text.endswith(":"):
            return after.kind in ("num", "sym", "cmd")
        return is_name(token.text) and self.value_follows()

    def is_hedged(self) -> bool:
        """Whether the next word says that the value behind it is rounded: "about 5"."""
        return self.peek().kind == "text" and self.peek().text.lower() in APPROXIMATE and self.value_follows()

    def value_follows(self) -> bool:
        """Whether a value may begin behind the next token."""
        self.position += 1
        begins = self.starts_atom() or self.is_op("-", "+")
        self.position -= 1
        return begins

    def with_condition(self, node: Node) -> Node:
        """Parse the condition in words behind `node`, up to the next item; return `node` with it.

        A condition that says nothing, such as "for all x", is dropped. Raises `Unreadable` if the condition leads to a
        second value: `1 if n > 0 else 0`.
        """
        start, token = self.position, self.peek()
        if begins_condition(token):
            if self.is_one_of_several():
                raise Unreadable("a choice between two values")
            brackets = 0
            while self.position < len(self.tokens) and (brackets or not self.ends_condition()):
                brackets += self.is_op(*OPENING) - self.is_op(*CLOSING)
                self.position += 1
        remark = self.tokens[start : self.position]
        return Node("given", (node, words_of_remark(remark))) if remark and not says_nothing(remark) else node

    def ends_condition(self) -> bool:
        """Whether the next item or the end of the bracket comes next, so that a condition ends here."""
        if self.is_op(",", ";") and (self.peek(1).kind == "sep" or self.label_follows(self.position + 1)):
            return True
        if self.peek().kind == "sep" and self.label_follows(self.position + 1):
            return True
        return self.is_op(*CLOSING, "row", "&") or self.peek().kind == "end"

    def is_one_of_several(self) -> bool:
        """Whether a condition leads to a second value: `5 if n > 0, 8 if n < 0`, `1 if n > 0 else 0`, `5 with 3`."""
        if self.peek().text.strip().lower() == "with" and self.peek(1).kind == "num":
            return True
        # A second condition behind a comma belongs to a second value, if a value stands between the two.
        comma = None
        for index, token in enumerate(self.tokens[self.position + 1 :]):
            if token.kind == "text" and _OTHERWISE.search(token.text):
                return True
            if token.kind == "sep" or token.text in (",", ";"):
                comma = index
            elif (
                comma is not None
                and index > comma + 1
                and begins_condition(token)
                and not self.label_follows(self.position + comma + 2)
            ):
                return True
        return False

    def label_follows(self, index: int) -> bool:
        """Whether an equals sign follows within six tokens of `index`: a new "f(x) = …" begins."""
        return any(token.kind == "rel" and token.text == "=" for token in self.tokens[index : index + 6])

    def colon(self, parts: list[Node]) -> Node:
        """Return the node of `parts`, which stood between colons: a name and its value, a time of day, or a ratio.

        A ratio may be a side of an equation: V1:V2 = 11:21.
        """
        if parts[0].op == "text" or (parts[0].op == "sym" and len(parts) == 2 and parts[1].op == "rel"):
            return Node("rel", ((parts[0], parts[-1]), ("=",)))
        last = parts[-1]
        if any(part.op == "add" and all(term.op == "num" for term in part.args) for part in parts[1:-1]):
            raise Unreadable("a sum of times of day")  # 10:40 + 3:35
        if len(parts) == 2 and parts[1].op == "rel":  # `11:21 = k`: the parts are 11 and (21 = k)
            operands, signs = parts[1].args
            return Node("rel", ((Node("ratio", (parts[0], operands[0])), *operands[1:]), signs))
        half = ""  # of the day: `3:30 p.m.` was read as 3 and 30 with the unit "pm"
        # A ratio has no leading zero: 9:05 is a time.
        is_time = last.op == "num" and re.fullmatch(r"0\d", self.tokens[self.position - 1].text) is not None
        if last.op == "quantity" and last.args[1] in _HALVES:
            is_time = True
            half, parts = _HALVES[last.args[1]], [*parts[:-1], last.args[0]]
        clock = [part.args[0] for part in parts if part.op == "num" and part.args[0].denominator == 1]
        if is_time and len(clock) == len(parts) and len(parts) <= 3:
            return Node("time", (tuple(parts), half))
        if parts[0].op == "rel":  # `k = 11:21`: the parts are (k = 11) and 21
            operands, signs = parts[0].args
            return Node("rel", ((*operands[:-1], Node("ratio", (operands[-1], *parts[1:]))), signs))
        return Node("ratio", tuple(parts))

    # --- relations and sets ---
    def chain(self) -> Node:
        """Parse sides between relations, `a = b < c`; without a relation return the only side."""
        operands = [self.classwise("")]
        signs: list[str] = []
        while self.peek().kind == "rel":
            sign = self.take().text
            signs.append(sign)
            if self.position >= len(self.tokens):
                raise Unreadable("a relation without a right side")
            operands.append(self.ratio_or_setwise() if sign in "=≈" else self.classwise(sign))
        if not signs:
            return operands[0]
        if len(signs) == 1 and signs[0] == "∈":
            return Node("member", (operands[0], operands[1]))
        return Node("rel", (tuple(operands), tuple(signs)))

    def classwise(self, sign: str) -> Node:
        r"""Parse a side with its modulus: `5 (mod 7)`, `5 \pmod 7`.

        `12 \mod 7` is a remainder, unless ≡ stands before it; `5 \mod 7`, which is reduced already, is a congruence.
        sign: the relation before this side, "" for the first one.
        """
        node = self.setwise()
        bracketed = self.is_op("(") and self.peek(1).kind == "op" and self.peek(1).text in ("mod", "pmod")
        if bracketed or self.is_op("pmod"):
            self.position += 1 + bracketed
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
        """Parse a side behind an equals sign: `a : b` or an ordinary side."""
        node = self.classwise("=")
        if self.is_op(":") and self.depth < 6:
            parts = [node]
            while self.accept(":"):
                parts.append(self.setwise())
            return self.colon(parts)
        return node

    def setwise(self) -> Node:
        """Parse one side of a relation such as A = B: sums joined by the signs of sets, ∪, ∩ and ∖."""
        node = self.sum()
        while self.peek().kind in ("op", "sym"):
            if self.accept("∪") or self.accept_letter_u():
                right = self.sum()
                node = Node("union", (*node.args, right) if node.op == "union" else (node, right))
            elif self.accept("∩"):
                node = Node("inter", (node, self.sum()))
            elif self.accept("∖"):
                node = Node("minus", (node, self.sum()))
            else:
                break
        return node

    def accept_letter_u(self) -> bool:
        """Move past the letter U if it stands for ∪ between two intervals; return whether it did."""
        token, before, after = self.peek(), self.peek(-1), self.peek(1)
        if (
            token.kind == "sym"
            and token.text in "Uu"
            and before.text in (")", "]", "rset")
            and after.text in ("(", "[", "lset")
        ):
            self.position += 1
            return True
        return False

    # --- sums and products ---
    def sum(self) -> Node:
        """Parse terms with their signs; a minus beside a set is a difference of sets."""
        self.enter_rule()
        terms: list[Node] = []
        if self.peek().kind != "op":
            terms.append(self.product())
        elif self.accept("-"):
            terms.append(_negate(self.product()))
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
        """Parse factors joined by `*`, `/`, `mod` or nothing, from the left; `1 1/2` is a mixed number.

        A `(mod m)` behind the factors is left to the caller, and a condition such as `(k ∈ ℤ)` is passed over.
        """
        node = self.signed_power()
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.position += 1
                node = _multiply(node, self.signed_power())
            elif token.kind == "op" and token.text == "/":
                self.position += 1
                right = self.signed_power()
                if right.op in ("pct", "quantity") and node.op == "num":
                    node = Node(right.op, (Node("div", (node, right.args[0])), *right.args[1:]))  # 1/2 %, 1/2 hour
                else:
                    node = Node("div", (node, right))
            elif token.kind == "op" and token.text == "mod":
                self.position += 1
                node = Node("fn", ("mod", node, self.signed_power()))
            # `(mod m)` belongs to a whole side of the congruence, not to its last factor.
            elif token.kind == "op" and token.text == "(" and self.peek(1).text in ("mod", "pmod"):
                return node
            elif token.kind == "op" and token.text == "(" and self.accept_integer_condition():
                continue
            elif self.starts_atom():
                before = self.peek(-1)
                if token.kind == "num" and token.spaced and before.text == ")" and node.op == "num":
                    raise Unreadable("(1) 5: a number in brackets stands before another number, with no sign between")
                if token.kind == "num" and before.kind == "num" and not (token.spaced and _ends_in_power(node)):
                    node = self.spaced_mixed(node)
                    continue
                right = self.power()
                if token.text == "(" and node.op == right.op == "quantity":
                    raise Unreadable("a quantity in brackets behind another one")  # 60 L (60000 mL) is no sum
                node = self.join_factors(node, right, mixed=before.kind == "num" and token.text == "frac")
            else:
                return node

    def accept_integer_condition(self) -> bool:
        """Move past a condition in brackets such as "(k ∈ Z)" if it comes next; return whether it did."""
        if self.peek(1).kind == "sym" and self.peek(2).text == "∈":
            while self.position < len(self.tokens) and not self.accept(")"):
                self.position += 1
            return True
        return False

    def signed_power(self) -> Node:
        """Parse a factor with its sign, such as the -3 of `2 * -3`."""
        if self.peek().kind != "op":
            return self.power()
        if self.accept("-"):
            return _negate(self.signed_power_of())
        if self.accept("+"):
            return self.signed_power_of()
        if self.is_op("±", "∓"):
            op = "pm" if self.take().text == "±" else "mp"
            return Node(op, (num(0), self.power()))
        return self.power()

    def signed_power_of(self) -> Node:
        """Parse a factor behind a sign, as one level deeper, so that `MAX_DEPTH` also bounds a run of signs."""
        self.enter_rule()
        node = self.signed_power()
        self.depth -= 1
        return node

    def spaced_mixed(self, whole: Node) -> Node:
        """Parse the rest of the mixed number `7 3/11`; whole: the 7.

        Raises `Unreadable` if it is no proper fraction.
        """
        top = self.take()
        if (
            _has_no_places(whole) and top.spaced and top.value is not None
            and self.is_op("/") and self.peek(1).kind == "num" and not self.peek().spaced
        ):  # fmt: skip
            self.position += 1
            bottom = self.take()
            if bottom.value and top.value < bottom.value and top.value.denominator == bottom.value.denominator == 1:
                return _mixed_number(whole, num(top.value), num(bottom.value))
        raise Unreadable("two numbers side by side")

    def join_factors(self, left: Node, right: Node, *, mixed: bool) -> Node:
        r"""Join two factors side by side to a product, a compound quantity or a mixed number.

        A unit or degree sign of the factor on the right belongs to both. mixed: the factor on the right is
        written as `\frac` directly behind a number. Raises `Unreadable` if the fraction is improper: `3\frac{3}{3}`
        may be 4 or 3.
        """
        if (together := _compound_quantity(left, right)) is not None:
            return together
        if left.op == right.op == "quantity" and left.args[0].op == right.args[0].op == "num":
            raise Unreadable("two quantities side by side")  # 29天 366天 are no product
        if right.op in ("quantity", "deg") or (right.op == "pct" and mixed):
            inner = self.join_factors(left, right.args[0], mixed=mixed)
            return Node(right.op, (inner, *right.args[1:]))
        if mixed and right.op == "div" and _has_no_places(left):
            top, bottom = right.args
            if _has_no_places(top) and _has_no_places(bottom) and top.args[0] > 0:
                if top.args[0] >= bottom.args[0]:
                    raise Unreadable("a number beside an improper fraction, which may be a product or a mixed number")
                return _mixed_number(left, top, bottom)
        return times(left, right)


def _mixed_number(whole: Node, top: Node, bottom: Node) -> Node:
    """Return a mixed number; one that can be reduced (1 2/4) stays a sum, so that its form can be told."""
    fraction = top.args[0] / bottom.args[0]
    if fraction.denominator < bottom.args[0]:
        return Node("add", (whole, Node("div", (top, bottom))))
    return num(whole.args[0] + fraction)


def _has_no_places(node: Node) -> bool:
    """Whether a node is a number without decimal places, such as an integer."""
    return node.op == "num" and node.args[1] == -1


def _multiply(left: Node, right: Node) -> Node:
    """Return the product of two factors; a unit of the last one belongs to both: the metres of `5 × 10^3 m`."""
    with_unit = ("quantity", "pct", "deg")
    if right.op in with_unit and left.op not in with_unit:
        return Node(right.op, (times(left, right.args[0]), *right.args[1:]))
    return times(left, right)


def _compound_quantity(left: Node, right: Node) -> Node | None:
    """Return `1 hour 20 minutes`, `5 ft 3 in` or `30° 15′` as one quantity; None for any other pair of factors."""
    if left.op == right.op == "quantity":
        ratio = smaller_unit(left.args[1], right.args[1])
        if ratio is not None:
            return Node("quantity", (Node("add", (times(num(ratio), left.args[0]), right.args[0])), right.args[1]))
    if left.op == "deg" and right.op == "fn" and right.args[0] == "prime":
        inner, parts = right.args[1], num(60)  # minutes of arc
        if inner.op == "fn" and inner.args[0] == "prime":
            inner, parts = inner.args[1], num(3600)  # seconds of arc
        return Node("deg", (Node("add", (left.args[0], Node("div", (inner, parts)))),))
    return None


def _ends_in_power(node: Node) -> bool:
    """Whether the last factor is a power: then a number may follow, `2^6 3^5`; `6 5` is no product."""
    return (node.args[-1] if node.op == "mul" else node).op == "pow"


def _negate(node: Node) -> Node:
    """Return -node; the minus goes inside a unit, percent or degree sign."""
    return Node(node.op, (neg(node.args[0]), *node.args[1:])) if node.op in ("quantity", "pct", "deg") else neg(node)


def _names(statement: Node) -> set[str]:
    """Return the letters of an equation or inequality; of a membership those on its left side."""
    sides = statement.args[:1] if statement.op == "member" else statement.args[0]
    return {name for side in sides for name in symbols(side)}


def _share_a_letter(statements: Sequence[Node]) -> bool:
    """Whether some letter stands in each of the statements."""
    return bool(set.intersection(*map(_names, statements)))


def _is_equation(node: Node) -> bool:
    """Whether the node is a relation with equals signs only."""
    return node.op == "rel" and all(sign == "=" for sign in node.args[1])


def _is_inequality(node: Node) -> bool:
    """Whether the node is a membership, or a relation with <, >, ≤, ≥ or ≠."""
    return node.op == "member" or (
        node.op == "rel" and any(sign in ("<", ">", "<=", ">=", "!=") for sign in node.args[1])
    )
