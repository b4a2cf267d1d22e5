"""Outputs of other tools as input of the scorer: pairs of the question that was asked and one sample of it.

A question that stands in several rows: where the tool names its questions (an id), they are samples of one question.
Where it does not, rows with equal question and reference are taken together, and how often most questions occur says
how many samples a question has: a set that truly repeats a question (real ones do) has it in twice as many rows, and
then it is two questions. `repeats` overrides the guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from harness.benchmarks.references import read_reference
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.checksums import digest
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.records import Message, Question, Sample, Timing, Usage
from harness.core.wording import option
from harness.foreign import formats
from harness.foreign.formats import Asked, Response

Format = Literal["columns", "llmeval", "limo", "lm_eval", "inspect", "openai_batch", "sglang"]
FORMATS: tuple[Format, ...] = ("columns", "llmeval", "limo", "lm_eval", "inspect", "openai_batch", "sglang")

Repeats = Literal["auto", "samples", "questions"]
"""What rows with equal question and reference are: see the module."""


def read(
    path: Path,
    *,
    response_key: str | None = None,
    answer_key: str | None = None,
    question_key: str | None = None,
    id_key: str | None = None,
    format: Format | None = None,
    questions: Sequence[Question] = (),
    repeats: Repeats = "auto",
    benchmark: str | None = None,
) -> list[tuple[Question, Sample]]:
    """(question, sample) pairs in the order of the file. Raises `UsageError`: one sentence with file, line and field.

    Keys name columns and imply the format "columns"; without keys and format the tool is recognised. `questions`:
    those of a card, for formats that carry no reference answers (openai_batch, sglang). `benchmark`: name of the
    set in the scores; default the file's.
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
    asked = list(_asked(path, format, keys, questions))
    if not asked:
        raise UsageError(f"{visible(str(path))} holds no finished sample")
    return _pairs(asked, name, repeats)


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
    return "columns"


def _asked(
    path: Path, format: Format | None, keys: tuple[str | None, ...], questions: Sequence[Question]
) -> Iterable[Asked]:
    if format is None and not any(keys):
        if path.suffix == ".eval":
            format = "inspect"
        elif path.name.startswith("tmp_output_") and path.suffix == ".txt":
            format = "sglang"
    if format in ("openai_batch", "sglang") and not questions:
        raise _need_questions(path, format)
    if format == "inspect":
        return formats.inspect(path)
    if format == "sglang":
        return formats.sglang(path, questions)
    rows = tables.read(path, responses=True)
    format = format or ("columns" if any(keys) else recognise(rows[0]))
    if format == "openai_batch":
        if not questions:
            raise _need_questions(path, format)
        return formats.openai_batch(rows, questions)
    if format == "columns":
        return formats.by_columns(rows, *keys)
    reader = {"llmeval": formats.llmeval, "limo": formats.limo, "lm_eval": formats.lm_eval}[format]
    return reader(rows)


def _need_questions(path: Path, format: str) -> UsageError:
    return UsageError(
        f"{visible(str(path))} is a file of the format {format}, which holds no reference answers: name its benchmark "
        f"with {option('benchmark')}"
    )


def _pairs(asked: list[Asked], name: str, repeats: Repeats) -> list[tuple[Question, Sample]]:
    identities = _identities(asked, repeats)
    built: dict[str, Question] = {}
    next_index: Counter[str] = Counter()
    pairs = []
    for one, question_id in zip(asked, identities, strict=True):
        question = built.get(question_id)
        if question is None:
            question = built[question_id] = one.known or _question(one, name, question_id)
        for response in one.responses:
            index = next_index[question_id]
            next_index[question_id] += 1
            pairs.append((question, _sample(question, index, response)))
    return pairs


def _identities(asked: list[Asked], repeats: Repeats) -> list[str]:
    """The question id of each row. See the module for rows without an id of their own."""
    named = [one.known.question_id if one.known else one.question_id for one in asked]
    if all(named):
        _check_consistent(asked, [str(i) for i in named])
        return [str(i) for i in named]
    content = [digest([one.question, one.answer])[:16] if one.question else None for one in asked]
    rows = [len(one.responses) for one in asked]
    sizes: Counter[str] = Counter()
    for key, number in zip(content, rows, strict=True):
        if key:
            sizes[key] += number
    usual = max(Counter(sizes.values()).items(), key=lambda item: (item[1], item[0]))[0] if sizes else 1
    seen: Counter[str] = Counter()
    result = []
    for position, (key, number) in enumerate(zip(content, rows, strict=True)):
        if key is None:
            result.append(f"row-{position + 1}")
            continue
        questions = {"samples": 1, "questions": sizes[key], "auto": max(1, round(sizes[key] / usual))}[repeats]
        ordinal = seen[key] * questions // sizes[key] + 1
        seen[key] += number
        result.append(key if ordinal == 1 else f"{key}-{ordinal}")
    return result


def _check_consistent(asked: list[Asked], ids: list[str]) -> None:
    first: dict[str, Asked] = {}
    for one, question_id in zip(asked, ids, strict=True):
        earlier = first.setdefault(question_id, one)
        if one.known is None and digest(one.answer) != digest(earlier.answer):
            raise UsageError(
                f"{one.where}: the question {visible(question_id, 100)!r} has another reference answer than at "
                f"{earlier.where}; samples of one question must agree"
            )


def _question(one: Asked, name: str, question_id: str) -> Question:
    try:
        accepted, kind = read_reference(one.answer)
    except ValueError as error:
        raise UsageError(f"{one.where}: the reference answer {error}") from error
    return Question(
        benchmark=name,
        question_id=question_id,
        messages=(Message("user", one.question),) if one.question else (),
        references=accepted,
        kind=kind,
        metadata=one.metadata,
        row_digest=digest([one.question, one.answer]),
        prompt_digest=digest(one.question),
    )


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
