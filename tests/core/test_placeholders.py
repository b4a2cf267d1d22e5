"""Which braces of a person's text are placeholders: those of other tools' templates, and none of LaTeX."""

from __future__ import annotations

import pytest

from harness.core.placeholders import placeholders


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "[Task]: {question}\n[Submission]: {answer}\n{criterion} {instructions}",
            ["{question}", "{answer}", "{criterion}", "{instructions}"],
        ),
        (
            "Question: {question}\nGold target: {target}\nPredicted: {predicted_answer}",
            ["{question}", "{target}", "{predicted_answer}"],
        ),
        ("[correct_answer]: {correct_answer}\n[response]: {response}", ["{correct_answer}", "{response}"]),
        (
            "{question}\n{ref_answer_1}\n{answer_a}{answer_b}",
            ["{question}", "{ref_answer_1}", "{answer_a}", "{answer_b}"],
        ),
        ("{input}{completion}, {input} again", ["{input}", "{completion}"]),
        ("Is {{output}} like {{ expected }}?", ["{{output}}", "{{ expected }}"]),
        ("{{ doc.answer | trim }} and {{item['gold']}}", ["{{ doc.answer | trim }}", "{{item['gold']}}"]),
        (
            "{doc.answer} {answer!r} {answer:>10} {row[answer]}",
            ["{doc.answer}", "{answer!r}", "{answer:>10}", "{row[answer]}"],
        ),
        ("{ answer } {Answer} {reference answer}", ["{ answer }", "{Answer}", "{reference answer}"]),
        ("Compare {参考答案} with {回答}", ["{参考答案}", "{回答}"]),
        ("${answer} of \\boxed{x} and {gold}", ["{answer}", "{gold}"]),
    ],
)
def test_a_template_of_another_tool_has_placeholders(template: str, expected: list[str]) -> None:
    assert placeholders(template) == expected


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
