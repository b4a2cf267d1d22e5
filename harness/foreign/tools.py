"""A table of tools whose outputs are rows of one question each, and its one reader (see `formats`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.benchmarks.sources.tables import Row
from harness.benchmarks.usual_columns import QUESTION_COLUMNS
from harness.core.choices import OutputsFormat as Format
from harness.core.errors import UsageError
from harness.foreign import cells
from harness.foreign.formats import GOLD_COLUMNS, OutputRow, responses_of


class Tool(NamedTuple):
    """Where the rows of a tool's outputs state what was asked and replied, after `transform`.

    name: in messages. marks: the columns that all rows have. question, reply, answer, question_id: places in a row,
    such as `doc.problem|doc.question`: the keys that lead to the value, with other ways to it behind a |. once: the
    place whose value belongs to one row; further rows with it are copies. model: the column with the name of the model.
    transform: a row → one with places as above.
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


def _of_lm_eval(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with its responses as one list, and without the worked solution before a reference of GSM8K."""
    resps = row["resps"] if isinstance(row["resps"], list) else [row["resps"]]
    gold = row["target"]
    return {
        **row,
        "resps": [text for resp in resps for text in (resp if isinstance(resp, list) else [resp])],
        "target": gold.rpartition("####")[2].strip() if isinstance(gold, str) and "####" in gold else gold,
    }


def _of_evalscope(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose prompt is the user's turn: `input` behind `**User**: `, or in newer files a list of messages."""
    turn = row.get("input")
    plain = re.sub(r"\A\*\*User\*\*:\s*", "", turn) if isinstance(turn, str) else _last_user_turn(row.get("messages"))
    return {**row, "input": plain, "index": str(row["index"])}


def _of_opencompass(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose prompt is the user's last turn."""
    return {**row, "origin_prompt": _last_user_turn(row.get("origin_prompt"))}


_NEMO = Tool(
    "NeMo-Skills", "generation expected_answer problem", "problem", "generation", "expected_answer", "id|unique_id"
)
TOOLS: dict[Format, Tool] = {
    # `doc_id` stands in newer files.
    "llmeval": Tool("LLMEval", "prompt gen answer", "prompt", "gen", "answer", "doc_id", model="model"),
    "limo": Tool(
        "LIMO", "generated_responses", "question|problem", "generated_responses", "|".join(GOLD_COLUMNS), "id"
    ),
    # A line for each of the tool's filters, all with the same responses; `question_id` is written by `harness export`.
    "lm_eval": Tool(
        "lm-evaluation-harness", "doc_id doc resps target", "|".join(f"doc.{name}" for name in QUESTION_COLUMNS),
        "resps", "target", "doc.question_id|doc_id", "doc_id", transform=_of_lm_eval,
    ),
    "nemo_skills": _NEMO,
    "sgl_eval": _NEMO,
    "opencompass": Tool(
        "OpenCompass", "prediction gold", "origin_prompt", "prediction", "gold", "number", transform=_of_opencompass
    ),
    # A resumed evaluation may have written a review again. Several reviews of a question have one `group_id`.
    "evalscope": Tool(
        "EvalScope", "index target sample_score", "input", "sample_score.score.prediction", "target",
        "sample_score.group_id|index", "index", transform=_of_evalscope,
    ),
}  # fmt: skip
"""Tools whose outputs are rows of one question each."""

_RECOGNISED: tuple[Format, ...] = ("lm_eval", "limo", "llmeval", "evalscope")
"""Tools that the columns of a row tell apart, in the order in which they are tried."""


def recognise(row: Row) -> Format:
    """The format of a row, by the names of its columns; "columns" if they are no known tool's."""
    if {"custom_id", "response"} <= row.value.keys() and isinstance(row.value["response"], dict | None):
        return "openai_batch"
    return next((tool for tool in _RECOGNISED if {*TOOLS[tool].marks.split()} <= row.value.keys()), "columns")


def by_tool(rows: Iterable[Row], tool: Tool) -> Iterator[OutputRow]:
    """Read the rows of a tool of the table. Raises `UsageError`."""
    seen = set()  # values of `tool.once`
    for where, value in rows:
        cells.require_columns(Row(where, value), tool.marks.split(), tool.name)
        row = Row(where, dict(tool.transform(value)))
        holder, nested, reply = tool.reply.rpartition(".")
        if nested and not isinstance(_value_at(row, holder), dict):
            raise UsageError(f"{where} is no row of {tool.name}: no {holder!r}; expected an object with {reply}")
        answer = _value_at(row, tool.answer)
        if answer is None:
            expected = tool.answer.replace("|", " or ")
            raise UsageError(f"{where} has no reference answer; expected it in {expected}")
        once = _value_at(row, tool.once) if tool.once else None
        repeats = once is not None and str(once) in seen
        seen.add(str(once))
        yield OutputRow(
            where,
            [] if repeats else responses_of(row, _value_at(row, tool.reply), tool.reply),
            question=cells.as_text(_value_at(row, tool.question)),
            answer=answer,
            question_id=cells.id_of(_value_at(row, tool.question_id)),
            model=cells.text_or_none(row.value.get(tool.model)) if tool.model else None,
        )


def _value_at(row: Row, places: str) -> Any:
    """The value at the first of these places (`Tool`) that has one; None if none has."""
    for place in places.split("|"):
        value: Any = row.value
        for key in place.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _last_user_turn(value: Any) -> str | None:
    """The last message of the user in a prompt; a prompt that is a text stays as it is."""
    if isinstance(value, list):
        turns = [turn for turn in value if isinstance(turn, dict) and turn.get("role") in ("HUMAN", "human", "user")]
        return cells.text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None
    return cells.text_or_none(value)
