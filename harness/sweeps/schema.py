"""The schema of a sweep file.

Its keys are the options of runs, servers, scoring and judges. They are taken from the definitions of these options, so
sweep files accept a new option immediately.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, create_model

from harness.core.option_kinds import COMMAS, TEXTS, Kind
from harness.core.options import Options, options_of
from harness.core.yaml_mapping import HTTPS, SHORT_NAME, Part
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeRules
from harness.options.run import RunOptions
from harness.presets.grading import GradingOptions
from server_launchers.engines.table import ANY_PROGRAM
from server_launchers.spec import ENGINES, OPTIONS, flag_of

OWN = ("benchmarks", "out", "serve")
"""Options of a run that the sweep itself sets, based on its axes, folders and servers."""

JUDGE_OWN = ("provider", "header")
"""Judge options that are not keys of a file's `judge`: headers may contain API keys, and the address identifies the
provider.
"""

DEFAULT_K = 8
"""The k of pass@k in tables if the file does not specify one."""

Count = Annotated[int, Field(strict=True, ge=1)]


def _texts(kind: Kind) -> Any:
    """The type of an option that is a list of strings, written as `kind` allows on the command line or as a list."""
    return Annotated[tuple[str, ...], BeforeValidator(kind.parse, json_schema_input_type=kind.schema)]


Texts, Listed = _texts(TEXTS), _texts(COMMAS)
"""Types of lists of strings: words as on a command line, and comma-separated names."""

Scalar = str | int | float | bool


class Suite(Part, use_attribute_docstrings=True):
    """Turns the sweep into a named set of benchmarks."""

    title: Annotated[str, Field(min_length=1)]
    """Title of the suite."""
    source: Annotated[str, HTTPS] | None = None
    """URL of the publication that the suite reproduces. Scores published there (in results/published/) are shown next
    to the cells, ahead of all other published scores.
    """
    aggregate: Literal["mean"] = "mean"
    """How to average: the mean of the benchmarks' accuracies, with all benchmarks weighted equally. A published mean
    over settings, such as temperatures, is shown next to it.
    """
    mean_of: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the benchmarks to average. Default: all."""
    note: str = ""
    """Note about the suite."""
    conditions: dict[str, dict[str, Scalar]] = Field(default_factory=dict)
    """Conditions specific to each server (`attention_budget`, in tokens), by server name, under the names used in
    published scores. Servers that are not listed have none.
    """


ColumnName = Literal[
    "samples", "accuracy", "reported", "pass_at_k", "reported_at_k", "sources", "vendor", "quoted", "verdict",
    "error", "error_per_question", "reported_error", "tokens", "reported_tokens", "training_samples", "previous",
    "improvement", "reported_improvement",
]  # fmt: skip


class TableOptions(Part, use_attribute_docstrings=True):
    """Layout and columns of the tables."""

    layout: Literal["grid", "models", "benchmarks"] = "grid"
    """grid: one axis as columns, in one table per benchmark (or in a single table if the benchmarks are the columns).
    models: one table per benchmark with a row per model. benchmarks: one table per model with a row per benchmark.
    """
    shown: tuple[ColumnName, ...] = ("accuracy", "reported", "pass_at_k", "reported_at_k", "tokens")
    """Columns of the layouts models and benchmarks, in order. reported: the score in the suite's source, otherwise in a
    source with the run's settings (without a suite: the nearest published score). sources: every source with its score.
    vendor: the score reported by the model's authors. quoted: the scores that the suite's source quotes from others.
    error_per_question: the mean over questions of sd/√n, as in SGLang's benchmark. previous, improvement: the previous
    best score in the source, and the improvement over it in points.
    """
    columns: Literal["models", "servers", "prompts", "sampling", "benchmarks"] | None = None
    """Axis shown as the columns of a grid. Default: benchmarks if there are several, unless the file is a suite or has
    checkpoints; otherwise the first of these with several entries: servers, sampling, prompts, models.
    """
    base: str | None = None
    """Entry to compare the other entries with. Default: the first entry."""
    k: Count | dict[str, Count] = DEFAULT_K
    """Value of k for pass@k: one number, or one per benchmark."""

    def k_of(self, benchmark: str) -> int:
        """The value of k for pass@k on a benchmark."""
        return self.k if isinstance(self.k, int) else self.k.get(benchmark, DEFAULT_K)


def _non_empty(entry: Any) -> Any:
    """The type of a list of at least one entry."""
    return Annotated[list[entry], Field(min_length=1)]


def _described(kind: Any, description: str) -> Any:
    """The type `kind` of a field, with a description for the JSON schema."""
    return Annotated[kind, Field(description=description)]


def _fields(declared: type[Options], without: Collection[str] = ()) -> dict[str, Any]:
    """Name → type of each of these options. without: names of the options to leave out."""
    return {name: option.annotation for name, option in options_of(declared).items() if name not in without}


def _part(title: str, doc: str | None, fields: Mapping[str, Any]) -> type[BaseModel]:
    """The model of a part of the file. fields: name → type; each is optional, without a default in the JSON schema,
    which would show `null`.
    """
    optional: Any = {
        name: (kind, Field(default=None, json_schema_extra=_without_default)) for name, kind in fields.items()
    }
    return create_model(title, __base__=Part, __doc__=doc, **optional)


def _without_default(shown: dict[str, Any]) -> None:
    """Remove the default from a field's JSON schema."""
    shown.pop("default", None)


SPELLED = {flag_of(name)[2:].replace("-", "_"): name for name in OPTIONS}
"""Name of a flag of `harness serve`, with `_` for `-` → the field of the server spec."""


