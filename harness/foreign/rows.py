"""Reads the rows of other tools' outputs by their layout: `Row` → `OutputRow`.

A row has the question, the reference and the model's replies. Nothing is graded here, and the samples of a question are
not grouped. Replies without their questions belong to a card's questions (`of_batch`, `of_states`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from harness.benchmarks.column_names import find
from harness.benchmarks.sources.tables import Row
from harness.benchmarks.tool_choice import accepted_calls
from harness.core.errors import UsageError, near_names
from harness.core.records import UNSTATED_REASON, OfferedTool, Question, SentCall
from harness.core.sanitize import quoted, visible
from harness.core.token_counts import stated_usage
from harness.foreign import row_values, verdicts
from harness.foreign.formats import LAYOUTS, REASONING_COLUMNS, Layout
from harness.foreign.row_values import Paths, value_at
from harness.foreign.verdicts import GivenVerdicts, share_of
from reasoning_answers.host import read_calls, read_tools

GRADED = GivenVerdicts()
"""The settings for reading a file whose replies are graded here."""
_MAX_SECONDS = 1e9
"""A reply time longer than this counts as unknown."""


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
    the same question in a card, for formats that need the questions; otherwise None. id_is_certain: whether the id is
    the question's; an id in a column that only usually has it may be a sample's. model: the name of the model that
    replied. is_judged: whether the tool reports verdicts, so that no reply is graded.
    """

    where: str
    responses: list[ToolReply]
    question: str | None = None
    answer: Any = None
    question_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    card_question: Question | None = None
    id_is_certain: bool = True
    states_reference: bool = True
    model: str | None = None
    tools: tuple[OfferedTool, ...] = ()
    is_judged: bool = False


def read(
    rows: Iterable[Row], layout: Layout, judged: GivenVerdicts = GRADED, *, in_benchmark: bool = False
) -> Iterator[OutputRow]:
    """Read the rows of a file with this layout. Raises `UsageError`.

    in_benchmark: whether a benchmark has the references; if not, calls without a reference only have to fit their
    schemas.
    """
    seen = set()  # values of `layout.once`
    if layout.filter and judged.key is not None:
        key, _, chosen = judged.key.partition(",")
        rows, judged = _filtered(rows, layout.filter, key, chosen), judged._replace(key=key)
    for row in rows:
        if lacking := row_values.missing(row, layout.marks):
            raise UsageError(
                f"{row.where} is not a valid row for {layout.tool}: {lacking!r} is missing; expected "
                f"{', '.join(layout.marks)}"
            )
        row = Row(row.where, layout.transform(row.value))
        question, answer = row_values.as_text(value_at(row, layout.question)), value_at(row, layout.answer)
        if answer is None and layout.answer and not (layout.calls or judged.key is not None):
            raise UsageError(f"{row.where} has no reference answer; expected it in {' or '.join(layout.answer)}")
        once = value_at(row, layout.once)
        repeats = once is not None and str(once) in seen
        seen.add(str(once))
        replies = [] if repeats else _replies(row, layout)
        question_id = value_at(row, layout.question_id)
        if judged.key is not None:
            if replies:
                stated = row_values.mapping_or_empty(value_at(row, layout.verdicts)) if layout.verdicts else row.value
                found = Row(row.where, {**stated, "error": row.value.get("error")})
                replies = _with_verdicts(
                    found, replies, judged.key, judged.errors or verdicts.errors_of(judged.key, layout.errors)
                )
            _check_task_id(row, question_id, layout, has_text=bool(question))
        result = OutputRow(
            row.where,
            replies,
            question=question,
            answer=answer,
            question_id=row_values.id_of(question_id),
            metadata={
                name: value
                for name, value in row_values.mapping_or_empty(value_at(row, layout.metadata)).items()
                if isinstance(value, str | int)
            },
            id_is_certain=layout.id_is_certain,
            states_reference=bool(layout.answer),
            model=row_values.text_or_none(value_at(row, layout.model)),
            is_judged=judged.key is not None,
        )
        yield _with_calls(result, row, in_benchmark=in_benchmark) if layout.calls else result


def _filtered(rows: Iterable[Row], column: str, key: str, chosen: str) -> Iterator[Row]:
    """The rows with the filter `chosen`, which may be empty if all rows have the same. Raises `UsageError`."""
    first, n = None, 0
    for row in rows:
        name = str(row.value.get(column))
        first = name if first is None else first
        if not chosen and name != first:
            both = " or ".join(visible(f"{key},{each}", 100) for each in (first, name))
            raise UsageError(f"{row.where} has a different filter than earlier rows; use {both} as `verdict_key`")
        if chosen in ("", name):
            n += 1
            yield row
    if not n:
        found = f"no row has the filter {visible(chosen, 100)!r}; the first row has {visible(str(first), 100)!r}"
        raise UsageError(found, field="verdict_key")


