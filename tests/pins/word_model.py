"""A small model over some forty words that really samples, for the probe; its replies are decided by the requests.

Its next word depends on the last one and on the prompt's first words. It obeys seeds, penalties, cuts of the
distribution, stop texts, `n`, and states log-probabilities and a context of `CONTEXT` tokens.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.testing import END, HEAD, Answer, Request, Step, chunk, event, http
from tests.pins.server import ENGINES

CONTEXT = 3000
WORDS = (
    " the a of and to in sea light clock keeper old tower night storm wave ship time hand glass lamp rock wind gull"
    " harbour bell chain door stair brass tide moon fog salt boat rope gear spring hour face"
)
TOKENS = [f" {word}" for word in WORDS.split()] + ["."]
END_TOKEN = len(TOKENS)
LINE_TO_REPEAT = "Repeat this line exactly, and write nothing else: "

Body = dict[str, Any]


def word_model(engine: str, weights: str = "a", *, usage: bool = True) -> Answer:
    """The model behind an engine's pages. weights: another name is another model. usage: it counts its tokens."""
    lock, times = threading.Lock(), Counter[bytes]()

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "GET":
            yield _page(engine, request.path)
            return
        if not request.path.endswith("/completions"):
            yield http(404, {})
            return
        with lock:  # the n-th of equal requests is answered the same, whichever it is
            times[request.body] += 1
            number = times[request.body]
        try:
            body = request.json
        except ValueError:
            yield http(400, {"error": {"message": "no JSON"}})
            return
        status, reply = _reply(weights, body, number, chat="/chat/" in request.path)
        if not usage:
            reply.pop("usage", None)
        yield from _sent(body, status, reply)

    return answer


def _page(engine: str, path: str) -> bytes:
    page = ENGINES[engine].get(path)
    if page is None:
        return http(404, {})
    return http(200, json.loads(json.dumps(page).replace("40960", str(CONTEXT))))


def _reply(weights: str, body: Body, number: int, *, chat: bool) -> tuple[int, Body]:
    """Status and body of a whole reply."""
    if body.get("model") != "pinned":
        return 404, {"error": {"message": f"no model {body.get('model')}", "type": "NotFoundError"}}
    if chat and any(not isinstance(m["content"], str) for m in body["messages"]):
        return 400, {"error": {"message": "this model reads no pictures"}}
    prompt = " ".join(m["content"] for m in body["messages"]) if chat else str(body["prompt"])
    n_prompt = len(prompt.split()) + 5
    if n_prompt >= CONTEXT:
        return 400, {"error": {"message": f"{n_prompt} tokens exceed the context of {CONTEXT}", "code": 400}}
    choices = [_choice(weights, prompt, body, f"{number}|{index}", chat) for index in range(body.get("n", 1))]
    n_new = sum(n for _, n in choices)
    usage = {"prompt_tokens": n_prompt, "completion_tokens": n_new, "total_tokens": n_prompt + n_new}
    return 200, {
        "model": "pinned",
        "id": "r",
        "choices": [{"index": i, **choice} for i, (choice, _) in enumerate(choices)],
        "usage": usage,
    }


def _choice(weights: str, prompt: str, body: Body, which: str, chat: bool) -> tuple[Body, int]:
    """(choice, number of its tokens)."""
    seed = body.get("seed")
    rng = random.Random(f"{seed}|{which if seed is None else which.partition('|')[2]}|{prompt[:80]}")
    head = " ".join(prompt.split()[:6])
    echoed = list(prompt.partition(LINE_TO_REPEAT)[2].strip()) if LINE_TO_REPEAT in prompt else None
    text, reason, ids, stated = "", "length", list[int](), list[Body]()
    while len(stated) < body.get("max_tokens", 64):
        if echoed is not None:
            if len(stated) == len(echoed):
                reason = "stop"
                break
            piece, logprobs, token = echoed[len(stated)], _logprobs(weights, head, 0), len(stated) % END_TOKEN
        else:
            logprobs = _penalised(_logprobs(weights, head, ids[-1] if ids else -1), ids, prompt, body)
            token = _drawn(logprobs, body, rng)
            piece = "" if token == END_TOKEN else TOKENS[token]
        stated.append(_stated(logprobs, token, body))
        if piece == "":
            reason = "stop"
            break
        ids.append(token)
        text += piece
        if stops := [stop for stop in body.get("stop") or () if stop in text]:
            text, reason = text[: text.index(stops[0])], "stop"
            break
    choice: Body = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": stated}
    return {"finish_reason": reason, **choice}, len(stated)


