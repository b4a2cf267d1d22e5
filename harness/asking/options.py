"""Everything that a person may ask, as values that are checked where they are made. Both doors make them: the command
line and Python. A field is named in errors by `wording.option`, so that each door says it in its own words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from harness.benchmarks.shards import Shard
from harness.client.address.providers import LengthField, Thinking
from harness.client.interface import TransportName
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.records import Api
from harness.core.validation import first_problem
from harness.core.wording import option
from harness.generation.continuing import Mode

MOST_SAMPLES = 100_000
"""Samples of a question; a larger number is a typing mistake."""


def _words(value: Any) -> Any:
    """One text stands for a list of one."""
    return (value,) if isinstance(value, (str, os.PathLike)) else value


def _one(value: Any) -> Any:
    """One number stands for a list of one."""
    return (value,) if isinstance(value, int) else value


def _list(value: Any) -> Any:
    """A text with commas stands for a list."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _object(value: Any) -> Any:
    """A text stands for the JSON object in it."""
    if not isinstance(value, str):
        return value or {}
    try:
        return codec.decode(value, dict[str, Any])
    except codec.DecodeError as error:
        raise ValueError(f"expected a JSON object such as '{{\"top_k\": 20}}' ({error})") from error


def _headers(value: Any) -> Any:
    """A mapping, or texts NAME:VALUE. Their values are secrets, which no sentence may repeat."""
    if isinstance(value, Mapping):
        return tuple(value.items())
    pairs = []
    for given in _words(value) or ():
        name, colon, text = given.partition(":") if isinstance(given, str) else (given[0], ":", given[1])
        if not colon or not name.strip():
            raise UsageError("expected NAME:VALUE", field="header")
        pairs.append((name.strip(), text.strip()))
    return tuple(pairs)


def _served(value: Any) -> Any:
    """An engine's name, or a mapping with `engine` and fields of a server's spec."""
    if isinstance(value, str):
        return {"engine": value}
    if isinstance(value, Mapping) and not value.get("engine"):
        raise ValueError('expected an engine\'s name, or a mapping such as {"engine": "vllm", "tp": 8}')
    return value


def _path(value: Any) -> Any:
    """An unset variable must not mean the current folder."""
    if isinstance(value, str) and not value:
        raise ValueError("the path is empty")
    return value


def _shard(value: Any) -> Any:
    """One of the parts of a run, in one spelling."""
    return str(Shard.parse(value)) if isinstance(value, str) else value


Count = Annotated[int, Field(strict=True, ge=1)]
Positive = Annotated[float, Field(strict=True, gt=0, le=1e12, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, le=1e12, allow_inf_nan=False)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_words, json_schema_input_type=str | tuple[str, ...])]
Listed = Annotated[tuple[str, ...], BeforeValidator(_list, json_schema_input_type=str | tuple[str, ...])]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_object, json_schema_input_type=str | dict[str, Any])]
Headers = Annotated[
    tuple[tuple[str, str], ...],
    BeforeValidator(_headers, json_schema_input_type=str | tuple[str, ...] | dict[str, str]),
]

FilePath = Annotated[Path, BeforeValidator(_path)]


