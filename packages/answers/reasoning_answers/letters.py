r"""The option letter that an answer names: `B`, `(B)`, `\textbf{(B)} 12`, `Option B`.

A letter counts when it is marked as one: alone, in brackets, before a dot or a bracket with the option's text after it,
or after "option". The article "A" before a word is never a letter.
"""

from __future__ import annotations

import re
from functools import lru_cache

from reasoning_answers.bounds import LAST_LETTER
from reasoning_answers.grammar.notation import plain_latex
from reasoning_answers.patterns import regex

_MAX_CHARS = 2_000
"""Number of characters at the start of an answer that are searched for a letter; the rest is ignored."""

_WRAPPER = regex(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|mbox|bf|rm|operatorname|boxed|fbox)(?![A-Za-z])"
)
"""A command that sets words in another typeface; its content is kept."""

_NOISE = regex(r"[\s${}*]|\\(?:[,;:!() \[\]]|quad|qquad|left|right)")
"""Blanks, dollar signs and layout commands between the characters of an answer."""

_ALONE = regex(r"[(\[（]?([A-Z])[)\]）]?(?:选?项)?[.:、．。]?", re.ASCII)
_WITH_TEXT = regex(r"(?:[(\[（]([A-Z])[)\]）]|([A-Z])(?:[).、．] ?|[:：]\s+)) ?\S", re.ASCII)
_LOWER_WITH_TEXT = regex(r"(?:[(\[（]([a-z])[)\]）]|([a-z])(?: ?[)、．] ?|[.:：]\s+)) ?\S", re.ASCII)
"""`_ALONE…`: a letter that is the whole answer. `…WITH_TEXT`: a letter before the text of its option, as in (B) 12."""

_NAMED_OPTION = regex(
    r"(?:(?:所以|因此|故)?[，,]?(?:本题|此题|正确)?的?(?:答案|选项)?(?:[是为应]|应该|对应)?的?(?=选))?"
    r"(?i:the\s+)?(?i:(?:correct|right|final|best)\s+)?(?i:option|choice|answer|选项|选择|选) ?"
    r"(?i:is|为|是|[-–—])? ?[:：]? ?[(\[（]?([A-Z])[)\]）]?(?![A-Za-z0-9'])"
    r"(?!(?<=[AI])\s+(?!(?:is|because|since|and|or)\b)[a-z])",
    re.ASCII,
)
"""A letter after the word for an option: "the answer is B", "Option (B)", 故选B."""

_SECOND_LETTER = regex(
    r" ?[)\]）]? ?[.．]? ?(?:[,，、;/&]|or\b|and\b|和|或|及|还是选?|以?及)[ ,]*(?:or\b|and\b)? ?"
    r"(?:[(\[（] ?([A-Za-z]) ?[)\]）]|([A-Z])(?![A-Za-z0-9'’]))",
    re.ASCII,
)
"""Another letter joined to the first one by "or", "and" or a comma."""

_SPEAKS_OF_OPTION = regex(
    r"(?i)[)\]）.:、．\s]*(?:选项)?(?:是|均|都)?(?:[不非错否]|有误|(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|shall|should|may|might|must|cannot"
    r"|isn['’]t|doesn['’]t|can['’]t|or|and|not|nor|but|if|unless)\b)(?!\s+(?:therefore\s+|thus\s+)?(?:the\s+)?(?:only\s+)?"
    r"(?:correct|right|best|answer)\b)"
)
"""An auxiliary verb or a conjunction after a letter: "A is wrong" talks about the option and does not choose it."""

_LABEL = regex(r"(?<=[\s,;])([A-J])\)(?=\s)", re.ASCII)
"""The label of an option inside a text: the B) of "A) true B) false"."""

_LIST_OF_LABELS = regex(r"(?:[A-Z][.)]){2,}", re.ASCII)
"""Labels without texts, "A) B) C)", which choose no option."""

_BETWEEN = r"(?:[\s,，、;；/&+]|and\b|和|以?及|与)*"
"""Separators between two letters that form one answer: A, C and D."""

