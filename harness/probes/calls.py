"""Checks function calls: whether they are parsed and complete, are the same in a stream, match their schema and have
IDs.

All requests offer one tool and ask for arguments that servers tend to break: quotes, a backslash, a line break, a
character that takes two UTF-16 units, a list and an object. Replies are sampled, and some models never call a tool, so
a check flags only what sampling cannot explain: a reply that contradicts itself, or a property in which every streamed
reply differs from every non-streamed one.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from harness.client.apis.api import API
from harness.client.apis.parts import NO_CALL_ID
from harness.client.apis.table import api_of
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core import codec
from harness.core.records import OfferedTool, SentCall
from harness.core.reply_notes import ending
from harness.core.sanitize import quoted
from harness.probes.findings import PARSED_CALLS, Check, Observation, fails, passes, untested, warns
from harness.probes.requests import REFUSALS, Inquiry
from harness.probes.tested_server import Subject
from reasoning_answers.host import lost_call, misfit
from server_launchers.engines import table as engines
from server_launchers.engines.table import calls_remedy


def _object(**properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties, "required": [*properties]}


_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}
_NOTE = _object(text=_TEXT, numbers={"type": "array", "items": _NUMBER}, place=_object(room=_TEXT, shelf=_NUMBER))
TOOL = OfferedTool(name="save_note", description="Save a note.", parameters=_NOTE)
"""The tool that all requests of these checks offer."""

NOTE = 'Anna wrote "yes" to C:\\new.\nThen she left \U0001f642'
"""Text of the note, with the characters that servers tend to break in arguments."""

ONE = f"Save one note: numbers 3, 1.5 and -2, place cellar, shelf 4, and this text, character for character:\n{NOTE}"
TWO = (
    "Save two notes, one call each. First: text milk, numbers 1 and 2, place kitchen, shelf 3. "
    "Second: text bread, numbers 4 and 5, place pantry, shelf 6."
)
AGAIN = "Save the same note once more."

CUT, WHOLE = 16, 512
"""max_tokens of requests whose call is to be truncated (the minimum that the Responses API accepts), and of all other
requests.
"""

ROUNDS = 6
"""Number of times a non-streamed and a streamed reply are compared. If a model's replies have a property half of the
time, all six streams differ from all six non-streamed replies in 1 of 2,000 cases.
"""

Kind = Literal["forced", "cut", "two", "none", "plain"]

_KINDS: dict[Kind, tuple[str, str | None, int]] = {
    "forced": (ONE, "required", WHOLE),
    "cut": (ONE, "required", CUT),
    "two": (TWO, None, WHOLE),
    "none": (ONE, "none", WHOLE),
    "plain": (ONE, None, CUT),
}
"""Kind of request → prompt, `tool_choice`, max_tokens. plain: without the tool."""

SENT = "a request to save a note, with a single tool offered"

_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
"""A command-line option named in a server's rejection: the option that the server must be started with."""

_ONLY_CHOICE = re.compile(r"(?is)(?!.*(?:\btools\b| --[a-z])).*tool[_ ]choice")
"""A rejection of `tool_choice`, but not of tools."""

_OBJECT = re.compile(r'\{\s*"')
"""The beginning of a JSON object."""

_UNASKED = {*REFUSALS, "connect", "timeout", "rate_limited"}
"""Kinds of failures that are not evidence of a faulty reply."""


# ---- requests


def _api(subject: Subject) -> API:
    """The API through which calls are requested."""
    return api_of(subject.server.calls_api)


def _ask(subject: Subject, kind: Kind, stream: bool = False, turns: Sequence[Any] = ()) -> Reply | RequestFailed:
    """The reply to a request of this kind. turns: the turns that follow its prompt."""
    text, choice, limit = _KINDS[kind]
    choice = choice if subject.may_force or choice != "required" else None
    tools = [TOOL] if kind != "plain" else []
    inquiry = Inquiry(text, {"max_tokens": limit, "temperature": 0}, _api(subject), tools, choice, turns)
    return subject.server.called(inquiry.body(subject.server.asker, stream=stream), inquiry.api)


def _reply(subject: Subject, kind: Kind = "forced", stream: bool = False) -> Reply | RequestFailed:
    """The first reply of this kind, which several checks examine. Calls are no longer forced once the server has
    rejected `tool_choice` alone.
    """
    if (kind, stream) not in subject.called:
        reply = _ask(subject, kind, stream)
        if kind == "forced" and isinstance(reply, RequestFailed) and _ONLY_CHOICE.match(reply.message):
            subject.may_force = False
            reply = _ask(subject, kind, stream)
        subject.called[kind, stream] = reply
    return subject.called[kind, stream]