def _server_fields() -> dict[str, Any]:
    """Name → type of the fields of a server spec; a flag's name is accepted in place of a field's name."""
    fields: dict[str, Any] = {
        "engine": _described(Literal[tuple(ENGINES)], "Engine to start. If omitted, no server is started."),
        "model": _described(str, "Model to serve. Default: the cell's model."),
        "extra_flags": _described(Texts, "Flags to pass to the engine unchanged."),
    }
    kinds: dict[str, Any] = {"devices": Listed | tuple[int, ...], "environment": Mapping[str, Scalar]}
    for name, option in OPTIONS.items():
        kind = kinds.get(name, option.annotation)
        if spelled := [theirs for theirs, field in SPELLED.items() if field == name and theirs != name]:
            kind = Annotated[kind, Field(validation_alias=AliasChoices(name, *spelled))]
        fields[name] = _described(kind, option.help)
    return fields


def _entry(title: str, doc: str, short: str, fields: dict[str, Any]) -> Any:
    """The type of an axis entry: a mapping with these fields and a name, or a bare string for the field `short`."""
    model = _part(title, doc, {"name": Annotated[str, SHORT_NAME], **fields})

    def as_mapping(value: Any) -> Any:
        if not isinstance(value, str | dict):
            raise ValueError("expected a string or a mapping")
        return {short: value} if isinstance(value, str) else value

    return Annotated[model, BeforeValidator(as_mapping, json_schema_input_type=str | model)]


Axis = Literal["models", "servers", "prompts", "sampling", "benchmarks"]


@cache
def sweep_model() -> type[BaseModel]:
    """The pydantic model that validates a whole file."""
    run_fields, server_fields = _fields(RunOptions, OWN), _server_fields()
    run, server = _part("Run", "Run options.", run_fields), _part("Server", "Server options.", server_fields)
    models = _entry(
        "Model",
        "A model with its own options. server: options to override on every server for this model.",
        "model",
        run_fields | {"server": server},
    )
    reading = {name: kind for name, kind in _fields(ProbeRules).items() if name in ("read_tokens", "margin")}
    own_program = _described(Texts, "Command line of your own server, used instead of `engine`.")
    servers = _entry(
        "ServerVariant",
        "A server to start for each model. Without `engine`, no server is started. run: options for runs on this "
        "server.",
        "engine",
        server_fields | {ANY_PROGRAM: own_program, "run": run},
    )
    prompts = _entry("PromptVariant", "The prompt for the questions.", "prompt", run_fields)
    sampling = _entry("SamplingVariant", "Sampling settings, or a preset.", "preset", run_fields)
    benchmarks = _entry(
        "BenchmarkEntry",
        "A benchmark: a card name (NAME or NAME:SAMPLES), a card file, or a file of questions.",
        "benchmark",
        run_fields | {"benchmark": str},
    )
    fields = {
        "name": _described(Annotated[str, SHORT_NAME], "Name of the sweep. Default: the file's name."),
        "extends": _described(str, "Suite or sweep file to inherit from. Its keys apply unless this file sets them."),
        "out": _described(Annotated[str, Field(min_length=1)], "Folder for cells and tables. Default: results/NAME."),
        "suite": Suite,
        "run": _described(run, "Options for all runs."),
        "models": _non_empty(models),
        "checkpoints": _described(Texts, "Folders of one model's checkpoints, instead of models. * matches any text."),
        "servers": _non_empty(servers),
        "prompts": _non_empty(prompts),
        "sampling": _non_empty(sampling),
        "repeat": _described(Count, "Number of runs per cell, with the seeds 1, 2, …"),
        "samples": _described(_non_empty(Count), "Sample counts per question. Each cell is run once with each count."),
        "concurrency": _described(
            _non_empty(Count),
            "Maximum numbers of requests in flight. Each cell is run once with each number, to measure a load curve.",
        ),
        "rate": _described(
            _non_empty(Annotated[float, Field(gt=0, le=10_000)]),
            "Mean numbers of requests per second, instead of `concurrency`. Requests arrive at random times (Poisson).",
        ),
        "gpus": _described(Count, "Number of GPUs per server. Required only if the sweep does not start the servers."),
        "benchmarks": _described(
            _non_empty(benchmarks), "Benchmarks to run. Required unless the extended file lists benchmarks."
        ),
        "except": _described(
            list[dict[Axis, str | list[str]]],
            "Cells to exclude. Each item lists entries from one or more axes, and excludes every cell that matches "
            "on all of them.",
        ),
        "score": _part("Score", None, _fields(GradingOptions)),
        "judge": _part("Judge", None, _fields(JudgeOptions, JUDGE_OWN)),
        "table": TableOptions,
        "likelihood": _part("Likelihood", "Check how likely the base model's replies are under each copy.", reading),
    }
    doc = (
        "All combinations of models × servers × prompts × sampling × benchmarks. An omitted axis has one default entry."
    )
    return _part("Sweep", doc, fields)


@cache
def json_schema() -> Mapping[str, Any]:
    """The JSON schema of a sweep file, for editors. Computed once, in a quarter of a second."""
    schema = sweep_model().model_json_schema()
    for part in ("Server", "ServerVariant"):
        properties = schema["$defs"][part]["properties"]
        properties |= {spelled: properties[name] for spelled, name in SPELLED.items() if spelled != name}
    schema["anyOf"] = [{"required": ["benchmarks"]}, {"required": ["extends"]}]
    return schema | {"title": "Sweep", "$schema": "https://json-schema.org/draft/2020-12/schema"}
