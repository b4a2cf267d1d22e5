"""Reads another tool's file as (question, sample) pairs for the scorer.

Several rows may have the same question; `row_ids` decides which rows are samples of one question.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from harness.benchmarks import column_names
from harness.benchmarks.column_names import ANSWER_COLUMNS, ID_COLUMNS, QUESTION_COLUMNS
from harness.benchmarks.sources.tables import Row
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.files import open_named
from harness.core.literals import OutputsFormat as Format
from harness.core.number_text import count_noun, is_are
from harness.core.records import FROM_FILE, GradeRules, Message, Question, Sample, Timing, Usage, metadata_of
from harness.core.sanitize import visible
from harness.foreign import formats, layouts, rows, verdicts
from harness.foreign.formats import GOLD_COLUMNS, LAYOUTS, RESPONSE_COLUMNS, Layout
from harness.foreign.row_ids import MAX_INDEX, RowIdentities, SampleNumbers, reference_of
from harness.foreign.row_values import Paths, missing_error, value_at
from harness.foreign.rows import GRADED, OutputRow, ToolReply
from harness.foreign.verdicts import GivenVerdicts
from harness.grading.verifier import GIVEN

FORMATS: tuple[Format, ...] = get_args(Format)
"""The names of all formats."""

_PIECE_BYTES = 1 << 20
"""Number of bytes read at a time for a checksum."""
_MEANS = frozenset(("accuracy", "acc", "mean", "score"))
"""Names of fields with the mean verdict in a summary."""
_MAX_KEPT = 200_000
"""Number of rows with nothing but verdicts that are kept in memory, so that the file is read only once."""
_MAX_SUMMARIES = 3
"""Number of rows in a file that may sum up the others."""
_MAX_BUILT = 4_096
"""Number of questions kept in memory while a file is read; the others are rebuilt from their rows when needed."""

Pairs = Iterable[tuple[Question, Sample | None]]
"""(question, one sample of it) pairs, which can be iterated any number of times; None: the sample is missing from the
file.
"""


@dataclass
class Outputs:
    """The (question, sample) pairs of a file. Each iteration reads the file again, so only a few of them are in memory
    at a time.

    digest: the file's digest before it was read (`digest_of`). read: begins an iteration. doubts: sentences on rows
    whose question is uncertain. notes: sentences on samples that are missing from the file. model: the model that all
    rows name; None if they do not name the same one. only_ids: whether each row has its question's id and no row has a
    question's text. are_judged: whether the file contains verdicts. numbers: the numbers that the latest iteration gave
    to samples.
    """

    digest: str
    read: Callable[[SampleNumbers], Iterator[tuple[Question, Sample | None]]]
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    model: str | None = None
    only_ids: bool = False
    are_judged: bool = False
    numbers: SampleNumbers = field(default_factory=SampleNumbers, init=False)

    def __iter__(self) -> Iterator[tuple[Question, Sample | None]]:
        self.numbers = SampleNumbers()
        return self.read(self.numbers)


def read(
    path: Path,
    *,
    judged: GivenVerdicts = GRADED,
    format: str | None = None,
    questions: Sequence[Question] = (),
    half_done: bool = False,
    **columns: str | None,
) -> Outputs:
    """The (question, sample) pairs of a file, in its order. Raises a `UsageError` that names the file, line and field.

    The call reads the whole file for its questions; each iteration over the result reads it again, so that only a few
    responses are in memory at a time. Verdicts without replies are kept.

    judged: whether the file's own verdicts are used. format: if None, the tool is recognized. questions: a card's
    questions, with the reference answers if the file has none. half_done: leave out an unfinished last line (its writer
    was killed). columns: names of columns (`Keys`), which imply the format "columns".
    """
    path = Path(path)
    name = path.name.split(".")[0] or "outputs"
    keys = Keys(**columns)
    if format is not None and format not in FORMATS:
        raise UsageError(
            f"unknown format; expected one of {', '.join(FORMATS)}.{near_names(format, FORMATS)}",
            field="tool",
            value=format,
        )
    if any(keys) and format not in (None, "columns"):
        raise UsageError(f"omit the column names: the format {format!r} has fixed columns")
    seen = RowIdentities()
    # Before the rows, because anything that a writer adds in the meantime must change the digest for the next reading.
    file_digest = digest_of(path) if are_outputs(path) else ""
    skipped, kept, given = list[Row](), list[OutputRow](), list[float | None]()
    for row in _read_rows(path, format, keys, judged, questions, half_done=half_done, skipped=skipped):
        seen.add(row)
        is_short = row.is_judged and not row.question and all(reply.text is None for reply in row.responses)
        kept += [row] if is_short and len(kept) < _MAX_KEPT else []
        given += [None if reply.verdict is msgspec.UNSET else reply.verdict for reply in row.responses]
    _check_summaries(skipped, len(seen.rows))
    if judged != GRADED and not seen.are_judged:
        field = "errors" if judged.key is None else "verdict_key"
        raise UsageError(
            "it applies only to files with verdicts, but the replies in this file have to be graded", field=field
        )
    if not seen.n_replies:
        raise UsageError(f"{visible(str(path))} contains no finished sample")
    ids = seen.ids(listed=bool(questions))

    def pairs(numbers: SampleNumbers) -> Iterator[tuple[Question, Sample | None]]:
        are_kept = len(kept) == len(seen.rows)
        again = kept if are_kept else _read_rows(path, format, keys, judged, questions, half_done=half_done)
        return _pairs(again, ids, name, visible(f"{path.parent}/"), numbers)

    only_ids = seen.are_named and not seen.have_texts
    doubts = (seen.doubt,) if seen.doubt and not seen.are_named else ()
    notes = (*_notes(path, seen, judged, skipped), *(_contradictions(skipped[0], given) if len(skipped) == 1 else ()))
    return Outputs(file_digest, pairs, doubts, notes, seen.model, only_ids, seen.are_judged)


def _notes(path: Path, seen: RowIdentities, judged: GivenVerdicts, skipped: Sequence[Row] = ()) -> Iterator[str]:
    """Sentences on what is missing from the outputs and what counts in its place."""
    yield from layouts.missing_parts(path)
    if seen.n_missing:
        lost = f"{count_noun(seen.n_missing, 'sample')} in the file {is_are(seen.n_missing)} null or failed"
        remedy = "; `--errors wrong` counts them as wrong" if seen.are_judged else ""
        yield f"{lost} and {'counts' if seen.n_missing == 1 else 'count'} as missing, not wrong{remedy}"
    if seen.n_failed:
        failed = f"{count_noun(seen.n_failed, 'sample')} without a verdict"
        remedy = "" if judged.errors else ", as the suite counts them; `--errors missing` counts them as missing"
        yield f"{failed} {'counts' if seen.n_failed == 1 else 'count'} as wrong{remedy}"
    if skipped:
        yield f"{', '.join(row.where for row in skipped)} is skipped as a summary of other rows"
    if judged.key is not None and verdicts.are_tries(judged.key):
        yield f"each list in {visible(judged.key, 60)} has the tries of one attempt; one success is enough"
    if seen.are_judged:
        yield "the verdicts come from the file; nothing was graded here"
    if seen.n_repeated:
        repeat = "repeats" if seen.n_repeated == 1 else "repeat"
        yield f"{count_noun(seen.n_repeated, 'row')} in the file {repeat} an earlier row; only the first one is used"


def are_outputs(path: Path) -> bool:
    """Whether `path` can be a tool's outputs: a file, a folder of `output-rs*.jsonl`, or of trials of Harbor. Contents
    are not checked.
    """
    return path.is_file() or (path.is_dir() and layouts.format_of(path) is not None)


def digest_of(path: Path) -> str:
    """A digest of the files' names, sizes and CRC-32, which changes if the outputs change. Raises `UsageError`.

    It takes half the time of a SHA-256, which matters for files of hundreds of megabytes.
    """
    sums = []
    for file in layouts.files_of(path):
        try:
            with open_named(file) as stream:
                size = crc = 0
                while piece := stream.read(_PIECE_BYTES):
                    size, crc = size + len(piece), zlib.crc32(piece, crc)
            sums.append([file.name if file.parent in (path, path.parent) else str(file.relative_to(path)), size, crc])
        except OSError as error:
            raise UsageError(f"cannot read {visible(str(file))}: {error.strerror or error}") from error
    return digest(sums)


def _read_rows(
    path: Path,
    format: Format | None,
    keys: Keys,
    judged: GivenVerdicts,
    questions: Sequence[Question],
    *,
    half_done: bool = False,
    skipped: list[Row] | None = None,
) -> Iterable[OutputRow]:
    """The rows of a file of outputs. format: None recognizes it. skipped: receives the rows that sum others up. Raises
    `UsageError`.

    keys: the columns that the user names. judged: whether the file's own verdicts are used. half_done: leave out an
    unfinished last line.
    """
    if format is None and judged.key is not None and verdicts.form_of(path, judged.key) == "verdicts":
        format = "verdicts"
    format = format or ("columns" if any(keys) else layouts.format_of(path))
    if format in verdicts.FORMATS:
        listed = verdicts.rows(path, format, judged.key, keys.id_key)
        rule = judged.errors or verdicts.errors_of(judged.key or "", LAYOUTS[format].errors)
        return rows.read(listed, LAYOUTS[format]._replace(errors=rule), judged._replace(key="verdict"))
    listed = layouts.rows(path, format, half_done=half_done)
    if judged.key is not None and format in (None, "columns"):
        listed = _without_summaries(listed, judged.key.partition(",")[0], keys.id_key, skipped)
    if format is None or format == "columns":
        try:
            first = next(listed)
        except StopIteration:  # every row was skipped
            raise missing_error((skipped or [Row("", {})])[0], judged.key, "the verdict", "verdict_key") from None
        format, listed = format or formats.recognize(first), chain([first], listed)
    if format in ("openai_batch", "sglang"):
        if not questions:
            raise UsageError(
                f"{visible(str(path))} is in the format {format}, which contains no reference answers; specify its "
                "benchmark with `benchmark`"
            )
        return rows.of_batch(listed, questions) if format == "openai_batch" else rows.of_states(listed, questions)
    if format != "columns":
        return rows.read(listed, LAYOUTS[format], judged)
    asks_calls = "tool_calls" in first.value or value_at(first, formats.CALLS.answer) is None
    if judged.key is None and first.value.get("tools") and asks_calls:
        layout = formats.CALLS
    else:
        layout = layout_of(first, keys, judged, in_benchmark=bool(questions))
    return rows.read(listed, layout, judged, in_benchmark=bool(questions))


def _without_summaries(listed: Iterator[Row], key: str, id_key: str | None, skipped: list[Row] | None) -> Iterator[Row]:
    """The rows without those that have neither an id nor a verdict, or the id of a total. Raises `UsageError` if these
    are too many.
    """
    found = [] if skipped is None else skipped
    ids = (id_key,) if id_key else verdicts.ID_COLUMNS
    columns = (key, *ids, *QUESTION_COLUMNS)
    for row in listed:
        is_unnamed = key not in row.value and column_names.find(columns, row.value) is None and "error" not in row.value
        if is_unnamed or any(str(row.value.get(column)).lower() in ("total", "overall", "average") for column in ids):
            found.append(row)
            if len(found) > _MAX_SUMMARIES:
                raise missing_error(found[0], key, "the verdict", "verdict_key")
        else:
            yield row


def _check_summaries(summaries: Sequence[Row], n_rows: int) -> None:
    """Raise `UsageError` if a summary states more attempts than the file lists: BFCL lists only those that failed."""
    for row in summaries:
        for name, count in row.value.items():
            if "total" in name and isinstance(count, int) and count > n_rows:
                raise UsageError(
                    f"{row.where}: {visible(name, 60)} is {count}, but the file lists {count_noun(n_rows, 'attempt')}: "
                    "their verdicts are not those of all attempts"
                )


def _contradictions(summary: Row, given: Sequence[float | None]) -> Iterator[str]:
    """Sentences on numbers of the only summary that differ from the mean verdict by more than rounding, as a fraction
    or in percent, with and without the attempts that have no verdict. given: the verdict of each attempt.
    """
    judged = [share for share in given if share is not None]
    means = [sum(judged) / n for n in {len(judged), len(given)} if n]
    for name in sorted(_MEANS & summary.value.keys()):
        stated = summary.value[name]
        if means and isinstance(stated, int | float) and stated is not True and 0 <= stated <= 100:
            rounding = 1e-9 + 0.5 * 10.0 ** -len(str(stated).partition(".")[2])
            if all(abs(scale * mean - stated) > rounding for mean in means for scale in (1, 100)):
                yield f"{summary.where}: {name} is {stated}, but the mean of the file's verdicts is {means[0]:.4g}"


def _pairs(
    listed: Iterable[OutputRow], ids: Iterable[str], name: str, folder: str, numbers: SampleNumbers
) -> Iterator[tuple[Question, Sample | None]]:
    """Yield (question, sample) for each response in the rows; the sample of a missing response is None.

    ids: the question id of each row. folder: the file's folder, which is omitted from the location that a sample
    states. numbers: receives the samples' numbers.
    """
    built: dict[str, Question] = {}
    for row, question_id in zip(listed, ids, strict=True):
        question = built.get(question_id)
        if question is None:
            if len(built) == _MAX_BUILT:
                built.clear()
            question = built[question_id] = row.card_question or _question(row, name, question_id)
        for response in row.responses:
            if response.is_missing:
                yield question, None
                continue
            index = numbers.give(question_id, response.index, row.where)
            if row.is_judged and response.index not in (None, index):
                raise UsageError(
                    f"{row.where}: sample {response.index} of {visible(question_id, 100)!r} has the same number "
                    f"as an earlier sample, or its number is {MAX_INDEX:,} or higher"
                )
            yield question, _sample(question, index, response, row.where.removeprefix(folder))


def _question(row: OutputRow, name: str, question_id: str) -> Question:
    """The question that a row states itself, without a card. name: the benchmark's name, for scores."""
    accepted, kind = reference_of(row)
    known_by = [row.question, row.answer] if row.question or not row.is_judged else question_id
    return Question(
        benchmark=name,
        question_id=question_id,
        messages=(Message("user", row.question),) if row.question else (),
        references=accepted,
        kind=kind,
        metadata=metadata_of(row.metadata),
        tools=row.tools or msgspec.UNSET,
        rules=GradeRules(grader=GIVEN) if row.is_judged else GradeRules(),
        row_digest=digest(known_by),
        prompt_digest=digest(row.question),
    )


