"""Makes the settings of a run from its options, its questions, and what its servers state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from harness.client.asker import Asker
from harness.client.interface import Deadlines
from harness.client.spelling import Spelling
from harness.core.errors import UsageError, as_keyword
from harness.core.money import prices_in
from harness.core.secret import without_secrets
from harness.generation.settings import (
    BEFORE_SERVERS,
    DEFAULT_CONCURRENCY,
    MAX_CONCURRENCY,
    Patience,
    RunSettings,
    Salvage,
    with_neutral,
    with_record,
)
from harness.options.run import RunOptions
from harness.preparing import servers
from harness.preparing.chosen_questions import ChosenQuestions
from harness.preparing.edited_data import resumed
from harness.preparing.looks import Looks
from harness.preparing.servers import ReachedServers
from harness.preparing.watching import Watcher
from harness.runs.manifest import Manifest
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.client.address.providers import Provider
    from harness.core.choices import Thinking


FINGERPRINTED_SAMPLES = 16
"""A run with at least this many samples takes a fingerprint of every server, even of a hosted one, which bills its 350
tokens. A smaller run is a trial, which is compared with no other run.
"""


def settings_of(
    chosen: ChosenQuestions, options: RunOptions, reached: ReachedServers, looks: Looks, watcher: Watcher
) -> RunSettings:
    """The settings of the run, from its options and from what the servers state."""
    salvage = Salvage(mode="exact", engine=looks.engine or "")
    spelling = _spelling(options, looks.model, reached.provider, looks.engine)
    folder = options.folder(looks.model)
    assert folder is not None
    asker = Asker(
        model=looks.model,
        engine=looks.engine,
        spelling=replace(spelling, token_ids=salvage.states_ids(options.api)),
        left_out=frozenset(options.drop),
        deadlines=Deadlines(first_token=options.timeout, idle=options.timeout) if options.timeout else Deadlines(),
    )
    settings = RunSettings(
        asker=asker,
        endpoints=reached.endpoints,
        benchmarks=with_neutral(chosen.benchmarks, folder, asker),
        out=folder.path,
        key_variable=servers.key_variable(options),
        transport=options.transport,
        concurrency=options.concurrency or looks.concurrency or DEFAULT_CONCURRENCY,
        seed=options.seed,
        patience=Patience(attempts=options.attempts) if options.attempts else Patience(),
        fit_context=options.fit_context,
        accept_server_change=options.accept_server_change,
        canary=options.canary,
        fingerprint=_fingerprinted(chosen, reached, looks),
        budget_tokens=options.budget_tokens,
        budget_usd=options.budget_usd,
        prices=prices_in(options.prices) if options.prices else None,
        requests_per_minute=options.rpm,
        salvage=salvage,
    )
    _warn_of_ignored(settings, reached.provider, options.thinking, watcher)
    return _by_batch(settings, options, reached.provider) if options.batch else settings


def _fingerprinted(chosen: ChosenQuestions, reached: ReachedServers, looks: Looks) -> bool:
    """Whether the run takes a fingerprint of its servers: as the option says; without it, if all servers run a known
    engine and belong to no hosted provider, or if the run has at least `FINGERPRINTED_SAMPLES` samples.
    """
    if chosen.options.fingerprint is not None:
        return chosen.options.fingerprint
    names = [facts.host.get("engine") for facts in looks.facts.values()]
    all_known = bool(names) and all(engines.dialect(name).neutral is not None for name in names)
    if all_known and not reached.provider.hosted:
        return True
    benchmarks = chosen.benchmarks
    n_samples = sum(len(each.questions) * benchmarks[each.name].samples for each in chosen.sets)
    return n_samples >= FINGERPRINTED_SAMPLES


def _spelling(options: RunOptions, model: str, provider: Provider, engine: str | None) -> Spelling:
    """The wording of requests: the provider's, overridden by the options. Raises `UsageError` if both set a field."""
    by_provider = provider.spelling(
        model, api=options.api, thinking=options.thinking, thinking_tokens=options.thinking_tokens, engine=engine
    )
    by_options = Spelling().with_fields(options.extra_body)
    for attribute in ("extra_body", "chat_template_kwargs"):
        if set_twice := sorted(getattr(by_options, attribute).keys() & getattr(by_provider, attribute).keys()):
            # Only these options make a provider set fields.
            option = "thinking" if options.thinking is not None else "thinking_tokens"
            both = f"{as_keyword(option, getattr(options, option))} and extra_body"
            raise UsageError(f"{both} both set {', '.join(set_twice)}: give one of them")
    stream_usage = by_provider.stream_usage and "stream_options" not in options.drop
    spelling = replace(by_provider, stream="stream" not in options.drop, stream_usage=stream_usage)
    return spelling.with_fields(options.extra_body)


def _warn_of_ignored(settings: RunSettings, provider: Provider, thinking: Thinking | None, watcher: Watcher) -> None:
    """Warn of fields that the provider ignores. None is left out silently: only the user does that, by `drop`."""
    warnings: list[str] = []
    for benchmark in settings.benchmarks:
        sent = settings.template(benchmark).names(seed=settings.seed is not None)
        warnings += provider.warnings(settings.model, sent, thinking)
    for warning in dict.fromkeys(warnings):
        watcher.warn(warning)


def refuse_other_settings(chosen: ChosenQuestions) -> None:
    """Raise `StoreError` if the run folder is damaged, or if its samples were made with other settings of those that no
    server decides. The session would refuse them with any server, so none has to be started.
    """
    options, folder = chosen.options, chosen.options.folder(chosen.options.model)
    manifest = None if folder is None else Manifest.find(folder)
    if folder is None or manifest is None:
        return
    settings = RunSettings(
        asker=Asker(model=manifest.model, spelling=Spelling(api=options.api)),
        endpoints=(),
        benchmarks=chosen.benchmarks,
        out=folder.path,
        seed=options.seed,
    )
    for question_set in resumed(chosen.sets, folder):
        former = manifest.benchmarks.get(question_set.name)
        if former is not None and folder.benchmark(question_set.name).has_samples():
            # The identity that the session will compare: what a server decides stays as it was, the rest is new.
            now = settings.identity(question_set)
            identity = without_secrets(former.identity) | {field: now.get(field) for field in BEFORE_SERVERS}
            with_record(manifest, question_set, msgspec.structs.replace(former, identity=identity))


def _by_batch(settings: RunSettings, options: RunOptions, provider: Provider) -> RunSettings:
    """`settings`, changed for a run that asks by batches. Raises `UsageError`."""
    if provider.batches is None:
        raise UsageError(f"batches of {provider.name} are not supported: leave this option out", field="batch")
    if len(settings.endpoints) > 1:
        raise UsageError("`batch` takes only one address: leave the others out", field="base_url")
    return replace(
        settings,
        batching=provider.batches,
        # All samples go into one batch, because a batch takes hours, however few requests it has.
        concurrency=options.concurrency or MAX_CONCURRENCY,
        # The result of a batch is one JSON value for each request; its file has no place for a stream.
        asker=replace(settings.asker, spelling=replace(settings.spelling, stream=False, token_ids=False)),
        salvage=Salvage(mode="off"),
        # A fingerprint is asked for by direct requests, at the full price.
        fingerprint=False,
    )
