"""Checks tool calls: they are well-formed, fit the tool's schema, are the same in a stream and in a whole reply, and
come only where the request allows them.

`wrong` judges one reply; the check counts the wrong ones of many, and states their rate with Wilson's 95 % interval. A
model that calls nothing may have been trained without tools, so the check is then untested.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from harness.client.facts.tokens import THINK, THINK_END
from harness.core import codec
from harness.core.inert import quoted
from harness.core.nouns import in_points
from harness.scoring.intervals import wilson
from harness.verbs.probe import exact
from harness.verbs.probe.asking import Inquiry, ProbedServer, ProbeReply, Refused, ToolCall
from harness.verbs.probe.findings import Check, Outcome, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import Subject

CALLS = 200
"""Number of whole replies whose calls are judged. If none of 200 is wrong, the rate of wrong calls is at most 1.9 %
(upper end of Wilson's 95 % interval).
"""

STREAMS = 8
"""Number of streams that are compared with whole replies."""

TRIALS = 3
"""If this many replies bring no call, the model is not asked again."""

MAX_WRONG = 0.05
"""The check fails if the lower end of the 95 % interval of the rate of wrong calls is above this fraction; wrong calls
below it are a warning.
"""

MAX_TOKENS = 512
"""Bound of a reply, in tokens."""

CITIES = ("Oslo", "Lima", "Nairobi", "Hanoi", "Quito", "Perth", "Tunis", "Osaka", "Turin", "Accra")

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city on the coming days.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "days", "unit"],
            "additionalProperties": False,
        },
    },
}
TIME: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time of day in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
TOOLS = (WEATHER, TIME)


class _CallDelta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class _CallChoice(msgspec.Struct):
    finish_reason: str | None = None
    delta: _CallDelta = msgspec.field(default_factory=_CallDelta)


class _CallEvent(msgspec.Struct):
    choices: list[_CallChoice] = []


class Called(msgspec.Struct, frozen=True):
    """The tool calls of a reply. calls: (name, arguments as JSON text) in their order. text: the reply's text. reason:
    its finish_reason; empty for none.
    """

    calls: tuple[tuple[str, str], ...]
    text: str
    reason: str


def called(reply: ProbeReply) -> Called:
    """The calls of a whole reply."""
    calls = tuple((call.function.name or "", call.function.arguments or "") for call in reply.first.calls)
    return Called(calls, reply.first.content, reply.first.finish_reason or "")


def called_in(stream: bytes) -> Called:
    """Join the tool calls in a stream's events, with its text and finish reason. Raises `codec.DecodeError`."""
    lines = [line[5:].strip() for line in stream.splitlines() if line.startswith(b"data:")]
    calls: dict[int, tuple[str, str]] = {}
    text, reason = "", ""
    # The last event, [DONE], is no object.
    for event in (codec.decode(line, _CallEvent) for line in lines if line.startswith(b"{")):
        for choice in event.choices[:1]:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or ():
                name, arguments = calls.get(part.index, ("", ""))
                calls[part.index] = (name + (part.function.name or ""), arguments + (part.function.arguments or ""))
    return Called(tuple(calls[i] for i in sorted(calls)), text, reason)


def wrong(reply: Called) -> str | None:
    """Say what is wrong with a reply's tool calls; None if nothing is, or if it calls no tool."""
    # Checked without a schema library: the two schemas are small, and less code then reads the text of a server that
    # nobody trusts.
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    for name, arguments in reply.calls:
        if name not in schemas:
            return "a tool that does not exist"
        try:
            values: Any = codec.decode(arguments.encode())
        except codec.DecodeError:
            return "arguments that are no JSON"
        if not isinstance(values, dict) or not _fits(values, schemas[name]):
            return "arguments that break the schema"
    if reply.calls and reply.reason != "tool_calls":
        return "a finish_reason other than tool_calls"
    if reply.calls and (THINK in reply.text or THINK_END in reply.text):
        return "reasoning in the text beside the calls"
    if not reply.calls and any(
        mark in reply.text for mark in ('"arguments"', "<tool_call", "<function", "get_weather(")
    ):
        return "a call in the text"
    return None


def _fits(values: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether the values obey our own two schemas: types, bounds, choices, and no name too many or too few."""
    fields = schema["properties"]
    if set(values) - set(fields) or set(schema["required"]) - set(values):
        return False
    for name, value in values.items():
        field = fields[name]
        kind = int if field["type"] == "integer" else str
        # A bool is an int in Python, but no integer in a JSON schema.
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        if "enum" in field and value not in field["enum"]:
            return False
        if isinstance(value, int) and not field["minimum"] <= value <= field["maximum"]:
            return False
    return True


def _body(subject: Subject, city: str, **fields: Any) -> dict[str, Any]:
    """The body of a request that asks for a city's weather and offers both tools. fields: replace its usual fields."""
    text = f"What will the weather be in {city} on the next 3 days, in celsius? Use the tool."
    common = {"max_tokens": MAX_TOKENS, "tools": list(TOOLS), "tool_choice": "auto"}
    return Inquiry(text, {**common, **fields}).body(subject.server.asker, stream=bool(fields.get("stream")))


def _whole(subject: Subject, city: str, **fields: Any) -> Called | None:
    """The calls of tools in one greedy reply that is not streamed; None if the server refuses the request."""
    try:
        return called(subject.server.whole(_body(subject, city, temperature=0, **fields)))
    except Refused:
        return None


SENT = f"{CALLS} requests with two tools at temperature 0.7"


def _many(subject: Subject) -> list[Called] | str:
    """The tool calls of `CALLS` sampled replies, without refused requests; or a text that says why there are none.

    Notes the number of right calls in `subject`.
    """
    rng = random.Random(subject.seed)  # noqa: S311 - no secret
    subject.seed += 1
    bodies = [_body(subject, rng.choice(CITIES), temperature=0.7, seed=rng.randrange(2**31)) for _ in range(CALLS)]
    first = subject.server.many(bodies[:TRIALS])
    if any(isinstance(answer, Refused) for answer in first):
        return "a request with tools is refused"
    replies = [called(answer) for answer in first if not isinstance(answer, Refused)]
    # The other requests are worth their tokens only if the model calls tools at all.
    if not any(reply.calls or wrong(reply) for reply in replies):
        return f"the model calls no tool in {TRIALS} replies"
    rest = subject.server.many(bodies[TRIALS:])
    if subject.server.ended:
        return subject.server.ended
    replies += [called(answer) for answer in rest if not isinstance(answer, Refused)]
    subject.n_right_calls = sum(bool(reply.calls) and wrong(reply) is None for reply in replies)
    return replies


def _calls(subject: Subject) -> Seen:
    """Check, over many sampled replies, that the model's tool calls arrive whole and fit the tools' schemas."""
    sent, replies = SENT, _many(subject)
    if isinstance(replies, str):
        return untested(sent, replies)
    faults = Counter(fault for fault in map(wrong, replies) if fault is not None)
    # A server that takes most requests and refuses some has failed to parse its own model's calls.
    n_refused = CALLS - len(replies)
    if n_refused:
        faults["a refusal"] += n_refused
    n_wrong = faults.total()
    ends = wilson(np.array(n_wrong / CALLS), np.array(CALLS))
    low, high = float(ends.low), float(ends.high)
    n_none = sum(not reply.calls and wrong(reply) is None for reply in replies)
    came = f"{n_wrong} of {CALLS} replies are wrong ({low:.1%} to {high:.1%}); {n_none} call nothing"
    if not n_wrong:
        return sound(sent, came)
    kinds = ", ".join(f"{fault} ×{n}" for fault, n in faults.most_common())
    came = f"{came}: {kinds}"
    return spoils(sent, came) if low > MAX_WRONG else warns(sent, came)


def against(server: ProbedServer, named: str) -> Check:
    """The check that the probed server makes right calls as often as the reference `server`.

    named: the reference's name in messages.
    """

    def look(subject: Subject) -> Seen:
        """Check that this server calls the right tools as often as the reference does."""
        sent = f"{SENT}, by both models"
        theirs = Subject(server, subject.seed)
        for name, caller in (("the probed server", subject), (f"the reference {named}", theirs)):
            # An earlier check may have counted the probed server's right calls already.
            if caller.n_right_calls is None:
                replies = _many(caller)
                if isinstance(replies, str):
                    return untested(sent, f"{name}: {replies}")
        # Right calls are compared, not wrong ones: a reply without a call is of no use to an agent either.
        ours, true = subject.n_right_calls or 0, theirs.n_right_calls or 0
        low, high = exact.difference(ours, CALLS, true, CALLS)
        came = (
            f"{ours} of {CALLS} replies call rightly, {true} of {CALLS} of {named}: "
            f"{in_points((ours - true) / CALLS)} points ({in_points(low)} to {in_points(high)})"
        )
        # More right calls than the reference makes are odd, but lower no score.
        outcome: Outcome = "spoils" if ours < true else "warns"
        p = exact.two_shares(ours, true, CALLS)
        return Seen(outcome=outcome, sent=sent, came=came, p=p, beside="tool calls")

    return Check(
        name="tool calls beside", group="tools", look=look, quick=False, tokens=50_000,
        why="A weak model makes wrong calls wherever it runs; a server that makes more of them than the reference "
            "breaks some.",
        mend=_MEND,
    )  # fmt: skip


def _streamed(subject: Subject) -> Seen:
    """Check that tool calls are as well-formed in a streamed reply as in the whole reply to the same request."""
    sent = f"{STREAMS} greedy requests with two tools, streamed and whole"
    broken: list[str] = []
    n = 0
    for city in CITIES[:STREAMS]:
        whole = _whole(subject, city)
        status, content = subject.server.posted(codec.encode(_body(subject, city, temperature=0, stream=True)))
        if whole is None or status != 200:
            return untested(sent, "a request with tools is refused")
        try:
            stream = called_in(content)
        except codec.DecodeError as error:
            return spoils(sent, f"an event of the stream is no JSON: {quoted(str(error))}")
        if not whole.calls and not stream.calls:
            if n == 0 and city == CITIES[TRIALS - 1]:
                return untested(sent, f"the model calls no tool in {TRIALS} replies")
            continue
        n += 1
        # A batch may change a call, but it does not break one: a call broken in the stream only is the stream's fault.
        if wrong(whole) is None and (fault := wrong(stream)) is not None:
            broken.append(fault)
        elif bool(whole.calls) != bool(stream.calls):
            broken.append("a call in one of the two only")
    if len(broken) > 1:
        kinds = ", ".join(dict.fromkeys(broken))
        return spoils(sent, f"{len(broken)} of {n} streams bring {kinds}, and the whole replies do not")
    return sound(sent, f"{n - len(broken)} of {n} calls as well formed in the stream as in the whole reply")


def _choice(subject: Subject) -> Seen:
    """Check that the server obeys `tool_choice`: "none" calls no tool, "required" calls any tool, and a tool's name
    calls this tool and no other.
    """
    sent = "tool_choice none, required, and a tool by name, twice each"
    named = {"type": "function", "function": {"name": "get_time"}}
    broken, refused = Counter[str](), set[str]()
    for word, choice in (("none", "none"), ("required", "required"), ("a named tool", named)):
        for city in CITIES[:2]:
            reply = _whole(subject, city, tool_choice=choice)
            if reply is None:
                refused.add(word)
                continue
            names = {name for name, _ in reply.calls}
            obeyed = {"none": not names, "required": bool(names), "a named tool": names == {"get_time"}}[word]
            if not obeyed:
                broken[word] += 1
    ignored = [word for word, n in broken.items() if n == 2]
    # If no reply has a call, or all requests are refused, the model or the server may just have no tools.
    if ignored == ["required", "a named tool"] or len(refused) == 3:
        return untested(sent, f"no tool is called, whatever tool_choice says{'; refused' if refused else ''}")
    came = f"refused: {', '.join(sorted(refused))}" if refused else "each obeyed"
    return warns(sent, f"ignored: {', '.join(ignored)}") if ignored else sound(sent, came)


_WHY = "An agent's score depends on its calls: one that a parser breaks counts as the model's mistake."
_MEND = "Start the engine with the model's own tool parser and template; update both."

CHECKS = (
    Check(name="tool calls", group="tools", look=_calls, quick=False, tokens=50_000, why=_WHY, mend=_MEND),
    Check(name="streamed calls", group="tools", look=_streamed, quick=False, tokens=4_000, why=_WHY, mend=_MEND),
    Check(name="tool choice", group="tools", look=_choice, quick=False, tokens=3_400, why=_WHY, mend=_MEND),
)  # fmt: skip
