r"""What stands directly beside a box and belongs to its value: `\boxed{12}` cm is 12 cm, `x=-\boxed{12}` is -12.

Before the box, its formula may begin, or a relation, a mark or words may stand; behind it, a unit, a percent sign, a
degree sign, a relation, a mark or words. Units, signs and currencies are taken into the answer. An operator, a digit, a
letter, a command or a bracket of a call makes the box a part of a larger expression, which leaves it open.

    before box behind          value
    `x = -` 5                  -5
    12 `\text{ cm}` or ` cm`   12 cm
    `2\cdot` 5 or 5 `!`        open
"""

from __future__ import annotations

import re
import unicodedata

from harness.answers.boxed import Box
from harness.answers.grammar.units import FUNCTION_WORDS, split_scale, unit_of
from harness.answers.patterns import regex

BEFORE_CHARS, BEHIND_CHARS = 200, 80
"""Longest text before and behind a box that is read, in characters."""

_DELIMITER = regex(r"\\\\|\\[()\[\]$]|\$\$?")
"""The beginning or end of a formula, or one of two signs that contain such a sign: `\\\\`, `\\$`."""

_NUMBER = regex(
    r"(?>(?:[\s\d.,{}()^+\-−*/×·√π]++|\\(?:[dt]?frac|sqrt|pi|cdot|times|left|right)(?![A-Za-z])|\\[,;! ]"
    r"|(?<=\d)[eE](?=[-+\d]))+)"
)
"""The content of a box that a unit may follow: a number without letters."""

_PASSED = (
    r"(?>(?:\s|~|[{}]|\\[,;:! ]|\\(?:q?quad|displaystyle|large|Large|huge|bf|boxed|mathbf|boldsymbol|text"
    r"|mathrm|color)(?![A-Za-z])|[*_]){0,20})"
)
"""Layout and marks between a value and the sign or relation before it."""

_OPENS = regex(
    r"(?:\A|[=≈≃≡<>≤≥→⇒∴:：,，;；&.}。\]\u3400-\u9fff]|\\(?:approx|equiv|sim|cong|to|mapsto|implies|iff"
    r"|(?:[Ll]ong)?[Rr]ightarrow|therefore|leq?|geq?"
    rf"|leqslant|geqslant|lt|gt|in|quad|qquad|item|colon)(?![A-Za-z])"
    rf"|\\\\|(?<![a-z])[a-z]{{2,}}\s*\}}){_PASSED}(?P<sign>[-−+]?){_PASSED}"
    rf"(?P<money>\\\$|[€£¥￥])?{_PASSED}\Z"
)
"""Inside a formula: the end of what stands before a value that is no part of a larger expression, with its sign and
currency.
"""

_OPERATOR_IN_TEXT = regex(
    r"(?:[÷×^/]|(?<=[\d)}])\s*[+*]|\\(?:div|times|cdot|s?qrt|sin|cos|tan|ln|log|exp)(?![A-Za-z]))[\s{$\\(]*\Z|\d\Z"
)
"""An operator, a function or a digit directly before a value, which makes it a part of an expression."""

_OPERATOR_BEFORE_FORMULA = regex(r"(?:[+/×÷·]|\\(?:div|times|cdot))\s*(?:\$\$?|\\[(\[])\Z")
"""An operator before the dollar sign of a formula."""

_SIGN_IN_TEXT = regex(r"(?:[=≈]\s{0,9}(?P<sign>[-−])\s{0,9})?(?P<money>\\\$|[€£¥￥])?[\s*_]{0,9}\Z")
"""Outside of formulas: the sign and the currency directly before a value; both may be missing."""

_BEFORE_UNIT = regex(
    r"(?i)\A(?:[\s~}$.]{0,9}\(?(?:(?:the\s+)?units?\s*(?:is|are|:)|单位[是为:]?)\s*)?"
    r"(?:[\s~}$]|\\(?:[,;:! ]|q?quad(?![a-z]))|\(\s*(?:in\s+)?(?=[A-Za-z°/]+\)))*"
)
"""The text between a value and its unit: layout, "units:", an opening bracket."""

