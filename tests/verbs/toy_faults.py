"""What may go wrong between a model and its client, beyond `toy_model.FAULTS`, and what is odd about sound servers.

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

from tests.verbs.toy_model import END_TOKEN, Bend, Body, Fault, Toy

Values = np.ndarray[Any, Any]


class Ends(Fault):
    """Replies end elsewhere. share: of max_tokens; cap: in tokens; reason: what they say of it."""

    def __init__(self, *finds: str, share: float = 1.0, cap: int = 10**9, reason: str | None = "stop", says: str = ""):
        self.finds, self.share, self.cap, self.reason, self.says = finds, share, cap, reason, says

    def request(self, body: Body) -> Body:
        limit = body.get("max_tokens", 64)
        return {**body, "max_tokens": max(1, min(self.cap, math.ceil(self.share * limit)))}

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        limit = asked.get("max_tokens", 64)
        if limit > max(1, min(self.cap, math.ceil(self.share * limit))) and self.reason:
            for choice in answer["choices"]:
                choice["finish_reason"] = self.reason if choice["finish_reason"] == "length" else "stop"
        return answer


class Longer(Fault):
    finds, says = ("ends",), "tokens came where"

    def request(self, body: Body) -> Body:
        return {**body, "max_tokens": 2 * body.get("max_tokens", 64)}


class CutsPrompt(Fault):
    """Keeps words of a long prompt. keep: shares of the prompt that stay; usage: of the whole prompt, as it came."""

    finds: tuple[str, ...] = ("context",)

    def __init__(
        self, *keep: tuple[float, float], usage: bool = True, stated: bool = True, says: str = "never reached"
    ):
        self.keep, self.usage, self.stated, self.says = keep, usage, stated, says

    def request(self, body: Body) -> Body:
        if "messages" not in body:
            return body
        cut = []
        for message in body["messages"]:
            words = (message.get("content") or "").split()
            if len(words) > 900:
                n = len(words)
                words = [word for low, high in self.keep for word in words[int(low * n) : int(high * n)]]
                cut.append({**message, "content": " ".join(words)})
            else:
                cut.append(message)
        return {**body, "messages": cut}

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        if not self.stated:
            answer.pop("usage", None)
        elif self.usage:
            text = " ".join(m.get("content") or "" for m in asked.get("messages", [])) or str(asked.get("prompt"))
            answer["usage"]["prompt_tokens"] = len(text.split()) + 5
        return answer


Crowded = Callable[[list[bytes], random.Random], list[bytes]]
"""What happens to the replies that are in flight at once."""


class UnderLoad(Fault):
    """Does something to replies that are in flight at once."""

    def __init__(self, change: Crowded, *finds: str, says: str = "") -> None:
        self.change, self.finds, self.says = change, finds, says

    def together(self, bodies: Sequence[Body], contents: list[bytes]) -> list[bytes]:
        return self.change(contents, random.Random(len(contents))) if len(contents) > 16 else contents


def swapped(share: float) -> Crowded:
    """This share of replies goes to another request."""

    def change(contents: list[bytes], rng: random.Random) -> list[bytes]:
        n = max(2, round(share * len(contents)))
        at = rng.sample(range(len(contents)), n)
        moved = list(contents)
        for i, place in enumerate(at):
            moved[place] = contents[at[(i + 1) % n]]
        return moved

    return change


def emptied(contents: list[bytes], rng: random.Random) -> list[bytes]:
    """Some replies come without a word."""
    end = b'data: {"model": "toy", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    return [end if rng.random() < 0.2 else content for content in contents]


def shortened(contents: list[bytes], rng: random.Random) -> list[bytes]:
    """Some streams lose their later half and say `stop`."""
    out = []
    for content in contents:
        events = content.split(b"\n\n")
        if rng.random() < 0.2:
            events = events[: len(events) // 2] + [e.replace(b'"length"', b'"stop"') for e in events[-4:]]
        out.append(b"\n\n".join(events))
    return out


class Overloaded(Fault):
    """Another model answers what is in flight at once."""

    finds, says = ("load",), ""

    def __init__(self) -> None:
        self.n = 0

    def server(self, toy: Toy, body: Body) -> Toy:
        self.n = self.n + 1 if body.get("stream") and body.get("max_tokens") == 12 else 0
        return replace(toy, weights="fallback", spread=2.0) if self.n > 16 else toy


class Prefix(Fault):
    """A prefix cache that takes two prompts for one by their first (or last) words."""

    finds, says = ("prefix cache",), "another prompt"

    def __init__(self, words: slice) -> None:
        self.words, self.kept = words, dict[str, Any]()

    def request(self, body: Body) -> Body:
        if "messages" not in body:
            return body
        words = body["messages"][-1]["content"].split()
        if len(words) < 40:
            return body
        first = self.kept.setdefault(" ".join(words[self.words]), body["messages"])
        return {**body, "messages": first}


class Late(Fault):
    """Something happens after the first token only. fields: of later tokens; drop: fields that they ignore."""

    def __init__(self, *finds: str, drop: Sequence[str] = (), says: str = "", bend: Bend | None = None, **fields: Any):
        self.finds, self.drop, self.fields, self.says, self.bends = finds, drop, fields, says, bend

    def bend(
        self, logprobs: Values, place: int, body: Mapping[str, Any], chance: random.Random
    ) -> tuple[Values, Mapping[str, Any]]:
        if place == 0:
            return logprobs, body
        if self.bends is not None:
            return self.bends(logprobs, place, body, chance)
        left = {name: value for name, value in body.items() if name not in self.drop}
        more = {**self.fields}
        if "factor" in more:
            more["temperature"] = more.pop("factor") * body.get("temperature", 1.0)
        return logprobs, {**left, **more}


def drafted(
    logprobs: Values, place: int, body: Mapping[str, Any], chance: random.Random
) -> tuple[Values, Mapping[str, Any]]:
    """Speculative decoding that takes half of its tokens from a draft model without asking the model."""
    if place % 2 == 0:
        return logprobs, body
    draft = np.random.default_rng(zlib.crc32(logprobs.tobytes())).standard_normal(len(logprobs))
    draft[END_TOKEN] = -9.0
    return draft - math.log(np.exp(draft).sum()), body


class Decoding(Fault):
    """The kernel that writes is not the one that reads: from the second token on the logits are off by noise."""

    def __init__(self, spread: float, *finds: str, says: str = "") -> None:
        self.spread, self.finds, self.says = spread, finds, says

    def bend(
        self, logprobs: Values, place: int, body: Mapping[str, Any], chance: random.Random
    ) -> tuple[Values, Mapping[str, Any]]:
        if place == 0:
            return logprobs, body
        off = self.spread * np.random.default_rng(zlib.crc32(logprobs.tobytes())).standard_normal(len(logprobs))
        # In place: what is stated is off, too.
        logprobs += off
        logprobs -= math.log(np.exp(logprobs).sum())
        return logprobs, body


class Replicas(Fault):
    """One of n replicas is another one."""

    def __init__(self, n: int, *finds: str, says: str = "several models", **other: Any) -> None:
        self.n, self.finds, self.other, self.says = n, finds, other, says
        self.chance = random.Random(7)

    def server(self, toy: Toy, body: Body) -> Toy:
        odd = self.chance.random() < 1 / self.n
        return replace(toy, **{"weights": "other", "spread": 1.0, **self.other}) if odd else toy


class SomePlaces(Fault):
    """Another likeliest token in one of ten prompts, and the same distribution elsewhere."""

    finds, says = ("weights",), "places"

    def server(self, toy: Toy, body: Body) -> Toy:
        prompt = str(body.get("prompt", ""))
        return replace(toy, weights="other", spread=1.5) if zlib.crc32(prompt.encode()) % 10 == 0 else toy


class Messages(Fault):
    """Rewrites the messages of a chat."""

    def __init__(
        self, change: Callable[[list[Body]], list[Body]], *finds: str, usage: bool = True, says: str = ""
    ) -> None:
        self.change, self.finds, self.honest, self.says = change, finds, usage, says

    def request(self, body: Body) -> Body:
        return {**body, "messages": self.change(body["messages"])} if "messages" in body else body

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        if not self.honest and "messages" in asked:
            text = " ".join(m.get("content") or "" for m in asked["messages"])
            answer["usage"]["prompt_tokens"] = len(text.split()) + 5
        return answer


def _system(messages: list[Body]) -> list[Body]:
    default = {"role": "system", "content": "You are a helpful assistant of the Example company. " * 5}
    return messages if any(m["role"] == "system" for m in messages) else [default, *messages]


def _always_system(messages: list[Body]) -> list[Body]:
    return [{"role": "system", "content": "You are a helpful assistant of the Example company. " * 20}, *messages]


def _without_system(messages: list[Body]) -> list[Body]:
    return [m for m in messages if m["role"] != "system"]


def _last(messages: list[Body]) -> list[Body]:
    return [m for m in messages if m["role"] == "system"] + messages[-1:]


class Streamed(Fault):
    """Rewrites the pieces of a stream."""

    def __init__(self, change: Callable[[str, int], str], *finds: str, says: str = "") -> None:
        self.change, self.finds, self.says = change, finds, says

    def answer(self, asked: Body, content: bytes) -> bytes:
        if not asked.get("stream"):
            return content
        out = []
        for n, line in enumerate(content.split(b"\n\n")):
            if line.startswith(b"data: {"):
                value = json.loads(line[6:])
                for choice in value["choices"]:
                    if choice["delta"].get("content"):
                        choice["delta"]["content"] = self.change(choice["delta"]["content"], n)
                line = b"data: " + json.dumps(value).encode()
            out.append(line)
        return b"\n\n".join(out)


class Opens(Fault):
    """A chat's prompt opens with so many BOS."""

    def __init__(self, bos: int, says: str, *, adds: bool = True) -> None:
        self.bos, self.adds, self.finds, self.says = bos, adds, ("opening",), says

    def server(self, toy: Toy, body: Body) -> Toy:
        return replace(toy, bos=self.bos, adds=self.adds)


