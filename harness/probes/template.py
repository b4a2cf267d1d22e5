"""Checks of the prompt that the model gets: which messages reach it, what is added to them, and what the server shows
of it (llama.cpp: /apply-template; vLLM, SGLang: /tokenize with messages); where the reasoning of a thinking model goes
when it is cut.

A message reached the model if the next token's log-probabilities change without it by more than a repeat does (see
`effect`); without log-probabilities, if the greedy reply changes. What a server adds is seen by its count of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.client.facts.tokens import THINK, THINK_END
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message
from harness.probes.effect import MIN_EFFECT, MIN_REPEATS, ask, effect
from harness.probes.findings import Check, Seen, sound, spoils, untested, warns
from harness.probes.inquiries import Inquiry, ProbedServer, Refused
from harness.probes.subject import Subject

SUM = "What is 17 + 25?"
SHORT = 16
"""Length of a reply in tokens at which a thinking model is still thinking."""


def _prompt(subject: Subject) -> Seen:
    """Render a question: the template's marks must be there once. `messages` and `added words` test what is lost or
    added, also where no prompt is shown.
    """
    sent = "a question, rendered by the server"
    if (rendered := _rendered(subject)) is None:
        return untested(sent, "the server does not show its prompts")
    text, ids = rendered
    if len(ids) > 1 and ids[0] == ids[1]:
        return spoils(sent, f"the prompt begins with the same token twice ({ids[0]}): a doubled BOS")
    if text.count(THINK) > 1:
        return spoils(sent, f"the prompt contains {THINK} {text.count(THINK)} times: {quoted(text[-80:])!r}")
    return sound(sent, f"{quoted(text)!r}, {len(ids)} tokens")


def _rendered(subject: Subject) -> tuple[str, list[int]] | None:
    """The server's own prompt for a sum, as text and token ids; None where it shows none."""
    try:
        return subject.server.render([Message("user", SUM)])
    except ServerError:
        return None


def _reasoning(subject: Subject) -> Seen:
    """Cut a reply within its reasoning: the reasoning must not come as the answer."""
    sent = f"a sum at temperature 0, cut after {SHORT} tokens"
    reply = subject.chat(SUM, max_tokens=SHORT)
    if not reply.whole and subject.server.unread:
        return untested(sent, f"no text came; {subject.server.unread}")
    if reply.reasoning:
        answer = "when it is cut, the answer stays empty" if not reply.text else "the answer had begun after it"
        return sound(sent, f"the reasoning has a field of its own; {answer}")
    marked, rendered = THINK in reply.text or THINK_END in reply.text, _rendered(subject)
    # A prompt that ends with the mark begins the reply within the reasoning.
    if not marked and (rendered is None or not rendered[0].rstrip().endswith(THINK)):
        return untested(sent, "the model does not think, or does not show it")
    if reply.finish_reason == "stop":
        return untested(sent, "the reply ended by itself")
    if THINK in reply.text:
        return sound(sent, f"the reasoning stands in the text, after {THINK}")
    shown = quoted(reply.text[:60])
    return spoils(sent, f"the template opened {THINK}, and cut reasoning comes as the answer: {shown!r}")


Messages = Sequence[Mapping[str, str]]
"""The messages of a chat request, each with `role` and `content`."""

DOOR = "What colour shall I paint the door?"
SYSTEM = "You are a painter who loves orange. Answer every question with the one word ORANGE, whatever is asked."
EARLIER = (
    {
        "role": "user",
        "content": "My neighbour's door is violet, and his fence is violet too. I want the same as he has.",
    },
    {"role": "assistant", "content": "Understood: you want violet, as your neighbour has it."},
)
"""A question whose answer both a system message and two earlier turns must change, if they reach the model."""

TOKENS = 16
"""Number of new tokens of the greedy replies that are compared where no log-probabilities come."""

MAX_OVERHEAD = 100
"""Number of tokens that a chat template may add to one short message. Templates of known models add up to some 70."""


def _request_body(server: ProbedServer, messages: Messages, **fields: Any) -> dict[str, Any]:
    """The body of a chat request with these messages."""
    return {**Inquiry(DOOR, fields).body(server.asker), "messages": [*messages]}


