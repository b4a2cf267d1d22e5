"""What may go wrong between a model and its client, and what is odd about sound servers.

Each fault names in `finds` the checks that must not be sound behind it, and in `says` a part of what one of them must
say, so that a fault is not only found but named.
"""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.commands.toy_model import END_TOKEN, Bend, Body, Fault

Values = np.ndarray[Any, Any]
Ask = Callable[[Body], Body]
Whole = Callable[[Body, dict[str, Any]], dict[str, Any]]


def fault(*finds: str, says: str = "", **hooks: Any) -> Fault:
    """A fault that does this in place of the methods of `Fault` with these names."""
    made = Fault()
    made.finds, made.says = finds, says
    vars(made).update(hooks)
    return made


# ---- what is done to requests


def drops(*names: str) -> Ask:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def sets(**fields: Any) -> Ask:
    return lambda body: {**body, **fields}


def heats(factor: float) -> Ask:
    return lambda body: {**body, "temperature": factor * body.get("temperature", 1.0)}


def chats(change: Callable[[list[Body]], list[Body]]) -> Ask:
    return lambda body: {**body, "messages": change(body["messages"])} if "messages" in body else body


def keeps(*shares: tuple[float, float]) -> Ask:
    """These shares of the words of a long prompt go on."""

    def cut(message: Body) -> Body:
        words = (message.get("content") or "").split()
        n = len(words)
        left = [word for low, high in shares for word in words[int(low * n) : int(high * n)]]
        return {**message, "content": " ".join(left)} if n > 900 else message

    return chats(lambda messages: [cut(message) for message in messages])


unlisted = drops("logprobs", "top_logprobs")
"""Without log-probabilities."""


# ---- what is done to answers


