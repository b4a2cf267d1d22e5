"""Quantities whose unit is written in letters behind the number, as in 15m/s, which may also be a product: 15·m/s.

The two texts of a comparison do not say which of both it is, so that beside `15m/s` the bare 15 is undecided. The text
of the question may: a variable stands in it outside of quantities. So the letters of a reference are a unit if

- the question asks 多少 or 几, and
- they stand in it nowhere, or only in quantities: a number and a unit, with no operator beside them and nothing counted
  or measured behind them (20s行驶300m, 10N/kg; not the m of 长m米, 2m米, 3m+2n and 3m个), and
- no quantity in it has the same single letter, for 3m and 2m may be terms; or the unit behind 多少 is of this dimension
  (3m and 2m, 共长多少米).
"""

from __future__ import annotations

import re

import msgspec

from harness.answers.grammar.characters import plain_latex
from harness.answers.grammar.units import Unit, is_counted, unit_of
from harness.answers.words import without_text_commands
from harness.core.records import Question

MAX_QUESTION_CHARS = 4_000
"""Longest prompt that is searched for letters, in characters."""

_MAX_ANSWER_CHARS = 400
_NUMBER = r"-?\d[\d.,/]{0,40}(?:\s{0,3}\\times\s{0,3}10\^-?\d{1,4})?"
_SYMBOL = r"[A-Za-z]{1,12}+(?:\^-?\d)?"
_UNIT = rf"{_SYMBOL}(?:[/*]{_SYMBOL}){{0,4}}+"
_QUANTITY = re.compile(rf"\s*({_NUMBER})[\s~]*({_UNIT})\s*")
_RESULT = re.compile(rf"(?:[^=]*=){{0,8}}\s*({_NUMBER})\s*(?:\(\s*({_UNIT})\s*\)|({_UNIT}))\s*\.?\s*")
"""A quantity, perhaps as the last side of a chain, perhaps with its unit in brackets: `300÷20=15(m/s)`."""

_ASKED = re.compile(rf"(?:多少|几)\s*([\u3400-\u9fff]{{1,6}}|{_UNIT})")
_IN_QUESTION = re.compile(
    rf"(?<![A-Za-z\d.+*/^<>-])(?:\d[\d.]{{0,20}}(?: ?\\times ?10\^-?\d+)?|多少|几) ?({_UNIT})(?![+*/^=<>-])"
)
_WORDS_BEHIND = re.compile(r" ?([\u3400-\u9fff]{0,6})")
_MARKUP = re.compile(r"\\(?!times(?![a-z]))(?:[a-zA-Z]+|.)|[$~]")
_SPACED_SIGN = re.compile(r"\s*([+*/^=<>-])\s*")
_DEGREES = re.compile(r"\s*(-?\d[\d.,]{0,40})\s*度电?\s*")
_NUMBER_AND_WORDS = re.compile(rf"\s*{_NUMBER}[\s~]*({_UNIT}|[\u3400-\u9fff]{{1,6}})\s*")
_ENERGY = (("length", 2), ("mass", 1), ("time", -2))

_SINGLE_LETTERS = frozenset("mgstdhlLACNJWVFTKM")
"""Units of one letter, whose case counts: 5n and 5k are no newtons and kelvins."""

_RUN = re.compile(r"[A-Za-z]+")
_MAX_LETTERS_OF_PRODUCT = 3
"""A longer run of letters in a question is a word; a shorter one may be a product of variables."""


def _plain(text: str) -> str:
    """Return text with ASCII letters, signs and exponents: `m/s^2` for `ｍ／ｓ²`, `kW*h` for `kW·h`, `ohm` for Ω."""
    plain = plain_latex(re.sub("(?<=[\\d\\s])[µμ](?=[A-Za-z])", "u", text))
    plain = re.sub(r"\\[,;: ]", " ", plain)
    return re.sub(r"\\Omega\s?", "ohm", re.sub(r"\\cdot\s?", "*", plain)).replace("{", "").replace("}", "")


def quantity_in_letters(text: str) -> tuple[str, str] | None:
    """Return the number and the unit of a text that is nothing else, `15m/s`; None for any other, such as `3x`."""
    match = _QUANTITY.fullmatch(_plain(text)) if len(text) <= _MAX_ANSWER_CHARS and "\\text" not in text else None
    return (match[1], match[2]) if match is not None and _is_unit(match[2]) else None


