"""One sample: build its request, send it, make the record. The only place where a reply becomes a `Sample`.

What was half written of it, in this session or one before, is gone on with where that may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.facts.tokens import Tokenizer
from harness.client.fast.event_loop import current_lag
from harness.client.interface import Arriving, Transport
from harness.client.protocol.payload import RequestTemplate
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.checksums import digest, sample_seed
from harness.core.errors import ServerError
from harness.core.records import Question, Sample, Seam
from harness.generation.comparing import UNLIKE, Unlike, bodies, compared, difference, places
from harness.generation.continuing import Continuation, WrittenAnew, continuation, onward, whole
from harness.generation.network.keeping import GOES_ON, Keeper
from harness.generation.plan import Task
from harness.generation.settings import RunSettings
from harness.runs.inflight import Partial, SampleKey


class Worker:
    """Asks for single samples. Holds what all requests of a run share; used on the network's loop only.

    max_tokens: per benchmark, where it was fitted to the server's context; else the sampling's own.
    keeper: what had been written of samples, and told of what comes; None = nothing is kept.
    """

    def __init__(
        self,
        settings: RunSettings,
        questions: Mapping[tuple[str, str], Question],
        transport: Transport,
        max_tokens: Mapping[str, int | None],
        clock: Callable[[], float] = time.monotonic,
        *,
        keeper: Keeper | None = None,
        on_event: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._settings = settings
        self._questions = questions
        self._transport = transport
        self._max_tokens = max_tokens
        self._clock = clock
        self._planned_at = clock()
        self._keeper = keeper
        self._on_event = on_event
        self._unlike: dict[Task, str] = {}  # what became of a beginning that another model seems to have written
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
        request = digest(body.decode("utf-8", "surrogatepass")) if self._keeper is not None else ""
        arriving = arriving or Arriving()
        found = await self._continued(task, endpoint, question, seed, request, arriving)
        if found is not None:
            reply, seams = found
        else:
            self._begin(task, arriving, None, request)
            reply = await self._send(task, endpoint, template.path, body, arriving)
            seams = ()
        if note := self._unlike.pop(task, ""):
            reply = replace(reply, notes=(*reply.notes, note))
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
            salvaged_at=seams,
            odd_logprobs=_odd_logprobs(reply) if settings.spelling.extra_body.get("logprobs") else None,
        )
        return sample, reply

    async def _send(self, task: Task, endpoint: Endpoint, path: str, body: bytes, arriving: Arriving) -> Reply:
        del task
        settings = self._settings
        return await self._transport.complete(
            endpoint, path, body, settings.deadlines, settings.max_body_bytes, arriving
        )

    def _begin(self, task: Task, arriving: Arriving, going_on: Continuation | None, request: str) -> None:
        if self._keeper is not None:
            self._keeper.begin(task, arriving, partial(onward, going_on, request, self._settings.salvage.engine))

    async def _continued(
        self, task: Task, endpoint: Endpoint, question: Question, seed: int | None, request: str, arriving: Arriving
    ) -> tuple[Reply, tuple[Seam, ...]] | None:
        """The reply that goes on with what had been written of `task`; None where it is to be asked from the start."""
        begun = self._keeper.partials.get(SampleKey(*task)) if self._keeper is not None else None
        if self._keeper is None or begun is None:
            return None
        template = self._templates[task.benchmark]
        salvage = self._settings.salvage
        try:
            if begun.request != request:
                raise WrittenAnew("its request was another one")
            bound = self._max_tokens.get(task.benchmark) or template.max_tokens
            tokens = Tokenizer(endpoint, salvage.engine, self._settings.model, self._settings.ca_file)
            going_on = await asyncio.to_thread(
                continuation, begun, question, template, salvage, tokens, max_tokens=bound, seed=seed
            )
            going_on = await self._compared(going_on, endpoint, template)
            if going_on.seam.compared and not going_on.seam.exact:
                self._unlike[task] = UNLIKE["near"]
            self._begin(task, arriving, going_on, request)
            reply = whole(going_on, await self._send(task, endpoint, going_on.path, going_on.body, arriving))
        except (WrittenAnew, ServerError) as why:
            if isinstance(why, Unlike):
                self._unlike[task] = UNLIKE["exact"]
            self._anew(task, begun, str(why))
        except RequestFailed as failure:
            if failure.kind in GOES_ON:
                raise
            self._anew(task, begun, failure.message)
        else:
            return reply, (*begun.seams, going_on.seam)
        return None

    async def _compared(self, going_on: Continuation, endpoint: Endpoint, template: RequestTemplate) -> Continuation:
        """`going_on` with what the server says of the tokens before its seam, where it says that."""
        settings, salvage = self._settings, self._settings.salvage
        asked = places(going_on, salvage)
        found = []
        for place, body in zip(asked, bodies(asked, going_on.prompt or (), template, salvage), strict=True):
            try:
                reply = await self._transport.complete(
                    endpoint, going_on.path, body, settings.deadlines, settings.max_body_bytes
                )
            except RequestFailed as failure:
                if failure.kind in GOES_ON:
                    raise
                break  # it does not list so many, or knows no such request
            if (one := difference(place, reply.likeliest)) is not None:
                found.append(one)
        return compared(going_on, found, salvage.mode)

    def _anew(self, task: Task, begun: Partial, why: str) -> None:
        """What had been written of `task` is of no use."""
        assert self._keeper is not None
        self._keeper.ended(task)
        self._keeper.forget(task)
        self._on_event("written_anew", task=list(task), tokens=begun.tokens, reason=why)


def _odd_logprobs(reply: Reply) -> Literal["none", "not numbers"] | None:
    """What is wrong with the log-probabilities of a reply to a request for them."""
    if reply.n_odd_logprobs:
        return "not numbers"
    return "none" if not reply.n_logprobs and (reply.text or reply.reasoning) else None