class StreamUsage(Fault):
    """The stream counts other tokens than the whole reply."""

    finds, says = ("usage",), "the stream"

    def answer(self, asked: Body, content: bytes) -> bytes:
        return (
            content.replace(b'"completion_tokens": 24', b'"completion_tokens": 11') if asked.get("stream") else content
        )


class Unlisted(Fault):
    """States no log-probabilities."""

    def request(self, body: Body) -> Body:
        return {name: value for name, value in body.items() if name not in ("logprobs", "top_logprobs")}


class Undercounts(Fault):
    """States this share of the new tokens, and cuts nothing. listed: whether it states log-probabilities."""

    finds = ("usage",)

    def __init__(self, share: float, says: str, *, listed: bool = True) -> None:
        self.share, self.says, self.listed = share, says, listed

    def request(self, body: Body) -> Body:
        return body if self.listed else Unlisted().request(body)

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        answer["usage"]["completion_tokens"] = int(self.share * answer["usage"]["completion_tokens"])
        return answer


class ColdIgnored(Fault):
    """Samples at temperature 1 where 0 is asked for. listed: whether it states log-probabilities."""

    finds = ("temperature 0",)

    def __init__(self, says: str = "", *, listed: bool = True) -> None:
        self.says, self.listed = says, listed

    def request(self, body: Body) -> Body:
        body = body if self.listed else Unlisted().request(body)
        return {**body, "temperature": body.get("temperature") or 1.0}


