"""A program that speaks the protocol and knows sums: the larger its `--budget`, the more often it is right.

    python able_server.py --port PORT --budget PERCENT [--model NAME] [--starts SECONDS] [--log FILE]

Right or wrong is decided by the request's seed and prompt alone, so the same question under the same seed is answered
the same by every server of a budget, however often it is asked. `--log` gains a line for each completion.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import threading
import time
from collections.abc import Iterable

from harness.testing import FakeServer, Request, Step, event, event_stream, http, models

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--budget", type=int, default=100)
parser.add_argument("--model", default="able")
parser.add_argument("--starts", type=float, default=0.0)
parser.add_argument("--log", type=pathlib.Path)
given = parser.parse_args()


def answer(request: Request) -> Iterable[Step]:
    if request.method == "GET":
        return [models(given.model) if request.path.endswith("/models") else http(404)]
    body = request.json
    question = body["messages"][-1]["content"]
    first, _, second = question.partition(" + ")
    draw = hashlib.sha256(json.dumps([body.get("seed"), question, body.get("temperature")]).encode()).digest()
    right = int.from_bytes(draw[:2], "big") < 65536 * given.budget / 100
    words = second.split("?")[0].strip()
    result = int(first.split()[-1]) + int(words) if words.isdigit() else 0
    text = rf"{draw.hex()[:8]}: \boxed{{{result if right else result + 1}}}"
    if given.log is not None and body.get("max_tokens", 0) > 4:  # not the launcher's own look
        with given.log.open("a") as log:
            log.write(f"{given.budget} {body.get('temperature')} {body.get('seed')} {question[-40:]!r}\n")
    reply, usage = {"role": "assistant", "content": text}, {"prompt_tokens": 9, "completion_tokens": 12}
    if not body.get("stream"):
        return [http(200, {"model": given.model, "choices": [{"message": reply, "finish_reason": "stop"}]})]
    parts = ({"delta": reply, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"})
    events = [*({"choices": [part]} for part in parts), {"choices": [], "usage": usage}]
    return event_stream(*(event(each | {"model": given.model}) for each in events))


time.sleep(given.starts)
with FakeServer(answer, port=given.port):
    threading.Event().wait()
