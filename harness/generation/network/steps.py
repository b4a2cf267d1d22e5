"""A sample with a tool: one request after the other, until a reply makes no call.

         ┌────────────────── output of each call ◀──────────────────┐
         ▼                                                          │
    ask ─▶ reply ─▶ no call ─────────────────────▶ the answer       │
            │       calls, and no step or token is left ─▶ cut      │
            ├─────▶ calls ─▶ each runs by the tool's runner ────────┘
            └ too long for the context, from step 2 on ──▶ cut

A truncated reply has no calls (`ReplyParser.finish`). A failed request leaves the conversation unchanged, and the
sample's next request repeats the same step: the model has no memory except the messages. `tool_turns` decides when a
call runs. Used on the network's loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec

from harness.client.apis.api import Call
from harness.client.interface import Arriving, Body, encode_body
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.codec import sample_seed
from harness.core.cores import granted_cores, granted_memory
from harness.core.records import CallEnd, Sample, SampleStep, Timing, ToolCall, Usage
from harness.core.reply_notes import CONTEXT, MAX_STEPS, limit_of
from harness.core.sanitize import visible
from harness.generation.context import MIN_ROOM, turn_tokens
from harness.generation.dispatch.budget import OutOfBudget
from harness.generation.dispatch.state import Flight
from harness.generation.network.requests import OneByOne, SampleRequest
from harness.generation.network.tool_turns import MEMORY_SHARE, Turns
from harness.generation.settings import RunSettings
from harness.runs.missing import Task
from harness.tools.tool import CallRunner, ToolSettings

PER_CORE = 4
"""Maximum number of calls running at the same time per core of this machine; more than one, because some of them
sleep.
"""


@dataclass(eq=False)
class _Talk:
    """The conversation of a sample so far. steps: the steps whose calls have run. calls: calls of the latest reply.

    tokens: number of new tokens in all steps. length: number of tokens in the prompt and the latest reply, if the
    server reports its counts. bound: limit on the new tokens of a step after the first; None: no limit is sent.
    is_fitted: whether the limit was lowered to fit into the context. refused: the latest limit with which the server
    rejected the step as too long. runner: runs the sample's calls, from the first one onward.
    """

    request: SampleRequest
    turns: list[Any] = field(default_factory=list)
    steps: list[SampleStep] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    calls: tuple[ToolCall, ...] = ()
    tokens: int = 0
    length: int | None = None
    bound: int | None = None
    is_fitted: bool = False
    refused: int | None = None
    runner: CallRunner | None = None

    def add(self, reply: Reply) -> None:
        """Add the reply of a step: update the sample's token count and the length of the conversation."""
        self.replies.append(reply)
        self.calls = ()
        usage = reply.usage
        self.tokens += usage.completion_tokens or reply.timing.events
        known = usage.prompt_tokens is not None and usage.completion_tokens is not None
        self.length = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) if known else None

    def step(self, *, is_last: bool) -> SampleStep:
        """The latest reply with its calls as a step. is_last: its texts are omitted, since the sample has them."""
        reply = self.replies[-1]
        texts = {} if is_last else {"text": reply.text, "reasoning": reply.reasoning}
        return SampleStep(**texts, finish_reason=reply.finish_reason, usage=reply.usage, calls=self.calls)