def _with_verdicts(
    row: Row, replies: Sequence[ToolReply], key: str, errors: Literal["missing", "wrong"]
) -> list[ToolReply]:
    """The replies with the row's verdicts (one or a list); a reply without a verdict is missing or wrong.

    A row with an `error` needs no verdict. Raises `UsageError`.
    """
    error = row.value.get("error")
    column = find((key,), row.value)
    try:
        stated = value_at(row, (column,)) if column else verdicts.cell_at(row.value, key)
    except KeyError:
        if not error and not verdicts.is_unfinished(row.value, key):
            raise row_values.missing_error(row, key, "the verdict", "verdict_key") from None
        stated = None
    values = verdicts.tries_of(key, stated, row.where) if isinstance(stated, list) else [stated]
    if len(replies) == 1 and replies[0].text is None:
        replies = [*replies] * len(values)
    if len(values) != len(replies):
        raise UsageError(f"{row.where}: {key!r} has {len(values)} verdicts for {len(replies)} replies")
    with_verdicts = []
    for reply, value in zip(replies, values, strict=True):
        share = share_of(value, row.where, key)
        failed = share is None
        is_missing = failed and errors == "missing"
        given = replace(reply, verdict=share or 0.0, failed=failed)
        with_verdicts.append(ToolReply(None) if is_missing else given)
    return with_verdicts


def _check_task_id(row: Row, value: Any, layout: Layout, *, has_text: bool) -> None:
    """Raise `UsageError` if a row with a verdict does not say which task the verdict is about."""
    if value in (None, "") and has_text:
        return
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        found = f", found {quoted(repr(value)[:400])} in {layout.question_id[0]!r}" if layout.question_id else ""
        raise UsageError(
            f"{row.where} has no task id; expected text or a whole number{found}: specify its column with `id_key`"
        )


def _with_calls(result: OutputRow, row: Row, *, in_benchmark: bool) -> OutputRow:
    """The row with its calls, its tools and the accepted calls. Raises `UsageError`."""
    try:
        tools = read_tools(row.value.get("tools") or [])
        calls = read_calls(row.value.get("tool_calls") or [], {tool.name for tool in tools})
        reference = accepted_calls(row.value, result.answer)
    except ValueError as error:
        raise UsageError(f"{row.where}: invalid tools, calls or reference: {quoted(str(error))}") from error
    if len(result.responses) != 1:
        found = f"a row with tools must contain one reply, but it contains {len(result.responses)}"
        raise UsageError(f"{row.where}: {found}; write one row for each reply")
    (reply,) = result.responses
    return replace(
        result,
        responses=[replace(reply, text=reply.text or "", calls=calls)],
        answer=reference,
        states_reference=result.answer is not None or not in_benchmark,
        tools=tools,
    )


def _replies(row: Row, layout: Layout) -> list[ToolReply]:
    """The replies in a row, with the number of the sample if there is only one. Raises `UsageError`."""
    if layout.choices:
        replies = _of_choices(row_values.mapping_or_empty(value_at(row, layout.choices)))
    else:
        column = layout.reply[0] if layout.reply else ""
        replies = _of_column(row, value_at(row, layout.reply), column, layout.named)
    if len(replies) == 1:
        replies[0].index = row_values.count_or_none(row.value.get("sample_index"))
        if layout.sample:
            replies[0].index = _number_of(row, layout.sample)
    return replies or [ToolReply(None)]


def _of_choices(body: Mapping[str, Any]) -> list[ToolReply]:
    """The responses in the `choices` of an answer, whose usage covers all choices together."""
    choices = body["choices"] if isinstance(body.get("choices"), list) else []
    usage = row_values.mapping_or_empty(body.get("usage"))
    inspects = {"completion_tokens": usage.get("output_tokens"), "prompt_tokens": usage.get("input_tokens")}
    stated = stated_usage({**inspects, **usage})
    responses = []
    for choice in map(row_values.mapping_or_empty, choices):
        message = row_values.mapping_or_empty(choice.get("message"))
        text, parts = row_values.split_content(message.get("content", choice.get("text")))
        reason = str(choice.get("finish_reason") or choice.get("stop_reason") or UNSTATED_REASON)
        responses.append(
            ToolReply(
                text,
                row_values.text_or_none(message.get("reasoning_content")) or parts,
                "length" if reason in ("max_tokens", "model_length") else reason,
                stated.completion_tokens if len(choices) == 1 else None,
                stated.prompt_tokens,
            )
        )
    return responses


