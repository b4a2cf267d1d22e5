"""A launcher (the command line of a server with the OpenAI API), the server itself, and a provider."""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROVIDER = {
    "label": "Palindromes",
    "sources": ["https://palindromes.example/docs"],
    "address": {
        "base_url": "https://api.palindromes.example/v1",
        "hosts": ["api.palindromes.example"],
        "path": "/v1",
        "key_variable": "PALINDROMES_API_KEY",
    },
    "max_tokens": [{"field": "max_completion_tokens"}],
    "seed": {"support": "supported"},
    "stream_usage": "stream_options",
    "models_list": "all",
}


def command(model: str) -> list[str]:
    """Return the command line of a server for `model`. The harness replaces `{port}`."""
    return [sys.executable, "-P", "-m", "harness_palindromes.serving", model or "palindromes", "{port}"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": self.server.model, "object": "model"}]})  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = asked["messages"][-1]["content"]
        found = re.search(r"of (\d+) letters", question)
        half = "abcdefghij"[: (int(found[1]) if found else 2) // 2]
        middle = "x" if found and int(found[1]) % 2 else ""
        text = rf"\boxed{{{half}{middle}{half[::-1]}}}"
        head = {"id": "1", "created": 0, "model": self.server.model}  # type: ignore[attr-defined]
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        if not asked.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self._send({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        events = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": usage},
        ]
        lines = [json.dumps({**head, "object": "chat.completion.chunk", **event}) for event in events]
        self._send_bytes("".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), "text/event-stream")

    def _send(self, value: object) -> None:
        self._send_bytes(json.dumps(value).encode(), "application/json")

    def _send_bytes(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


if __name__ == "__main__":
    served = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), _Handler)
    served.model = sys.argv[1]  # type: ignore[attr-defined]
    served.serve_forever()
