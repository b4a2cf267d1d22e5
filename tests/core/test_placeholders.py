"""Which braces of a person's text are placeholders: those of other tools' templates, and none of LaTeX."""

from __future__ import annotations

import pytest

from harness.core.placeholders import placeholders, unbraced_placeholders


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
    for part in (*parts, "$ ", "$1 ", "$1" + " " * 20_000, "[[a ", "[[" + "a" * 20_000, "%(" + "a" * 20_000):
        assert placeholders(part * (100_000 // len(part))) == []
        assert unbraced_placeholders(part * (100_000 // len(part))) == []


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


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Question: [[QUESTION]]\nAnswer: [[ answer ]]", ["[[QUESTION]]", "[[ answer ]]"]),
        ("Is <<answer>> like <<参考答案>>? <<answer>>", ["<<answer>>", "<<参考答案>>"]),
        ("Question: %(question)s", ["%(question)s"]),
        ("Compare $answer with $reference_answer.", ["$answer", "$reference_answer"]),
        ("答案$answer", ["$answer"]),
        ("Of $x+y$ and $z$ only $answer counts, at $5", ["$answer"]),
    ],
)
def test_other_tools_mark_placeholders_without_braces(template: str, expected: list[str]) -> None:
    assert unbraced_placeholders(template) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[[5]], [[A]], [[1, 2], [3, 4]], [answer], <answer>, <<5>>, a << b, 5 %, %s, {answer}",
        r"$x$, $ab$, $$ab = cd$$, $\mathrm{kg}$, \$amount, US$amount, $5, $ 5, $a b$ and $cd$",
        "$ab\n= cd$ may go over a line",
    ],
)
def test_formulas_and_matrices_are_text(text: str) -> None:
    assert unbraced_placeholders(text) == []
