"""The tree that an answer is parsed into: nodes with a name and parts, immutable and hashable. `show` writes it on one
line: for people, and as the vote of an answer with no simpler form.

A node records how the answer is written, not its value: `1/2` is div(num 1, num 2), `0.5` is num(1/2, places 1).
`reasoning_answers.compare` determines that both are the same number. The grammar makes these nodes:

Scalars          num(value: Fraction, places: int) · sym(name) · const("pi"|"e"|"i"|"inf"|"nan")
                 add(*terms) · mul(*factors) · div(a, b) · pow(base, exponent) · neg(a) · root(degree, a)
                 fn(name, *arguments): sin, abs, factorial …, and these whose arguments have a meaning by position:
                 fn("sum"|"prod", variable, from, to, body) · fn("lim", variable, to, body) · fn("int", low, high, body)
                 apply(name, argument): an unknown function, f(x) · base(digits, base): 204_5
Signs after      deg(a) · pct(a) · quantity(a, unit) · pm(a, b): a ± b · mp(a, b): a ∓ b
Text             text(words) · given(value, words): a value with a condition or remark that says something about it
Structures       list(*items): commas without brackets · tuple(*items) · set(*items)
                 bracket(*items): "[a, b]", a closed interval or a list · interval(low, high, closed_low, closed_high)
                 union(*sets) · inter(*sets) · minus(a, b) · builder(variable, condition) · member(a, set)
                 matrix(*rows, each a tuple) · cases(*list(value, condition))
                 rel((operands…), (signs…)): a = b < c · either(*relations): "a = 0 or b = 0"
                 ratio(*parts): 2:3 · congruence(value, modulus): 5 (mod 7)

places: digits after the decimal point as written; -1 for a number without a point. 1.50 and 1.5 differ only in this.
`empty` and `mark`, a degree sign or a prime as an exponent, occur only inside the grammar.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A node: `op` names its kind, `args` are its parts: nodes, tuples of nodes, names or numbers."""

    op: str
    args: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The name of a sym, const, fn or apply."""
        return str(self.args[0])

    @property
    def value(self) -> Fraction:
        """The value of a num."""
        return self.args[0]  # type: ignore[no-any-return]


def names(words: str) -> frozenset[str]:
    """Split a line into its words; return them as a set."""
    return frozenset(words.split())


def num(value: int | Fraction, places: int = -1) -> Node:
    """Return the node of a number. places: digits after its decimal point as written; -1 for a number without one."""
    return Node("num", (value if type(value) is Fraction else Fraction(value), places))


def sym(name: str) -> Node:
    """Return the node of a letter: a variable, or the name of a quantity."""
    return Node("sym", (name,))


def neg(node: Node) -> Node:
    """Return the node of -node; for a literal, the literal with the opposite sign."""
    if node.op == "num":
        return Node("num", (-node.args[0], node.args[1]))
    return Node("neg", (node,))


PI = Node("const", ("pi",))
E = Node("const", ("e",))
I = Node("const", ("i",))  # noqa: E741  the name of the imaginary unit
INFINITY = Node("const", ("inf",))

SETS = frozenset(("set", "interval", "union", "inter", "minus", "builder"))
"""Kinds of nodes that represent sets of numbers."""

LEFT_OPEN = names("sum prod int iint oint iiint lim")
"""Functions with a bound variable. Only finite sums and products are evaluated; an answer with any other is undecided.
"""

STRUCTURES = SETS | names("list tuple bracket matrix cases rel either member ratio text congruence given")
"""Kinds of nodes that hold several values, words or a relation, and so are not scalars."""


def walk(node: Node) -> list[Node]:
    """Return every node of the tree, `node` first; a node that occurs twice is returned twice. Without recursion."""
    nodes: list[Node] = []
    stack = [node]
    while stack:
        here = stack.pop()
        nodes.append(here)
        for part in here[1]:
            kind = type(part)  # twice as fast as isinstance, and each comparison walks its trees a dozen times
            if kind is Node:
                stack.append(part)
            elif kind is tuple:
                stack.extend([inner for inner in part if type(inner) is Node])
    return nodes


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the letters in the tree."""
    return frozenset([args[0] for op, args in walk(node) if op == "sym"])


