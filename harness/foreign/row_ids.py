"""Decides which rows of a file are samples of one question.

If the file has ids, rows with the same id are samples of one question. Otherwise, rows with the same question and
reference are samples of one question, unless most questions have one row: then each row is a question, which is how the
programs that write such files count.

`SampleNumbers` numbers the samples of a question. A sample keeps its number in the file, regardless of the order of the
rows. If it has none, or if an earlier sample of the question has the same number, it gets the lowest free number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.number_text import count_noun
from harness.core.records import AnswerKind
from harness.core.sanitize import visible
from harness.foreign.rows import OutputRow
from reasoning_answers.host import read_reference

_Accepted = tuple[tuple[str, ...], AnswerKind]
"""The accepted answers to a question, and their kind."""


class _RowIdentity(NamedTuple):
    """The part of a row that identifies the question it answers.

    question_id: the question's id in the file; None if the file has none. answer_digest: digest of the reference.
    content: digest of question and reference; None if the file does not have the question's text. n_responses: number
    of replies in the row.
    """

    question_id: str | None
    answer_digest: str
    content: str | None
    n_responses: int


def _digests(question: str | None, answer: Any) -> tuple[str, str | None]:
    """(digest of the reference, digest of question and reference; None without the question's text)."""
    return digest(answer)[:16], digest([question, answer])[:16] if question else None


_digests_of_text = lru_cache(maxsize=4_096)(_digests)
"""`_digests` with a cache, since the rows of a question are close together or recur in the same order."""


class RowIdentities:
    """The identity of each row of a file, in order.

    rows: the identity of each row; equal ones are the same object. all_have_ids: whether all rows have ids.
    are_certain: whether these are ids of questions, not perhaps of samples. conflict: the error for the first row whose
    reference or text differs from that of an earlier row with its id. doubt: a sentence on the first row whose
    reference differs from that of an earlier row with the same question. model: the model that all rows name; None if
    they do not name the same one. n_replies, n_missing, n_repeated: numbers of replies, of replies that are null or
    failed, and of rows without replies, which repeat an earlier row. are_judged: whether the file contains verdicts.
    n_failed: number of replies that count as wrong because they have no verdict.
    """

    def __init__(self) -> None:
        self.rows: list[_RowIdentity] = []
        self.all_have_ids = self.are_certain = True
        self._distinct: dict[_RowIdentity, _RowIdentity] = {}
        self._first: dict[str, tuple[_RowIdentity, str]] = {}  # id → (identity, place) of its first row
        self._first_of_text: dict[str, tuple[str, str]] = {}  # question → (reference, place) of its first row: digests
        self.conflict: UsageError | None = None
        self.doubt = ""
        self.model: str | None = None
        self.n_replies = self.n_missing = self.n_repeated = self.n_failed = 0
        self.are_judged = False

    def add(self, row: OutputRow) -> None:
        """Add the next row. Raises `UsageError` for a row whose reference answer cannot be read."""
        card_question = row.card_question
        if card_question is None:
            reference_of(row)
        digests = _digests_of_text if isinstance(row.answer, str) else _digests
        question_id = card_question.question_id if card_question else row.question_id
        identity = _RowIdentity(question_id, *digests(row.question, row.answer), len(row.responses))
        n_missing = sum(response.is_missing for response in row.responses)
        self.n_missing += n_missing
        self.n_repeated += not row.responses
        self.n_replies += len(row.responses) - n_missing
        self.n_failed += sum(response.failed for response in row.responses)
        self.are_judged |= row.is_judged
        self.model = row.model if row.model == self.model or not self.rows else None
        self.all_have_ids &= bool(question_id)
        self.are_certain &= row.id_is_certain
        self.rows.append(self._distinct.setdefault(identity, identity))
        if self.rows[-1] is identity and card_question is None:  # a card's question was found by its id
            self._compare(identity, row)

    def _compare(self, identity: _RowIdentity, row: OutputRow) -> None:
        """Compare a new identity with earlier ones of the same id, and of the same question."""
        if identity.question_id and self.conflict is None:
            earlier, where = self._first.setdefault(identity.question_id, (identity, row.where))
            differing = "reference answer" if identity.answer_digest != earlier.answer_digest else "text"
            if differing != "text" or (identity.content and earlier.content and identity.content != earlier.content):
                self.conflict = UsageError(
                    f"{row.where}: the question {visible(identity.question_id, 100)!r} has a different {differing} at "
                    f"{where}; all samples of a question must agree"
                )
        if row.question and not self.doubt:
            first = self._first_of_text.setdefault(digest(row.question)[:16], (identity.answer_digest, row.where))
            if first[0] != identity.answer_digest:
                self.doubt = (
                    f"{row.where} repeats the question of {first[1]} with a different reference answer; they count as "
                    "two questions"
                )

    @property
    def are_named(self) -> bool:
        """Whether all rows have the ids of their questions, so that no row needs to be identified by its question."""
        return self.all_have_ids and self.are_certain

    @property
    def have_texts(self) -> bool:
        """Whether any row has the text of its question."""
        return any(identity.content for identity in self._distinct)

    def ids(self, *, listed: bool = False) -> list[str]:
        """The question id of each row: the file's own if all rows have one, else a digest of question and reference.

        Ids in a column that the user did not name count if they identify questions: one id for each question, one
        question for each id. Sample ids do not.

        listed: a benchmark lists the questions, and its reader (`Recognized`) joins further questions that the
        benchmark does not have. Raises `UsageError` for two rows with the same id that contradict each other.
        """
        if self.are_named and self.conflict is not None:
            raise self.conflict
        pairs = {(identity.content, identity.question_id) for identity in self._distinct if identity.content}
        one_each = self.conflict is None and len(pairs) == len({content for content, _ in pairs})
        if self.all_have_ids and (self.are_certain or one_each):
            return [str(identity.question_id) for identity in self.rows]
        return self._ids_by_content(listed=listed)

    def _ids_by_content(self, *, listed: bool) -> list[str]:
        """The question id of each row by its content; further questions with equal contents get `-2`, `-3` … at the
        end of the id. They get equal shares of the samples, in order.
        """
        n_samples: Counter[str] = Counter()  # of each content
        for identity in self.rows:
            if identity.content is not None:
                n_samples[identity.content] += identity.n_responses
        # The most common number of samples per content; in a tie, the largest.
        usual = max(Counter(n_samples.values()).items(), key=lambda item: (item[1], item[0]))[0] if n_samples else 1
        n_before: Counter[str] = Counter()
        ids = []
        for position, (_, _, content, n_responses) in enumerate(self.rows, 1):
            if content is None:
                ids.append(f"row-{position}")
                continue
            n_questions = max(1, round(n_samples[content] / usual)) if listed or usual == 1 else 1
            ordinal = n_before[content] * n_questions // n_samples[content]
            n_before[content] += n_responses
            ids.append(f"{content}-{ordinal + 1}" if ordinal else content)
        return ids


def reference_of(row: OutputRow) -> _Accepted:
    """The reference answers in a row; empty if the row has none. Raises `UsageError` if they cannot be read."""
    if not row.states_reference:
        return (), "text"
    if row.is_judged:  # nothing is compared with it
        return (row.answer,) if isinstance(row.answer, str) else (), "text"
    if any(reply.calls is not msgspec.UNSET for reply in row.responses):
        return (row.answer,), "calls"
    try:
        return _reference_of_text(row.answer) if isinstance(row.answer, str) else read_reference(row.answer)
    except ValueError as error:
        raise UsageError(f"{row.where}: the reference answer {error}") from error


@lru_cache(maxsize=4_096)
def _reference_of_text(text: str) -> _Accepted:
    """The reference in a text, with a cache, since all rows of a question have the same reference."""
    return read_reference(text, form="solution")


MAX_INDEX = 1_000_000
"""Limit of a sample's number in a file; a number at or above it is ignored."""


class SampleNumbers:
    """The numbers given to samples during one pass over a file, by question."""

    def __init__(self) -> None:
        # The numbers in use are all below `_lowest` and those in `_ahead`, which stays empty if samples are in order.
        self._lowest: Counter[str] = Counter()
        self._ahead: defaultdict[str, set[int]] = defaultdict(set)
        self._n_renumbered = 0
        self._first_renumbered = ""

    def give(self, question_id: str, stated: int | None, where: str = "") -> int:
        """Return the number of the next sample of a question. stated: its number in the file, at least 0. where: its
        location.
        """
        lowest = index = self._lowest[question_id]
        if stated is not None and stated != lowest:
            if lowest < stated < MAX_INDEX and stated not in self._ahead[question_id]:
                self._ahead[question_id].add(stated)
                return stated
            self._n_renumbered += 1
            self._first_renumbered = self._first_renumbered or where
        lowest += 1
        while (ahead := self._ahead.get(question_id)) and lowest in ahead:
            ahead.remove(lowest)
            lowest += 1
        self._lowest[question_id] = lowest
        return index

    @property
    def sentence(self) -> str:
        """A sentence on the samples whose number in the file was replaced; empty if there are none."""
        if not self._n_renumbered:
            return ""
        return (
            f"{count_noun(self._n_renumbered, 'sample')} could not keep the number given in the file (first at "
            f"{self._first_renumbered}), because it is already taken or is {MAX_INDEX:,} or higher; "
            f"each was assigned the lowest free number for its question"
        )
