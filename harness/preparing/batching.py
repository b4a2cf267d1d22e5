"""The settings of a run that asks through a provider's batch API."""

from __future__ import annotations

from dataclasses import replace

from harness.client.address.providers import Provider
from harness.core.errors import UsageError
from harness.generation.settings import MAX_CONCURRENCY, RunSettings, Salvage
from harness.options.run import RunOptions


def by_batch(settings: RunSettings, options: RunOptions, provider: Provider) -> RunSettings:
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