class StepByStep:
    """Sends the requests of samples with a tool; requests of other benchmarks are passed to `plain`.

    step: bills a step (its flight, its usage, the size of the next request) and returns whether the next step fits into
    the budget. context: the server's context length in tokens, if reported.
    """

    def __init__(
        self, plain: OneByOne, settings: RunSettings, step: Callable[[Flight, Usage, int], bool], context: int | None
    ) -> None:
        self._plain, self._settings, self._step, self._context = plain, settings, step, context
        self._talks: dict[Task, _Talk] = {}
        self._runners: dict[ToolSettings, CallRunner] = {}
        self._in_flight: set[Task] = set()
        cores = granted_cores()
        self._threads = ThreadPoolExecutor(PER_CORE * cores, thread_name_prefix="tool")
        memory = int(MEMORY_SHARE * granted_memory())
        self.turns = Turns(memory, cores, PER_CORE * cores, self._in_flight, self._release)

    async def sample(self, flight: Flight) -> tuple[Sample, Reply]:
        """Request a sample; return it with its last reply. Raises `RequestFailed`, and `OutOfBudget`."""
        task = flight.task
        tool = self._settings.benchmarks[task.benchmark].tool
        if tool is None:
            return await self._plain.sample(flight)
        if task not in self._talks:
            self._talks[task] = _Talk(self._plain.requests.write(task))
        self._in_flight.add(task)
        try:
            return await self._take_steps(flight, tool, self._talks[task])
        finally:
            self._in_flight.discard(task)

    async def close(self) -> None:
        """Close the connections, and end all runners."""
        await self._plain.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for runner in self._runners.values():
            await asyncio.to_thread(runner.close)

    async def _take_steps(self, flight: Flight, tool: ToolSettings, talk: _Talk) -> tuple[Sample, Reply]:
        """Request one step after another, starting with the step that the conversation has reached."""
        template = talk.request.template
        api, form = template.spelling.api.with_calls, template.spelling.api.tools
        assert form is not None
        most_steps, most_calls = tool.limits["steps"], tool.limits["calls"]
        while True:
            body: Body = partial(self._body, talk) if talk.request.question.images else self._body(talk)
            arriving, before = Arriving(), flight.arriving.count()
            flight.arriving.count = lambda arriving=arriving, before=before: before + arriving.count()  # type: ignore[misc]
            try:
                talk.add(await self._plain.send(flight.endpoint, api, body, arriving))
            except RequestFailed as failure:
                failure.n_events = arriving.count()
                if failure.kind != "too_long" or not talk.steps:
                    raise
                if talk.bound is not None and talk.bound > MIN_ROOM:
                    talk.refused = talk.bound
                    continue
                talk.steps.pop()  # the sample's last reply is from the last step whose calls have run
                return self._final_sample(flight, talk, CONTEXT)
            reply, number = talk.replies[-1], len(talk.steps) + 1
            calls = [
                msgspec.structs.replace(call, id=call.id or f"call_{number}_{n}") for n, call in enumerate(reply.calls)
            ]
            talk.replies[-1] = reply = msgspec.structs.replace(reply, calls=tuple(calls))
            talk.calls = tuple(map(_recorded, calls))
            left = None if template.max_tokens is None else template.max_tokens - talk.tokens
            if not calls:
                by_context = talk.is_fitted and limit_of(reply.finish_reason) == "tokens"
                return self._final_sample(flight, talk, CONTEXT if by_context else reply.finish_reason)
            if number >= most_steps or (left is not None and left < 1):
                return self._final_sample(flight, talk, MAX_STEPS if left is None or left > 0 else "length")
            ran = [await self._called(flight.task, tool, call) for call in calls[:most_calls]]
            above = f"not run: more than {most_calls} calls in a reply"
            talk.calls = (*ran, *(_recorded(call, above) for call in calls[most_calls:]))
            talk.steps.append(talk.step(is_last=False))
            talk.turns += form.answered(reply.turn, [call.output for call in talk.calls])
            talk.refused = None
            if not self._step(flight, reply.usage, len(self._body(talk, with_images=False))):
                self.forget(flight.task)
                raise OutOfBudget

    def _body(self, talk: _Talk, *, with_images: bool = True) -> bytes:
        """The body of the next request, whose new tokens are limited to what is left of the sample's limit.

        with_images: False if only the length of the text is needed.
        """
        request, template = talk.request, talk.request.template
        if not talk.steps:
            return encode_body(request.body)
        question, number = request.question, len(talk.steps) + 1
        if with_images and question.images:
            question = self._plain.requests.loaded(request)
        if template.max_tokens is not None:
            left = template.max_tokens - talk.tokens
            talk.bound = self._bound(talk, left)
            talk.is_fitted = talk.bound < left
        run_seed, seed = self._settings.seed, request.seed
        if run_seed is not None and seed is not None:
            seed = sample_seed(run_seed, f"{question.question_id}\0step {number}", request.task.sample_index)
        return template.body_after_turns(question, talk.turns, seed, talk.bound)

    def _bound(self, talk: _Talk, left: int) -> int:
        """The limit on the new tokens of the next step. left: tokens left for the sample.

        At first, this is the most that may fit into the context; after a rejection, the least that is sure to fit or
        half of the rejected limit. So no estimate reduces a reply to less than half of its available space.
        """
        least = most = left
        if self._context is not None and talk.length is not None:
            outputs = [turn_tokens(call.output) for call in talk.steps[-1].calls]
            room = self._context - talk.length
            least, most = room - sum(each.most for each in outputs), room - sum(each.least for each in outputs)
        if talk.refused is not None:
            most = max(talk.refused // 2, least if least < talk.refused else 0)
        return min(left, max(most, MIN_ROOM))

    async def _called(self, task: Task, settings: ToolSettings, call: Call) -> ToolCall:
        """Run a call with the tool's runner, or state why it cannot be run."""
        if call.name != settings.tool.name:
            why = f"there is no tool {visible(call.name, 100)!r}, only {settings.tool.name}"
            return _recorded(call, why, "unknown tool")
        try:
            arguments = settings.tool.parsed(call.arguments)
        except ValueError as error:
            return _recorded(call, str(error), "unreadable")
        if settings not in self._runners:
            self._runners[settings] = settings.tool.runner(settings)
        runner = self._runners[settings]
        await self.turns.begin(task, runner.most_bytes, runner.least_bytes)
        self._talks[task].runner, held = runner, runner.least_bytes
        try:
            run, loop = partial(runner.run, task, **arguments), asyncio.get_running_loop()
            ran = await loop.run_in_executor(self._threads, run)
            held = ran.memory
        finally:
            self.turns.end(task, held)
        return msgspec.structs.replace(_recorded(call, ran.output, ran.end), seconds=ran.seconds)

    def _final_sample(self, flight: Flight, talk: _Talk, finish_reason: str) -> tuple[Sample, Reply]:
        """The sample, once its last reply has arrived. finish_reason: that reply's, or why there is no further step."""
        self.forget(flight.task)
        reply, steps = join_replies(talk.replies, finish_reason=finish_reason), (*talk.steps, talk.step(is_last=True))
        return msgspec.structs.replace(self._plain.requests.record(talk.request, flight, reply), steps=steps), reply

    def forget(self, task: Task) -> None:
        """Record that the sample has ended or was given up."""
        if (talk := self._talks.pop(task, None)) is not None and talk.runner is not None:
            talk.runner.forget(task)
        self.turns.forget(task)

    def _release(self, task: Task) -> None:
        """End what the runner holds for a sample that is not running a call."""
        if (runner := self._talks[task].runner) is not None:
            runner.lose(task)


def _recorded(call: Call, output: str = "", end: CallEnd = "not run") -> ToolCall:
    return ToolCall(id=call.id, name=call.name, arguments=call.arguments, output=output, end=end)


# ---- the replies of all steps as one


def join_replies(replies: Sequence[Reply], **own: Any) -> Reply:
    """The replies to the steps of one sample, in their order, as one.

    own: fields that the caller has joined. Every other field of a reply, its usage and its timing has a rule in
    `_RULES`; a field without a rule makes every join fail.
    """
    reply: Reply = msgspec.structs.replace(_by_rules(replies), **own)
    return reply


def _by_rules(parts: Sequence[Any]) -> Any:
    """The replies, usages or timings as one, each field by its rule."""
    names = parts[0].__struct_fields__
    return type(parts[0])(**{name: _RULES[name]([getattr(part, name) for part in parts]) for name in names})


def _sum(counts: Sequence[Any]) -> Any:
    """The sum of the parts' reported counts. If any is missing: unset if any is unset, otherwise None."""
    unstated = [count for count in counts if not isinstance(count, int)]
    return sum(counts) if not unstated else msgspec.UNSET if msgspec.UNSET in unstated else None


def _join_timings(timings: Sequence[Timing]) -> Timing:
    """The time from the first request to the last byte. Gaps between tokens are known only for a single request."""
    last, span = timings[-1], timings[-1].started - timings[0].started
    ends = {"total": span + last.total, "last_token": span + (last.last_token or last.total)}
    return msgspec.structs.replace(_by_rules(timings), **ends) if len(timings) > 1 else last


_RULES: dict[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("text", "reasoning", "refusal", "finish_reason", "calls", "carry", "server_model", "fingerprint",
                     "request_id", "provider", "stated_total", "echo", "last_token", "total"), itemgetter(-1)),
    **dict.fromkeys(Usage.__struct_fields__, _sum),
    **dict.fromkeys(("usage", "stated"), _by_rules),
    **dict.fromkeys(("started", "queued", "first_token", "clock", "late", "lag"), itemgetter(0)),
    **dict.fromkeys(("gap_p50", "gap_p99", "stamps"), lambda each: each[0] if len(each) == 1 else None),
    "gaps": lambda each: each[0] if len(each) == 1 else msgspec.UNSET,
    "timing": _join_timings,
    "events": sum,
    "notes": lambda notes: tuple(dict.fromkeys(note for each in notes for note in each)),
}  # fmt: skip
