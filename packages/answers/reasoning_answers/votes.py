"""The votes of answers, which maj@k (the majority of k answers) counts.

Right answers vote for the first reference, other answers for themselves, with their units; an answer to a choice votes
for its letter. Votes are the same if `equal` says so. Equality is not transitive (50% equals both 50 and 0.5), so an
answer joins the first group whose first answer it equals.
"""

from __future__ import annotations

from reasoning_answers.boxed import without_boxes
from reasoning_answers.codec import digest
from reasoning_answers.compare.equivalence import equal, option_of
from reasoning_answers.letters import letter_of
from reasoning_answers.records import BareQuestion, QuestionLike
from reasoning_answers.words import words_of

_MAX_CHARS = 2_000
"""Longest vote, in characters; that of a longer answer is its checksum."""


class AnswerVote(str):
    """The vote of an answer, which equals the votes of equal answers. right: whether it is that of right answers."""

    question: BareQuestion
    right: bool

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) or not isinstance(other, AnswerVote):
            return str.__eq__(self, other)
        asked = self.question
        try:
            equals = equal(str(self), str(other), asked.kind, asked.rules, asked.choices).equal
        except RecursionError:
            return False
        return equals is True and not (self.right or other.right)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0  # some votes that differ in text are equal


def vote_of(answer: str, question: QuestionLike, *, right: bool) -> str | None:
    """Return the vote of an extracted answer as text; None if the answer is empty. right: whether it is correct."""
    if not answer.strip():
        return None
    if question.kind == "choice":
        # The text of an option is a vote for its letter.
        letter = letter_of(answer, any_case=True) or option_of(answer, question.choices, question.rules)
        return letter or words_of(answer)[:_MAX_CHARS]
    vote = without_boxes(question.references[0]) if right else answer
    return vote if len(vote) <= _MAX_CHARS else digest(vote)
