"""One answer in many wrappings: what a reply puts around its answer changes no verdict.

For: reasoning_answers.find, reasoning_answers.reasoning.
"""

from __future__ import annotations

import random
import re

import msgspec
import pytest
from asked import answered, examples, question, verdict_on

from reasoning_answers import grade

ANSWERS = {
    "integer": lambda a, b: f"{a}",
    "negative": lambda a, b: f"-{a}",
    "fraction": lambda a, b: rf"\frac{{{a}}}{{{a + 1}}}",
    "decimal": lambda a, b: f"{a}.{b}",
    "sum": lambda a, b: f"x^2+{a}x+{b}",
    "root": lambda a, b: rf"{a}\sqrt{{{2 * b + 1}}}",
    "point": lambda a, b: f"({a}, {b})",
    "set": lambda a, b: rf"\{{{a}, {a + b}\}}",
    "interval": lambda a, b: rf"[{a}, \infty)",
    "equation": lambda a, b: f"y = {a}x + {b}",
    "matrix": lambda a, b: rf"\begin{{pmatrix}} {a} & 2 \\ {b} & 4 \end{{pmatrix}}",
    "complex": lambda a, b: f"{a}+{b}i",
}
"""Kind → an answer of that kind from two numbers; another first number gives another answer."""

WRAPPINGS = [
    r"\boxed{@}", r"The answer is $\boxed{@}$.", "Thus\n\\[\n\\boxed{@}\n\\]", "The answer is $@$.", "Answer: @",
    "**Final Answer:** $@$", "The answer is **$@$**.", "**The answer is $@$.**", "Work.\n#### @", "Work.\n#### $@$",
    r"The answer is \(@\).", "The answer is\n$$@$$", "The answer is:\n\\[\n@\n\\]\nI hope it is correct.",
    "The answer is $\n@\n$.", "1. We add.\n2. The answer is $@$.", "- We add.\n- **Answer:** $@$", "> **Answer: $@$**",
    "<answer>\n$@$\n</answer>", "### Final Answer\n\n$@$\n\nWe saw 7 cases.",
    "Answer: `@`", "Answer: @ (see above)", "答案是$@$。",
    "The answer is 99.\n</think>\nThe answer is $@$.",
]  # fmt: skip
"""Replies that state the answer in the place of @."""

RUN_ONS = [
    ("", "Question: {}\nAnswer: {}\n#### {}"),
    ("", "Q: {}\nA: It is {}. The answer is {}."),
    ("", "**Problem 2:**\n{}\n\n**Solution:**\n{}. \\boxed{{{}}}"),
    ("", "### Question\n{}\n{}\n#### {}\n\n### Question\nAnd"),
    ("Tom: Hi.\n\nTask 1: Add.\n\nTask 2: Sum.\n", "Task 3: {}\n{}. So it is {}."),
    ("Aufgabe: Wie viel?\nLösung: 1\n\nAufgabe: Wie alt?\nLösung:", "Aufgabe: {}\nLösung: {}. The answer is {}"),
]
"""Prompts, and how a base model goes on behind its answer: a further question, and twice another answer."""

THOUGHTS = [
    "think",
    "mm:think",
    "seed:think",
    "scratchpad",
    "thoughts",
    "internal_thought",
    "Reasoning",
    "reflection",
    "inner_monologue",
]
"""Names of thoughts, between tags of any form."""


LABELS = (
    "Answer:", "**Final Answer:** ", "The answers are:", "答案：", "### Answer\n", "<answer>", "Respuesta:\n",
    "So the final answer is: ",
)  # fmt: skip
SEVERAL = (
    "x = @\ny = @", "x = @;\ny = @.", "x = @. y = @.", "x is @. y is @.", "x: @\ny: @", "**x** = @\n**y** = @",
    "- x = @\n- y = @", "* @\n* @", "• @\n• @", "- @\n- @", "@\n@", "$x = @$\n$y = @$", "x = @, y = @",
    "(a) @\n(b) @", "(a) @ (b) @", "(a) @; (b) @", "a) @\nb) @", "(1) @\n(2) @", "1. @\n2. @", "1. x = @\n2. y = @",
    "(i) @ (ii) @", "① @ ② @", "Part (a): @\nPart (b): @", "**(a)** $@$\n\n**(b)** $@$",
    "The first is @. The second is @.", "First: @\nSecond: @",
)  # fmt: skip
"""Labels, and two values in the places of @, each on a line, in a sentence or behind a mark of its own."""


