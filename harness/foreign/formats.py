"""Readers of other tools' outputs: rows of a file → `OutputRow` records.

A reader returns the question, the reference and the model's reply. It neither grades nor groups the samples of a
question. Most tools are entries of a table (`TOOLS`). The following readers are code:

    columns        any file, by the names of its columns
    inspect        `.eval` logs
    openai_batch   result files of OpenAI's batches, which need the questions
    sglang         the state dump of SGLang's reasoning benchmark, which needs the questions

Long: the table of tools, the reader of its rows and the readers in code belong together.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.answers.calls import logged_calls, read_tools, written_reference
from harness.benchmarks import usual_columns
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.benchmarks.usual_columns import ANSWER_COLUMNS, ASKED_COLUMNS, ID_COLUMNS, QUESTION_COLUMNS
from harness.core.choices import OutputsFormat as Format
from harness.core.errors import UsageError, near_names
from harness.core.files import open_named
from harness.core.inert import quoted, visible
from harness.core.records import UNSTATED_REASON, OfferedTool, Question, SentCall
from harness.core.token_counts import stated_usage
from harness.foreign import cells, verdicts
from harness.foreign.verdicts import GivenVerdicts

RESPONSE_COLUMNS = (
    "gen",
    "generated_responses",
    "response",
    "responses",
    "output",
    "outputs",
    "generation",
    "generations",
    "completion",
    "completions",
    "generated_text",
    "model_output",
    "prediction",
    "code",
)
"""Usual names of columns with a model's reply, in the order in which they are tried."""
REASONING_COLUMNS = ("reasoning", "reasoning_content", "thinking")
"""Usual names of columns with a model's reasoning."""
GOLD_COLUMNS = ("gold_answer", "gold", "answer", "ground_truth", "expected_answer", "reference", "target", "gt")
"""Usual names of columns with a reference answer."""


class Keys(NamedTuple):
    """The user's names for the columns of the response, reference, question, question id and sample number; None: the
    usual names.
    """

    response: str | None = None
    answer: str | None = None
    question: str | None = None
    question_id: str | None = None
    sample: str | None = None


GRADED = GivenVerdicts()
"""The settings for reading a file whose replies are graded here."""
_MAX_SECONDS = 1e9
"""A reply time longer than this counts as unknown."""
_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's marks: correct, partly correct, incorrect, no answer."""

MAX_MEMBER_BYTES = 256 * 1024 * 1024
"""Longest sample of an `.eval` log, after decompression."""