@lru_cache(maxsize=5000)
def _logprobs(weights: str, head: str, last: int) -> tuple[float, ...]:
    rng = random.Random(int.from_bytes(hashlib.sha256(f"{weights}|{head}|{last}".encode()).digest()[:8], "big"))
    return _normalised([1.4 * rng.gauss(0, 1) for _ in TOKENS] + [-6.0])


def _normalised(values: Sequence[float]) -> tuple[float, ...]:
    total = math.log(sum(map(math.exp, values)))
    return tuple(value - total for value in values)


def _penalised(logprobs: tuple[float, ...], ids: list[int], prompt: str, body: Body) -> tuple[float, ...]:
    values = list(logprobs)
    if ("one word" in prompt and len(ids) >= 4) or len(ids) >= 60:
        values[END_TOKEN] = 20.0
    if "again and again" in prompt:
        values[0] += 12.0
    presence, frequency = body.get("presence_penalty", 0), body.get("frequency_penalty", 0)
    for token, n in Counter(ids).items() if presence or frequency else ():
        values[token] -= presence + frequency * n
    return logprobs if values == list(logprobs) else _normalised(values)


def _drawn(logprobs: Sequence[float], body: Body, rng: random.Random) -> int:
    temperature = body.get("temperature", 1.0)
    order = sorted(range(len(logprobs)), key=lambda token: -logprobs[token])
    if temperature == 0:
        return order[0]
    probabilities = [math.exp(value) for value in logprobs]
    largest, before, taken = probabilities[order[0]], 0.0, list[int]()
    for rank, token in enumerate(order):
        within = not (0 < body.get("top_k", -1) <= rank) and before < body.get("top_p", 1.0)
        if within and probabilities[token] >= body.get("min_p", 0.0) * largest:
            taken.append(token)
        before += probabilities[token]
    return rng.choices(taken, [math.exp(logprobs[token] / temperature) for token in taken])[0]


def _stated(logprobs: Sequence[float], token: int, body: Body) -> Body:
    if not body.get("logprobs"):
        return {}
    names = [*TOKENS, "<end>"]
    order = sorted(range(len(logprobs)), key=lambda one: -logprobs[one])
    top = order[: max(body.get("top_logprobs", 0), int(body["logprobs"]))]
    listed = [{"token": names[one], "logprob": logprobs[one]} for one in top]
    return {"token": names[token], "logprob": logprobs[token], "top_logprobs": listed}


def _sent(body: Body, status: int, reply: Mapping[str, Any]) -> Iterator[Step]:
    """A whole reply, or one event a word."""
    if status != 200 or not body.get("stream"):
        yield http(status, dict(reply))
        return
    (choice,) = reply["choices"]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    frame = {"id": "r", "model": reply["model"]}
    pieces = [f" {word}" for word in text.split(" ")[1:]] if text.startswith(" ") else list(text)
    deltas = [{"delta": {"content": piece}} if "message" in choice else {"text": piece} for piece in pieces]
    last: Body = {"delta": {}} if "message" in choice else {"text": ""}
    yield HEAD
    for one in deltas:
        yield chunk(event({**frame, "choices": [{"index": 0, **one}]}))
    yield chunk(event({**frame, "choices": [{"index": 0, **last, "finish_reason": choice["finish_reason"]}]}))
    if "usage" in reply:
        yield chunk(event({**frame, "choices": [], "usage": reply["usage"]}))
    yield chunk(b"data: [DONE]\n\n")
    yield END
