"""Makes the settings of a run from its options, its questions, and the information from its servers."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.address.fields import leaving_out
from harness.client.address.providers import Provider
from harness.client.apis.api import API
from harness.client.facts.server_info import ServerInfo
from harness.client.interface import Deadlines, request_headers
from harness.client.request_builder import Asker
from harness.client.request_fields import Spelling, conflicting_fields
from harness.core.errors import UsageError, as_keyword
from harness.core.number_text import prices_in
from harness.core.sanitize import visible
from harness.core.secret import looks_like_a_key, without_secrets
from harness.generation.settings import (
    BEFORE_SERVERS,
    DEFAULT_CONCURRENCY,
    MAX_CONCURRENCY,
    BenchmarkSettings,
    Patience,
    RunSettings,
    with_neutral,
    with_record,
)
from harness.options.run import RunOptions
from harness.preparing.changed_data import resumed
from harness.preparing.run_questions import RunQuestions
from harness.preparing.servers import ReachedServers
from harness.presets.sampling import SERVER_FILLED, sampling_fields
from harness.runs import RunFolder
from harness.runs.manifest import Manifest
from server_launchers.engines import table as engines


def settings_of(questions: RunQuestions, reached: ReachedServers, info: ServerInfo) -> RunSettings:
    """The settings of the run, from its questions with their options and from what the servers report."""
    options = questions.options
    provider = reached.provider
    spelling = _spelling(options, info, provider)
    api, folder = spelling.api, options.folder(info.model)
    assert folder is not None
    if options.batch:
        _check_batch(reached, api)
    untaken = _unaccepted_fields(api, info, folder)
    left_out = _left_out(questions, provider, info, api, untaken)
    benchmarks = {name: _without(each, left_out) for name, each in questions.benchmarks.items()}
    _refuse_unsayable(questions, spelling, untaken)
    deadlines = Deadlines(idle=api.idle)
    asker = Asker(
        model=info.model,
        engine=info.engine,
        spelling=spelling,
        left_out=frozenset({*options.drop, *left_out}),
        deadlines=Deadlines(first_token=options.timeout, idle=options.timeout) if options.timeout else deadlines,
    )
    # All samples go into one batch, because even a batch with few requests takes hours.
    concurrency = MAX_CONCURRENCY if options.batch else info.concurrency or DEFAULT_CONCURRENCY
    return RunSettings(
        asker=asker,
        endpoints=reached.endpoints,
        benchmarks=with_neutral(benchmarks, folder, asker),
        out=folder.path,
        key_variable=reached.key_variable,
        transport=options.transport,
        concurrency=options.concurrency or concurrency,
        seed=None if "seed" in untaken else options.seed,
        patience=Patience(wait=options.wait, attempts=options.attempts or Patience().attempts),
        fit_context=options.fit_context,
        accept_server_change=options.accept_server_change,
        canary=options.canary,
        budget_tokens=options.budget_tokens,
        budget_usd=options.budget_usd,
        prices=prices_in(options.prices) if options.prices else None,
        requests_per_minute=options.rpm,
        requests_per_second=options.rate,
        batching=provider.batches if options.batch else None,
    )


def _check_batch(reached: ReachedServers, api: API) -> None:
    """Raise `UsageError` unless the provider has batches for this API and only one address is used."""
    if reached.provider.batches is None:
        raise UsageError(f"batches are not supported with {reached.provider.name}: omit this option", field="batch")
    if not api.in_batches:
        raise UsageError(f"batches are not supported with `api={api.name}`: omit this option", field="batch")
    if len(reached.endpoints) > 1:
        raise UsageError("`batch` works with only one address: remove the others", field="base_url")


def _unaccepted_fields(api: API, info: ServerInfo, folder: RunFolder) -> frozenset[str]:
    """The fields that the API does not accept on these servers, which may drop them silently; if no server answers, on
    those that the run has recorded.
    """
    if api.takes is None:
        return frozenset()
    hosts = [facts.host for facts in info.facts.values()]
    if not hosts and (manifest := Manifest.find(folder)) is not None:
        hosts = [facts.host for facts in manifest.provenance.servers.values()]
    stated = ((engines.profile(host.get("engine")), str(host.get("version", ""))) for host in hosts or [{}])
    own = {*sampling_fields(), "seed", "chat_template_kwargs"} - api.takes
    return frozenset().union(*(own - profile.obeyed_fields(api.name, version) for profile, version in stated))


def _left_out(
    questions: RunQuestions, provider: Provider, info: ServerInfo, api: API, untaken: frozenset[str]
) -> set[str]:
    """The fields that the API, or the model behind it, does not accept. Raises `UsageError` if the user gave one.

    untaken: the fields that the API does not accept.
    """
    options = questions.options
    origins = {field: origin for each in questions.benchmarks.values() for field, origin in each.origins.items()}
    given = {field: origin not in ("default", "card") for field, origin in origins.items()}
    refused = provider.rejected_fields(info.model, api.name, options.thinking, given)
    for field in sorted(untaken | refused):
        if given.get(field) or (field == "seed" and options.explicit.get("seed") is not None):
            who = visible(info.model, 80) if field in refused else f"this server's api={api.name}"
            by = "" if origins.get(field, "options") == "options" else f" with {leaving_out([field])}"
            raise UsageError(f"{who} does not accept this option: omit it{by}", field=field)
    if api.bound_required and "max_tokens" in options.drop:
        raise UsageError(f"`api={api.name}` needs `max_tokens`: do not drop it", field="drop")
    return {*untaken, *refused}


def _without(benchmark: BenchmarkSettings, left_out: Set[str]) -> BenchmarkSettings:
    """The settings without these sampling fields; the record states that the server chooses their values."""
    sent = benchmark.sampling.request_fields()
    untaken = [field for field in sent if field in left_out]
    origins = {field: origin for field, origin in benchmark.origins.items() if field not in untaken}
    sampling, named = benchmark.sampling.replace(**dict.fromkeys(untaken)), {*untaken} - {*SERVER_FILLED}
    return replace(benchmark, sampling=sampling, origins=origins, untaken=tuple(sorted(named)))


def _refuse_unsayable(questions: RunQuestions, spelling: Spelling, untaken: frozenset[str]) -> None:
    """Raise `UsageError` for a prompt or chat template arguments that the API does not support."""
    if "chat_template_kwargs" in untaken and spelling.chat_template_kwargs:
        why = f"this server's api={spelling.api_name} does not accept chat template arguments: use `api=chat`"
        raise UsageError(why, field="thinking" if questions.options.thinking else "extra_body")
    for each in questions.sets:
        for question in each.questions:
            try:
                spelling.api.check(question)
            except ValueError as error:
                raise UsageError(f"{each.name}: question {visible(question.question_id, 80)} {error}") from error


def _spelling(options: RunOptions, info: ServerInfo, provider: Provider) -> Spelling:
    """The wording of requests: the provider's, overridden by the options. Raises `UsageError` if both set a field."""
    by_provider = provider.spelling(
        info.model,
        api=options.api,
        thinking=options.thinking,
        thinking_tokens=options.thinking_tokens,
        engine=info.engine,
    )
    by_options = Spelling(api_name=options.api).with_fields(options.extra_body)
    for attribute in ("extra_body", "chat_template_kwargs"):
        if set_twice := sorted(conflicting_fields(getattr(by_options, attribute), getattr(by_provider, attribute))):
            # Only these options make a provider set fields.
            option = "thinking" if options.thinking is not None else "thinking_tokens"
            both = f"`{as_keyword(option, getattr(options, option))}` and `extra_body`"
            raise UsageError(f"{both} both set {', '.join(set_twice)}: use one of them")
    spelling = by_provider.with_fields(options.extra_body)
    # The headers that the API needs, as they will be sent. They are recorded, since a version is not secret.
    sent = request_headers(Endpoint("", headers=options.header), spelling.api)
    headers = {name.lower(): value for name, value in sent.items() if name.lower() in spelling.api.headers}
    if of_a_key := [name for name, value in headers.items() if looks_like_a_key(value)]:
        raise UsageError(f"{of_a_key[0]} must contain a version, but its value looks like a key", field="header")
    return replace(
        spelling,
        # A batch result is one JSON value per request, so its file cannot have a stream.
        stream="stream" not in options.drop and not options.batch,
        stream_usage=by_provider.stream_usage and "stream_options" not in options.drop,
        api_headers=headers,
        calling=options.calling,
    )


