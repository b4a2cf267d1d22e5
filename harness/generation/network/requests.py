"""One request per sample: how it is written, sent and continued after a break, and how its reply becomes a record.

Only this module turns a reply into a `Sample`. `Requests` writes requests and reads replies. `OneByOne` sends them, and
continues the written part of a sample whose earlier request broke off (docs/reliability.md).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from harness.benchmarks.questions import QuestionSet
from harness.client.address.endpoint import Endpoint
from harness.client.apis.api import API
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Arriving, Body, Post, Transport, encode_body
from harness.client.loop import current_lag
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import RequestTemplate, loaded
from harness.core.codec import digest, sample_seed
from harness.core.errors import ServerError
from harness.core.images import ImageFolder
from harness.core.records import Question, Sample, Seam, SentCall, Timing
from harness.generation.dispatch.state import Flight
from harness.generation.network.continuation import (
    Continuation,
    WrittenAnew,
    continuation,
    joined_reply,
    written_so_far,
)
from harness.generation.network.partial_replies import CONTINUABLE, REFUSALS, Partial, PartWriter
from harness.generation.settings import RunSettings
from harness.runs.layout import RunFolder
from harness.runs.missing import Task


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """The request for one sample. queued: seconds between planning the session and this request."""

    task: Task
    question: Question
    template: RequestTemplate
    seed: int | None
    body: Body
    """Encoded JSON; for a question with images, a function that writes it, so that no image stays in memory."""
    queued: float

    @property
    def api(self) -> API:
        """The API to use; it also parses tool calls if the question offers tools."""
        api = self.template.spelling.api
        return api.with_calls if self.question.tools else api


@dataclass
class Requests:
    """Writes the requests of a session and reads their replies as samples. Used on the network's loop."""

    settings: RunSettings
    questions: Mapping[str, QuestionSet]
    folder: RunFolder
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._planned_at = self.clock()
        self._templates = {name: self.settings.template(name) for name in self.settings.benchmarks}

    def write(self, task: Task) -> SampleRequest:
        """Write the request for the sample `task`."""
        run_seed = self.settings.seed
        question = self.questions[task.benchmark].question(task.question_id)
        seed = None if run_seed is None else sample_seed(run_seed, task.question_id, task.sample_index)
        template = self._templates[task.benchmark].offering(question.tools or (), question.calling or {})
        body: Body
        if question.images:  # encoded when it is sent, so that the images of waiting requests are not in memory
            body = partial(_body, template, question, seed, self._images(task))
        else:
            body = template.body(question, seed)
        return SampleRequest(task, question, template, seed, body, self.clock() - self._planned_at)

    def loaded(self, request: SampleRequest) -> Question:
        """The question of a request, with the bytes of its images. Raises `StoreError`."""
        return loaded(request.question, self._images(request.task))

    def _images(self, task: Task) -> ImageFolder:
        return ImageFolder(self.folder.benchmark(task.benchmark).images)

    def _timing(self, request: SampleRequest, flight: Flight, reply: Reply) -> Timing:
        """The times of a reply; if its request was planned for a time, measured from that time."""
        gaps = reply.gaps if self.settings.keeps_gaps else msgspec.UNSET
        timing = msgspec.structs.replace(reply.timing, queued=request.queued, lag=current_lag(), gaps=gaps)
        if flight.work.planned_at is None:
            return timing
        planned = time.time() - (self.clock() - flight.work.planned_at)
        late = max(0.0, timing.started - planned)
        names = ("first_token", "last_token", "total")
        later = {name: value + late for name in names if (value := getattr(timing, name)) is not None}
        return msgspec.structs.replace(timing, started=timing.started - late, late=late, **later)

    def record(self, request: SampleRequest, flight: Flight, reply: Reply, seams: tuple[Seam, ...] = ()) -> Sample:
        """Make the sample from `reply`. seams: the points where it continues a part from an earlier request."""
        return Sample(
            benchmark=flight.task.benchmark,
            question_id=flight.task.question_id,
            sample_index=flight.task.sample_index,
            text=reply.text,
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            timing=self._timing(request, flight, reply),
            endpoint=flight.endpoint.base_url,
            server_model=reply.server_model,
            fingerprint=reply.fingerprint,
            request_id=reply.request_id,
            seed=request.seed,
            attempts=flight.attempt,
            prompt_digest=request.question.prompt_digest,
            salvaged_at=seams,
            provider=reply.provider or msgspec.UNSET,
            refusal=reply.refusal or msgspec.UNSET,
            calls=_sent(reply) if request.question.tools else msgspec.UNSET,
        )


def _body(template: RequestTemplate, question: Question, seed: int | None, images: ImageFolder) -> bytes:
    """The body of a request whose question shows images. Raises `StoreError`."""
    return template.body(loaded(question, images), seed)


def _sent(reply: Reply) -> tuple[SentCall, ...]:
    """The tool calls that form a reply's answer."""
    return tuple(SentCall(id=call.id, name=call.name, arguments=call.arguments) for call in reply.calls)


# ---- one request a sample


