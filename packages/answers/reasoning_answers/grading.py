"""Grade one reply, in this process: the functions that `reasoning_answers` offers.

They use no threads, signals or other processes, and may be called from any thread. A comparison is limited in steps and
digits (`bounds`), not in seconds: most take less than a millisecond, hostile ones up to some seconds. An answer that is
nested too deeply for Python's recursion limit is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import msgspec

from reasoning_answers.bounds import LAST_LETTER
from reasoning_answers.calls import read_calls, read_tools
from reasoning_answers.find.extract import extract_from
from reasoning_answers.find.values import Extraction
from reasoning_answers.reasoning import final_part
from reasoning_answers.records import AnswerKind, BareQuestion, GradeRules, OfferedTool, SentCall
from reasoning_answers.references import AskedKind, read_reference
from reasoning_answers.search import search
from reasoning_answers.verdict import Verdict, conclude, decide

Value = TypeVar("Value")
_NO_RULES = GradeRules()


@dataclass(frozen=True, slots=True)
class BareReply:
    """A reply that belongs to no run; its fields are those of `ReplyLike`."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str = "stop"
    truncated: bool = False
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET


_MAX_GROUPS = 64
"""Number of groups of equal answers that further answers can join."""


def grade(
    reference: Any,
    reply: Any,
    *,
    kind: AskedKind = "auto",
    rules: GradeRules = _NO_RULES,
    choices: Sequence[str] = (),
    tools: Any = (),
    reasoning: str | None = None,
    truncated: bool = False,
    answer_from_reasoning: bool = False,
) -> Verdict:
    r"""Grade one reply. The verdict is truthy if its answer is correct, and explains itself (`Verdict.steps`).

    reference: the right answer: text, a number, or a list of the parts of one answer. reply: the text of the reply; its
    reasoning may precede `</think>`. kind: how answers are compared; "auto": by the form of the reference. rules:
    tolerances and conventions. choices: texts of the options of a choice question, A first. reasoning: the reasoning if
    it is apart from the text. truncated: whether a limit on tokens cut the reply. answer_from_reasoning: search the
    reasoning as well if the text has no answer.

    For kind "calls", reference is the accepted calls, reply the list of calls made, and tools the list of offered
    tools, each as JSON or as Python values. Raises `ValueError` if the reference, the calls or the tools cannot be
    read.

    >>> verdict = grade("1/2", r"so \boxed{0.5}")
    >>> verdict.outcome, bool(verdict)
    ('correct', True)
    """
    question = _question(reference, kind, rules, choices, tools)
    calls = _read("reply:", read_calls, reply) if question.kind == "calls" else msgspec.UNSET
    text = None if question.kind == "calls" else str(reply)
    read = BareReply(text, reasoning, truncated=truncated, calls=calls)

    def verdict(with_steps: bool) -> Verdict:
        searched = search(question, read, answer_from_reasoning=answer_from_reasoning, with_steps=with_steps)
        concluded = conclude(question, searched, partial(decide, question, with_steps=with_steps))
        return replace(concluded, vote=_vote(concluded, question))

    return verdict(False).explained_by(lambda: verdict(True).steps)


def explain(reference: Any, reply: Any, **options: Any) -> tuple[str, ...]:
    """Return how the verdict on a reply was reached, one sentence per step, safe to print; the last is the outcome.

    options: those of `grade`. Raises `ValueError` as `grade` does.
    """
    return grade(reference, reply, **options).steps


def equal(
    reference: Any,
    answer: str,
    *,
    kind: AskedKind = "auto",
    rules: GradeRules = _NO_RULES,
    choices: Sequence[str] = (),
) -> bool | None:
    """Return whether an answer, without the reply around it, equals the reference; None if no rule can tell.

    The parameters are those of `grade`. Raises `ValueError` if the reference cannot be read.
    """
    outcome = decide(_question(reference, kind, rules, choices), answer).outcome
    return None if outcome == "undecided" else outcome == "correct"


def extract(
    reply: str, *, kind: AnswerKind = "expression", choices: Sequence[str] = (), truncated: bool = False
) -> Extraction | None:
    """Return the answer of a reply as it is written, with its position in characters; None if there is none.

    The search does not know the reference, and takes time linear in the text. kind, choices, truncated: as in `grade`.
    """
    part = final_part(reply, is_apart=False)
    if part is None:
        return None
    last = chr(ord("A") + len(choices) - 1) if choices else LAST_LETTER
    return extract_from(reply, *part, kind=kind, parts=None, truncated=truncated, last=last)


def vote(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the first of the verdicts whose answer is given most often, as maj@k counts it; None if no reply has an
    answer. Equal answers are counted together. Ties go to the answer that is given first.

    verdicts: those of `grade` on several replies to one question.
    """
    groups = dict[str, list[Verdict]]()  # by the text of the first vote
    for verdict in verdicts:
        if verdict.vote is not None:
            first = text = str(verdict.vote)
            if text not in groups:
                firsts = islice(groups.items(), _MAX_GROUPS)
                first = next((key for key, group in firsts if group[0].vote == verdict.vote), text)
            groups.setdefault(first, []).append(verdict)
    return max(groups.values(), key=len)[0] if groups else None


def _vote(verdict: Verdict, question: BareQuestion) -> str | None:
    """Return the vote of a verdict, which is equal to those of equal answers to the question."""
    if verdict.vote is None or question.kind == "calls":
        return verdict.vote
    from reasoning_answers.votes import AnswerVote, vote_of  # it loads the rules, which other replies do not need

    vote = AnswerVote(verdict.vote)
    vote.question, vote.right = question, verdict.vote == vote_of(verdict.vote, question, right=True)
    return vote


def _question(
    reference: Any, kind: AskedKind, rules: GradeRules, choices: Sequence[str], tools: Any = ()
) -> BareQuestion:
    """Return a question with this reference. Raises `ValueError`: a sentence."""
    if not rules.is_built_in:
        raise ValueError(f"the rules name the grader {rules.grader!r}, which this package does not call")
    accepted, answer_kind = _read("the reference answer", partial(read_reference, kind=kind), reference)
    offered: tuple[OfferedTool, ...] = _read("tools:", read_tools, tools) if tools else ()
    return BareQuestion(
        references=accepted, kind=answer_kind, rules=rules, choices=tuple(choices), tools=offered or msgspec.UNSET
    )


def _read(name: str, read: Callable[[Any], Value], value: Any) -> Value:
    """Return what `read` makes of a value. Raises its `ValueError`, the end of a sentence, behind the value's name."""
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error
