"""The operators of expressions: the signs of sets, sums and products, and whatever directly follows an operand."""

from __future__ import annotations

from collections.abc import Callable

from reasoning_answers.grammar.numerals import Unreadable
from reasoning_answers.grammar.parser import (
    CLOSING,
    OPENING,
    POWER,
    PRODUCT,
    SIDE,
    SUM,
    WITH_UNIT,
    Operator,
    Parser,
    begins_condition,
)
from reasoning_answers.grammar.tokens import MathToken
from reasoning_answers.grammar.tree import SETS, Node, neg, num, sym
from reasoning_answers.grammar.units import smaller_unit, split_scale

_INSIDE_TERMS = frozenset(("num", "sym", "cmd", *"+-±∓*/^_!'", *OPENING, *CLOSING))
"""Tokens that may occur in the arguments of a function. A bracket with any other token is a list, a remark, a set …"""

_BASES = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Bases by their names, as in `101_{\\text{two}}`."""

_TRANSPOSED = (sym("T"), sym("t"), sym("top"), sym("intercal"))
"""Exponents that transpose a matrix or vector."""

_PARTS_OF_DEGREE = {"minute": 60, "minutes": 60, "分": 60, "second": 3600, "seconds": 3600, "秒": 3600}
"""Words after a number that follows degrees → how many of these parts make a degree."""

_ORDINALS = ("th", "st", "nd", "rd")
"""Endings of ordinals, which leave the number before them unchanged: the th of 12th."""

_PERCENT = ("percent", "percentage", "pct", "per cent", "percents")


def operator_behind(p: Parser, left: Node) -> Operator | None:
    """Return the operator that follows `left`; None if no operator does."""
    token = p.peek()
    kind = token.kind
    if kind in ("(", "["):
        if left.op == "sym" and p.peek(-1).kind != ")" and applies_function(p, left.args[0]):
            return Operator(POWER, applied)  # f'(2), J_0(0), \mathbb{E}(X)
        if p.peek(1).kind in ("mod", "pmod"):
            return None  # (mod m) belongs to a whole side of the congruence, not to its last factor
        if p.peek(1).kind == "sym" and p.peek(2).text == "∈":
            return Operator(PRODUCT, _pass_condition)
    elif kind == "text":
        return None if begins_condition(token) else Operator(POWER, _unit)
    return OPERATORS.get(kind) or (Operator(PRODUCT, _side_by_side) if p.starts_operand() else None)


def applies_function(p: Parser, name: str) -> bool:
    """Whether `name` is a function whose arguments follow.

    f, g and h before a round bracket are functions. So is any letter before a bracket around a single term, since a
    product would not need the bracket: I(0), P(A), φ(n²). So is a capital before a bracket around a sum that has a
    capital: E[X + Y], but not P(1 + r). name: a letter, perhaps with an index or primes.
    """
    if p.peek().kind not in ("(", "[") or p.peek().spaced:
        return False
    letter = name.rstrip("'").partition("_")[0]
    if letter in ("f", "g", "h") and p.peek().kind == "(":
        return not (p.peek(1).kind == "sym" and p.peek(1).text == letter)
    inside = _inside_brackets(p)
    if any(token.kind not in _INSIDE_TERMS for token in inside):
        return False
    if not any(token.kind in ("+", "-", "±", "∓") for token in inside):
        return True
    return letter.isupper() and any(token.kind == "sym" and token.text.isupper() for token in inside)


def _inside_brackets(p: Parser) -> list[MathToken]:
    """Return the tokens inside the next bracket, without the tokens of nested brackets."""
    inside: list[MathToken] = []
    depth = 1  # brackets around the token; 1 directly inside the bracket
    for token in p.tokens[p.position + 1 :]:
        depth -= token.kind in CLOSING
        if depth == 0:
            break
        if depth == 1:
            inside.append(token)
        depth += token.kind in OPENING
    return inside


# --- sets and sums ---
def _sets(op: str) -> Callable[[Parser, Node], Node]:
    """Return the rule of a sign between sets; unions become one node."""

    def rule(p: Parser, left: Node) -> Node:
        p.take()
        right = p.expression(SUM)
        return Node(op, (*left.args, right) if left.op == op == "union" else (left, right))

    return rule


def _sum(p: Parser, left: Node) -> Node:
    """Parse the terms after the first one; a minus next to a set is a set difference."""
    terms = [left]
    while sign := p.accept("+", "-", "±", "∓"):
        right = p.expression(PRODUCT)
        if sign == "+":
            terms.append(right)
        elif sign in "±∓":  # its left side is the sum of all terms before it
            before = terms[0] if len(terms) == 1 else Node("add", tuple(terms))
            terms = [Node("pm" if sign == "±" else "mp", (before, right))]
        elif right.op in SETS or terms[-1].op in SETS or (terms[-1] == sym("R") and right.op in ("bracket", "tuple")):
            terms[-1] = Node("minus", (terms[-1], right))
        else:
            terms.append(neg(right))
    return terms[0] if len(terms) == 1 else Node("add", tuple(terms))


# --- products ---
def times(left: Node, right: Node) -> Node:
    """Return the product of two nodes; if the left node is a product, `right` becomes its last factor."""
    return Node("mul", (*left.args, right) if left.op == "mul" else (left, right))


def _product(p: Parser, left: Node) -> Node:
    """Parse the factor after a sign; a unit on the last factor applies to both: the meters in `5 × 10^3 m`."""
    sign, right = p.take().kind, p.expression(POWER)
    if sign == "mod":
        return Node("fn", ("mod", left, right))
    takes_unit = left.op not in WITH_UNIT if sign == "*" else left.op == "num" and right.op != "deg"
    if takes_unit and right.op in WITH_UNIT:
        return Node(right.op, (_joined(sign, left, right.args[0]), *right.args[1:]))  # 1/2 %, 1/2 hour
    return _joined(sign, left, right)


def _joined(sign: str, left: Node, right: Node) -> Node:
    """Return left · right, or left / right if `sign` is a slash."""
    return times(left, right) if sign == "*" else Node("div", (left, right))


def _pass_condition(p: Parser, left: Node) -> Node:
    """Move past a condition in brackets such as "(k ∈ Z)"."""
    while p.take().kind not in (")", "end"):
        pass
    return left


def _side_by_side(p: Parser, left: Node) -> Node:
    """Parse a factor without a sign before it; `1 1/2` is a mixed number. Raises `Unreadable`."""
    token, before = p.peek(), p.peek(-1)  # the first token of the factor, and the last one of `left`
    if token.kind == "num" and token.spaced and before.kind == ")" and left.op == "num":
        raise Unreadable("a number in parentheses directly before another number, as in (1) 5")
    last = left.args[-1] if left.op == "mul" else left
    if token.kind == before.kind == "num" and not (token.spaced and last.op == "pow"):  # 2^6 3^5 is a product
        return _spaced_mixed(p, left)
    right = p.expression(POWER)
    if token.kind == "(" and left.op == right.op == "quantity":
        raise Unreadable("a quantity in parentheses after another quantity")  # 60 L (60000 mL) is not a sum
    return join_factors(left, right, mixed=before.kind == "num" and token.text == "frac")


def join_factors(left: Node, right: Node, *, mixed: bool) -> Node:
    r"""Join two adjacent factors into a product, a compound quantity or a mixed number.

    A unit or degree sign on the right factor applies to both. mixed: the factor on the right is written as
    `\frac` directly after a number. Raises `Unreadable` if the fraction is improper: `3\frac{3}{3}` may be 4 or 3.
    """
    if (together := compound_quantity(left, right)) is not None:
        return together
    if left.op == right.op == "quantity" and left.args[0].op == right.args[0].op == "num":
        raise Unreadable("two quantities side by side")  # 29天 366天 are not a product
    if right.op in ("quantity", "deg") or (right.op == "pct" and mixed):
        return Node(right.op, (join_factors(left, right.args[0], mixed=mixed), *right.args[1:]))
    if mixed and right.op == "div" and _has_no_places(left) and all(map(_has_no_places, right.args)):
        top, bottom = right.args
        if top.args[0] > 0:
            if top.args[0] >= bottom.args[0]:
                raise Unreadable("a number next to an improper fraction, which may be a product or a mixed number")
            return num(left.value + top.value / bottom.value)
    return times(left, right)


def _spaced_mixed(p: Parser, whole: Node) -> Node:
    """Parse the rest of the mixed number `7 3/11`; whole: the 7. Raises `Unreadable` if it is not a proper fraction."""
    top, stroke, bottom = p.take(), p.take(), p.take()
    is_spaced = _has_no_places(whole) and top.spaced and stroke.kind == "/" and not stroke.spaced
    if is_spaced and top.value is not None and bottom.value is not None:
        are_integers = top.value.denominator == bottom.value.denominator == 1
        if are_integers and top.value < bottom.value:
            return num(whole.value + top.value / bottom.value)
    raise Unreadable("two numbers side by side")


def _has_no_places(node: Node) -> bool:
    """Whether a node is a number without decimal places, such as an integer."""
    return node.op == "num" and node.args[1] == -1


def compound_quantity(left: Node, right: Node) -> Node | None:
    """Return `1 hour 20 minutes`, `5 ft 3 in` or `30° 15′` as one quantity; None for any other pair of factors."""
    if left.op == right.op == "quantity":
        ratio = smaller_unit(left.args[1], right.args[1])
        if ratio is not None:
            return Node("quantity", (Node("add", (times(num(ratio), left.args[0]), right.args[0])), right.args[1]))
    return _with_minutes(left, right) if left.op == "deg" else None


def _with_minutes(degrees: Node, right: Node) -> Node | None:
    """Return `30° 15′`, `30° 15″` or 30°15分 in degrees; None if `right` is not minutes or seconds of arc."""
    number, per_degree = right, 1
    while number.op == "fn" and number.args[0] == "prime":  # ′ is a minute, ″ a second
        number, per_degree = number.args[1], per_degree * 60
    if right.op == "quantity" and right.args[1] in _PARTS_OF_DEGREE:
        number, per_degree = right.args[0], _PARTS_OF_DEGREE[right.args[1]]
    if per_degree == 1:
        return None
    return Node("deg", (Node("add", (degrees.args[0], Node("div", (number, num(per_degree))))),))


# --- what directly follows an operand ---
def applied(p: Parser, left: Node) -> Node:
    """Parse the arguments of the function `left`, a letter, with their brackets."""
    p.take()
    return Node("apply", (left.args[0], p.inside(")", "]")))


def _factorial(p: Parser, left: Node) -> Node:
    p.take()
    return Node("fn", ("double factorial" if p.accept("!") else "factorial", left))


def _percent(p: Parser, left: Node) -> Node:
    p.take()
    return Node("pct", (left,))


def _prime(p: Parser, left: Node) -> Node:
    p.take()
    return _primed(left)


def _primed(node: Node) -> Node:
    return sym(f"{node.args[0]}'") if node.op == "sym" else Node("fn", ("prime", node))


def _degree_sign(p: Parser, left: Node) -> Node:
    p.take()
    if left.op in ("sym", "apply") and p.starts_operand():
        raise Unreadable("a composition of functions")  # f ∘ g is not a product
    return _degrees(p, left)


def _degrees(p: Parser, left: Node) -> Node:
    """Return `left` as an angle in degrees, or as a temperature if C or F follows."""
    token = p.peek()
    if token.kind in ("sym", "text") and token.text in ("C", "F") and p.peek(1).kind not in ("(", "_", "^"):
        p.take()
        return Node("quantity", (left, "celsius" if token.text == "C" else "fahrenheit"))
    return Node("deg", (left,))


def _unit(p: Parser, left: Node) -> Node:
    """Parse the words after `left`, with the exponents and slashes of a unit: "cm^2", "km/h", "million dollars"."""
    first = words = p.take().text
    while True:
        if p.accept("^"):
            exponent = p.argument()
            if exponent.op != "num" or exponent.args[0].denominator != 1:
                return Node("quantity", (left, first))  # 12^{\text{th}} and similar
            words += f"^{exponent.args[0]}"
        elif p.peek().kind == "text" and not begins_condition(p.peek()):
            words += " " + p.take().text
        elif p.peek().kind in ("/", "*") and p.peek(1).kind == "text":
            words += p.take().text + p.take().text
        else:
            break
    factor, words = split_scale(words)
    if factor != 1:
        if p.peek().kind == "num":
            raise Unreadable("a number after a scale word such as million")
        left = num(left.args[0] * factor) if left.op == "num" else times(left, num(factor))
    return _with_words(left, words)


def _with_words(left: Node, words: str) -> Node:
    """Return `left` with the words that follow it: a unit, "percent", "degrees", the th of an ordinal."""
    lower = words.lower().strip(" .")
    if not words or words.strip(" .") in _ORDINALS:  # a TH is a unit
        return left
    if lower == "below zero":
        return neg(left)
    if lower in _PERCENT:
        return Node("pct", (left,))
    if lower in ("degrees", "degree", "度"):
        return Node("deg", (left,))
    return Node("quantity", (left, words))


def _superscript(p: Parser, left: Node) -> Node:
    """Parse what follows the `^` after `left`: an exponent, degree sign, prime, transpose, the th of 12th."""
    p.take()
    exponent = p.mark() or p.argument(whole_number=True)
    if p.peek().kind == "^" and exponent.op in ("num", "sym"):  # a tower without braces: 9^9^9
        p.enter()
        exponent = _superscript(p, exponent)
        p.depth -= 1
    if exponent.op == "mark":
        return _degrees(p, left) if exponent.args[0] == "°" else _primed(left)
    if exponent.op == "empty" or (exponent.op == "text" and exponent.args[0].lower() in _ORDINALS):
        return left  # `^{}` prints nothing
    if left.op in ("matrix", "tuple", "bracket") and exponent in _TRANSPOSED:
        return Node("matrix", tuple(zip(*left.args, strict=True))) if left.op == "matrix" else Node("tuple", left.args)
    return Node("pow", (left, exponent))


def _subscript(p: Parser, left: Node) -> Node:
    """Parse the subscript after `left` and `_`. After digits it is the base in which they are written (`1F_{16}`);
    after a name, an index (`x_1`).
    """
    last = p.position - 1  # index of the last token of `left`
    p.take()
    start = p.position
    subscript = p.argument(whole_number=True)
    if subscript.op == "text" and subscript.args[0].lower() in _BASES:
        subscript = num(_BASES.index(subscript.args[0].lower()) + 2)
    if subscript.op == "num" and subscript.args[0].denominator == 1:
        digits = _digits_up_to(p.tokens, last, left)
        if digits:
            return Node("base", (digits, int(subscript.args[0])))
    name = left.args[0] if left.op == "pow" else left  # TeX sets x^2_1 as x_1^2
    if name.op not in ("sym", "text"):
        raise Unreadable("a number with a subscript that is not a base" if left.op == "num" else "a subscript")
    label = "".join(token.text for token in p.tokens[start : p.position] if token.kind not in ("{", "}"))
    indexed = Node(name.op, (f"{name.args[0]}_{label}",))
    return Node("pow", (indexed, left.args[1])) if left.op == "pow" else indexed


def _digits_up_to(tokens: list[MathToken], last: int, left: Node) -> str:
    """Return the digits of a number in a base, the 1F of `1F_{16}` and `(1F)_{16}`; "" if `left` is not one.

    last: index of the last token of `left`.
    """
    if left.op == "text" and left.args[0].isalnum() and left.args[0].isupper():
        return str(left.args[0])  # digits above nine were read as words
    if tokens[last].kind == "num" and (left.op == "num" or (left.op == "quantity" and left.args[0].op == "num")):
        return tokens[last].text
    if tokens[last].kind != ")":
        return ""
    first = last  # index of the first token inside the brackets
    while first > 0 and tokens[first - 1].kind in ("num", "sym", "text"):
        first -= 1
    digits = "".join(token.text for token in tokens[first:last])
    return digits if first > 0 and tokens[first - 1].kind == "(" and digits.isalnum() else ""


OPERATORS = {
    "∪": Operator(SIDE, _sets("union")),
    "∩": Operator(SIDE, _sets("inter")),
    "∖": Operator(SIDE, _sets("minus")),
    **dict.fromkeys(("+", "-", "±", "∓"), Operator(SUM, _sum)),
    **dict.fromkeys(("*", "/", "mod"), Operator(PRODUCT, _product)),
    "^": Operator(POWER, _superscript),
    "_": Operator(POWER, _subscript),
    "!": Operator(POWER, _factorial),
    "°": Operator(POWER, _degree_sign),
    "%": Operator(POWER, _percent),
    "'": Operator(POWER, _prime),
}
"""Kind of a token → its operator."""
