"""Polynomials are read without a tree, and get the verdict, rule and vote that trees give them.

For: harness.grading.compare.polynomials.
"""

from __future__ import annotations

import random

import pytest

from harness.grading.compare import canonical, equivalence
from harness.grading.compare.polynomials import polynomial, same_polynomials
from harness.grading.processes.pool import question_on
from harness.grading.verdict import decide
from tests.budget import examples

PAIRS = examples(1_500)
MIN_READ = PAIRS // 8


class Pairs:
    """Makes texts of the grammar, near misses of it, and pairs that are often equal, from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def number(self) -> str:
        return str(self.rng.choice([0, 1, 2, 7, 12, 100, 1234, 10**9 + 7, self.rng.randint(0, 10**16)]))

    def factor(self, depth: int) -> str:
        rng = self.rng
        atoms = [
            self.number,
            lambda: rng.choice("xxyzabmptuACkIRfEei"),
            lambda: rng.choice(["xy", "xyz", "ab", "yz x"]),
        ]
        if depth < 3:
            opening, closing = rng.choice([("(", ")"), ("\\left(", "\\right)"), ("( ", " )")])
            atoms += [
                lambda: f"{opening}{self.sum(depth + 1)}{closing}",
                lambda: f"\\{rng.choice(['frac', 'dfrac', 'tfrac'])}{{{self.sum(depth + 1)}}}{{{self.sum(depth + 1)}}}",
            ]
        power = rng.choice(["^2", "^{10}", "^3", "^12", "^{0}", "^x", "^{-1}"]) if rng.random() < 0.2 else ""
        return rng.choices(atoms, [8, 10, 1, 3, 1][: len(atoms)])[0]() + power

    def product(self, depth: int) -> str:
        text = self.factor(depth)
        while self.rng.random() < 0.4:
            text += self.rng.choice(["", "", " ", "*", "\\cdot ", "/"]) + self.factor(depth)
        return text

    def sum(self, depth: int = 0) -> str:
        text = self.rng.choice(["", "", "", "-", "+"]) + self.product(depth)
        while self.rng.random() < 0.5:
            text += self.rng.choice(["+", "-", " + ", " - "]) + self.product(depth)
        return text

    def variant(self, text: str) -> str:
        """A text that is often equal to `text`."""
        at = self.rng.randrange(len(text))
        shuffled = text.split("+")
        self.rng.shuffle(shuffled)
        return self.rng.choice(
            [
                text.replace("*", " ").replace("\\cdot", ""),
                text.replace(" ", ""),
                f"({text})",
                f"{text}+0",
                f"2*({text})-({text})",
                "+".join(shuffled),
                text[:at] + self.rng.choice("0123456789x+-() ^") + text[at + 1 :],
                self.sum(),
            ]
        )


@pytest.mark.slow
def test_trees_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, texts = Pairs(1), list[tuple[str, str]]()
    while len(texts) < PAIRS:
        reference = pairs.sum()
        texts.append((reference, pairs.variant(reference)))
    read = [(reference, answer) for reference, answer in texts if polynomial(reference) or polynomial(answer)]
    verdicts = {same.equal for reference, answer in read if (same := same_polynomials(reference, answer)) is not None}
    assert len(read) > MIN_READ
    assert verdicts == {True, False}
    quick = [decide(question_on(reference), answer) for reference, answer in read]
    monkeypatch.setattr(equivalence, "same_polynomials", lambda *_: None)
    monkeypatch.setattr(equivalence, "polynomial", lambda _: None)
    monkeypatch.setattr(canonical, "polynomial", lambda _: None)
    for (reference, answer), verdict in zip(read, quick, strict=True):
        assert decide(question_on(reference), answer) == verdict, (reference, answer)


@pytest.mark.parametrize(
    ("reference", "answer", "equal"),
    [
        ("(x+1)^2", "x^2+2x+1", True),
        ("(x+1)^2", "x^2+2x+2", False),
        (r"\frac{x}{2}-\frac{y}{3}", r"\frac{3x-2y}{6}", True),
        ("1/2x", "x/2", True),
        ("1/2x", "1/(2x)", False),
        ("x(x+1)", "x^2+x", True),
        ("10x+y", "100000000000000x+y", False),
    ],
)
def test_polynomials_are_decided_without_a_tree(reference: str, answer: str, *, equal: bool) -> None:
    compared = same_polynomials(reference, answer)
    assert compared is not None
    assert compared.equal is equal


@pytest.mark.parametrize(
    "text",
    [
        "f(x)+1", "a(3)+x", "x+i", "e+x", r"3\frac{1}{2}+x", "2 3/4+x", "(a)+1", "(5)x", "x^12", "x^{0}", "x2",
        "1/(x-x)", "5 a m", "5x + cos x", "x,2", "12", "x", "xy", "A-B", "x+", "((((((((((x+1))))))))))",
        "x" + "+1" * 60,
    ],
)  # fmt: skip
def test_other_readings_are_left_to_the_grammar(text: str) -> None:
    assert polynomial(text) is None


def test_a_constant_or_a_letter_of_its_own_is_left_to_other_rules() -> None:
    assert same_polynomials("x^2+C", "x^2+K") is None
    assert same_polynomials("2a+1", "2b+1") is None
    assert same_polynomials(f"{10**14}x" + "+1" * 20, f"({10**14}x+1)^{{9}}") is None  # more than one prime
