"""Reading a file of another tool as (question, sample) pairs, which the scorer takes.

Several rows may have the same question. With ids in the file, rows of one id are samples of one question. Without ids,
rows with equal question and reference belong together, and the number of samples per question is guessed: it is the
number of rows that most questions have. If a question has twice as many rows, the data repeat it (some data sets do),
and it counts as two questions. The argument `repeats` overrides the guess.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness.benchmarks.drafts import Reference, read_reference
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.choices import OutputsFormat as Format
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names, option
from harness.core.files import open_named
from harness.core.inert import visible
from harness.core.records import FROM_FILE, Message, Question, Sample, Timing, Usage
from harness.foreign import formats, layouts
from harness.foreign.formats import OutputRow, Response
from harness.foreign.numbering import SampleNumbers

FORMATS: tuple[Format, ...] = get_args(Format)
"""The names of all formats."""

Repeats = Literal["auto", "samples", "questions"]
"""The meaning of rows with equal question and reference, in a file without ids: samples of one question, or questions
of their own. auto: guessed by the number of rows that most questions have."""


_PIECE_BYTES = 1 << 20
"""Bytes that are read at a time for a checksum."""
_MAX_BUILT = 4_096
"""Questions that are kept while a file is read; beyond this number they are built again from their rows."""

Pairs = Iterable[tuple[Question, Sample]]
"""(question, one sample of it) pairs, which can be iterated any number of times."""


class Outputs:
    """The (question, sample) pairs of a file. Each iteration reads the file again, so memory holds few of them.

    checksum: of all bytes of the file, where its questions were read from them one after the other; else empty. doubt:
    a sentence on two rows that have one question and two references; empty if there are none. model: the one model that
    all rows name; None if they do not. only_ids: whether each row has its question's id and none has a text of it.
    numbers: those that the latest iteration has given to samples.
    """

    def __init__(
        self,
        path: Path,
        checksum: tables.Checksum,
        pairs: Callable[[SampleNumbers], Iterator[tuple[Question, Sample]]],
        doubt: str = "",
        model: str | None = None,
        only_ids: bool = False,
    ) -> None:
        self._path, self._checksum, self._pairs = path, checksum, pairs
        self.doubt, self.model, self.only_ids = doubt, model, only_ids
        self.numbers = SampleNumbers()

    def __iter__(self) -> Iterator[tuple[Question, Sample]]:
        self.numbers = SampleNumbers()
        return self._pairs(self.numbers)

    @property
    def digest(self) -> str:
        """The digest of the file, as `digest_of` makes it. Raises `UsageError`."""
        read = self._checksum
        return _digest_of_files([(self._path.name, read)]) if read.size else digest_of(self._path)


class _RowIdentity(NamedTuple):
    """The part of a row that tells which question it answers.

    named: the question's id in the file; None if it has none. usual: an id that may be the question's. from_card:
    whether the question is a card's. content: digest of question and reference; None if the file lacks the question's
    text.
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
            _reference(row)
        named = row.card_question.question_id if row.card_question else row.question_id
        digests = _digests_of_text if isinstance(row.answer, str) else _digests
        from_card = row.card_question is not None
        return cls(named, row.usual_id, from_card, *digests(row.question, row.answer), len(row.responses))


def _digests(question: str | None, answer: Any) -> tuple[str, str | None]:
    """(digest of the reference, digest of question and reference; None without the question's text)."""
    return digest(answer)[:16], digest([question, answer])[:16] if question else None


_digests_of_text = lru_cache(maxsize=4_096)(_digests)
"""`_digests` with a cache, since the rows of a question are close together or recur in the same order."""