@dataclass(slots=True)  # not frozen: a frozen one takes three times as long to make, and each row makes two objects
class ToolReply:
    """A completion as a tool stored it. A field is None if the tool did not store it.

    index: the number of the sample among its question's samples, from 0. calls: unset unless the question asks for tool
    calls. verdict: the fraction that the tool reports as correct; unset if the tool reports none or if the reply is
    graded here. failed: whether the tool reports no verdict and the user wants attempts without a verdict to count as
    wrong.
    """

    text: str | None
    reasoning: str | None = None
    finish_reason: str = UNSTATED_REASON
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    index: int | None = None
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET
    verdict: float | msgspec.UnsetType = msgspec.UNSET
    seconds: float = 0.0
    failed: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether the tool stored null (or nothing but an error) and no sign that the model replied."""
        has_text = self.text is not None or self.reasoning is not None
        return not has_text and self.finish_reason == UNSTATED_REASON and self.verdict is msgspec.UNSET


@dataclass(slots=True)
class OutputRow:
    """A question as a tool stored it, with its responses.

    where: file and line, for messages. responses: empty in a row that repeats an earlier one. answer: the reference; if
    the file has none (`states_reference`), it comes from the benchmark whose questions the file answers. card_question:
    the same question in a card, for formats that need the questions; otherwise None. usual_id: the value in a column
    that usually has the question's id, if the user names no column; it may be a sample's id. model: the name of the
    model that replied. is_judged: whether the tool reports verdicts, so that no reply is graded.
    """

    where: str
    responses: list[ToolReply]
    question: str | None = None
    answer: Any = None
    question_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    card_question: Question | None = None
    usual_id: str | None = None
    states_reference: bool = True
    model: str | None = None
    tools: tuple[OfferedTool, ...] = ()
    is_judged: bool = False


def of_calls(rows: Iterable[Row], *, in_benchmark: bool) -> Iterator[OutputRow]:
    """Read requests with their replies: `tools`, `tool_calls`, optionally a text, the messages and the accepted calls.

    in_benchmark: whether a benchmark has the references; if not, a row without a reference accepts any calls that fit
    their schemas. Raises `UsageError`.
    """
    for row in rows:
        answer, text, asked, name = (
            usual_columns.find(names, row.value)
            for names in ((*GOLD_COLUMNS, *ANSWER_COLUMNS), ("content", *RESPONSE_COLUMNS), ASKED_COLUMNS, ID_COLUMNS)
        )
        stated = _cell(row, answer)
        try:
            calls, tools = logged_calls(row.value.get("tool_calls")), read_tools(row.value.get("tools") or [])
            reference = written_reference("schema" if stated is None else stated)
        except ValueError as error:
            raise UsageError(f"{row.where}: invalid tools, calls or reference: {quoted(str(error))}") from error
        (reply,) = responses_of(row, _cell(row, text) or "", text or "content")
        yield OutputRow(
            row.where,
            [replace(reply, calls=calls)],
            question=cells.as_text(_cell(row, asked)),
            answer=reference,
            question_id=cells.id_of(_cell(row, name)),
            states_reference=stated is not None or not in_benchmark,
            tools=tools,
        )


def by_columns(
    rows: Iterable[Row], keys: Keys, judged: GivenVerdicts = GRADED, *, questions: Sequence[Question] = ()
) -> Iterator[OutputRow]:
    """Read any file by its columns.

    questions: the benchmark's questions, with their references. Raises `UsageError` if a column is missing.
    """
    ahead = iter(rows)
    if (first := next(ahead, None)) is None:
        return
    columns = _find_columns(first, keys, judged, in_benchmark=bool(questions))
    for row in chain([first], ahead):
        failed = judged.key is not None and row.value.get("error")
        for column in (columns.response, columns.answer):
            if column is not None and not failed and usual_columns.find((column,), row.value) != column:
                raise UsageError(f"{row.where} has no column {visible(column)!r}, which earlier rows have")
        others = row
        if columns.named:  # a column that the user named is not a finish reason or a token count
            others = Row(row.where, {name: cell for name, cell in row.value.items() if name not in columns.named})
        replies = responses_of(others, _cell(row, columns.response), columns.response or "")
        if keys.sample is not None and len(replies) == 1:
            replies[0].index = _number_of(row, keys.sample)
        question_id = cells.id_of(_cell(row, columns.question_id))
        if judged.key is not None:
            replies = _with_verdicts(row, replies, judged)
            id_column = columns.question_id or columns.usual_id
            question_id = _id_of_task(row, id_column) if id_column or not columns.question else None
        yield OutputRow(
            row.where,
            replies,
            question=cells.as_text(_cell(row, columns.question)),
            answer=_cell(row, columns.answer),
            question_id=question_id,
            usual_id=cells.id_of(_cell(row, columns.usual_id)),
            states_reference=columns.answer is not None,
            is_judged=judged.key is not None,
        )


def _with_verdicts(row: Row, replies: Sequence[ToolReply], judged: GivenVerdicts) -> list[ToolReply]:
    """The replies with the row's verdicts (one or a list); a reply without a verdict is missing or wrong.

    In a row with an `error`, a verdict counts only if it is above 0. Raises `UsageError`.
    """
    key, error = str(judged.key), row.value.get("error")
    if not error and _find_column(row, key, (), ()) is None:
        raise _column_error(row, key, "the verdict", "verdict_key")
    stated = _cell(row, key)
    values = stated if isinstance(stated, list) else [stated]
    if len(replies) == 1 and replies[0].text is None:
        replies = [*replies] * len(values)
    if len(values) != len(replies):
        raise UsageError(f"{row.where}: {key!r} has {len(values)} verdicts for {len(replies)} replies")
    with_verdicts = []
    for reply, value in zip(replies, values, strict=True):
        share = verdicts.share_of(value, row.where, key)
        failed = share is None or bool(error and not share)
        is_missing = failed and judged.errors != "wrong"
        given = replace(reply, verdict=share or 0.0, failed=failed)
        with_verdicts.append(ToolReply(None) if is_missing else given)
    return with_verdicts


def _id_of_task(row: Row, column: str | None) -> str:
    """The id of the task that a row's verdict is about. Raises `UsageError` if the row has no id."""
    value = _cell(row, column)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        found = (
            "specify its column with id_key" if column is None else f"found {quoted(repr(value)[:400])} in {column!r}"
        )
        raise UsageError(f"{row.where} has no task id; expected text or a whole number: {found}")
    return str(value)