def refuse_other_settings(questions: RunQuestions) -> None:
    """Raise `StoreError` if the run folder is damaged or if its samples were made with other settings that do not
    depend on the server. The session would reject these with any server, so there is no need to start one.
    """
    options, folder = questions.options, questions.options.folder(questions.options.model)
    manifest = None if folder is None else Manifest.find(folder)
    if folder is None or manifest is None:
        return
    settings = RunSettings(
        asker=Asker(model=manifest.model, spelling=Spelling(api_name=options.api, calling=options.calling)),
        endpoints=(),
        benchmarks=questions.benchmarks,
        out=folder.path,
        seed=options.seed,
    )
    for question_set in resumed(questions.sets, folder):
        former = manifest.benchmarks.get(question_set.name)
        if former is not None and folder.benchmark(question_set.name).has_samples():
            # The identity that the session will compare: fields that depend on a server stay the same, the rest is new.
            now = settings.identity(question_set)
            # With some APIs, the server determines which sampling fields it accepts.
            decided = ("sampling", "seed") if settings.spelling.api.takes is not None else ()
            known = [field for field in BEFORE_SERVERS if field not in decided]
            identity = without_secrets(former.identity) | {field: now.get(field) for field in known}
            with_record(manifest, question_set, msgspec.structs.replace(former, identity=identity))
