r"""The grammar: from the tokens of an answer to its tree, limited in depth and length.

answer      = item { ("," | ";" | "and" | "or") item }
item        = [name] chain [condition]
chain       = side { relation side }
side        = expression ["(mod" expression ")"]
expression  = operands and operators, by their powers (`parser`)

Mathematical notation is ambiguous; the rules decide the following beyond this grammar:

- commas without brackets are a list, "and" joins conditions, "or" joins statements of which any is true (`_answer`);
- `3\frac12` and `7 3/11` are mixed numbers, `3 \cdot \frac12` is a product (`operators.join_factors`);
- a unit, percent or degree sign belongs to the whole product before it, not to its last factor;
- a condition after the answer is kept with it, unless it adds nothing ("for all x", `_with_condition`).

Whole answers in a special spelling are first rewritten in the spelling that the grammar reads:

    每小时60千米                          60 千米/小时
    30 m2                               30 m^2
    2046 (base 7)                       2046_{7}
    百分之25, 3分之2                      25%, 2/3
    3又1/2米, 3又2分之1, 3……2             3\frac{1}{2}米, 3\frac{1}{2}, 3 remainder 2
    A=2 \quad B=-1                      A=2, B=-1

Each form applies to a whole answer only, so that no part of another answer changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from reasoning_answers.bounds import MAX_ANSWER_CHARS
from reasoning_answers.grammar.notation import plain_source
from reasoning_answers.grammar.numerals import Unreadable, number_in_words
from reasoning_answers.grammar.operands import OPERANDS
from reasoning_answers.grammar.operators import compound_quantity, operator_behind
from reasoning_answers.grammar.parser import CLOSING, OPENING, POWER, SIDE, Grammar, Parser, begins_condition
from reasoning_answers.grammar.qualifiers import APPROXIMATE, is_name, name_in, says_nothing, words_of_remark
from reasoning_answers.grammar.tokens import MathToken, tokenize
from reasoning_answers.grammar.tree import Node, is_scalar, names, num, symbols

_DIGITS = re.compile(r"[0-9]{1,400}")
"""A natural number, as most answers are; no rule reads it any other way."""

_CONNECTIVES = {"∧": "and", "∨": "or", "且": "and"}
"""Signs of logic, and 且, with the word that each represents between items."""

_ALIGNED = names("aligned align gathered split eqnarray alignedat")
"""Environments of lines aligned at `&`; in other environments, such as matrices, `&` separates cells."""

_DEPTH_OF_RATIO = 4
"""Deepest rule level at which a colon after an equals sign makes a ratio: inside one bracket."""


def parse(source: str, *, list_commas: bool = False) -> Node:
    """Return the tree of an answer. list_commas: a plain comma separates items, `1,234` is two numbers.

    Raises `Unreadable` if the grammar cannot read the answer or the answer exceeds a limit.
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
    while tokens and tokens[-1].kind in (",", ";", ":", "row"):
        tokens.pop()
    parser = Parser(_in_rows(tokens), Grammar(OPERANDS, operator_behind, _answer))
    node = _answer(parser)
    if parser.position < len(parser.tokens):
        raise Unreadable(f"unexpected {parser.peek().text!r}")
    return node


@lru_cache(maxsize=1_024)
def connectives(source: str) -> frozenset[str]:
    """Return which of "and" and "or", as words or signs, join the items of an answer; empty if it cannot be read."""
    try:
        tokens = tokenize(plain_source(usual_spelling(source)))
    except Unreadable:
        return frozenset()
    return frozenset(_CONNECTIVES.get(token.text, token.text) for token in tokens if token.kind == "sep")


def _in_rows(tokens: list[MathToken]) -> list[MathToken]:
    r"""Return `tokens` with line breaks replaced, so that the parser can read them.

    Lines outside an environment become items between commas. In an environment of aligned lines, the `&` marks are
    removed. An array after a `\left\{` that is never closed becomes `cases`, and the bracket is removed.
    """
    begins = [index for index, token in enumerate(tokens) if token.kind == "begin"]
    if not begins:
        return [MathToken(",", ",") if token.kind == "row" else token for token in tokens]
    if len(begins) > 1:
        return tokens
    begin = begins[0]
    name = tokens[begin].text
    if begin > 0 and tokens[begin - 1].kind == "lset" and not any(token.kind == "rset" for token in tokens):
        new_name = "cases" if name == "array" else name
        tokens = [token._replace(text=new_name) if token.kind in ("begin", "end") else token for token in tokens]
        del tokens[begin - 1]
    return [token for token in tokens if token.kind != "&"] if name in _ALIGNED else tokens