def _finished(subject: Subject, *kinds: Kind) -> list[Reply]:
    """The replies of these kinds, streamed or not, that ended on their own."""
    replies = [_reply(subject, kind, stream) for kind in kinds for stream in (False, True)]
    return [reply for reply in replies if isinstance(reply, Reply) and ending(reply.finish_reason) == "end"]


def _with_calls(subject: Subject) -> list[Reply]:
    """The replies that contain a call, out of those to requests that force one, if the server accepts tools."""
    first = None if _api(subject).tools is None else _reply(subject)
    # If max_tokens cut the reply before its call, its stream would be cut, too.
    if not isinstance(first, Reply) or ending(first.finish_reason) == "cut":
        return []
    return [reply for reply in _finished(subject, "forced") if reply.calls]


def _if_called(look: Callable[[Subject], Observation]) -> Callable[[Subject], Observation]:
    """The check `look`, which is untested if it received no call to judge."""
    return lambda subject: look(subject) if _with_calls(subject) else untested(SENT, "no calls; see `parsed calls`")


# ---- what a reply contains


def _unread(reply: Reply) -> str:
    """The evidence that a reply had a call that was not parsed: the beginning of a call in its text, or its finish
    reason.

    A model may write a malformed call, so its JSON must be valid.
    """
    text = (reply.text or "").strip() or ("" if reply.calls else (reply.reasoning or "").strip())
    mark = lost_call(text, None, "" if reply.calls else reply.finish_reason, [TOOL.name], asks_program=False)
    begins = _OBJECT.search(text, max(0, text.find(mark)))
    try:
        return mark if begins is None or json.JSONDecoder().raw_decode(text, begins.start()) else ""
    except (ValueError, RecursionError):
        return ""


def _fault(reply: Reply) -> tuple[str, str] | None:
    """Why the first call in a reply that does not match the tool's schema fails to match it: (rule, in words)."""
    return misfit((SentCall(name=call.name, arguments=call.arguments) for call in reply.calls), TOOL)


def _texts(reply: Reply) -> list[Any]:
    """The text of the note in each call of a reply whose arguments are a JSON object."""
    texts = []
    for call in reply.calls:
        with contextlib.suppress(codec.DecodeError, UnicodeError):
            texts.append(codec.decode(call.arguments.strip() or "{}", dict[str, Any]).get("text"))
    return texts


def _cut_as_whole(reply: Reply | RequestFailed) -> str:
    """How a reply that max_tokens cut claims to contain a complete call; empty if it does not."""
    if isinstance(reply, RequestFailed) or ending(reply.finish_reason) != "end":
        return ""
    said, fault = f"says finish_reason {quoted(reply.finish_reason)!r}", _fault(reply)
    for call in reply.calls:
        try:
            codec.decode(call.arguments)
        except codec.DecodeError as error:
            if "truncated" in str(error):
                return f"{said}, but its arguments are incomplete: {quoted(call.arguments)!r}"
    if fault is not None and (reply.usage.completion_tokens or 0) >= CUT:
        return f"{said}: {fault[1]}"
    return f"{said} but contains no call" if not reply.calls and _unread(reply) else ""


_PROPERTIES = (
    "finish reason",
    "called functions",
    "arguments are JSON",
    "arguments have the text",
    "text copied exactly",
)


def _properties(reply: Reply | RequestFailed) -> tuple[str, ...]:
    """The values of `_PROPERTIES` for a reply to the request that forces a call."""
    if isinstance(reply, RequestFailed):
        return (f"failed ({reply.kind})",) * len(_PROPERTIES)
    texts = _texts(reply)
    names = ", ".join(call.name for call in reply.calls) or "none"
    has_text = all(isinstance(text, str) for text in texts)
    return reply.finish_reason.lower(), names, str(len(texts) == len(reply.calls)), str(has_text), str(NOTE in texts)


# ---- checks


def _parsed(subject: Subject) -> Observation:
    """Check that a forced call is returned as a call; if none is, report the evidence that the server lost it."""
    if _api(subject).tools is None:
        return untested(SENT, f"api={subject.server.calls_api} does not support tools")
    first, remedy = _reply(subject), calls_remedy(subject.server.asker.model, subject.server.engine)
    for reply in (first, _reply(subject, "two")) if _with_calls(subject) else (first,):
        if isinstance(reply, RequestFailed) and _FLAG.search(reply.message):
            return warns(SENT, f"rejected: {quoted(reply.message)}; {remedy}")
    if isinstance(first, RequestFailed):
        why = "the server does not accept tools" if first.kind == "rejected" else "the request failed"
        return untested(SENT, f"{why}: {quoted(first.message)}")
    if _with_calls(subject):
        but = "" if subject.may_force else ", but `tool_choice` required is rejected"
        return passes(SENT, f"the reply contains a call{but}")
    if ending(first.finish_reason) == "cut":
        return untested(SENT, f"no call within the first {WHOLE} tokens")
    return _no_call(subject, first, remedy)


