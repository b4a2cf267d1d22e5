r"""Markup inside of a sentence in Chinese: bold marks, dollar signs and the LaTeX of plain values are taken off.

A sentence is read as it would be without them, so that it states no more and no less than the plain sentence:

    小华还剩 **24 张**邮票            小华还剩 24 张邮票
    面积是 $20\text{平方厘米}$        面积是 20平方厘米
    所以 $A=60^\circ$               所以 A=60°
    边长是 $2\sqrt{3}$ 厘米           边长是 70707 厘米, where the number stands for the formula

A formula that is neither a plain value nor one term keeps its signs, and its sentence is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MAX_CHARS = 400
"""Longest sentence whose markup is taken off, in characters."""

_STANDS_FOR_FORMULA = "70707"
"""A number that is read in the place of a formula of one term, which is put back into the answer."""

_BOLD = re.compile(r"(?<![0-9A-Za-z)])\*\*(?P<kept>[^*\n]+)\*\*|(?<![0-9A-Za-z)])__(?P<kept2>[^_\n]+)__")
_MARK = r"(?:(?<![0-9A-Za-z)])(?:\*\*|__)|(?:\*\*|__)(?![0-9A-Za-z(]))"
_HALF = re.compile(rf"\A(?P<kept>[^*]*?){_MARK}(?P<kept2>(?:(?!\*\*|__).)*)\Z", re.DOTALL)
"""A sentence with one mark, whose other half stands in another sentence, or at its end."""

_FORMULA = re.compile(r"(?<!\\)(\$\$?)(?P<kept>[^$\n]+)\1|\\\((?P<kept2>[^\n]+?)\\\)")
_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boldsymbol|bm)\s*\{(?P<kept>[^{}]*)\}")
_WRITTEN: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\s*\^\s*(?:\\circ|\{\s*\\circ\s*\})"), lambda _: "°"),
    (
        re.compile(r"(?<![\d}])\\[dt]?frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"),
        lambda parts: f"{parts[1] or parts[2]}/{parts[3] or parts[4]}",
    ),
    (re.compile(r"\\%"), lambda _: "%"),
    (re.compile(r"\\leq?(?:slant)?(?![A-Za-z])"), lambda _: "≤"),
    (re.compile(r"\\geq?(?:slant)?(?![A-Za-z])"), lambda _: "≥"),
    (re.compile(r"\\lt(?![A-Za-z])"), lambda _: "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), lambda _: ">"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[,;:! ]|~"), lambda _: ""),
    (re.compile(r"(?<=[a-z])\s*\^\s*(?:([23])(?!\d)|\{([23])\})"), lambda power: "²" if "2" in power.groups() else "³"),
)
"""LaTeX of plain values → the same without LaTeX."""

_LATEX = re.compile(r"[\\^_{}$]")
_ONE_TERM = re.compile(r"(?:[\d.]|\\(?:d|t)?frac|\\sqrt|\\pi(?![A-Za-z])|[{}\[\]\s])+")
"""A formula of one term: numbers, fractions, roots and π, without an operation or a letter."""


class Plain(NamedTuple):
    """A sentence without its markup.

    text: the sentence. begins, ends: of each character of `text`, where it begins and ends in the sentence with markup.
    size: length of the latter. formulas: position in `text` of each number that stands for a formula → the formula.
    """

    text: str
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    size: int
    formulas: dict[int, str]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of text[start:end] in the sentence with markup, with the marks around it."""
        begin = self.ends[start - 1] if start else 0
        return begin, self.begins[end] if end < len(self.text) else self.size

    def answer(self, start: int, end: int) -> str:
        """Return text[start:end] with the formulas that numbers stand for."""
        pieces, position = [], start
        for index, formula in self.formulas.items():
            if start <= index < end:
                pieces += [self.text[position:index], formula]
                position = index + len(_STANDS_FOR_FORMULA)
        return "".join((*pieces, self.text[position:end]))


_Cell = tuple[str, int, int]
"""A character, and where it, or what it was written for, begins and ends in the sentence with markup."""


def without_markup(sentence: str) -> Plain:
    """Return the sentence without bold marks and dollar signs; one longer than `MAX_CHARS` as it is."""
    cells: list[_Cell] = [(character, index, index + 1) for index, character in enumerate(sentence)]
    formulas: dict[int, str] = {}
    if len(cells) <= MAX_CHARS and ("$" in sentence or "*" in sentence or "__" in sentence or "\\" in sentence):
        cells = _without(_without(cells, _BOLD), _HALF)
        cells, formulas = _without_dollars(cells)
    return Plain(
        _text(cells), tuple(begin for _, begin, _ in cells), tuple(end for *_, end in cells), len(sentence), formulas
    )


def _without_dollars(cells: list[_Cell]) -> tuple[list[_Cell], dict[int, str]]:
    """Return the characters with formulas in plain writing, and the formulas for which numbers stand, by position."""
    written: list[_Cell] = []
    formulas: dict[int, str] = {}
    position = 0
    for match in _FORMULA.finditer(_text(cells)):
        written += cells[position : match.start()]
        position = match.end()
        inner = _without(cells[slice(*_span_inside(match))], _TEXT)
        for pattern, write in _WRITTEN:
            inner = _replace(inner, pattern, write)
        if _LATEX.search(_text(inner)) is None:
            written += inner
        elif _ONE_TERM.fullmatch(formula := _text(inner)) is not None:
            formulas[len(written)] = formula.strip()
            span = cells[match.start()][1], cells[match.end() - 1][2]
            written += [(digit, *span) for digit in _STANDS_FOR_FORMULA]
        else:
            written += cells[match.start() : match.end()]
    return written + cells[position:], formulas


def _text(cells: list[_Cell]) -> str:
    return "".join(character for character, _, _ in cells)


def _span_inside(match: re.Match[str]) -> tuple[int, int]:
    """Return the span of what stands between two marks."""
    return match.span("kept") if match["kept"] is not None else match.span("kept2")


def _without(cells: list[_Cell], marks: re.Pattern[str]) -> list[_Cell]:
    """Return the characters without the marks, of which the pattern keeps its groups."""
    rest: list[_Cell] = []
    position = 0
    for match in marks.finditer(_text(cells)):
        rest += cells[position : match.start()]
        for name in marks.groupindex:
            rest += cells[slice(*match.span(name))] if match[name] is not None else []
        position = match.end()
    return rest + cells[position:]


def _replace(cells: list[_Cell], pattern: re.Pattern[str], write: Callable[[re.Match[str]], str]) -> list[_Cell]:
    """Return the characters with what `write` returns in place of each match."""
    written: list[_Cell] = []
    position = 0
    for match in pattern.finditer(_text(cells)):
        span = cells[match.start()][1], cells[match.end() - 1][2]
        written += [*cells[position : match.start()], *((character, *span) for character in write(match))]
        position = match.end()
    return written + cells[position:]
