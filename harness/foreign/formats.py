"""The formats of other tools' outputs as a table: a format says where a row has what, and `rows` reads it.

To add a format, add an entry to `LAYOUTS`. `outputs.layout_of` finds the layout of any other file by the names of its
columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from harness.benchmarks.column_names import ANSWER_COLUMNS, ASKED_COLUMNS, ID_COLUMNS, QUESTION_COLUMNS
from harness.benchmarks.sources.tables import Row
from harness.core.literals import OutputsFormat as Format
from harness.foreign import row_values
from harness.foreign.row_values import Paths

RESPONSE_COLUMNS = (
    "gen", "generated_responses", "response", "responses", "output", "outputs", "generation", "generations",
    "completion", "completions", "generated_text", "model_output", "prediction", "code",
)  # fmt: skip
"""Usual names of columns with a model's reply, in the order in which they are tried."""
REASONING_COLUMNS = ("reasoning", "reasoning_content", "thinking")
"""Usual names of columns with a model's reasoning."""
GOLD_COLUMNS = ("gold_answer", "gold", "answer", "ground_truth", "expected_answer", "reference", "target", "gt")
"""Usual names of columns with a reference answer."""


class Layout(NamedTuple):
    """Where the rows of a tool's outputs have the question, the reply and so on, after `transform`.

    Places are paths in a row (`column_names.cell_at`), the first of which that has a value counts.
    """

    tool: str
    """The tool's name in messages."""
    marks: Paths = ()
    """Paths that all rows have."""
    question: Paths = ()
    reply: Paths = ()
    choices: Paths = ()
    """The object with the replies in the shape of a chat API, in place of `reply`."""
    answer: Paths = ()
    question_id: Paths = ()
    id_is_certain: bool = True
    """As in `OutputRow`."""
    sample: Paths = ()
    """The sample's number, which must be a whole number."""
    metadata: Paths = ()
    model: Paths = ()
    """The name of the model."""
    once: Paths = ()
    """A value that is unique to a row; further rows with the same value are copies."""
    transform: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """Converts a row to one with these paths."""
    verdicts: Paths = ()
    """The object with the field of the verdicts; empty: the row itself."""
    errors: Literal["missing", "wrong"] = "missing"
    """The outcome, by default, of an attempt without a verdict."""
    filter: str = ""
    """The column that distinguishes copies with different verdicts; `verdict_key` is then METRIC,FILTER."""
    named: frozenset[str | None] = frozenset()
    """The columns that the user names, which have no other use."""
    calls: bool = False
    """Whether the replies are tool calls."""


