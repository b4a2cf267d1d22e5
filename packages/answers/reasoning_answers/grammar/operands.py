r"""What an expression begins with: numbers, letters, words, commands such as `\frac` and `\sum`, brackets, matrices.

`OPERANDS` maps each kind of token to its rule, a function of the parser, which has just passed the token; `_COMMANDS`
maps the names of commands to their rules. A rule leaves the parser just past its last token.
"""

from __future__ import annotations

from collections.abc import Callable

from reasoning_answers.grammar.numerals import Unreadable, places_of
from reasoning_answers.grammar.operators import applied, applies_function, times
from reasoning_answers.grammar.parser import CLOSING, OPENING, POWER, PRODUCT, SIDE, Parser
from reasoning_answers.grammar.qualifiers import leads_to_value
from reasoning_answers.grammar.tokens import MathToken
from reasoning_answers.grammar.tree import (
    INFINITY,
    LEFT_OPEN,
    PI,
    E,
    I,
    Node,
    bound_letters,
    names,
    neg,
    num,
    substitute,
    sym,
    symbols,
    walk,
)

_CURRENCIES = {
    "dollar": "dollar",
    "euro": "euro",
    "sterling": "sterling",
    "yuan": "yuan",
    "usd": "dollar",
    "us dollar": "dollar",
    "eur": "euro",
    "gbp": "sterling",
    "cny": "yuan",
    "rmb": "yuan",
}
"""Word for a currency → the unit that its amount has in the tree."""

_DIFFERENTIAL = ("d", "partial", "Delta", "delta")
"""Letters that form one quantity with the next letter: dx, ∂f, Δt are not products."""

_DERIVES = (sym("d"), sym("partial"))
"""The d and ∂ above the fraction bar of a derivative, d/dx."""

_CONSTANTS = {"pi": PI, "inf": INFINITY, "nan": Node("const", ("nan",))}
"""Name of a command → its constant."""

_CONDITIONAL = ("if", "for", "when", "where", "若", "当")
"""Words before the condition of a case."""

_MATRICES = names("matrix pmatrix bmatrix Bmatrix array smallmatrix")
"""Environments that form a matrix."""

_MAX_ROWS = 5
"""Largest number of rows of a determinant that is expanded: n rows give n! terms."""

_GOES_ON = ("frac", "sqrt", "pi", "inf", "cbrt")
"""Commands that may be a further factor of an argument without brackets; any other command ends the argument."""


# --- numbers, letters, words ---
def _number(p: Parser) -> Node:
    """Return a number, or its digits and base if it is written as 0x1F or 0b101."""
    token = p.peek(-1)
    if token.text[:2].lower() in ("0x", "0b"):
        return Node("base", (token.text, 16 if token.text[1] in "xX" else 2))
    return Node("num", (token.value, places_of(token.text)))


def _letter(p: Parser) -> Node:
    """Return i or e, Γ(n) as a factorial, combinations, a differential, a function with its argument, or a variable."""
    name, after = p.peek(-1).text, p.peek()
    # With an index, i and e are letters: i_1, e_2.
    if name in ("i", "e") and after.kind != "_":
        return I if name == "i" else E
    if name == "Gamma" and p.accept("("):
        return Node("fn", ("factorial", Node("add", (p.inside(")"), num(-1)))))  # Γ(n) is (n − 1)!
    if name in ("C", "A", "P") and after.kind == "_" and (node := _combinations(p, name)) is not None:
        return node
    is_unit = f"{name}{after.text}" in ("dm", "dL")  # which are not differentials
    if name in _DIFFERENTIAL and after.kind == "sym" and not is_unit:
        return sym(f"{name} {p.take().text}")
    return applied(p, sym(name)) if applies_function(p, name) else sym(name)


def _combinations(p: Parser, name: str) -> Node | None:
    """Parse `C_{10}^{3}` as a binomial coefficient, `A_5^2` and `P_5^2` as numbers of arrangements.

    Return None without moving if the letter `name` begins neither.
    """
    start = p.position
    p.take()
    below = p.argument(whole_number=True)
    if p.accept("^") and (below.op == "num" or (name == "C" and below in (sym("n"), sym("m")))):
        above = p.argument(whole_number=True)
        if above.op in ("num", "sym"):
            return _selections(name, below, above)
    p.position = start
    return None


