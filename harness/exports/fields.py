"""The columns of an exported table of samples: what each holds, and how it is taken from a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import UnsetType

from harness.core import codec
from harness.core.codec import without_lone_surrogates
from harness.exports.choice import ExportedBenchmark, SampleRow
from harness.presets.tool import recorded


class Field(NamedTuple):
    """A column of the table. type: Arrow's name of its type. about: its description. value: takes the column's value
    from a sample.
    """

    name: str
    type: str
    about: str
    value: Callable[[SampleRow], Any]


def _text(value: str | None) -> str | None:
    return None if value is None else without_lone_surrogates(value)


def _json(value: Any) -> str:
    return codec.encode_strictly(value).decode()


FIELDS = (
    Field("benchmark", "string", "name of the benchmark", lambda r: r.question.benchmark),
    Field("question_id", "string", "id of the question within the benchmark", lambda r: r.sample.question_id),
    Field("sample_index", "int32", "number of the sample of its question, from 0", lambda r: r.sample.sample_index),
    Field(
        "question",
        "string",
        "the user's last turn, or the plain prompt, as sent",
        lambda r: _text(r.question.last_turn),
    ),
    Field("references", "list<string>", "accepted reference answers", lambda r: [*map(_text, r.question.references)]),
    Field("kind", "string", "kind of the answer", lambda r: r.question.kind),
    Field("metadata", "string", "level, subject … of the question, as JSON", lambda r: _json(r.question.metadata)),
    Field("text", "string", "the reply as sent; null stays null", lambda r: _text(r.sample.text)),
    Field("reasoning", "string", "thinking that the server set apart", lambda r: _text(r.sample.reasoning)),
    Field("finish_reason", "string", "how the reply ended, as sent; length = cut", lambda r: r.sample.finish_reason),
    Field("verdict", "string", "correct, wrong, no_answer or undecided", lambda r: r.grade and r.grade.verdict),
    Field("correct", "bool", "the verdict is correct", lambda r: r.grade and r.grade.verdict == "correct"),
    Field("extracted", "string", "the answer that was found", lambda r: r.grade and _text(r.grade.extracted)),
    Field("rule", "string", "the rule that decided", lambda r: r.grade and r.grade.rule),
    Field("vote", "string", "canonical form of the answer", lambda r: r.grade and _text(r.grade.vote)),
    Field("grader", "string", "name and version of the grader", lambda r: r.grade and r.grade.grader),
    Field("graded", "string", "the grader's verdict, where a person's stands as verdict", lambda r: r.graded),
    Field("prompt_tokens", "int64", "tokens of the prompt", lambda r: r.sample.usage.prompt_tokens),
    Field("completion_tokens", "int64", "new tokens, thinking included", lambda r: r.sample.usage.completion_tokens),
    Field("reasoning_tokens", "int64", "tokens of the thinking", lambda r: r.sample.usage.reasoning_tokens),
    Field("cached_tokens", "int64", "prompt tokens from the server's cache", lambda r: r.sample.usage.cached_tokens),
    Field("started", "double", "when the request was sent: Unix time in seconds", lambda r: r.sample.timing.started),
    Field("queued", "double", "seconds from plan to request", lambda r: r.sample.timing.queued),
    Field("first_token", "double", "seconds from request to first token", lambda r: r.sample.timing.first_token),
    Field("total", "double", "seconds from request to end", lambda r: r.sample.timing.total),
    Field("endpoint", "string", "base URL that replied; file:NAME = another tool's", lambda r: r.sample.endpoint),
    Field("server_model", "string", "the model's name as the server gave it", lambda r: r.sample.server_model),
    Field("provider", "string", "who answered behind a router", lambda r: r.sample.provider or None),
    Field("fingerprint", "string", "`system_fingerprint`, as sent", lambda r: r.sample.fingerprint),
    Field("request_id", "string", "the server's id of the request", lambda r: r.sample.request_id),
    Field("seed", "int64", "seed of the sample; null = none was sent", lambda r: r.sample.seed),
    Field("attempts", "int32", "requests made for this sample", lambda r: r.sample.attempts),
)


def _points(row: SampleRow, which: int) -> float | None:
    return row.grade.points[which] if row.grade and row.grade.points else None


_OF_A_JUDGE = (
    Field("points", "double", "points that a judge gave", lambda r: _points(r, 0)),
    Field("points_of", "double", "the most points", lambda r: _points(r, 1)),
    Field(
        "confidence",
        "double",
        "as the reply states it, a fraction",
        lambda r: None if r.grade is None or isinstance(r.grade.confidence, UnsetType) else r.grade.confidence,
    ),
)


_STEPS = "the requests of a sample with a tool, with their calls and outputs, as JSON"
_OF_A_TOOL = Field("steps", "string", _STEPS, lambda r: _json(r.sample.steps) if r.sample.steps else None)


def fields_of(benchmarks: Sequence[ExportedBenchmark]) -> tuple[Field, ...]:
    """The columns of a table of samples of these: those of a judge's points, and of a tool, only if any has them."""
    judged = any(grade.points or grade.confidence for each in benchmarks for grade in each.grades.values())
    has_tool = any(recorded(each.record.identity) for each in benchmarks)
    return (*FIELDS, *(_OF_A_JUDGE if judged else ()), *([_OF_A_TOOL] if has_tool else ()))