def expected(complaint: str) -> str:
    """Pydantic's complaint about one value, as it reads after the value."""
    return re.sub(r"^Input should be (?=(greater|less) )", "expected a number ", complaint).replace(
        "Input should be", "expected"
    )


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    if not TYPE_CHECKING:  # checkers see the fields as keywords

        def __init__(self, **given: Any) -> None:
            """Raises `UsageError` naming the field."""
            try:
                super().__init__(**given)
            except ValidationError as error:
                known = type(self).model_fields
                problem = first_problem(error, known)
                name = problem.field.partition(".")[0]
                if name not in known:
                    raise UsageError(problem.sentence) from error
                raise UsageError(expected(problem.complaint), field=name, value=given.get(name)) from error

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The options that are given; None leaves one as it is by default. Raises `UsageError` naming the field."""
        return cls(**{name: value for name, value in given.items() if value is not None or name == "seed"})


class WhichServer(_Options):
    """Who is asked: addresses, a hosted provider, a server of ours by name, or one that is started for the purpose.

    base_url: "URL" or "URL,weight=2", several for several endpoints; none: OPENAI_BASE_URL, else the running server.
    provider: a hosted one by name; none: known by the address. server: a name of `harness serve status`.
    serve: an engine's name, or a mapping with `engine` and fields of `server_launchers.spec.ServerSpec`; the server
    is started, and stopped in the end. model: as the server lists it; none: the only one that it lists.
    concurrency: requests in flight; none: what the server states. api_key_env, api_key_file: where the key is; none:
    the provider's variable, else OPENAI_API_KEY. header: NAME:VALUE, sent with each request and stored nowhere.
    ca_file: PEM file of the authorities to trust for https. hash_weights: record the SHA-256 of the weights, too, of a
    server that was started here.
    """

    model: str | None = None
    base_url: Texts = ()
    provider: str | None = None
    server: str | None = None
    serve: Annotated[dict[str, Any], BeforeValidator(_served)] | None = None
    concurrency: Count | None = None
    api_key_env: str | None = None
    api_key_file: FilePath | None = None
    header: Headers = Field(default=(), repr=False)
    ca_file: FilePath | None = None
    hash_weights: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if not all(self.base_url):
            raise UsageError(f"{option('base_url')} is empty: give the server's address, such as http://127.0.0.1:8000")
        if self.serve is not None:
            if self.base_url or self.server or self.provider:
                others = f"{option('base_url')}, {option('server')} and {option('provider')}"
                raise UsageError(f"it starts a server; {others} name one that runs: give one of them", field="serve")
            if not self.model:
                raise UsageError(f"it needs {option('model')}: what the engine is to serve", field="serve")
        if self.base_url and self.server:
            raise UsageError(f"{option('base_url')} and {option('server')} are two ways to name the server: give one")
        if self.provider and self.server:
            raise UsageError(
                f"{option('provider')} is for addresses, {option('server')} for servers of `harness serve`: give one"
            )
        return self


class RunOptions(WhichServer):
    """What a run is to ask, how, and when it is to end; every field may be left out but the benchmark.

    benchmarks: NAME, NAME:SAMPLES or a card's file. data, question_key, answer_key, id_key, split, data_config: a
    file of questions. choices_key: its columns of options, where it is multiple choice: one with a list, or several.
    limit, ids, filter ("column=value"): which questions. shard: "2/8", the part of them
    that this client asks (docs/scaling.md). prompt, system_prompt: by name, or as text.
    samples: of each question of the benchmarks that are not named as NAME:SAMPLES; refused where all are; none: the
    card's. seed: None sends none.
    temperature … stop: the sampling; a preset fills what is not given, the card what the preset leaves open.
    thinking, thinking_tokens, prefill, drop, max_tokens_field, extra_body, chat_template_kwargs, stream, api: how
    requests are spelt.
    endpoints_file: a file of addresses, followed while the run goes on.
    budget_tokens, budget_usd, target_error: where the run ends at a whole round. price_in, price_out: USD per million
    tokens; prices: a YAML file of them by model. rpm, tpm: requests and tokens a minute at most.
    first_token_timeout, idle_timeout: seconds. attempts: requests for one sample.
    disk_reserve: megabytes that stay free; at less the run ends cleanly.
    metrics_port, metrics_host: where the session's figures are served in the format of OpenMetrics; 0: a free port.
    batch: samples are asked by the provider's batches. batch_file: they are written there for another program.
    salvage: which half-written answers are gone on with: none, those of which that is exact, or all that may be.
    continue_from: another tool's half-done file, whose replies are taken over as such. lengths_from: a former run, for
    the order. fit_context, accept_missing, canary, break_lock: see docs/running.md.
    accept_server_change, fingerprint (none: where the engine is one that is run by oneself): see docs/provenance.md.
    probe: examine the servers first, and ask nothing where one would spoil the score (docs/probe.md).

    Wide: it is all that a person may ask, and its fields are the options of the command line and of Python.
    """

    benchmarks: Listed = ()
    samples: Count | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: Texts | None = None
    preset: str | None = None
    seed: int | None = 0
    prompt: str | None = None
    system_prompt: str | None = None
    limit: Count | None = None
    ids: Listed | None = None
    filter: Texts = ()
    shard: Annotated[str, BeforeValidator(_shard)] | None = None
    out: FilePath | None = None
    data: Annotated[str, BeforeValidator(lambda value: os.fspath(value))] | None = None
    question_key: str | None = None
    answer_key: str | None = None
    id_key: str | None = None
    choices_key: Listed = ()
    split: str | None = None
    data_config: str | None = None
    api: Api = "chat"
    endpoints_file: FilePath | None = None
    extra_body: JsonObject = {}
    chat_template_kwargs: JsonObject = {}
    thinking: Thinking | None = None
    thinking_tokens: Count | None = None
    prefill: Annotated[str, Field(min_length=1)] | None = None
    drop: Texts = ()
    max_tokens_field: LengthField | None = None
    stream: bool = True
    transport: TransportName = "auto"
    first_token_timeout: Positive | None = None
    idle_timeout: Positive | None = None
    attempts: Count | None = None
    disk_reserve: NotNegative = 200.0
    budget_tokens: Count | None = None
    budget_usd: Positive | None = None
    target_error: Annotated[float, Field(strict=True, gt=0, lt=0.5)] | None = None
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    prices: FilePath | None = None
    rpm: Positive | None = None
    tpm: Positive | None = None
    batch: bool = False
    batch_file: FilePath | None = None
    salvage: Mode = "exact"
    lengths_from: FilePath | None = None
    continue_from: FilePath | None = None
    fit_context: bool = False
    accept_missing: bool = False
    accept_server_change: bool = False
    canary: bool = True
    fingerprint: bool | None = None
    probe: bool = False
    break_lock: bool = False
    metrics_port: Annotated[int, Field(strict=True, ge=0, le=65535)] | None = None
    metrics_host: str = "127.0.0.1"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.endpoints_file is not None and (self.base_url or self.server or self.serve):
            raise UsageError(
                f"it names the servers: leave out {option('base_url')}, {option('server')} and {option('serve')}",
                field="endpoints_file",
            )
        keys = [
            key
            for key in ("question_key", "answer_key", "id_key", "choices_key", "split", "data_config")
            if getattr(self, key)
        ]
        if keys and not self.data:
            raise UsageError(f"it goes with {option('data')}, a file of questions", field=keys[0])
        if (self.price_in is None) != (self.price_out is None):
            raise UsageError(
                f"{option('price_in')} and {option('price_out')} go together: prompts and replies are both billed"
            )
        if self.shard is not None and self.target_error is not None:
            raise UsageError(
                f"the error of a part is not the run's: leave out {option('shard')}, or give all parts as many samples "
                f"with {option('samples')}",
                field="target_error",
                value=self.target_error,
            )
        if self.batch or self.batch_file is not None:
            self._check_batch("batch" if self.batch else "batch_file")
        if self.price_in is not None and self.prices is not None:
            raise UsageError(f"{option('prices')} and {option('price_in')} both say what tokens cost: give one of them")
        return self

    def _check_batch(self, way: str) -> None:
        """Raises `UsageError` for what means nothing where all is asked at once, and answered hours later."""
        if self.batch and self.batch_file is not None:
            raise UsageError(f"{option('batch')} and {option('batch_file')} are two ways: give one of them")
        others = ("target_error", "budget_tokens", "budget_usd", "rpm", "tpm", "endpoints_file", "serve", "probe")
        if given := [name for name in others if getattr(self, name) not in (None, False)]:
            raise UsageError(f"it does not go with {option(way)}: all samples are asked at once", field=given[0])
        if len(self.base_url) > 1:
            raise UsageError(f"one address goes with {option(way)}", field="base_url")
        if self.batch_file is not None and not self.model:
            raise UsageError(f"it needs {option('model')}: no server is asked for it", field="batch_file")


class JudgeOptions(WhichServer):
    """Who judges, and what. model: the judge. See `verbs.judge.JudgeSettings` for the rest."""

    scope: Literal["undecided", "wrong", "all"] = "undecided"
    prompt: str = "verdict"
    votes: Annotated[int, Field(strict=True, ge=1, le=99)] = 1
    override: bool = False
    temperature: NotNegative | None = None
    max_tokens: Count | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.model:
            raise UsageError("name the model that judges", field="model")
        return self


class ScoreOptions(_Options):
    """How a run is graded; see `scoring.pipeline.Grading`. k: of pass@k beside the powers of two.

    salvaged: also samples that went on after an interruption. also, also_python: a second grader, and who runs it.
    """

    workers: Annotated[int, Field(strict=True, ge=1, le=256)] | None = None
    deadline: Positive | None = None
    fresh: bool = False
    answer_from_reasoning: bool = False
    cut_text: bool = False
    k: Annotated[tuple[Count, ...], BeforeValidator(_one, json_schema_input_type=int | tuple[int, ...])] = ()
    salvaged: bool = True
    also: Literal["math-verify", "sympy"] | None = None
    also_python: FilePath | None = None

    @model_validator(mode="after")
    def _second_grader(self) -> Self:
        if self.also_python is not None and self.also is None:
            raise UsageError(f"{option('also_python')} goes with {option('also', 'GRADER')}")
        return self


class OutputsOptions(_Options):
    """How a file of another tool's outputs is read. Every field may be left out.

    response_key, answer_key, question_key, id_key: columns. tool: who wrote the file, for tools with a form of their
    own. benchmark: the card whose questions these are. written_by: the model that wrote the file. repeats: what equal
    rows are. out: where the grades go, too, one JSON line a sample.
    """

    response_key: str | None = None
    answer_key: str | None = None
    question_key: str | None = None
    id_key: str | None = None
    tool: str | None = None
    benchmark: str | None = None
    written_by: str | None = None
    repeats: Literal["auto", "samples", "questions"] = "auto"
    out: FilePath | None = None

    @property
    def given(self) -> list[str]:
        """Names of the options that say something of a file, in their order."""
        return [name for name in type(self).model_fields if getattr(self, name) not in (None, "auto")]
