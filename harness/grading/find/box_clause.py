r"""The clause in Chinese around a box: what may stand directly before and behind `\boxed{37升}` and leave it standing.

Behind the box, up to the next mark, only these may stand; everything else makes the answer undecided:

    nothing                             \boxed{37升}。
    a unit or what was counted          \boxed{37}升 · \boxed{37}升水 · \boxed{5}个苹果 · \boxed{5个}苹果
    an unknown word behind a number     \boxed{4}亩, which is compared as 4亩
    words that say it is the answer     \boxed{37升}是正确的 · \boxed{37升}即为所求
    了 and other closing particles      \boxed{37}升了

The words are read as though they stood in the box, so that a unit ends where one in a sentence does (`find.chinese`).
Before the box, no denial may govern it: 所以不是\boxed{37升} denies it, 不会游泳的有\boxed{5人} does not.
"""

from __future__ import annotations

import re

from harness.answers.grammar.units import is_counted, split_scale, unit_of
from harness.grading.find.behind_chinese import closes_in_chinese
from harness.grading.find.chinese import NUMERAL_SIGNS, quantity_of

_BEFORE_CHARS, _BEHIND_CHARS = 60, 120
"""Longest text before and behind a box that is read."""

_CLOSES_FORMULA = re.compile(r"(?:[ \t*_`$~}]|\\[)\],;:! ]|\\q?quad(?![A-Za-z])|\n(?=\s*(?:\\[)\]]|\$)))*")
_LAYOUT = re.compile(
    r"\\(?:text(?:bf|rm|it)?|mbox|mathrm|mathbf|rm|bf|q?quad|left|right|displaystyle|large)(?![A-Za-z])"
    r"|\\[()\[\],;:! ]|[{}$*_`~ \t]"
)
_MARK = re.compile(
    r"[，,。；;：:！!？?、…()（）\]\[【】「」『』《》“”\"'‘’|<>=＝≈≡≠≤≥→⇒∴∵&\n\u200b\ufe0f]|\\\\|\.(?!\d)"
    r"|\\(?!(?:%|frac|sqrt|times|cdot|div|pm))[A-Za-z]+"
)
"""Marks that end a clause, relations among them."""

_HAN = re.compile(r"[\u3400-\u9fff]")
_COUNTS_ON = re.compile(r"[\d+＋×÷*/^±~～—–−-]")
_NUMERAL = re.compile(rf"[\d{NUMERAL_SIGNS}半几余]")
_IS_ANSWER = re.compile(
    r"(?:(?:就|即|便|也就)?[是为](?:我们)?(?:(?:本题|该题|此题|这道?题|题目|问题)的?)?(?:最终|最后|正确|所求)?的?(?:答案|结果|所求|正确的|对的)"
    r"|[即就]?为?所求|正确|就[够行]|符合题意|成立)\Z"
)
"""Words behind an answer by which a clause says that it is the answer."""

_NO_UNIT = "[零〇一二两三四五六七八九十百万亿半几余和与及或且即又并有]"
_UNKNOWN_WORD = re.compile(rf"(?:(?!{_NO_UNIT})[\u3400-\u9fff]){{1,4}}")
"""A word that may be a unit: no numeral but 千, and no conjunction. It is compared, and so equals itself only."""

_DIFFERENT = re.compile("(?:不同|可能)的?")
_NO_NOUN = re.compile(
    r"[\d~～—–×÷+＋±=]|的(?!水|油|路|时间)|[是在被为太很]|有(?![理序限])"
    r"|(?:封顶|出头|开外|打底|起步?|往[上下]|之[多久]|[足够]|到顶)\Z|每\Z|/\Z"
)
"""Signs behind a classifier of a word that is no noun: of verbs, of 的 and of bounds. Nouns are an open class."""

_NUMBER = re.compile(r"(?:[\s\d.,{}()^+\-−*/×√π]|\\(?:[dt]?frac|sqrt|pi|cdot|times|left|right)(?![A-Za-z])|\\[,;! ])+")
_ENDS_IN_UNIT = re.compile(r"(?s).*[\d}](?P<unit>[\u3400-\u9fff]*)")
_OPENS_SENTENCE = re.compile(
    r"所以|因此|因而|于是|综上|因为|由于|其中|经?(?:检验|验[证算])|解析|分析|[说证]明|这是因为|这里"
)
"""Words that open a reason, a conclusion or a check, which are a sentence of their own."""

