"""The schema of a sweep's file.

Its keys are the fields of the options of a run, a server, a scoring and a judge. They are taken from the definitions of
these options, so an option that is added there is allowed in a file at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, create_model

from harness.core.options import COMMAS, TEXTS, Kind, Options, options_of
from harness.core.part import HTTPS, SHORT_NAME, Part
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeRules
from harness.options.run import RunOptions
from harness.presets.grading import GradingOptions
from server_launchers.engines.table import ANY_PROGRAM
from server_launchers.spec import ENGINES, OPTIONS, flag_of

OWN = ("benchmarks", "out", "serve")
"""Options of a run that the sweep sets itself: they follow from its axes, its folders and its servers."""

JUDGE_OWN = ("provider", "header")
"""Options of a judge that are not keys of a file's `judge`: headers may hold keys, and the address names a provider."""

DEFAULT_K = 8
"""The k of pass@k in tables of a file that names none."""

Count = Annotated[int, Field(strict=True, ge=1)]


def _texts(kind: Kind) -> Any:
    """The type of an option that is a list of texts, written as `kind` allows on the command line or as a list."""
    return Annotated[tuple[str, ...], BeforeValidator(kind.parse, json_schema_input_type=kind.schema)]


Texts, Listed = _texts(TEXTS), _texts(COMMAS)
"""Types of lists of texts: words as on a command line, and names between commas."""

Scalar = str | int | float | bool


class Suite(Part):
    """Makes a sweep a named set of benchmarks.

    aggregate: mean = the mean of the benchmarks' accuracies, each counted once. mean_of: names of the benchmarks that
    the mean counts; default: all. A published mean over settings (such as temperatures) stands beside it. source: the
    suite's own published numbers are those in results/published/ with this address; they stand beside its cells before
    any others. conditions: name of a server → what it changes of what is measured (`attention_budget`, in tokens), as
    published numbers name it; a server that is not named changes nothing.
    """

    title: Annotated[str, Field(min_length=1)]
    source: Annotated[str, HTTPS] | None = None
    aggregate: Literal["mean"] = "mean"
    mean_of: Annotated[list[str], Field(min_length=1)] | None = None
    note: str = ""
    conditions: dict[str, dict[str, Scalar]] = Field(default_factory=dict)


ColumnName = Literal[
    "samples", "accuracy", "reported", "pass_at_k", "reported_at_k", "sources", "vendor", "quoted", "verdict",
    "error", "error_per_question", "reported_error", "tokens", "reported_tokens", "acceptance_length",
    "tokens_per_second", "gap", "training_samples", "previous", "improvement", "reported_improvement",
]  # fmt: skip


class TableOptions(Part):
    """How the table looks.

    layout: grid = one axis as columns, in a table per benchmark or, with the benchmarks as columns, in one; models =
    a table per benchmark, a row per model; benchmarks = a table per model, a row per benchmark. shown: the columns of
    the layouts models and benchmarks, in order; reported: what the suite's source reports, or else a source with the
    run's settings (of a sweep that is no suite: the nearest published score); sources: every source with its number;
    vendor: what the model's own authors report; quoted: what the suite's source quotes of others; error_per_question:
    the mean over questions of sd/√n, as SGLang's benchmark reports it; gap: of `likelihood`; previous, improvement:
    the earlier best that the source prints, and the points above it. columns: the axis of a grid; default: several
    benchmarks, unless the file is a suite or has checkpoints; else the first of servers, sampling, prompts, models with
    several entries. base: the entry that the others are compared with; default: the first. k: of pass@k, one number or
    one per benchmark.
    """

    layout: Literal["grid", "models", "benchmarks"] = "grid"
    shown: tuple[ColumnName, ...] = ("accuracy", "reported", "pass_at_k", "reported_at_k", "tokens")
    columns: Literal["models", "servers", "prompts", "sampling", "benchmarks"] | None = None
    base: str | None = None
    k: Count | dict[str, Count] = DEFAULT_K

    def k_of(self, benchmark: str) -> int:
        """The k of pass@k for a benchmark."""
        return self.k if isinstance(self.k, int) else self.k.get(benchmark, DEFAULT_K)


def _some(entry: Any) -> Any:
    """The type of a list of at least one entry."""
    return Annotated[list[entry], Field(min_length=1)]


def _described(kind: Any, description: str) -> Any:
    """The type `kind` of a field, with a description for the JSON schema."""
    return Annotated[kind, Field(description=description)]


def _fields(declared: type[Options], without: Collection[str] = ()) -> dict[str, Any]:
    """Name → type of each of these options. without: names of the options to leave out."""
    return {name: option.annotation for name, option in options_of(declared).items() if name not in without}


def _part(title: str, doc: str | None, fields: Mapping[str, Any]) -> type[BaseModel]:
    """The model of a part of the file. fields: name → type; each may be left out, without a default in the JSON
    schema, which would show `null`.
    """
    optional: Any = {
        name: (kind, Field(default=None, json_schema_extra=_without_default)) for name, kind in fields.items()
    }
    return create_model(title, __base__=Part, __doc__=doc, **optional)


def _without_default(shown: dict[str, Any]) -> None:
    """Remove the default from a field's JSON schema."""
    shown.pop("default", None)


