"""A sample of several requests, one after the other. What differs is only who speaks after a reply (`_next`).

         ┌───────────── the outputs of its calls, or the question's next turn ◀──┐
         ▼                                                                       │
    ask ─▶ reply ─▶ calls that may run ─▶ each runs by the tool's runner ────────┤
            │       no call that may run, and the question has a next turn ──────┘
            ├─────▶ neither ─▶ the answer, cut if calls were left
            └ too long for the context, from step 2 on ──▶ cut; the turns left get no reply

A truncated reply has no calls (`ReplyParser.finish`). A failed request leaves the conversation unchanged, and the
sample's next request repeats the same step: the model has no memory except the messages. Each finished turn of a
conversation is stored (`runs.turns`), and a later session continues after it; with a tool, whose interpreter is gone,
the sample starts again. `tool_turns` decides when a call runs. Used on the network's loop only.
"""

from __future__ import annotations

import asyncio
import hashlib
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
from harness.core.records import AskedTurn, CallEnd, Key, Message, Sample, SampleStep, Timing, ToolCall, Usage
from harness.core.reply_notes import CONTEXT, MAX_STEPS, REJECTED, limit_of
from harness.core.sanitize import visible
from harness.generation.context import MIN_ROOM, turn_tokens
from harness.generation.dispatch.budget import OutOfBudget
from harness.generation.dispatch.state import Flight
from harness.generation.network.requests import OneByOne, SampleRequest
from harness.generation.network.tool_turns import MEMORY_SHARE, Turns
from harness.generation.settings import RunSettings
from harness.runs.missing import Task
from harness.runs.turns import StoredTurn, TurnFile
from harness.tools.tool import CallRunner, ToolSettings

PER_CORE = 4
"""Maximum number of calls running at the same time per core of this machine; more than one, because some of them
sleep.
"""


@dataclass(eq=False)
class _Talk:
    """The conversation of a sample so far. steps: the steps after which another was asked. calls: calls of the latest
    reply. asked: the question's turns; empty without a conversation. turn: number of the current turn, from 0. n_steps:
    number of the current turn's steps in `steps`. n_stored: number of steps that an earlier session stored.

    tokens: number of new tokens in all steps of the current turn. length: number of tokens in the prompt and the
    latest reply, if the server reports its counts. bound: limit on the new tokens of a step after the first; None:
    no limit is sent. is_fitted: whether the limit was lowered to fit into the context. refused: the latest limit
    with which the server rejected the step as too long. runner: runs the sample's calls, from the first one onward.
    """

    request: SampleRequest
    asked: tuple[AskedTurn, ...] = ()
    turn: int = 0
    n_steps: int = 0
    n_stored: int = 0
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

    @property
    def limit(self) -> int | None:
        """Limit on the new tokens of all steps of the current turn; None: no limit is sent."""
        own = self.asked[self.turn].max_tokens if self.asked else None
        return self.request.template.max_tokens if own is None else own

    def step(self, *, is_last: bool, **more: Any) -> SampleStep:
        """The latest reply with its calls as a step. is_last: its texts are omitted, since the sample has them."""
        reply = self.replies[-1]
        if not is_last:
            more |= {"text": reply.text, "reasoning": reply.reasoning}
        if self.asked:
            more["turn"] = self.turn + 1
        if 0 < self.n_stored == len(self.steps):
            more["resumed"] = True
        return SampleStep(**more, finish_reason=reply.finish_reason, usage=reply.usage, calls=self.calls)

    def go_on(self, step: SampleStep, added: Sequence[Any], *, begins_turn: bool) -> None:
        """Record that a step is followed by another. added: what the next request adds. begins_turn: whether it begins
        the question's next turn.
        """
        self.steps.append(step)
        self.turns += added
        self.refused = None
        self.n_steps += 1
        if begins_turn:
            self.turn, self.n_steps, self.tokens = self.turn + 1, 0, 0


