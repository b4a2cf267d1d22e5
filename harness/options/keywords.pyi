"""The keywords of Python's functions, for type checkers and editors.

Written by `python -m tools.reference` from the declarations in `harness.options`.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from harness.core.literals import (
    ApiName,
    OutputsFormat,
    SecondGraderName,
    Thinking,
    ToolChoice,
    TransportName,
)

FilePath = str | PathLike[str]
Texts = str | Sequence[str]

class RunKeywords(TypedDict, total=False):
    """The fields of `RunOptions`. None leaves an option at its default; `seed=None` sends no seed.

    Wide: a field for each option.
    """

    model: str | None
    base_url: Texts
    provider: str | None
    serve: str | Mapping[str, Any] | None
    api_key_env: str | None
    header: Mapping[str, str] | Texts
    concurrency: int | None
    wait: float | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    max_tokens: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    repetition_penalty: float | None
    stop: Texts | None
    extra_body: str | Mapping[str, Any]
    drop: Texts
    samples: float | None
    limit: int | None
    ids: Texts | None
    filter: Texts
    shard: str | None
    data: FilePath | None
    question_key: str | None
    answer_key: str | None
    choices_key: Texts
    id_key: str | None
    split: str | None
    prompt: str | None
    system_prompt: str | None
    api: ApiName
    transport: TransportName
    preset: str | None
    seed: int | None
    thinking: Thinking | None
    thinking_tokens: int | None
    tool: str | None
    turns: str | Mapping[str, Any] | None
    tool_choice: ToolChoice | None
    parallel_calls: bool | None
    batch: bool
    rpm: float | None
    rate: float | None
    budget_tokens: int | None
    budget_usd: float | None
    target_error: float | None
    timeout: float | None
    attempts: int | None
    fit_context: bool
    prices: str | tuple[float, ...] | None
    out: FilePath | None
    accept_server_change: bool
    canary: bool

class ScoreKeywords(TypedDict, total=False):
    """The fields of `ScoreOptions`. None leaves an option at its default."""

    k: int | Sequence[int]
    workers: int | None
    deadline: float
    sandbox: str | None
    fresh: bool
    answer_from_reasoning: bool
    limits: str | Mapping[str, Any] | None
    also: SecondGraderName | Sequence[SecondGraderName] | None
    also_python: FilePath | None
    response_key: str | None
    answer_key: str | None
    question_key: str | None
    id_key: str | None
    sample_key: str | None
    verdict_key: str | None
    errors: Literal["missing", "wrong"] | None
    tool: OutputsFormat | None
    benchmark: str | None
    written_by: str | None
    out: FilePath | None
    track: Texts
    step: int | None
    series: str | None
    on: str | None

class PlanKeywords(TypedDict, total=False):
    """The fields of `PlanBasis`. None leaves an option at its default."""

    margin: float | None
    accuracy: float | None
    prices: str | tuple[float, ...] | None
    recovery: float | None
    floor: float | None
    limit: int | None
    plots: FilePath | None

class CompareKeywords(TypedDict, total=False):
    """The fields of `CompareOptions`. None leaves an option at its default."""

    margin: float | None
    baseline: FilePath | None

class VerifyKeywords(TypedDict, total=False):
    """The fields of `VerifyOptions`. None leaves an option at its default."""

    model: str | None
    published: FilePath | None

class MergeKeywords(TypedDict, total=False):
    """The fields of `MergeOptions`. None leaves an option at its default."""

    accept_server_change: bool

class ReportKeywords(TypedDict, total=False):
    """The fields of `ReportOptions`. None leaves an option at its default."""

    out: FilePath | None
    plots: FilePath | None

class ExportKeywords(TypedDict, total=False):
    """The fields of `ExportOptions`. None leaves an option at its default."""

    out: FilePath | None
    take: Literal["correct", "all"] | None
    shortest: int | None
    finish_reasons: Texts | None
    distinct: bool | None
    reasoning: bool
    i_know: bool

class GradeKeywords(TypedDict, total=False):
    """The fields of `GradeOptions`. None leaves an option at its default."""

    kind: Literal["auto", "integer", "number", "expression", "multiple", "choice", "text", "program", "calls"]
    relative_tolerance: float
    absolute_tolerance: float
    round_to_reference: bool
    choices: Texts
    tools: str | Sequence[Mapping[str, Any]]
    grader: str
    whole_reply: bool
    deadline: float

class AuditKeywords(TypedDict, total=False):
    """The fields of `AuditOptions`. None leaves an option at its default."""

    samples: int
    undecided: bool
    benchmark: str | None
    who: str | None
    out: FilePath | None
    verdicts: FilePath | None

class ProbeKeywords(TypedDict, total=False):
    """The fields of `ProbeOptions`. None leaves an option at its default."""

    model: str | None
    provider: str | None
    api_key_env: str | None
    header: Mapping[str, str] | Texts
    wait: float | None
    replies: FilePath | None
    reference: str | None
    read_tokens: int
    margin: float
    checks: Texts
    api: ApiName
    context: int | None
    timeout: float
    quick: bool
    seed: int | None
    extra_body: str | Mapping[str, Any]
    drop: Texts
