r"""Words in the sentence of an answer that make something else of it: a condition, a bound, a direction, a rate.

A condition, "If n is even, the answer is 12", "the answer is 12 unless n = 2": such an answer holds for some cases
only, so its condition is kept with it, as `12 if n is even`, and compared. A clause is a condition in two cases:

    it begins with a word that only conditions begin with                    if, unless, assuming, 如果
    it begins with a word that also opens times and examples (when, for, 当),
    and relates a letter of mathematics                                      "when x > 0", not "when rounded"

A condition belongs to the answer only if nothing but "the answer is" stands between the two: in "If x = 3, then y is 7,
so the answer is 7" the condition is a step of the solution, and repeats the question.

A bound, "less than \boxed{4}": words before a box that make its number the bound of a strict inequality.

A direction, 下降25%, 亏5元, "decreased by \boxed{25\%}": beside a reference without words such an answer may be the
quantity or its negative: 25% answers "by how much did it fall?", and -25% "how did it change?". The question is not
read, so that the verdict stands only if both get it. The words are a closed list, and nothing but layout may stand
between them and the quantity. Upward words turn nothing.

A rate, `每支要\boxed{12元}`, `each pays \boxed{12} dollars`: beside the reference 12元 such a box may state the price
of one where the total was asked for. So it is undecided, as the same clause without a box is
(`chinese_clauses.of_clause`). A bare reference has no unit, and a rate equals itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.grading.find.chinese import CLASSIFIER, NUMERAL_SIGNS, UNIT

_ALWAYS = (
    r"(?:if|unless|provided|providing|assuming|assume|suppose|supposing|(?:as|so)\s+long\s+as|in\s+case"
    r"|on\s+condition)\b"
)
_LETTER = r"(?<![A-Za-z\\])[A-Za-z](?:_\{?\w{1,8}\}?)?(?![A-Za-z])"
_RELATES = (
    rf"(?=[^,，。\n]{{0,60}}{_LETTER}\s*(?:[=<>≤≥≠∈]|\\(?:[lg]eq?q?|[lg]eqslant|lt|gt|neq?|in|equiv|mid)(?![a-zA-Z])"
    r"|(?:is|are|be|为|是)\b))"
)
_CONDITION = (
    rf"(?:{_ALWAYS}|(?:when|whenever|for|with|where){_RELATES}(?![a-zA-Z])"
    rf"|(?:如果|若|假设|假如|倘若|要是|除非|只要)|(?:当|对于?){_RELATES})"
)
_LEADS = r"(?:(?:(?:so|then|thus|hence|therefore|but|however|and|now|finally)\b|那么|否则|则|因此|所以)[,，]?\s*)"

_HEAD = re.compile(rf"(?i)[\s*_]*+{_LEADS}?{_CONDITION}")
_BEFORE = re.compile(
    rf"""(?xi) [\s*_]*+ {_LEADS}?
    (?P<condition> {_CONDITION} (?: [^,，$\n] | \$[^$\n]{{0,80}}\$ ){{1,120}}? ) \s*[,，]?\s* {_LEADS}?
    (?: (?:we|you|one)\s+(?:get|have|find|conclude)\s+(?:that\s+)? )?
    (?: (?:the|our|my|its|this|your)\s+ )? (?: (?:final|correct|right|exact)\s+ )? \Z"""
)
_BEHIND = re.compile(
    rf"(?i)[ \t,，$*)]*+(?:\\[)\]][ \t,，]*+)?(?:but\s+)?"
    rf"((?:(?:only\s+)?{_ALWAYS}|only\s+(?:when|for|in|with|where)\b)[^.!?。！？\n]*)"
)
_SENTENCE_STOPS = (". ", "! ", "? ", "\n")
_CHINESE_STOPS = ("。", "！", "？")
_IF = re.compile(r"(?i)\Aif\s+")
_MAX_CHARS = 240
"""A sentence is looked at this far before its answer, in characters."""

_BEFORE_CHARS, _BEHIND_CHARS = 80, 30
"""Longest text before and behind an answer that is read for a bound, a direction or a rate."""

_LAYOUT = re.compile(
    r"\\(?:boxed|fbox|framebox|text(?:bf|rm|it)?|mbox|mathrm|mathbf|operatorname|rm|bf|q?quad|left|right|displaystyle)"
    r"(?![A-Za-z])|\\[()\[\],;:! ]|\\(?=%)|[{}$*_`~]"
)
"""The layout of a formula or of Markdown that may stand between a word and a quantity."""

_STRICT = re.compile(
    r"(?i)(?:(?<!\bno )(?<!\bnot )\b(?:(?:less|more|greater|fewer|larger|smaller|bigger|higher|lower)\s+than"
    r"|not\s+equal\s+to|unequal\s+to)"
    r"|(?:[大小多少高低]于|超过|不足|不到))[\s:：]*\Z"
)
"""Words that make the number behind them the bound of a strict inequality."""

_CLAUSE_MARK = re.compile(r"[，,。；;：:！!？?、\n=＝]")
_DOWN_IN_CHINESE = re.compile(
    r"(?:下[降跌滑调]|减[少小产轻]|降低|负增长|亏损?|贬值|欠|(?<![升下骤])降价?|(?<!下)跌价?"
    r"|\A(?:所以|因此|因而|故|共)?[还仍尚]?[差少]|(?<=[还仍尚])[差少])[了掉去]?\Z|(?:亏损|[降跌减]幅)[是为]?\Z"
)
"""差 and 少 count only where no compared thing stands before them: 相差5元 and 两人差5岁 have no direction."""

_DOWN_IN_ENGLISH = re.compile(
    r"(?i)\b(?:(?:decreas|declin|reduc)(?:e|es|ed|ing)|drop(?:s|ped|ping)?|f[ae]ll(?:s|en|ing)?|shr[aiu]nk(?:s|ing)?"
    r"|(?:go|goes|went|gone|is|was|are|were)\s+down)\s+by\s*\Z"
    r"|\b(?:loss|decrease|reduction|drop|fall|decline|deficit|debt)\s+of\s*\Z"
)
_DOWN_BEHIND = re.compile(r"(?i)\s*(?:%\s*)?(?:decrease|reduction|drop|decline|loss)\b")
_UNSIGNED = re.compile(r"(?P<opens>(?:\$|\\[(\[]|\s)*)(?=\d|\\[dt]?frac|\\[$]|[¥￥€£])")

# Another quantity behind 每 is the rate itself: 每箱12个，3箱共, 每箱12个×3=.
_EACH = re.compile(rf"每(?:(?!\d\s*(?:{UNIT}|{CLASSIFIER})|[{NUMERAL_SIGNS}](?:{UNIT}|元))[^，,。；;：:！!？?\n])*\Z")
_EACH_IN_ENGLISH = re.compile(r"(?i)(?<!\bof )\b(?:each|every|per)\b[^\d,.;:!?\n=]*\Z")
"""The length of each side is no length per side, so that "of each" makes no rate."""

_RATE = re.compile(r"/\s*(?!\d)|每|(?i:\b(?:per|each|every|an? (?:hour|day|week|month|year))\b)")
_COMMAND = re.compile(r"\\(?:text(?:bf|rm|it)?|mbox|mathrm|[,;:! ])|[{}$~]")
_WITH_NAME = re.compile(r"\s*(?:\\[$]|[¥￥€£])?[-−]?[\d.,/]+\s*(?P<name>[A-Za-z\u3400-\u9fff²³^\d ]*)\.?\s*")


def conditional_sentence(text: str, lo: int, position: int) -> int:
    """Return where the sentence around `position` begins if it begins with a condition, else -1.

    lo: the first position that may belong to the sentence.
    """
    first = max(lo, position - _MAX_CHARS)
    stops = _SENTENCE_STOPS if text.isascii() else _SENTENCE_STOPS + _CHINESE_STOPS
    begin = max(first, 1 + max([text.rfind(stop, first, position) for stop in stops]))
    return begin if _HEAD.match(text, begin, position) is not None else -1


def condition_before(text: str, lo: int, phrase: int) -> tuple[str, int] | None:
    """Return the condition under which a phrase states an answer, and where its sentence begins; None without one.

    phrase: the position of "answer" or 答案. lo: the first position that may belong to the sentence.
    """
    begin = conditional_sentence(text, lo, phrase)
    match = _BEFORE.fullmatch(text, begin, phrase) if begin >= 0 else None
    return None if match is None else (_IF.sub("", match["condition"].strip()), begin)


def condition_behind(text: str, end: int, hi: int) -> str | None:
    """Return the condition that follows an answer in its sentence: "12 if the dice are fair"; None without one."""
    match = _BEHIND.match(text, end, hi)
    return None if match is None else match[1].strip(" *_")


def is_strict_bound(text: str, start: int, lo: int) -> bool:
    """Whether words make the box that begins at position `start` of text[lo:] the bound of a strict inequality."""
    before = _LAYOUT.sub("", text[max(lo, start - _BEFORE_CHARS) : start])
    return _STRICT.search(before) is not None


def opposite(answer: str, text: str, start: int, end: int) -> str:
    """Return the negative of an answer if the words beside text[start:end] say that it fell or is owed; else "".

    An answer with a sign of its own, or without a number at its beginning, has none.
    """
    line = text[max(0, start - _BEFORE_CHARS) : start]
    quantity = _UNSIGNED.match(answer)
    if quantity is None:
        return ""
    # In English the noun may follow: a 25% decrease.
    falls = _DOWN_BEHIND.match(_LAYOUT.sub(" ", text[end : end + _BEHIND_CHARS]))
    if falls is None and line.isascii():
        falls = _DOWN_IN_ENGLISH.search(_LAYOUT.sub(" ", line))
    elif falls is None:
        # What fell in an earlier clause says nothing of this quantity.
        falls = _DOWN_IN_CHINESE.search(_CLAUSE_MARK.split(re.sub(r"[ \t]", "", _LAYOUT.sub("", line)))[-1])
    return "" if falls is None else f"{quantity['opens']}-{answer[quantity.end() :]}"


def is_rate_before_box(text: str, start: int, answer: str, references: Sequence[str]) -> bool:
    """Whether the clause before the box that holds text[start:] makes its quantity a rate, and a reference is one
    quantity with a unit that is no rate.
    """
    before = _LAYOUT.sub("", text[max(0, start - _BEFORE_CHARS) : start])
    each = _EACH_IN_ENGLISH if before.isascii() else _EACH
    if each.search(before) is None or _RATE.search(_COMMAND.sub("", answer)) is not None:
        return False
    # Beside a rate an amount is compared by its unit, which decides nothing either.
    return any(map(_has_unit, references)) and not any(map(_RATE.search, references))


def _has_unit(reference: str) -> bool:
    """Whether a reference is a number with a unit or a currency, or with the name of what was counted."""
    plain = _COMMAND.sub("", reference.replace("\\$", "¥"))
    quantity = _WITH_NAME.fullmatch(plain)
    if quantity is None:
        return False
    # Each angle is 60 degrees: no total of angles is asked for as often.
    name = quantity["name"].strip()
    return plain.lstrip()[:1] in "¥￥€£" or (bool(name) and not name.startswith("degree"))