class _Columns(NamedTuple):
    """The columns of a file by their use; None: the file has no column for it.

    usual_id: the column that usually has the question's id, if the user names none. named: the columns that the user
    names.
    """

    response: str | None
    answer: str | None
    question: str | None
    question_id: str | None
    usual_id: str | None
    named: frozenset[str | None]


def _find_columns(first: Row, keys: Keys, judged: GivenVerdicts, *, in_benchmark: bool) -> _Columns:
    """The columns of the first row. Raises `UsageError` if a column is missing; with verdicts, only if the user named
    it.

    Each column has one use: a column that the user names is never guessed for another use, nor is the response column
    taken for the reference. in_benchmark: whether a benchmark has the references, so that the file may omit them.
    """
    response, answer, question, question_id, sample = keys
    named = frozenset(usual_columns.find((name,), first.value) for name in (*keys, judged.key) if name is not None)
    response_column = _find_column(first, response, RESPONSE_COLUMNS, named)
    answer_column = _find_column(first, answer, (*GOLD_COLUMNS, *ANSWER_COLUMNS), named | {response_column})
    if response_column is None and (response is not None or judged.key is None):
        raise _column_error(first, response, "the response", "response_key", answer_column if in_benchmark else None)
    if answer_column is None and (answer is not None or not (in_benchmark or judged.key)):
        raise _column_error(first, answer, "the reference", "answer_key")
    question_column = _find_column(first, question, QUESTION_COLUMNS, named)
    if question_column is None and question is not None:
        raise _column_error(first, question, "the question", "question_key")
    id_column = _find_column(first, question_id, (), named)
    if id_column is None and question_id is not None:
        raise _column_error(first, question_id, "the id", "id_key")
    if sample is not None and _find_column(first, sample, (), ()) is None:
        raise _column_error(first, sample, "the sample's number", "sample_key")
    usual_ids = ID_COLUMNS if judged.key is None else verdicts.ID_COLUMNS
    usual_id = None if question_id else _find_column(first, None, usual_ids, named)
    return _Columns(response_column, answer_column, question_column, id_column, usual_id, named)


def _cell(row: Row, column: str | None) -> Any:
    """The cell in a column; None if no column is given or the row does not have it."""
    return None if column is None or usual_columns.find((column,), row.value) != column else row.cell(column)


