"""Which braces of a person's text are placeholders: those of other tools' templates, and none of LaTeX."""

from __future__ import annotations

import re

import pytest

from harness.benchmarks.prompts import placeholders


@pytest.mark.parametrize(
    "template",
    [
        "[Task]: «{question}»\n[Submission]: «{answer}»\n«{criterion}» «{instructions}»",
        "«{question}»\n«{ref_answer_1}»\n«{answer_a}»«{answer_b}»: «{predicted_answer}», target «{target}»",
        "«{input}»«{completion}», {input} again",
        "Is «{{output}}» like «{{ expected }}»?",
        "«{{ doc.answer | trim }}» and «{{item['gold']}}»",
        "«{doc.answer}» «{answer!r}» «{answer:>10}» «{row[answer]}»",
        "«{ answer }» «{Answer}» «{reference answer}»",
        "Compare «{参考答案}» with «{回答}»",
        "$«{answer}» of \\boxed{x} and «{gold}»",
    ],
)
def test_a_template_of_another_tool_has_placeholders(template: str) -> None:
    assert placeholders(re.sub("[«»]", "", template)) == re.findall("«(.*?)»", template)


def test_a_long_text_without_placeholders_is_searched_in_a_moment() -> None:
    parts = ("{a ", "{", "\\frac {", "{{a", "\\a [", "{a" + " " * 20_000, "\\" + "a" * 20_000 + " " * 20_000)
    for part in parts:
        assert placeholders(part * (100_000 // len(part))) == []


@pytest.mark.parametrize(
    "text",
    [
        r"\frac{1}{2} equals 0.5, \frac{a}{b} does not; \dfrac{\sqrt{ab}}{cd} may",
        r"The reply must end in \boxed{answer}, \boxed {answer} or \text{the answer}.",
        r"$x_{max}$, $x^{two}$, $a_{ij}^{kl}$, \sqrt[n]{ab}, \operatorname*{argmax}_{theta}",
        r"the set \{red\}, \left\{green\right\}, \begin{aligned} a \end{aligned}, {n \choose k}",
        r"{1, 2, 3}, {}, {red, green}, {x > 0}, {n | n > 3}, {n : n even}, {0}",
        '{"verdict": "correct"} is no form of a reply',
        "[[5]], [[letter]], <answer>, $answer, %s: nothing that a prompt could not say",
        r"\mathrm{kg}\,\mathrm{m}/\mathrm{s}^{-2}; ^{14}C; \ce{H2O}; {\rm kg}",
    ],
)
def test_latex_and_other_braces_are_text(text: str) -> None:
    assert placeholders(text) == []