def read(
    path: Path,
    *,
    response_key: str | None = None,
    answer_key: str | None = None,
    question_key: str | None = None,
    id_key: str | None = None,
    format: str | None = None,
    questions: Sequence[Question] = (),
    repeats: Repeats = "auto",
    benchmark: str | None = None,
    half_done: bool = False,
    part: Sequence[Row] | None = None,
    by: str | None = None,
) -> Outputs:
    """The (question, sample) pairs of a file, in its order. Raises `UsageError` that names file, line and field.

    The call reads the whole file for its questions; each iteration over the result reads it again, so that memory holds
    few responses at a time.

    response_key, answer_key, question_key, id_key: names of columns; they imply the format "columns". format: None
    recognises the tool. questions: those of a card, which has the reference answers if the file has none.
    repeats: the meaning of equal questions in a file without ids (`Repeats`). benchmark: name of the benchmark in
    scores; None: the file's name. half_done: leave out an unfinished last line, whose writer was killed. part: the rows
    of the file to read (`parts.split`), as if it had no others; None: all. by: the column that splits the file.
    """
    path = Path(path)
    name = benchmark or path.name.split(".")[0] or "outputs"
    keys = (response_key, answer_key, question_key, id_key)
    if format is not None and format not in FORMATS:
        raise UsageError(
            f"unknown format; there are {', '.join(FORMATS)}.{near_names(format, FORMATS)}", field="tool", value=format
        )
    if any(keys) and format not in (None, "columns"):
        raise UsageError(
            f"leave out the names of columns: they go with any file, but the format {format!r} has its own"
        )
    seen = _RowIdentities()
    checksum = tables.Checksum()
    for row in _read_rows(path, format, keys, questions, half_done=half_done, checksum=checksum, part=part, by=by):
        seen.add(row)
    if not seen.rows:
        raise UsageError(f"{visible(str(path))} holds no finished sample")
    ids = _row_ids(seen, repeats)

    def pairs(numbers: SampleNumbers) -> Iterator[tuple[Question, Sample]]:
        rows = _read_rows(path, format, keys, questions, again=True, half_done=half_done, part=part, by=by)
        return _pairs(rows, ids, name, visible(f"{path.parent}/"), numbers)

    only_ids = seen.all_named and not any(identity.content for identity in seen.distinct)
    return Outputs(path, checksum, pairs, "" if seen.all_named else seen.doubt, seen.model, only_ids)


def are_outputs(path: Path) -> bool:
    """Whether `path` can be a tool's outputs: a file, or a folder of `output-rs*.jsonl`. Contents are not checked."""
    return path.is_file() or layouts.is_numbered(path)


def digest_of(path: Path) -> str:
    """A digest that changes if the outputs change: of the names, sizes and CRC-32 of the files. Raises `UsageError`.

    It takes half the time of a SHA-256, which matters for files of hundreds of megabytes.
    """
    files = [file for _, file in layouts.numbered_files(path)] if path.is_dir() else [path]
    sums = []
    for file in files:
        try:
            with open_named(file) as stream:
                checksum = tables.Checksum()
                while piece := stream.read(_PIECE_BYTES):
                    checksum.add(piece)
            sums.append((file.name, checksum))
        except OSError as error:
            raise UsageError(f"cannot read {visible(str(file))}: {error.strerror or error}") from error
    return _digest_of_files(sums)


def _digest_of_files(sums: Iterable[tuple[str, tables.Checksum]]) -> str:
    return digest([[name, checksum.size, checksum.crc] for name, checksum in sums])


def _read_rows(
    path: Path,
    format: Format | None,
    keys: tuple[str | None, ...],
    questions: Sequence[Question],
    *,
    again: bool = False,
    half_done: bool = False,
    checksum: tables.Checksum | None = None,
    part: Sequence[Row] | None = None,
    by: str | None = None,
) -> Iterable[OutputRow]:
    """The rows of a file of outputs. format: None recognises it. Raises `UsageError`.

    keys: the columns that the user names for response, reference, question and id. again: whether this is the second
    reading; the first one may leave out the texts of the responses. half_done: leave out an unfinished last line.
    part: the only rows to read. by: the column that splits the file.
    """
    if format is None and not any(keys):
        if path.suffix == ".eval":
            format = "inspect"
        elif path.name.startswith("tmp_output_") and path.suffix == ".txt":
            format = "sglang"
        elif re.fullmatch(r"output-rs\d+\.jsonl", path.name) or layouts.is_numbered(path):
            format = "nemo_skills"
        elif layouts.is_by_number(path):
            format = "opencompass"
    # The readers of these formats open the file themselves, and never see single rows.
    if part is not None and format in ("inspect", "nemo_skills", "sgl_eval", "opencompass", "sglang"):
        raise UsageError(f"{visible(str(path))} is a file of the format {format}, which has no columns to split it by")
    if format in ("openai_batch", "sglang") and not questions:
        raise _no_questions_error(path, format)
    numbered = format in ("nemo_skills", "sgl_eval")
    if path.is_dir() and not numbered:
        raise UsageError(f"{visible(str(path))} is a folder; expected a file of outputs")
    if format == "inspect":
        return formats.inspect(path)
    if numbered:
        return layouts.nemo_skills(path, again=again)
    if format == "opencompass":
        return layouts.opencompass(path)
    if format == "sglang":
        return formats.sglang(path, questions)
    unread = () if again else formats.response_columns(*keys)
    rows = (
        iter(part)
        if part is not None
        else tables.stream(path, responses=True, again=again, unread=unread, half_done=half_done, checksum=checksum)
    )
    first = next(rows)
    format = format or ("columns" if any(keys) else formats.recognise(first))
    rows = chain([first], rows)
    if format == "openai_batch":
        if not questions:
            raise _no_questions_error(path, format)
        return formats.openai_batch(rows, questions)
    if format == "columns":
        return formats.by_columns(rows, *keys, questions=questions, by=by)
    if format == "evalscope":
        return layouts.evalscope(rows)
    reader = {"llmeval": formats.llmeval, "limo": formats.limo, "lm_eval": formats.lm_eval}[format]
    return reader(rows)