def bound_letters(node: Node) -> frozenset[str]:
    """Return the letters that are bound by sums and products in the tree, such as n in a sum over n."""
    bound = [here.args[1] for here in walk(node) if here.op == "fn" and here.args[0] in ("sum", "prod")]
    return frozenset[str]().union(*map(symbols, bound))


def substitute(node: Node, variable: Node, value: Node) -> Node:
    """Return the tree with `value` in place of each `variable`."""
    if node == variable:
        return value
    if not any(isinstance(part, Node | tuple) for part in node.args):
        return node
    return Node(node.op, tuple(_substituted(part, variable, value) for part in node.args))


def _substituted(part: Any, variable: Node, value: Node) -> Any:
    if isinstance(part, Node):
        return substitute(part, variable, value)
    return tuple(_substituted(inner, variable, value) for inner in part) if isinstance(part, tuple) else part


def is_scalar(node: Node) -> bool:
    """Whether the tree is a single number or expression, with no structure as a part."""
    stack = [node]
    while stack:
        op, args = stack.pop()
        if op in STRUCTURES:
            return False
        stack.extend([part for part in args if type(part) is Node])
    return True


# --- on one line ---
_SIGNS = {
    "add": " + ",
    "mul": "·",
    "div": "/",
    "pow": "^",
    "union": " ∪ ",
    "inter": " ∩ ",
    "minus": " ∖ ",
    "ratio": ":",
    "either": " or ",
    "congruence": " mod ",
}
_BRACKETS = {"list": ("", ""), "tuple": ("(", ")"), "set": ("{", "}"), "bracket": ("[", "]")}


def show(node: Node) -> str:
    """Return `node` on one line, with brackets around inner nodes that need them."""
    op, args = node
    if op == "num":
        # Writing an integer takes time quadratic in its digits, and nobody reads a thousand digits.
        return str(args[0]) if max(args[0].numerator.bit_length(), args[0].denominator.bit_length()) < 4_000 else "…"
    if op in ("sym", "const", "text"):
        return str(args[0])
    if op == "neg":
        return f"-{_inner(args[0])}"
    if op in _SIGNS:
        return _SIGNS[op].join(_inner(part) for part in args)
    if op in _BRACKETS:
        opening, closing = _BRACKETS[op]
        return opening + ", ".join(show(part) for part in args) + closing
    if op == "interval":
        return f"{'[' if args[2] else '('}{show(args[0])}, {show(args[1])}{']' if args[3] else ')'}"
    if op == "rel":
        operands, signs = args
        parts = [show(operands[0])]
        for sign, operand in zip(signs, operands[1:], strict=True):
            parts += [sign, show(operand)]
        return " ".join(parts)
    if op == "matrix":
        return "[" + "; ".join(", ".join(show(cell) for cell in row) for row in args) + "]"
    if op == "base":
        return f"{args[0]} in base {args[1]}"
    if op == "quantity":
        return f"{_inner(args[0])} {args[1]}"
    if op in ("deg", "pct"):
        return f"{_inner(args[0])}{'°' if op == 'deg' else '%'}"
    name, inner = (args[0], args[1:]) if op in ("fn", "apply") else (op, args)
    return f"{name}({', '.join(_part(part) for part in inner)})"


def _part(part: object) -> str:
    """Return one part of a node as text. The part is a node, a tuple of nodes, a name or a number."""
    if isinstance(part, Node):
        return show(part)
    return f"({', '.join(map(_part, part))})" if isinstance(part, tuple) else str(part)


def _inner(node: Node) -> str:
    """Return `node` as part of another node: in brackets if the line could be misread without them."""
    shown = show(node)
    return f"({shown})" if node.op in ("add", "neg", "div", "mul", "pm", "mp", "union") else shown
