"""Outputs of other tools as input of the scorer: pairs of the question that was asked and one sample of it.

A question that stands in several rows: where the tool names its questions (an id), they are samples of one question.
Where it does not, rows with equal question and reference are taken together, and how often most questions occur says
how many samples a question has: a set that truly repeats a question (real ones do) has it in twice as many rows, and
then it is two questions. `repeats` overrides the guess.
"""

from __future__ import annotations

import re
import zlib
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
from harness.core.records import Message, Question, Sample, Timing, Usage
from harness.foreign import formats, layouts
from harness.foreign.formats import OutputRow, Response

FORMATS: tuple[Format, ...] = get_args(Format)

Repeats = Literal["auto", "samples", "questions"]
"""The meaning of rows with equal question and reference: see the module."""


_PIECE_BYTES = 1 << 20
"""Bytes that are read at a time for a checksum."""

MAX_INDEX = 1_000_000
"""Sample numbers in a file from this one on are ignored."""


Pairs = Iterable[tuple[Question, Sample]]
"""Questions with one sample of each; may be iterated any number of times."""


class Outputs:
    """The (question, sample) pairs of a file, as often as they are gone through; each time the file is read."""

    def __init__(self, pairs: Callable[[], Iterator[tuple[Question, Sample]]]) -> None:
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[Question, Sample]]:
        return self._pairs()


class _RowIdentity(NamedTuple):
    """What identifies the question of a row, without its responses. from_card: a card has the question."""

    where: str
    named: str | None
    from_card: bool
    answer_digest: str
    content: str | None
    n_responses: int

    @classmethod
    def of(cls, row: OutputRow) -> _RowIdentity:
        """The essence of a row. Raises `UsageError` for a row whose reference answer is none."""
        if row.card_question is None:
            _reference(row)
        named = row.card_question.question_id if row.card_question else row.question_id
        digests = _digests_of_text if isinstance(row.answer, str) else _digests
        from_card = row.card_question is not None
        return cls(row.where, named, from_card, *digests(row.question, row.answer), len(row.responses))


def _digests(question: str | None, answer: Any) -> tuple[str, str | None]:
    """(of the reference, of the question with its reference where it is known); what the samples of one share."""
    return digest(answer), digest([question, answer])[:16] if question else None


_digests_of_text = lru_cache(maxsize=4_096)(_digests)
"""Cached, since rows of one question stand close together or come again in the same order."""


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
) -> Outputs:
    """(question, sample) pairs in the order of the file. Raises `UsageError`: one sentence with file, line and field.

    The file is read through once for its questions, and again for each time that the pairs are gone through, so that no
    more than a few responses are held.

    Keys name columns and imply the format "columns"; without keys and format the tool is recognised. `questions`:
    those of a card, for formats that carry no reference answers (openai_batch, sglang). `benchmark`: name of the
    set in the scores; default the file's. `half_done`: a last line that was not written to its end is left out.
    """
    path = Path(path)
    name = benchmark or path.name.split(".")[0] or "outputs"
    keys = (response_key, answer_key, question_key, id_key)
    if format is not None and format not in FORMATS:
        raise UsageError(
            f"unknown format; there are {', '.join(FORMATS)}.{near_names(format, FORMATS)}", field="tool", value=format
        )
    if any(keys) and format not in (None, "columns"):
        raise UsageError(f"column names go with any file, not with the format {format!r}, which knows its own")
    seen = [_RowIdentity.of(row) for row in _asked(path, format, keys, questions, half_done=half_done)]
    if not seen:
        raise UsageError(f"{visible(str(path))} holds no finished sample")
    identities = _identities(seen, repeats)

    def pairs() -> Iterator[tuple[Question, Sample]]:
        return _pairs(_asked(path, format, keys, questions, again=True, half_done=half_done), identities, name)

    return Outputs(pairs)


def are_outputs(path: Path) -> bool:
    """Whether `path` is a file, or a folder of files that belong together; what is in them is not looked at."""
    return path.is_file() or layouts.is_numbered(path)


def digest_of(path: Path) -> str:
    """Of the names, sizes and CRC-32 of the files that `read` reads: tells a change, half as dear as a SHA-256 of
    hundreds of megabytes. Raises `UsageError`."""
    files = [file for _, file in layouts.numbered(path)] if path.is_dir() else [path]
    parts = []
    for file in files:
        try:
            with open_named(file) as stream:
                size = checksum = 0
                while piece := stream.read(_PIECE_BYTES):
                    size, checksum = size + len(piece), zlib.crc32(piece, checksum)
            parts.append([file.name, size, checksum])
        except OSError as error:
            raise UsageError(f"cannot read {visible(str(file))}: {error.strerror or error}") from error
    return digest(parts)


