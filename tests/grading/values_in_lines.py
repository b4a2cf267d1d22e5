"""Made replies whose values stand on lines of their own, or with a space between them, each beside its reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """A reference and a reply with its label."""

    reference: str
    reply: str
    is_right: bool


ANSWERS: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("x=5，y=2", ("x=5", "y=2"), ("x=5", "y=3")),
    ("x=-1, y=\\frac{1}{2}", ("x=-1", "y=\\frac{1}{2}"), ("x=-1", "y=-\\frac{1}{2}")),
    ("a=1，b=2，c=-3", ("a=1", "b=2", "c=-3"), ("a=1", "b=-2", "c=-3")),
    ("x=2或x=3", ("x_1=2", "x_2=3"), ("x_1=2", "x_2=4")),
    ("x=2或x=3", ("x₁=3", "x₂=2"), ("x₁=3", "x₂=3")),
    ("x=0或x=-7", ("x = 0", "x = -7"), ("x = 0", "x = 7")),
    ("x=±4", ("x=4", "x=-4"), ("x=4", "x=4")),
    ("4和-4", ("4", "-4"), ("4", "4")),
    ("6，8", ("6", "8"), ("6", "9")),
    ("\\frac{1}{2}，3", ("3", "\\frac{1}{2}"), ("3", "\\frac{1}{3}")),
]
"""Reference, its values and other values."""

IN_LINES = [
    "{0}\n{1}",
    "解：{0}\n    {1}",
    "解得：\n{0}\n{1}",
    "所以\n{0}，\n{1}。",
    "答案：{0}\n{1}",
    "**答案：**\n\n{0}\n\n{1}",
    "因此，\n{0}，\n{1}",
    "解：把①代入②，\n得：\n{0}\n{1}",
    "解为\n{0}\n{1}",
    "答：\n{0}\n{1}。",
    "Therefore\n{0}\n{1}",
    "$${0}$$\n$${1}$$",
    "${0}$\n${1}$",
    "\\[{0}\\]\n\\[{1}\\]",
    "\\[{0}\\]\\[{1}\\]",
    "故\n\\({0}\\)\n\\({1}\\)",
]
"""Layouts with a line or a displayed formula for each value."""

WITH_SPACES = ["{0} {1}", "解得 {0} {1}", "${0}$ ${1}$", "\\boxed{{{0} {1}}}", "\\boxed{{{0}\\ {1}}}", "答：{0}  {1}"]
IN_BOX = ["\\boxed{{{0}\\quad {1}}}", "\\boxed{{{0}\\\\ {1}}}", "答案是\\boxed{{{0} \\qquad {1}}}。"]
"""Layouts of a box with the wide spaces and the line break of LaTeX."""

OF_NAMES_ONLY = "="
"""Two numbers with a space between may be a difference, so that those layouts are for values with names."""


def laid_out(layout: str, values: Sequence[str]) -> str:
    """Return a reply with `values` in a layout for two of them; further ones repeat what stands between the two."""
    head, between = layout.split("{0}")
    between, tail = between.split("{1}")
    return "".join((head, between.join(values), tail)).replace("{{", "{").replace("}}", "}")


def pairs() -> Iterator[Pair]:
    """Yield right replies, and beside each the same layout with a wrong value, a value less and a value more."""
    for reference, right, wrong in ANSWERS:
        layouts = IN_LINES + IN_BOX + (WITH_SPACES if OF_NAMES_ONLY in right[0] else [])
        for layout in layouts:
            yield Pair(reference, laid_out(layout, right), True)
            yield Pair(reference, laid_out(layout, wrong), False)
            more = "z=1" if OF_NAMES_ONLY in right[0] else "1"
            yield Pair(reference, laid_out(layout, (*right, more)), False)
        yield Pair(reference, right[0], False)
        yield Pair(reference, f"解得：{right[-1]}", False)