def _is_unit(text: str) -> bool:
    """Whether letters are a unit."""
    return unit_of(text) is not None and all(len(run) > 1 or run in _SINGLE_LETTERS for run in _RUN.findall(text))


def with_units(question: Question, answer: str) -> tuple[Question, str]:
    r"""Return question and answer with the units of their quantities marked, `15\text{m/s}` for `15m/s`, if the text of
    the question shows that the letters of a reference are no variables.
    """
    if question.prompt_chars > MAX_QUESTION_CHARS or question.kind not in ("expression", "number"):
        return question, answer
    text = question.last_turn
    if "多少" not in text and "几" not in text:
        return question, answer
    references = tuple(
        _in_latex(*read)
        if (read := quantity_in_letters(reference)) is not None and _is_unit_of(text, read[1])
        else reference
        for reference in question.references
    )
    if references == question.references:
        return question, answer
    # Beside a reference without variables, letters that are a whole unit behind a number are one.
    result = _RESULT.fullmatch(_plain(answer)) if len(answer) <= _MAX_ANSWER_CHARS and "\\text" not in answer else None
    if result is not None and _is_unit(unit := result[2] or result[3]):
        answer = answer[: max(map(answer.rfind, "=＝")) + 1] + _in_latex(result[1], unit)
    return msgspec.structs.replace(question, references=references), answer


def _in_latex(number: str, unit: str) -> str:
    """Return a quantity whose letters the grammar reads as a unit."""
    return re.sub(r"\^(-?\d+)", r"^{\1}", number) + rf"\text{{ {unit}}}"


def _is_unit_of(question: str, unit: str) -> bool:
    """Whether the text of a question shows that letters behind a number are the unit of what it asks for."""
    text = _SPACED_SIGN.sub(r"\1", " ".join(_MARKUP.sub(" ", _plain(question)).split()))
    symbols, units = set(_RUN.findall(unit)), list[str]()

    def without_unit(match: re.Match[str]) -> str:
        words = _WORDS_BEHIND.match(text, match.end())
        behind = "" if words is None else words[1]
        counts = behind[:1] == "个" or is_counted(behind[:2]) or is_counted(behind[:3])
        if counts or unit_at(behind) is not None or not _is_unit(match[1]):
            return match[0]
        units.append(match[1])
        return " "

    rest = _IN_QUESTION.sub(without_unit, text)
    variables = set("".join(run for run in _RUN.findall(rest) if len(run) <= _MAX_LETTERS_OF_PRODUCT))
    if any(variables.issuperset(symbol) for symbol in symbols):
        return False
    dimensions = [measure.dimension for words in (unit, *_ASKED.findall(text)) if (measure := unit_at(words))]
    is_term = len(symbols) == 1 and any(set(_RUN.findall(symbol)) == symbols for symbol in units)
    return not is_term or dimensions[0] in dimensions[1:]


def unit_at(text: str) -> Unit | None:
    """Return the longest unit that begins a text: kW·h of 千瓦时的电能."""
    units = (unit_of(text[:end]) for end in range(len(text), 0, -1))
    return next((unit for unit in units if unit is not None), None)


def with_kilowatt_hours(reference: str, answer: str) -> tuple[str, str]:
    """Return both texts with 千瓦时 for 度 and 度电 behind the number of one of them, if the other is an energy."""
    for degrees, energy in ((reference, answer), (answer, reference)):
        if (match := _DEGREES.fullmatch(without_text_commands(degrees))) is not None and _is_energy(energy):
            spelled = rf"{match[1]}\text{{ 千瓦时}}"
            return (spelled, answer) if degrees is reference else (reference, spelled)
    return reference, answer


def _is_energy(text: str) -> bool:
    """Whether a text is a number with a unit of energy: 1.8kW·h, 6.48×10⁶焦."""
    match = _NUMBER_AND_WORDS.fullmatch(_plain(without_text_commands(text))) if len(text) <= _MAX_ANSWER_CHARS else None
    measure = unit_of(match[1]) if match is not None else None
    return measure is not None and measure.dimension == _ENERGY