def _no_call(subject: Subject, first: Reply, remedy: str) -> Observation:
    """The observation if no request that forces a call produced one. first: the first reply to such a request."""
    forced = _finished(subject, "forced")
    if sign := next(filter(None, map(_unread, forced)), ""):
        return warns(SENT, f"no call, but {quoted(sign)!r} in the reply text; {remedy}")
    plain, n = _reply(subject, "plain"), first.usage.prompt_tokens or 0
    # A count smaller than the prompt proves nothing.
    if isinstance(plain, Reply) and plain.usage.prompt_tokens == n >= len(ONE.split()):
        received = f"no call; the prompt has {n} tokens with or without the tool, so the model never sees the tool"
        return warns(SENT, f"{received}: its chat template does not support tools, or {remedy}")
    if subject.may_force and engines.profile(subject.server.engine).binds_calls and len(forced) == 2:
        return warns(SENT, f"no call, although tool_choice is required; {remedy}")
    return untested(SENT, "no call: the model may not support tool calls, or the server ignores tool_choice")


def _check_texts(subject: Subject) -> Observation:
    """Look for calls that a server with a call parser left unparsed in the text of its replies."""
    marks = [*map(_unread, _finished(subject, "forced", "two"))]
    if found := [*filter(None, marks)]:
        received = f"{len(found)} of {len(marks)} replies contain an unparsed call: {quoted(found[0])!r}"
        return fails(SENT, f"{received}; {calls_remedy(subject.server.asker.model, subject.server.engine)}")
    return passes(SENT, f"no call markup in the text of {len(marks)} replies")


def _cut(subject: Subject) -> Observation:
    """Cut a call with max_tokens: the reply must not claim to be complete. A false claim counts only if it recurs."""
    sent, reasons = f"{SENT}, with max_tokens {CUT}", list[str]()
    for stream, name in ((False, "non-streamed reply"), (True, "streamed reply")):
        reply = _reply(subject, "cut", stream)
        reasons += [reply.finish_reason] if isinstance(reply, Reply) else []
        if _cut_as_whole(reply) and (received := _cut_as_whole(_ask(subject, "cut", stream))):
            return fails(sent, f"the {name} {received} (seen twice)")
    is_cut = "cut" in map(ending, reasons)
    return (passes if is_cut else untested)(sent, f"finish_reason {quoted(', '.join(reasons)) or 'missing'}")


def _streamed(subject: Subject) -> Observation:
    """Compare non-streamed and streamed replies: a property counts if every stream differs from every non-streamed
    reply.
    """
    whole, streams = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for n in range(ROUNDS):
        pair = [(_ask if n else _reply)(subject, "forced", stream) for stream in (False, True)]
        if lost := [each for each in pair if isinstance(each, RequestFailed) and each.kind in _UNASKED]:
            return untested(SENT, f"a request failed: {quoted(lost[0].message)}")
        whole.append(_properties(pair[0]))
        streams.append(_properties(pair[1]))
        apart = [i for i, _ in enumerate(_PROPERTIES) if {w[i] for w in whole}.isdisjoint(s[i] for s in streams)]
        if not apart:
            return passes(SENT, "streamed and non-streamed replies have the same finish reason and calls")
    theirs, ours = (quoted(" or ".join(sorted({each[apart[0]] for each in side}))) for side in (streams, whole))
    return fails(
        SENT,
        f"{_PROPERTIES[apart[0]]}: {theirs} in {ROUNDS} streamed replies but {ours} in {ROUNDS} non-streamed replies",
    )