def _no_questions_error(path: Path, format: str) -> UsageError:
    return UsageError(
        f"{visible(str(path))} is a file of the format {format}, which holds no reference answers: name its benchmark "
        f"with {option('benchmark')}"
    )


def _pairs(
    rows: Iterable[OutputRow], ids: Iterable[str], name: str, folder: str, numbers: SampleNumbers
) -> Iterator[tuple[Question, Sample]]:
    """Yield (question, sample) for each response in the rows. ids: the question id of each row. folder: of the file,
    which is left out of the place that a sample names. numbers: get the samples' numbers.
    """
    built: dict[str, Question] = {}
    for row, question_id in zip(rows, ids, strict=True):
        question = built.get(question_id)
        if question is None:
            if len(built) == _MAX_BUILT:
                built.clear()
            question = built[question_id] = row.card_question or _question(row, name, question_id)
        for response in row.responses:
            index = numbers.give(question_id, response.index, row.where)
            yield question, _sample(question, index, response, row.where.removeprefix(folder))


class _RowIdentities:
    """The identity of each row of a file, in order; a row takes four bytes.

    rows: the number of each row's identity in `distinct`. _first: name → (identity, place) of the first row with that
    name; _first_of_text: the same by the digest of the question. conflict: the error for the first row whose reference
    or text differs from that of an earlier row with its name; it is raised only if all rows have names. doubt: a
    sentence on the first row whose reference differs from that of an earlier row with its question. model: the one that
    all rows name; None if they do not.
    """

    def __init__(self) -> None:
        self.rows = array("I")
        self.distinct: dict[_RowIdentity, int] = {}
        self._first: dict[str, tuple[_RowIdentity, str]] = {}
        self._first_of_text: dict[str, tuple[str, str]] = {}
        self.conflict: UsageError | None = None
        self.doubt = ""
        self.model: str | None = None

    @property
    def all_named(self) -> bool:
        """Whether all rows have names, so that no row is known by its question."""
        return all(identity.named for identity in self.distinct)

    def add(self, row: OutputRow) -> None:
        """Add the next row. Raises `UsageError` for a row whose reference answer cannot be read."""
        identity = _RowIdentity.of(row)
        self.model = row.model if row.model == self.model or not self.rows else None
        number = self.distinct.setdefault(identity, len(self.distinct))
        self.rows.append(number)
        if number < len(self.distinct) - 1:
            return  # An equal row came before, and caused no conflict that is not stored already.
        earlier, where = self._first.setdefault(str(identity.named), (identity, row.where))
        if self.conflict is None and not identity.from_card and (differing := _difference(identity, earlier)):
            self.conflict = UsageError(
                f"{row.where}: the question {visible(str(identity.named), 100)!r} has another {differing} than at "
                f"{where}; samples of one question must agree"
            )
        if not self.doubt and row.question:
            first = self._first_of_text.setdefault(digest(row.question)[:16], (identity.answer_digest, row.where))
            if first[0] != identity.answer_digest:
                self.doubt = (
                    f"{row.where} has the question of {first[1]} with another reference answer: they count as two "
                    "questions"
                )