def _selections(name: str, n: Node, k: Node) -> Node:
    """Return the number of combinations (C), or of arrangements n! / (n − k)! (A, P), of k of n things."""
    if name == "C":
        return Node("fn", ("binom", n, k))
    return Node("div", (Node("fn", ("factorial", n)), Node("fn", ("factorial", Node("add", (n, neg(k)))))))


def _prescript(p: Parser) -> Node:
    """Parse `{}^{10}C_4` and `_5P_2`, whose first sign, ^ or _, the parser has just passed.

    For anything else, return the node "empty" and move back before that sign.
    """
    start = p.position - 1
    n = num(p.take().value or 0) if p.peek().kind == "num" else p.argument(whole_number=True)
    letter = p.take()
    if letter.kind == "sym" and letter.text in ("C", "P", "A") and p.accept("_", "^"):
        return _selections(letter.text, n, p.argument(whole_number=True))
    p.position = start
    return Node("empty", ())


def _words(p: Parser) -> Node:
    """Parse what a word begins: a currency with its amount, a value that words introduce ("exactly 5"), or a text."""
    text = p.peek(-1).text
    if len(text) == 1 and text.isascii():
        return _letter(p)
    if (currency := _CURRENCIES.get(text.lower())) is not None:
        value = p.expression(PRODUCT)
        return value if value.op == "quantity" else Node("quantity", (value, currency))
    if p.starts_value() and leads_to_value(text):
        return p.expression(POWER)
    return Node("text", (text,))


# --- commands ---
def _command(p: Parser) -> Node:
    """Return a constant, or what the rule of the command reads."""
    name = p.peek(-1).text
    if name.startswith("directed "):
        first, last = name[-2], name[-1]  # the vector from point A to point B; BA is the opposite of AB
        return sym(name) if first <= last else neg(sym(f"directed {last}{first}"))
    return _CONSTANTS.get(name) or _COMMANDS.get(name, _function)(p)


def _fraction(p: Parser) -> Node:
    r"""Return `\frac{a}{b}`, or `frac(a, b)` of plain notation. Raises `Unreadable` for anything else and for d/dx."""
    # [1:]: without the name, which is the first argument of a "fn" node.
    parts = _call(p, "frac").args[1:] if p.peek().kind == "(" else (p.argument(), p.argument())
    if len(parts) != 2 or any(part.op in ("empty", "list", "set") for part in parts):
        raise Unreadable("a fraction without a numerator or denominator")
    top, bottom = parts
    letter = top.args[0] if top.op == "pow" else top  # the d of d²/dx²; the dx has been read as one symbol, "d x"
    if letter in _DERIVES and any(name.startswith(f"{letter.args[0]} ") for name in symbols(bottom)):
        raise Unreadable("an unevaluated derivative")
    return Node("div", parts)


def _root(p: Parser) -> Node:
    r"""Return `\sqrt{a}`, `\sqrt[n]{a}`, `cbrt(a)`; a root whose degree is not a number becomes a power."""
    degree = num(3 if p.peek(-1).text == "cbrt" else 2)
    if p.peek(-1).text == "sqrt" and p.accept("["):
        degree = p.expression()
        p.expect("]")
    radicand = p.argument(whole_number=True)
    if degree.op != "num":
        return Node("pow", (radicand, Node("div", (num(1), degree))))
    return Node("root", (degree, radicand))


def _binomial(p: Parser) -> Node:
    r"""Return `\binom{n}{k}`, or `binom(n, k)` of plain notation."""
    return _call(p, "binom") if p.peek().kind == "(" else Node("fn", ("binom", p.argument(), p.argument()))


