"""A tree written on one line: for people, and as the vote of an answer that has no simpler form."""

from __future__ import annotations

from harness.answers.grammar.tree import Node

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
    """Return `node` on one line; nodes inside it that need brackets have them."""
    op, args = node
    if op == "num":
        # Writing an integer takes time quadratic in its digits, and nobody reads a thousand of them.
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
