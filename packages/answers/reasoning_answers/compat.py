"""`parse`, `verify` and `math_metric` as Math-Verify has them (github.com/huggingface/Math-Verify, version 0.9).

    from reasoning_answers.compat import parse, verify

    verify(parse(gold), parse(reply))

`parse` returns answers as texts rather than as sympy objects. Options that only tell Math-Verify's parser how to clean
a text have no effect; the first use of one that could change a verdict is logged. The README says what differs.
Math-Verify's modules `parser`, `grader`, `metric` and `errors` are this one.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal

from reasoning_answers.find.reference import stated_in
from reasoning_answers.find.values import UNSTATED, Method
from reasoning_answers.grading import equal, extract, grade
from reasoning_answers.records import BareQuestion, GradeRules
from reasoning_answers.references import AskedKind
from reasoning_answers.votes import AnswerVote
from reasoning_answers.words import is_words

for _name in ("parser", "grader", "metric", "errors"):
    sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]

_STATED: tuple[Method, ...] = ("box", "boxes", "open box", "phrase", "letter")
"""How an answer is found that a box or a label announces."""

_LETTERS = "ABCDEFGHIJ"
_VARIABLE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_MAX_WORDS = 3
"""A text of more words, without numbers and formulas, states no answer."""

_log = logging.getLogger(__name__)
_told = set[str]()


class TimeoutException(Exception):
    """Never raised: comparisons are limited in steps."""


@dataclass(frozen=True)
class LatexExtractionConfig:
    """Find formulas."""

    try_extract_without_anchor: bool = True
    boxed_match_priority: int = 50
    normalization_config: Any = None


@dataclass(frozen=True)
class ExprExtractionConfig:
    """Find numbers and expressions outside formulas."""

    try_extract_without_anchor: bool = True


@dataclass(frozen=True)
class StringExtractionConfig:
    """Find one of these strings: the letters of options, from A on, or words."""

    strings: tuple[str, ...] = ("A", "B", "C", "D")
    try_extract_without_anchor: bool = True
    lowercase: bool = True


ExtractionConfig = LatexExtractionConfig | ExprExtractionConfig | StringExtractionConfig
_MATHEMATICS = (LatexExtractionConfig(), ExprExtractionConfig())


class ParsedAnswer(AnswerVote):
    """The answer of a text, as it is written there; equal to other spellings of it."""

    source: str
    """The whole text, which `verify` grades."""
    kind: AskedKind
    """Kind of answer."""


def parse(
    pred: Any,
    extraction_config: Sequence[ExtractionConfig] = _MATHEMATICS,
    fallback_mode: Literal["no_fallback", "first_match"] = "first_match",
    extraction_mode: Literal["first_match", "any_match"] = "any_match",  # noqa: ARG001 - a reply has one answer
    parsing_timeout: int | None = 5,  # noqa: ARG001 - limited in steps
    raise_on_error: bool = False,  # noqa: ARG001 - raises nothing
) -> list[ParsedAnswer]:
    """Return the answer that a reply or a reference states, twice, as Math-Verify returns a value and its text; an
    empty list if it states none.

    pred: a text, a number, or a value of numpy or sympy. fallback_mode: with "first_match", a text of one line that
    states none is an answer itself, unless it is a sentence. extraction_mode, parsing_timeout and raise_on_error have
    no effect: a text has at most one answer, and reading it takes time linear in its length.
    """
    source, kind = _text(pred), _kind(extraction_config)
    with_anchor = not any(config.try_extract_without_anchor for config in extraction_config)
    if kind == "text":
        found = extract(source, kind="text")
        strings = {each.lower() for config in extraction_config for each in getattr(config, "strings", ())}
        if found is None or found.answer.strip(" .$").lower() not in strings:
            return []
    else:
        found = (extract(source) if kind != "choice" else None) or extract(source, kind="choice")
    # Boxes that leave an answer open may be those of several values, which the reference tells.
    is_open = found is not None and found.method == UNSTATED and "boxed" not in source
    if (is_open and stated_in(source) is None) or (with_anchor and found is not None and found.method not in _STATED):
        return []
    text = source.strip() if found is None else found.answer
    is_sentence = len(text.split()) > _MAX_WORDS and is_words(text)
    if found is None and (fallback_mode == "no_fallback" or not text or "\n" in text or is_sentence):
        return []
    answer = ParsedAnswer(text)
    answer.source, answer.kind = source, kind
    answer.question, answer.right = BareQuestion(references=(text,), kind="expression"), False
    return [answer, answer]


def verify(
    gold: Any,
    target: Any,
    float_rounding: int = 6,
    numeric_precision: int = 15,
    strict: bool = True,
    allow_set_relation_comp: bool = False,  # noqa: ARG001 - a set is compared with its relation in any case
    timeout_seconds: int | None = 5,  # noqa: ARG001 - limited in steps
    raise_on_error: bool = False,
) -> bool:
    """Return whether any of the targets equals any of the references; False if no rule can tell.

    gold, target: what `parse` returned, or an answer or a list of answers, each a text, a number, or a value of numpy
    or sympy. float_rounding: places to which decimals are compared, if not 6. strict: if False, the name of the only
    variable does not matter. timeout_seconds has no effect: a comparison is limited in steps, and runs in any thread.
    Raises `ValueError` with raise_on_error, for a reference that cannot be read.
    """
    _tell("numeric_precision", numeric_precision, 15)
    rules = GradeRules() if float_rounding == 6 else GradeRules(absolute_tolerance=0.5 * 10.0**-float_rounding)
    golds, targets = (
        {id(each): each for each in (given if isinstance(given, list | tuple) else [given])} for given in (gold, target)
    )
    pairs = product(golds.values(), targets.values())
    return any(_matches(one, other, rules, strict, raise_on_error) for one, other in pairs)


def _matches(gold: Any, target: Any, rules: GradeRules, strict: bool, raise_on_error: bool) -> bool:
    reference, kind = (gold.source, gold.kind) if isinstance(gold, ParsedAnswer) else (_text(gold), "auto")
    answer = _text(target)
    try:
        if isinstance(target, ParsedAnswer):
            verdict = grade(reference, target.source, kind=kind, rules=rules)
            if verdict or strict or verdict.rule == UNSTATED:
                return verdict.correct
            reference = str(gold)
        if equal(reference, answer, kind=kind, rules=rules):
            return True
        names = [[*dict.fromkeys(_VARIABLE.findall(text))] for text in (reference, answer)]
        if strict or [*map(len, names)] != [1, 1]:
            return False
        return equal(reference, _VARIABLE.sub(names[0][0], answer), kind=kind, rules=rules) is True
    except ValueError:
        if raise_on_error:
            raise
        return False


def math_metric(
    gold_extraction_target: Sequence[ExtractionConfig] = (ExprExtractionConfig(),),
    pred_extraction_target: Sequence[ExtractionConfig] = _MATHEMATICS,
    aggregation_function: Callable[[list[float]], float] = max,
    precision: int = 6,
) -> Callable[[Sequence[str], Sequence[str]], tuple[float, tuple[list[str], list[str]]]]:
    """Return a function of references and replies, which returns the aggregated score (1 for each reply that equals a
    reference) and the answers of both.
    """
    return partial(_measure, gold_extraction_target, pred_extraction_target, aggregation_function, precision)


def _measure(
    of_gold: Sequence[ExtractionConfig],
    of_reply: Sequence[ExtractionConfig],
    aggregate: Callable[[list[float]], float],
    precision: int,
    golds: Sequence[str],
    predictions: Sequence[str],
) -> tuple[float, tuple[list[str], list[str]]]:
    accepted = [answer for gold in golds for answer in parse(gold, of_gold)[:1]]
    given = [parse(reply, of_reply)[:1] for reply in predictions]
    score = aggregate([float(verify(accepted, each, float_rounding=precision)) for each in given])
    return score, ([*map(str, accepted)], [str(answer) for each in given for answer in each])


def _text(value: Any) -> str:
    """Return a value as the text of an answer; "" for None."""
    if hasattr(value, "tolist"):
        value = value.tolist()  # numpy
    if hasattr(value, "free_symbols"):
        from sympy import latex

        return str(latex(value))
    return value if isinstance(value, str) else "" if value is None else str(value)


def _kind(configs: Sequence[ExtractionConfig]) -> AskedKind:
    """Return the kind of answer that the configurations look for."""
    are_letters = True
    for config in configs:
        if isinstance(config, LatexExtractionConfig):
            _tell("boxed_match_priority", config.boxed_match_priority, 0, 50)
        elif isinstance(config, StringExtractionConfig):
            _tell("lowercase", config.lowercase, True)
            are_letters &= tuple(config.strings) == tuple(_LETTERS[: len(config.strings)])
    if not all(isinstance(config, StringExtractionConfig) for config in configs):
        return "auto"
    return "choice" if are_letters else "text"


def _tell(name: str, value: object, *usual: object) -> None:
    """Log the first use of an option with a value that has no effect here, but might change a verdict there."""
    if value not in usual and name not in _told:
        _told.add(name)
        _log.warning("%s=%r has no effect in reasoning_answers (shown only once)", name, value)
