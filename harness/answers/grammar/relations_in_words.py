r"""Relations between a letter and numbers whose sign is a Chinese word, brought to signs.

    x大于3, 3小于x, 负1小于等于x小于5              x>3, 3<x, -1≤x<5
    x大于-3且不大于2, x小于0或大于1               x>-3且x≤2, x<0或x>1
    x不等于2, a小于b, x等于1或-2, y等于2x+1       x≠2, a<b, x=1或x=-2, y=2x+1
    x是2，y的值是3                               x=2, y=3

A text is one of these as a whole, or none: one letter, relations of a closed list, and numbers without a unit. A second
relation is of the same letter, which may be left out; behind a comma it holds together with the first one. Only
several letters with a value each may differ.
"""

from __future__ import annotations

import re

from harness.answers.grammar.numerals import number_in_words

_SIGNS = {
    "大于或等于": "≥", "大于等于": "≥", "不小于": "≥", "小于或等于": "≤", "小于等于": "≤", "不大于": "≤", "不超过": "≤",
    "不等于": "≠", "大于": ">", "小于": "<",
}  # fmt: skip
_RELATION = "|".join(_SIGNS)
_NUMBER = (
    r"(?:[-−－+]?\d{1,12}(?:\.\d{1,12})?(?:/\d{1,12})?|[-−]?\\[dt]?frac\{\d{1,9}\}\{\d{1,9}\}"
    r"|负\d{1,12}(?:\.\d{1,12})?|负?[零一二两三四五六七八九十百]{1,8})"
)
_AND = r"\s*(?P<link>(?:[,，]\s*)?(?:并且|而且|且|或者?)|[,，])\s*"
_BOUND = re.compile(
    rf"(?P<letter>[a-zA-Z])\s*(?P<sign>{_RELATION})\s*(?P<number>{_NUMBER}|[a-zA-Z])"
    rf"(?:{_AND}(?P<again>[a-zA-Z])?\s*(?P<further>{_RELATION})\s*(?P<bound>{_NUMBER}))?"
)
_BEHIND = re.compile(
    rf"(?P<number>{_NUMBER})\s*(?P<sign>{_RELATION})\s*(?P<letter>[a-zA-Z])"
    rf"(?:\s*(?P<further>{_RELATION})\s*(?P<bound>{_NUMBER}))?"
)
_IS = r"(?:的值)?\s*(?:是|为|等于)\s*"
_ALTERNATIVES = re.compile(rf"(?P<letter>[a-zA-Z]){_IS}(?P<number>{_NUMBER})\s*或者?\s*(?P<bound>{_NUMBER})")
_FUNCTION = re.compile(r"(?P<letter>[a-zA-Z])等于(?P<formula>(?=[^a-zA-Z]{0,20}[a-zA-Z])[-−+*/^²³().\da-zA-Z]{2,40})")
_VALUE = rf"(?P<letter>[a-zA-Z])(?:{_IS}|\s*[=＝]\s*)(?P<number>{_NUMBER})"
_VALUES = re.compile(rf"(?=.{{1,80}}[是为于]){_VALUE}(?:\s*[,，;；、]\s*[a-zA-Z](?:{_IS}|\s*[=＝]\s*){_NUMBER}){{1,5}}")
_EACH_VALUE = re.compile(_VALUE)


def in_signs(text: str) -> str | None:
    """Return relations in words with signs; None for a text that is not as a whole one of the forms above."""
    if (bound := _BOUND.fullmatch(text)) is not None:
        return _bounds(bound)
    if (bound := _BEHIND.fullmatch(text)) is not None:
        further = "" if bound["further"] is None else f"{_SIGNS[bound['further']]}{_digits(bound['bound'])}"
        return f"{_digits(bound['number'])}{_SIGNS[bound['sign']]}{bound['letter']}{further}"
    if (either := _ALTERNATIVES.fullmatch(text)) is not None:
        letter = either["letter"]
        return f"{letter}={_digits(either['number'])}或{letter}={_digits(either['bound'])}"
    if (function := _FUNCTION.fullmatch(text)) is not None:
        return f"{function['letter']}={function['formula']}"
    if _VALUES.fullmatch(text) is None:
        return None
    values = {value["letter"]: _digits(value["number"]) for value in _EACH_VALUE.finditer(text)}
    is_each_once = len(values) == len(list(_EACH_VALUE.finditer(text)))
    return ", ".join(f"{letter}={number}" for letter, number in values.items()) if is_each_once else None


def _bounds(bound: re.Match[str]) -> str | None:
    """Return one or two relations of a letter; None if the second one is of another letter."""
    letter = bound["letter"]
    first = f"{letter}{_SIGNS[bound['sign']]}{_digits(bound['number'])}"
    if bound["further"] is None:
        return first if bound["number"] != letter else None
    if bound["again"] not in (None, letter):
        return None
    link = "或" if "或" in bound["link"] else "且"
    return f"{first}{link}{letter}{_SIGNS[bound['further']]}{_digits(bound['bound'])}"


def _digits(number: str) -> str:
    return number_in_words(number) or number.replace("负", "-").replace("－", "-")
