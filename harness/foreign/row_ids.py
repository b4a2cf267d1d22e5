"""Decides which rows of a file are samples of one question.

If the file has ids, rows with the same id are samples of one question. Otherwise, rows with the same question and
reference are samples of one question, unless most questions have one row: then each row is a question, which is how the
programs that write such files count. The argument `repeats` overrides this rule.

`SampleNumbers` numbers the samples of a question. A sample keeps its number in the file, regardless of the order of the
rows. If it has none, or if an earlier sample of the question has the same number, it gets the lowest free number.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from harness.benchmarks.drafts import AcceptedAnswers, read_reference
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.foreign.formats import OutputRow
from harness.grading.find.reference import stated_in

Repeats = Literal["auto", "samples", "questions"]
"""The meaning of rows with equal question and reference in a file without ids: samples of one question, or separate
questions. auto: separate questions only if most questions have one row.
"""


class _RowIdentity(NamedTuple):
    """The part of a row that identifies the question it answers.

    named: the question's id in the file; None if the file has none. usual: an id that may be the question's. from_card:
    whether the question comes from a card. answer_digest: digest of the reference. content: digest of question and
    reference; None if the file does not have the question's text. n_responses: number of replies in the row.
    """

    named: str | None
    usual: str | None
    from_card: bool
    answer_digest: str
    content: str | None
    n_responses: int

    @classmethod
    def of(cls, row: OutputRow) -> _RowIdentity:
        """The identity of a row. Raises `UsageError` if its reference answer cannot be read."""
        if row.card_question is None:
            reference_of(row)
        named = row.card_question.question_id if row.card_question else row.question_id
        digests = _digests_of_text if isinstance(row.answer, str) else _digests
        from_card = row.card_question is not None
        return cls(named, row.usual_id, from_card, *digests(row.question, row.answer), len(row.responses))


def _digests(question: str | None, answer: Any) -> tuple[str, str | None]:
    """(digest of the reference, digest of question and reference; None without the question's text)."""
    return digest(answer)[:16], digest([question, answer])[:16] if question else None


_digests_of_text = lru_cache(maxsize=4_096)(_digests)
"""`_digests` with a cache, since the rows of a question are close together or recur in the same order."""


class RowIdentities:
    """The identity of each row of a file, in order; each row takes four bytes.

    rows: the index of each row's identity in `distinct`. distinct: identity → its index. _first: name → (identity,
    place) of the first row with that name. _first_of_text: digest of the question → (digest of the reference, place) of
    the first row with that question. conflict: the error for the first row whose reference
    or text differs from that of an earlier row with its name; it is raised only if all rows have names. doubt: a
    sentence on the first row whose reference differs from that of an earlier row with the same question. model: the
    model that all rows name; None if they do not name the same one. n_replies, n_missing, n_repeated: numbers of
    replies, of replies that are null or failed, and of rows without replies, which repeat an earlier row. are_judged:
    whether the file contains verdicts. n_failed: number of replies that count as wrong because they have no verdict.
    """

    def __init__(self) -> None:
        self.rows = array("I")
        self.distinct: dict[_RowIdentity, int] = {}
        self._first: dict[str, tuple[_RowIdentity, str]] = {}
        self._first_of_text: dict[str, tuple[str, str]] = {}
        self.conflict: UsageError | None = None
        self.doubt = ""
        self.model: str | None = None
        self.n_replies = self.n_missing = self.n_repeated = self.n_failed = 0
        self.are_judged = False

    @property
    def all_named(self) -> bool:
        """Whether all rows have names, so that no row needs to be identified by its question."""
        return all(identity.named for identity in self.distinct)

    def add(self, row: OutputRow) -> None:
        """Add the next row. Raises `UsageError` for a row whose reference answer cannot be read."""
        identity = _RowIdentity.of(row)
        n_missing = sum(response.is_missing for response in row.responses)
        self.n_missing += n_missing
        self.n_repeated += not row.responses
        self.n_replies += len(row.responses) - n_missing
        self.n_failed += sum(response.failed for response in row.responses)
        self.are_judged |= row.is_judged
        self.model = row.model if row.model == self.model or not self.rows else None
        number = self.distinct.setdefault(identity, len(self.distinct))
        self.rows.append(number)
        # A new identity has the last number. An identity before it came with an earlier row, which caused no conflict
        # that is not stored already. (The last one may recur, too; what follows then changes nothing.)
        if number < len(self.distinct) - 1:
            return
        earlier, where = self._first.setdefault(str(identity.named), (identity, row.where))
        # A card's question was found by its id; text and reference come from the card, so the row cannot contradict
        # them.
        differing = "" if identity.from_card else _difference(identity, earlier)
        if self.conflict is None and differing:
            self.conflict = UsageError(
                f"{row.where}: the question {visible(str(identity.named), 100)!r} has a different {differing} at "
                f"{where}; all samples of a question must agree"
            )
        if not self.doubt and row.question:
            first = self._first_of_text.setdefault(digest(row.question)[:16], (identity.answer_digest, row.where))
            if first[0] != identity.answer_digest:
                self.doubt = (
                    f"{row.where} repeats the question of {first[1]} with a different reference answer; they count as "
                    "two questions"
                )


def _difference(identity: _RowIdentity, earlier: _RowIdentity) -> str:
    """What differs between two rows with the same name, which should have the same question; empty if nothing does."""
    if identity.answer_digest != earlier.answer_digest:
        return "reference answer"
    return "text" if identity.content and earlier.content and identity.content != earlier.content else ""


def row_ids(seen: RowIdentities, repeats: Repeats, *, listed: bool = False) -> list[str]:
    """The question id of each row: the file's own if all rows have one, else a digest of question and reference.

    Ids in a column that the user did not name count if they identify questions: one id for each question, one question
    for each id. Sample ids do not.

    repeats: which rows with equal digests are samples of one question. Rows of further questions get the digest with
    `-2`, `-3` … at its end. listed: a benchmark lists the questions, and its reader (`Recognized`) joins further
    questions that the benchmark does not have; then the numbers of samples decide. Raises `UsageError` for two rows
    with the same id that contradict each other.
    """
    if seen.all_named:
        if seen.conflict is not None:
            raise seen.conflict
        ids = [str(identity.named) for identity in seen.distinct]
    elif _are_of_questions(seen.distinct):
        ids = [str(identity.usual) for identity in seen.distinct]
    else:
        return _ids_by_content([*seen.distinct], seen.rows, repeats, listed=listed)
    return [ids[number] for number in seen.rows]


def _ids_by_content(
    identities: Sequence[_RowIdentity], rows: Sequence[int], repeats: Repeats, *, listed: bool
) -> list[str]:
    """The question id of each row of a file without ids; repeats, listed: as in `row_ids`.

    identities: the identities in the file. rows: for each row, the index of its identity in `identities`.
    """
    n_samples: Counter[str] = Counter()  # of each content
    for index, n_rows in Counter(rows).items():
        content = identities[index].content
        if content is not None:
            n_samples[content] += n_rows * identities[index].n_responses
    # The most common number of samples per content; in a tie, the largest.
    usual = max(Counter(n_samples.values()).items(), key=lambda item: (item[1], item[0]))[0] if n_samples else 1
    n_questions = dict.fromkeys(n_samples, 1)
    if repeats == "questions":
        n_questions = dict(n_samples)
    elif repeats == "auto" and (listed or usual == 1):
        n_questions = {content: max(1, round(n / usual)) for content, n in n_samples.items()}
    n_before: Counter[str] = Counter()
    ids = []
    for position, index in enumerate(rows, 1):
        content = identities[index].content
        question_id = f"row-{position}"
        if content is not None:
            # Questions with the same content get equal shares of its samples, in order.
            ordinal = n_before[content] * n_questions[content] // n_samples[content]
            n_before[content] += identities[index].n_responses
            question_id = f"{content}-{ordinal + 1}" if ordinal else content
        ids.append(question_id)
    return ids


def _are_of_questions(identities: Iterable[_RowIdentity]) -> bool:
    """Whether each usual id identifies one question, and each question has one usual id."""
    question_of: dict[str, tuple[str, str | None]] = {}
    id_of: dict[str, str] = {}
    for identity in identities:
        if identity.usual is None:
            return False
        question = (identity.answer_digest, identity.content)
        if question_of.setdefault(identity.usual, question) != question:
            return False
        if identity.content is not None and id_of.setdefault(identity.content, identity.usual) != identity.usual:
            return False
    return True


def reference_of(row: OutputRow) -> AcceptedAnswers:
    """The reference answers in a row; empty if the row has none. Raises `UsageError` if they cannot be read."""
    if not row.states_reference:
        return AcceptedAnswers((), "text")
    if row.is_judged:  # nothing is compared with it
        return AcceptedAnswers((row.answer,) if isinstance(row.answer, str) else (), "text")
    if row.tools:
        return AcceptedAnswers((row.answer,), "calls")
    try:
        return _reference_of_text(row.answer) if isinstance(row.answer, str) else read_reference(row.answer)
    except ValueError as error:
        raise UsageError(f"{row.where}: the reference answer {error}") from error


@lru_cache(maxsize=4_096)
def _reference_of_text(text: str) -> AcceptedAnswers:
    """The reference in a text, with a cache, since all rows of a question have the same reference."""
    return read_reference(stated_in(text) or text)


MAX_INDEX = 1_000_000
"""Limit of a sample's number in a file; a number at or above it is ignored."""


class SampleNumbers:
    """The numbers given to samples during one pass over a file, by question."""

    def __init__(self) -> None:
        # The numbers in use are all below `_lowest` and those in `_ahead`, which stays empty if samples are in order.
        self._lowest: Counter[str] = Counter()
        self._ahead: dict[str, set[int]] = {}
        self._n_renumbered = 0
        self._first_renumbered = ""

    def give(self, question_id: str, stated: int | None, where: str = "") -> int:
        """Return the number of the next sample of a question. stated: its number in the file, at least 0. where: its
        location.
        """
        lowest = self._lowest[question_id]
        ahead = self._ahead.get(question_id)
        if stated is not None and stated != lowest:
            if lowest < stated < MAX_INDEX and (ahead is None or stated not in ahead):
                self._ahead.setdefault(question_id, set()).add(stated)
                return stated
            self._n_renumbered += 1
            self._first_renumbered = self._first_renumbered or where
        following = lowest + 1
        while ahead and following in ahead:
            ahead.remove(following)
            following += 1
        self._lowest[question_id] = following
        return lowest

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