def _barred(p: Parser) -> Node:
    """Return a letter with a mark above it as a separate letter; for anything else, the function "bar" of it."""
    name, inner = p.peek(-1).text, p.argument()
    return sym(f"{name} {inner.args[0]}") if inner.op == "sym" else Node("fn", ("bar", inner))


def _call(p: Parser, name: str) -> Node:
    """Parse the arguments of the function `name` in round brackets."""
    p.expect("(")
    arguments = p.inside(")")
    return Node("fn", (name, *(arguments.args if arguments.op == "list" else (arguments,))))


def _function(p: Parser) -> Node:
    r"""Parse a function with its base, exponent and argument: `\log_2 x`, `\sin^2 x`, `max(a, b)`; `\max f` is a name.

    Raises `Unreadable` for a subscript on any other function, and for a base or exponent without an argument.
    """
    name = p.peek(-1).text
    base, exponent = p.scripts()
    if base is not None and name != "log":
        raise Unreadable(f"a subscript of {name}")
    call = _function_with_argument(p, name)
    if call is None and (exponent is not None or base is not None):
        raise Unreadable(f"{name} without an argument")
    if call is None:
        return sym(name)
    if base is not None:
        call = Node("fn", ("log", call.args[1], base))
    if name == "cis" and len(call.args) == 2:
        angle = call.args[1]  # cis t is cos t + i sin t
        call = Node("add", (Node("fn", ("cos", angle)), times(I, Node("fn", ("sin", angle)))))
    if exponent is None:
        return call
    if exponent == num(-1):
        return Node("fn", (f"arc{name}", *call.args[1:]))  # sin⁻¹ is the inverse function
    return Node("pow", (call, exponent))


def _function_with_argument(p: Parser, name: str) -> Node | None:
    """Parse the arguments of the function `name`, with or without brackets; None if none follow."""
    after = p.peek().kind
    if after == "(":
        return _call(p, name)
    if after in ("[", "{"):
        return Node("fn", (name, p.operand()))
    return Node("fn", (name, _bare_argument(p))) if p.starts_operand() or after == "-" else None


def _bare_argument(p: Parser) -> Node:
    """Parse the argument of a function without brackets: the factors up to a sign or the next function."""
    node = factor = p.expression(POWER)
    n_factors = 1
    while p.starts_operand():
        token = p.peek()
        # The argument of `sin 2(x + 1)` continues; that of `sin x (x + 1)` ends before the bracket.
        if token.kind in ("|", "…", "text", "begin") or (token.kind == "(" and factor.op != "num"):
            break
        if token.kind == "cmd" and token.text not in _GOES_ON:
            break
        factor = p.expression(POWER)
        node, n_factors = times(node, factor), n_factors + 1
    if n_factors == 1 and p.peek().kind == "/" and p.peek(1).kind == "num":
        p.take()
        node = Node("div", (node, p.expression(POWER)))
    return node


def _big_operator(p: Parser) -> Node:
    """Parse a sum, product, limit or integral with its limits and its body, which is one term.

    The node of a sum is `fn(name, index, start, end, body)`, the node of a limit omits `end`, and the node of an
    integral is `fn(name, limits…, body)`. Raises `Unreadable` for a sum, product or limit without limits.
    """
    name = p.peek(-1).text
    below, above = p.scripts()
    body = p.expression(PRODUCT)
    if below is None or below.op != "rel" or (name != "lim" and (above is None or below.args[1] != ("=",))):
        raise Unreadable(f"a {name} without limits")
    variable, start = below.args[0][:2]  # the sides of k = 1 or x → 0
    index = sym(f"k_sum {len(bound_letters(body)) + 1}")  # an integer, whose own letter means nothing outside
    subscripts = [here.args[0].partition("_")[2] for here in walk(body) if here.op in ("sym", "text", "apply")]
    # a_k is read as one name, which would keep its k. The subscript "sum 1" is the index of an inner sum.
    if any(str(variable.args[0]) in text and not text.startswith("sum ") for text in subscripts):
        index = variable
    limits = (index, start) if name == "lim" else (index, start, above)
    return Node("fn", (name, *limits, substitute(body, variable, index)))


