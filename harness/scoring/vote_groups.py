"""Groups the votes of a question, so that equal answers vote together in maj@k.

A vote joins the first group whose first answer it equals, by the rules that compare answers with references. The
comparisons run in the worker processes that decide answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from harness.core.records import Grade, Question, VerdictName
from harness.grading.grades import decide
from harness.grading.processes.pool import Pool, outcomes
from harness.presets.grading import GradingOptions
from reasoning_answers import Extraction
from reasoning_answers.host import EXHAUSTED, is_short

MAX_GROUPS = 64
"""Number of groups of a question that answers can join; each answer that equals the first of none is a group itself."""

Groups = dict[tuple[int, str], str]
"""Number of a question and a vote → the vote of its group, for votes that are not the first of their group."""

_Asked = tuple[Question, str]
"""A question whose reference is a vote, and another vote."""


def grouped(questions: Sequence[Question], grades: Iterable[tuple[int, Grade]], options: GradingOptions) -> Groups:
    """Return the groups of the votes in grades, each with the number of its question."""
    given = defaultdict[int, dict[str, None]](dict)
    right = set[tuple[int, str]]()
    for number, grade in grades:
        if grade.vote is not None and grade.verdict == "correct":
            right.add((number, grade.vote))
        elif grade.vote is not None and grade.rule not in EXHAUSTED:
            given[number][grade.vote] = None
    votes = {number: [text for text in texts if (number, text) not in right] for number, texts in given.items()}
    groups = Groups()
    with Pool(options.n_workers, options.deadline) as pool:
        for _ in range(MAX_GROUPS):
            votes = {number: texts for number, texts in votes.items() if len(texts) > 1}
            asked = [
                (number, (question, vote))
                for number, (first, *others) in votes.items()
                if (question := _about(questions[number], first)).rules.is_built_in and question.kind != "calls"
                for vote in others
            ]
            apart = defaultdict[int, list[str]](list)
            for (number, (_, vote)), outcome in zip(asked, _outcomes(pool, [each for _, each in asked]), strict=True):
                if outcome == "correct":
                    groups[number, vote] = votes[number][0]
                else:
                    apart[number].append(vote)
            votes = apart
    return groups


def _about(question: Question, vote: str) -> Question:
    return msgspec.structs.replace(question, question_id=f"{question.question_id} {vote}", references=(vote,))


def _outcomes(pool: Pool, asked: Sequence[_Asked]) -> Iterable[VerdictName]:
    """Yield whether each vote equals its question's; short numbers are compared in this process."""
    by_pool = iter(
        outcomes(pool, [(each[0], Extraction(each[1], 0, 0, "box")) for each in asked if not is_short(*each)])
    )
    for each in asked:
        yield decide(*each).outcome if is_short(*each) else next(by_pool)