@dataclass(slots=True, kw_only=True)
class OneByOne:
    """Sends one request per sample, many at once. Used on the network's loop only.

    For a sample with a written part, a continuation of the part is requested first:

        the continuation                     then
        gives a reply                        the sample, with a seam where the part ended
        breaks off (`CONTINUABLE`)           the failure is raised; the part stays for the next request
        is rejected (`REFUSALS`)             the whole sample is requested; the part is dropped if that is answered
        fails otherwise or is doubtful       the part is dropped, and the whole sample is requested

    writer: stores the written parts of samples in flight; None: nothing is stored.
    """

    settings: RunSettings
    requests: Requests
    transport: Transport
    writer: PartWriter | None
    on_event: Callable[..., None]

    async def sample(self, flight: Flight) -> tuple[Sample, Reply]:
        """Send a request; return its sample with the reply that it was made from. Raises `RequestFailed`.

        A partial reply from an earlier attempt is continued if possible; otherwise the whole request is sent.
        """
        task, arriving = flight.task, flight.arriving
        request = self.requests.write(task)
        is_kept = self.writer is not None and isinstance(request.body, bytes)
        checksum = digest(encode_body(request.body).decode("utf-8", "surrogatepass")) if is_kept else ""
        onward = await self._continuation(flight, request, checksum)
        try:
            flight.continues = onward is not None
            if onward is not None:
                self._begin(task, arriving, onward, checksum)
                reply = await self._continued(flight, onward)
                if reply is not None:
                    assert self.writer is not None
                    self.writer.answered(flight)
                    seams = (*onward.part.seams, onward.seam)
                    return self.requests.record(request, flight, reply, seams), reply
                flight.continues = False
            self._begin(task, arriving, onward=None, checksum=checksum)
            reply = await self.send(flight.endpoint, request.api, request.body, arriving)
        except RequestFailed as failure:
            failure.n_events = arriving.count()
            if self.writer is not None:
                self.writer.failed(flight, failure)
                part = self.writer.partials.get(task)
                failure.resumable |= part is not None and len(part.ids) > 0
            raise
        if self.writer is not None:
            self.writer.answered(flight)
        return self.requests.record(request, flight, reply), reply

    async def close(self) -> None:
        """Close the transport's connections."""
        await self.transport.close()

    async def send(self, endpoint: Endpoint, api: API, body: Body, arriving: Arriving) -> Reply:
        """Send a request with the session's deadlines and limits. Raises `RequestFailed`."""
        deadlines, bound = self.settings.deadlines, self.settings.max_body_bytes
        return await self.transport.complete(Post(endpoint, api, body, deadlines, bound, arriving))

    def _begin(self, task: Task, arriving: Arriving, onward: Continuation | None, checksum: str) -> None:
        """Let the writer (the store of half-written samples), if there is one, store this reply while it arrives.

        onward: the continuation being sent; None for a whole request. checksum: digest of the sample's first request.
        """
        if self.writer is not None:
            self.writer.begin(task, arriving, partial(written_so_far, onward, checksum, self.settings.salvage.engine))

    async def _continuation(self, flight: Flight, request: SampleRequest, checksum: str) -> Continuation | None:
        """The request that continues the written part of a sample; None if the whole sample must be requested.

        A part that cannot be continued is dropped. checksum: digest of the whole request's body.
        """
        task, salvage = request.task, self.settings.salvage
        if self.writer is None or not checksum or request.question.tools:
            return None
        if (part := self.writer.to_continue(flight)) is None:
            return None
        tokens_of = Tokenizer(flight.endpoint, salvage.engine, self.settings.model).tokens_of
        try:
            # After a change of the prompt or an option, this would continue a different answer.
            if part.request != checksum:
                raise WrittenAnew("its first request was different")
            # In a thread, because the request to the server's tokenizer blocks.
            return await asyncio.to_thread(
                continuation, part, request.question, request.template, salvage, tokens_of, seed=request.seed
            )
        except (WrittenAnew, ServerError) as why:
            self._drop_written_part(task, part, str(why))
            return None

    async def _continued(self, flight: Flight, onward: Continuation) -> Reply | None:
        """Send a continuation; return the whole reply, or None if the whole sample must be requested: the part was bad
        and is dropped, or the endpoint rejected it (then it is dropped if the whole request is answered).

        Raises `RequestFailed` if the part can still be used.
        """
        assert self.writer is not None
        try:
            return joined_reply(onward, await self.send(flight.endpoint, onward.api, onward.body, flight.arriving))
        except WrittenAnew as why:
            self._drop_written_part(flight.task, onward.part, str(why))
        except RequestFailed as failure:
            if failure.kind in CONTINUABLE:
                raise
            if failure.kind in REFUSALS:
                self.writer.refusal = f"{flight.endpoint.base_url}: {failure.message}"
            else:
                self._drop_written_part(flight.task, onward.part, failure.message)
        return None

    def _drop_written_part(self, task: Task, part: Partial, why: str) -> None:
        """Drop the written part of `task`, which cannot be continued for the reason `why`."""
        assert self.writer is not None
        self.writer.forget(task)
        self.on_event("written_anew", task=list(task), tokens=part.tokens, reason=why)