_COMMANDS: dict[str, Callable[[Parser], Node]] = {
    "frac": _fraction,
    "sqrt": _root,
    "cbrt": _root,
    "binom": _binomial,
    **dict.fromkeys(("overline", "bar", "dot", "ddot", "mathring", "widebar"), _barred),
    **dict.fromkeys(LEFT_OPEN, _big_operator),
}
"""Name of a command → its rule; every other command is a function."""


# --- brackets ---
def _brackets(p: Parser) -> Node:
    """Parse what is in round or square brackets: an expression, a tuple, an interval, a list, rows of a matrix; empty
    brackets, and unlike brackets around anything but two items, raise `Unreadable`.
    """
    opening = p.peek(-1).kind
    is_row = p.rows and p.peek(-2).kind in ("[", ",")  # directly inside square brackets: perhaps of a matrix
    node = p.inside(")", "]", rows=opening == "[")
    ends = opening + p.peek(-1).kind
    if node.op != "list":
        if p.peek(-2).kind == ",":  # (5,)
            return Node("tuple", (node,))
        if is_row and ends == "[]" and p.peek().kind in (",", "]"):
            return Node("bracket", (node,))  # a row with one entry: [[1], [2]]
        return node.args[0] if node.op == "bracket" and len(node.args) == 1 else node  # [[1]]: not a matrix after all
    items = node.args
    if ends == "()":
        return Node("tuple", items)
    if ends != "[]":
        if len(items) != 2:
            raise Unreadable("mismatched brackets")
        return Node("interval", (*items, ends[0] == "[", ends[1] == "]"))
    if all(item.op == "bracket" and len(item.args) == len(items[0].args) for item in items):
        return Node("matrix", tuple(item.args for item in items))
    # An item that `is_row` treated as a row with one entry is that entry: [[1], 2].
    return Node("bracket", tuple(i.args[0] if i.op == "bracket" and len(i.args) == 1 else i for i in items))


def _group(p: Parser) -> Node:
    """Parse the inside of LaTeX's braces: a group, or a set if it has commas or |."""
    inner = p.peek()
    if inner.kind == "num" and p.peek(1).kind == "}" and inner.text.isdigit():
        p.position += 2
        return Node("num", (inner.value, -1))  # most groups are integers, which no rule below reads differently
    if p.accept("}"):
        if p.accept("_", "^"):
            return _prescript(p)
        return p.argument(whole_number=True) if p.starts_operand() else Node("empty", ())
    if (mark := p.mark()) is not None:  # 90^{\circ}
        p.expect("}")
        return mark
    # Plain TeX writes {a \over b} and {n \choose k}.
    node = p.inside("}", "over", "choose")
    closing = p.peek(-1).kind
    if closing == "}":
        return Node("set", node.args) if node.op == "list" else node
    right = p.inside("}")
    return Node("div", (node, right)) if closing == "over" else Node("fn", ("binom", node, right))


def _braces(p: Parser) -> Node:
    r"""Parse the inside of `\{…\}`: items, or a set defined by a condition after a bar or colon."""
    if p.accept("rset"):
        return Node("set", ())
    _colon_as_bar(p)
    node = p.inside("rset", "|", bars=1)  # the bar of {x | x > 0} does not open an absolute value
    if p.peek(-1).kind == "|":
        return _builder(node, p.inside("rset"))
    return Node("set", node.args if node.op == "list" else (node,))


def _colon_as_bar(p: Parser) -> None:
    r"""Replace the colon of `\{x : x > 0\}`, which a relation follows, with a bar, so that it is not read as a ratio.

    Only the first colon directly inside the braces counts. This changes the parser's tokens.
    """
    depth, colon = 0, -1  # colon: its index; -1 before it is found
    for index, token in enumerate(p.tokens[p.position :], p.position):
        depth += (token.kind in OPENING) - (token.kind in CLOSING)
        if depth < 0 or (depth == 0 and token.kind == "|"):
            return
        if depth == 0 and token.kind == ":" and colon < 0:
            colon = index
        if depth == 0 and token.kind == "rel" and colon >= 0:
            p.tokens[colon] = MathToken("|", "|")
            return


