"""The request for one sample, and its record. The only place where a reply becomes a `Sample`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from harness.client.fast.event_loop import current_lag
from harness.client.protocol.reply import Reply
from harness.client.spelling import RequestTemplate
from harness.core.codec import sample_seed
from harness.core.records import Question, Sample, Seam
from harness.generation.dispatch.actions import Ask
from harness.generation.plan import Task
from harness.generation.settings import RunSettings


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for one sample. body: JSON, encoded. queued: seconds since the requests were planned."""

    task: Task
    question: Question
    template: RequestTemplate
    seed: int | None
    body: bytes
    queued: float


class Requests:
    """Writes the requests of a session and reads their replies as samples. Used on the network's loop.

    max_tokens: per benchmark, where it was fitted to the server's context; else the sampling's own.
    """

    def __init__(
        self,
        settings: RunSettings,
        questions: Mapping[tuple[str, str], Question],
        max_tokens: Mapping[str, int | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._questions = questions
        self._max_tokens = max_tokens
        self._clock = clock
        self._planned_at = clock()
        self._templates = {name: settings.template(name) for name in settings.benchmarks}
        self._logprobs = bool(settings.spelling.extra_body.get("logprobs"))

    def write(self, task: Task) -> Request:
        """The request for one sample."""
        run_seed = self._settings.seed
        question = self._questions[task.benchmark, task.question_id]
        seed = None if run_seed is None else sample_seed(run_seed, task.question_id, task.sample_index)
        template = self._templates[task.benchmark]
        body = template.body(question, seed, self._max_tokens.get(task.benchmark))
        return Request(task, question, template, seed, body, self._clock() - self._planned_at)

    def max_tokens(self, request: Request) -> int | None:
        """Most tokens that the reply to `request` may have; None where the request does not say."""
        return self._max_tokens.get(request.task.benchmark) or request.template.max_tokens

    def record(self, request: Request, ask: Ask, reply: Reply, seams: tuple[Seam, ...] = ()) -> Sample:
        """The sample that `reply` makes. seams: where the reply goes on from what had been written before."""
        lag = current_lag()
        return Sample(
            benchmark=ask.task.benchmark,
            question_id=ask.task.question_id,
            sample_index=ask.task.sample_index,
            text=reply.text,
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            timing=msgspec.structs.replace(reply.timing, queued=request.queued, lag=lag.p99 if lag else None),
            endpoint=ask.endpoint.base_url,
            server_model=reply.server_model,
            fingerprint=reply.fingerprint,
            request_id=reply.request_id,
            seed=request.seed,
            attempts=ask.attempt,
            prompt_digest=request.question.prompt_digest,
            salvaged_at=seams,
            odd_logprobs=_odd_logprobs(reply) if self._logprobs else None,
        )


def _odd_logprobs(reply: Reply) -> Literal["none", "not numbers"] | None:
    """What is wrong with the log-probabilities of a reply to a request for them."""
    if reply.n_odd_logprobs:
        return "not numbers"
    return "none" if not reply.n_logprobs and (reply.text or reply.reasoning) else None
