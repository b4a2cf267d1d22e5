"""Identity of expressions by evaluation in finite fields: fast, and a proof for rational functions.

Every letter, pi and e get a pseudorandom residue, determined by the name; i is a root of -1. Let the difference of two
rational functions be P / Q with integer polynomials, where P has degree d and coefficients whose absolute values sum to
at most 2^b. If P is not 0, then among any b / 254 + 1 primes of 255 bits there is one modulo which P is not 0, and
there its residue is 0 with a probability below d / 2²⁵⁴ (Schwartz and Zippel). Bounds of d and b are computed along
with the residues.

A function such as sin u is treated as a new letter, whose residue depends on its name and on the residue of u. Then
equal residues still prove the identity, but different residues prove nothing; the attribute `opaque` records this case.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from math import gcd, isqrt, prod
from typing import NamedTuple

from reasoning_answers.bounds import MAX_DEPTH
from reasoning_answers.grammar.tree import PI, Node, num

PRIME_BITS = 255
_MAX_DEGREE = 1 << 160
"""Largest bound of a degree; the probability of a false identity is then below 2⁻⁹⁴."""

_MAX_COEFFICIENT_BITS = 20_000
"""Largest bound of coefficients, in bits; it requires 79 primes."""

_MAX_EXPONENT = 1 << 64
"""Powers with exponents of at least this size, of either sign, are not computed; a letter stands for the power."""

_MAX_KNOWN = 256
"""Number of trees whose residues are cached."""

MAX_PRIMES = 2 * _MAX_COEFFICIENT_BITS // PRIME_BITS + 1
"""Largest number of primes by which two expressions are compared."""


class NotModular(ValueError):
    """The node has no value in the field, or its bounds are too large."""


class _Residue(NamedTuple):
    """The value of an expression modulo a prime, with two bounds that determine how many primes a proof needs.

    degree: bound of the degrees of numerator and denominator together. bits: bound of their coefficients, in bits.
    """

    residue: int
    degree: int
    bits: int


@lru_cache(maxsize=_MAX_COEFFICIENT_BITS // PRIME_BITS + 2)
def _prime(index: int) -> int:
    """Return the prime of 255 bits with this number: always the same prime, congruent to 1 modulo 4.

    Modulo such a prime, -1 has a square root, which represents i.
    """
    candidate = int.from_bytes(blake2b(f"prime {index}".encode(), digest_size=32).digest(), "big") >> 1
    candidate |= (1 << (PRIME_BITS - 1)) | 1  # of 255 bits, and odd
    candidate += -(candidate - 1) % 4  # of remainder 1 modulo 4
    # The common divisor sieves out most candidates before the costly powers of the test.
    while gcd(candidate, _SMALL_PRIMES) > 1 or not _is_prime(candidate):
        candidate += 4
    return candidate


_SMALL_PRIMES = prod(n for n in range(3, 1_000, 2) if all(n % divisor for divisor in range(3, isqrt(n) + 1, 2)))
"""The product of all odd primes below 1,000."""


def _is_prime(number: int) -> bool:
    """Whether `number`, odd and of many digits, is prime by Fermat's test with thirty bases. Candidates come from a
    hash, so none can be crafted to pass.
    """
    return all(pow(base, number - 1, number) == 1 for base in range(2, 32))


@lru_cache(maxsize=128)
def _root_of_minus_one(prime: int) -> int:
    """Return a square root of -1 modulo the prime, as the residue of i."""
    # About half of all bases are nonsquares, and a nonsquare yields a root.
    roots = (pow(base, (prime - 1) // 4, prime) for base in range(2, 1_000))
    return next(root for root in roots if root * root % prime == prime - 1)


def identical_in_field(left: Node, right: Node) -> bool | None:
    """Whether two expressions are equal for all values of their letters; None if values modulo primes cannot tell."""
    try:
        for index in range(MAX_PRIMES):
            field = Residues(index)
            if field.value(left) != field.value(right):
                return None if field.opaque else False
            # A difference that is not 0, with coefficients of at most `bits` bits, vanishes modulo fewer primes than
            # were tried.
            if index >= field.bits // (PRIME_BITS - 1):
                return True
    except NotModular:
        pass
    return None


def _inverse(residue: int, prime: int) -> int:
    """Return 1 / residue modulo `prime`. Raises `NotModular` for 0."""
    try:
        return pow(residue, -1, prime)
    except ValueError as error:
        raise NotModular("division by zero") from error


def _bits(number: int) -> int:
    """Return an upper bound of log₂ |number|, in whole bits; 0 for -1, 0 and 1."""
    return (abs(number) - 1).bit_length() if number else 0


class Residues:
    """Calculates expressions modulo a prime, with a fixed residue for each letter.

    index: number of the prime. opaque: whether a letter replaced a function such as sin(x), so different residues prove
    nothing. bits: bound of the coefficients of all expressions calculated so far, in bits.
    """

    def __init__(self, index: int = 0) -> None:
        self.prime = _prime(index)
        self._index = index
        self.opaque = False
        self.bits = 0

    def value(self, node: Node) -> int:
        """Return the value of an expression modulo the prime. Raises `NotModular`."""
        evaluated = _cached_residue(node, self._index)
        if evaluated is None:
            raise NotModular("no residue")
        (residue, degree, bits), opaque = evaluated
        self.opaque = self.opaque or opaque
        self.bits += bits
        if degree > _MAX_DEGREE or self.bits > _MAX_COEFFICIENT_BITS:
            raise NotModular("too large")
        return residue


@lru_cache(maxsize=_MAX_KNOWN)
def _cached_residue(node: Node, index: int) -> tuple[_Residue, bool] | None:
    """Return an expression's value modulo a prime, and whether a letter replaced a function in it (`opaque`).

    None if the expression has no value modulo the prime. Cached, because a comparison and a vote (maj@k) need the same
    value. index: number of the prime.
    """
    point = _Point(index)
    try:
        return point.residue_of(node, 0), point.opaque
    except NotModular:
        return None


class _Point:
    """The evaluation of one tree modulo a prime. index: number of the prime. opaque: whether a letter replaced a
    function such as sin(x), so different residues prove nothing.
    """

    def __init__(self, index: int) -> None:
        self.prime = _prime(index)
        self.opaque = False

    def residue_of(self, node: Node, depth: int) -> _Residue:
        """Return the value of an expression modulo the prime, with the bounds of `_Residue`. Raises `NotModular`.

        depth: how many levels of the formula are above this part; too many raise an error.
        """
        if depth > 4 * MAX_DEPTH:
            raise NotModular("nested too deeply")
        op, args = node
        depth += 1
        if op == "num":
            top, bottom = args[0].numerator, args[0].denominator
            return _Residue(top * _inverse(bottom, self.prime) % self.prime, degree=0, bits=_bits(top) + _bits(bottom))
        if op in ("sym", "const"):
            if args[0] in ("inf", "nan"):
                raise NotModular("infinity")
            if op == "const" and args[0] == "i":
                return _Residue(_root_of_minus_one(self.prime), degree=0, bits=1)
            return _Residue(_digest_of_name(op, args[0]) % self.prime, degree=1, bits=0)
        if op in ("deg", "pct"):
            quotient = (Node("mul", (args[0], PI)), num(180)) if op == "deg" else (args[0], num(100))
            return self.residue_of(Node("div", quotient), depth)
        if op in ("add", "mul", "neg", "div"):
            return self._operation(op, [self.residue_of(part, depth) for part in args])
        if op == "pow":
            return self._power(args[0], args[1], depth)
        # A root is a new letter: √2 · √2 and 2 get different residues, which prove nothing.
        if op == "root":
            return self._function("root", args, depth)
        if op == "fn":
            return self._function(args[0], args[1:], depth)
        if op == "apply":
            inner = args[1]
            arguments = [self.residue_of(part, depth) for part in (inner.args if inner.op == "list" else (inner,))]
            return self._new_letter(f"apply {args[0]}", arguments)
        raise NotModular(op)

    def _operation(self, op: str, parts: list[_Residue]) -> _Residue:
        """Calculate a sum, product or quotient modulo the prime, with upper bounds on the degree of the result and on
        the bits of its coefficients.

        The bounds of the parts are added, even for a sum: over the common denominator, each term is multiplied by the
        denominators of the other terms. op: "add", "mul", "neg" or "div". parts: its operands.
        """
        residue = parts[0].residue
        if op == "add":
            residue = sum(part.residue for part in parts)
        elif op == "mul":
            for part in parts[1:]:
                residue = residue * part.residue % self.prime
        elif op == "neg":
            residue = -residue
        else:
            residue *= _inverse(parts[1].residue, self.prime)
        # A sum of n terms has coefficients up to n times as large.
        extra = _bits(len(parts)) if op == "add" else 0
        return _Residue(
            residue % self.prime, sum(part.degree for part in parts) + 1, sum(part.bits for part in parts) + extra
        )

    def _power(self, base: Node, exponent: Node, depth: int) -> _Residue:
        """Return a power modulo the prime: computed if the exponent is an integer; otherwise a new letter stands for
        the power.
        """
        number = exponent.value if exponent.op == "num" else None
        if number is None or number.denominator != 1 or abs(number.numerator) >= _MAX_EXPONENT:
            return self._function("pow", (base, exponent), depth)
        residue, degree, bits = self.residue_of(base, depth)
        if residue == 0 and number <= 0:
            raise NotModular("a power of zero")
        times = max(abs(int(number)), 1)
        bits *= times
        if degree * times > _MAX_DEGREE or bits > _MAX_COEFFICIENT_BITS:
            return self._function("pow", (base, exponent), depth)
        return _Residue(pow(residue, int(number), self.prime), degree * times, bits)

    def _function(self, name: str, arguments: tuple[Node, ...], depth: int) -> _Residue:
        """Return a residue for a function such as sin u, fixed by its name and its arguments' residues, as if it were a
        letter.

        depth: levels of the formula above this part.
        """
        self.opaque = True
        values = [self.residue_of(argument, depth) for argument in arguments]
        if name == "abs":
            # |u| equals |−u|.
            values = [values[0]._replace(residue=min(values[0].residue, self.prime - values[0].residue))]
        elif name in ("gcd", "lcm", "max", "min"):
            # The order of their arguments does not matter.
            values = sorted(values)
        return self._new_letter(name, values)

    def _new_letter(self, name: str, arguments: list[_Residue]) -> _Residue:
        """Return the residue of the letter that stands for a function with these arguments.

        Its bounds are the sums of the arguments' bounds: equal letters prove equal functions only if different
        arguments get different residues, which their bounds must ensure.
        """
        return _Residue(
            _digest(name, *(argument.residue for argument in arguments)) % self.prime,
            sum(argument.degree for argument in arguments) + 1,
            sum(argument.bits for argument in arguments) + 1,
        )


def _digest(*parts: object) -> int:
    """Return a pseudorandom number of 256 bits, determined by `parts`."""
    # A reply may contain half a surrogate pair from a cut JSON escape, which strict UTF-8 rejects.
    text = repr(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=32).digest(), "big")


_digest_of_name = lru_cache(maxsize=1_024)(_digest)
"""`_digest` with a cache, since the same letters and constants occur in every tree."""