def _sample(question: Question, index: int, response: ToolReply, where: str) -> Sample:
    """A response of the file as a sample of this question. where: its file and line."""
    return Sample(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        text=response.text,
        calls=response.calls,
        reasoning=response.reasoning,
        finish_reason=response.finish_reason,
        usage=Usage(prompt_tokens=response.prompt_tokens, completion_tokens=response.completion_tokens),
        timing=Timing(started=0.0, total=response.seconds),
        endpoint=FROM_FILE + where,
        verdict=response.verdict,
        prompt_digest=question.prompt_digest,
    )


# ---- the layout of any file, by the names of its columns


class Keys(NamedTuple):
    """The user's names for the columns of the response, reference, question, question id and sample number; None: the
    usual names.
    """

    response_key: str | None = None
    answer_key: str | None = None
    question_key: str | None = None
    id_key: str | None = None
    sample_key: str | None = None


def layout_of(first: Row, keys: Keys, judged: GivenVerdicts = GRADED, *, in_benchmark: bool = False) -> Layout:
    """The layout of a file with this first row. Raises `UsageError` if a column is missing; with verdicts, only if the
    user named it.

    Each column has one use: a column that the user names is never guessed for another use, nor is the response column
    taken for the reference. in_benchmark: whether a benchmark has the references, so that the file may omit them.
    """
    named = frozenset(column_names.find((name,), first.value) for name in (*keys, judged.key) if name is not None)

    def find(field: str, role: str, usual: Iterable[str] = (), taken: Paths = ()) -> Paths:
        """The column that the user names, or the first of the usual names that the row has."""
        free = [name for name in first.value if name not in named and name not in taken]
        key: str | None = getattr(keys, field)
        column = column_names.find(usual, free) if key is None else column_names.find((key,), first.value)
        if column is None and key is not None:
            raise missing_error(first, key, role, field)
        return () if column is None else (column,)

    response = find("response_key", "the response", RESPONSE_COLUMNS)
    if judged.key is not None and response and isinstance(first.value[response[0]], dict):
        response = ()  # An object is not text that can be shown next to the verdict.
    answer = find("answer_key", "the reference", (*GOLD_COLUMNS, *ANSWER_COLUMNS), response)
    if judged.key is None and not response:
        raise missing_error(first, None, "the response", "response_key", answer if in_benchmark else ())
    if judged.key is None and not (answer or in_benchmark):
        raise missing_error(first, None, "the reference", "answer_key")
    return Layout(
        "this file",
        (*response, *answer) if judged.key is None else (),
        reply=response,
        answer=answer,
        question=find("question_key", "the question", QUESTION_COLUMNS),
        question_id=find("id_key", "the id", ID_COLUMNS if judged.key is None else verdicts.ID_COLUMNS),
        sample=find("sample_key", "the sample's number"),
        id_is_certain=keys.id_key is not None or judged.key is not None,
        named=named,
    )
