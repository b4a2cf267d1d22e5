"""Checks the protocol: whole streams, true token counts and endings, stop texts, errors with a status."""

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
from harness.verbs.probe.findings import Check, Seen, broken_stream, no_evidence, sound, spoils, untested, warns
from harness.verbs.probe.subject import LONG, PROMPTS, STORY, Subject, logprob_fields
from server_launchers.engines import table as engines

CUT = 7
"""Number of new tokens asked for in the check of the length limit; a number that no server has as a default."""

ROUNDS = 5
"""How often a greedy request is repeated when a batch may have changed its text."""

TRIED = 3
"""Number of prompts that are tried in turn until a reply can show the fault: a weak model may only write full stops."""

MIN_DISTINCT = 4
"""Smallest number of different characters in a reply that would show a lost piece of a stream."""

UNICODE = "Grüße, 日本語, здравствуй, 🙂🙃👩‍🚀!"
"""Characters of one to four bytes in UTF-8, and an emoji that joins several characters."""

MISSPELT = "no-such-model-of-the-probe"

REPLACED = "\ufffd"
"""The character that a decoder writes for bytes that it cannot decode."""


def _streaming(subject: Subject) -> Seen:
    """Check that a greedy stream equals the whole reply to the same request: in text, reasoning and finish_reason."""
    for text in PROMPTS[:TRIED]:
        seen, reply = _stream_beside_whole(subject, text)
        if seen.outcome != "sound" or len(set(reply)) >= MIN_DISTINCT:
            return seen
    return untested(seen.sent, f"each of {TRIED} replies repeats a few characters, so nothing would show a lost piece")


def _stream_beside_whole(subject: Subject, prompt: str) -> tuple[Seen, str]:
    """Compare the streamed with the whole reply to one prompt; return the outcome and the whole reply ("" if the stream
    failed).
    """
    inquiry = Inquiry(prompt, {"max_tokens": LONG, "temperature": 0})
    sent = f"one greedy request of {LONG} tokens, streamed and whole"
    streams: list[tuple[str, str | None]] = []
    wholes: list[tuple[str, str | None]] = []
    for _ in range(ROUNDS):  # A batch may change greedy text, so one stream that equals one whole reply is enough.
        (streamed,) = subject.streamed([inquiry])
        if isinstance(streamed, RequestFailed):
            return broken_stream(sent, streamed), ""
        whole = subject.whole(inquiry).first
        text = (streamed.reasoning or "") + (streamed.text or "")
        streams.append((_complete(text), streamed.finish_reason))
        wholes.append((_complete(whole.whole), whole.finish_reason))
        if set(streams) & set(wholes):
            notes = f"; noted: {', '.join(streamed.notes)}" if streamed.notes else ""
            came = f"{len(wholes[-1][0])} characters, the same in stream and whole reply{notes}"
            return sound(sent, came), wholes[-1][0]
    if len(set(wholes)) == ROUNDS:
        subject.unrepeated = True
        came = f"{ROUNDS} whole replies to one greedy request all differ, so a stream cannot be compared with them"
        return untested(sent, came), wholes[-1][0]
    (text, reason), (whole_reply, because) = streams[-1], wholes[-1]
    came = (
        f"the stream brought {quoted(text)!r} ({reason}), "
        f"the whole reply {quoted(whole_reply)!r} ({quoted(str(because))})"
    )
    return spoils(sent, came), whole_reply