def _arguments(subject: Subject) -> Observation:
    """Check that arguments are JSON and, where a call is forced, match their schema. If the engine promises this, two
    faults are enough. For unknown servers, a fault counts only if all calls have it. If the engine promises it only for
    `strict`, which this tool does not state, the model is at fault.
    """
    replies = _with_calls(subject)
    promise = engines.profile(subject.server.engine).binds_calls
    has_grammar = subject.may_force and promise is True
    for _ in range(2 * ROUNDS - len(replies)):
        n = sum(_fault(reply) is not None for reply in replies)
        if not n or (n > 1 if has_grammar else n < len(replies)):
            break
        again = _ask(subject, "forced")
        replies += [again] if isinstance(again, Reply) and again.calls else []
    faults = [fault for reply in replies if (fault := _fault(reply))]
    if not (has_grammar and len(faults) > 1) and len(faults) < max(ROUNDS, len(replies)):
        return passes(SENT, f"the calls in {len(replies) - len(faults)} of {len(replies)} replies match their schema")
    received = f"the calls in {len(faults)} of {len(replies)} replies do not match their schema: {faults[0][1]}"
    free = [reply for reply in _finished(subject, "two") if reply.calls]
    is_no_json = {rule for rule, _ in faults} == {"arguments no JSON"} and all(map(_fault, free))
    mild = warns if subject.may_force and promise is None else untested
    return (fails if has_grammar or is_no_json else mild)(SENT, received)


def _ids(subject: Subject) -> Observation:
    """Check that each call has an ID that no other call in its reply or in the next turn has."""
    form, replies = _api(subject).tools, _with_calls(subject)
    failed = [each for each in subject.called.values() if isinstance(each, RequestFailed)]
    calls = [[call.id for call in reply.calls] for reply in (*replies, *(_finished(subject, "two") if replies else ()))]
    if any(NO_CALL_ID in each.message for each in failed) or not all(map(all, calls)):
        return fails(SENT, NO_CALL_ID)
    if form is None or not replies:
        return untested(SENT, "no calls; see `parsed calls`")
    if shared := [ids for ids in calls if len({*ids}) < len(ids)]:
        return fails(SENT, f"{len(shared[0])} calls in one reply share an id: {quoted(', '.join(shared[0]))}")
    sent = f"{SENT}, repeated in the same conversation"
    turns = [*form.answered(replies[0].turn, ["saved"] * len(calls[0])), {"role": "user", "content": AGAIN}]
    turn = _ask(subject, "forced", turns=turns)
    if isinstance(turn, RequestFailed) or not turn.calls:
        return untested(sent, "no call in the second turn; call ids within each reply are unique")
    if same := {call.id for call in turn.calls} & {*calls[0]}:
        return fails(sent, f"calls in different turns share an id: {quoted(', '.join(sorted(same)))}")
    return passes(sent, f"all {sum(map(len, calls)) + len(turn.calls)} calls in the conversation have unique ids")


def _check_none(subject: Subject) -> Observation:
    """Send a request with `tool_choice` none: the reply must not contain a call."""
    sent = f"{SENT}, with tool_choice none"
    replies = [reply for stream in (False, True) if isinstance(reply := _reply(subject, "none", stream), Reply)]
    if any(reply.calls for reply in replies):
        return warns(sent, "a reply contains a tool call")
    return passes(sent, "no tool calls in the replies") if replies else untested(sent, "both requests failed")


_check = partial(Check, group="calls", quick=False)

_PARSER = "Start the engine with the tool-call parser for the model (listed in docs/calls.md), or update the engine."
_MEND = (
    "Update the engine or ask the provider. Until this is fixed, do not score function-calling benchmarks "
    "on this server."
)

CHECKS = (
    _check(
        name=PARSED_CALLS, look=_parsed, tokens=1_500, fix=_PARSER,
        why="If the server does not parse calls, every call counts as wrong. Text answers are not affected.",
    ),
    _check(
        name="call markup", look=_if_called(_check_texts), tokens=0, fix=_PARSER,
        why="Clients cannot see a call that the server leaves in the text, so the call counts as wrong.",
    ),
    _check(
        name="cut calls", look=_if_called(_cut), tokens=530, fix=_MEND,
        why="If a call truncated by max_tokens is reported as complete, it is run or graded with partial arguments.",
    ),
    _check(
        name="streamed calls", look=_if_called(_streamed), tokens=0, fix=_MEND,
        why="Runs use streaming, so streamed replies must contain the same calls as non-streamed replies.",
    ),
    _check(
        name="call arguments", look=_if_called(_arguments), tokens=0, fix=_MEND,
        why="A call counts as wrong if its arguments are not JSON or do not match the tool's schema.",
    ),
    _check(
        name="call ids", look=_ids, tokens=450, fix=_MEND,
        why="A tool result refers to its call by id; if the id is missing or duplicated, the result is matched "
"to the wrong call.",
    ),
    _check(
        name="unwanted calls", look=_if_called(_check_none), tokens=600, fix="Offer tools only when you want calls.",
        why="If the server ignores tool_choice none, the model may make calls even when a question forbids them.",
    ),
)  # fmt: skip