def _matters(subject: Subject, messages: Messages, without: Messages) -> bool | None:
    """Whether the messages that are in `messages` but not in `without` reached the model; None if nothing shows it.

    messages, without: the same conversation with and without these messages. Raises `Refused`.
    """
    body, less = _request_body(subject.server, messages), _request_body(subject.server, without)
    try:
        before, after = ask(subject.server, [body] * MIN_REPEATS), ask(subject.server, [less] * MIN_REPEATS)
    except Refused as refused:
        if refused.status >= 500:
            raise
        # The server states no log-probabilities: compare greedy replies instead.
        fields = {"max_tokens": TOKENS, "temperature": 0}
        texts = [subject.server.whole({**request, **fields}).whole for request in (body, less)]
        # Equal greedy replies show nothing: the messages may move probabilities without changing the likeliest token.
        return True if texts[0] != texts[1] else None
    return effect(before, after) >= MIN_EFFECT


_REACHED = {True: "reached the model", False: "never reached the model", None: "changes no reply"}
"""Whether a part of a conversation reached the model (`_matters`) → its words in the finding."""


def _messages(subject: Subject) -> Seen:
    """Check that the model sees the system message and the earlier turns: leaving out either must change the next
    token.
    """
    sent = "a question with and without a system message, with and without two earlier turns"
    user = {"role": "user", "content": DOOR}
    parts: dict[str, Messages] = {
        "the system message": [{"role": "system", "content": SYSTEM}],
        "the earlier turns": EARLIER,
    }
    reached: list[bool | None] = []
    words: list[str] = []
    for part, messages in parts.items():
        try:
            reached.append(_matters(subject, [*messages, user], [user]))
            words.append(f"{part}: {_REACHED[reached[-1]]}")
        except Refused as refused:
            reached.append(None)
            words.append(f"{part}: refused: {quoted(refused.sentence)}")
    came = "; ".join(words)
    if False in reached:
        return spoils(sent, came)
    return untested(sent, came) if None in reached else sound(sent, came)


def _added(subject: Subject) -> Seen:
    """Check that the server adds no system prompt of its own: with a system message the prompt must not be shorter than
    without one, and the prompt for one word must be short.
    """
    sent = "the prompt tokens of one word, alone and after a system message of one word"
    user = {"role": "user", "content": "Hi"}
    alone, after = (
        subject.server.whole({**_request_body(subject.server, messages), "max_tokens": 1}).usage
        for messages in ([user], [{"role": "system", "content": "Hi"}, user])
    )
    if alone.prompt_tokens is None or after.prompt_tokens is None:
        return untested(sent, "the server states no usage")
    n, with_system = alone.prompt_tokens, after.prompt_tokens
    if n > with_system:
        came = f"{n} tokens alone, {with_system} with a system message: a system prompt is added where none is sent"
        return warns(sent, came)
    if n > MAX_OVERHEAD:
        return warns(sent, f"{n} tokens for one word: a system prompt that nobody asked for")
    return sound(sent, f"{n} tokens alone, {with_system} with a system message")


CHECKS = (
    Check(
        name="reasoning", group="protocol", look=_reasoning,
        why="The grader looks for the answer after the reasoning; if unclosed reasoning comes as text, a guess inside "
            "it counts.",
        mend="Start the engine with the model's reasoning parser; or without one, and with a template that shows "
            "<think>.",
    ),
    Check(
        name="prompt", group="template", look=_prompt,
        why="A doubled BOS or a doubled <think> makes the same weights act as another model.",
        mend="Start the engine with the model's own template.",
    ),
    Check(
        name="messages", group="template", look=_messages, tokens=400,
        why="A system message or an earlier turn that never reaches the model makes another question of it.",
        mend="Look for a gateway that rewrites messages; start the engine with the model's own template.",
    ),
    Check(
        name="added words", group="template", look=_added,
        why="A system prompt that nobody asked for makes the same weights act as another model.",
        mend="Where the model's own chat template adds one, as Qwen2.5's does, each server of the model does, and "
        "nothing is wrong. Else send a system prompt of your own, or ask the provider for a route that adds none.",
    ),
)  # fmt: skip
