r"""Pairs of answers that differ by construction, made by the thousand: `pair(seed)`.

A pair is a *core*, two expressions that differ by a proof, put into the same surroundings on both sides. Cores: a term
scaled or added, an exponent, a digit, a bound of a sum, a value that a nested form approximates to many digits, a peak
between points, a branch beyond them. Surroundings: functions that take different values to different values (strictly
monotone ones), then a structure: an equation, a chain, a tuple, an interval, a matrix, cases, a unit.

For: harness.grading.compare.numeric, harness.grading.compare.point, harness.grading.compare.identities,
harness.grading.compare.branches, harness.grading.compare.breaks, harness.grading.compare.modular,
harness.grading.compare.algebraic.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

Core = tuple[str, str]


class Pair(NamedTuple):
    """Two answers that differ, and how they were made."""

    reference: str
    answer: str
    made_by: str


def pair(seed: int) -> Pair:
    """Return the pair of this seed."""
    rng = Random(seed)
    closed = rng.random() < 0.5
    core = rng.choice(CLOSED if closed else OF_LETTERS)
    left, right = core(rng)
    steps = [core.__name__]
    if core not in (peak, branch):
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            around = rng.choice(MONOTONE)(rng)
            left, right = around.replace("@", left), around.replace("@", right)
            steps.append(around)
    structure = rng.choice(STRUCTURES if closed else EQUATIONS)
    if rng.random() < 0.5:
        left, right = right, left
    reference, answer = structure.replace("@", left), structure.replace("@", right)
    if closed and rng.random() < 0.1:  # a chain that holds a value of its own
        reference, answer = left, f"{left}={right}"
    return Pair(reference, answer, " ".join((*steps, structure)))


# --- parts ---
def tiny(rng: Random) -> str:
    """Return a positive number between 10⁻³⁰⁰ and 10⁻¹."""
    size = rng.choice((rng.randint(1, 9), rng.randint(10, 60), rng.randint(61, 300)))
    return rng.choice((
        rf"10^{{-{size}}}", rf"\frac{{1}}{{10^{{{size}}}}}", rf"e^{{-{2 * size}}}", rf"2^{{-{3 * size}}}",
        f"0.{'0' * min(size, 200)}{rng.randint(1, 9)}", rf"\frac{{{rng.randint(1, 9)}}}{{7^{{{size}}}}}",
        rf"\tanh(10^{{-{size}}})", rf"\frac{{1}}{{{min(size, 300)}!}}" if size > 2 else "0.1",
    ))  # fmt: skip


def value(rng: Random) -> str:
    """Return a closed form that is positive and neither very large nor very small."""
    number = rng.randint(2, 400)
    return rng.choice((
        rf"\sqrt{{{number}}}", rf"\ln {number}", r"\pi", r"e", rf"\arctan {number}", rf"\sqrt[3]{{{number}}}",
        rf"\sqrt{{2+\sqrt{{{number}}}}}", rf"\frac{{{number}}}{{7}}", str(number), rf"\tanh {number % 30 + 1}",
        rf"\cos\frac{{\pi}}{{{number + 3}}}", rf"\left(1+\frac{{1}}{{{number}}}\right)^{{{number}}}",
        rf"2^{{\sqrt{{{number % 20 + 2}}}}}", rf"\sum_{{k=1}}^{{{number % 30 + 2}}}\frac{{1}}{{k^3}}",
    ))  # fmt: skip


def function(rng: Random) -> str:
    """Return an expression of x that is positive for positive x."""
    number = rng.randint(2, 40)
    return rng.choice((
        f"x^{{{number}}}", "e^{x}", "e^{-x}", f"2^{{x+{number}}}", rf"\ln(x+{number})", rf"\sqrt{{x+{number}}}",
        r"\arctan x", r"\tanh x", rf"\frac{{1}}{{x+{number}}}", f"(x+{number})^{{{number}}}", r"\cosh x",
        rf"\sqrt{{x^2+{number}}}", f"x^2+{number}x", rf"\frac{{x}}{{x^2+{number}}}", rf"\sin^2 x+{number}", "xy^2+1",
    ))  # fmt: skip


# --- cores ---
def _scaled(rng: Random, term: Callable[[Random], str]) -> Core:
    terms = [term(rng) for _ in range(rng.randint(1, 3))]
    changed = [*terms]
    index = rng.randrange(len(terms))
    changed[index] = rf"(1+{tiny(rng)})\cdot {terms[index]}"
    rng.shuffle(terms)
    return "+".join(terms), "+".join(changed)


def scaled_value(rng: Random) -> Core:
    """A sum of positive numbers, one of them larger by a little."""
    return _scaled(rng, value)


def scaled_function(rng: Random) -> Core:
    """A sum of functions, one of them larger by a little."""
    return _scaled(rng, function)


def tiny_term(rng: Random) -> Core:
    """A value, and the value and a little more."""
    number = value(rng)
    return number, f"{number}+{tiny(rng)}"


def tiny_function(rng: Random) -> Core:
    """A function, and the function and a little of another one that is positive."""
    term = function(rng)
    return term, rf"{term}+{tiny(rng)}\cdot {function(rng)}"


def digit(rng: Random) -> Core:
    """A long number times a value, and the same with another digit."""
    digits, factor = rng.randint(10**5, 10 ** rng.randint(6, 80)), value(rng)
    changed = digits + 10 ** rng.randrange(len(str(digits)))
    point = rng.random() < 0.5
    return tuple(rf"{'0.' if point else ''}{number}\cdot {factor}" for number in (digits, changed))  # type: ignore[return-value]


def exponent(rng: Random) -> Core:
    """Two powers with different exponents."""
    n = rng.randint(2, 3000)
    shape = rng.choice((
        r"\tanh %d", r"\ln(1+e^{-%d})", r"\arctan(10^{%d})", r"1+\pi^{-%d}", r"\sqrt{1+2^{-%d}}", r"1+\frac{1}{%d!}",
        r"e^{e^{-%d}}", r"\sum_{k=1}^{%d}\frac{1}{2^k}", r"1-3^{-%d}\pi", r"\left(1-\frac{1}{10^9}\right)^{%d}\pi",
    ))  # fmt: skip
    return shape % n, shape % (n + rng.randint(1, 3))


def power(rng: Random) -> Core:
    """Two functions with different exponents."""
    n = rng.randint(2, 3000)
    shape = rng.choice(("x^{%d}", "(2x+1)^{%d}", r"3^{%d}e^x", r"(1+\frac{1}{x})^{%d}", r"\arctan^{%d} x", "x_n^{%d}"))
    return shape % n, shape % (n + rng.randint(1, 3))


def nested(rng: Random) -> Core:
    """A function of a little, and its Taylor polynomial or continued fraction: a rational number, never the value."""
    small, depth = f"({tiny(rng)})", rng.randint(2, 9)
    kind = rng.randrange(4)
    if kind == 0:
        return f"e^{{{small}}}", _horner(small, [str(n) for n in range(1, depth)], "+")
    if kind == 1:
        return rf"\cos{small}", _horner(f"{small}^2", [str(2 * n * (2 * n - 1)) for n in range(1, depth)], "-")
    if kind == 2:
        return rf"\frac{{\arctan{small}}}{{{small}}}", _fraction(
            [(n * n, 2 * n - 1) for n in range(1, depth)], small, "+"
        )
    return rf"\frac{{\tan{small}}}{{{small}}}", _fraction([(1, 2 * n - 1) for n in range(1, depth)], small, "-")


def nested_function(rng: Random) -> Core:
    """The exponential function of x times a little, and its Taylor polynomial."""
    small = f"({tiny(rng)}x)"
    return f"e^{{{small}}}", _horner(small, [str(n) for n in range(1, rng.randint(2, 7))], "+")


def _horner(small: str, divisors: list[str], sign: str) -> str:
    text = "1"
    for divisor in reversed(divisors):
        text = rf"1{sign}\frac{{{small}}}{{{divisor}}}({text})"
    return text


def _fraction(levels: list[tuple[int, int]], small: str, sign: str) -> str:
    """1/(1 ± a₁ε²/(3 ± a₂ε²/(5 ± …))), where levels = (a, odd number)."""
    text = str(levels[-1][1])
    for factor, odd in reversed(levels[:-1]):
        text = rf"{odd}{sign}\frac{{{factor}{small}^2}}{{{text}}}"
    return rf"\frac{{1}}{{{text}}}"


def tangent(rng: Random) -> Core:
    """Two functions of a little that differ in its seventh power."""
    small = tiny(rng)
    first, second = rng.choice(((r"\sin", r"\tan"), (r"\arcsin", r"\arctan"), (r"\sinh", r"\tanh")))
    return rf"{first}({second}({small}))", rf"{second}({first}({small}))"


def peak(rng: Random) -> Core:
    """0, and a function that is 0 but on one short piece."""
    scale = rng.choice((rng.randint(50, 999), 10 ** rng.randint(3, 40)))
    inner = f"{scale}x-{rng.randint(1, 5 * scale)}"
    return "0", rng.choice((
        rf"\max(0,1-|{inner}|)", rf"\max(0,1-({inner})^2)", rf"1-({inner})^2+|1-({inner})^2|",
        rf"1-({inner})^2+\sqrt{{(1-({inner})^2)^2}}", rf"\max(0,{inner})\max(0,1-({inner}))",
        rf"\max(0,x-{scale})\max(0,y-{scale})", rf"\lfloor x+\frac{{1}}{{{scale}}}\rfloor-\lfloor x\rfloor",
        rf"\lceil x\rceil-\lfloor x\rfloor-\lceil x-\frac{{1}}{{{scale}}}\rceil+\lfloor x-\frac{{1}}{{{scale}}}\rfloor",
    ))  # fmt: skip


def branch(rng: Random) -> Core:
    """A function with a branch, and the formula that it has up to the break: √((2ˣ − 1024)²) beside 1024 − 2ˣ."""
    size = rng.choice((rng.randint(9, 99), rng.randint(100, 9999), 10 ** rng.randint(4, 40)))
    small = min(size, 400)
    inner = rng.choice((
        f"x-{size}", f"x^3-{size}^3", f"2^x-2^{{{size}}}", f"e^x-e^{{{small}}}", f"10^x-10^{{{small}}}",
        rf"\ln x-{small}", rf"\sqrt{{x}}-{size}", rf"x+\sqrt{{x}}-{size}", f"xy-{size}", f"x+y-{size}",
        f"x^2+y^2-{size}", rf"\ln(1+e^x)-{size}",
        rf"\frac{{x}}{{1+x}}-1+10^{{-{small}}}", rf"x^2+\sin x-{size}",
    ))  # fmt: skip
    root = rng.choice((
        r"\sqrt{(@)^2}", r"((@)^2)^{1/2}", r"((@)^2)^{0.5}", r"\sqrt[4]{(@)^4}", r"\frac{(@)^2}{\sqrt{(@)^2}}",
        r"((@)^2)^{-1/2}(@)^2", r"((@)^6)^{\frac{1}{6}}", r"\sqrt{@}\sqrt{@}\cdot\frac{\sqrt{(@)^2}}{@}",
        r"\sqrt{\sqrt{(@)^4}}", r"\sqrt{(@)^2+(@)^2-(@)^2}",
    ))  # fmt: skip
    if rng.random() < 0.2:
        name, inverse = rng.choice((("sin", "arcsin"), ("tan", "arctan")))
        return rf"\{inverse}(\{name}(\frac{{x}}{{{size}}}))", rf"\frac{{x}}{{{size}}}"
    return root.replace("@", inner), f"-({inner})"


CLOSED = [scaled_value, tiny_term, digit, exponent, nested, tangent]
OF_LETTERS = [scaled_function, tiny_function, power, nested_function, peak, branch]

# --- surroundings ---
MONOTONE: list[Callable[[Random], str]] = [
    lambda rng: f"{rng.randint(1, 99)}+@",
    lambda rng: rf"{rng.randint(2, 99)}\left(@\right)",
    lambda rng: rf"\frac{{{rng.randint(1, 99)}}}{{1+@}}",
    lambda rng: rf"\sqrt{{{rng.randint(1, 99)}+@}}",
    lambda rng: rf"\ln({rng.randint(1, 99)}+@)",
    lambda rng: rf"\left({rng.randint(1, 9)}+@\right)^{{{rng.choice((2, 3, 7, 40))}}}",
    lambda rng: rf"{value(rng)}\cdot\left(@\right)",
    lambda rng: rf"{rng.randint(1, 99)}-\left(@\right)",
]
"""Functions that take different positive numbers to different numbers, but the last one positive; "@" is the number."""

STRUCTURES = [
    "@", "@", "@", "x=@", "y=@", r"@\text{ cm}", r"@\%", r"@^\circ", "(1,@)", r"\{2,@\}", r"\left[0,@\right)", "3, @",
    r"x<@", r"x\ge @", r"\begin{pmatrix}1&@\\0&2\end{pmatrix}", r"(-\infty,@)\cup(10^{400},\infty)", "x=1, y=@",
    r"2+\left(@\right)i", r"\left(@\right)\sqrt{x}", "y=x^2+@", r"x+@=0", r"\frac{x}{@}", "f(x)=x+@",
]  # fmt: skip
EQUATIONS = ["@", "@", "@", "f(x)=@", r"(1,@)", r"\left[@\right]+3", r"\begin{cases}@&x>0\\0&x\le0\end{cases}", r"z=@"]
