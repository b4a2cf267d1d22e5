"""Answers in words that no rule reads: 30平方米地面, 7是质数, "30 square metres of floor".

Such an answer equals its own text and no other. As a further reference it is one more wording of the other references,
so that an answer that is proven to differ from these is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from harness.answers.boxed import without_boxes
from harness.answers.grammar.characters import plain_latex
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.numerals import IN_WORDS, number_in_words
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import walk
from harness.answers.grammar.units import is_counted, unit_of
from harness.answers.spreadsheets import EXAMPLES, is_number_or_ratio, may_be_changed
from harness.answers.words import is_known_word, is_words, numeral_as_digits, stands_for_value, without_text_commands
from harness.core.inert import visible
from harness.grading.compare.dates import day_of
from harness.grading.compare.named_quantities import names_quantities

MAX_CHARS = 200
"""Longest answer of which `obstacle` is told, in characters."""

_NUMBER = re.compile(
    rf"\d+(?:\.\d+)?|[零〇一二两三四五六七八九十百千万亿半]+|{IN_WORDS.pattern.removeprefix('(?i)')}", re.I
)


@lru_cache(maxsize=1_024)
def unread_words(source: str) -> tuple[str, ...]:
    """Return the words of an answer that no rule reads; none if the grammar reads all of it, or none of it.

    Words that are read: units, what was counted, numbers, days, names of values, and words for a value, such as "no
    solution".
    """
    text = numeral_as_digits(without_boxes(source))
    if stands_for_value(text) or day_of(text) is not None:
        return ()
    try:
        tree = parse(text)
    except (Unreadable, RecursionError):
        return ()
    names = [side for node in walk(tree) if node.op == "rel" for side in node.args[0]]  # 面积 in 面积是30
    unread = []
    for node in walk(tree):
        words = str(node.args[1]) if node.op == "quantity" else str(node.args[0]) if node.op == "text" else ""
        # "of rice" in "kg of rice" says what was weighed, and "apples" what was counted.
        counts = node.op == "quantity" and is_counted(words) and _behind_unit(words) == words
        if words and not counts and unit_of(words) is None and not stands_for_value(words) and node not in names:
            unread.append(words)
    return tuple(unread)


def is_unread(reference: str) -> bool:
    """Whether no rule reads any value in a reference that has more than words, such as a solution that ends in
    `#### 18`: a reply that does not repeat its text stays undecided.
    """
    text = numeral_as_digits(without_boxes(reference))
    if is_words(text) or stands_for_value(text) or day_of(text) is not None:
        return False
    try:
        parse(text)
    except (Unreadable, RecursionError):
        return True
    return False


def obstacle(reference: str, answer: str) -> str:
    """Return in words why no rule compares two answers: the words that it cannot read; empty if it reads all words."""
    if max(len(reference), len(answer)) > MAX_CHARS:
        return ""
    reference, answer = (without_text_commands(text).strip() for text in (reference, answer))
    if may_be_changed(answer) and is_number_or_ratio(reference):
        return f"the answer “{visible(answer)}” may be what a spreadsheet made of another one: {EXAMPLES}"
    if names_quantities(reference):
        others = "other names or values" if names_quantities(answer) else "no name and value for each"
        return f"the reference names its quantities, and the answer “{visible(answer)}” has {others}"
    if is_words(reference) and is_words(answer):
        return f"the answer “{visible(answer)}” is other words than the reference, and may mean the same"
    for name, text, other_text in (("answer", answer, reference), ("reference", reference, answer)):
        for words in unread_words(text):
            if not is_known_word(words) and words not in other_text:
                return f"no rule reads “{visible(_behind_unit(words))}” in the {name} “{visible(text)}”"
    if is_words(reference) != is_words(answer):
        kinds = ("words", "a formula") if is_words(reference) else ("a formula", "words")
        return f"the reference is {kinds[0]}, and the answer “{visible(answer)}” is {kinds[1]}"
    return ""


def unread_beside_value(reference: str) -> str:
    """Return the first words beside a value that no rule reads: 个左右吧 of 7或8个左右吧; empty without such words.

    Named quantities, 长12厘米，宽6厘米, are read: they are compared by their names.
    """
    words = () if is_words(reference) or names_quantities(reference) else unread_words(reference)
    return next((_behind_unit(part) for part in words if not is_known_word(part)), "")


def _behind_unit(words: str) -> str:
    """Return 地面 of 平方米地面: the words behind the longest unit that begins them; all words if none does."""
    for end in range(len(words) - 1, 0, -1):
        if (words[end] == " " or not words[end].isascii()) and unit_of(words[:end]) is not None:
            return words[end:].strip()
    return words


def is_another_wording(further: str, references: Sequence[str], answer: str) -> bool:
    """Whether a further reference says in words what the others say, so that `answer`, which does not have its text,
    is right only if it equals one of them.

    A number that no other reference has may be another value: beside 5, "x等于3" leaves the answer 3 undecided.
    references: all references of the question; the first is never another wording.
    """
    if further == references[0] or not unread_words(further):
        return False
    others = (reference for reference in references if reference == references[0] or not unread_words(reference))
    return not _numbers(answer) or _numbers(further) <= frozenset[str]().union(*map(_numbers, others))


@lru_cache(maxsize=1_024)
def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, those in words as digits."""
    return frozenset(number_in_words(match) or match for match in _NUMBER.findall(plain_latex(text)))
