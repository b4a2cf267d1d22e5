"""Opens the board of a run that asks by batches.

The board (`board.Board`) gathers requests into files, hands the files to a provider, and waits for the results. The
settings say which provider: a hosted batch service, or another program that answers a file of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.client.address.endpoint import secrets_of
from harness.client.batch_service import BatchService
from harness.core.errors import Sentence
from harness.generation.batching.board import Board, ByBatch
from harness.generation.batching.handing import ServiceBatches
from harness.generation.dispatch.retry import RetryPolicy
from harness.generation.network.requests import Requests
from harness.generation.network.sampler import Host, Sampler, Way
from harness.generation.settings import RunSettings
from harness.runs.batches import BatchLedger
from harness.runs.layout import RunFolder


def by_batch(
    settings: RunSettings,
    folder: RunFolder,
    requests: Callable[[], Requests],
    on_event: Callable[..., None],
    on_status: Callable[[Sentence], None],
) -> Way:
    """Return how a run asks by batches, as the runner needs it.

    A batch can take hours, so the first signal ends the session at once. A failed request is not sent again by the
    dispatcher (`attempts=1`): the board puts it into the next batch. on_event: writes to the run's log. on_status:
    gets a sentence on how far the batches are.
    """
    return Way(
        open=partial(_open_board, settings, folder, requests, on_event, on_status),
        concurrency=settings.concurrency,
        policy=RetryPolicy(attempts=1),
        waits=False,
    )


def _open_board(
    settings: RunSettings,
    folder: RunFolder,
    requests: Callable[[], Requests],
    on_event: Callable[..., None],
    on_status: Callable[[Sentence], None],
    host: Host,
) -> Sampler:
    """Open the board, on the network's loop. Raises `StoreError` if the run's record of its batches is damaged.

    requests: makes the requests. on_event: writes to the run's log. on_status: shows a sentence on the batches'
    progress.
    """
    assert settings.batching is not None
    service = ServiceBatches(
        BatchService(settings.endpoints[0], settings.ca_file, secrets=settings.spelling.secrets),
        BatchLedger(folder),
        settings.batching,
        settings.spelling.path,
        patience=settings.patience.outage,
        on_event=on_event,
    )
    board = Board(
        service,
        host,
        attempts=settings.patience.attempts,
        max_body_bytes=settings.max_body_bytes,
        on_event=on_event,
        on_status=on_status,
        secrets=(*secrets_of(settings.endpoints[0]), *settings.spelling.secrets),
    )
    return ByBatch(requests(), board)
