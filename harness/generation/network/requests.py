"""One request per sample: how it is written and sent, and how its reply becomes a record.

Only this module turns a reply into a `Sample`. `Requests` writes requests and reads replies. `OneByOne` sends them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from harness.benchmarks.questions import QuestionSet
from harness.client.address.endpoint import Endpoint
from harness.client.apis.api import API
from harness.client.interface import Arriving, Body, Post, Transport
from harness.client.loop import current_lag
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import RequestTemplate, loaded
from harness.core.codec import sample_seed
from harness.core.images import ImageFolder
from harness.core.records import Question, Sample, SentCall, Timing
from harness.generation.dispatch.state import Flight
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

    def timing_of_step(self, reply: Reply) -> Timing:
        """The times of one of a sample's requests."""
        gaps = reply.gaps if self.settings.keeps_gaps else msgspec.UNSET
        return msgspec.structs.replace(reply.timing, lag=current_lag(), gaps=gaps)

    def _timing(self, request: SampleRequest, flight: Flight, reply: Reply) -> Timing:
        """The times of a reply; if its request was planned for a time, measured from that time."""
        timing = msgspec.structs.replace(self.timing_of_step(reply), queued=request.queued)
        if flight.work.planned_at is None:
            return timing
        planned = time.time() - (self.clock() - flight.work.planned_at)
        late = max(0.0, timing.started - planned)
        names = ("first_token", "last_token", "total")
        later = {name: value + late for name in names if (value := getattr(timing, name)) is not None}
        return msgspec.structs.replace(timing, started=timing.started - late, late=late, **later)

    def record(self, request: SampleRequest, flight: Flight, reply: Reply) -> Sample:
        """Make the sample from `reply`."""
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
    """Sends one request per sample, many at once. Used on the network's loop only."""

    settings: RunSettings
    requests: Requests
    transport: Transport

    async def sample(self, flight: Flight) -> tuple[Sample, Reply]:
        """Send a request; return its sample with the reply that it was made from. Raises `RequestFailed`."""
        request, arriving = self.requests.write(flight.task), flight.arriving
        try:
            reply = await self.send(flight.endpoint, request.api, request.body, arriving)
        except RequestFailed as failure:
            failure.n_events = arriving.count()
            raise
        return self.requests.record(request, flight, reply), reply

    async def close(self) -> None:
        """Close the transport's connections."""
        await self.transport.close()

    async def send(self, endpoint: Endpoint, api: API, body: Body, arriving: Arriving) -> Reply:
        """Send a request with the session's deadlines and limits. Raises `RequestFailed`."""
        deadlines, bound = self.settings.deadlines, self.settings.max_body_bytes
        return await self.transport.complete(Post(endpoint, api, body, deadlines, bound, arriving))