SPELT = {flag_of(name)[2:].replace("-", "_"): name for name in OPTIONS}
"""Name of a flag of `harness serve`, with `_` for `-` → the field of a server's spec."""


def _server_fields() -> dict[str, Any]:
    """Name → type of the fields of a server's spec; the name of a flag is accepted for a field's name."""
    fields: dict[str, Any] = {
        "engine": _described(Literal[tuple(ENGINES)], "Leave it out to start no server."),
        "model": _described(str, "Default: the model of the cell."),
        "extra_flags": _described(Texts, "Passed to the engine unchanged."),
    }
    kinds: dict[str, Any] = {"devices": Listed | tuple[int, ...], "environment": Mapping[str, Scalar]}
    for name, option in OPTIONS.items():
        kind = kinds.get(name, option.annotation)
        if spelt := [theirs for theirs, field in SPELT.items() if field == name and theirs != name]:
            kind = Annotated[kind, Field(validation_alias=AliasChoices(name, *spelt))]
        fields[name] = _described(kind, option.help)
    return fields


def _reading_fields() -> dict[str, Any]:
    """Name → type of the options of a probe that say how replies are read."""
    return {name: kind for name, kind in _fields(ProbeRules).items() if name in ("read_tokens", "margin")}


def _entry(title: str, doc: str, short: str, fields: dict[str, Any]) -> Any:
    """The type of an axis' entry: a mapping with these fields and a name, or a bare text for the field `short`."""
    model = _part(title, doc, {"name": Annotated[str, SHORT_NAME], **fields})

    def as_mapping(value: Any) -> Any:
        if not isinstance(value, str | dict):
            raise ValueError("expected a text or a mapping")
        return {short: value} if isinstance(value, str) else value

    return Annotated[model, BeforeValidator(as_mapping, json_schema_input_type=str | model)]


Axis = Literal["models", "servers", "prompts", "sampling", "benchmarks"]


@cache
def sweep_model() -> type[BaseModel]:
    """The pydantic model that checks a whole file."""
    run_fields, server_fields = _fields(RunOptions, OWN), _server_fields()
    run, server = _part("Run", "Options of a run.", run_fields), _part("Server", "A server's spec.", server_fields)
    models = _entry(
        "Model",
        "A model with options of its own; server: fields that it changes in every server's spec.",
        "model",
        run_fields | {"server": server},
    )
    own_program = _described(Texts, "The command line of your own server, in place of engine.")
    servers = _entry(
        "ServerVariant",
        "A server to start for each model; without engine, no server is started. run: options of the runs on this "
        "server.",
        "engine",
        server_fields | {ANY_PROGRAM: own_program, "run": run},
    )
    prompts = _entry("PromptVariant", "The wording of the prompts.", "prompt", run_fields)
    sampling = _entry("SamplingVariant", "Sampling settings, or a preset.", "preset", run_fields)
    benchmarks = _entry(
        "BenchmarkEntry",
        "A card's name (NAME:SAMPLES) or file, or a file of questions.",
        "benchmark",
        run_fields | {"benchmark": str},
    )
    fields = {
        "name": _described(Annotated[str, SHORT_NAME], "Default: the file's name."),
        "extends": _described(str, "A suite, or another sweep's file; its keys hold where this file has none."),
        "out": _described(Annotated[str, Field(min_length=1)], "Default: results/ and the name."),
        "suite": Suite,
        "run": _described(run, "Options of all runs."),
        "models": _some(models),
        "checkpoints": _described(Texts, "Folders of one model's checkpoints, in place of models; * stands for any."),
        "servers": _some(servers),
        "prompts": _some(prompts),
        "sampling": _some(sampling),
        "repeat": _described(Count, "Runs of each cell, with the seeds 1, 2 …"),
        "samples": _described(_some(Count), "Numbers of samples a question, each a run of each cell."),
        "concurrency": _described(
            _some(Count), "Numbers of requests in flight, each a run of each cell: a load curve."
        ),
        "gpus": _described(Count, "GPUs of each server, where the sweep starts none. Default: as started."),
        "benchmarks": _described(_some(benchmarks), "May be left out if the extended file has them."),
        "except": _described(
            list[dict[Axis, str | list[str]]],
            "Cells to leave out: each names entries of some axes, and means all cells of them.",
        ),
        "score": _part("Score", None, _fields(GradingOptions)),
        "judge": _part("Judge", None, _fields(JudgeOptions, JUDGE_OWN)),
        "table": TableOptions,
        "likelihood": _part("Likelihood", "Each copy's server reads its base's replies.", _reading_fields()),
    }
    doc = (
        "Models × servers × prompts × sampling × benchmarks. An axis that is left out has a single entry, the default."
    )
    return _part("Sweep", doc, fields)


@cache
def json_schema() -> Mapping[str, Any]:
    """JSON schema of a sweep's file, for editors. It is made once, in a quarter of a second."""
    schema = sweep_model().model_json_schema()
    for part in ("Server", "ServerVariant"):
        properties = schema["$defs"][part]["properties"]
        properties |= {spelt: properties[name] for spelt, name in SPELT.items() if spelt != name}
    schema["anyOf"] = [{"required": ["benchmarks"]}, {"required": ["extends"]}]
    return schema | {"title": "Sweep", "$schema": "https://json-schema.org/draft/2020-12/schema"}