_PERCENT = regex(r"\\?%|percent\b|per\s+cent\b")
_DEGREES = regex(
    r"\^?\s*+\{?\s*+(?:\\circ|°)\s*+\}?\s*+(?:\\(?:text|mathrm|rm)\s*+\{?\s*+)?(?P<scale>[CF])?(?![A-Za-z])"
    r"|degrees?\b(?!\s+[A-Z])"
)
"""A degree sign, with C or F for a temperature, or the word."""

_UNIT_IN_FORMULA = regex(
    r"(?>(?:\\(?:text|mathrm|mbox|textrm|rm|operatorname|cdot|,|;| )\s*+"
    r"|[{}\s~]++)*)(?P<unit>[A-Za-zµΩ²³°/·\u4e00-\u9fff](?:[A-Za-z0-9µΩ²³°/·.^{}\s\u4e00-\u9fff-]"
    r"|\\(?:text|mathrm|cdot|,)){0,40})"
)
"""A unit behind a command of text or of a product, or in braces."""

_WORDS = regex(
    r"[A-Za-zµΩ°][A-Za-zµΩ°/^·²³0-9]*(?:[ -][A-Za-z][A-Za-z/^·²³0-9]*){0,4}"
    r"|[\u4e00-\u9fff]{1,6}(?:/[\u4e00-\u9fff]{1,4})?"
)
"""Up to five words, or Chinese characters, of which the first may be a unit."""

_ENDS = regex(r"\s*(?:\Z|[.,;:!?…)\]*_|。，；！？）]|\\\\|\n|\\[\])]|\$|<)")
"""The end of a clause behind a unit."""

_CONTINUES = regex(
    r"[\^_!‰¹²³⁰-⁹]|\s?[+/×÷]\s?[\w\\(]"
    r"|\*(?!\*)\s?[\d(\\]|\s?[-−]\s?[\d\\]|\d|[A-Za-z](?![A-Za-z])|\((?=\s*[-\d])|\\(?:cdot|times|div|frac|sqrt|pi|pmod)\b"
)
"""An operator, digit, letter, command or call directly behind a value, which makes it a part of an expression."""

_EXCLAIMS = regex(r"\A!+(?=\s*(?:\Z|[A-Z\n]))")
"""The end of an exclamation; inside a formula it is a factorial."""

_COMPUTES = regex(r"(?i)\s*(?:squared|cubed|factorial|plus|minus|divided\s+by|times\s+(?=[\d$\\])|to\s+the\s+power)\b")
"""Words behind a value that compute with it."""

_AMBIGUOUS = frozenset(("in", "am", "a", "as", "us"))
"""Names of units that are words, too: they are units only alone and at the end of a statement."""


def beside_box(text: str, box: Box, lo: int, hi: int) -> str | None:
    """Return the value of a box of text[lo:hi] with what belongs to it; None if it is a part of a larger expression."""
    value = box.content
    behind = text[box.outer_end : min(hi, box.outer_end + BEHIND_CHARS)]
    start = _formula_around(text, box.outer_start, lo)
    # inside, outside: the text behind the box in its formula, and the text behind the formula
    if start is None:
        line = text[max(lo, box.outer_start - BEFORE_CHARS) : box.outer_start].rpartition("\n")[2]
        if _OPERATOR_IN_TEXT.search(line):
            return None
        before = _SIGN_IN_TEXT.search(line)
        inside, outside = "", _EXCLAIMS.sub("", behind)
    else:
        if _OPERATOR_BEFORE_FORMULA.search(text, max(lo, start - 20), start):
            return None
        before = _OPENS.search(text[start : box.outer_start])
        closing = next((match for match in _DELIMITER.finditer(behind) if match.group() not in ("\\\\", "\\$")), None)
        inside, outside = (behind, "") if closing is None else (behind[: closing.start()], behind[closing.end() :])
    if before is None or (_CONTINUES.match(inside.lstrip(" }~")) and not _unit(value, inside)):
        return None
    if _COMPUTES.match(outside) or (start is None and _CONTINUES.match(outside) and not _unit(value, outside)):
        return None
    unit = _unit(value, inside) or ("" if inside.strip(" }~.,") else _unit(value, outside.lstrip(" *_")))
    if before["money"] and _NUMBER.fullmatch(value):
        value = before["money"] + value
    if before["sign"] in ("-", "−"):
        value = f"-{value}" if re.fullmatch(r"\s*\\?[$€£¥]?[\d.,]+\s*", value) else f"-({value})"
    return value + unit


