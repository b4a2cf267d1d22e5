"""One sample: build its request, send it, make the record. The only place where a reply becomes a `Sample`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.fast.event_loop import current_lag
from harness.client.interface import Arriving, Transport
from harness.client.protocol.reply import Reply
from harness.core.checksums import sample_seed
from harness.core.records import Question, Sample
from harness.generation.plan import Task
from harness.generation.settings import RunSettings


class Worker:
    """Asks for single samples. Holds what all requests of a run share; used on the network's loop only.

    max_tokens: per benchmark, where it was fitted to the server's context; else the sampling's own.
    """

    def __init__(
        self,
        settings: RunSettings,
        questions: Mapping[tuple[str, str], Question],
        transport: Transport,
        max_tokens: Mapping[str, int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._questions = questions
        self._transport = transport
        self._max_tokens = max_tokens
        self._clock = clock
        self._planned_at = clock()
        self._templates = {name: settings.template(name) for name in settings.benchmarks}

    async def ask(
        self, task: Task, endpoint: Endpoint, attempts: int, arriving: Arriving | None = None
    ) -> tuple[Sample, Reply]:
        """One request for one sample. Raises `RequestFailed`. attempts: requests made for it, this one included.

        arriving: lets the caller look at how far the reply has come.
        """
        settings = self._settings
        question = self._questions[task.benchmark, task.question_id]
        seed = None if settings.seed is None else sample_seed(settings.seed, task.question_id, task.sample_index)
        template = self._templates[task.benchmark]
        body = template.body(question, seed, self._max_tokens.get(task.benchmark))
        queued = self._clock() - self._planned_at
        reply = await self._transport.complete(
            endpoint, template.path, body, settings.deadlines, settings.max_body_bytes, arriving
        )
        lag = current_lag()
        sample = Sample(
            benchmark=task.benchmark,
            question_id=task.question_id,
            sample_index=task.sample_index,
            text=reply.text,
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            timing=msgspec.structs.replace(reply.timing, queued=queued, lag=lag.p99 if lag else None),
            endpoint=endpoint.base_url,
            server_model=reply.server_model,
            fingerprint=reply.fingerprint,
            request_id=reply.request_id,
            seed=seed,
            attempts=attempts,
            prompt_digest=question.prompt_digest,
        )
        return sample, reply