class Silent(Fault):
    """Sends no text in a chat."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            if "message" in choice:
                choice["message"]["content"] = None
        return answer


class Echoes(Unlisted):
    """Sends the prompt of a chat as the reply."""

    finds, says = ("reply text",), "the prompt itself"

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            if "message" in choice:
                words = asked["messages"][-1]["content"].split()[: asked.get("max_tokens", 64)]
                choice["message"]["content"] = " ".join(words)
        return answer


class Rejects(Fault):
    """Refuses requests with these fields, as a provider does that does not know them."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def rejects(self, body: Body) -> str | None:
        return next((name for name in self.names if name in body), None)


class Empties(Fault):
    """Sends a share of the replies without any text, whatever the request, as some gateways do under load."""

    finds, says = ("empty replies",), "came empty with finish_reason stop"

    def __init__(self, share: float) -> None:
        self.share = share
        self.chance = random.Random(7)

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        if "messages" in asked and self.chance.random() < self.share:
            for choice in answer["choices"]:
                choice |= {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
                choice.pop("logprobs", None)
        return answer


class Unfinished(Fault):
    """Every n-th stream ends in the middle, without a finish reason."""

    finds = ("finished streams",)

    def __init__(self, n: int, says: str = "ended without a finish reason") -> None:
        self.n, self.says, self.streams = n, says, 0

    def answer(self, asked: Body, content: bytes) -> bytes:
        if not asked.get("stream"):
            return content
        self.streams += 1
        events = content.split(b"\n\n")
        return content if self.streams % self.n else b"\n\n".join(events[: len(events) // 2])


# ---- odd and sound


class Clamped(Fault):
    """States no log-probability below −5."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            for token in (choice.get("logprobs") or {}).get("content") or ():
                for entry in (token, *token.get("top_logprobs", ())):
                    if "logprob" in entry:
                        entry["logprob"] = max(entry["logprob"], -5.0)
        return answer


class ListsTheDrawn(Fault):
    """Lists the drawn token first, and then the 19 likeliest others (vLLM)."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            for token in (choice.get("logprobs") or {}).get("content") or ():
                if token:
                    top = token["top_logprobs"]
                    own = {"token": token["token"], "logprob": token["logprob"]}
                    token["top_logprobs"] = [own, *(entry for entry in top if entry != own)][: len(top)]
        return answer


class Reasoning(Fault):
    """The first twelve words of a chat's reply come in a field of their own."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            message = choice.get("message")
            if message is not None and message.get("content"):
                pieces = message["content"].split(" ")
                thought, rest = " ".join(pieces[:13]), " ".join(pieces[13:])
                message["reasoning_content"] = thought
                message["content"] = f" {rest}" if rest else None
        return answer


class Uncounted(Fault):
    """States no usage at all."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        answer.pop("usage", None)
        return answer


class HalfACharacter(Fault):
    """A whole reply that max_tokens cut within a character shows a mark for it; a stream keeps it back."""

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            message = choice.get("message")
            if not asked.get("stream") and message and message.get("content") and choice["finish_reason"] == "length":
                message["content"] += "\ufffd"
        return answer


class Prefilled(Fault):
    """A stream repeats what a proxy adds: an id, and comments between events."""

    def answer(self, asked: Body, content: bytes) -> bytes:
        return content.replace(b"\n\n", b"\n\n: ping\n\n") if asked.get("stream") else content


class Slow(Fault):
    """A sound server that takes its time. first: seconds to the first token; reading, writing: seconds a token."""

    def __init__(self, first: float = 0.0, *, reading: float = 0.0, writing: float = 0.0) -> None:
        self.first, self.reading, self.writing = first, reading, writing

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        usage = answer["usage"]
        self.first_seconds = self.first + self.reading * usage["prompt_tokens"]
        self.whole_seconds = self.first_seconds + self.writing * usage["completion_tokens"]
        return answer


class HotBehindCuts(Fault):
    """A gateway that asks for temperature 1.8 whatever is asked, before a server with llama.cpp's own cuts."""

    finds, says = ("later draws at 0.5",), "less likely"

    def request(self, body: Body) -> Body:
        return {"top_k": 40, "min_p": 0.05, **body, "temperature": 1.8}


class Wavering(Fault):
    """A batch moves each logit by 0.02 at every token of every reply."""

    def server(self, toy: Toy, body: Body) -> Toy:
        return replace(toy, noise=0.02)


class DeafToTheTail(Fault):
    """A model that hears the last words of a long prompt less than a busy batch moves its logits: replies differ by
    `noise` from request to request, and the prompt's end has no effect on them at all."""

    def __init__(self, noise: float = 0.09) -> None:
        self.noise = noise

    def server(self, toy: Toy, body: Body) -> Toy:
        return replace(toy, noise=self.noise)

    def request(self, body: Body) -> Body:
        return CutsPrompt((0, 0.95)).request(body)

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        return CutsPrompt().whole(asked, answer)


SOUND: dict[str, Callable[[], Fault]] = {
    "plain": Fault,
    "log-probabilities clamped at −5": Clamped,
    "the drawn token listed in place of the last": ListsTheDrawn,
    "a reasoning field": Reasoning,
    "no usage": Uncounted,
    "replies cut in mid-character": HalfACharacter,
    "no log-probabilities": Unlisted,
    "comments in the stream": Prefilled,
    "noise of batches 0.02": Wavering,
    "20 s to the first token, slow reading": lambda: Slow(20.0, reading=0.1),
    "1.5 s a token": lambda: Slow(writing=1.5),
    "6 s a token": lambda: Slow(writing=6.0),
    "seeds rejected": lambda: Rejects("seed"),
}

FAULTS: dict[str, Callable[[], Fault]] = {
    "gateway before llama.cpp's cuts, temperature 1.8": HotBehindCuts,
    # Ends
    "a third of max_tokens, says stop": lambda: Ends("ends", share=0.34, says="goes on from there"),
    "nine tenths of max_tokens, says length": lambda: Ends("ends", share=0.9, reason="length", says="length after"),
    "cap at 256, says stop": lambda: Ends("long stream", cap=256, says="a cap at 256"),
    "cap at 1,024, says stop": lambda: Ends("long stream", cap=1024, says="a cap at 1,024"),
    "cap at 256, says length": lambda: Ends("long stream", cap=256, reason="length", says="a cap at 256"),
    "cap at 1,024, says length": lambda: Ends("long stream", cap=1024, reason="length", says="a cap at 1,024"),
    "max_tokens doubled": Longer,
    # Load
    "1 in 20 replies swapped under load": lambda: UnderLoad(swapped(0.05), "load", says="another prompt"),
    "empty replies under load": lambda: UnderLoad(emptied, "load", says="empty"),
    "replies cut under load, say stop": lambda: UnderLoad(shortened, "load", says="cut"),
    "another model under load": Overloaded,
    "prefix cache by first words": lambda: Prefix(slice(0, 30)),
    "prefix cache by last words": lambda: Prefix(slice(-8, None)),
    # Long prompts
    "a third in the middle dropped, usage of the whole": lambda: CutsPrompt((0, 0.33), (0.67, 1)),
    "head dropped, usage of the whole": lambda: CutsPrompt((0.5, 1)),
    "tail dropped, usage of the whole": lambda: CutsPrompt((0, 0.6)),
    "middle dropped, usage of the rest": lambda: CutsPrompt((0, 0.2), (0.8, 1), usage=False, says="cut on its way"),
    "middle dropped, no usage": lambda: CutsPrompt((0, 0.2), (0.8, 1), stated=False),
    # Beside a reference
    "another model at one place of ten": SomePlaces,
    "one replica of eight with another model, beside its reference": lambda: Replicas(8, "weights", says="places"),
    # Bare servers
    "a system prompt added": lambda: Messages(_system, "added words", usage=True, says="a system prompt"),
    "a system prompt always added": lambda: Messages(_always_system, "added words", says="a system prompt"),
    "the system message dropped": lambda: Messages(_without_system, "messages", says="system message: never reached"),
    "the system message dropped, usage of all": lambda: Messages(
        _without_system, "messages", usage=False, says="system message: never reached"
    ),
    "earlier turns dropped": lambda: Messages(_last, "messages", says="earlier turns: never reached"),
    "earlier turns dropped, usage of all": lambda: Messages(
        _last, "messages", usage=False, says="earlier turns: never reached"
    ),
    "line ends lost in the stream": lambda: Streamed(
        lambda s, _: s.replace("\n", ""), "copied text", says="stream has ''"
    ),
    "backslashes lost in the stream": lambda: Streamed(
        lambda s, _: s.replace("\\", ""), "copied text", says="stream has ''"
    ),
    "backslashes doubled in the stream": lambda: Streamed(
        lambda s, _: s.replace("\\", "\\\\"), "copied text", says="the stream has"
    ),
    "marks escaped in the stream": lambda: Streamed(lambda s, _: s.replace("<", "&lt;"), "copied text", says="'&lt;'"),
    "accents lost in the stream": lambda: Streamed(
        lambda s, _: s.encode("ascii", "ignore").decode(), "copied text", says="stream has ''"
    ),
    "spaces of pieces stripped in the stream": lambda: Streamed(
        lambda s, _: s.strip(" "), "copied text", says="stream has ''"
    ),
    "the stream counts other tokens": StreamUsage,
    # Replies without the reply
    "the prompt as the reply": Echoes,
    "every fourth stream unfinished": lambda: Unfinished(4),
    "1 in 5 replies empty": lambda: Empties(0.2),
    # After the first token
    "temperature × 0.5 after the first token": lambda: Late("later draws at 0.5", factor=0.5, says="likelier"),
    "temperature × 1.6 after the first token": lambda: Late("later draws at 0.5", factor=1.6, says="less likely"),
    "temperature 1 after the first token": lambda: Late("later draws at 0.5", temperature=1.0, says="less likely"),
    "top_k 5 filled in after the first token": lambda: Late("later cuts", top_k=5, says="top_k is forgotten"),
    "top_p 0.6 filled in after the first token": lambda: Late("later cuts", top_p=0.6, says="top_p is forgotten"),
    "top_k forgotten after the first token": lambda: Late("later cuts", drop=("top_k",), says="top_k is forgotten"),
    "top_p forgotten after the first token": lambda: Late("later cuts", drop=("top_p",), says="top_p is forgotten"),
    "min_p forgotten after the first token": lambda: Late("later cuts", drop=("min_p",), says="min_p is forgotten"),
    "greedy forgotten after the first token": lambda: Late("temperature 0", temperature=1.0, says="not the likeliest"),
    "half of the tokens from a draft": lambda: Late("later draws at 0.5", bend=drafted, says="less likely"),
    "a decode kernel off by 0.3": lambda: Decoding(0.3, "writing and reading", says="other probabilities"),
    # Openings
    "a doubled BOS": lambda: Opens(2, "doubled BOS"),
    "a lost BOS": lambda: Opens(0, "BOS is lost", adds=False),
    "head dropped, no usage": lambda: CutsPrompt((0.5, 1), stated=False),
}
"""By what is wrong. Faults of later kinds follow with the checks that find them."""

MISLEADING: dict[str, Callable[[], Fault]] = {
    "0.7 of the new tokens counted": lambda: Undercounts(0.7, "usage states 16 new tokens, but 24 came"),
    "0.97 of the new tokens counted": lambda: Undercounts(0.97, "usage states 23 new tokens, but 24 came"),
    "1.4 of the new tokens counted": lambda: Undercounts(1.4, "usage states 33 new tokens, but 24 came"),
    "0.7 of the new tokens counted, no log-probabilities": lambda: Undercounts(
        0.7, "usage states 16 new tokens of a reply with max_tokens 24 that says finish_reason length", listed=False
    ),
    "the prompt as the reply": FAULTS["the prompt as the reply"],
    "every second stream unfinished": lambda: Unfinished(2),
    "temperature 0 ignored": lambda: ColdIgnored("not the likeliest"),
    "temperature 0 ignored, no log-probabilities": lambda: ColdIgnored("differ from the first token on", listed=False),
}
"""Faults that spoil what many checks read: the checks in `finds` name them, and no other may accuse the server."""
