"""`parse` and `verify` with the signatures of Math-Verify (github.com/huggingface/Math-Verify, version 0.9).

    from reasoning_answers.compat import parse, verify

    verify(parse(gold), parse(reply))

`parse` returns answers as texts rather than as sympy objects. An option without an equivalent here raises `ValueError`
if it is set to anything but its default. The README says what differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from reasoning_answers.find.values import Method
from reasoning_answers.grading import equal, extract, grade
from reasoning_answers.references import AskedKind

_STATED: tuple[Method, ...] = ("box", "boxes", "open box", "phrase", "letter")
"""How an answer is found that a box or a label announces."""

_LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Find formulas. boxed_match_priority: 0 or 50, for either of which the last box counts."""

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Find numbers and expressions outside formulas."""

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """Find one of the letters of options. strings: letters from A on."""

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


ExtractionConfig = LatexExtractionConfig | ExprExtractionConfig | StringExtractionConfig


class ParsedAnswer(str):
    """The answer of a text, as it is written there."""

    __slots__ = ("kind", "source")
    source: str
    """The whole text, which `verify` grades."""
    kind: AskedKind
    """Kind of answer."""


def parse(
    pred: str,
    extraction_config: Sequence[ExtractionConfig] = (LatexExtractionConfig(), ExprExtractionConfig()),
    fallback_mode: Literal["no_fallback", "first_match"] = "first_match",
    extraction_mode: Literal["first_match", "any_match"] = "any_match",  # noqa: ARG001 - a reply has one answer
    parsing_timeout: int | None = 5,  # noqa: ARG001 - limited in steps
    raise_on_error: bool = False,  # noqa: ARG001 - raises nothing
) -> list[ParsedAnswer]:
    """Return the answer that a reply or a reference states, in a list; an empty list if it states none.

    fallback_mode: with "first_match", a text of one line that states none is an answer itself. extraction_mode,
    parsing_timeout and raise_on_error have no effect: a text has at most one answer, and reading it takes time linear
    in its length. Raises `ValueError` for a configuration without an equivalent.
    """
    kind = _kind(extraction_config)
    with_anchor = not any(config.try_extract_without_anchor for config in extraction_config)
    found = (extract(pred) if kind != "choice" else None) or extract(pred, kind="choice")
    if found is not None and with_anchor and found.method not in _STATED:
        return []
    text = pred.strip() if found is None else found.answer
    if found is None and (fallback_mode == "no_fallback" or not text or "\n" in text):
        return []
    answer = ParsedAnswer(text)
    answer.source, answer.kind = pred, kind
    return [answer]


def verify(
    gold: list[str] | str,
    target: list[str] | str,
    float_rounding: int = 6,
    numeric_precision: int = 15,
    strict: bool = True,
    allow_set_relation_comp: bool = False,  # noqa: ARG001 - a set is compared with its relation in any case
    timeout_seconds: int | None = 5,  # noqa: ARG001 - limited in steps
    raise_on_error: bool = False,
) -> bool:
    """Return whether any of the targets equals any of the references; False if no rule can tell.

    gold, target: what `parse` returned, or texts of answers. timeout_seconds has no effect: a comparison is limited in
    steps, and runs in any thread. Raises `ValueError` for an option without an equivalent, and, with raise_on_error,
    for a reference that cannot be read.
    """
    _refuse("float_rounding", float_rounding, 6)
    _refuse("numeric_precision", numeric_precision, 15)
    _refuse("strict", strict, True)
    golds, targets = ([each] if isinstance(each, str) else each for each in (gold, target))
    return any(_matches(one, other, raise_on_error) for one, other in product(golds, targets))


def _matches(gold: str, target: str, raise_on_error: bool) -> bool:
    reference, kind = (gold.source, gold.kind) if isinstance(gold, ParsedAnswer) else (gold, "auto")
    try:
        if isinstance(target, ParsedAnswer):
            return bool(grade(reference, target.source, kind=kind))
        return equal(reference, target, kind=kind) is True
    except ValueError:
        if raise_on_error:
            raise
        return False


def _kind(configs: Sequence[ExtractionConfig]) -> AskedKind:
    """Return the kind of answer that the configurations look for. Raises `ValueError`."""
    for config in configs:
        if isinstance(config, LatexExtractionConfig):
            _refuse("normalization_config", config.normalization_config, None)
            _refuse("boxed_match_priority", config.boxed_match_priority, 0, 50)
        elif isinstance(config, StringExtractionConfig):
            _refuse("lowercase", config.lowercase, True)
            _refuse("strings", tuple(config.strings), tuple(_LETTERS[: len(config.strings)]))
    return "choice" if all(isinstance(config, StringExtractionConfig) for config in configs) else "auto"


def _refuse(name: str, value: object, *accepted: object) -> None:
    """Raise `ValueError` unless an option has one of the accepted values."""
    if value not in accepted:
        expected = " or ".join(map(repr, accepted))
        raise ValueError(f"{name}={value!r} has no equivalent in reasoning_answers; expected {expected}")
