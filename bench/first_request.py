"""A server that notes when its client sends the first request and how much CPU the client has used by then, and the
start of that client. Linux only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MODEL = "m"


def start(words: list[str], checkout: Path = HERE) -> subprocess.Popen[bytes]:
    """Start the command `harness` with `words`, with compiled modules as in an installation. checkout: the folder of
    the version to start.
    """
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=checkout, env=variables | {"PYTHONPATH": str(checkout)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip


class Server(ThreadingHTTPServer):
    """A server that lists one model and answers every completion with a number.

    first_at: on the monotonic clock; first_cpu: seconds that the client had used then; None before the first request.
    enough: `n_until` were asked.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.enough = Event()
        Thread(target=self.serve_forever, daemon=True).start()

    def started(self, words: list[str], checkout: Path = HERE, *, n_until: int = 0) -> subprocess.Popen[bytes]:
        """Start a client by the command `words`, which sends its requests here; requests are counted anew."""
        self.n_requests, self.n_until = 0, n_until
        self.first_at: float | None = None
        self.first_cpu: float | None = None
        self.enough.clear()
        self.client = start(words, checkout)
        return self.client


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        server = self.server
        if server.first_at is None:
            server.first_at, server.first_cpu = time.monotonic(), cpu_of(server.client.pid)
        self.rfile.read(int(self.headers["content-length"]))
        server.n_requests += 1
        number = server.n_requests
        if number >= server.n_until > 0:  # two threads may count at once
            server.enough.set()
        message = {"role": "assistant", "content": rf"It goes {number} km: \boxed{{{number % 100}}}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply({"model": MODEL, "choices": [choice], "usage": {"prompt_tokens": 30, "completion_tokens": 12}})

    def reply(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )

    def log_message(self, format: str, *args: Any) -> None:
        pass


def cpu_of(pid: int) -> float:
    """CPU seconds that all threads of a process have used so far."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