def _usage(subject: Subject) -> Seen:
    """Check that the server counts the tokens of a reply rightly, in a stream and in a whole reply."""
    sent = f"a chat request of {LONG} tokens, streamed and whole, with log-probabilities"
    streamed, whole = subject.greedy_stream, subject.greedy_reply
    usage = whole.usage
    if usage is None or usage.completion_tokens is None or usage.prompt_tokens is None:
        return warns(sent, "the whole reply states no usage")
    if isinstance(streamed, RequestFailed):
        return untested(sent, f"the stream failed: {streamed.message}")
    if streamed.usage.completion_tokens is None:
        return warns(sent, "whole replies state how many tokens they used, but streams do not")
    # The counts are compared only if the texts are equal: a batch may change the text of a reply.
    if _complete((streamed.reasoning or "") + (streamed.text or "")) == _complete(whole.first.whole):
        counts = (streamed.usage.prompt_tokens, streamed.usage.completion_tokens)
        if counts != (usage.prompt_tokens, usage.completion_tokens):
            return warns(
                sent,
                f"the stream counts {counts[0]} and {counts[1]} tokens, the whole reply of the same text "
                f"{usage.prompt_tokens} and {usage.completion_tokens}",
            )
    # Where the reply ends by itself, only log-probabilities show how many tokens came.
    ended = whole.first.finish_reason == "stop" and not whole.first.tokens and usage.completion_tokens < LONG
    if subject.miscount and not ended:
        return warns(sent, subject.miscount)
    rendered = _rendered(subject, STORY)
    if rendered is not None and len(rendered) != usage.prompt_tokens:
        return warns(
            sent,
            f"usage states {usage.prompt_tokens} prompt tokens, but the server's own tokenizer counts {len(rendered)}",
        )
    if ended:
        return untested(sent, subject.miscount)
    by = " (as its tokenizer counts)" if rendered is not None else ""
    return sound(
        sent,
        f"{usage.prompt_tokens} prompt tokens{by} and {usage.completion_tokens} new tokens, in the "
        f"stream and in the whole reply",
    )


def _length(subject: Subject) -> Seen:
    """Ask for exactly `CUT` new tokens: the reply must have that length and say finish_reason "length"."""
    sent = f"a prompt for a short story, with max_tokens {CUT}"
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
        return untested(
            sent, "finish_reason length; without usage and log-probabilities nothing shows how many tokens came"
        )
    if n != CUT and not choice.tokens and subject.miscount:
        return untested(sent, f"finish_reason length after {n} tokens, but {no_evidence(subject.miscount)}")
    if n != CUT:
        return spoils(sent, f"finish_reason length after {n} tokens instead of {CUT}")
    return sound(sent, f"finish_reason length after exactly {n} tokens")


def _ending(subject: Subject) -> Seen:
    """Ask for a one-word answer: the reply must end by itself and say finish_reason "stop"."""
    sent = 'a question of one word, max_tokens 400, temperature 0 ("stop" is expected)'
    answer = subject.chat("What is the capital of France? Answer with one word.", max_tokens=400)
    reason = answer.first.finish_reason
    n = answer.usage.completion_tokens if answer.usage else None
    if reason == "stop":
        return sound(sent, f"finish_reason stop after {n} tokens: {quoted(answer.first.whole[-60:])!r}")
    if reason == "length" and (n is None or n >= 400):
        return untested(sent, "the model had not ended after 400 tokens")
    if reason == "length" and subject.miscount:
        return untested(sent, f"finish_reason length after {n} tokens, but {no_evidence(subject.miscount)}")
    return spoils(sent, f"finish_reason {quoted(str(reason))!r} after {n} tokens of 400")