# --- items ---
def _answer(p: Parser) -> Node:
    """Parse items between commas, "and" and "or": a list, conditions that hold together, or alternatives."""
    start = p.position
    node = _items(p)
    return node if node.op != "list" else _joined(node, p.tokens[start : p.position])


def _joined(listed: Node, tokens: Sequence[MathToken]) -> Node:
    """Return the node of items, by what joins them: a list, one quantity, a formula of logic, or joined statements.

    tokens: the tokens from which the list was read. Raises `Unreadable`: the items exclude each other, or are
    alternatives in words.
    """
    items = listed.args
    signs = [token.text for token in tokens if token.kind == "sep"]
    joins = {_CONNECTIVES.get(sign, sign) for sign in signs}
    if len(items) == 2 and joins == {"and"} and (whole := compound_quantity(*items)) is not None:
        return whole  # "1 hour and 20 minutes" is one quantity
    logic = tuple(sign for sign in signs if sign in ("∧", "∨"))
    # Letters joined by connectives, `p \lor q`, are a formula; `x < 1 \lor x > 3` are statements.
    if logic and any(item.op not in ("rel", "member") and symbols(item) for item in items):
        if len(logic) != len(items) - 1:
            raise Unreadable("a logical formula in a list with other items")
        return Node("rel", (items, logic))
    # "and" and 和 may also join the items of a list; 且 and ∧ join conditions that hold together.
    if signs and {*signs} <= {"∧", "且"} and _exclude_each_other(items):
        raise Unreadable("two values for the same name")  # no x is 2 and 3 at once
    if "or" in joins and any(item.op == "text" for item in items):
        raise Unreadable("alternatives in words")  # "red or blue" does not decide; "red and blue" names both
    if not all(_is_equation(item) or _is_inequality(item) for item in items):
        return listed
    letters = [_names(item) for item in items]
    share_letter = bool(set.intersection(*letters))
    # Only commas: `x > 0, y > 0` bound two letters and hold together; `x < 1, x > 3` may be two parts of a solution.
    if all(map(_is_inequality, items)) and (joins == {"and"} or (not joins and not share_letter)):
        return Node("inter", items)
    if joins == {"or"} and not any(token.kind in (",", ";") for token in tokens):
        # The solutions of one letter are a list: `x = 1 or x = 2`, `x < 1 or x > 3`. Statements about several letters
        # are alternatives: `a = 0 or b = 0`, `x = y or x = 2y`, `x < 0 or y < 0`.
        are_solutions = len(set.union(*letters)) <= 1 if all(map(_is_equation, items)) else share_letter
        return listed if are_solutions else Node("either", items)
    return listed


def _exclude_each_other(items: Sequence[Node]) -> bool:
    """Whether the items assign two values to one name: `x=2 且 x=3`, `2 且 3`."""
    if all(map(_is_equation, items)):
        return len({item.args[0][0] for item in items}) < len(items)
    return all(item.op == "tuple" or (is_scalar(item) and not symbols(item)) for item in items)


def _names(statement: Node) -> set[str]:
    """Return the letters of an equation or inequality, or the letters on the left side of a membership."""
    sides = statement.args[:1] if statement.op == "member" else statement.args[0]
    return {name for side in sides for name in symbols(side)}


def _is_equation(node: Node) -> bool:
    """Whether the node is a relation with equals signs only."""
    return node.op == "rel" and all(sign == "=" for sign in node.args[1])


def _is_inequality(node: Node) -> bool:
    """Whether the node is a membership, or a relation with <, >, ≤, ≥ or ≠."""
    return node.op == "member" or (node.op == "rel" and not {"<", ">", "<=", ">=", "!="}.isdisjoint(node.args[1]))


def _items(p: Parser) -> Node:
    """Parse items between commas into a list; a single item stays itself. Semicolons part groups: `1, 2; 3, 4`.

    Raises `Unreadable` if there is no item.
    """
    groups: list[Node] = []  # the lists that a semicolon has ended
    items: list[Node] = []
    while True:
        while p.accept("sep", ",", ";"):
            pass
        if p.peek().kind in (*CLOSING, "row", "&", "end"):
            break
        items.append(_item(p))
        if p.peek().kind == ";":
            groups.append(_list(items))
            items = []
        elif p.peek().kind not in ("sep", ","):
            break
    if groups:
        items = [*groups, _list(items)] if items else groups
    if not items:
        raise Unreadable("empty")
    return _list(items)


def _list(items: Sequence[Node]) -> Node:
    """Return the items as a list; a single item by itself."""
    return items[0] if len(items) == 1 else Node("list", tuple(items))