_LEAD = regex(
    r"\A(?:所以|因此|故|综上|[，,])*(?:正确|本题)?的?(?:答案|选项)?应?该?[是为选]*[:：]? ?(?=[(\[（]? ?[A-Z])"
)
"""Chinese words before the letters of an answer: 正确答案是, 故选."""

_OR = regex(r"\bor\b|或者?")
_IN_DOUBT = regex(r"(?i)\b(?:or|either|maybe|perhaps|possibly)\b|或者?|还是|可能是?|[?？]\Z")
"""Words that leave open which of several letters is meant; the first alone say that any of them may be."""

_BRACKETED = r"[(\[][A-Z][)\]]"
_LETTERS_TOGETHER = regex(
    rf"[(\[]? ?[A-Z](?:{_BETWEEN}[A-Z])+ ?[)\]]?|{_BRACKETED}(?:{_BETWEEN}{_BRACKETED})+", re.ASCII
)
"""Letters in one bracket, in none, or each in its own; E(AB) is a function of A and B."""


def letter_of(answer: str, last: str = "Z", *, any_case: bool = False) -> str | None:
    """The option letter that an answer names, as a capital from A to `last`; None if it names none or several.

    any_case: whether lower-case letters count too. Set it only if the question is known to be a choice.
    """
    plain = _plain(answer)
    squeezed = plain.replace(" ", "")
    if _LIST_OF_LABELS.fullmatch(squeezed):
        return None
    if match := _ALONE.fullmatch(squeezed.upper() if any_case else squeezed):
        return _up_to(match[1], last)
    match = _WITH_TEXT.match(plain) or _NAMED_OPTION.match(plain)
    if match is None and any_case:
        match = _LOWER_WITH_TEXT.match(plain)
    if match is None:
        return None
    group = match.lastindex or 1  # the group, among the pattern's alternatives, with the letter
    letter, end = match[group].upper(), match.end(group)
    return None if _is_no_choice(plain, letter, end) else _up_to(letter, last)


def _is_no_choice(plain: str, letter: str, end: int) -> bool:
    """Whether the text after a letter talks about its option or names another option as well.

    plain: the answer without layout. end: the end of the letter in `plain`.
    """
    if _SPEAKS_OF_OPTION.match(plain, end):
        return True  # "A is wrong"
    behind = _ALONE.fullmatch(plain[end:].lstrip(")]）.:、．。： ").replace(" ", ""))
    if behind is not None and behind[1] != letter:
        return True  # "(A)(B)" names two options
    if any(label[1] != letter for label in _LABEL.finditer(plain, end)):
        return True  # "A) true B) false" says something about each option
    second = _SECOND_LETTER.match(plain, end)
    return second is not None and (second[1] or second[2]).upper() != letter  # "A or B"


def letters_of(answer: str) -> frozenset[str] | None:
    """The letters of an answer that consists of two or more different ones: `A, C`, `AC`, `(A) and (C)`; else None."""
    plain = _plain(answer).rstrip("。.")
    plain = plain if plain.isascii() else _LEAD.sub("", plain, count=1)
    if _LETTERS_TOGETHER.fullmatch(plain) is None:
        return None
    letters = re.findall(r"(?<![a-z])[A-Z](?![a-z])", plain)
    return frozenset(letters) if 1 < len(letters) == len(set(letters)) and max(letters) <= LAST_LETTER else None


def is_one_of_letters(answer: str, *, in_doubt: bool = False) -> bool:
    """Whether an answer only names options, and does not choose between them: `A, B or C`.

    in_doubt: whether it may have other words of doubt: `either A or B`.
    """
    plain = _plain(answer)
    joined = (_IN_DOUBT if in_doubt else _OR).sub(",", plain)
    return joined != plain and letters_of(joined.strip(" ,")) is not None


@lru_cache(maxsize=256)
def _plain(answer: str) -> str:
    """Return `answer` without LaTeX commands and characters that only change its appearance, and with single blanks."""
    return " ".join(_NOISE.sub(" ", _WRAPPER.sub(" ", plain_latex(answer[:_MAX_CHARS]))).split())


def _up_to(letter: str, last: str) -> str | None:
    """Return `letter` if it is one of the options A to `last`, otherwise None."""
    return letter if "A" <= letter <= last else None
