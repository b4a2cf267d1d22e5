"""A conversation's verdict: each turn with a reference is decided as a question, and the sample is right if all are.

Each turn is a part of the answer, unless its grader reports parts, so `share of parts` is the mean turn. A turn without
a reply is wrong. Without any reference, the last turn alone is decided, as a question with a rubric is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.records import AskedTurn, Grade, Message, Question, Sample, TurnGrade
from reasoning_answers import Verdict

NOT_REACHED = "turn not reached"
"""The rule of a turn that got no reply."""

NO_REFERENCE = "no reference"
"""The rule of a conversation that nothing can decide."""


def graded_turns(question: Question, sample: Sample) -> list[tuple[int, Question, Sample | None]]:
    """The graded turns of a conversation, in order: the turn's number from 1, its question, and its reply as a sample;
    None if it got none. Empty if no turn has a reference.
    """
    replies = {step.turn: step for step in sample.steps or () if step.turn}  # the last step of each turn
    found = list[tuple[int, Question, Sample | None]]()
    for number, turn in enumerate(question.turns or (), 1):
        if not turn.references:
            continue
        step = replies.get(number)
        reply = None
        if step is not None:
            texts = {} if step.text is msgspec.UNSET else {"text": step.text, "reasoning": step.reasoning or None}
            reply = msgspec.structs.replace(sample, **texts, finish_reason=step.finish_reason, steps=msgspec.UNSET)
        found.append((number, _as_question(question, number, turn), reply))
    return found


def as_history(question: Question, sample: Sample) -> Question:
    """A conversation as a question whose last message is the last turn, after the turns and replies before it; each
    sample has its own. Any other question is unchanged.
    """
    if not question.turns:
        return question
    messages = [*question.messages]
    steps = [step for step in sample.steps or () if not step.calls]
    for step, turn in zip(steps, question.turns[1:], strict=False):
        messages += [Message("assistant", step.text or ""), *turn.messages]
    name = f"{question.question_id}\0sample {sample.sample_index}"
    return msgspec.structs.replace(question, question_id=name, messages=tuple(messages), turns=msgspec.UNSET)


def _as_question(question: Question, number: int, turn: AskedTurn) -> Question:
    """A turn as a question, with its user message last."""
    messages = turn.messages or question.messages
    return msgspec.structs.replace(
        question, question_id=f"{question.question_id}\0turn {number}", references=turn.references, kind=turn.kind,
        messages=messages, turns=msgspec.UNSET,
    )  # fmt: skip


def combined(grade: Grade, verdicts: Sequence[tuple[int, Verdict | None]]) -> Grade:
    """The grade of a conversation. grade: of its last graded turn. verdicts: (number, verdict) of each graded turn; a
    verdict is None if the turn got no reply.
    """
    turns = tuple(
        TurnGrade(turn=number, verdict="wrong", rule=NOT_REACHED, extracted=None)
        if verdict is None
        else TurnGrade(
            turn=number, verdict=verdict.outcome, rule=verdict.rule, extracted=verdict.extracted,
            parts=verdict.parts or msgspec.UNSET,
        )
        for number, verdict in verdicts
    )  # fmt: skip
    outcomes = [turn.verdict for turn in turns]
    outcome = next((each for each in ("wrong", "no_answer", "undecided") if each in outcomes), "correct")
    first = next(turn for turn in turns if turn.verdict == outcome)
    parts = [turn.parts or (int(turn.verdict == "correct"), 1) for turn in turns]
    return msgspec.structs.replace(
        grade,
        verdict=outcome,
        rule=first.rule,
        turns=turns,
        parts=msgspec.UNSET if len(parts) == 1 else (sum(each[0] for each in parts), sum(each[1] for each in parts)),
    )
