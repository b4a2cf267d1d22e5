"""A model whose text is a function of the request alone, behind a server that fails at random.

`python -m tests.storms.server --port PORT --seed SEED --trouble SHARE`: that share of its replies goes wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import threading
from collections.abc import Iterable

from harness.testing import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    FakeServer,
    Pause,
    Request,
    Said,
    Step,
    chunk,
    event,
    http,
    serving,
)

MODEL = "storm"
LONGEST_PAUSE = 0.06  # seconds between two pieces of a reply


def said(request: Request) -> Said:
    """The one reply that this request can have."""
    messages, seed = request.json.get("messages"), request.json.get("seed", 0)
    chance = random.Random(hashlib.sha256(f"{messages}|{seed}".encode()).digest())
    thought = " ".join(chance.choice(("so", "wait", "≤", "😀", "\u2028", "x^2")) for _ in range(chance.randint(3, 60)))
    if chance.random() < 0.1:
        text, finish = f"cut off at {chance.random()}", "length"
    else:
        filler, finish = f"{chance.random()}: " * chance.choice((1, 2, 200)), "stop"
        if "VERDICT" in str(messages):
            text = f"VERDICT: {chance.choice(('CORRECT', 'INCORRECT'))}"
        elif "in prose" in str(messages):
            text = rf"{filler}So \boxed{{\text{{a {chance.randint(1, 2)} under light}}}}."
        else:
            text = f"{filler}The answer is \\boxed{{{chance.randint(1, 3)}}}."
    return Said(text, len(thought.split()) + len(text.split()), thought, finish, model=MODEL)


def events_of(request: Request) -> list[bytes]:
    """The events of the reply, `[DONE]` left out."""
    reply = said(request)
    return [each for each in reply.events(request.api, size=max(1, len(reply.text) // 4)) if each != DONE]


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
    arguments = parser.parse_args()
    chance, lock = random.Random(arguments.seed), threading.Lock()

    def reply(request: Request) -> Iterable[Step]:
        if not isinstance(request.json.get("messages"), list):
            return [http(404, {"error": {"message": "no such page"}})]
        with lock:
            spoilt = chance.random() < arguments.trouble
            pause = chance.uniform(0, LONGEST_PAUSE)
            steps = trouble(request, random.Random(chance.random()))
        if spoilt:
            return steps
        if not request.json.get("stream"):
            return said(request).steps(request.api, streamed=False)
        parts = [step for part in events_of(request) for step in (Pause(pause), chunk(part))]
        return [HEAD, *parts, chunk(DONE) + END]

    answer = serving(reply, arguments.served_model, pages={"/health": {}}, max_model_len=40_000)
    with FakeServer(answer, port=arguments.port):
        signal.pause()


if __name__ == "__main__":
    # Whoever was killed before it could end this server must not leave it running for ever.
    threading.Timer(3600, os._exit, (1,)).start()
    main()
