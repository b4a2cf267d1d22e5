"""Small run folders with known samples, written and graded by the real parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.core.codec import digest
from harness.core.records import AnswerKind, Message, Question, Sample, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder
from harness.scoring.pipeline import score_run
from tests.runs import recorded

IDENTITY = {
    "model": "org/model-7b",
    "api": "chat",
    "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768},
    "chat_template_kwargs": {"enable_thinking": True},
    "extra_body": {},
}


@dataclass(frozen=True)
class RunReply:
    """One reply of a model to a question of the small run."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str = "stop"
    tokens: int | None = 7


@dataclass(frozen=True)
class RunQuestion:
    """A question of the small run, and the replies to it."""

    text: str
    reference: str
    replies: Sequence[RunReply]
    kind: AnswerKind = "integer"
    before: Sequence[Message] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


SMALL: dict[str, RunQuestion] = {
    "q1": RunQuestion(
        r"What is $\frac{84}{2}$?",
        "42",
        [
            RunReply(r"Half of 84 is \(42\), so $\boxed{42}$.", reasoning="First I halve 84.\nWait, 2 · 42 = 84."),
            RunReply(r"It is $\boxed{41}$.", tokens=None),
            RunReply(r"First $\boxed{42}$, no: $\boxed{43}$."),
        ],
        metadata={"level": "Level 5", "subject": "Algebra"},
    ),
    "q2/odd id": RunQuestion(
        "What is 1 + 1?",
        "2",
        [
            RunReply("I go on and on", finish_reason="length", tokens=32768),
            RunReply(r"\boxed{2}"),
            RunReply(None, reasoning="nothing but thoughts"),
        ],
        metadata={"level": "Level 1", "subject": "Counting"},
    ),
}


def question(benchmark: str, question_id: str, asked: RunQuestion) -> Question:
    """The question's record."""
    return Question(
        benchmark=benchmark,
        question_id=question_id,
        messages=(*asked.before, Message("user", asked.text)),
        references=(asked.reference,),
        kind=asked.kind,
        metadata=dict(asked.metadata),
        row_digest=digest([asked.text]),
        prompt_digest="",
    )


def sample(benchmark: str, question_id: str, index: int, said: RunReply) -> Sample:
    """The sample's record."""
    return recorded.sample(
        question_id,
        index,
        said.text,
        benchmark=benchmark,
        reasoning=said.reasoning,
        finish_reason=said.finish_reason,
        usage=Usage(prompt_tokens=11, completion_tokens=said.tokens),
        timing=Timing(started=1_800_000_000.0, first_token=0.25, last_token=2.5, total=2.75, events=9),
        endpoint="http://127.0.0.1:8000/v1",
        seed=1000 + index,
    )


def write_run(
    path: Path,
    benchmarks: Mapping[str, Mapping[str, RunQuestion]] | None = None,
    *,
    identity: Mapping[str, Any] | None = None,
    scored: bool = True,
) -> RunFolder:
    """A run of these questions and samples; graded and scored by the rules if `scored`."""
    for name, questions in (benchmarks or {"demo": SMALL}).items():
        recorded.write_run(
            path,
            [question(name, key, asked) for key, asked in questions.items()],
            [sample(name, key, i, said) for key, asked in questions.items() for i, said in enumerate(asked.replies)],
            planned=max(len(asked.replies) for asked in questions.values()),
            identity={**IDENTITY, **(identity or {})},
            options={},
        )
    folder = RunFolder(path)
    if scored:
        score_run(folder, GradingOptions(workers=1))
    return folder
