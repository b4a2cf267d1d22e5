"""The settings of a run that asks through a provider's batch API, or that writes its requests to a file for one."""

from __future__ import annotations

from dataclasses import replace

from harness.asking import servers
from harness.asking.options import RunOptions
from harness.asking.servers import Look, Looks, ReachedServers
from harness.client.address.endpoint import Endpoint
from harness.client.address.providers import Provider
from harness.core.errors import UsageError, option
from harness.generation.settings import MAX_CONCURRENCY, Batching, RunSettings, Salvage


def by_batch(settings: RunSettings, options: RunOptions, provider: Provider) -> RunSettings:
    """`settings`, changed for a run that asks by batches or writes its requests to a file. Raises `UsageError`."""
    if options.batch_file is not None:
        batching = Batching(file=options.batch_file.absolute())
    elif provider.batches is not None:
        batching = Batching(facts=provider.batches)
    else:
        raise UsageError(
            f"batches of {provider.name} are not supported: leave this option out, or write the requests to a file "
            f"with {option('batch_file')}",
            field="batch",
        )
    return replace(
        settings,
        batching=batching,
        # All samples go into one batch, because a batch takes hours, however few requests it has.
        concurrency=options.concurrency or MAX_CONCURRENCY,
        # The result of a batch is one JSON value for each request; its file has no place for a stream.
        asker=replace(settings.asker, spelling=replace(settings.spelling, stream=False, token_ids=False)),
        salvage=Salvage(mode="off"),
        # A fingerprint is asked for by direct requests at the full price; with a file of requests, there is no server.
        fingerprint=False,
    )


def file_as_server(options: RunOptions) -> tuple[ReachedServers, Looks]:
    """A stand-in for the endpoints and their looks when requests are written to a file, so that no server is asked."""
    assert options.batch_file is not None
    assert options.model is not None
    endpoint = Endpoint(f"file://{options.batch_file.absolute()}")
    server = ReachedServers(provider=servers.provider_of(options), endpoints=(endpoint,), about={})
    return server, Looks(options.model, (Look(endpoint=endpoint),))
