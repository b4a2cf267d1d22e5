"""Everything that determines what a run requests and how, as one frozen value.

`RunSettings.identity` is the part that must stay the same for all samples of a run; a resume with a different identity
is rejected. `RunSettings.settings_record` is the part that may change from session to session.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for
from harness.client.address.providers import Batches
from harness.client.interface import Deadlines
from harness.client.request_builder import Asker, unset_fields
from harness.client.request_fields import RequestTemplate, Spelling
from harness.core.errors import Hope, StoreError, UsageError
from harness.core.literals import Order, TransportName
from harness.core.number_text import Prices
from harness.core.secret import without_secrets
from harness.core.turn_settings import TurnSettings
from harness.generation.context import may_lower
from harness.runs import RunFolder
from harness.runs.manifest import KEY_VARIABLE, NEUTRAL, BenchmarkRecord, Manifest
from harness.runs.missing import Plan
from harness.tools.tool import ToolSettings

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.presets.sampling import Sampling

DEFAULT_CONCURRENCY = 64
"""Number of requests in flight if neither the user nor the server specifies one."""

MAX_CONCURRENCY = 100_000
"""Maximum number of requests in flight; a larger number is assumed to be a typing mistake."""

SPARE_DESCRIPTORS = 64
"""Number of descriptors for everything except requests: journals, logs, the loop, name lookups."""

MIN_DESCRIPTORS = 24
"""A run does not start if the limit on descriptors is lower than this."""

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Maximum size of one reply in bytes; a longer reply fails as a runaway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSettings:
    """How one benchmark of a run is sampled.

    samples: number per question, at least 1. sampling: the sampling parameters that each request sends. origins: where
    each parameter's value comes from ("options", "preset r1", "card", "default"), for the record. options: the options
    that the user gave, for the record (`BenchmarkRecord.options`). neutral: additional fields that are sent so that the
    server does not apply its own defaults. untaken: names of default values that the API or the model does not accept,
    so that the server chooses them.
    """

    samples: float
    sampling: Sampling
    neutral: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    untaken: tuple[str, ...] = ()
    tool: ToolSettings | None = None
    """The tool offered to each sample."""
    turns: TurnSettings | None = None
    """How its conversations are carried on; None if it has none."""

    @property
    def has_steps(self) -> bool:
        """Whether a sample may take several requests."""
        return self.tool is not None or self.turns is not None

    def plan(self, question_ids: list[str] | None = None) -> Plan:
        """The expected samples; question_ids: a chosen subset, None = all."""
        return Plan(samples=self.samples, question_ids=question_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When to retry and when to give up. All fields except `attempts` are in seconds.

    attempts: failed requests after which a sample is given up (waiting for an endpoint does not count). start_up: the
    session ends if no endpoint answers for this long before its first reply. outage: the same after the first reply, or
    if an endpoint is starting. wait: the user's number for both before the first reply, or None. first_wait,
    longest_wait: the first and the longest limit of the exponential backoff between attempts and between probes of an
    endpoint that is set aside. grace: time for requests in flight to finish after the first Ctrl-C. term_grace: the
    same after SIGTERM or SIGHUP.
    """

    attempts: int = 5
    start_up: float = 120.0
    outage: float = 600.0
    wait: float | None = None
    first_wait: float = 1.0
    longest_wait: float = 60.0
    grace: float = 30.0
    term_grace: float = 8.0

    def before_reply(self, hopes: Iterable[Hope | None]) -> float:
        """How long to wait for the first reply. hopes: why each endpoint may still answer."""
        found = {*hopes}
        if self.wait is not None or found <= {"elsewhere"}:
            return self.wait or 0.0
        return self.outage if "starting" in found else self.start_up


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One run's settings, made from options by `harness.preparing.prepare` and carried out by `generate`.

    benchmarks: settings by the benchmark's name, in the order of the requests. out: the run folder. endpoints: may be
    empty if no sample is missing. concurrency: requests in flight to all endpoints together, divided equally. seed: the
    run's seed, from which each sample's seed is derived; None: no seed is sent. asker: makes the requests.
    key_variable: the environment variable that the user named for the key, for the record. transport: which client
    sends requests.

    fit_context: lower even an explicit max_tokens to fit the server's context, as is done with a default, instead of
    rejecting the run. accept_missing: a run is complete without samples that can never succeed (because the prompt
    exceeds the context). accept_server_change: continue with another model behind the same name. canary: stop if the
    first samples show a broken setup. budget_tokens: completion tokens after which a session ends, at the end of a
    round, so it implies order "rounds". budget_usd: the same in money, according to `prices`. requests_per_minute: a
    limit for all endpoints together. batching: the limits of the provider's batches; None: samples are requested one by
    one. keeps_gaps: record the times between tokens.

    Wide: everything that determines a run's requests is in one value that can be compared and recorded.
    """

    asker: Asker
    endpoints: tuple[Endpoint, ...]
    benchmarks: Mapping[str, BenchmarkSettings]
    out: Path
    key_variable: str | None = None
    transport: TransportName = "http"
    concurrency: int = DEFAULT_CONCURRENCY
    seed: int | None = 0
    max_body_bytes: int = MAX_BODY_BYTES
    patience: Patience = Patience()
    order: Order = "longest"
    fit_context: bool = False
    accept_missing: bool = False
    accept_server_change: bool = False
    canary: bool = True
    budget_tokens: int | None = None
    budget_usd: float | None = None
    prices: Prices | None = None
    requests_per_minute: float | None = None
    requests_per_second: float | None = None
    batching: Batches | None = None
    keeps_gaps: bool = False

    def __post_init__(self) -> None:
        if self.budget_usd is not None and self.prices is None:
            raise UsageError("it needs `prices`.", field="budget_usd", value=self.budget_usd)

    @property
    def model(self) -> str:
        """The model name in requests."""
        return self.asker.model

    @property
    def spelling(self) -> Spelling:
        """How each request is written; body, identity and record are made from it."""
        return self.asker.spelling

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of each reply."""
        return self.asker.deadlines

    def may_lower(self, benchmark: str) -> bool:
        """Whether the benchmark's max_tokens may be lowered to the server's context."""
        return may_lower(self.benchmarks[benchmark].origins, fit_context=self.fit_context)

    def template(self, benchmark: str) -> RequestTemplate:
        """Return what all requests of `benchmark` have in common."""
        own = self.benchmarks[benchmark]
        template = self.asker.template(own.sampling.request_fields(), own.neutral)
        return template if own.tool is None else template.offering([own.tool.offered])

    def identity(self, questions: QuestionSet, fitted_max_tokens: int | None = None) -> dict[str, Any]:
        """Return the settings that all samples of one benchmark must share; a resume with others is rejected.

        fitted_max_tokens: the max_tokens that fits the server's context if it had to be lowered, else None.
        """
        own = self.benchmarks[questions.name]
        neutral, tool, turns = dict(own.neutral), own.tool, own.turns
        return {
            "model": self.model,
            "api": self.spelling.api_name,
            "sampling": own.sampling.request_fields(),
            "fitted_max_tokens": fitted_max_tokens,
            "seed": self.seed,
            "prompt": questions.prompt,
            "prompt_digest": questions.template_digest,
            "system_prompt": questions.system_prompt,
            "dataset_digest": questions.dataset_digest,
            "chat_template_kwargs": without_secrets(dict(self.spelling.chat_template_kwargs)),
            "extra_body": without_secrets(dict(self.spelling.extra_body)),
            # Omitted if empty, so that runs from before these fields keep their identity.
            **({NEUTRAL: neutral} if neutral else {}),
            **({"tool": tool.identity} if tool is not None else {}),
            **({"turns": turns.identity} if turns is not None else {}),
            **({"api_headers": dict(self.spelling.api_headers)} if self.spelling.api_headers else {}),
            **({"calling": dict(self.spelling.calling)} if self.spelling.calling else {}),
        }

    def benchmark_record(self, benchmark: str) -> dict[str, Any]:
        """Return `settings_record`, plus the origins of its sampling values and the values left to the server."""
        own = self.benchmarks[benchmark]
        return {
            **self.settings_record(),
            "sampling_from": dict(own.origins),
            "filled_by_server": [*unset_fields(self.template(benchmark).names(seed=False)), *own.untaken],
        }

    def _endpoint_record(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return an endpoint's URL, the transport of its requests, and its proxy (host and port), if any."""
        proxy = proxy_for(endpoint)
        return {
            "base_url": endpoint.base_url,
            "transport": self.transport,
            "proxy": host_and_port(proxy) if proxy is not None else None,
        }

    def settings_record(self) -> dict[str, Any]:
        """Return the settings that may differ between sessions of a run, without secrets, for the log.

        Raises `UsageError` for an endpoint behind a kind of proxy that no transport supports.
        """
        return {
            "endpoints": [self._endpoint_record(endpoint) for endpoint in self.endpoints],
            # Omitted if there is none, so that the records of all other runs do not change.
            **({} if self.key_variable is None else {KEY_VARIABLE: self.key_variable}),
            "concurrency": self.concurrency,
            "transport": self.transport,
            "stream": self.spelling.stream,
            "stream_usage": self.spelling.stream_usage,
            "max_tokens_field": self.spelling.max_tokens_field,
            "seed_field": self.spelling.seed_field,
            "order": self.order,
            "fit_context": self.fit_context,
            "accept_missing": self.accept_missing,
            "accept_server_change": self.accept_server_change,
            "canary": self.canary,
            "budget_tokens": self.budget_tokens,
            "budget_usd": self.budget_usd,
            "prices": self.prices and {name: usd for name, usd in asdict(self.prices).items() if usd is not None},
            "requests_per_minute": self.requests_per_minute,
            **({} if self.requests_per_second is None else {"requests_per_second": self.requests_per_second}),
            "batch": None if self.batching is None else "provider",
            "deadlines": asdict(self.deadlines),
            "attempts": self.patience.attempts,
        }


# ---- how many requests this machine allows: each in flight holds a socket, and so an open file


def limit_concurrency(concurrency: int) -> int:
    """Return how many requests (at most `concurrency`) may be in flight under the limit on open files.

    Raises the soft limit if the system allows. Raises `UsageError` if the limit is too low for a single request.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = concurrency + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            # A container may forbid raising it, and the real limit of macOS is lower than the stated one.
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return concurrency
    if soft < MIN_DESCRIPTORS:
        raise UsageError(
            f"the open-file limit (ulimit -n) is {soft}, but a run needs {MIN_DESCRIPTORS} plus one per request; "
            f"raise it, for example with `ulimit -n {MIN_DESCRIPTORS + SPARE_DESCRIPTORS + concurrency}`"
        )
    return max(1, min(concurrency, soft - SPARE_DESCRIPTORS))


# ---- samples of other settings

_ROWS = "dataset_digest"
"""The field of a run's identity that changes if any row of the data changes."""

BEFORE_SERVERS = ("sampling", "seed", "prompt", "prompt_digest", "system_prompt", "api", "tool", "turns", _ROWS)
"""The fields of an identity that depend only on options and data. All others may depend on what a server reports."""


def with_record(manifest: Manifest, question_set: QuestionSet, record: BenchmarkRecord) -> Manifest:
    """Return the manifest with this record of the benchmark. Raises `StoreError` if the identity changed, except
    through data that were compared with the stored questions (`QuestionSet.resumes`).
    """
    name = question_set.name
    before = manifest.benchmarks.get(name)
    if before is not None and question_set.resumes is not None and before.identity.get(_ROWS) == question_set.resumes:
        before = msgspec.structs.replace(before, identity=before.identity | {_ROWS: question_set.dataset_digest})
        manifest = msgspec.structs.replace(manifest, benchmarks=manifest.benchmarks | {name: before})
    return manifest.extend(name, record)


# ---- neutral values


def with_neutral(
    benchmarks: Mapping[str, BenchmarkSettings], folder: RunFolder, asker: Asker
) -> dict[str, BenchmarkSettings]:
    """The settings with the servers' neutral values added. A benchmark with stored samples keeps its previous
    values.
    """
    earlier = _stored_neutral_values(folder)
    benchmark_settings = {}
    for name, benchmark in benchmarks.items():
        sent = benchmark.sampling.request_fields()
        # Values that the user sends or deliberately omits are never overwritten.
        fields = {*sent, *asker.left_out, *asker.spelling.extra_body}
        neutral = asker.neutral_fields(sent) if name not in earlier else earlier[name]
        sendable = {field: value for field, value in neutral.items() if field not in fields}
        benchmark_settings[name] = replace(benchmark, neutral=sendable)
    return benchmark_settings


def _stored_neutral_values(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """Benchmark → the neutral values in the requests for its stored samples; only benchmarks with samples."""
    try:
        manifest = Manifest.find(folder)
    except StoreError:  # A damaged manifest, which the session rejects with a reason.
        return {}
    return {
        name: dict(record.identity.get(NEUTRAL, {}))
        for name, record in ({} if manifest is None else manifest.benchmarks).items()
        if folder.benchmark(name).has_samples()
    }