def _of_column(row: Row, value: Any, column: str, named: frozenset[str | None]) -> list[ToolReply]:
    """The responses in a cell, which has a string or a list of strings. If it has only one response, the row's finish
    reason and token counts are added, unless the user `named` their columns for another use.
    """
    texts = [*value] if isinstance(value, list) else [value]
    if not texts:
        raise UsageError(f"{row.where}: the column {column!r} is an empty list of responses")
    for item in texts:
        if item is not None and not isinstance(item, str):
            shown = quoted(repr(item))
            raise UsageError(f"{row.where}: the column {column!r} must be a string or a list of strings, found {shown}")
    others = row.value if not named else {name: cell for name, cell in row.value.items() if name not in named}
    reasons = row_values.reasons_of(Row(row.where, others), column, len(texts))
    if len(texts) > 1:
        return [ToolReply(text, finish_reason=reason) for text, reason in zip(texts, reasons, strict=True)]
    usage, seconds = others["usage"] if isinstance(others.get("usage"), dict) else others, others.get("seconds")
    stated = stated_usage({"completion_tokens": usage.get("num_generated_tokens"), **usage})
    return [
        ToolReply(
            None if not texts[0] and others.get("error") else texts[0],
            next((others[name] for name in REASONING_COLUMNS if isinstance(others.get(name), str)), None),
            reasons[0],
            stated.completion_tokens,
            stated.prompt_tokens,
            seconds=seconds if isinstance(seconds, int | float) and 0 <= seconds < _MAX_SECONDS else 0.0,
        )
    ]


def _number_of(row: Row, paths: Paths) -> int | None:
    """The sample's number at these paths; None for null. Raises `UsageError` for anything but an integer."""
    value = value_at(row, paths)
    number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
    if number is not None and row_values.count_or_none(number) is None:
        raise UsageError(f"{row.where}: {paths[0]!r} must be a whole number ≥ 0, found {quoted(repr(value)[:400])}")
    return number


# ---- replies without their questions


_NUMBERED = re.compile(r"(.+)[-_:#/@]\d+", re.DOTALL)


def of_batch(rows: Iterable[Row], questions: Sequence[Question]) -> Iterator[OutputRow]:
    """Read a result file of an OpenAI batch.

    `custom_id` is the question's id, alone or followed by the sample's number as `-3`, `:3` or `#3`. questions: the
    benchmark's questions, which have the reference answers. Raises `UsageError`.
    """
    by_id = {question.question_id: question for question in questions}
    for row in read(rows, LAYOUTS["openai_batch"]):
        custom = str(row.question_id)
        numbered = _NUMBERED.fullmatch(custom)
        # The whole id first, because a question's own id may end in a number.
        question = by_id.get(custom) or (by_id.get(numbered[1]) if numbered else None)
        if question is None:
            raise UsageError(
                f"{row.where}: the custom_id {visible(custom, 100)!r} is not a question id.{near_names(custom, by_id)}"
            )
        yield replace(row, card_question=question)


def of_states(rows: Iterable[Row], questions: Sequence[Question]) -> Iterator[OutputRow]:
    """Read the states of SGLang's reasoning benchmark: the prompt followed by the answer.

    A state's question is the one with the longest text that occurs in the state. Raises `UsageError`.
    """
    from harness.benchmarks.prompts import without_instruction  # prompts, which the other formats do not need

    texts = ((without_instruction(question.last_turn)[0].strip(), question) for question in questions)
    longest_first = sorted(texts, key=lambda pair: len(pair[0]), reverse=True)
    for row in rows:
        state: str = row.value["state"]
        match = next(((text, question) for text, question in longest_first if text in state), None)
        if match is None:
            raise UsageError(f"{row.where}: this state does not contain the text of any question in this benchmark")
        text, question = match
        answer = state[state.index(text) + len(text) :].rstrip("\n")
        answer = answer.removesuffix("=" * 80).rstrip("\n")
        # SGLang's prompt has the instruction to box the answer (`… \boxed{}.`) between question and answer.
        instruction = re.match(r".{0,120}?oxed\{\}\.", answer, re.DOTALL)
        text = answer[instruction.end() if instruction else 0 :]
        yield OutputRow(row.where, [ToolReply(text)], card_question=question)
