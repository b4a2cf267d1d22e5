r"""The words in English behind a box that holds a bare number: what may stand there and leave the number standing.

Behind the box, up to the next mark, only these may stand; any other words are read as the name of what was measured or
counted, `\boxed{4}HKD` as 4 HKD, so that they equal themselves only:

    nothing                               \boxed{4}.
    a known unit or a counted noun        \boxed{4} km long, \boxed{5} pears, which is compared
    words that link or go on in prose     \boxed{4} is the answer · \boxed{4} as required · \boxed{4} So we get 4.
    behind a space, any words             \boxed{4} furlong, if the reference is a bare number
    the ending of an ordinal              the \boxed{4}th day, likewise
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS, changes_number, is_plural, split_scale, unit_of, with_per
from harness.grading.find.beside_box import NUMBER

_BEHIND_CHARS = 120
"""Longest text behind a box that is read."""

_LAYOUT = (
    r"(?:\\(?:text(?:bf|rm|it)?|mbox|mathrm|mathbf|operatorname|rm|bf|left|right|displaystyle)(?![A-Za-z])"
    r"|\\[()\[\]]|[{}$*_`])"
)
_SPACE = r"(?:[ \t~-]|\\[,;:! ]|\\q?quad(?![A-Za-z]))"
_WORD = r"(?:[aApP]\.[mM]\b|[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f'’]*)"
_WORDS_BEHIND = re.compile(
    rf"(?P<between>(?:{_LAYOUT}|{_SPACE})*)"
    r"(?:of (?:(?:the|an?|his|her|their|its|our|my|these|those) )?)?"
    r"(?:(?:more|other|remaining|different|possible|distinct) (?!than\b))?"
    rf"(?P<words>{_WORD}(?:[ ~-]+{_WORD}){{0,5}})"
)
"""Words behind a box; those that stand before what was counted are left out: 7 of the boxes, 8 more weeks."""

_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")

_GOES_ON = (FUNCTION_WORDS - {"per", "am"}) | names(
    "answer answers check checks correct correctly equals exactly explanation final finally fits follows gives "
    "hence here holds hope indeed let makes matches meaning means note overall namely remains represents respectively "
    "result right satisfies seems solution solves step suffices therefore total altogether verification where which "
    "works yields also now please again only"
)
"""Words that may follow an answer in plain prose, and those that begin the next sentence."""

_PER_TIME = names("hourly daily weekly monthly yearly annually")
"""Words that make a rate of the quantity before them: 120 dollars monthly."""


def name_behind(content: str, text: str, end: int, hi: int, *, is_bare: bool) -> str:
    """Return the unknown words that name what the number in a box measures or counts; "" if none stand behind it.

    content: the content of the box, which ends at `end` of text[:hi]. is_bare: the reference is a number without a
    unit.
    """
    match = _WORDS_BEHIND.match(text, end, min(hi, end + _BEHIND_CHARS))
    if match is None or NUMBER.fullmatch(content) is None:
        return ""
    touches = re.search(_SPACE, match["between"]) is None
    if is_bare and (not touches or _ORDINAL.match(match["words"])):
        return ""
    words = re.split(r"[ ~-]+", with_per(match["words"]))
    words = words[: next((index for index, word in enumerate(words) if word.lower() in _GOES_ON), len(words))]
    for length in range(len(words), 0, -1):
        if _measures(name := " ".join(words[:length])):
            return name if _leaves_unit(words[length:]) else " ".join(words)
    # A plural ends the name: "students passed" are students.
    length = next((index for index, word in enumerate(words, 1) if is_plural(word.lower())), len(words))
    if words[length : length + 1] == ["per"]:
        length += 3 if words[length + 1 : length + 2] in (["square"], ["cubic"]) else 2
    return " ".join(words[:length])


def _leaves_unit(words: list[str]) -> bool:
    """Whether words behind a unit only say of what the quantity is: "long", "profit", not "per day" or "Canadian"."""
    if not words:
        return True
    goes_on = words[0] == "per" or words[0] in _PER_TIME or words[0][0].isupper() or _measures(words[0])
    return not goes_on and not changes_number(" ".join(words))


def _measures(words: str) -> bool:
    """Whether words are a unit or a numeral of scale, perhaps with a unit: "km", "million dollars"."""
    factor, rest = split_scale(words)
    return unit_of(words) is not None or (factor != 1 and (not rest or unit_of(rest) is not None))
