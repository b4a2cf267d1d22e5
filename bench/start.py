"""CPU of a start: `harness --help`, and `harness run` up to its first request.

    python bench/start.py [--runs 7] [--beside CHECKOUT]

Each command is a process of its own; CHECKOUT is another version's folder, which takes turns with this one, so that the
ratio counts where the machine is busy. The CPU up to the first request is read from /proc at the moment at which the
server has the request; so Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MODEL = "m"


class Server(ThreadingHTTPServer):
    """Lists one model, answers any completion; notes the client's CPU when the first one is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pid = 0
        self.first_request_s: float | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        if self.server.first_request_s is None:
            self.server.first_request_s = cpu_of(self.server.pid)
        self.rfile.read(int(self.headers["content-length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": r"\boxed{12}"}, "finish_reason": "stop"}
        self.reply({"model": MODEL, "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})

    def reply(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def cpu_of(pid: int) -> float:
    """Seconds of CPU that all threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def helped(checkout: Path) -> float:
    """Seconds of CPU of `harness --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start(checkout, ["--help"]).wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def asked(checkout: Path) -> float:
    """Seconds of CPU of `harness run` up to its first request."""
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        words = ["run", "demo:1", "--limit", "1", "--no-stream", "--base-url", url, "--model", MODEL, "--no-canary"]
        process = start(checkout, [*words, "--out", f"{folder}/run"])
        server.pid = process.pid
        code = process.wait()
        server.shutdown()
        if code != 0 or server.first_request_s is None:
            sys.exit(f"harness run of {checkout} ended with {code}")
        return server.first_request_s


def start(checkout: Path, words: list[str]) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPATH": str(checkout)}  # with compiled modules, as an installation has them
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--beside", type=Path, help="checkout of another version")
    chosen = parser.parse_args()
    checkouts = [HERE] + ([chosen.beside.resolve()] if chosen.beside else [])
    for name, measure in (("harness --help", helped), ("harness run, to its first request", asked)):
        times: dict[Path, list[float]] = {checkout: [] for checkout in checkouts}
        for _ in range(chosen.runs + 1):  # the first fills the disk's cache
            for checkout in checkouts:
                times[checkout].append(measure(checkout))
        here, *other = (sorted(found[1:]) for found in times.values())
        line = f"{name}: {median(here):.3f} s ({here[0]:.3f} to {here[-1]:.3f})"
        if other:
            line += f", beside it {median(other[0]):.3f} s: {median(here) / median(other[0]):.2f} times"
        print(line)


if __name__ == "__main__":
    main()