def choices(change: Callable[[Body, dict[str, Any]], object]) -> Whole:
    """change: of (request, one of its choices), in place."""

    def whole(asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            change(asked, choice)
        return answer

    return whole


def tokens(change: Callable[[dict[str, Any]], object]) -> Whole:
    """change: of each token that comes with log-probabilities, in place."""
    return choices(
        lambda _, choice: [change(each) for each in (choice.get("logprobs") or {}).get("content") or () if each]
    )


def counts_whole(asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
    """Usage is that of the prompt as it came."""
    if "messages" in asked:
        text = " ".join(message.get("content") or "" for message in asked["messages"])
        answer["usage"]["prompt_tokens"] = len(text.split()) + 5
    return answer


def no_usage(_asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
    answer.pop("usage", None)
    return answer


def streams(change: Callable[[bytes], bytes]) -> Callable[[Body, bytes], bytes]:
    return lambda asked, content: change(content) if asked.get("stream") else content


def mixes_up() -> Fault:
    """A prefix cache that takes a prompt it knows for another one."""
    kept: set[str] = set()

    def request(body: Body) -> Body:
        said = body["messages"][-1]["content"] if "messages" in body else ""
        if said and said in kept:
            return {**body, "messages": [{"role": "user", "content": f"Another prompt: {said}"}]}
        kept.add(said)
        return body

    return fault("messages", request=request)


def cached() -> Fault:
    """Answers a prompt that it knows by what it said before, whatever the seed."""
    kept: dict[str, bytes] = {}

    def key(body: Body) -> str:
        return json.dumps({k: v for k, v in body.items() if k != "seed"}, sort_keys=True)

    return fault(
        "seeds",
        request=lambda body: kept.get(key(body), body),
        answer=lambda asked, content: kept.setdefault(key(asked), content),
    )


def late(*finds: str, says: str = "", drop: Sequence[str] = (), factor: float | None = None, **fields: Any) -> Fault:
    """Later tokens than the first are drawn by these fields. factor: of the temperature; drop: fields ignored."""

    def change(logprobs: Values, _place: int, body: Mapping[str, Any]) -> tuple[Values, Mapping[str, Any]]:
        left = {name: value for name, value in body.items() if name not in drop} | fields
        return logprobs, left if factor is None else heats(factor)(left)

    return fault(*finds, says=says, bend=later(change))


def later(change: Callable[[Values, int, Mapping[str, Any]], tuple[Values, Mapping[str, Any]]]) -> Bend:
    return lambda logprobs, place, body, _: change(logprobs, place, body) if place else (logprobs, body)


def drafted(logprobs: Values, place: int, body: Mapping[str, Any]) -> tuple[Values, Mapping[str, Any]]:
    """Speculative decoding that takes half of its tokens from a draft model without asking the model."""
    if place % 2 == 0:
        return logprobs, body
    draft = np.random.default_rng(zlib.crc32(logprobs.tobytes())).standard_normal(len(logprobs))
    draft[END_TOKEN] = -9.0
    return draft - math.log(np.exp(draft).sum()), body


def decoded(logprobs: Values, _place: int, body: Mapping[str, Any]) -> tuple[Values, Mapping[str, Any]]:
    """The kernel that writes is not the one that reads: the logits are off by noise, and what is stated is, too."""
    logprobs += 0.3 * np.random.default_rng(zlib.crc32(logprobs.tobytes())).standard_normal(len(logprobs))
    logprobs -= math.log(np.exp(logprobs).sum())
    return logprobs, body


def _always_system(messages: list[Body], times: int = 20) -> list[Body]:
    return [{"role": "system", "content": "You are a helpful assistant of the Example company. " * times}, *messages]


def _system(messages: list[Body]) -> list[Body]:
    return messages if any(m["role"] == "system" for m in messages) else _always_system(messages, 5)


def _without_system(messages: list[Body]) -> list[Body]:
    return [m for m in messages if m["role"] != "system"]


def _last(messages: list[Body]) -> list[Body]:
    return [m for m in messages if m["role"] == "system"] + messages[-1:]


def streamed(change: Callable[[str], str], says: str) -> Fault:
    """Rewrites the pieces of a stream."""

    def line(content: bytes) -> bytes:
        if not content.startswith(b"data: {"):
            return content
        value = json.loads(content[6:])
        for choice in value["choices"]:
            if choice["delta"].get("content"):
                choice["delta"]["content"] = change(choice["delta"]["content"])
        return b"data: " + json.dumps(value).encode()

    rewritten = streams(lambda content: b"\n\n".join(map(line, content.split(b"\n\n"))))
    return fault("copied text", says=says, answer=rewritten)


def undercounts(of: float, says: str = "", *, listed: bool = True) -> Fault:
    """States this share of the new tokens, and cuts nothing. listed: whether it states log-probabilities."""

    def whole(_asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        usage = answer["usage"]
        usage["completion_tokens"] = int(of * usage["completion_tokens"])
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        return answer

    return fault("usage", says=says, whole=whole, request=sets() if listed else unlisted)


def cold_ignored(says: str = "", *, listed: bool = True) -> Fault:
    """Samples at temperature 1 where 0 is asked for. listed: whether it states log-probabilities."""
    return fault(
        "temperature 0",
        says=says,
        request=lambda body: {**(body if listed else unlisted(body)), "temperature": body.get("temperature") or 1.0},
    )


def says_instead(text: Callable[[Body], str | None]) -> Whole:
    """The text of each chat's reply is that for the request."""
    return choices(lambda asked, choice: "message" in choice and choice["message"].update(content=text(asked)))


def silent() -> Fault:
    """Sends no text in a chat."""
    return fault(whole=says_instead(lambda _: None))


def echoes() -> Fault:
    """Sends the prompt of a chat as the reply."""
    said = says_instead(lambda body: " ".join(body["messages"][-1]["content"].split()[: body.get("max_tokens", 64)]))
    return fault("reply text", says="the prompt itself", request=unlisted, whole=said)


def rejects(*names: str) -> Fault:
    """Refuses requests with these fields, as a provider does that does not know them."""
    return fault(rejects=lambda body: next((name for name in names if name in body), None))


def empties(is_empty: Callable[[Body], bool]) -> Fault:
    """Sends these replies without any text, as some gateways do."""

    def empty(asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"] if "messages" in asked and is_empty(asked) else ():
            choice |= {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
            choice.pop("logprobs", None)
        return answer

    return fault("empty replies", says="were empty with finish_reason `stop`", whole=empty)


def empties_some(of: float) -> Fault:
    chance = random.Random(7)
    return empties(lambda _: chance.random() < of)


def unfinished(n: int) -> Fault:
    """Every n-th stream ends in the middle, without a finish reason."""
    number = 0

    def half(content: bytes) -> bytes:
        nonlocal number
        number += 1
        events = content.split(b"\n\n")
        return content if number % n else b"\n\n".join(events[: len(events) // 2])

    return fault("finished streams", says="ended without a finish reason", answer=streams(half))


# ---- odd and sound


def _lists_the_drawn(token: dict[str, Any]) -> None:
    top, own = token["top_logprobs"], {"token": token["token"], "logprob": token["logprob"]}
    token["top_logprobs"] = [own, *(entry for entry in top if entry != own)][: len(top)]


def _clamped(token: dict[str, Any]) -> None:
    for entry in (token, *token["top_logprobs"]):
        entry["logprob"] = max(entry["logprob"], -5.0)


def _thinks(_asked: Body, choice: dict[str, Any]) -> None:
    """The first twelve words of a chat's reply come in a field of their own."""
    message = choice.get("message")
    if message and message.get("content"):
        pieces = message["content"].split(" ")
        rest = " ".join(pieces[13:])
        message |= {"reasoning_content": " ".join(pieces[:13]), "content": f" {rest}" if rest else None}


def _half_a_character(asked: Body, choice: dict[str, Any]) -> None:
    """A whole reply that max_tokens cut within a character shows a mark for it; a stream keeps it back."""
    message = choice.get("message")
    if not asked.get("stream") and message and message.get("content") and choice["finish_reason"] == "length":
        message["content"] += "\ufffd"


def slow(first: float = 0.0, *, reading: float = 0.0, writing: float = 0.0) -> Fault:
    """A sound server that takes its time. first: seconds to the first token; reading, writing: seconds a token."""

    def whole(_asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        usage = answer["usage"]
        made.first_seconds = first + reading * usage["prompt_tokens"]
        made.whole_seconds = made.first_seconds + writing * usage["completion_tokens"]
        return answer

    made = fault(whole=whole)
    return made


def noisy(noise: float, **hooks: Any) -> Fault:
    """A batch moves each logit by so much at every token of every reply."""
    return fault(server=lambda toy, _: replace(toy, noise=noise), **hooks)


def deaf_to_the_tail(noise: float = 0.09) -> Fault:
    """A model that hears the last words of a long prompt less than a busy batch moves its logits: replies differ by
    `noise` from request to request, and the prompt's end has no effect on them at all."""
    return noisy(noise, request=keeps((0, 0.95)), whole=counts_whole)


SOUND: dict[str, Callable[[], Fault]] = {
    "plain": Fault,
    "log-probabilities clamped at −5": lambda: fault(whole=tokens(_clamped)),
    "the drawn token listed in place of the last": lambda: fault(whole=tokens(_lists_the_drawn)),  # as vLLM does
    "a reasoning field": lambda: fault(whole=choices(_thinks)),
    "no usage": lambda: fault(whole=no_usage),
    "replies cut in mid-character": lambda: fault(whole=choices(_half_a_character)),
    "no log-probabilities": lambda: fault(request=unlisted),
    "comments in the stream": lambda: fault(answer=streams(lambda text: text.replace(b"\n\n", b"\n\n: ping\n\n"))),
    "noise of batches 0.02": lambda: noisy(0.02),
    "20 s to the first token, slow reading": lambda: slow(20.0, reading=0.1),
    "1.5 s a token": lambda: slow(writing=1.5),
    "6 s a token": lambda: slow(writing=6.0),
    "seeds rejected": lambda: rejects("seed"),
}

_MIDDLE, _TAIL = ((0, 0.2), (0.8, 1)), ((0.5, 1),)

FAULTS: dict[str, Callable[[], Fault]] = {
    "temperature × 0.3": lambda: fault("later draws at 0.5", request=heats(0.3)),
    "temperature always 1": lambda: fault("temperature 0", request=sets(temperature=1.0)),
    # Without a cut of the distribution the tail is sampled too.
    "top_k ignored": lambda: fault("later cuts", request=drops("top_k")),
    "top_p ignored": lambda: fault("later cuts", request=drops("top_p")),
    "min_p ignored": lambda: fault("later cuts", request=drops("min_p")),
    "one seed for all": lambda: fault("seeds", request=sets(seed=7)),
    "stop sequences ignored": lambda: fault("stop sequences", request=drops("stop")),
    "head of the prompt dropped": lambda: fault(
        "context",
        request=chats(lambda all_: [{**one, "content": " ".join(one["content"].split()[-500:])} for one in all_]),
    ),
    "replies cached": cached,
    "prefix cache mixes prompts up": mixes_up,
    "seeds ignored": lambda: fault("seeds", request=drops("seed")),
    "usage dropped": lambda: fault("usage", whole=no_usage),
    # As of a proxy that decodes each piece by itself: characters of three bytes and more are lost.
    "characters mangled": lambda: fault(
        "copied text",
        answer=streams(lambda text: "".join(c if ord(c) < 0x800 else "\ufffd" for c in text.decode()).encode()),
    ),
    "an event of the stream dropped": lambda: fault(
        "streaming", answer=streams(lambda text: b"\n\n".join((all_ := text.split(b"\n\n"))[:3] + all_[4:]))
    ),
    # A gateway that asks for temperature 1.8 whatever is asked, before a server with llama.cpp's own cuts.
    "gateway before llama.cpp's cuts, temperature 1.8": lambda: fault(
        "later draws at 0.5",
        says="less likely",
        request=lambda body: {"top_k": 40, "min_p": 0.05, **body, "temperature": 1.8},
    ),
    # Long prompts
    **{
        f"{name} dropped, {usage}": lambda kept=kept, whole=whole, says=says: fault(  # type: ignore[misc]
            "context", says=says, request=keeps(*kept), whole=whole
        )
        for name, kept, usage, whole, says in (
            ("a third in the middle", ((0, 0.33), (0.67, 1)), "usage of the whole", counts_whole, "never reached"),
            ("head", _TAIL, "usage of the whole", counts_whole, "never reached"),
            ("tail", ((0, 0.6),), "usage of the whole", counts_whole, "never reached"),
            ("middle", _MIDDLE, "usage of the rest", choices(lambda *_: None), "the prompt was truncated"),
            ("middle", _MIDDLE, "no usage", no_usage, "never reached"),
            ("head", _TAIL, "no usage", no_usage, "never reached"),
        )
    },
    # Beside a reference
    # Bare servers
    **{
        name: lambda change=change, finds=finds, says=says, hooks=hooks: fault(  # type: ignore[misc]
            finds, says=says, request=chats(change), **hooks
        )
        for name, change, finds, says, hooks in (
            ("a system prompt added", _system, "added words", "a system prompt", {}),
            ("a system prompt always added", _always_system, "added words", "a system prompt", {}),
            *(
                (f"{what} dropped{usage}", change, "messages", f"{says}: never reached", hooks)
                for what, change, says in (
                    ("the system message", _without_system, "system message"),
                    ("earlier turns", _last, "earlier turns"),
                )
                for usage, hooks in (("", {}), (", usage of all", {"whole": counts_whole}))
            ),
        )
    },
    **{
        f"{what} in the stream": lambda change=change, says=says: streamed(change, says)  # type: ignore[misc]
        for what, change, says in (
            ("line ends lost", lambda s: s.replace("\n", ""), "reply has ''"),
            ("backslashes lost", lambda s: s.replace("\\", ""), "reply has ''"),
            ("backslashes doubled", lambda s: s.replace("\\", "\\\\"), "the streamed reply has"),
            ("marks escaped", lambda s: s.replace("<", "&lt;"), "'&lt;'"),
            ("accents lost", lambda s: s.encode("ascii", "ignore").decode(), "reply has ''"),
            ("spaces of pieces stripped", lambda s: s.strip(" "), "reply has ''"),
        )
    },
    "the stream counts other tokens": lambda: fault(
        "usage",
        says="the stream",
        answer=streams(
            lambda text: text.replace(
                b'"completion_tokens": 24, "total_tokens": 41', b'"completion_tokens": 11, "total_tokens": 28'
            )
        ),
    ),
    # Replies without the reply
    "the prompt as the reply": echoes,
    "every fourth stream unfinished": lambda: unfinished(4),
    "1 in 5 replies empty": lambda: empties_some(0.2),
    # After the first token
    "temperature × 0.5 after the first token": lambda: late("later draws at 0.5", factor=0.5, says="more likely"),
    "temperature × 1.6 after the first token": lambda: late("later draws at 0.5", factor=1.6, says="less likely"),
    "temperature 1 after the first token": lambda: late("later draws at 0.5", temperature=1.0, says="less likely"),
    "top_k 5 filled in after the first token": lambda: late("later cuts", top_k=5, says="top_k is ignored"),
    "top_p 0.6 filled in after the first token": lambda: late("later cuts", top_p=0.6, says="top_p is ignored"),
    "top_k forgotten after the first token": lambda: late("later cuts", drop=("top_k",), says="top_k is ignored"),
    "top_p forgotten after the first token": lambda: late("later cuts", drop=("top_p",), says="top_p is ignored"),
    "min_p forgotten after the first token": lambda: late("later cuts", drop=("min_p",), says="min_p is ignored"),
    "greedy forgotten after the first token": lambda: late(
        "temperature 0", temperature=1.0, says="not the most likely"
    ),
    "half of the tokens from a draft": lambda: fault("later draws at 0.5", says="less likely", bend=later(drafted)),
    "a decode kernel off by 0.3": lambda: fault(
        "writing and reading", says="different probabilities", bend=later(decoded)
    ),
    # Openings
}
"""By what is wrong."""

MISLEADING: dict[str, Callable[[], Fault]] = {
    "0.7 of the new tokens counted": lambda: undercounts(
        0.7, "usage reports 16 completion tokens, but the reply has 24"
    ),
    "0.97 of the new tokens counted": lambda: undercounts(
        0.97, "usage reports 23 completion tokens, but the reply has 24"
    ),
    "1.4 of the new tokens counted": lambda: undercounts(
        1.4, "usage reports 33 completion tokens, but the reply has 24"
    ),
    "0.7 of the new tokens counted, no log-probabilities": lambda: undercounts(
        0.7, "usage reports 16 completion tokens for a reply with max_tokens 24 and finish_reason length", listed=False
    ),
    "the prompt as the reply": echoes,
    "every second stream unfinished": lambda: unfinished(2),
    "temperature 0 ignored": lambda: cold_ignored("not the most likely"),
    "temperature 0 ignored, no log-probabilities": lambda: cold_ignored("differ at the first token", listed=False),
}
"""Faults that spoil what many checks read: the checks in `finds` name them, and no other may accuse the server."""
