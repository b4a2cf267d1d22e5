"""Identity of expressions by one evaluation in a finite field: fast, and exact for rational functions.

Every variable, pi, e and i gets a residue fixed by its name. Two rational functions that differ agree there with
probability below degree / 2**61 (Schwartz and Zippel). A function such as sin(u) stands for a new variable that
depends on its name and on the value of u: agreement then still proves equality, disagreement proves nothing.
"""

from __future__ import annotations

from hashlib import blake2b

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.tree import Node

_P = (1 << 61) - 1


class NotModular(ValueError):
    """The node has no value in the field."""


class Residues:
    """Evaluates trees; `opaque` tells whether a function had to stand for a variable."""

    def __init__(self) -> None:
        self.opaque = False

    def value(self, node: Node, depth: int = 0) -> int:
        """The residue of an expression. Raises `NotModular`."""
        if depth > 4 * MAX_DEPTH:
            raise NotModular("nested too deeply")
        op, args = node
        depth += 1
        if op == "num":
            number = args[0]
            return int(number.numerator) * pow(int(number.denominator), -1, _P) % _P
        if op in ("sym", "const"):
            if args[0] in ("inf", "nan"):
                raise NotModular("infinity")
            if args[0] == "i":
                self.opaque = True  # i² = -1 is not seen here
            return _residue(op, args[0])
        if op == "add":
            return sum(self.value(term, depth) for term in args) % _P
        if op == "mul":
            product = 1
            for factor in args:
                product = product * self.value(factor, depth) % _P
            return product
        if op == "neg":
            return -self.value(args[0], depth) % _P
        if op == "div":
            bottom = self.value(args[1], depth)
            if bottom == 0:
                raise NotModular("division by zero")
            return self.value(args[0], depth) * pow(bottom, -1, _P) % _P
        if op == "pow":
            return self.power(args[0], args[1], depth)
        if op == "root":
            return self.function("root", [self.value(part, depth) for part in args])
        if op == "fn":
            return self.function(args[0], [self.value(part, depth) for part in args[1:]])
        if op == "apply":
            inner = args[1]
            parts = inner.args if inner.op == "list" else (inner,)
            return self.function(f"apply {args[0]}", [self.value(part, depth) for part in parts], hides=False)
        if op == "deg":
            return self.value(args[0], depth) * _residue("const", "pi") * pow(180, -1, _P) % _P
        if op == "pct":
            return self.value(args[0], depth) * pow(100, -1, _P) % _P
        raise NotModular(op)

    def power(self, base: Node, exponent: Node, depth: int) -> int:
        number = exponent.args[0] if exponent.op == "num" else None
        if exponent.op == "neg" and exponent.args[0].op == "num":
            number = -exponent.args[0].args[0]
        if number is not None and number.denominator == 1 and abs(number.numerator) < 10_000:
            value = self.value(base, depth)
            if value == 0 and number <= 0:
                raise NotModular("a power of zero")
            return pow(value, int(number), _P)
        return self.function("pow", [self.value(base, depth), self.value(exponent, depth)])

    def function(self, name: str, values: list[int], hides: bool = True) -> int:
        self.opaque = self.opaque or hides
        if name == "abs":
            values = [min(values[0], _P - values[0])]
        elif name in ("gcd", "lcm", "max", "min"):
            values = sorted(values)
        return _residue(name, *values)


def _residue(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") % _P