def _stop(subject: Subject) -> Seen:
    """Repeat the greedy reply with one of its words as stop text: the reply must end before that word."""
    for prompt in PROMPTS[:TRIED]:
        text = subject.chat(prompt).first.content
        # The word is taken from the later part: a stop at the reply's beginning would leave nothing to compare. A long
        # word is preferred, since it is rarer.
        later = text[len(text) // 3 :]
        if words := re.findall(r"\w{4,}", later) or re.findall(r"\w{2,}", later):
            break
    else:
        return untested("the greedy reply, with a word of it as stop text", "the reply holds no word to stop at")
    word = words[0]
    sent = f"the greedy reply, with stop [{quoted(word)!r}]"
    expected = text[: text.index(word)].strip()
    for _ in range(ROUNDS):
        choice = subject.chat(prompt, stop=[word]).first
        if word in choice.content:
            return spoils(sent, f"the reply goes on past the stop text: {quoted(choice.content)!r}")
        if choice.content.strip() == expected:
            if choice.finish_reason != "stop":
                return spoils(
                    sent,
                    f"the reply ends at the stop text, but says finish_reason "
                    f"{quoted(str(choice.finish_reason))!r} instead of stop",
                )
            return sound(sent, "the reply ends before the stop text, with finish_reason stop")
    return untested(sent, f"the reply changes from time to time: {quoted(choice.content)!r}")


def _choices(subject: Subject) -> Seen:
    """Ask for two choices in one request (n = 2): two different replies must come."""
    sent = "n 2 at temperature 1"
    try:
        # Log-probabilities show the tokens of both choices; the usage of some servers counts only the first choice's.
        fields = logprob_fields(CHAT) if subject.greedy.tokens else {}
        answer = subject.chat(n=2, temperature=1.0, max_tokens=LONG, **fields)
    except Refused as refused:
        return warns(sent, f"refused: {quoted(refused.sentence)}")
    choices = answer.choices
    if len(choices) != 2:
        return warns(sent, f"{len(choices)} choices instead of 2")
    if choices[0].whole == choices[1].whole:
        return warns(sent, "two choices, word by word the same")
    stated = answer.usage.completion_tokens if answer.usage else None
    if stated is not None and stated < answer.n_shown:
        return sound(sent, f"two choices that differ; usage counts {stated} of their {answer.n_shown} tokens")
    return sound(sent, "two choices that differ")


def _logprobs(subject: Subject) -> Seen:
    """Check that log-probabilities are coherent: none above 0, no sum above 1, and the tokens spell the text."""
    sent = f"the greedy reply with the 20 likeliest tokens at each of {LONG} positions"
    choice = subject.greedy
    tokens = choice.tokens
    if not tokens:
        return untested(sent, "no log-probabilities came")
    for position, token in enumerate(tokens):
        values = list(token.top.values())
        # The logarithm of a sure token may be rounded to slightly above 0.
        if any(value > 1e-6 for value in values):
            return warns(sent, f"a log-probability above 0 at token {position}")
        if sum(2.718281828459045**value for value in values) > 1.01:
            return warns(sent, f"probabilities that sum to more than 1 at token {position}")
        if token.logprob is None or (token.token in token.top and abs(token.top[token.token] - token.logprob) > 0.01):
            return warns(sent, f"token {position} and the list of likeliest ones disagree about its log-probability")
    joined = "".join(token.token for token in tokens)
    # Special tokens ("<") and characters cut between tokens are spelt differently in tokens and text.
    if choice.whole.strip() not in joined and REPLACED not in joined and "<" not in joined:
        return warns(sent, f"the tokens read {quoted(joined)!r}, the text {quoted(choice.whole)!r}")
    return sound(sent, f"{len(tokens)} tokens, all coherent")


def _utf8(subject: Subject) -> Seen:
    """Check that no character of several bytes gets lost between two tokens. Where the engine has a grammar, it forces
    the reply to hold such characters.
    """
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
        return broken_stream(sent, streamed)
    text, whole = _complete((streamed.reasoning or "") + (streamed.text or "")), _complete(whole)
    if REPLACED in text or REPLACED in whole:
        # A model whose replies are sampled may write such bytes itself: what is lost, is lost in each reply.
        if whole not in (_complete(subject.whole(inquiry).first.whole) for _ in range(TRIED)):
            return untested(sent, "replies to one greedy request differ, so the model may have written broken bytes")
        which = "stream" if REPLACED in text else "whole reply"
        return spoils(sent, f"characters between two tokens were lost in the {which}: {quoted(text)!r}")
    if held and (UNICODE not in text or UNICODE not in whole):
        if UNICODE not in text and UNICODE not in whole:
            return untested(sent, f"the engine's grammar did not force this text: {quoted(text)!r}")
        return spoils(sent, f"the stream brought {quoted(text)!r}, the whole reply {quoted(whole)!r}")
    if UNICODE not in text or UNICODE not in whole:
        return untested(sent, f"another text came: {quoted(text)!r}")
    return sound(sent, f"every character came, in the stream and in the whole reply: {quoted(text)!r}")


def _errors(subject: Subject) -> Seen:
    """Send a body that is not JSON: the server must answer with an error status."""
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
        return warns(sent, f"HTTP {status}, and a body that is not JSON")
    return sound(sent, f"HTTP {status}: {quoted(error_words(body))}")


def _model_name(subject: Subject) -> Seen:
    """Ask for a misspelt model name: a server that answers may serve any model under any name."""
    sent = f"the model name {MISSPELT!r}"
    try:
        answer = subject.chat("Hello", model=MISSPELT, max_tokens=1)
    except Refused as refused:
        if 400 <= refused.status < 500:
            return sound(sent, quoted(refused.sentence))
        return warns(sent, quoted(refused.sentence))
    return warns(
        sent, f"a reply, by {quoted(answer.model or 'a model without a name')!r}: the server answers to any model name"
    )


def _complete(text: str) -> str:
    """The text without a last character that max_tokens cut: some servers leave it out, others send `REPLACED`."""
    return text.rstrip(REPLACED)


def _with_logprobs(subject: Subject, **fields: Any) -> ProbeReply:
    """The reply to the story prompt with these fields, and with log-probabilities if the server gives them."""
    try:
        return subject.chat(**fields, **logprob_fields(CHAT))
    # A server may refuse log-probabilities altogether; the check then counts tokens by the usage alone.
    except Refused:
        return subject.chat(**fields)


def _rendered(subject: Subject, text: str) -> list[int] | None:
    """The token ids of a prompt with this one message, by the server's own tokenizer; None if it shows none."""
    try:
        prompt = subject.server.render([Message(role="user", content=text)], {})
    except ServerError:
        return None
    return None if prompt is None else prompt[1]


CHECKS = (
    Check(
        name="streaming", group="protocol", look=_streaming, by_text=True,
        why="A run reads streams: text that a stream drops is missing from the answer that is graded.",
        mend="Look for a proxy or a reasoning parser that drops events; ask for whole replies until it is mended.",
    ),
    Check(
        name="usage", group="protocol", look=_usage,
        why="Lengths, budgets and prices are computed from the server's token counts.",
        mend="Switch on usage at the server, also in streams. Without it, a budget and the cost count each reply "
        "with the most tokens possible, a score states no lengths, and the progress of a run counts stream events. "
        "Where counts are false, ask the provider: a bill by them is false, too.",
    ),
    Check(
        name="length", group="protocol", look=_length,
        why="A reply that is cut early or silently loses its answer and counts as wrong.",
        mend="Look for a proxy or a server setting that lowers max_tokens or rewrites finish_reason.",
    ),
    Check(
        name="natural end", group="protocol", look=_ending, tokens=450,
        why="A reply that ends by itself must say so: otherwise nobody can tell truncated replies from finished ones.",
        mend="Look at the model's end-of-turn tokens (generation_config.json, eos_token_id) and at its template.",
    ),
    Check(
        name="stop texts", group="protocol", look=_stop, by_text=True,
        why="Benchmarks with stop texts grade the text before the stop text.",
        mend="Use a server that obeys `stop`, or a card without stop texts.",
    ),
    Check(
        name="several choices", group="protocol", look=_choices, by_text=True,
        why="A run asks for each sample in a request of its own, so it needs no `n`; other tools use `n`.",
        mend="Nothing is to be done for a run of this harness.",
    ),
    Check(
        name="log-probabilities", group="protocol", look=_logprobs,
        why="The checks of sampling and of weights need log-probabilities.",
        mend="Start the server so that it returns log-probabilities from before sampling (raw).",
    ),
    Check(
        name="characters", group="protocol", look=_utf8, by_text=True, tokens=280,
        why="A character lost between two tokens changes an answer.",
        mend="Update the engine, or look for a proxy that decodes and encodes each chunk by itself.",
    ),
    Check(
        name="errors", group="protocol", look=_errors,
        why="The status of an error decides whether a request is retried or given up.",
        mend="Look for a gateway that turns errors into replies.",
    ),
    Check(
        name="model name", group="protocol", look=_model_name,
        why="A server that answers to any model name may serve another model than the reported one.",
        mend="Compare the model name in the server's replies with the model that you mean.",
    ),
)  # fmt: skip
