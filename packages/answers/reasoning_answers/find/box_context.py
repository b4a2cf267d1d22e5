r"""The context that is part of a boxed answer: text directly next to the box, `\boxed{12}` cm is 12 cm, `x=-\boxed{12}`
is -12; and other boxes, `x=\boxed{1}` and `x=\boxed{-1}`, which are joined if the reference has several parts.

A box may be preceded by the start of its formula, a relation, a mark or words, and followed by a unit, a percent sign,
a degree sign, a relation, a mark or words. Units, signs and currencies become part of the answer. An operator, a digit,
a letter, a command or a bracket of a call makes the box part of a larger expression, which leaves the answer open.

    before box after           value
    `x = -` 5                  -5
    12 `\text{ cm}` or ` cm`   12 cm
    `2\cdot` 5 or 5 `!`        open

Several boxes form one answer if there is nothing between them but commas, "and", names of the values and names of the
parts of the question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from reasoning_answers.boxed import Box
from reasoning_answers.grammar.units import FUNCTION_WORDS, split_scale, unit_of
from reasoning_answers.patterns import regex

BEFORE_CHARS, BEHIND_CHARS = 200, 80
"""Longest text before and after a box that is read, in characters."""

_DELIMITER = regex(r"\\\\|\\[()\[\]$]|\$\$?")
"""The beginning or end of a formula, or one of two sequences that contain the same character: `\\\\`, `\\$`."""

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
"""Inside a formula: the end of the text before a value that is not part of a larger expression, with its sign and
currency.
"""

_OPERATOR_IN_TEXT = regex(
    r"(?:[÷×^/]|(?<=[\d)}])\s*[+*]|\\(?:div|times|cdot|s?qrt|sin|cos|tan|ln|log|exp)(?![A-Za-z]))[\s{$\\(]*\Z|\d\Z"
)
"""An operator, a function or a digit directly before a value, which makes it part of an expression."""

_OPERATOR_BEFORE_FORMULA = regex(r"(?:[+/×÷·]|\\(?:div|times|cdot))\s*(?:\$\$?|\\[(\[])\Z")
"""An operator before the dollar sign of a formula."""

_SIGN_IN_TEXT = regex(r"(?:[=≈]\s{0,9}(?P<sign>[-−])\s{0,9})?(?P<money>\\\$|[€£¥￥])?[\s*_]{0,9}\Z")
"""Outside formulas: the sign and the currency directly before a value; both may be missing."""

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
"""A unit after a text or product command, or in braces."""

_WORDS = regex(
    r"[A-Za-zµΩ°][A-Za-zµΩ°/^·²³0-9]*(?:[ -][A-Za-z][A-Za-z/^·²³0-9]*){0,4}"
    r"|[\u4e00-\u9fff]{1,6}(?:/[\u4e00-\u9fff]{1,4})?"
)
"""Up to five words, or Chinese characters, of which the first may be a unit."""

_ENDS = regex(r"\s*(?:\Z|[.,;:!?…)\]*_|。，；！？）]|\\\\|\n|\\[\])]|\$|<)")
"""The end of a clause after a unit."""

_CONTINUES = regex(
    r"[\^_!‰¹²³⁰-⁹]|\s?[+/×÷]\s?[\w\\(]"
    r"|\*(?!\*)\s?[\d(\\]|\s?[-−]\s?[\d\\]|\d|[A-Za-z](?![A-Za-z])|\((?=\s*[-\d])|\\(?:cdot|times|div|frac|sqrt|pi|pmod)\b"
)
"""An operator, digit, letter, command or call directly after a value, which makes it part of an expression."""

_EXCLAIMS = regex(r"\A!+(?=\s*(?:\Z|[A-Z\n]))")
"""The end of an exclamation; inside a formula it is a factorial."""

_COMPUTES = regex(r"(?i)\s*(?:squared|cubed|factorial|plus|minus|divided\s+by|times\s+(?=[\d$\\])|to\s+the\s+power)\b")
"""Words after a value that compute with it."""

_AMBIGUOUS = frozenset(("in", "am", "a", "as", "us"))
"""Names of units that are also words: they are units only if alone and at the end of a statement."""


def around_box(text: str, box: Box, lo: int, hi: int) -> str | None:
    """Return the value of a box in text[lo:hi] with its context; None if it is part of a larger expression."""
    value = box.content
    behind = text[box.outer_end : min(hi, box.outer_end + BEHIND_CHARS)]
    start = _formula_around(text, box.outer_start, lo)
    # inside, outside: the text after the box in its formula, and the text after the formula
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
    """Return where the formula around `position` begins; None if there is none. lo: first character that is read."""
    first = max(lo, position - BEFORE_CHARS)
    first = max(first, text.rfind("\n\n", first, position) + 1)  # no formula continues after an empty line
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
    """Return the unit that begins the text after a number, as LaTeX, or ""."""
    return _unit(value, behind[:BEHIND_CHARS].lstrip(" *_"))


def _unit(value: str, behind: str) -> str:
    """Return the unit, percent sign or degree sign at the beginning of the text after a number, as LaTeX, or "".

    value: the number. The longest unit in a run of words is used, unless the following words turn it into another word.
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
    """Whether words are a unit, or a scale word with or without a unit: "cm", "million", "million dollars"."""
    if unit_of(name) is not None:
        return True
    factor, rest = split_scale(name)
    return factor != 1 and (not rest or unit_of(rest) is not None)


