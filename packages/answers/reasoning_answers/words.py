r"""Answers in words, normalized for comparison: no case, articles, punctuation or layout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from reasoning_answers.grammar.notation import plain_latex
from reasoning_answers.grammar.numerals import IN_WORDS, number_in_words
from reasoning_answers.grammar.tree import names
from reasoning_answers.grammar.units import is_counted, unit_of

_TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt|normal|up)?|mbox|hbox|mathrm|mathbf|mathit|operatorname|emph)\b\*?\s*"
)
"""A command that marks words, without its content."""

_TEXT_IN_BRACES = re.compile(rf"(?:{_TEXT_COMMAND.pattern})\{{([^{{}}]*)\}}")
_LAYOUT = re.compile(r"\\(?:[,;:! ]|q?quad\b|left\b|right\b|displaystyle\b|dfrac\b|tfrac\b)|[{}$~]|\\[()\[\]]")
"""Layout commands and characters."""

_COLORED = re.compile(r"\\(?:text)?color\s*\{[A-Za-z]{1,20}\}")
_LEAD = re.compile(
    r"\A(?:(?:there (?:is|are)|it(?: is| s|s)|its)\s+(?=\w)|on\s+(?=(?:mon|tues|wednes|thurs|fri|satur|sun)day\b)"
    r"|in\s+(?=(?:january|february|march|april|may|june|july|august|september|october|november|december)\b))"
)
"""Words that add nothing before an answer in words: "there is no solution", "on Wednesday"."""
_ARTICLES = re.compile(r"\b(?:the|an|a|der|die|das|le|la|les|el|los|las|il|lo|gli)\s+(?=\w)")
_PUNCTUATION = re.compile(r"[.,;:!?。，；：！？\"'“”‘’`*]+")
_ACCENTS = dict(
    zip("`'^\"~=.Hcuvrk", "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u030b\u0327\u0306\u030c\u030a\u0328", strict=True)
)
"""TeX accent → the combining character that puts it on the preceding letter."""

_ACCENT = re.compile(r"(?<![\\\W])\\([`'^\"~=.]|[Hcuvrk](?=\s*\{))\s*\{?([A-Za-z])\}?")
r"""A TeX accent on a letter, after another letter: the `\H{o}` of Erd\H{o}s."""

_SPACES = re.compile(r"\s+")
_MAX_NUMERAL_CHARS = 200
"""Longest number in words that is read, with its unit, in characters."""

_MAX_CHINESE_NUMERAL = 24
"""Longest Chinese number that is read, without its unit, in characters."""

_HYPHEN = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
"""A hyphen inside a word."""

_COMMAND_AND_LETTER = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])")
"""A command followed by a space and a letter; without the space, the letter would be part of the command's name."""

_LETTERS_AND_PUNCTUATION = re.compile(
    r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u3400-\u9fff\s.,;:!?'\"()\-]+"
)
"""Words in Latin letters, with or without accents, or Chinese characters, with punctuation."""

