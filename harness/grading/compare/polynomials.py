r"""Polynomials and their quotients, read and compared in one pass: `(3x+2)(x-1)`, `\frac{x^2}{4} - 2xy`.

Most expressions with letters are of this kind, and a tree of nodes takes ten times as long. The verdict is that of
`modular.identical_in_field`, by the same residues:

    text ─ _SHAPE: it has no other signs than these ─ _SIGN: its signs ─ _Evaluator: its residue at one point

    sum      = ["+" | "-"] product { ("+" | "-") product }
    product  = factor { ["*" | "/"] factor }          a number stands first, or behind "*" or "/"
    factor   = (number | letter | "(" sum ")" | "\frac{" sum "}{" sum "}") [exponent]

What has another reading anywhere in `harness.answers.grammar` is left to that grammar: `f(x)`, `(a)`, `3\frac{1}{2}`,
`1 2`, `2x 3`, i and e. So both ways of reading give the same verdict, rule and vote.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from string import ascii_letters
from typing import NamedTuple

from harness.answers.grammar.tree import sym
from harness.grading.compare.modular import PRIME_BITS, NotModular, Residues, inverse
from harness.grading.compare.scalars import Comparison

_MAX_CHARS = 120
_MAX_BRACKETS = 8
"""Largest depth of brackets inside one another."""

_LETTER = r"(?:[b-df-hj-oq-tv-zA-DF-TV-Z]|[ap](?!\s*+m))(?![a-zA-Z])|[xyz](?=[xyz])"
r"""A letter alone, or one in a run of x, y and z. Not i, e, E, which make numbers; u, which may be ∪; the a of a.m."""

_SIGN = re.compile(
    rf"[0-9]{{1,15}}+(?![0-9.])|{_LETTER}|\^[2-9](?![0-9.])|\^\{{[1-9][0-9]?\}}"
    r"|[-+*/()]|\\cdot(?![a-zA-Z])|\\left\(|\\right\)|\\[dt]?frac\{|\}\{|\}"
)
_SHAPE = re.compile(rf"(?=[^a-zA-Z]*+[a-zA-Z])(?=[^+*/^0-9]*+[+*/^0-9])(?:{_SIGN.pattern}|\x20)++")
"""A text of signs of polynomials. Excluded are numbers, and texts of letters, brackets and hyphens, which may be words.
"""

_FRACTION = "\\frac{"
_PLAIN = {"\\cdot": "*", "\\left(": "(", "\\right)": ")", "\\dfrac{": _FRACTION, "\\tfrac{": _FRACTION}
_END = "end"
_EXPONENTS = {sign: n for n in range(1, 100) for sign in (f"^{{{n}}}", *([f"^{n}"] if 2 <= n <= 9 else []))}
_FREE_LETTERS = frozenset("CcKkDAB")
"""Letters that may be free constants (see the module `constants`): different residues then do not prove a difference.
"""

_BEFORE_BRACKET = frozenset("xyz")
"""Letters that are a factor beside the bracket behind them; any other letter may be a function of the bracket."""


class Polynomial(NamedTuple):
    """A polynomial or quotient of polynomials.

    residue: its value in the first field, at the point of `modular`. bits: a bound of its coefficients, in bits.
    leaves: its numbers and letters in their order; equal trees have equal leaves. letters: at least one.
    """

    residue: int
    bits: int
    leaves: tuple[str, ...]
    letters: frozenset[str]


class _OtherReadingError(ValueError):
    """The text is not of this grammar, or another rule may read it differently."""


@lru_cache(maxsize=1_024)
def polynomial(text: str) -> Polynomial | None:
    """Return the polynomial that `text` is; None if it is no polynomial, has no letter, or may be something else."""
    if len(text) > _MAX_CHARS or _SHAPE.fullmatch(text) is None:
        return None
    signs = _SIGN.findall(text)
    reader = _Evaluator([_PLAIN.get(sign, sign) for sign in signs] if "\\" in text else signs)
    try:
        residue, bits = reader.sum(_END, 0)
    except (_OtherReadingError, NotModular):
        return None
    letters = reader.residues.keys() & reader.leaves
    return Polynomial(residue, bits, tuple(reader.leaves), frozenset(letters)) if letters else None


def same_polynomials(reference: str, answer: str) -> Comparison | None:
    """Compare two polynomials; None if a side is no polynomial, or if another rule may decide the pair."""
    left = polynomial(reference)
    right = None if left is None else polynomial(answer)
    if left is None or right is None or left.bits + right.bits >= PRIME_BITS - 1:
        return None
    if left.residue == right.residue:
        # Equal leaves may be equal trees or texts, whose rules have other names.
        return None if left.leaves == right.leaves else Comparison(True, "field")
    if left.letters != right.letters or left.letters & _FREE_LETTERS:
        return None
    return Comparison(False, "field")


@cache
def _field() -> tuple[int, dict[str, int]]:
    """Return the prime of the first field, and the residues of the letters at its first point."""
    field = Residues()
    return field.prime, {letter: field.value(sym(letter)) for letter in ascii_letters}


@lru_cache(maxsize=1_024)
def _power(residue: int, exponent: int) -> int:
    return pow(residue, exponent, _field()[0])


class _Evaluator:
    """Evaluates the signs of a polynomial from the left. position: of the next sign. leaves: the numbers and letters
    that were read so far.
    """

    def __init__(self, signs: list[str]) -> None:
        signs += (_END, _END)  # the second one for a look ahead
        self.signs = signs
        self.position = 0
        self.leaves: list[str] = []
        self.prime, self.residues = _field()

    def sum(self, closing: str, depth: int) -> tuple[int, int]:
        """Read a sum up to the sign `closing`, and pass the sign. Raises `_OtherReadingError`.

        Returns the value modulo a prime, and a bound of the coefficients, in bits. depth: brackets around it.
        """
        signs, total, bits, terms = self.signs, 0, 0, 0
        sign = signs[self.position]
        while sign != closing or not terms:
            if sign == "+" or sign == "-":
                self.position += 1
            elif terms:
                raise _OtherReadingError
            residue, more = self.product(depth)
            total += -residue if sign == "-" else residue
            bits, terms = bits + more, terms + 1
            sign = signs[self.position]
        self.position += 1
        return total % self.prime, bits + terms.bit_length() if terms > 1 else bits

    def product(self, depth: int) -> tuple[int, int]:
        """Read a term of a sum, such as `3x^2`. Raises `_OtherReadingError`, `NotModular`.

        Returns the value modulo a prime, and a bound of the coefficients, in bits. depth: brackets around it.
        """
        signs, prime, residues = self.signs, self.prime, self.residues
        product, bits, divides, before = 1, 0, False, ""  # before: the sign side by side with the next factor
        while True:
            sign = signs[self.position]
            self.position += 1
            letter = residues.get(sign)
            if letter is not None:
                self.leaves.append(sign)
                residue, more = letter, 0
            elif not before and sign.isdigit():
                self.leaves.append(sign.lstrip("0"))
                residue = int(sign)
                more = residue.bit_length()
            else:
                residue, more = self.bracket(sign, before, depth)
                sign = ")"
            before, sign = sign, signs[self.position]
            exponent = _EXPONENTS.get(sign)
            if exponent is not None:
                self.position += 1
                residue, more = _power(residue, exponent), more * exponent
                before, sign = ")", signs[self.position]
            bits += more
            if divides:
                product = product * inverse(residue, prime) % prime
            else:
                product = residue if product == 1 else product * residue % prime
            if sign in _ENDING:
                return product, bits
            divides = sign == "/"
            if divides or sign == "*":
                self.position += 1
                before = ""

    def bracket(self, sign: str, before: str, depth: int) -> tuple[int, int]:
        """Read what the sign `sign` opens: a bracket or a fraction. Raises `_OtherReadingError`, `NotModular`.

        Returns the value modulo a prime, and a bound of the coefficients, in bits. depth: brackets around it.
        """
        if depth == _MAX_BRACKETS:
            raise _OtherReadingError
        if sign == "(" and (before in _BEFORE_BRACKET or not before.isalpha()):
            if self.signs[self.position + 1] == ")":
                raise _OtherReadingError  # (a) may be an option, (5) an argument
            return self.sum(")", depth + 1)
        if sign == _FRACTION and not before.isdigit():
            above, bits = self.sum("}{", depth + 1)
            below, bits_below = self.sum("}", depth + 1)
            return above * inverse(below, self.prime) % self.prime, bits + bits_below
        raise _OtherReadingError


_ENDING = frozenset(("+", "-", ")", "}{", "}", _END))
