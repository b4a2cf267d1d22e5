"""Does the server keep to the protocol: whole streams, true counts and endings, stop texts, errors with a status."""

from __future__ import annotations

import re
from typing import Any

from harness.client.protocol.failures import error_words
from harness.client.protocol.reply import RequestFailed
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message
from harness.verbs.probe.asking import CHAT, Inquiry, ProbeReply, Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import LONG, STORY, Subject, logprob_fields
from server_launchers.engines import table as engines

CUT = 7
"""New tokens asked for where the end is looked at: a number that no server has as a default."""

ROUNDS = 5
"""Times that a greedy request is made again where a batch may have changed its text."""

UNICODE = "Grüße, 日本語, здравствуй, 🙂🙃👩‍🚀!"
"""Characters of one to four bytes in UTF-8, and one that joins several characters."""

MISSPELT = "no-such-model-of-the-probe"

REPLACED = "\ufffd"
"""The character that a decoder puts in place of bytes it cannot read."""


def _streaming(subject: Subject) -> Seen:
    story = Inquiry(STORY, {"max_tokens": LONG, "temperature": 0})
    sent = f"one greedy request of {LONG} tokens, streamed and whole"
    streams: list[tuple[str, str | None]] = []
    wholes: list[tuple[str, str | None]] = []
    for _ in range(ROUNDS):  # a batch may change greedy text: one stream has to be equal to one whole reply
        (streamed,) = subject.streamed([story])
        if isinstance(streamed, RequestFailed):
            return spoils(sent, f"the stream failed: {streamed.message}")
        whole = subject.chat().first
        streams.append(((streamed.reasoning or "") + (streamed.text or ""), streamed.finish_reason))
        wholes.append((whole.whole, whole.finish_reason))
        if set(streams) & set(wholes):
            notes = f"; noted: {', '.join(streamed.notes)}" if streamed.notes else ""
            return sound(sent, f"{len(wholes[-1][0])} characters, the same in both{notes}")
    (text, reason), (whole_reply, because) = streams[-1], wholes[-1]
    return spoils(
        sent,
        f"the stream brought {quoted(text)!r} ({reason}), "
        f"the whole reply {quoted(whole_reply)!r} ({quoted(str(because))})",
    )


def _usage(subject: Subject) -> Seen:
    sent = f"a chat request of {LONG} tokens, streamed and whole, with log-probabilities"
    (streamed,) = subject.streamed([Inquiry(STORY, {"max_tokens": LONG, "temperature": 0})])
    whole = _with_logprobs(subject)
    usage = whole.usage
    if usage is None or usage.completion_tokens is None or usage.prompt_tokens is None:
        return warns(sent, "the whole reply states no usage")
    if isinstance(streamed, RequestFailed):
        return untested(sent, f"the stream failed: {streamed.message}")
    if streamed.usage.completion_tokens is None:
        return warns(sent, "the stream states no usage; whole replies do")
    n = len(whole.first.tokens)
    counted = usage.completion_tokens - (1 if whole.first.finish_reason == "stop" else 0)
    if n and not counted <= n <= usage.completion_tokens:
        return warns(sent, f"usage says {usage.completion_tokens} new tokens, {n} came")
    rendered = _rendered(subject, STORY)
    if rendered is not None and len(rendered) != usage.prompt_tokens:
        return warns(sent, f"usage says {usage.prompt_tokens} prompt tokens, its own tokenizer {len(rendered)}")
    by = " (as its tokenizer counts)" if rendered is not None else ""
    return sound(sent, f"{usage.prompt_tokens} prompt tokens{by} and {usage.completion_tokens} new ones, in both forms")


def _length(subject: Subject) -> Seen:
    sent = f"the story prompt, max_tokens {CUT}"
    answer = _with_logprobs(subject, max_tokens=CUT)
    choice, usage = answer.first, answer.usage
    n = len(choice.tokens) or (usage.completion_tokens if usage else None)
    if choice.finish_reason == "stop" and n is not None and n < CUT:
        return untested(sent, f"the reply ended by itself after {n} tokens")
    if choice.finish_reason != "length":
        return spoils(
            sent, f"a reply that was cut says finish_reason {quoted(str(choice.finish_reason))!r}, not length"
        )
    if n is None:
        return untested(sent, "finish_reason length; neither usage nor log-probabilities tell how many tokens came")
    if n != CUT:
        return spoils(sent, f"finish_reason length after {n} tokens instead of {CUT}")
    return sound(sent, f"finish_reason length after exactly {n} tokens")