class StepByStep:
    """Sends the requests of samples with a tool and of conversations; those of other benchmarks are passed to `plain`.

    step: bills a step (its flight, its usage, the size of the next request) and returns whether the next step fits into
    the budget. context: the server's context length in tokens, if reported.
    """

    def __init__(
        self, plain: OneByOne, settings: RunSettings, step: Callable[[Flight, Usage, int], bool], context: int | None
    ) -> None:
        self._plain, self._settings, self._step, self._context = plain, settings, step, context
        self._talks: dict[Task, _Talk] = {}
        self._runners: dict[ToolSettings, CallRunner] = {}
        self._files: dict[str, TurnFile] = {}
        self._in_flight: set[Task] = set()
        cores = granted_cores()
        self._threads = ThreadPoolExecutor(PER_CORE * cores, thread_name_prefix="tool")
        memory = int(MEMORY_SHARE * granted_memory())
        self.turns = Turns(memory, cores, PER_CORE * cores, self._in_flight, self._release)

    async def sample(self, flight: Flight) -> tuple[Sample, Reply]:
        """Request a sample; return it with its last reply. Raises `RequestFailed`, and `OutOfBudget`."""
        task = flight.task
        own = self._settings.benchmarks[task.benchmark]
        if not own.has_steps:
            return await self._plain.sample(flight)
        if task not in self._talks:
            request = self._plain.requests.write(task)
            self._talks[task] = talk = _Talk(request, request.question.turns or ())
            if own.tool is None and talk.asked:
                self._resume(talk)
        self._in_flight.add(task)
        try:
            return await self._take_steps(flight, own.tool, self._talks[task])
        finally:
            self._in_flight.discard(task)

    async def close(self) -> None:
        """Close the connections, and end all runners."""
        await self._plain.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for file in self._files.values():
            file.close()
        for runner in self._runners.values():
            await asyncio.to_thread(runner.close)

    async def _take_steps(self, flight: Flight, tool: ToolSettings | None, talk: _Talk) -> tuple[Sample, Reply]:
        """Request one step after another, starting with the step that the conversation has reached."""
        api = talk.request.template.spelling.api
        if tool is not None or self._sends_reasoning(flight.task):
            api = api.with_calls
        while True:
            body: Body = partial(self._body, talk) if talk.request.question.images else self._body(talk)
            arriving, before = Arriving(), flight.arriving.count()
            flight.arriving.count = lambda arriving=arriving, before=before: before + arriving.count()  # type: ignore[misc]
            try:
                talk.add(await self._plain.send(flight.endpoint, api, body, arriving))
            except RequestFailed as failure:
                failure.n_events = arriving.count()
                is_final = failure.kind == "too_long" or (failure.kind == "rejected" and talk.asked)
                if not is_final or not talk.steps:
                    raise
                if failure.kind == "too_long" and talk.bound is not None and talk.bound > MIN_ROOM:
                    talk.refused = talk.bound
                    continue
                return self._ended_early(flight, talk, CONTEXT if failure.kind == "too_long" else REJECTED)
            reply, number = talk.replies[-1], len(talk.steps) + 1
            calls = [
                msgspec.structs.replace(call, id=call.id or f"call_{number}_{n}") for n, call in enumerate(reply.calls)
            ]
            talk.replies[-1] = reply = msgspec.structs.replace(reply, calls=tuple(calls))
            talk.calls = tuple(map(_recorded, calls))
            added, begins_turn = await self._next(flight.task, tool, talk)
            if added is None:
                return self._final_sample(flight, talk, self._finish_reason(tool, talk))
            step = talk.step(is_last=False, timing=self._plain.requests.timing_of_step(reply))
            if begins_turn and tool is None:
                self._store(flight.task, talk, step)
            talk.go_on(step, added, begins_turn=begins_turn)
            if not self._step(flight, reply.usage, len(self._body(talk, with_images=False))):
                self.forget(flight.task)
                raise OutOfBudget
            if begins_turn:
                await asyncio.sleep(self._delay(talk))

    async def _next(self, task: Task, tool: ToolSettings | None, talk: _Talk) -> tuple[Sequence[Any] | None, bool]:
        """Who speaks after the latest reply: (the turns that the next request adds, whether the question's next turn is
        among them); (None, False) if nobody does.
        """
        reply = talk.replies[-1]
        if tool is not None and reply.calls and self._may_call(tool, talk):
            most, form = tool.limits["calls"], talk.request.template.spelling.api.tools
            assert form is not None
            ran = [await self._called(task, tool, call) for call in reply.calls[:most]]
            above = f"not run: more than {most} calls in a reply"
            talk.calls = (*ran, *(_recorded(call, above) for call in reply.calls[most:]))
            return form.answered(reply.turn, [call.output for call in talk.calls]), False
        if talk.turn + 1 < len(talk.asked):
            return self._asked(task, talk), True
        return None, False

    def _may_call(self, tool: ToolSettings, talk: _Talk) -> bool:
        """Whether the latest reply's calls may run: a further step of the turn may be asked, with tokens left."""
        return talk.n_steps + 1 < tool.limits["steps"] and (talk.limit is None or talk.limit - talk.tokens >= 1)

    def _finish_reason(self, tool: ToolSettings | None, talk: _Talk) -> str:
        """Why the sample ended with its latest reply."""
        reason = talk.replies[-1].finish_reason
        if tool is None or not talk.calls:
            return CONTEXT if talk.is_fitted and limit_of(reason) == "tokens" else reason
        return MAX_STEPS if talk.limit is None or talk.limit > talk.tokens else "length"

    def _asked(self, task: Task, talk: _Talk) -> list[Any]:
        """The latest reply as it is sent back, and the question's next turn, both in the API's form."""
        api, reply = talk.request.template.spelling.api, talk.replies[-1]
        assert api.tools is not None
        new, reply_turns = talk.asked[talk.turn + 1].messages, list[Any]()
        if reply.turn.carry and not reply.calls and self._sends_reasoning(task):
            reply_turns = api.tools.answered(reply.turn, [])
        else:  # calls that did not run have no outputs, without which no API accepts them
            new = (Message("assistant", reply.text or ""), *new)
        added: list[Any] = api.prompt(new, "")[api.tools.turns]
        return [*reply_turns, *added]

    def _sends_reasoning(self, task: Task) -> bool:
        settings = self._settings.benchmarks[task.benchmark].turns
        return settings is not None and settings.history == "reasoning"

    def _delay(self, talk: _Talk) -> float:
        """Seconds until the turn that has just begun is asked."""
        settings = self._settings.benchmarks[talk.request.task.benchmark].turns
        own = None if settings is None else settings.delay
        return talk.asked[talk.turn].delay if own is None else own

    # ---- finished turns

    def _request_digest(self, talk: _Talk) -> str:
        """The SHA-256 of a turn's request, apart from what its limit was lowered to."""
        template = talk.request.template
        body = template.body_after_turns(talk.request.question, talk.turns, self._seed(talk), None)
        return hashlib.sha256(body).hexdigest()

    def _file(self, benchmark: str) -> TurnFile:
        if benchmark not in self._files:
            self._files[benchmark] = TurnFile(self._plain.requests.folder.benchmark(benchmark))
        return self._files[benchmark]

    def _store(self, task: Task, talk: _Talk, step: SampleStep) -> None:
        """Store the latest reply, which ends a turn. Raises `StoreError`."""
        carry = talk.replies[-1].carry if self._sends_reasoning(task) else ()
        model, digest = talk.replies[-1].server_model, self._request_digest(talk)
        self._file(task.benchmark).append(
            StoredTurn(
                benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index,
                turn=talk.turn + 1, request=digest, step=step, carry=carry, server_model=model,
            )
        )  # fmt: skip

    def _resume(self, talk: _Talk) -> None:
        """Continue a conversation after its stored turns. Raises `StoreError`."""
        task = talk.request.task
        file = self._file(task.benchmark)
        while talk.turn + 1 < len(talk.asked):
            stored = file.find(Key(*task[1:]), talk.turn + 1, self._request_digest(talk))
            if stored is None or not isinstance(timing := stored.step.timing, Timing):
                break
            step = stored.step
            talk.add(
                Reply(
                    text=step.text or None, reasoning=step.reasoning or None, finish_reason=step.finish_reason,
                    usage=step.usage, timing=timing, carry=stored.carry, server_model=stored.server_model,
                )
            )  # fmt: skip
            talk.n_stored += 1
            talk.go_on(step, self._asked(task, talk), begins_turn=True)

    def _body(self, talk: _Talk, *, with_images: bool = True) -> bytes:
        """The body of the next request, whose new tokens are limited to what is left of the sample's limit.

        with_images: False if only the length of the text is needed.
        """
        request, template = talk.request, talk.request.template
        if not talk.steps and talk.limit == template.max_tokens:
            return encode_body(request.body)
        question = request.question
        if with_images and question.images:
            question = self._plain.requests.loaded(request)
        if talk.limit is not None:
            left = talk.limit - talk.tokens
            talk.bound = self._bound(talk, left)
            talk.is_fitted = talk.bound < left
        return template.body_after_turns(question, talk.turns, self._seed(talk), talk.bound)

    def _seed(self, talk: _Talk) -> int | None:
        """The seed of the next request; None if no seed is sent."""
        run_seed, request, number = self._settings.seed, talk.request, len(talk.steps) + 1
        if run_seed is None or request.seed is None or number == 1:
            return request.seed
        return sample_seed(run_seed, f"{request.question.question_id}\0step {number}", request.task.sample_index)

    def _bound(self, talk: _Talk, left: int) -> int:
        """The limit on the new tokens of the next step. left: tokens left for the sample.

        At first, this is the most that may fit into the context; after a rejection, the least that is sure to fit or
        half of the rejected limit. So no estimate reduces a reply to less than half of its available space.
        """
        least = most = left
        if self._context is not None and talk.length is not None:
            texts = [call.output for call in talk.steps[-1].calls]
            if talk.asked and not talk.n_steps:
                texts = [message.content for message in talk.asked[talk.turn].messages]
            outputs = [turn_tokens(text) for text in texts]
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
        last = talk.step(is_last=True, timing=self._plain.requests.timing_of_step(talk.replies[-1]))
        return self._sample(flight, talk, (*talk.steps, last), finish_reason=finish_reason)

    def _ended_early(self, flight: Flight, talk: _Talk, finish_reason: str) -> tuple[Sample, Reply]:
        """The sample whose next request gets no reply. With turns left, it has no text."""
        if talk.asked:
            return self._sample(flight, talk, talk.steps, finish_reason=finish_reason, text=None, reasoning=None)
        talk.steps.pop()  # the sample's last reply is from the last step whose calls have run
        return self._final_sample(flight, talk, finish_reason)

    def _sample(self, flight: Flight, talk: _Talk, steps: Sequence[SampleStep], **own: Any) -> tuple[Sample, Reply]:
        """The sample with these steps. own: fields of the joined reply."""
        self.forget(flight.task)
        reply = join_replies(talk.replies, **own)
        if 0 < talk.n_stored < len(talk.replies):  # the hours between two sessions are no time of a reply
            timing = _join_timings([each.timing for each in talk.replies[talk.n_stored :]])
            reply = msgspec.structs.replace(reply, timing=timing)
        sample = self._plain.requests.record(talk.request, flight, reply)
        return msgspec.structs.replace(sample, steps=tuple(steps)), reply

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
