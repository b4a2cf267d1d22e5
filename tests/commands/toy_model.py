"""A small language model over some sixty words, with real sampling, as a server and as an asker of its own.

Its next token depends on the last one, on the prompt's first words, and a little on every word of the prompt, so that a
prompt that lost any part is answered otherwise. `weights` names another model. `toy_faults` has what may go wrong.
"""

from __future__ import annotations

import json
import math
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.protocol.failures import RequestFailed, error_words, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.request_builder import Asker
from harness.core.errors import ServerError
from harness.probes.requests import ProbedServer, ProbeReply, Refused, read_reply
from harness.testing import Answer, Request, Step, event, event_stream, http, serving

TEXT = (
    " the a of and to in sea light clock keeper old tower night storm wave ship time hand glass lamp rock wind gull"
    " harbour bell chain door stair brass tide moon fog salt boat rope gear spring hour face wall stone key letter"
    " window winter silver story morning sailor island captain signal evening market garden"
)
TOKENS = [f" {word}" for word in TEXT.split()] + ["."]
END_TOKEN = len(TOKENS)
CONTEXT = 3000
NATURAL = 60
"""Tokens after which a reply ends by itself; one that is asked to count never does."""

SECONDS = 120.0
"""Timeout of the requests to the toy."""


def _last_token(prompt: str) -> int:
    word = "." if prompt.endswith(".") else f" {prompt.split()[-1]}"
    return TOKENS.index(word) if word in TOKENS else -1


Bend = Callable[
    [np.ndarray[Any, Any], int, Mapping[str, Any], random.Random], tuple[np.ndarray[Any, Any], Mapping[str, Any]]
]
"""(log-probabilities, number of the place, request, chance) → the log-probabilities that are drawn from, and how."""