def _end(subject: Subject) -> Seen:
    sent = 'a question of one word, max_tokens 400, temperature 0 ("stop" is expected)'
    answer = subject.chat("What is the capital of France? Answer with one word.", max_tokens=400)
    reason, n = answer.first.finish_reason, answer.usage.completion_tokens if answer.usage else None
    if reason == "stop":
        return sound(sent, f"finish_reason stop after {n} tokens: {quoted(answer.first.whole[-60:])!r}")
    if reason == "length" and (n is None or n >= 400):
        return untested(sent, "the model had not ended after 400 tokens")
    return spoils(sent, f"finish_reason {quoted(str(reason))!r} after {n} tokens of 400")


def _stop(subject: Subject) -> Seen:
    text = subject.chat().first.content
    words = re.findall(r"\w{4,}", text[len(text) // 3 :])
    if not words:
        return untested("the greedy reply, with a word of it as stop text", "the reply holds no word to stop at")
    word = words[0]
    sent = f"the greedy reply, with stop [{quoted(word)!r}]"
    expected = text[: text.index(word)].strip()
    for _ in range(ROUNDS):
        choice = subject.chat(stop=[word]).first
        if word in choice.content:
            return spoils(sent, f"the reply goes on past it: {quoted(choice.content)!r}")
        if choice.content.strip() == expected:
            if choice.finish_reason != "stop":
                return spoils(
                    sent, f"it ends there, with finish_reason {quoted(str(choice.finish_reason))!r}, not stop"
                )
            return sound(sent, "the reply ends before it, finish_reason stop")
    return untested(sent, f"the reply changes from time to time: {quoted(choice.content)!r}")


def _choices(subject: Subject) -> Seen:
    sent = "n 2 at temperature 1"
    try:
        choices = subject.chat(n=2, temperature=1.0, max_tokens=LONG).choices
    except Refused as refused:
        return warns(sent, f"refused: {quoted(refused.sentence)}")
    if len(choices) != 2:
        return warns(sent, f"{len(choices)} choices instead of 2")
    if choices[0].whole == choices[1].whole:
        return warns(sent, "two choices, word by word the same")
    return sound(sent, "two choices that differ")


def _logprobs(subject: Subject) -> Seen:
    sent = f"the greedy reply with the 20 likeliest tokens in each of {LONG} places"
    choice = subject.greedy
    tokens = choice.tokens
    if not tokens:
        return untested(sent, "no log-probabilities came")
    for position, token in enumerate(tokens):
        values = list(token.top.values())
        if any(value > 1e-6 for value in values):
            return warns(sent, f"a log-probability above 0 at token {position}")
        if sum(2.718281828459045**value for value in values) > 1.01:
            return warns(sent, f"probabilities that sum to more than 1 at token {position}")
        if token.logprob is None or (token.token in token.top and abs(token.top[token.token] - token.logprob) > 0.01):
            return warns(sent, f"token {position} and the list of likeliest ones disagree about its log-probability")
    joined = "".join(token.token for token in tokens)
    if choice.whole.strip() not in joined and REPLACED not in joined and "<" not in joined:
        return warns(sent, f"the tokens read {quoted(joined)!r}, the text {quoted(choice.whole)!r}")
    return sound(sent, f"{len(tokens)} tokens, each coherent")


def _utf8(subject: Subject) -> Seen:
    sent = f"the greedy reply held to {UNICODE!r} by the engine's grammar, streamed and whole"
    held_to = engines.dialect(subject.server.engine).held_to
    held = {} if held_to is None else held_to(UNICODE)
    text = f"Repeat this line exactly, and write nothing else: {UNICODE}"
    inquiry = Inquiry(text, {"max_tokens": 80, "temperature": 0, **held})
    try:
        whole = subject.whole(inquiry).first.whole
    except Refused as refused:
        return untested(sent, f"refused: {quoted(refused.sentence)}")
    (streamed,) = subject.streamed([inquiry])
    if isinstance(streamed, RequestFailed):
        return spoils(sent, f"the stream failed: {streamed.message}")
    text = (streamed.reasoning or "") + (streamed.text or "")
    if REPLACED in text or REPLACED in whole:
        which = "stream" if REPLACED in text else "whole reply"
        return spoils(sent, f"characters were lost at a border between tokens in the {which}: {quoted(text)!r}")
    if held and (UNICODE not in text or UNICODE not in whole):
        if UNICODE not in text and UNICODE not in whole:
            return untested(sent, f"the engine did not hold the reply to it: {quoted(text)!r}")
        return spoils(sent, f"the stream brought {quoted(text)!r}, the whole reply {quoted(whole)!r}")
    if sum(not c.isascii() for c in text) < 5:
        return untested(sent, f"the model wrote no such characters: {quoted(text)!r}")
    return sound(sent, f"every character came in both: {quoted(text)!r}")


def _errors(subject: Subject) -> Seen:
    sent = "a body that is no JSON"
    try:
        status, body = subject.server.posted(b'{"messages": [')
    except ServerError as error:
        return warns(sent, f"no answer: {quoted(error.sentence)}")
    if not 400 <= status < 500:
        return warns(sent, f"HTTP {status}")
    try:
        codec.decode(body)
    except codec.DecodeError:
        return warns(sent, f"HTTP {status}, and a body that is no JSON")
    return sound(sent, f"HTTP {status}: {quoted(error_words(body))}")


def _name(subject: Subject) -> Seen:
    sent = f"the model name {MISSPELT!r}"
    try:
        answer = subject.chat("Hello", model=MISSPELT, max_tokens=1)
    except Refused as refused:
        if 400 <= refused.status < 500:
            return sound(sent, quoted(refused.sentence))
        return warns(sent, quoted(refused.sentence))
    return warns(sent, f"a reply, by {quoted(answer.model or 'a model without a name')!r}: any name is answered")


def _with_logprobs(subject: Subject, **fields: Any) -> ProbeReply:
    try:
        return subject.chat(**fields, **logprob_fields(CHAT))
    except Refused:
        return subject.chat(**fields)


def _rendered(subject: Subject, text: str) -> list[int] | None:
    try:
        prompt = subject.server.rendered([Message(role="user", content=text)], {})
    except ServerError:
        return None
    return None if prompt is None else prompt[1]


CHECKS = (
    Check(
        name="streaming", group="protocol", look=_streaming,
        why="A run reads streams: text that a stream drops is missing from the answer that is graded.",
        mend="Look for a proxy or a reasoning parser that drops events; ask for whole replies until it is mended.",
    ),
    Check(
        name="usage", group="protocol", look=_usage,
        why="Lengths, budgets and prices are made of the tokens that the server counts.",
        mend="Switch stream usage on at the server; without it tokens are counted by events.",
    ),
    Check(
        name="length", group="protocol", look=_length,
        why="A reply that is cut early, or without saying so, loses its answer and counts as wrong.",
        mend="Look for a proxy or a server setting that lowers max_tokens or rewrites finish_reason.",
    ),
    Check(
        name="natural end", group="protocol", look=_end,
        why="A reply that ends by itself must say so: otherwise truncated ones cannot be told from finished ones.",
        mend="Look at the model's end-of-turn tokens (generation_config.json, eos_token_id) and at its template.",
    ),
    Check(
        name="stop texts", group="protocol", look=_stop,
        why="Benchmarks with stop texts are graded on what stands before them.",
        mend="Use a server that obeys stop, or a card without it.",
    ),
    Check(
        name="several choices", group="protocol", look=_choices,
        why="A run asks for each sample by itself, so n is not needed; other tools use it.",
        mend="Nothing is to be done for a run of this harness.",
    ),
    Check(
        name="log-probabilities", group="protocol", look=_logprobs,
        why="The tests of sampling and of weights below rest on them.",
        mend="Start the server with log-probabilities as they are before sampling (raw).",
    ),
    Check(
        name="characters", group="protocol", look=_utf8,
        why="A character lost at a border between tokens changes an answer.",
        mend="Update the engine, or look for a proxy that decodes and encodes each chunk by itself.",
    ),
    Check(
        name="errors", group="protocol", look=_errors,
        why="What is retried and what is given up is decided by the status of an error.",
        mend="Look for a gateway that turns errors into replies.",
    ),
    Check(
        name="model name", group="protocol", look=_name,
        why="A server that answers to any name may be another model than the one that is reported.",
        mend="Compare the model that its replies name with the one that you mean.",
    ),
)  # fmt: skip
