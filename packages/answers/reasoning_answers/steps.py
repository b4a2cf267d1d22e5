"""A verdict in words: its rule, how it was reached, step by step, and the kinds of near misses."""

from __future__ import annotations

from functools import lru_cache

from reasoning_answers.boxed import boxes_from_end, without_boxes
from reasoning_answers.find.values import UNSTATED, Extraction
from reasoning_answers.reasoning import final_part
from reasoning_answers.records import AnswerKind, NearMiss, QuestionLike, ReplyLike
from reasoning_answers.text import quoted, visible

NEAR_MISSES: dict[NearMiss, str] = {
    "another box": "the right answer is in a box other than the one that was graded",
    "form": "the right value, but not in the required form (earlier versions only)",
    "rounded": "the exact value of a rounded reference",
    "unit": "the right number with the wrong unit",
}
"""Kind of a near miss (an answer that is almost right) → its meaning in words."""


EXHAUSTED = frozenset(("time", "memory", "depth", "crash"))
"""Rules of grades that are undecided because a worker reached a limit, not because of a comparison."""


UNREAD_CALL = "unread call"
"""The rule and the answer for a reply whose text contains a call that the server did not parse as a call."""


_BOXED = ("box", "boxes", "open box")
"""Methods by which a box is found to be the answer."""


MAX_QUOTED_CHARS = 160
"""Longest sentence of a reply that a step or a reason quotes, in characters; a longer one is cut."""


_MEANINGS = {
    "integer": "both are integers and are compared digit by digit",
    "text": "both texts are identical after normalizing number words, units and spaces",
    "words": "compared as words",
    "identical": "both are the same expression, written differently",
    "exact": "both have an exact value",
    "field": "compared by one evaluation in a finite field",
    "numeric": "evaluated to 70 digits (more if needed), at fixed sample points if there are variables",
    "order of factors": "equal if letters stand for numbers; for matrices and vectors, the order of factors matters",
    "rounded": "the answer, when rounded, equals the reference, which may itself be rounded or exact",
    "percent": "equal if the percent sign was omitted, which is ambiguous for numbers below 1: 0.3% is 0.003",
    "decimal comma": "equal if the comma is a decimal comma; otherwise the answer is a list of two numbers",
    "alternatives": "one side joins alternatives with “or”, but the other lists them as a single answer",
    "parts": "the parts of the reference are named, but those of the answer are not",
    "unsolved": "the answer is an unsolved equation, but the reference is its solution",
    "tolerance": "within the benchmark's tolerance",
    "prose": "no rule can compare a reference that is a sentence",
    "unreadable": "the grammar cannot parse the answer as a mathematical expression",
    "verifier": "graded by the benchmark's own verifier",
    "time": "grading timed out",
    "memory": "grading needed more memory than a worker has",
    "depth": "the answer is nested too deeply",
    "crash": "the worker crashed during grading",
    "calls": "the calls are accepted",
    UNREAD_CALL: "the text contains a call that the server did not parse: enable the tool-call parser for this model",
    "no call": "the reply contains no calls",
    "a call": "the reply contains a call, but the reference expects none",
    "number of calls": "the number of calls does not match the reference",
    "name of a call": "the called function is not one of those accepted",
    "arguments no JSON": "the arguments of a call are not a JSON object",
    "unreadable schema": "a tool's schema cannot be read",
    "schema": "the arguments of a call do not match the tool's schema",
    "parameters": "a parameter is missing or not accepted",
    "type of a value": "a value has the wrong type",
    "value": "a value is not one of those accepted",
    UNSTATED: "the reply does not settle on an answer",
}
"""Rule of a grade → its meaning in words."""


REASONS = EXHAUSTED | {
    "prose",
    "unreadable",
    "order of factors",
    "percent",
    "decimal comma",
    "alternatives",
    "parts",
    "unsolved",
    "unreadable schema",
    UNSTATED,
}
"""Rules whose words explain why an answer is undecided; the words of the others only say how it was compared."""