# --- several boxes ---
_MAX_GAP_CHARS = 80
"""Longest text between two boxes of one answer, in characters."""

_MAX_BOXES = 64
"""Largest number of boxes that are joined into one answer."""

_BETWEEN = regex(
    r"""(?xi)
    (?: [\s~$,;、，；.()\[\]*&:|{}] | \\[()\[\],;:!&\\ ] | \\q?quad | \\(?:text|mathrm|mbox|textbf)(?![a-z])
      | \b(?:and|or|also|as\s+well\s+as|respectively|for|in|the|other|another|second|third|part|case|question|root
           |solution|value|one|is|are|we\s+have)\b
      | 和 | 或 | 及 | 与
      | (?:\\[a-z]+ | [a-z]) (?:_\{?\w{1,3}\}?|[₀-₉]{1,3})? (?:\(\w{1,3}\))? \s* =
      | \(?(?:[a-h] | i{1,3} | iv | v | \d)[).]
    )*"""
)
"""Everything that may occur between two boxes of one answer."""

_JOINS = regex(
    r"(?xi) (?:[\s~$*,，]|\\[)\]])* (?: \bor\b | \band\b | 或者? | [和及与] | 并?且 )"
    r" (?:[\s~$*]|\\[(\[])* (?:(?:\\[a-z]+|[a-z])(?:_\{?\w{1,3}\}?|[₀-₉]{1,3})?\s*=[\s$]*)?"
)
"""A word that joins two boxes, perhaps with the name of the second value."""

_OR = regex(r"(?i)\bor\b|或")
_LABEL = regex(
    r"(?<![A-Za-z\\])((?:\\[A-Za-z]+|[A-Za-z])(?:_(?:\w|\{\w{1,3}\})|[₀-₉]{1,3})?(?:\(\w{1,3}\))?)\s*=\s*\$?\s*\Z"
)
"""The name before a box: the x of `x=\\boxed{1}`."""

_APPROXIMATE = regex(r"\s*(?:\\approx|\\simeq|≈|\\text\{\s*(?:about|approximately)\s*\})")
_CONNECTED = regex(
    r"(?:\s|\\text\{\s*|(?<=[\d}\)]))(?:and|or|或|和|及)(?:\s|\s*\}|(?=[-−]?[\d\\(√]|[A-Za-z][₀-₉\d]?\s*=))"
)
"""A word between two values of one answer."""

_THOUSANDS = regex(r"\d{3}(?!\d)")
_FORMULA_ENDS = regex(r"(?<!\\)\\[()\[\]]")
_SEPARATORS = frozenset(",;，；、")
"""Signs between two values; a comma may also group digits."""