def _builder(variable: Node, condition: Node) -> Node:
    """Return the set of the values of `variable` for which `condition` holds; {x ∈ R | …} is {x | …}."""
    if variable.op == "member" and variable.args[1] == sym("R"):
        variable = variable.args[0]
    return Node("builder", (variable, condition))


def _rounded(p: Parser) -> Node:
    """Return ⌊a⌋ or ⌈a⌉."""
    opening = p.peek(-1).kind
    inner = p.expression(SIDE)
    p.expect("rfloor", "rceil")
    return Node("fn", ("floor" if opening == "lfloor" else "ceil", inner))


def _absolute(p: Parser) -> Node:
    """Return |a|; for a matrix, its determinant."""
    p.bars += 1  # while one is open, a bar closes it and never opens another: |a|b|c| is |a| · b · |c|
    inner = p.expression(SIDE)  # up to the bar; a relation such as a = b is not part of it
    p.bars -= 1
    p.expect("|")
    return _determinant(inner.args) if inner.op == "matrix" else Node("fn", ("abs", inner))


def _sign(p: Parser) -> Node:
    """Return ∅ as an empty set, or an ellipsis as a letter."""
    return Node("set", ()) if p.peek(-1).kind == "∅" else sym("…")


def _environment(p: Parser) -> Node:
    """Parse the rows of an environment into a matrix, cases, or a list of lines. Raises `Unreadable`."""
    name, rows = p.peek(-1).text, list[list[Node]]([[]])
    delimiter = ""  # the kind of the token that ended the latest cell
    while delimiter != "end":
        delimiter = p.accept("&", "row", "end")  # after an empty cell
        if not delimiter:
            # The word of a condition, as in "x & \text{if } x > 0", is not part of it.
            if name == "cases" and rows[-1] and p.peek().kind == "text" and p.peek().text.lower() in _CONDITIONAL:
                p.take()
            rows[-1].append(p.inside("&", "row", "end"))
            delimiter = p.peek(-1).kind
        if delimiter == "row":
            rows.append([])
    if p.peek(-1).text != name:
        raise Unreadable("an unclosed environment")
    lines = [tuple(row) for row in rows if row]
    if not lines:
        raise Unreadable("an empty environment")
    if name == "cases":
        return Node("cases", tuple(Node("list", cells) if len(cells) > 1 else cells[0] for cells in lines))
    if name in _MATRICES or name == "vmatrix":
        if any(len(cells) != len(lines[0]) for cells in lines):
            raise Unreadable("rows of different lengths")
        return _determinant(tuple(lines)) if name == "vmatrix" else Node("matrix", tuple(lines))
    parts = tuple(cell for cells in lines for cell in cells)
    return parts[0] if len(parts) == 1 else Node("list", parts)


def _determinant(rows: tuple[tuple[Node, ...], ...]) -> Node:
    """Return the determinant, expanded along the first row, as a sum. Raises `Unreadable` if it is too large."""
    if not len(rows) == len(rows[0]) <= _MAX_ROWS:
        raise Unreadable("an unevaluated determinant")
    if len(rows) == 1:
        return rows[0][0]
    terms = (
        times(cell, _determinant(tuple(row[:n] + row[n + 1 :] for row in rows[1:]))) for n, cell in enumerate(rows[0])
    )
    return Node("add", tuple(neg(term) if n % 2 else term for n, term in enumerate(terms)))


OPERANDS: dict[str, Callable[[Parser], Node]] = {
    "num": _number,
    "sym": _letter,
    "text": _words,
    "cmd": _command,
    "begin": _environment,
    **dict.fromkeys(("(", "["), _brackets),
    "{": _group,
    "lset": _braces,
    **dict.fromkeys(("lfloor", "lceil"), _rounded),
    "|": _absolute,
    "_": _prescript,
    **dict.fromkeys(("∅", "…"), _sign),
}
"""Kind of a token → the rule for the operand that it begins."""