@lru_cache(maxsize=20_000)
def _logits(weights: str, spread: float, head: str, last: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(zlib.crc32(f"{weights}|{head}|{last}".encode()))
    base = np.random.default_rng(zlib.crc32(f"{head}|{last}".encode()))
    values = 1.4 * base.standard_normal(END_TOKEN + 1) + spread * rng.standard_normal(END_TOKEN + 1)
    values[END_TOKEN] = -6.0
    return values


@lru_cache(maxsize=5_000)
def _moved(prompt: int) -> np.ndarray[Any, Any]:
    """What the prompt as a whole adds to each logit. prompt: its checksum."""
    moved: np.ndarray[Any, Any] = 0.5 * np.random.default_rng(prompt).standard_normal(END_TOKEN + 1)
    return moved


@dataclass
class Toy:
    """weights: another name is another model; spread: by how much its logits differ from those of the other names, in
    standard deviations. noise: of the logits, from request to request, as a batch makes it."""

    weights: str = "a"
    spread: float = 0.0
    noise: float = 0.0
    context: int = CONTEXT
    names: tuple[str, ...] = ("toy",)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def reply(
        self, body: Mapping[str, Any], *, chat: bool = True, bend: Bend | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of a whole reply. bend: what a fault does to each place."""
        if body.get("model") not in self.names:
            return 404, {"error": {"message": f"no model {body.get('model')}", "type": "NotFoundError"}}
        if "tools" in body:
            return 400, {"error": {"message": "toy does not support tools"}}
        if not 0 <= body.get("temperature", 1.0) <= 2 or body.get("max_tokens", 1) < 0 or body.get("top_p", 1) > 1:
            return 400, {"error": {"message": "temperature is 0 to 2, top_p at most 1, max_tokens at least 0"}}
        prompt = " ".join(m.get("content") or "" for m in body["messages"]) if chat else str(body["prompt"])
        n_prompt = len(prompt.split()) + (5 if chat else 1)  # a chat's prompt has four marks and a BOS
        if n_prompt + 1 > self.context:
            return 400, {"error": {"message": f"{n_prompt} tokens exceed the context of {self.context}", "code": 400}}
        choices = [self._choice(i, prompt, body, chat, bend) for i in range(body.get("n", 1))]
        n_new = sum(n for _, n in choices)
        usage = {"prompt_tokens": n_prompt, "completion_tokens": n_new, "total_tokens": n_prompt + n_new}
        return 200, {"model": "toy", "id": "r", "choices": [one for one, _ in choices], "usage": usage}

    def _choice(
        self, index: int, prompt: str, body: Mapping[str, Any], chat: bool, bend: Bend | None
    ) -> tuple[dict[str, Any], int]:
        seed = body.get("seed")
        rng = random.Random(f"{seed}|{index}" if seed is not None else self.chance.random())
        limit = body.get("max_tokens", 64)
        head = " ".join(prompt.split()[: 6 if chat else 5])
        text, reason, said, ids = "", "length", [], list[int]()
        # A raw text is the same whether it was read or written so far; a chat's prompt counts as a whole.
        moved = _moved(zlib.crc32(prompt.encode())) if chat else 0.0
        last = -1 if chat else _last_token(prompt)
        natural = 10**6 if "every number" in prompt else NATURAL
        echoed = list(prompt.partition(": ")[2]) if "Copy this text" in prompt else None
        while len(said) < limit:
            values = _logits(self.weights, self.spread, head, ids[-1] if ids else last) + moved
            if self.noise:
                values += self.noise * np.random.default_rng(rng.getrandbits(32)).standard_normal(len(values))
            if ("one word" in prompt and len(ids) >= 4) or len(ids) >= natural:
                values[END_TOKEN] = 20.0
            logprobs = values - math.log(np.exp(values).sum())
            drawn, asked = (logprobs, body) if bend is None else bend(logprobs, len(said), body, rng)
            token = self._draw(drawn, asked, rng)
            if echoed is not None:
                token = len(said) % END_TOKEN
            said.append(_shown(logprobs, token, body))
            if (echoed is None and token == END_TOKEN) or (echoed is not None and len(said) > len(echoed)):
                reason = "stop"
                break
            ids.append(token)
            text += TOKENS[token] if echoed is None else echoed[len(said) - 1]
            stops = [s for s in body.get("stop") or () if s in text]
            if stops:
                text, reason = text[: text.index(stops[0])], "stop"
                break
        choice: dict[str, Any] = {"index": index, "finish_reason": reason}
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": said}
        return choice, len(said)

    @staticmethod
    def _draw(logprobs: np.ndarray[Any, Any], body: Mapping[str, Any], rng: random.Random) -> int:
        temperature = body.get("temperature", 1.0)
        if temperature == 0:
            return int(logprobs.argmax())
        p = np.exp(logprobs)
        order = np.argsort(-p)
        keep = np.ones(len(p), bool)
        if (k := body.get("top_k", -1)) > 0:
            keep[order[k:]] = False
        if (least := body.get("min_p", 0.0)) > 0:
            keep[p < least * p.max()] = False
        if (mass := body.get("top_p", 1.0)) < 1:
            before = np.cumsum(p[order]) - p[order]
            keep[order[before >= mass]] = False
        q = np.where(keep, np.exp(logprobs / temperature), 0.0)
        return int(np.searchsorted(np.cumsum(q) / q.sum(), rng.random(), side="right"))


def _shown(logprobs: np.ndarray[Any, Any], token: int, body: Mapping[str, Any]) -> dict[str, Any]:
    if not body.get("logprobs"):
        return {}
    names = [*TOKENS, "<end>"]
    top = np.argsort(-logprobs)[: max(body.get("top_logprobs", 0), int(body["logprobs"]))]
    listed = [{"token": names[i], "logprob": float(logprobs[i])} for i in top]
    return {"token": names[token], "logprob": float(logprobs[token]), "top_logprobs": listed}


# ---- what may go wrong on the way

Body = dict[str, Any]


class Fault:
    """A proxy that spoils nothing; `finds` names the checks that must not be sound behind a spoiling one."""

    finds: tuple[str, ...] = ()
    says: str = ""
    """Part of what one of these checks must say."""

    first_seconds: float = 0.0
    """Seconds from the last request to its first token; a `ToyAsker` gives up as a probe does, without waiting."""

    whole_seconds: float = 0.0

    def request(self, body: Body) -> Body | bytes:
        """The request as it goes on, or an answer at once."""
        return body

    def rejects(self, body: Body) -> str | None:
        """The field for which it refuses the request; None if it takes the request."""
        return None

    def answer(self, asked: Body, content: bytes) -> bytes:
        """The whole answer's bytes as they go back."""
        return content

    def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer as a value, before it is written as a whole or as a stream."""
        return answer

    def server(self, toy: Toy, body: Body) -> Toy:
        """The model that answers this request."""
        return toy

    def bend(
        self, logprobs: np.ndarray[Any, Any], place: int, body: Mapping[str, Any], chance: random.Random
    ) -> tuple[np.ndarray[Any, Any], Mapping[str, Any]]:
        """The log-probabilities that a place draws from, and the fields by which it draws."""
        return logprobs, body


# ---- as an asker, without a socket


@dataclass(kw_only=True)
class ToyAsker(ProbedServer):
    """The model behind a fault, asked in memory."""

    toy: Toy
    fault: Fault = field(default_factory=Fault)
    asker: Asker = field(default_factory=lambda: Asker(model="toy"))
    context: int | None = CONTEXT
    at_once: int = 1  # one after the other, so that a seed decides all

    def send(self, body: Mapping[str, Any], api: API) -> ProbeReply:
        self.n_requests += 1
        status, content = passed(self.toy, self.fault, dict(body), chat=api is CHAT)
        if status == 200 and self.fault.whole_seconds > SECONDS:
            raise ServerError(f"no answer within {SECONDS:g} s", hope="slow")
        if status != 200:
            raise Refused(status, error_words(content))
        return read_reply(content, api)

    def send_streams(self, bodies: Sequence[Mapping[str, Any]], api: API = CHAT) -> list[Reply | RequestFailed]:
        return [self._stream(dict(body)) for body in bodies]

    def _stream(self, body: Body) -> Reply | RequestFailed:
        status, content = passed(self.toy, self.fault, body)
        if self.fault.first_seconds > SECONDS:
            return RequestFailed("timeout", f"no first token within {SECONDS:g} s")
        self.n_requests += 1
        if status != 200:
            return failure_of_status(status, content)
        parser = ReplyParser(CHAT, started=0.0, started_utc=0.0, max_body_bytes=1 << 20)
        try:
            parser.feed(content, 0.2)
            return parser.finish()
        except RequestFailed as failed:
            return failed


def passed(toy: Toy, fault: Fault, body: Body, *, chat: bool = True) -> tuple[int, bytes]:
    """Status and bytes of what the toy answers behind the fault; of a stream, its events."""
    through = fault.request(body)
    if isinstance(through, bytes):
        return 200, through
    if (refused := fault.rejects(body)) is not None:
        return 400, json.dumps({"error": {"message": f"Unrecognized request argument supplied: {refused}"}}).encode()
    status, answer = fault.server(toy, through).reply(through, chat=chat, bend=fault.bend)
    if status != 200:
        return status, json.dumps(answer).encode()
    answer = fault.whole(body, answer)
    content = b"".join(events(answer)) if body.get("stream") else json.dumps(answer).encode()
    return status, fault.answer(body, content)


def events(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """A whole reply as events, one a word."""
    (choice,) = answer["choices"]
    frame = {"id": "r", "model": answer["model"]}
    for name in ("reasoning_content", "content"):
        text = choice["message"].get(name) or ""
        pieces = text.split(" ") if text.isascii() else list(text)
        gap = " " if text.isascii() else ""
        for i, piece in enumerate(pieces if text else ()):
            yield event({**frame, "choices": [{"index": 0, "delta": {name: piece if i == 0 else gap + piece}}]})
    yield event({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if "usage" in answer:
        yield event({**frame, "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


# ---- over HTTP


def answering(toy: Toy, fault: Fault) -> Answer:
    """The toy as a server, behind the fault."""

    def reply(request: Request) -> Iterable[Step]:
        if not request.path.endswith("/completions"):
            return [http(404, {})]
        try:
            body = request.json
        except ValueError:
            return [http(400, {"error": {"message": "no JSON"}})]
        status, content = passed(toy, fault, body, chat="/chat/" in request.path)
        if body.get("stream") and status == 200:
            return event_stream(*(one + b"\n\n" for one in content.split(b"\n\n") if one), end=())
        return [http(status, content, content_type="application/json")]

    return serving(reply, "toy", max_model_len=toy.context)
