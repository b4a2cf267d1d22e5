"""Questions and samples of which a test states only what matters to it."""

from __future__ import annotations

from harness.core.records import AnswerKind, GradeRules, Question, Sample
from reasoning_answers.kinds import kind_of
from tests.pins import verdicts
from tests.runs import recorded

RULES = GradeRules()


def question(
    *references: str,
    kind: AnswerKind | None = None,
    rules: GradeRules = RULES,
    choices: tuple[str, ...] = (),
    name: str = "q",
) -> Question:
    """A question with these references."""
    return Question(
        benchmark="made up",
        question_id=name,
        references=references,
        kind=kind or kind_of(references[0]),
        rules=rules,
        choices=choices,
        row_digest="",
        prompt_digest="",
    )


def sample(
    text: str | None, *, name: str = "q", index: int = 0, finish_reason: str = "stop", reasoning: str | None = None
) -> Sample:
    """A sample with this text."""
    return recorded.sample(name, index, text, benchmark="made up", reasoning=reasoning, finish_reason=finish_reason)


def pinned_pairs() -> list[tuple[str, str]]:
    """The reference and the answer of each pinned pair whose reply is an answer in a box."""
    return [(row.reference, row.reply.removeprefix(r"\boxed{").removesuffix("}")) for row in verdicts.pinned()["pairs"]]
