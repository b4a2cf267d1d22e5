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


@pytest.mark.parametrize(("examples_of", "verdict"), [("Task", "correct"), ("Case", "no_answer")])
def test_behind_examples_any_sentence_may_be_the_answer(examples_of: str, verdict: str) -> None:
    asked = msgspec.structs.replace(question("5"), prompt="\n\n".join(f"{examples_of} {n}: Add." for n in (1, 2)))
    reply = answered("So he has 5 apples.\n\nTask 3: Sub.\nSo he has 6", truncated=True)
    assert verdict_on(asked, reply).outcome == verdict
