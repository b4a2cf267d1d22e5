"""Answers as people type them, without text commands: right ones are never called wrong, and their twins never right.

For: reasoning_answers.compare, reasoning_answers.find, reasoning_answers.grammar.units, reasoning_answers.items.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

import pytest
from asked import share_of

from reasoning_answers import grade
from reasoning_answers.grammar.tree import names

Case = tuple[str, str, str]
"""A reference, a right reply and a wrong one."""

PREFIXES = {"p": -12, "n": -9, "µ": -6, r"\mu ": -6, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12}
UNITS = names("m g s A V W J N Pa Hz Ω F H T C eV mol L bar cal B bit Bq Gy Sv cd lm K pc Wh")


def units() -> Iterator[Case]:
    for (prefix, power), unit, number in product(PREFIXES.items(), sorted(UNITS), (5, 30)):
        big = f"{number} {prefix}{unit}"
        if abs(power) > 6:
            small = [rf"{each}\cdot10^{{{power}}} {unit}" for each in (number, number + 1)]
        elif power > 0:
            small = [f"{each * 10**power} {unit}" for each in (number, number + 1)]
        else:
            small = [f"{float(Fraction(each, 10**-power)):.7f} {unit}" for each in (number, number + 1)]
        yield big, rf"\boxed{{{small[0]}}}", rf"\boxed{{{small[1]}}}"
        yield small[0], f"Answer: {big}", f"Answer: {number + 1} {prefix}{unit}"


def letters() -> Iterator[Case]:
    separators = (", ", "; ", "、", " and ", "/", "")
    for reference, replied in product(separators, separators):
        for answer in ("{}", "So the final answer is: {}", r"\boxed{{{}}}"):
            right = answer.format(replied.join("DA" if len(replied) == 1 else "AD"))
            for twin in ("A or D", "either A or D", "A, C or D", "A", f"A{replied}C"):
                yield reference.join("AD"), right, answer.format(twin)


def intermediate_boxes() -> Iterator[Case]:
    steps = [r"First we find $\boxed{5}$ for the side.", r"So the discriminant is \(\boxed{5}\)."]
    ends = ["The final answer is ${}$.", "Therefore, the answer is ${}$.", "The answer is: $${}$$"]
    for step, end in product(steps, ends):
        replies = [f"{step} We go on.\n\n{end.format(value)}" for value in (12, 13)]
        yield "12", replies[0], replies[1]
        for behind in (", which is wrong.", " or $13$.", " only if $x > 0$.", "?", ". Wait, no.", " times that."):
            yield "12", replies[0], replies[0].rstrip(".") + behind
        for before in ("If we had misread it, ", "It is not true that ", "A common mistake: "):
            yield "12", replies[0], f"{step} We go on.\n\n{before}{end[0].lower()}{end[1:].format(12)}"


def alternatives() -> Iterator[Case]:
    spellings = ["{}, {}", "{} and {}", r"\{{{}, {}\}}", "{} or {}", "x = {} or x = {}", r"x={}\text{{ or }}x={}"]
    for reference, reply in permutations(spellings, 2):
        yield reference.format(2, 3), rf"\boxed{{{reply.format(3, 2)}}}", rf"\boxed{{{reply.format(3, 4)}}}"


def products() -> Iterator[Case]:
    for x, a, b in product("abntxz", (2, 3), (4, 5)):
        spellings = [f"{a * b}{x}^2", f"{a}{x}({b}{x})", f"{a * b}{x}({x})", f"({a}{x})({b}{x})"]
        for one, other in permutations(spellings, 2):
            yield one, rf"\boxed{{{other}}}", rf"\boxed{{{other.replace(str(b), '7').replace(str(a * b), '7')}}}"


def parts() -> Iterator[Case]:
    names = ["({})", r"\text{{({})}}", "(${}$)", "$({})$", r"$\mathbf{{({})}}$", "(**{}**)", "**({})**"]
    for name, link, lead in product(names, (", ", "; ", " "), ("The answers are ", "Answer: ")):
        a, b = name.format("a"), name.format("b")
        for reference in (r"\text{(a) } 95 \quad \text{(b) } 60", "95, 60"):
            yield reference, f"{lead}{a} $95${link}{b} $60$.", f"{lead}{a} $95${link}{b} $61$."


def denials() -> Iterator[Case]:
    words = ("wrong", "false", "not right", "not the answer", "impossible", "a mistake", "clearly incorrect")
    clauses = (", which is {}.", ". That is {}.", " ({}).", " — {}.", ", but that's {}.", ". However, this is {}.")
    for word, clause, lead in product(words, clauses, (r"\boxed{7}", r"So $x = \boxed{7}$", "The answer is $7$")):
        yield "7", lead + clause.format("the smallest such number"), lead + clause.format(word)


def labels_of_other_languages() -> Iterator[Case]:
    labels = (
        "Die Antwort ist",
        "Die gesuchte Lösung lautet",
        "La réponse finale est",
        "La respuesta es",
        "Donc l'aire est",
    )
    for label, value in product((*labels, "A resposta é", "Итак, ответ", "We get", "Final result:"), ("$12$", "$5$")):
        final = f"We go on.\n\n{label} {value}."
        yield (
            value.strip("$"),
            rf"The radius is $\boxed{{{value.strip('$')}}}$. {final}",
            rf"It is \boxed{{9}}. {final}",
        )


def test_a_statement_in_another_language_leaves_an_intermediate_box_open():
    for reference, _, other in labels_of_other_languages():
        assert {grade(each, other).outcome for each in (reference, "9")} == {"undecided"}, other


def second_forms() -> Iterator[Case]:
    for top, bottom in product((148, 233, 28), (13, 9, 7)):
        rounded = f"{top / bottom:.2f}"
        for form in ("{}/{}, or approximately {}", "{}/{}, i.e. about {}", "{}/{} (roughly {})"):
            right, wrong = form.format(top, bottom, rounded), form.format(top + 1, bottom, rounded)
            yield f"{top}/{bottom} (about {rounded})", f"<answer>{right}</answer>", f"<answer>{wrong}</answer>"
            yield f"{top}/{bottom}", f"The final answer is {right}.", f"The final answer is {wrong}."


def written_values() -> Iterator[Case]:
    matrix = r"\begin{bmatrix}-6 & -9 \\ 8 & -5\end{bmatrix}"
    yield from ((matrix, form, form.replace("5", "4")) for form in ("[-6 -9; 8 -5]", "[-6, -9; 8, -5]", "[-6,-9;8,-5]"))
    clocks = ("17:30 h", "17:30", "17.30 h", "17h30", "5:30 pm", "17:30:00")
    yield from (
        (one, f"Answer: {other}", f"Answer: {other.replace('30', '20')}") for one in clocks[:1] for other in clocks
    )
    yield "€3.2bn", "Answer: 3.2 billion euros", "Answer: $3.2 billion"
    yield "['ab', 'c']", '<answer>["ab", "c"]</answer>', "<answer>['ab', 'C']</answer>"
    yield "{'a': 1, 'b': [2, 3]}", "Answer: {'b': [2, 3], 'a': 1}", "Answer: {'a': 1, 'b': [3, 2]}"
    yield "'qrs'", "The output is:\n\n```python\n'qrs'\n```", "The output is:\n\n```python\n'qrt'\n```"
    yield "['ab', 1]", "Answer: ['ab', 1]", "Answer: ['ab', True]"
    yield "y=Ce^{kx}", r"\boxed{y=Ae^{kx}}", r"\boxed{y=ke^{Cx}}"
    yield "00:05", "Answer: 00:05", "Answer: 00:12"
    yield "15.50 h", "Answer: 15.5 h", "Answer: 15:50 h"
    yield "2→4→1→3", "Answer: 2, 4, 1, 3", "Answer: 2 → 1 → 4 → 3"
    yield "3.5", "الجواب: ٣٫٥", "الجواب: ٣٫٦"
    yield (
        "257",
        "| a | b |\n| --- | --- |\n| Answer | 257 |",
        "| a | b |\n| --- | --- |\n| Steps | 257 |\n| Answer | 258 |",
    )
    yield "y=C_1e^{2x}+C_2e^{-x}", r"\boxed{y = A e^{-x} + B e^{2x}}", r"\boxed{y = A e^{-x} + B e^{3x}}"
    yield "y=Ce^{x^2}", r"\boxed{y=Ae^{x^2}}", r"\boxed{y=Axe^{x^2}}"


@pytest.mark.parametrize(
    "cases",
    [
        second_forms,
        written_values,
        denials,
        labels_of_other_languages,
        units,
        letters,
        intermediate_boxes,
        alternatives,
        products,
        parts,
    ],
)
def test_plain_typing_keeps_its_verdict(cases):
    wrong, accepted, n_right = [], [], 0
    tried = share_of(cases())
    for reference, right, twin in tried:
        verdict = grade(reference, right)
        n_right += verdict.correct
        wrong += [(reference, right)] if verdict.outcome == "wrong" else []
        accepted += [(reference, twin)] if grade(reference, twin).correct else []
    assert (wrong, accepted) == ([], [])
    assert n_right >= 0.9 * len(tried)
