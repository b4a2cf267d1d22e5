"""The rules for what stands behind an atom: exponents, indices, units, degrees, percent, factorials, primes."""

from __future__ import annotations

from harness.answers.grammar.atoms import Atoms
from harness.answers.grammar.cursor import begins_condition, times
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.tree import Node, neg, num, sym
from harness.answers.grammar.units import split_scale

_BASES = {
    name: base for base, name in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 2)
}
"""Bases by their names, as in `101_{\\text{two}}`."""

_TRANSPOSED = (sym("T"), sym("t"), sym("top"), sym("intercal"))
"""Exponents that transpose a matrix or vector."""


class Powers(Atoms):
    """The rules of the grammar for a factor and the exponents, units and marks behind it."""

    def power(self) -> Node:
        """Parse an atom with the exponents, indices, units and marks behind it."""
        self.enter_rule()
        node = self.postfix(self.atom())
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node:
        """Parse all that stands behind `node`, and return `node` with it."""
        while True:
            token = self.peek()
            if token.kind == "text" and not begins_condition(token) and node.op != "text":
                node = self.unit(node)
            elif token.kind == "text" and node.op == "text":
                self.position += 1
                node = Node("text", (f"{node.args[0]} {token.text}",))
            elif token.kind != "op":
                return node
            elif token.text == "^":
                self.position += 1
                node = self.parse_superscript(node)
            elif token.text == "_":
                self.position += 1
                node = self.parse_subscript(node)
            elif token.text == "!":
                self.position += 1
                double = self.accept("!")
                node = Node("fn", ("double factorial" if double else "factorial", node))
            elif token.text == "°":
                self.position += 1
                if node.op in ("sym", "apply") and self.starts_atom():
                    raise Unreadable("a composition of functions")  # f ∘ g is no product
                node = self.degrees(node)
            elif token.text == "%":
                self.position += 1
                node = Node("pct", (node,))
            elif token.text == "'":
                self.position += 1
                node = sym(f"{node.args[0]}'") if node.op == "sym" else Node("fn", ("prime", node))
            elif node.op == "sym" and self.applies_function(node.args[0]):
                node = self.applied(node.args[0])  # f'(2), J_0(0), \mathbb{E}(X)
            else:
                return node

    def degrees(self, node: Node) -> Node:
        """Return `node` in degrees of an angle, or of a temperature if C or F follows."""
        token = self.peek()
        if token.kind in ("sym", "text") and token.text in ("C", "F") and not self.starts_function():
            self.position += 1
            return Node("quantity", (node, "celsius" if token.text == "C" else "fahrenheit"))
        return Node("deg", (node,))

    def starts_function(self) -> bool:
        """Whether the letter that comes next has a bracket, index or exponent: then it is no unit of temperature."""
        return self.peek(1).kind == "op" and self.peek(1).text in ("(", "_", "^")

    def unit(self, node: Node) -> Node:
        """Parse the words behind `node`: a unit with its exponent, "million", a.m. or p.m., "percent"."""
        words = [self.take().text]
        while True:
            if self.accept("^"):
                exponent = self.argument()
                value = exponent.args[0] if exponent.op == "num" else None
                if value is None or value.denominator != 1:
                    return Node("quantity", (node, words[0]))  # 12^{\text{th}} and the like
                words.append(f"^{value}")
            elif self.peek().kind == "text" and not begins_condition(self.peek()):
                words.append(" " + self.take().text)
            elif self.is_op("/", "*") and self.peek(1).kind == "text":
                words.append(self.take().text + self.take().text)
            else:
                break
        factor, joined = split_scale("".join(words))
        if factor != 1:
            if self.peek().kind == "num":
                raise Unreadable("a number behind a numeral of scale")
            node = num(node.args[0] * factor) if node.op == "num" else times(node, num(factor))
            if not joined:
                return node
        lower = joined.lower().strip(" .")
        if lower.replace(".", "").replace(" ", "") in ("am", "pm"):
            return Node("quantity", (node, lower.replace(".", "").replace(" ", "")))
        if lower in ("percent", "percentage", "pct", "per cent", "percents"):
            return Node("pct", (node,))
        if lower in ("degrees", "degree", "度"):
            return Node("deg", (node,))
        if lower in ("th", "st", "nd", "rd"):
            return node
        if lower == "below zero":
            return neg(node)
        if node.op == "quantity":
            return Node("quantity", (node.args[0], f"{node.args[1]} {joined}"))
        return Node("quantity", (node, joined.strip()))

    def parse_superscript(self, base: Node) -> Node:
        """Parse what stands behind the `^` of `base`: an exponent, degree sign, primes, transpose, the th of 12th."""
        if self.accept("°"):
            return self.degrees(base)
        if self.is_op("'"):
            primes = 0
            while self.accept("'"):
                primes += 1
            return sym(f"{base.args[0]}" + "'" * primes) if base.op == "sym" else Node("fn", ("prime", base))
        exponent = self.argument(whole_number=True)
        if self.is_op("^") and exponent.op in ("num", "sym"):  # a tower without braces: 9^9^9
            self.position += 1
            exponent = self.parse_superscript(exponent)
        # `^{}` prints nothing.
        if exponent.op == "empty":
            return base
        if base.op in ("matrix", "tuple", "bracket") and exponent in _TRANSPOSED:
            return _transpose(base)
        if exponent.op == "degree sign":
            return self.degrees(base)
        if exponent.op == "prime sign":
            return sym(f"{base.args[0]}'") if base.op == "sym" else Node("fn", ("prime", base))
        if exponent.op == "text":
            if exponent.args[0].lower() in ("th", "st", "nd", "rd"):
                return base
            return Node("quantity", (base, exponent.args[0]))
        # `\sin^2 x`: the function has no argument yet, and the exponent stands before it.
        if base.op == "fn" and len(base.args) == 1:
            return Node("fn", (base.args[0], exponent))
        return Node("pow", (base, exponent))

    def parse_subscript(self, base: Node) -> Node:
        """Parse the subscript behind `base` and `_`. Behind digits it is the base that they are written in (`1F_{16}`),
        behind a name an index (`x_1`).
        """
        start = self.position  # the `_` is the token before it, and the last token of `base` the one before that
        index = self.argument(whole_number=True)
        if index.op == "text" and index.args[0].lower() in _BASES:
            index = num(_BASES[index.args[0].lower()])
        # Digits above nine, as in 1F_{16}, were read as words.
        if base.op == "text" and base.args[0].isalnum() and base.args[0].isupper() and index.op == "num":
            return Node("base", (base.args[0], int(index.args[0])))
        if self.tokens[start - 2].text == ")" and index.op == "num" and (digits := self.digits_in_brackets(start - 3)):
            return Node("base", (digits, int(index.args[0])))
        if base.op == "num" or (base.op == "quantity" and base.args[0].op == "num"):
            before = self.tokens[start - 2]
            if index.op == "num" and index.args[0].denominator == 1 and before.kind == "num":
                return Node("base", (before.text, int(index.args[0])))
            raise Unreadable("a subscript of a number that is no base")
        label = "".join(token.text for token in self.tokens[start : self.position] if token.text not in ("{", "}"))
        if base.op == "sym":
            return sym(f"{base.args[0]}_{label}")
        # TeX sets x^2_1 as x_1^2.
        if base.op == "pow" and base.args[0].op == "sym":
            return Node("pow", (sym(f"{base.args[0].args[0]}_{label}"), base.args[1]))
        if base.op == "text":
            return Node("text", (f"{base.args[0]}_{label}",))
        raise Unreadable("a subscript")

    def digits_in_brackets(self, last: int) -> str:
        """Return the digits 2A of `(2A)_{16}`; last: index of their last token.

        "" if the brackets hold anything else.
        """
        digits = ""
        while last >= 0 and self.tokens[last].kind in ("num", "sym", "text"):
            digits = self.tokens[last].text + digits
            last -= 1
        return digits if last >= 0 and self.tokens[last].text == "(" and digits.isalnum() else ""


def _transpose(node: Node) -> Node:
    """Return the transposed matrix; a vector in brackets becomes the tuple of its entries."""
    if node.op != "matrix":
        return Node("tuple", node.args)
    return Node("matrix", tuple(zip(*node.args, strict=True)))