_COMPOUNDS = re.compile(
    r"不同|不等[式边]|不[难妨变仅但断动论管必]|未知|未来|无[理疑限穷论]|毫无疑问|非[负零常]|[分特级区性个差辨识类]别"
)
"""Compounds with a sign of denial that deny no answer."""

_DENIES = re.compile(r"[不没非无未别否莫勿]")
_ALWAYS_GOVERNS = re.compile(r"(?:不|并非|绝非|决非|而非|[不没未][必有曾能可会应该当一定]*)[是为等]|[是能可]否")
_ENDS_SCOPE = re.compile(
    r"(?<![真确说])的[^的]{0,12}?(?:[共只还]?[有是为占]|等于|一?共|总共)\Z|而[且是]|(?:所以|因此|故|可[知得]|即|得到?)[^不没非无未]{0,12}\Z"
)
"""Where the scope of a denial ends before a box: 不会游泳的有, not 不是真的有."""


def clause_behind(content: str, text: str, end: int, hi: int) -> str:
    """Return the words in Chinese that go on directly behind a box, up to the next mark, without layout; "" for none.

    content: the content of the box, which ends at `end` of text[:hi].
    """
    behind = text[end : min(hi, end + _BEHIND_CHARS)]
    if behind.isascii() and content.isascii():
        return ""
    closing = _CLOSES_FORMULA.match(behind)
    line = behind[closing.end() if closing else 0 :].partition("\n")[0]
    mark = _MARK.search(bare := _LAYOUT.sub("", line))
    clause = bare[: mark.start()] if mark is not None else bare
    if _OPENS_SENTENCE.match(clause) or closes_in_chinese(clause):
        return ""
    goes_on = _HAN.search(clause) or (_HAN.search(content) and _COUNTS_ON.match(clause))
    return clause if goes_on else ""


def word_behind(content: str, clause: str) -> str | None:
    """Return the unit, the counted noun or the unknown word that begins the clause behind a box; "" if the clause adds
    nothing to the value, None if the clause may change it.
    """
    # 了 may close the words about the answer, or the value itself: 就够了, \boxed{37}升了.
    words = _IS_ANSWER.sub("", clause.rstrip("了")).rstrip("了")
    if not words:
        return ""
    is_number = _NUMBER.fullmatch(content) is not None
    ended = _ENDS_IN_UNIT.fullmatch(_LAYOUT.sub("", content)) if not is_number else None
    inside = "" if ended is None else ended["unit"]
    # Words in the box with no number before a unit, such as 一样多, can only be changed by more words.
    if (not is_number and not inside) or _NO_NOUN.search(_DIFFERENT.sub("", words)) is not None:
        return None
    if split_scale(words)[1] == "":
        return words
    read = f"{inside}{words}"
    # The longest name wins, as in a sentence: 平方米, not 平方.
    name = next((read[:end] for end in range(len(read), 0, -1) if _measures(read[:end])), "")
    rest = read[len(name) :]
    if name and len(name) >= len(inside):
        leaves = not rest or (_NUMERAL.search(rest) is None and quantity_of(f"3{read}") is not None)
        return name[len(inside) :] if leaves else None
    return words if is_number and _UNKNOWN_WORD.fullmatch(words) else None


def is_denied(text: str, start: int, lo: int) -> bool:
    """Whether a denial in Chinese governs the box that begins at position `start` of text[lo:]."""
    line = text[max(lo, start - _BEFORE_CHARS) : start]
    if line.isascii():
        return False
    # A denial in an earlier line or clause is of something else.
    line = _LAYOUT.sub("", line.rstrip().rpartition("\n")[2])
    clause = _COMPOUNDS.sub("", _MARK.split(line)[-1])
    denial = max((match.start() for match in _DENIES.finditer(clause)), default=-1)
    if denial < 0:
        return False
    return _ENDS_SCOPE.search(clause, denial) is None or _ALWAYS_GOVERNS.match(clause, denial) is not None


def _measures(words: str) -> bool:
    """Whether words are a unit or what was counted, perhaps behind a numeral of scale: 升, 个苹果, 万元."""
    factor, rest = split_scale(words)
    names = [words, rest] if factor != 1 else [words]
    return any(unit_of(name) is not None or is_counted(name) for name in names)
