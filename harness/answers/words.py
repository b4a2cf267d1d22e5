r"""Answers in words, reduced to what is compared: no case, no articles, no punctuation, no commands of layout."""

from __future__ import annotations

import re

from harness.answers.grammar.characters import plain_latex

_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt|normal|up)?|mbox|hbox|mathrm|mathbf|mathit|operatorname|emph)\b\*?\s*"
)
_LAYOUT = re.compile(r"\\(?:[,;:! ]|q?quad\b|left\b|right\b|displaystyle\b|dfrac\b|tfrac\b)|[{}$~]|\\[()\[\]]")
_ARTICLES = re.compile(r"\b(?:the|an|a)\s+(?=\w)")
_PUNCTUATION = re.compile(r"[.,;:!?。，；：！？\"'“”‘’`*]+")
_SPACES = re.compile(r"\s+")
_COMMAND_AND_LETTER = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])")
_LETTERS_AND_PUNCTUATION = re.compile(r"[A-Za-z\u3400-\u9fff\s.,;:!?'\"()\-]+")

_SYNONYM_GROUPS = (
    ("no solution", "no solutions", "no real solution", "no real solutions", "none", "empty set", "the empty set",
     "无解", "无实数解", "no real roots", "there are no solutions", "no such", "∅", r"\emptyset", r"\varnothing"),
    ("does not exist", "dne", "doesnt exist", "undefined", "not exist", "不存在", "limit does not exist"),
    ("infinity", "infinite", "infinitely many", r"\infty", r"+\infty", "∞", "无穷", "无穷大"),
    ("yes", "是"), ("no", "否", "不是"), ("true", "正确", "对"), ("false", "错误", "错"),
    ("all real numbers", "all reals", "real numbers", "r", r"\mathbb r", "ℝ", "全体实数"),
)  # fmt: skip
_SYNONYMS = {word: group[0] for group in _SYNONYM_GROUPS for word in group}


def words_of(source: str) -> str:
    """`source` as plain words in lower case; a synonym (无解, DNE) becomes the first word of its group."""
    text = _LAYOUT.sub(" ", _WRAPPERS.sub(" ", source)).casefold()
    text = _SPACES.sub(" ", _PUNCTUATION.sub(" ", text)).strip().removesuffix("\\").strip()
    text = _ARTICLES.sub("", text)
    return _SYNONYMS.get(text, text)


def unwrapped(source: str) -> str:
    r"""`source` without the commands that mark words, such as `\text` and `\mathrm`; braces stay."""
    return _WRAPPERS.sub(" ", source)


def is_words(source: str) -> bool:
    """Whether `source` is nothing but words and punctuation, one word of at least two letters or Chinese.

    Such an answer is compared as words before the grammar is tried.
    """
    text = _LAYOUT.sub(" ", _WRAPPERS.sub(" ", source)).strip()
    return bool(_LETTERS_AND_PUNCTUATION.fullmatch(text)) and bool(re.search(r"[A-Za-z]{2}|[\u3400-\u9fff]", text))


def squeezed(source: str) -> str:
    """`source` without layout and spaces, its case kept; equal results are the same signs in the same order.

    Spaces between digits stay (`1 2` is not `12`), and so does the end of a command before a letter.
    """
    text = _LAYOUT.sub(lambda m: m.group() if m.group() in "{}" else " ", plain_latex(source)).strip().rstrip(".")
    text = _COMMAND_AND_LETTER.sub(r"\1{}", text)  # `\sin hx` is not `\sinh x`
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text)