def _formula_around(text: str, position: int, lo: int) -> int | None:
    """Return where the formula around `position` begins; None outside a formula. lo: first character that is read."""
    first = max(lo, position - BEFORE_CHARS)
    first = max(first, text.rfind("\n\n", first, position) + 1)  # no formula goes on behind an empty line
    opening: tuple[str, int] | None = None  # the sign that opened a formula, and where the formula begins
    for match in _DELIMITER.finditer(text, first, position):
        sign = match.group()
        if sign in ("\\(", "\\["):
            opening = sign, match.end()
        elif sign in ("\\)", "\\]"):
            opening = None
        elif sign in ("$", "$$"):
            opening = None if opening is not None and opening[0] in ("$", "$$") else (sign, match.end())
    return None if opening is None else opening[1]


def unit_behind(value: str, behind: str) -> str:
    """Return the unit that the text behind a number begins with, as LaTeX; else ""."""
    return _unit(value, behind[:BEHIND_CHARS].lstrip(" *_"))


def _unit(value: str, behind: str) -> str:
    """Return the unit, percent sign or degree sign at the beginning of the text behind a number, as LaTeX; else "".

    value: the number. Of a run of words the longest unit is taken, unless the words behind it make it another word.
    """
    if not behind.strip(" .$*}\n") or _NUMBER.fullmatch(value) is None:
        return ""
    plain = _BEFORE_UNIT.sub("", unicodedata.normalize("NFKC", behind))
    if _PERCENT.match(plain):
        return "\\%"
    if (degrees := _DEGREES.match(plain)) is not None:
        return "^\\circ" + (f"\\text{{{degrees['scale']}}}" if degrees["scale"] else "")
    commanded = _UNIT_IN_FORMULA.match(plain) if plain[:1] in ("\\", "{") else None
    if commanded is not None:
        name = re.sub(r"\\(?:text|mathrm|cdot|,)|[{}\s]", " ", commanded["unit"]).strip(" .")
        return f"\\text{{ {name} }}" if _measures(name) else ""
    words = _WORDS.match(plain)
    if words is None:
        return ""
    parts = re.split(r"(?<= )|(?<=-)", words.group())
    for count in range(len(parts), 0, -1):
        name = "".join(parts[:count]).strip(" -")
        if (" " in name and not _AMBIGUOUS.isdisjoint(name.lower().split())) or not _measures(name):
            continue
        after = plain[len(name) :]
        scale, _ = split_scale(name)
        if scale != 1:
            return f"\\text{{ {name} }}"
        next_word = re.match(r"\s+([A-Za-z]+)\b", after)
        goes_on = next_word is not None and next_word[1].lower() in FUNCTION_WORDS and next_word[1].lower() != "per"
        ends = _ENDS.match(after) is not None or not after[:1].isascii() or not name.isascii()
        return f"\\text{{ {name} }}" if ends or (goes_on and name.lower() not in _AMBIGUOUS) else ""
    return ""


def _measures(name: str) -> bool:
    """Whether words are a unit, or a numeral of scale with or without a unit: "cm", "million", "million dollars"."""
    if unit_of(name) is not None:
        return True
    factor, rest = split_scale(name)
    return factor != 1 and (not rest or unit_of(rest) is not None)
