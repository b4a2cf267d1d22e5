"""What a program needs that embeds the grader: one that stores questions and verdicts in its own records, and decides
answers in its own processes.

The functions of `reasoning_answers` grade one reply in one call. Here is what they are made of, in the order of use:

    references   `read_reference`, `read_tools`, `read_calls`; `with_stated_answers`, `is_unread`, `letter_of`
    records      the types of a question's and a verdict's fields (`Rules` and `Verdict` are in `reasoning_answers`)
    finding      `search` in linear time, in any process; `final_part`, `lost_call`
    deciding     `texts_to_decide`, `decide` in a process that can be killed (`is_short`: in any), `conclude`
    explaining   `why_undecided`, `NEAR_MISSES`, `failure`

A question and a reply may be any objects with the attributes of `records.QuestionLike` and `records.ReplyLike`; a
question must be a `msgspec.Struct`. Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reasoning_answers.calls import examples_of, read_calls, read_tools
    from reasoning_answers.compare.calls import misfit
    from reasoning_answers.compare.equivalence import is_unread
    from reasoning_answers.find.reference import with_stated_answers
    from reasoning_answers.find.values import UNSTATED
    from reasoning_answers.letters import letter_of
    from reasoning_answers.lost_calls import lost_call
    from reasoning_answers.reasoning import final_part
    from reasoning_answers.records import AnswerKind, CallSign, NearMiss, OfferedTool, SentCall, VerdictName
    from reasoning_answers.references import AnswerForm, read_reference
    from reasoning_answers.rulings import LEFT_OPEN, Parts, failure
    from reasoning_answers.search import search
    from reasoning_answers.steps import EXHAUSTED, NEAR_MISSES
    from reasoning_answers.verdict import GRADER, conclude, decide, is_short, texts_to_decide, why_undecided

__all__ = [
    "EXHAUSTED",
    "GRADER",
    "LEFT_OPEN",
    "NEAR_MISSES",
    "UNSTATED",
    "AnswerForm",
    "AnswerKind",
    "CallSign",
    "NearMiss",
    "OfferedTool",
    "Parts",
    "SentCall",
    "VerdictName",
    "conclude",
    "decide",
    "examples_of",
    "failure",
    "final_part",
    "is_short",
    "is_unread",
    "letter_of",
    "lost_call",
    "misfit",
    "read_calls",
    "read_reference",
    "read_tools",
    "search",
    "texts_to_decide",
    "why_undecided",
    "with_stated_answers",
]

_HOMES = {
    name: module
    for module, names in {
        "calls": "examples_of read_calls read_tools",
        "compare.calls": "misfit",
        "compare.equivalence": "is_unread",
        "find.reference": "with_stated_answers",
        "find.values": "UNSTATED",
        "letters": "letter_of",
        "lost_calls": "lost_call",
        "reasoning": "final_part",
        "records": "AnswerKind CallSign NearMiss OfferedTool SentCall VerdictName",
        "references": "AnswerForm read_reference",
        "rulings": "LEFT_OPEN Parts failure",
        "search": "search",
        "steps": "EXHAUSTED NEAR_MISSES",
        "verdict": "GRADER conclude decide is_short texts_to_decide why_undecided",
    }.items()
    for name in names.split()
}
"""Name → its module."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"reasoning_answers.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
