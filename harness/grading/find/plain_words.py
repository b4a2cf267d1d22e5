"""Words of English that may be part of a name, and words of conditions and guesses: the vocabulary of closed rules."""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS

LIMITING = names(
    "wrong incorrect false mistaken erroneous inaccurate possible potential likely probable plausible approximate "
    "rough tentative provisional preliminary initial original previous earlier former old other another next first "
    "second half double triple intermediate partial hypothetical apparent theoretical naive usual typical ideal "
    "nominal several some many few more less sample"
)
"""Adjectives that may say that a quantity is another one than the question asks for, or is not certain."""

DETERMINERS = names("the a an its their his her our this these of and")

_PROCEDURE = names("case cases step steps condition assumption hypothesis")
"""Nouns for steps of a solution; a number of these ("3 cases") is no answer."""

_CONDITIONAL = names(
    "if unless when whenever where suppose supposing assume assumed assuming provided providing given let would could "
    "should might may perhaps maybe possibly probably had were except although though while until whether or either "
    "imagine say says said claim claims guess for with in without only against"
)
"""Words of conditions, guesses and reports, and prepositions that open a condition ("with repetition")."""


def has_condition(clause: str) -> bool:
    """Whether a clause has a word of conditions or guesses ("if", "perhaps"), or a noun for a step of a solution."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", clause)}
    return not words.isdisjoint(_CONDITIONAL) or not words.isdisjoint(_PROCEDURE)


_MAX_NO_PARTICIPLE = 3
"""Words of this many letters that end in -ed are no participles: bed, red."""

_SEEMS = names("seem seems seemed appear appears appeared likely unlikely tends happens")
"""Words of doubt before "to be"."""


def are_plain(tokens: list[str], function_words: frozenset[str]) -> bool:
    """Whether all tokens are nouns, adjectives, formulas or the given function words."""
    before = ""
    for word in tokens:
        if (word in FUNCTION_WORDS and word not in function_words) or word in _SEEMS:
            return False
        participle = word == "given" or (word.endswith(("ing", "ed")) and len(word) > _MAX_NO_PARTICIPLE)
        if word in _PROCEDURE or (participle and before not in DETERMINERS):
            return False
        before = word
    return True