def meaning(rule: str, extraction: Extraction | None) -> str:
    """Return in words what a rule did to an answer; for `UNSTATED`, which words or values in the reply leave it open.

    extraction: the answer that the rule decided; None if it is not known.
    """
    if rule == UNSTATED and extraction is not None:
        answer = visible(extraction.answer, MAX_QUOTED_CHARS)
        if extraction.behind and extraction.method in ("formula", "number"):
            return f"found {answer} in the last sentence, but another value in the reply is correct"
        if extraction.behind and extraction.method != UNSTATED:
            return f"the text after the answer {answer} gives a different value: {visible(extraction.behind[-1])}"
        if extraction.opened_by:
            return extraction.opened_by
        return f"found {answer} in the last sentence, but no “the answer is”"
    return _MEANINGS.get(rule, "compared part by part")


def steps_of_search(question: QuestionLike, reply: ReplyLike, extraction: Extraction | None) -> list[str]:
    """Return the steps of the search in words, one sentence per step."""
    named = " or ".join(quoted(reference) for reference in question.references)
    steps = [
        f"the reference {named} is compared as type {question.kind}"
        if question.rules.is_built_in
        else f"the reference {named} is passed to the benchmark's own function"
    ]
    text = reply.text or ""
    part = final_part(text, is_apart=bool(reply.reasoning))
    if part is None:
        return [*steps, "the reasoning never ends, so there is no final part to search"]
    if part[0]:
        steps.append(f"the reasoning ends at character {part[0]:,}; only the text after it is searched")
    if extraction is None:
        return [*steps, "no box, phrase, formula or number was found"]
    return [*steps, *_steps_of_extraction(text, extraction)]


def _steps_of_extraction(text: str, extraction: Extraction) -> list[str]:
    """Return in words how an answer was found, what is next to it, and what was skipped."""
    start, end, method = extraction.start, extraction.end, extraction.method
    steps = [f"answer found by {method} at characters {start:,}–{end:,}: {quoted(extraction.answer)}"]
    # For an answer in prose, these are all values of the reply, which are too many to list.
    values = () if method in ("formula", "number", UNSTATED) else extraction.behind
    if method == UNSTATED:
        steps += [
            "the reply does not commit to this answer, so it is wrong only if every other value in the reply is "
            "also wrong"
        ]
    steps += [f"the text after it states {quoted(value)}, which must receive the same verdict" for value in values]
    passed_over = sum(1 for box in boxes_from_end(text) if not start <= box.start <= end)
    if passed_over:
        boxes = f"box{'es' if passed_over > 1 else ''} passed over"
        boxed = method in _BOXED
        steps.append(
            f"{passed_over} other {boxes} because only the last one counts" if boxed else f"{passed_over} {boxes}"
        )
    return steps


def steps_of_comparison(reference: str, answer: str, kind: AnswerKind, more: tuple[str, ...]) -> list[str]:
    """Return the steps of a comparison in words: how both sides were read, then `more`, its own steps."""
    return [
        f"the reference {quoted(reference)} was parsed as {_reading(without_boxes(reference), kind)}",
        f"the answer was parsed as {_reading(answer, kind)}",
        *more,
    ]


@lru_cache(maxsize=1_024)
def _reading(text: str, kind: AnswerKind) -> str:
    """Return how `text` is parsed, on one line, with its exact value if it has one; `words (reason)` if it cannot be
    parsed.
    """
    from reasoning_answers.compare.exact import exact, written
    from reasoning_answers.grammar.numerals import Unreadable
    from reasoning_answers.grammar.parse import parse
    from reasoning_answers.grammar.tree import show

    try:
        node = parse(text, list_commas=kind == "multiple")
    except (Unreadable, RecursionError) as error:
        return f"words ({quoted(str(error))})"
    value = exact(node)
    return quoted(show(node)) + ("" if value is None else f", exactly {written(value)}")