def _item(p: Parser) -> Node:
    """Parse one item: a relation, ratio or expression, with the name before it and the condition after it.

    A preceding word such as "about" becomes the condition "approximately", which a rounded reference accepts. A colon
    with no value after it is skipped.
    """
    if p.peek().kind == "rel" and p.peek().text in "=≈∼":
        p.take()  # A sign without a left side belongs to the sentence before the answer: "= 5" and "≈ 5" are 5.
    is_rounded = p.peek().kind == "text" and p.peek().text.lower() in APPROXIMATE and p.starts_value(1)
    if is_rounded:
        p.take()
    name = name_in(p.take().text) if _is_named(p) else None
    parts = [_chain(p)]
    while p.accept(":") and p.starts_value():
        parts.append(_chain(p))
    node = _colon(parts)
    if name is not None and node.op != "rel":
        node = Node("rel", ((Node("text", (name,)), node), ("=",)))
    node = _with_condition(p, node)
    return Node("given", (node, "approximately")) if is_rounded else node


def _is_named(p: Parser) -> bool:
    r"""Whether words that end in a colon or a verb introduce the value after them: `\text{boys: } 5`."""
    token = p.peek()
    if token.kind != "text" or (len(token.text) < 3 and token.text.isascii()):
        return False
    return is_name(token.text) and p.starts_value(1)


# --- conditions ---
def _with_condition(p: Parser, node: Node) -> Node:
    """Parse the verbal condition after `node`, up to the next item; return `node` with it.

    A condition that adds nothing, such as "for all x", is dropped.
    """
    if not begins_condition(p.peek()):
        return node
    start, brackets = p.position, 0
    while p.position < len(p.tokens) and (brackets or p.peek().kind not in (*CLOSING, "row", "&", "end")):
        kind = p.take().kind
        brackets += (kind in OPENING) - (kind in CLOSING)
    remark = p.tokens[start : p.position]
    return node if says_nothing(remark) else Node("given", (node, words_of_remark(remark)))


# --- relations ---
def _chain(p: Parser) -> Node:
    """Parse sides between relations, `a = b < c`; without a relation return the only side."""
    sides = [_side(p, relation="")]
    signs: list[str] = []
    while p.peek().kind == "rel":
        sign = p.take().text
        if p.peek().kind == "end":
            raise Unreadable("a relation without a right-hand side")
        parts = [_side(p, relation=sign)]
        # The side may be a ratio, a = 1:2, whose further parts have no modulus. More than one bracket deep this loop
        # leaves the colon to `_item`, which handles every colon that remains after a chain.
        while sign in "=≈" and p.depth <= _DEPTH_OF_RATIO and p.accept(":"):
            parts.append(p.expression(SIDE))
        signs.append(sign)
        sides.append(_colon(parts))
    if not signs:
        return sides[0]
    return Node("member", tuple(sides)) if signs == ["∈"] else Node("rel", (tuple(sides), tuple(signs)))


def _side(p: Parser, relation: str) -> Node:
    r"""Parse a side with its modulus: `5 (mod 7)`, `5 \pmod 7`.

    `12 \mod 7` is a remainder, unless ≡ precedes it; `5 \mod 7`, which is reduced already, is a congruence.
    relation: the sign before this side, "" for the first one.
    """
    node = p.expression(SIDE)
    if node.op == "fn" and node.args[0] == "mod":
        _, value, modulus = node.args
        reduced = value.op == modulus.op == "num" and 0 <= value.args[0] < modulus.args[0]
        return Node("congruence", (value, modulus)) if relation == "≡" or reduced else node
    bracketed = p.peek().kind == "(" and p.peek(1).kind in ("mod", "pmod")
    if not bracketed and p.peek().kind != "pmod":
        return node
    p.position += 1 + bracketed
    modulus = p.expression(POWER)
    if bracketed:
        p.expect(")")
    return Node("congruence", (node, modulus))


def _colon(parts: list[Node]) -> Node:
    """Return the node of `parts` between colons: a name and its value, or a ratio; a single part as it is.

    A ratio may be a side of an equation: V1:V2 = 11:21. Raises `Unreadable` for a sum of times of day.
    """
    if len(parts) == 1:
        return parts[0]
    first, *rest = parts
    *middle, last = rest
    if first.op == "text" and not any(part.op == "text" for part in middle):  # Time: 10:30
        return Node("rel", ((first, _colon(rest)), ("=",)))
    if any(part.op == "add" and all(term.op == "num" for term in part.args) for part in middle):
        raise Unreadable("a sum of times of day")  # 10:40 + 3:35
    if last.op == "rel":  # `11:21 = k`: the parts are 11 and (21 = k)
        sides, signs = last.args
        return Node("rel", ((Node("ratio", (first, *middle, sides[0])), *sides[1:]), signs))
    return Node("ratio", tuple(parts))