def recognise(row: Row) -> Format:
    """The tool that wrote a row, by its columns; "columns" when it is none of the known."""
    names = row.value.keys()
    if {"doc_id", "doc", "resps", "target"} <= names:
        return "lm_eval"
    if {"custom_id", "response"} <= names and isinstance(row.value["response"], dict | None):
        return "openai_batch"
    if "generated_responses" in names:
        return "limo"
    if {"prompt", "gen", "answer"} <= names:
        return "llmeval"
    if {"index", "target", "sample_score"} <= names:
        return "evalscope"
    return "columns"


def _asked(
    path: Path,
    format: Format | None,
    keys: tuple[str | None, ...],
    questions: Sequence[Question],
    *,
    again: bool = False,
    half_done: bool = False,
) -> Iterable[OutputRow]:
    if format is None and not any(keys):
        if path.suffix == ".eval":
            format = "inspect"
        elif path.name.startswith("tmp_output_") and path.suffix == ".txt":
            format = "sglang"
        elif re.fullmatch(r"output-rs\d+\.jsonl", path.name) or layouts.is_numbered(path):
            format = "nemo_skills"
        elif layouts.is_by_number(path):
            format = "opencompass"
    if format in ("openai_batch", "sglang") and not questions:
        raise _need_questions(path, format)
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
    rows = tables.stream(path, responses=True, again=again, unread=unread, half_done=half_done)
    first = next(rows)
    format = format or ("columns" if any(keys) else recognise(first))
    rows = chain([first], rows)
    if format == "openai_batch":
        if not questions:
            raise _need_questions(path, format)
        return formats.openai_batch(rows, questions)
    if format == "columns":
        return formats.by_columns(rows, *keys)
    if format == "evalscope":
        return layouts.evalscope(rows)
    reader = {"llmeval": formats.llmeval, "limo": formats.limo, "lm_eval": formats.lm_eval}[format]
    return reader(rows)


def _need_questions(path: Path, format: str) -> UsageError:
    return UsageError(
        f"{visible(str(path))} is a file of the format {format}, which holds no reference answers: name its benchmark "
        f"with {option('benchmark')}"
    )


def _pairs(rows: Iterable[OutputRow], identities: Sequence[str], name: str) -> Iterator[tuple[Question, Sample]]:
    built: dict[str, Question] = {}
    next_index: Counter[str] = Counter()
    for row, question_id in zip(rows, identities, strict=True):
        question = built.get(question_id)
        if question is None:
            question = built[question_id] = row.card_question or _question(row, name, question_id)
        for response in row.responses:
            index = next_index[question_id]
            if response.index is not None and index <= response.index < MAX_INDEX:  # some before it are missing there
                index = response.index
            next_index[question_id] = index + 1
            yield question, _sample(question, index, response)


def _identities(seen: Sequence[_RowIdentity], repeats: Repeats) -> list[str]:
    """The question id of each row. See the module for rows without an id of their own."""
    names = [row.named for row in seen]
    if all(names):
        _check_consistent(seen)
        return [str(i) for i in names]
    sizes: Counter[str] = Counter()
    for row in seen:
        if row.content:
            sizes[row.content] += row.n_responses
    usual = max(Counter(sizes.values()).items(), key=lambda item: (item[1], item[0]))[0] if sizes else 1
    before: Counter[str] = Counter()
    result = []
    for number, row in enumerate(seen, 1):
        key = row.content
        if key is None:
            result.append(f"row-{number}")
            continue
        questions = {"samples": 1, "questions": sizes[key], "auto": max(1, round(sizes[key] / usual))}[repeats]
        ordinal = before[key] * questions // sizes[key] + 1
        before[key] += row.n_responses
        result.append(key if ordinal == 1 else f"{key}-{ordinal}")
    return result


def _check_consistent(seen: Sequence[_RowIdentity]) -> None:
    first: dict[str, _RowIdentity] = {}
    for row in seen:
        earlier = first.setdefault(str(row.named), row)
        if not row.from_card and row.answer_digest != earlier.answer_digest:
            raise UsageError(
                f"{row.where}: the question {visible(str(row.named), 100)!r} has another reference answer than at "
                f"{earlier.where}; samples of one question must agree"
            )


def _question(row: OutputRow, name: str, question_id: str) -> Question:
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
    try:
        return _reference_of_text(row.answer) if isinstance(row.answer, str) else read_reference(row.answer)
    except ValueError as error:
        raise UsageError(f"{row.where}: the reference answer {error}") from error


_reference_of_text = lru_cache(maxsize=4_096)(read_reference)


def _sample(question: Question, index: int, response: Response) -> Sample:
    return Sample(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        text=response.text,
        reasoning=response.reasoning,
        finish_reason=response.finish_reason,
        usage=Usage(prompt_tokens=response.prompt_tokens, completion_tokens=response.completion_tokens),
        timing=Timing(started=0.0, total=0.0),
        endpoint="file",
        prompt_digest=question.prompt_digest,
    )