def join_boxes(text: str, last: Box, earlier: Iterable[Box], parts: int) -> Box:
    r"""Join the last box with the earlier boxes that belong to it: the contents in the order of the text, with commas,
    or with "or" if it is between two boxes.

    earlier: boxes before the last one, from the end of the text. parts: how many values the reference has; a last box
    that contains all of several values is not joined. Boxes are joined for a reference with one value too: a reply that
    boxes two values has a different answer, although its last box alone may contain the right one. If each box has a
    name before it (`x=\boxed{1}`), the result has the names too.
    """
    if 1 < parts <= parts_of(last.content):
        return last
    chain = [last]
    for box in earlier:
        gap = text[box.outer_end : chain[-1].outer_start]
        if len(gap) > _MAX_GAP_CHARS or _BETWEEN.fullmatch(gap) is None or len(chain) >= _MAX_BOXES:
            break
        chain.append(box)
    if len(chain) == 1:
        return last
    chain.reverse()
    # Twenty-four characters cover the longest name, and limit the search before each box.
    labels = [_LABEL.search(text, max(0, box.outer_start - 24), box.outer_start) for box in chain]  # the x of `x=`
    # Names only if every box has one: `x = 1, 2` would name only the first value.
    all_named = None not in labels
    contents = []
    for box, label in zip(chain, labels, strict=True):
        if all_named and label is not None and "=" not in box.content:
            contents.append(f"{label[1]} = {box.content}")
        else:
            contents.append(box.content)
    joined = contents[0]
    for before, box, content in zip(chain, chain[1:], contents[1:], strict=False):
        has_or = _OR.search(text, before.outer_end, box.outer_start) is not None
        joined += f"\\text{{ or }}{content}" if has_or else f", {content}"
    return Box(joined, chain[0].start, last.end, chain[0].outer_start, last.outer_end)


def is_one_of_two(text: str, last: Box, earlier: Iterable[Box]) -> bool:
    r"""Whether the last box alone is not the answer: a word joins it with the box before, `\boxed{2} or \boxed{3}`, or
    it is only a rounded form of that box, `\boxed{\approx 1.41}`.

    earlier: the boxes before the last one, the nearest first.
    """
    before = next(iter(earlier), None)
    if before is None or before.content == last.content:
        return False
    gap = text[before.outer_end : last.outer_start]
    return _JOINS.fullmatch(gap) is not None or _APPROXIMATE.match(last.content) is not None


def parts_of(answer: str) -> int:
    """Count the values in an answer by its commas and "and"; ± doubles the count, and a tuple is one value."""
    answer = _FORMULA_ENDS.sub("", answer.strip().strip("$")).strip()
    for opening, closing in (("\\{", "\\}"), ("\\left\\{", "\\right\\}"), ("{", "}")):
        # A second opening brace means two sets, which are two values.
        if answer.startswith(opening) and answer.endswith(closing) and opening not in answer[len(opening) :]:
            answer = answer[len(opening) : -len(closing)]
            break
    depth = commas = 0
    # Most answers have no separator, and need not be read character by character.
    for index, sign in enumerate("" if _SEPARATORS.isdisjoint(answer) else answer):
        depth += (sign in "([{") - (sign in ")]}")
        # A comma inside brackets separates coordinates of one value.
        if depth == 0 and sign in _SEPARATORS and not (sign == "," and _groups_digits(answer, index)):
            commas += 1
    connected = len(_CONNECTED.findall(answer))
    signs = 2 if "\\pm" in answer or "±" in answer else 1
    # "1, and 2" has a comma and a word at one boundary.
    return (1 + max(commas, connected)) * signs


def _groups_digits(answer: str, comma: int) -> bool:
    """Whether the comma at index `comma` groups digits, as in 1,234."""
    return comma > 0 and answer[comma - 1].isdigit() and _THOUSANDS.match(answer, comma + 1) is not None