# --- whole answers with a spelling of their own ---
_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
"""A command that marks words; its content is read without it."""

_SPACE = re.compile(r"\\[,;! ]|~|\s+")
_NUMBER = r"-?\d+(?:[.,]\d+)*(?:/\d+)?"
_FORMS = (
    (rf"每([\u3400-\u9fff]{{1,4}}?) ?({_NUMBER}) ?([\u3400-\u9fffA-Za-z]{{1,6}})", r"\2\\text{ \3/\1}"),
    (rf"({_NUMBER}) ?(mm|cm|dm|km|m|in|ft|yd|mi)([23])", r"\1\\text{ \2^\3}"),
    (r"([0-9A-Za-z]+) ?(?:\( ?(?:in )?base[ -](\d{1,2}) ?\)|(?:in )?base[ -](\d{1,2}))", r"\1_{\2\3}"),
    (r"百分之(\d+(?:\.\d+)?)", r"\1\\%"),
    (r"(\d+)分之(\d+)", r"\\frac{\2}{\1}"),
    (r"(-?)(\d+)又(\d+)/(\d+)([\u3400-\u9fff]{0,6})", r"\1\2\\frac{\3}{\4}\5"),
    (r"(-?)(\d+)又(\d+)分之(\d+)([\u3400-\u9fff]{0,6})", r"\1\2\\frac{\4}{\3}\5"),
    (
        r"商?(\d+) ?(?:余| [Rr] |remainder|…{1,2}|\.{3,6}|⋯{1,2}|(?:\\[cl]?dots ?){1,2}) ?(\d+)",
        r"\1\\text{ remainder }\2",
    ),
)
"""Forms of a whole answer, each with the spelling that replaces it."""

_TWICE = re.compile(r"([^()]{1,60}?) ?\(([^()]{1,60})\)")
"""A number followed by the same number in words in brackets, 5 (five), or the other way around."""

_PRICE_IN_LETTERS = re.compile(rf"(\\?\$|[€£¥]) ?({_NUMBER}) ?(k|m|mm|mn|b|bn|t|tn)", re.IGNORECASE)
_LETTERS_OF_PRICES = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
"""A price with a letter for its scale, $6.5B."""

_CELL = r"-?\d[\d./]*"
_ROWS = re.compile(rf"\[ ?((?:{_CELL}(?: ?, ?| ){_CELL}(?:(?: ?, ?| ){_CELL})* ?(?:; ?|(?= ?\]))){{2,}}) ?\]")
"""The rows of a matrix between semicolons, [1 2; 3 4]."""

_COMPILED = [(re.compile(form), template) for form, template in _FORMS]
_GAP_BEFORE_NAME = re.compile(r"(?:\\q?quad\s*|(?:(?<=\d)|(?<=\d\}))\s+)(?=\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*=)")
"""The space between two equations, as in `A=2 \\quad B=-1`; a comma takes its place."""


def usual_spelling(source: str) -> str:
    """Return an answer in the spelling that the grammar reads; `source` itself if none of the forms above apply."""
    flat = _SPACE.sub(" ", _TEXT.sub(r"\1", source)).strip(" $").rstrip(".")
    if (twice := _TWICE.fullmatch(flat)) is not None:
        values = [number_in_words(part) for part in twice.groups()]
        if values.count(None) == 1 and (values[0] or twice[1]) == (values[1] or twice[2]):
            return values[0] or twice[1]
    if (price := _PRICE_IN_LETTERS.fullmatch(flat)) is not None:
        sign = r"\$" if price[1].endswith("$") else price[1]
        return rf"{sign}{price[2]}\text{{ {_LETTERS_OF_PRICES[price[3][0].lower()]}}}"
    if (rows := _ROWS.fullmatch(flat)) is not None:
        cells = [re.split(r" ?, ?| ", row.strip()) for row in rows[1].split(";")]
        if {*map(len, cells)} == {len(cells[0])}:
            lines = r" \\ ".join(map(" & ".join, cells))
            return rf"\begin{{matrix}}{lines}\end{{matrix}}"
    for form, template in _COMPILED:
        if (match := form.fullmatch(flat)) is not None:
            return match.expand(template)
    return _GAP_BEFORE_NAME.sub(", ", source) if "quad" in source or source.count("=") > 1 else source
