"""Hostile answers: code, towers of powers, deep nesting, endless text. Judged within the bounds, never obeyed.

For: reasoning_answers.bounds.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest
from asked import answered, examples, pinned_pairs, question, verdict_on

from reasoning_answers import grade

pytestmark = pytest.mark.slow

EXAMPLES = examples(3_000)

TOWERS = [
    "9^{9^{9^{9}}}", "9**9**9**9", "10^(10^10)", "(9**9)**(9**9)", "99999999!", "(10^{10})!", "((5!)!)!", "1e999999999",
    "1e400000000", "10^{400000000}", r"\binom{10^{9}}{10^{8}}", r"\prod_{k=1}^{10^{9}} k",
    r"\sum_{k=1}^{10^{12}} k^{k}",
    "(x+1)^{100000}", "(x+1)^{99999}(x-1)^{99999}", r"\sqrt{2^{9^{9^9}}}", r"\sqrt[10^{9}]{2}",
    r"2^{2^{2^{2^{2^{2}}}}}",
    r"\sin(10^{10^{10}})", r"e^{e^{e^{e^{e}}}}", r"\log_{1}{5}", r"\frac{1}{0}", "0^0", "0^{-1}", r"\frac{0}{0}",
    r"\infty-\infty",
    r"\int_0^1 e^{\sin(x^{7}+\cos(x^{5}))}\,dx", r"\int_0^{10^{9}} x^{x^{x}} dx", r"\lim_{x\to 0} x^{x^{x^{x}}}",
    r"\sqrt{2}^{\sqrt{3}^{\sqrt{5}^{\sqrt{7}}}}", r"\gcd(10^{4000}, 10^{3999})", "1" * 4000, "1," * 2000,
    "0." + "3" * 3000,
    r"\pm" * 60 + "1", r"(\pm 1" + r", \pm 1" * 40 + ")", r"\begin{pmatrix}" + "1 & " * 900 + r"1\end{pmatrix}",
    r"\begin{vmatrix}" + (("1 & " * 11 + r"1 \\ ") * 12) + r"\end{vmatrix}", r"\text{" * 300, r"\frac{" * 900,
    r"\sqrt" * 900,
    "-" * 3000 + "1", "(" * 3000, "(" * 90 + "1" + ")" * 90, "{" * 3000 + "5" + "}" * 3000, "x_{" * 500,
    "5!" + "!" * 50, "|" * 999,
    "a^" * 900 + "a", "1+" * 1900 + "1", "x" * 3900, r"\cup".join(["(0,1)"] * 500), "=".join(["x"] * 900),
    ":".join(["1"] * 900),
]  # fmt: skip

CODE = [
    "open('{canary}','w')",
    "__import__('os').system('touch {canary}')",
    "S(\"open('{canary}','w')\")",
    "Symbol('x',**{{'a':open('{canary}','w')}})",
    "[].__class__.__base__.__subclasses__()",
    "lambda: open('{canary}','w')",
    r"\input{{/etc/passwd}}",
    r"\write18{{touch {canary}}}",
    "eval(\"open('{canary}','w')\")",
    "`touch {canary}`",
    "$(touch {canary})",
]


def outcome(reference: str, answer: str) -> str:
    return grade(reference, f"\\boxed{{{answer}}}", kind="expression").outcome


@pytest.mark.parametrize("reference", ["5", r"\frac{1}{3}", r"\sqrt{2}", "x^2+x", "(1,2)", r"(-\infty,3)"])
def test_towers_and_bombs_are_not_the_answer(reference: str) -> None:
    right = [tower[:60] for tower in TOWERS if outcome(reference, tower) == "correct"]
    assert right in ([], ["{" * 60]) if reference == "5" else right == []


@pytest.mark.parametrize("tower", TOWERS)
def test_tower_as_reference_ends_too(tower: str) -> None:
    assert outcome(tower, "5") != "no_answer"


@pytest.mark.parametrize("shape", ["\\boxed{{{}}}", "The answer is {}", "{}", "```python\n{}\n```", "#### {}"])
def test_code_is_never_run(tmp_path: Path, shape: str) -> None:
    canary = tmp_path / "canary"
    for payload in CODE:
        text = shape.format(payload.format(canary=canary))
        assert grade("5", text).outcome != "correct" or "5" in text
        assert outcome(payload.format(canary=canary), "5") != "no_answer"
    assert not canary.exists()


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 20_000,
        "\\boxed{5}" * 100_000,
        "\\boxed{" + "{" * 100_000,
        "a" * 5_000_000,
        "$" * 100_000,
        "\\(" * 50_000,
        "\n" * 1_000_000,
        "9" * 1_000_000,
        "<think>" * 50_000,
        "</think>" * 50_000 + "\\boxed{5}",
        "\\boxed{" + " " * 500_000 + "5}",
        "answer is " * 50_000,
        "A: " * 50_000,
        "**" * 50_000,
        "(" * 200_000,
        "1," * 200_000,
        "#### " * 50_000,
        "﷽" * 100_000,
        "box" * 100_000,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_long_text_is_judged(text: str) -> None:
    verdict = grade("5", text, kind="expression")
    assert verdict.extracted is None or len(verdict.extracted) < 5_000


@pytest.mark.fuzz
def test_mutated_answers_never_raise_or_hang() -> None:
    chance = random.Random(EXAMPLES)
    corpus = [text for pair in pinned_pairs() for text in pair]
    for _ in range(EXAMPLES):
        mutated = _mutated(chance, corpus)
        reference = chance.choice([chance.choice(corpus), _mutated(chance, corpus)])
        text = mutated if chance.random() < 0.3 else f"\\boxed{{{mutated}}}"
        assert verdict_on(question(reference, kind="expression"), answered(text)).outcome in OUTCOMES


OUTCOMES = ("correct", "wrong", "undecided", "no_answer")
ODD = ("factorial(", "__import__", "**", "//", "!!", "..", "1e9", r"\mod", *"½²√∞#~'个或")
"""What few answers hold."""


@cache
def fragments() -> list[str]:
    """Commands, short numbers, letters and signs of the pinned answers, and odd ones."""
    answers = " ".join(text for pair in pinned_pairs() for text in pair)
    return sorted({*re.findall(r"\\[A-Za-z]+\{?|\d{1,3}|\b[A-Za-z]\b|[!-/:-@\[-`{-~]", answers), *ODD})


def _mutated(chance: random.Random, corpus: list[str]) -> str:
    if chance.random() < 0.4:
        return "".join(chance.choice(fragments()) + chance.choice(["", " "]) for _ in range(chance.randrange(1, 25)))
    text = chance.choice(corpus)
    for _ in range(chance.randrange(1, 5)):
        cut = chance.randrange(len(text) + 1)
        middle = chance.choice([chance.choice(fragments()), chance.choice(corpus), text[cut : cut + 8] * 3, ""])
        text = text[:cut] + middle + text[cut + chance.randrange(3) :]
    return text
