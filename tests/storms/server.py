"""A model whose text is a function of the request alone, behind a server that fails at random.

`python -m tests.storms.server --port PORT --seed SEED --trouble SHARE`: that share of its replies goes wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from harness.testing import (
    CLOSE,
    DONE,
    END,
    FAULTS,
    HEAD,
    RESET,
    FakeServer,
    Pause,
    Request,
    Step,
    chunk,
    delta,
    event,
    http,
    models,
    named,
)

MODEL = "storm"
N_CALLS = 3  # of the tool, in a sample that is offered one
LONGEST_PAUSE = 0.06  # seconds between two pieces of a reply


def said(messages: object, seed: int) -> tuple[str, str, str]:
    """(reasoning, text, finish reason) of the one reply that this request can have."""
    chance = random.Random(hashlib.sha256(f"{messages}|{seed}".encode()).digest())
    thought = " ".join(chance.choice(("so", "wait", "≤", "😀", "\u2028", "x^2")) for _ in range(chance.randint(3, 60)))
    if chance.random() < 0.1:
        return thought, f"cut off at {chance.random()}", "length"
    filler = f"{chance.random()}: " * chance.choice((1, 2, 200))
    if "VERDICT" in str(messages):
        return thought, f"VERDICT: {chance.choice(('CORRECT', 'INCORRECT'))}", "stop"
    if "in prose" in str(messages):
        return thought, rf"{filler}So \boxed{{\text{{a {chance.randint(1, 2)} under light}}}}.", "stop"
    return thought, f"{filler}The answer is \\boxed{{{chance.randint(1, 3)}}}.", "stop"


def events_of(request: Request) -> Iterator[bytes]:
    """The events of the reply, `[DONE]` left out; with ids of tokens where those are asked for."""
    body, prompt = request.json, prompt_of(request.json)
    if isinstance(prompt, list) and body.get("tools"):
        # What it says depends on no output of the tool, which a killed interpreter changes.
        n_called = sum(turn["role"] == "tool" for turn in prompt)
        if n_called < N_CALLS:
            code = json.dumps({"code": f"n = globals().get('n', 0) + 1\nn + {n_called}"})
            call = {"index": 0, "id": "c", "type": "function", "function": {"name": "python", "arguments": code}}
            yield delta(tool_calls=[call])
            yield delta(finish="tool_calls", usage={"prompt_tokens": 20, "completion_tokens": 5})
            return
        prompt = prompt[:1]
    thought, text, finish = said(prompt, body.get("seed", 0))
    step, n = max(1, len(text) // 4), len(thought.split()) + len(text.split())
    texts = [text[offset : offset + step] for offset in range(0, len(text), step)]
    if request.path in BY_PARTS:
        yield from BY_PARTS[request.path](thought, texts, finish == "length", n)
        return
    pieces = [delta(role="assistant", reasoning_content=thought), *map(delta, texts)]
    for piece in pieces if body.get("return_token_ids") else ():
        value = json.loads(piece.removeprefix(b"data: "))
        value["choices"][0]["token_ids"] = [7] * 20
        yield event({**value, "prompt_token_ids": [5] * 20})
    if not body.get("return_token_ids"):
        yield from pieces
    yield delta(finish=finish, usage={"prompt_tokens": 20, "completion_tokens": n})


def _by_items(thought: str, texts: list[str], cut: bool, n: int) -> Iterator[bytes]:
    head = {"id": "resp", "object": "response", "model": MODEL, "output": []}
    yield named("response.created", response=head | {"status": "in_progress"})
    yield named("response.reasoning_text.delta", output_index=0, delta=thought)
    yield from (named("response.output_text.delta", output_index=1, delta=text) for text in texts)
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    usage = {"input_tokens": 20, "output_tokens": n}
    yield named("response.completed", response=head | (ended if cut else {"status": "completed"}) | {"usage": usage})


def _by_blocks(thought: str, texts: list[str], cut: bool, n: int) -> Iterator[bytes]:
    yield named("message_start", message={"id": "msg", "model": MODEL, "usage": {"input_tokens": 20}})
    for index, (kind, pieces) in enumerate((("thinking", [thought]), ("text", texts))):
        yield named("content_block_start", index=index, content_block={"type": kind, kind: ""})
        for piece in pieces:
            yield named("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
        yield named("content_block_stop", index=index)
    why = {"stop_reason": "max_tokens" if cut else "end_turn"}
    yield named("message_delta", delta=why, usage={"output_tokens": n}) + named("message_stop")


BY_PARTS = {"/v1/responses": _by_items, "/v1/messages": _by_blocks}


def prompt_of(body: dict[str, Any]) -> object:
    """The prompt of a request by any API of messages; None without one."""
    return body.get("messages") or body.get("input")


def trouble(request: Request, chance: random.Random) -> Iterable[Step]:
    """One reply that goes wrong. None of them may become a sample, but for the one that is whole."""
    events = [chunk(part) for part in events_of(request)]
    beginning = events[: chance.randint(1, len(events) - 1)]
    faults: list[list[Step]] = [
        [http(500, {"error": {"message": "out of memory"}})],
        [http(429, {"error": {"message": "slow down"}}, retry_after="0")],
        [RESET],
        [CLOSE],
        [HEAD, *beginning, CLOSE],
        [HEAD, *beginning, RESET],
        [HEAD, *beginning, END],
        [HEAD, *beginning, chunk(DONE), END],
        [HEAD, *beginning, chunk(b'data: {"choices": [{"delta": {"content": "\n\n'), END],
        [HEAD, *beginning, chunk(event({"error": {"message": "engine died"}})), END],
        [HEAD, *beginning[:-1], beginning[-1][: len(beginning[-1]) // 2], CLOSE],
        [http(200, b"<html>Bad gateway</html>", content_type="text/html")],
        [HEAD, *events, END],  # whole, without [DONE]
    ]
    return chance.choice(faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trouble", type=float, default=0.0)
    parser.add_argument("--served-model", default=MODEL, help="name of the model")
    parser.add_argument("--api-key", help="taken as an engine takes it, and not looked at")
    parser.add_argument("--continuations", choices=FAULTS, help="as a vLLM whose gateway so fails prompts of tokens")
    arguments = parser.parse_args()
    chance, lock = random.Random(arguments.seed), threading.Lock()

    def answer(request: Request) -> Iterable[Step]:
        if request.method == "GET":
            has_page = request.path in ("/v1/models", "/health")
            yield (
                models(
                    arguments.served_model,
                    max_model_len=40_000,
                    **({"owned_by": "vllm"} if arguments.continuations else {}),
                )
                if has_page
                else http(404, {"error": {"message": "no such page"}})
            )
            return
        if isinstance(request.json.get("prompt"), list):
            yield from FAULTS[arguments.continuations]
            return
        if not isinstance(prompt_of(request.json), list):
            yield http(404, {"error": {"message": "no such page"}})
            return
        with lock:
            spoilt = chance.random() < arguments.trouble
            pause = chance.uniform(0, LONGEST_PAUSE)
            steps = trouble(request, random.Random(chance.random()))
        if spoilt:
            yield from steps
            return
        if not request.json.get("stream"):
            thought, text, finish = said(request.json["messages"], request.json.get("seed", 0))
            message = {"role": "assistant", "content": text, "reasoning_content": thought}
            yield http(200, {"id": "1", "model": MODEL, "choices": [{"message": message, "finish_reason": finish}]})
            return
        yield HEAD
        for part in events_of(request):
            yield Pause(pause)
            yield chunk(part)
        yield chunk(DONE) + END

    with FakeServer(answer, port=arguments.port):
        signal.pause()


if __name__ == "__main__":
    # Whoever was killed before it could end this server must not leave it running for ever.
    threading.Timer(3600, os._exit, (1,)).start()
    main()