def inspect(path: Path, judged: GivenVerdicts = GRADED) -> Iterator[OutputRow]:
    """Read an `.eval` log of Inspect: a zip archive with a JSON file for each sample and epoch. Raises `UsageError`."""
    shown = visible(str(path))
    try:
        with open_named(path) as raw, zipfile.ZipFile(raw) as archive:
            names = [n for n in archive.namelist() if n.startswith("samples/") and n.endswith(".json")]
            if not names:
                raise UsageError(f"{shown} contains no samples; the log may be incomplete")
            # An archive may contain a name twice, and `getinfo` returns the last member for both.
            for name in sorted(dict.fromkeys(names), key=_by_epoch):
                info = archive.getinfo(name)
                if info.file_size > MAX_MEMBER_BYTES:
                    raise UsageError(f"{shown}: {visible(name)} has {info.file_size} bytes; limit {MAX_MEMBER_BYTES}")
                where = f"{shown}:{visible(name)}"
                with archive.open(info) as file:
                    # The size in the archive's directory is only a claim, so the read is also limited.
                    data = file.read(MAX_MEMBER_BYTES + 1)
                yield _inspect_sample(tables.parse_json(data.decode("utf-8"), where), where, judged)
    except NotImplementedError as error:
        raise UsageError(f"{shown} is compressed in a format this Python cannot read: {quoted(str(error))}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown} is damaged or not an Inspect log: {quoted(str(error))}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


def _by_epoch(name: str) -> tuple[str, int]:
    """(question, epoch) in the name of a sample's file, for sorting: epoch 10 comes after epoch 9."""
    question, _, epoch = name.removesuffix(".json").rpartition("_epoch_")
    # A longer number is not an epoch, and `int` rejects more than 4,300 digits.
    return question, int(epoch) if epoch.isdecimal() and len(epoch) < 10 else 0


def _inspect_sample(sample: Any, where: str, judged: GivenVerdicts) -> OutputRow:
    """One sample of an Inspect log. where: its location in the file, for messages. Raises `UsageError`."""
    if not isinstance(sample, dict) or "output" not in sample or "target" not in sample:
        raise UsageError(f"{where} is not a sample from an Inspect log")
    output = cells.mapping_or_empty(sample["output"])
    epoch = cells.count_or_none(sample.get("epoch"))
    responses = _of_choices(output, ("output_tokens", "input_tokens"))
    if epoch and len(responses) == 1:  # an epoch numbers a sample only if it has a single choice
        responses[0].index = epoch - 1
    responses = responses or [ToolReply(None)]
    if judged.key is not None:
        scores = {name: _mark_of(score) for name, score in cells.mapping_or_empty(sample.get("scores")).items()}
        responses = _with_verdicts(Row(where, {**scores, "error": sample.get("error")}), responses, judged)
    target = sample["target"]
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    return OutputRow(
        where,
        responses,
        question=cells.as_text(sample.get("input")),
        answer=target,
        question_id=cells.id_of(sample.get("id")),
        metadata={k: v for k, v in cells.mapping_or_empty(sample.get("metadata")).items() if isinstance(v, str | int)},
        is_judged=judged.key is not None,
    )


def _mark_of(score: Any) -> Any:
    """The value of an Inspect score; its letters are converted to fractions."""
    value = cells.mapping_or_empty(score).get("value")
    return _MARKS.get(value, value) if isinstance(value, str) else value


def openai_batch(rows: Iterable[Row], questions: Sequence[Question]) -> Iterator[OutputRow]:
    """Read a result file of an OpenAI batch.

    `custom_id` is the question's id, alone or followed by the sample's number as `-3`, `:3` or `#3`. questions: the
    benchmark's questions, which have the reference answers. Raises `UsageError`.
    """
    by_id = {question.question_id: question for question in questions}
    for row in rows:
        cells.require_columns(row, ("custom_id", "response"), "an OpenAI batch")
        custom = str(row.value["custom_id"])
        numbered = re.fullmatch(r"(.+)[-_:#/@]\d+", custom, re.DOTALL)
        # The whole id first, because a question's own id may end in a number.
        question = by_id.get(custom) or (by_id.get(numbered[1]) if numbered else None)
        if question is None:
            raise UsageError(
                f"{row.where}: the custom_id {visible(custom, 100)!r} is not a question id.{near_names(custom, by_id)}"
            )
        body = cells.mapping_or_empty(cells.mapping_or_empty(row.value["response"]).get("body"))
        responses = _of_choices(body, ("completion_tokens", "prompt_tokens"))
        yield OutputRow(row.where, responses or [ToolReply(None)], card_question=question)  # none: the request failed


def _of_choices(body: Mapping[str, Any], counts: tuple[str, str]) -> list[ToolReply]:
    """The responses in the `choices` of an answer. counts: names of the usage fields for completion and prompt tokens.

    The usage covers all choices together.
    """
    choices = body["choices"] if isinstance(body.get("choices"), list) else []
    usage = cells.mapping_or_empty(body.get("usage"))
    completion, prompt = map(usage.get, counts)
    stated = stated_usage({**usage, "completion_tokens": completion, "prompt_tokens": prompt})
    responses = []
    for choice in map(cells.mapping_or_empty, choices):
        message = cells.mapping_or_empty(choice.get("message"))
        text, parts = cells.split_content(message.get("content", choice.get("text")))
        reason = str(choice.get("finish_reason") or choice.get("stop_reason") or UNSTATED_REASON)
        responses.append(
            ToolReply(
                text,
                cells.text_or_none(message.get("reasoning_content")) or parts,
                "length" if reason in ("max_tokens", "model_length") else reason,
                stated.completion_tokens if len(choices) == 1 else None,
                stated.prompt_tokens,
            )
        )
    return responses


_STATE = re.compile(r"^={40} (\d+) ={40}\n", re.MULTILINE)
"""The line before a state, with its number."""


def sglang(path: Path, questions: Sequence[Question]) -> Iterator[OutputRow]:
    """Read the text dump of SGLang's reasoning benchmark (`tmp_output_*.txt`).

    The dump has one text (a state) for each request: the prompt followed by the answer. A state's question is the one
    with the longest text that occurs in the state. Raises `UsageError`.
    """
    from harness.benchmarks.prompts import without_instruction  # prompts, which the other formats do not need

    shown = visible(str(path))
    # State numbers and texts alternate, after the text before the first state.
    _, *parts = _STATE.split(cells.decode_file(path))
    if not parts:
        raise UsageError(f"{shown} is not a state dump of SGLang's benchmark")
    texts = ((without_instruction(question.last_turn)[0].strip(), question) for question in questions)
    longest_first = sorted(texts, key=lambda pair: len(pair[0]), reverse=True)
    for number, state in zip(parts[::2], parts[1::2], strict=True):
        match = next(((text, question) for text, question in longest_first if text in state), None)
        if match is None:
            raise UsageError(f"{shown}: state {number} does not contain the text of any question in this benchmark")
        text, question = match
        answer = state[state.index(text) + len(text) :].rstrip("\n")
        answer = answer.removesuffix("=" * 80).rstrip("\n")
        # SGLang's prompt has the instruction to box the answer (`… \boxed{}.`) between question and answer.
        instruction = re.match(r".{0,120}?oxed\{\}\.", answer, re.DOTALL)
        yield OutputRow(
            f"{shown}:{number}", [ToolReply(answer[instruction.end() if instruction else 0 :])], card_question=question
        )


def responses_of(row: Row, value: Any, column: str) -> list[ToolReply]:
    """The responses in a cell, which has a string or a list of strings. If it has only one response, the row's finish
    reason and token counts are added.
    """
    items = value if isinstance(value, list) else [value]
    if not items:
        raise UsageError(f"{row.where}: the column {column!r} is an empty list of responses")
    texts = []
    for item in items:
        if item is not None and not isinstance(item, str):
            shown = quoted(repr(item))
            raise UsageError(f"{row.where}: the column {column!r} must be a string or a list of strings, found {shown}")
        texts.append(item)
    reasons = cells.reasons_of(row, column, len(texts))
    if len(texts) > 1:
        return [ToolReply(text, finish_reason=reason) for text, reason in zip(texts, reasons, strict=True)]
    if not texts[0] and row.value.get("error"):
        texts[0] = None
    reasoning = next((row.value[n] for n in REASONING_COLUMNS if isinstance(row.value.get(n), str)), None)
    usage = row.value["usage"] if isinstance(row.value.get("usage"), dict) else row.value
    stated, seconds = (
        stated_usage({"completion_tokens": usage.get("num_generated_tokens"), **usage}),
        row.value.get("seconds"),
    )
    return [
        ToolReply(
            texts[0],
            reasoning,
            reasons[0],
            stated.completion_tokens,
            stated.prompt_tokens,
            cells.count_or_none(row.value.get("sample_index")),
            seconds=seconds if isinstance(seconds, int | float) and 0 <= seconds < _MAX_SECONDS else 0.0,
        )
    ]


def _number_of(row: Row, column: str) -> int | None:
    """The sample's number in a column; None for null. Raises `UsageError` for anything but an integer."""
    value = _cell(row, column)
    number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
    if number is not None and cells.count_or_none(number) is None:
        raise UsageError(f"{row.where}: {column!r} must be a whole number ≥ 0, found {quoted(repr(value)[:400])}")
    return number


def _find_column(row: Row, column: str | None, usual: Iterable[str], taken: Collection[str | None]) -> str | None:
    """`column` if the user names one, else the first of the usual names that the row has; None if the row has none of
    them.

    taken: the columns that have another use, so that no usual name matches them.
    """
    if column is not None:
        return usual_columns.find((column,), row.value)
    return usual_columns.find(usual, [name for name in row.value if name not in taken])


def _column_error(row: Row, column: str | None, role: str, field: str, perhaps: str | None = None) -> UsageError:
    """The error for a row without the column that the user names, or without any usual one. role: the expected content.

    perhaps: a column that may have this content.
    """
    columns = usual_columns.listed(row.value)
    have = ", ".join(visible(name, 60) for name in columns[:40]) + (", …" if len(columns) > 40 else "")
    if column is not None:
        near = near_names(column, columns)
        return UsageError(f"{row.where} has no column {visible(column)!r} for {role}; available columns: {have}.{near}")
    named = f"use {field} to specify the column for {role}"
    if perhaps is not None:
        named += f" ({field}={perhaps} if {visible(perhaps, 60)} contains the replies)"
    usual = {"response_key": "response, output, completion, gen …", "answer_key": "answer, reference, gold, target …"}
    if field == "response_key" and perhaps is None:
        named += ", or its verdict column with verdict_key"
    if field == "answer_key":
        named += ", or specify the benchmark with `benchmark`"
    return UsageError(
        f"{row.where} has no known column for {role}. Its columns are {have}; known columns are {usual[field]}: {named}"
    )


class ToolRows(NamedTuple):
    """Where the rows of a tool's outputs have the question, the reply and so on, after `transform`.

    name: the tool's name in messages. marks: the columns that all rows have. question, reply, answer, question_id:
    paths in a row, such as `doc.problem|doc.question`: the keys that lead to the value, with alternatives after a |.
    once: the path of a value that is unique to a row; further rows with the same value are copies. model: the column
    with the name of the model. transform: converts a row to one with these paths. verdicts: the path of the object with
    the tool's own verdicts; empty: the row itself. filter: the column that distinguishes copies with different
    verdicts; `verdict_key` is then METRIC,FILTER.
    """

    name: str
    marks: str
    question: str
    reply: str
    answer: str
    question_id: str
    once: str = ""
    model: str = ""
    transform: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    verdicts: str = ""
    filter: str = ""


def _of_lm_eval(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with its responses as one list."""
    resps = row["resps"] if isinstance(row["resps"], list) else [row["resps"]]
    return {**row, "resps": [text for resp in resps for text in (resp if isinstance(resp, list) else [resp])]}


def _of_evalscope(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose prompt is the user's turn: `input` behind `**User**: `, or in newer files a list of messages."""
    turn = row.get("input")
    plain = re.sub(r"\A\*\*User\*\*:\s*", "", turn) if isinstance(turn, str) else _last_user_turn(row.get("messages"))
    return {**row, "input": plain, "index": str(row["index"])}


def _of_opencompass(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose prompt is the user's last turn."""
    return {**row, "origin_prompt": _last_user_turn(row.get("origin_prompt"))}


_NEMO = ToolRows(
    "NeMo-Skills", "generation expected_answer problem", "problem", "generation", "expected_answer", "id|unique_id"
)
TOOLS: dict[Format, ToolRows] = {
    # Newer files have `doc_id`.
    "llmeval": ToolRows("LLMEval", "prompt gen answer", "prompt", "gen", "answer", "doc_id", model="model"),
    "limo": ToolRows(
        "LIMO", "generated_responses", "question|problem", "generated_responses", "|".join(GOLD_COLUMNS), "id"
    ),
    # One line for each of the tool's filters, all with the same responses; `question_id` is written by `harness
    # export`.
    "lm_eval": ToolRows(
        "lm-evaluation-harness",
        "doc_id doc resps target",
        "|".join(f"doc.{name}" for name in QUESTION_COLUMNS),
        "resps",
        "target",
        "doc.question_id|doc_id",
        "doc_id",
        transform=_of_lm_eval,
        filter="filter",
    ),
    "nemo_skills": _NEMO,
    "sgl_eval": _NEMO,
    "opencompass": ToolRows(
        "OpenCompass", "prediction gold", "origin_prompt", "prediction", "gold", "number", transform=_of_opencompass
    ),
    # A resumed evaluation may have written a review twice. Several reviews of a question have the same `group_id`.
    "evalscope": ToolRows(
        "EvalScope",
        "index target sample_score",
        "input",
        "sample_score.score.prediction",
        "target",
        "sample_score.group_id|index",
        "index",
        transform=_of_evalscope,
        verdicts="sample_score.score.value",
    ),
}
"""Tools whose outputs are rows of one question each."""

_RECOGNIZED: tuple[Format, ...] = ("lm_eval", "limo", "llmeval", "evalscope")
"""Tools that are recognized by the columns of a row, in the order in which they are tried."""


def recognize(row: Row) -> Format:
    """The format of a row, by the names of its columns; "columns" if they match no known tool."""
    if {"custom_id", "response"} <= row.value.keys() and isinstance(row.value["response"], dict | None):
        return "openai_batch"
    return next((tool for tool in _RECOGNIZED if {*TOOLS[tool].marks.split()} <= row.value.keys()), "columns")


def by_tool(rows: Iterable[Row], tool: ToolRows, judged: GivenVerdicts = GRADED) -> Iterator[OutputRow]:
    """Read the rows of a tool of the table. Raises `UsageError`."""
    seen = set()  # values of `tool.once`
    chosen, first = "", None
    if judged.key is not None and tool.filter:
        key, _, chosen = judged.key.partition(",")
        judged = judged._replace(key=key)
    for where, value, *_ in rows:
        name = str(value.get(tool.filter))
        first = name if first is None else first
        if judged.key is not None and not chosen and name != first:
            both = " or ".join(visible(f"{judged.key},{each}", 100) for each in (first, name))
            raise UsageError(f"{where} has a different filter than earlier rows; use {both} as verdict_key")
        if chosen not in ("", name):
            continue
        cells.require_columns(Row(where, value), tool.marks.split(), tool.name)
        row = Row(where, dict(tool.transform(value)))
        holder, nested, reply = tool.reply.rpartition(".")
        if nested and not isinstance(_value_at(row, holder), dict):
            raise UsageError(
                f"{where} is not a valid row for {tool.name}: {holder!r} is missing; expected an object with {reply}"
            )
        answer = _value_at(row, tool.answer)
        if answer is None:
            expected = tool.answer.replace("|", " or ")
            raise UsageError(f"{where} has no reference answer; expected it in {expected}")
        once = _value_at(row, tool.once) if tool.once else None
        repeats = once is not None and str(once) in seen
        seen.add(str(once))
        replies = [] if repeats else responses_of(row, _value_at(row, tool.reply), tool.reply)
        if judged.key is not None and replies:
            stated = cells.mapping_or_empty(_value_at(row, tool.verdicts)) if tool.verdicts else row.value
            replies = _with_verdicts(Row(where, {**stated, "error": value.get("error")}), replies, judged)
        yield OutputRow(
            where,
            replies,
            question=cells.as_text(_value_at(row, tool.question)),
            answer=answer,
            question_id=cells.id_of(_value_at(row, tool.question_id)),
            model=cells.text_or_none(row.value.get(tool.model)) if tool.model else None,
            is_judged=judged.key is not None,
        )
    if chosen and not seen:
        found = f"no row has the filter {visible(chosen, 100)!r}; the first row has {visible(str(first), 100)!r}"
        raise UsageError(found, field="verdict_key")


def _value_at(row: Row, places: str) -> Any:
    """The value at the first of these paths (`ToolRows`) that has one; None if none does."""
    for place in places.split("|"):
        if (value := _cell(row, place)) is not None:
            return value
    return None


def _last_user_turn(value: Any) -> str | None:
    """The user's last message in a prompt; a prompt that is a string is returned unchanged."""
    if isinstance(value, list):
        turns = [turn for turn in value if isinstance(turn, dict) and turn.get("role") in ("HUMAN", "human", "user")]
        return cells.text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None
    return cells.text_or_none(value)