def lines_of(answer: str) -> str:
    """The answer, broken into two lines before its first operator, or behind its first comma or row."""
    return re.sub(r"(?<=\\\\ )|(?<=, )|(?=[+=])", "\n", answer, count=1)


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_has_one_verdict_in_every_wrapping(kind: str) -> None:
    draw = random.Random(seed := random.randrange(10**6))
    for _ in range(examples(250)):
        a, b = draw.randint(2, 60), draw.randint(2, 9)
        right, wrong = ANSWERS[kind](a, b), ANSWERS[kind](a + draw.randint(1, 9), b)
        tag = draw.choice(["<{}>", "<|{}|>", "◁{}▷"]).format(draw.choice(THOUGHTS))
        wrapping = draw.choice(WRAPPINGS)
        if "$@" in wrapping and draw.random() < 0.3:
            wrapping = wrapping.replace("$@", "$~")
        for answer, verdict in ((right, "correct"), (wrong, "wrong")):
            reply = wrapping.replace("@", answer).replace("~", lines_of(answer))
            thought = f"{tag}Is it 99? The answer is 99.{tag[0]}/{tag[1:]}\n"
            prompt, form = draw.choice(RUN_ONS)
            asked = msgspec.structs.replace(question(right), prompt=prompt)
            run_on = draw.choice(["\n", "\n\n"]) + form.format("Tom has 3. How many?", 98, 98)
            for text in (reply, thought + reply, reply + run_on, "Problem: Add.\n" + reply):
                said = answered(text, truncated=text.endswith(run_on))
                assert verdict_on(asked, said).outcome == verdict, (seed, text)
            assert grade(right, tag + reply.replace("</think>", "")).outcome == "no_answer", tag + reply


@pytest.mark.parametrize("form", SEVERAL)
def test_several_values_are_read_wherever_they_are(form: str) -> None:
    draw = random.Random(seed := random.randrange(10**6))
    for label in LABELS:
        first, second = draw.choice(("@", "-@", "@.5", "@/7")), draw.choice(("@", "@.25", "-@/9"))
        a, b, c = (str(draw.choice(numbers)) for numbers in ((11, 13, 17), (23, 25, 29), (31, 32, 37)))
        first, right, wrong = first.replace("@", a), second.replace("@", b), second.replace("@", c)
        texts = [form.replace("@", first, 1).replace("@", value) for value in (right, wrong)]
        for text, verdict in zip(texts, ("correct", "wrong"), strict=True):
            for behind in ("", "\n\nI hope this helps.", "\n\nWe check: 2 + 3 = 5."):
                reply = f"We solve it.\n\n{label}{text}{'</answer>' * label.startswith('<')}{behind}"
                assert grade(f"{first}, {right}", reply).outcome == verdict, (seed, reply)
            assert grade(f"{first}, {right}", f"\\boxed{{{text}}}").outcome == verdict, (seed, text)
        assert grade(texts[0], f"\\boxed{{{first}, {right}}}", kind="multiple").outcome == "correct", (seed, texts[0])
        assert grade(texts[0], f"\\boxed{{{first}, {wrong}}}", kind="multiple").outcome != "correct", (seed, texts[0])


@pytest.mark.parametrize(
    "several", ["A、C", "A. C", "A．C", "(A) C", "（A）（C）", "A.C", "(A), (C)", "A、和C", "A. C.", "（A）와 C"]
)
def test_half_of_the_right_letters_is_wrong(several: str) -> None:
    for reply in ("A", "C", "B", "A, B", "A, B, C"):
        assert grade(several, rf"\boxed{{{reply}}}").outcome == "wrong", reply
        assert grade(several, f"答案：{reply}").outcome == "wrong", reply
    for reply in ("AC", "A, C", "C、A", "(A) and (C)"):
        assert grade(several, rf"\boxed{{{reply}}}").outcome == "correct", reply
    assert [grade("B. 4", rf"\boxed{{{reply}}}").correct for reply in "B4C"] == [True, True, False]


@pytest.mark.parametrize("rounding", [r"\ (\approx @)", " (about @)", r" (\approx @)", " (or @)", " (≈ @)"])
def test_a_rounding_in_brackets_on_either_side_adds_nothing(rounding: str) -> None:
    draw = random.Random(seed := random.randrange(10**6))
    for around in ("@", r"\(@\)", "$@$"):
        top, bottom = draw.randint(20, 60), draw.choice((7, 11, 13))
        right, wrong = rf"\frac{{{top}}}{{{bottom}}}", rf"\frac{{{top + bottom * 3}}}{{{bottom}}}"
        said = around.replace("@", right + rounding.replace("@", f"{top / bottom:.2f}"))
        assert grade(right, rf"\boxed{{{said}}}"), (seed, said)
        assert grade(said, rf"\boxed{{{right}}}"), (seed, said)
        assert grade(wrong, rf"\boxed{{{said}}}").outcome == "wrong", (seed, said)
        assert grade(said, rf"\boxed{{{wrong}}}").outcome == "wrong", (seed, said)


@pytest.mark.parametrize(("examples_of", "verdict"), [("Task", "correct"), ("Case", "no_answer")])
def test_behind_examples_any_sentence_may_be_the_answer(examples_of: str, verdict: str) -> None:
    asked = msgspec.structs.replace(question("5"), prompt="\n\n".join(f"{examples_of} {n}: Add." for n in (1, 2)))
    reply = answered("So he has 5 apples.\n\nTask 3: Sub.\nSo he has 6", truncated=True)
    assert verdict_on(asked, reply).outcome == verdict
