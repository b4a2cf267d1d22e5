"""Comparison of answers in words, without regard to case, articles, punctuation and commands of layout."""

from __future__ import annotations

from harness.answers.words import as_compared, exclude_each_other, without_layout, without_text_commands
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows
from harness.grading.compare.scalars import Comparison


def same_words(reference: str, answer: str, rules: GradeRules) -> Comparison:
    """Compare two answers in words; with the convention `text_case` off, upper and lower case count.

    The capitals of a product of letters count: mgh is not MGH. Different words are undecided, for they may say the
    same. They are wrong only if both stand on a closed list of words that cannot both be right, such as yes and no.
    对 and 错 are true and false, not 是 and 否: to 小明算错了吗？ they may speak of the calculation. A question
    ("yes?") states nothing.
    """
    if answer.rstrip().endswith(("?", "？")):
        return Comparison(None, "words")
    if allows(rules, "text_case"):
        first, second = as_compared(reference), as_compared(answer)
        if first == second:
            return Comparison(True, "words")
        return Comparison(False if exclude_each_other(first, second) else None, "words")
    first, second = (without_layout(without_text_commands(text)) for text in (reference, answer))
    return Comparison(True if first == second else None, "words")
