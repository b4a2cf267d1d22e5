"""A program that speaks the protocol and knows sums: the larger its `--budget`, the more often it is right.

    python able_server.py --port PORT --budget PERCENT [--model NAME] [--starts SECONDS] [--thinks SECONDS] [--log FILE]
                          [--ends TEXT]

Right or wrong is decided by the request's seed and prompt alone, so the same question under the same seed is answered
the same by every server of a budget, however often it is asked. `--log` gains a line for each completion.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import json
import pathlib
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--budget", type=int, default=100)
parser.add_argument("--model", default="able")
parser.add_argument("--starts", type=float, default=0.0)
parser.add_argument("--thinks", type=float, default=0.0)
parser.add_argument("--log", type=pathlib.Path)
parser.add_argument("--ends", default="", help="what each reply ends with, such as a verdict")
given = parser.parse_args()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self.send(200, json.dumps({"data": [{"id": given.model}]}).encode(), "application/json")
        else:
            self.send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = body["messages"][-1]["content"]
        time.sleep(given.thinks)
        first, _, second = question.partition(" + ")
        draw = hashlib.sha256(json.dumps([body.get("seed"), question, body.get("temperature")]).encode()).digest()
        right = int.from_bytes(draw[:2], "big") < 65536 * given.budget / 100
        words = second.split("?")[0].strip()
        answer = int(first.split()[-1]) + int(words) if words.isdigit() else 0
        text = rf"{draw.hex()[:8]}: \boxed{{{answer if right else answer + 1}}}{given.ends}"
        if given.log is not None and body.get("max_tokens", 0) > 4:  # not the launcher's own look
            with given.log.open("a") as log:
                log.write(f"{given.budget} {body.get('temperature')} {body.get('seed')} {question[-40:]!r}\n")
        if not body.get("stream"):
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self.send(200, json.dumps({"model": given.model, "choices": [choice]}).encode(), "application/json")
            return
        events = [
            {"choices": [{"delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12}},
        ]
        stream = "".join(f"data: {json.dumps(event | {'model': given.model})}\n\n" for event in events)
        self.send(200, (stream + "data: [DONE]\n\n").encode(), "text/event-stream")

    def send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


time.sleep(given.starts)
http.server.ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()