def _difference(identity: _RowIdentity, earlier: _RowIdentity) -> str:
    """What differs in two rows of one name, which should have one question; empty if nothing does."""
    if identity.answer_digest != earlier.answer_digest:
        return "reference answer"
    return "text" if identity.content and earlier.content and identity.content != earlier.content else ""


class _RowIds:
    """The question id of each row of a file, in order. ids: each once. numbers: of each row, its id's number there."""

    def __init__(self, ids: list[str], numbers: array[int]) -> None:
        self._ids, self._numbers = ids, numbers

    def __iter__(self) -> Iterator[str]:
        return map(self._ids.__getitem__, self._numbers)


def _row_ids(seen: _RowIdentities, repeats: Repeats) -> _RowIds:
    """The question id of each row: the file's own if all rows have one, else a digest of question and reference.

    Ids in a column that the user did not name count if they are the questions': one id for each question, one question
    for each id. Ids of samples are not.

    repeats: which rows with equal digest are samples of one question. Rows of further questions get the digest with
    `-2`, `-3` … at its end.
    """
    if seen.all_named:
        if seen.conflict is not None:
            raise seen.conflict
        return _RowIds([str(identity.named) for identity in seen.distinct], seen.rows)
    if _are_of_questions(seen.distinct):
        return _RowIds([str(identity.usual) for identity in seen.distinct], seen.rows)
    sizes: Counter[str] = Counter()
    times = Counter(seen.rows)
    for identity, number in seen.distinct.items():
        if identity.content:
            sizes[identity.content] += times[number] * identity.n_responses
    # The number of samples that most questions have; of equally frequent numbers the largest.
    usual = max(Counter(sizes.values()).items(), key=lambda item: (item[1], item[0]))[0] if sizes else 1
    before: Counter[str] = Counter()
    identities = [*seen.distinct]
    ids: dict[str, int] = {}
    numbers = array("I")
    for position, number in enumerate(seen.rows, 1):
        identity = identities[number]
        key = identity.content
        question_id = f"row-{position}"
        if key is not None:
            n_questions = {"samples": 1, "questions": sizes[key], "auto": max(1, round(sizes[key] / usual))}[repeats]
            # Which of the equal questions this row belongs to, from 1: they get equal shares of the rows, in order.
            ordinal = before[key] * n_questions // sizes[key] + 1
            before[key] += identity.n_responses
            question_id = key if ordinal == 1 else f"{key}-{ordinal}"
        numbers.append(ids.setdefault(question_id, len(ids)))
    return _RowIds([*ids], numbers)


def _are_of_questions(identities: Iterable[_RowIdentity]) -> bool:
    """Whether each usual id stands for one question, and each question has one usual id."""
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


def _question(row: OutputRow, name: str, question_id: str) -> Question:
    """The question that a row states itself, without a card. name: the benchmark's name, for scores."""
    accepted, kind = _reference(row)
    return Question(
        benchmark=name,
        question_id=question_id,
        messages=(Message("user", row.question),) if row.question else (),
        references=accepted,
        kind=kind,
        metadata=row.metadata,
        row_digest=digest([row.question, row.answer]),
        prompt_digest=digest(row.question),
    )


def _reference(row: OutputRow) -> Reference:
    if not row.states_reference:
        return Reference((), "text")
    try:
        return _reference_of_text(row.answer) if isinstance(row.answer, str) else read_reference(row.answer)
    except ValueError as error:
        raise UsageError(f"{row.where}: the reference answer {error}") from error


_reference_of_text = lru_cache(maxsize=4_096)(read_reference)


def _sample(question: Question, index: int, response: Response, where: str) -> Sample:
    """A response of the file as a sample of this question. where: its file and line."""
    return Sample(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        text=response.text,
        reasoning=response.reasoning,
        finish_reason=response.finish_reason,
        usage=Usage(prompt_tokens=response.prompt_tokens, completion_tokens=response.completion_tokens),
        timing=Timing(started=0.0, total=0.0),
        endpoint=FROM_FILE + where,
        prompt_digest=question.prompt_digest,
    )