_FORMULA = re.compile(r"[\d\\$^=<>+_]")
"""A character that does not occur in words."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")

_SYNONYM_GROUPS = (
    ("no solution", "no solutions", "no real solution", "no real solutions", "none", "empty set", "the empty set",
     "无解", "无实数解", "没有解", "方程无解", "该方程无解", "原方程无解", "方程没有解",
     "no real roots", "there are no solutions", "no such", "∅", r"\emptyset", r"\varnothing"),
    ("does not exist", "dne", "doesnt exist", "undefined", "not exist", "不存在", "limit does not exist"),
    ("infinity", "infinite", "infinitely many", "infinitely many solutions", "infinite solutions",
     "infinite number of solutions", r"\infty", r"+\infty", "∞", "无穷", "无穷大"),
    ("yes", "是", "是的"), ("no", "否", "不是", "不是的"),
    ("true", "t", "正确", "对", "正确的", "对的", "没错", "√", "✓", "✔",
     r"\checkmark", r"\surd"),
    ("false", "f", "错误", "错", "错误的", "错的", "不对", "不对的", "不正确", "×", "✗", "✘", r"\times"),
    ("all real numbers", "all reals", "real numbers", "r", r"\mathbb r", "ℝ", "全体实数"),
)  # fmt: skip
"""Groups of synonyms; `words_of` replaces each by the first of its group."""

_SYNONYMS = {word: group[0] for group in _SYNONYM_GROUPS for word in group}
_FIRST_SYNONYMS = frozenset(_SYNONYMS.values())

_EXCLUSIVE = tuple(
    frozenset(words.split())
    for words in (
        "yes no",
        "true false",
        "even odd neither",
        "increasing decreasing",
        "positive negative zero",
        "left right",
        "convergent divergent",
        "converges diverges",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "red orange yellow green blue purple black white brown pink grey",
        "north south east west",
        "增函数 减函数",
        "奇函数 偶函数",
        "锐角 直角 钝角",
        "奇数 偶数",
        "质数 合数",
    )
)
"""Groups of single words, no two of which mean the same."""

_DENIALS = names("not non no un in im ir il dis 不 非 不是") | {"not ", "non ", "no ", "is not "}
"""Prefixes, and words before a word, that negate it."""

_EXCLUSIVE_WORDS = frozenset[str]().union(*_EXCLUSIVE)
_PROPERTY = re.compile(
    r"(?:all )?(odd|even|prime) (?:integers? |numbers? )?([a-z])|([a-z]) (?:is |are |must be )?(odd|even|prime)"
)
"""A property of a letter in either order: "odd integers n", "n is odd"."""

_MAX_PRODUCT_LETTERS = 3
"""A longer word is not a product of letters."""

_VOWEL, _SYLLABLE = re.compile("[aeiouy]"), re.compile("[^aeiouy][aeiouy][^aeiouy]")


def words_of(source: str) -> str:
    """Return `source` as words in lower case, without layout, punctuation, articles and words that only introduce it.

    A synonym (无解, DNE) becomes the first entry of its group.
    """
    source = unicodedata.normalize("NFC", with_accents(source))  # é is one character or two
    # Colors first, since `_LAYOUT` removes the braces by which they are recognized.
    text = _LAYOUT.sub(" ", _TEXT_COMMAND.sub(" ", _COLORED.sub(" ", source))).casefold()
    # A backslash at the end is the remainder of a layout command, such as `\ ` whose space was stripped.
    text = _SPACES.sub(" ", _PUNCTUATION.sub(" ", text)).strip().removesuffix("\\").strip()
    text = _ARTICLES.sub("", _HYPHEN.sub(" ", text))
    # Last, since `_LEAD` is written without punctuation and articles: "it s" for "it's", "on monday".
    text = _LEAD.sub("", text)
    return _SYNONYMS.get(text, text)


def with_accents(source: str) -> str:
    r"""Return a text with TeX accents as Unicode characters: ő for `\H{o}`."""
    if "\\" not in source:
        return source
    return _ACCENT.sub(lambda accent: accent[2] + _ACCENTS[accent[1]], source)


def as_compared(source: str) -> str:
    """Return the words of an answer in lower case; what may be a product, such as `mgh`, keeps its case."""
    words = words_of(source)
    if (match := _PROPERTY.fullmatch(words)) is not None:  # "n is odd" and "odd n" become "odd n"
        return f"{match[1] or match[4]} {match[2] or match[3]}"
    return _product_of_letters(source, words) or words


def _product_of_letters(source: str, words: str) -> str | None:
    """Return an answer of up to three letters that may be a product, such as `mgh` or `ABC`, as written.

    None for any other answer: a listed word, or letters that are written or pronounced like a word (Old, red). words:
    the words that `words_of` returns.
    """
    if len(words) > _MAX_PRODUCT_LETTERS or not words.isascii() or words in _EXCLUSIVE_WORDS:
        return None
    letters = without_layout(without_text_commands(source))
    is_word = _SYLLABLE.fullmatch(words) or (letters[1:].islower() and _VOWEL.search(words))
    is_as_written = letters.isalpha() and letters.lower() == words  # `words_of` dropped nothing and inserted no synonym
    return letters if is_as_written and not is_word else None


def exclude_each_other(first: str, second: str) -> bool:
    """Whether two answers in words cannot both be right: they are listed, like "yes" and "no", or one negates the
    other, like "valid" and "invalid". Both come from `words_of` and differ.
    """
    shorter, longer = sorted((first, second), key=len)
    denies = longer.endswith(shorter) and longer.removesuffix(shorter) in _DENIALS
    return denies or any(first in group and second in group for group in _EXCLUSIVE)


def stands_for_value(text: str) -> bool:
    """Whether words are values in themselves, as "no solution" and "infinity" are; "yes" and "even" are not."""
    words = words_of(text)
    return words in _FIRST_SYNONYMS and words not in _EXCLUSIVE_WORDS


def without_text_commands(source: str) -> str:
    r"""Return `source` without the commands that mark words, such as `\text{…}` and `\mathrm{…}`."""
    return _TEXT_COMMAND.sub(" ", _TEXT_IN_BRACES.sub(r"\1", source))


@lru_cache(maxsize=256)
def is_words(source: str) -> bool:
    """Whether `source` consists of words and punctuation, with at least one word of two letters or one Chinese
    character.

    `compare.equivalence` compares such an answer as words before it tries the grammar.
    """
    text = _LAYOUT.sub(" ", _TEXT_COMMAND.sub(" ", _COLORED.sub(" ", with_accents(source)))).strip()
    return bool(_LETTERS_AND_PUNCTUATION.fullmatch(text)) and bool(re.search(r"[A-Za-z]{2}|[\u3400-\u9fff]", text))


def numeral_as_digits(source: str) -> str:
    """Return a number in words, perhaps with a unit after it, as digits; any other text as it is."""
    if len(source) > _MAX_NUMERAL_CHARS or not is_words(source.replace("/", " ")):
        return source
    words = words_of(source)
    return number_in_words(words) or counted_in_words(words) or source


def counted_in_words(words: str) -> str | None:
    """Return a number in words with what it counts or measures as digits: 十二元 is "12 元", "ten cm" is "10 cm".

    None if no number begins the words, or if neither a unit nor something counted follows it.
    """
    # An English number is the whole run of its words. For a Chinese number, the shortest run is tried first: 三千克 is
    # 3 千克.
    ends: Sequence[int] = range(1, min(len(words), _MAX_CHINESE_NUMERAL + 1))
    if (english := IN_WORDS.match(words)) is not None:
        ends = (english.end(),)
    for end in ends:
        digits, behind = number_in_words(words[:end]), words[end:].strip()
        if digits is not None and behind and (unit_of(behind) is not None or is_counted(behind)):
            return f"{digits} {behind}"
    return None


@lru_cache(maxsize=256)
def without_layout(source: str) -> str:
    """Return `source` without layout and spaces, case kept; equal results have the same characters in the same order.

    Spaces between digits stay (`1 2` is not `12`); between a command and a letter `{}` replaces the space.
    """
    # Braces are layout only in words; in a formula they group its parts.
    text = _LAYOUT.sub(lambda m: m.group() if m.group() in ("{", "}") else " ", plain_latex(source))
    text = text.strip().rstrip(".")
    text = _COMMAND_AND_LETTER.sub(r"\1{}", text)  # `\sin hx` is not `\sinh x`
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text)