def _of_lm_eval(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its responses as one list."""
    resps = row["resps"] if isinstance(row["resps"], list) else [row["resps"]]
    return {**row, "resps": [text for resp in resps for text in (resp if isinstance(resp, list) else [resp])]}


def _of_evalscope(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose prompt is the user's turn: `input` behind `**User**: `, or in newer files a list of messages."""
    turn = row.get("input")
    plain = re.sub(r"\A\*\*User\*\*:\s*", "", turn) if isinstance(turn, str) else _last_user_turn(row.get("messages"))
    return {**row, "input": plain, "index": str(row["index"])}


def _of_opencompass(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose prompt is the user's last turn."""
    return {**row, "origin_prompt": _last_user_turn(row.get("origin_prompt"))}


def _last_user_turn(value: Any) -> str | None:
    """The user's last message in a prompt; a prompt that is a string is returned unchanged."""
    if isinstance(value, list):
        turns = [turn for turn in value if isinstance(turn, dict) and turn.get("role") in ("HUMAN", "human", "user")]
        return row_values.text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None
    return row_values.text_or_none(value)


_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's marks: correct, partly correct, incorrect, no answer."""


def _of_inspect(row: dict[str, Any]) -> dict[str, Any]:
    """A row with a single target by itself, with its epoch as a number from 0, and with marks as fractions."""
    target, epoch = row["target"], row_values.count_or_none(row.get("epoch"))
    values = {
        name: row_values.mapping_or_empty(s).get("value")
        for name, s in row_values.mapping_or_empty(row.get("scores")).items()
    }
    return {
        **row,
        "target": target[0] if isinstance(target, list) and len(target) == 1 else target,
        "sample_index": epoch - 1 if epoch else None,
        "scores": {name: _MARKS.get(each, each) if isinstance(each, str) else each for name, each in values.items()},
    }


# fmt: off
_NEMO = Layout(
    "NeMo-Skills", ("generation", "expected_answer", "problem"), question=("problem",), reply=("generation",),
    answer=("expected_answer",), question_id=("id", "unique_id"),
)
_VERDICTS = Layout("verdicts", question_id=("id",))
"""The rows that `verdicts` makes of the files of suites that grade themselves."""
LAYOUTS: dict[Format, Layout] = {
    "llmeval": Layout(
        "LLMEval", ("prompt", "gen", "answer"), question=("prompt",), reply=("gen",), answer=("answer",),
        question_id=("doc_id",), model=("model",),  # `doc_id`: in newer files
    ),
    "limo": Layout(
        "LIMO", ("generated_responses",), question=("question", "problem"), reply=("generated_responses",),
        answer=GOLD_COLUMNS, question_id=("id",),
    ),
    # One line for each of the tool's filters, all with the same responses; `question_id` is written by `harness
    # export`.
    "lm_eval": Layout(
        "lm-evaluation-harness", ("doc_id", "doc", "resps", "target"), reply=("resps",), answer=("target",),
        question=tuple(f"doc.{name}" for name in QUESTION_COLUMNS), question_id=("doc.question_id", "doc_id"),
        once=("doc_id",), transform=_of_lm_eval, filter="filter",
    ),
    "nemo_skills": _NEMO,
    "sgl_eval": _NEMO,
    "opencompass": Layout(
        "OpenCompass", ("prediction", "gold"), question=("origin_prompt",), reply=("prediction",), answer=("gold",),
        question_id=("number",), transform=_of_opencompass,
    ),
    # A resumed evaluation may have written a review twice. Several reviews of a question have the same `group_id`.
    "evalscope": Layout(
        "EvalScope", ("index", "target", "sample_score.score"), question=("input",), answer=("target",),
        reply=("sample_score.score.prediction",), question_id=("sample_score.group_id", "index"), once=("index",),
        transform=_of_evalscope, verdicts=("sample_score.score.value",),
    ),
    "inspect": Layout(
        "Inspect", ("output", "target"), question=("input",), choices=("output",), answer=("target",),
        question_id=("id",), metadata=("metadata",), transform=_of_inspect, verdicts=("scores",),
    ),
    "openai_batch": Layout(
        "an OpenAI batch", ("custom_id", "response"), choices=("response.body",), question_id=("custom_id",),
    ),
    "verdicts": _VERDICTS,
    "swe_bench": _VERDICTS._replace(errors="wrong"),
    "tau2_bench": _VERDICTS._replace(sample=("trial",)),
    "harbor": _VERDICTS._replace(errors="wrong"),
}
"""The formats whose rows are objects."""
CALLS = Layout(
    "tool calls", ("tools",), question=ASKED_COLUMNS, reply=("content", *RESPONSE_COLUMNS),
    answer=(*GOLD_COLUMNS, *ANSWER_COLUMNS), question_id=ID_COLUMNS, calls=True,
)
"""Requests with their replies: tools, calls, optionally a text, the messages and the accepted calls."""
# fmt: on

_RECOGNIZED: tuple[Format, ...] = ("lm_eval", "limo", "llmeval", "evalscope")
"""Formats that are recognized by the columns of a row, in the order in which they are tried."""


def recognize(row: Row) -> Format:
    """The format of a row, by the names of its columns; "columns" if they match no known tool."""
    if {"custom_id", "response"} <= row.value.keys() and isinstance(row.value["response"], dict | None):
        return "openai_batch"
    return next((tool for tool in _RECOGNIZED if not row_values.missing(row, LAYOUTS[tool].marks)), "columns")
