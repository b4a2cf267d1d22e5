"""A server that records when its client sends the first request and how much CPU time the client has used by then, and
a function that starts the client. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from threading import Event, Lock

from harness.testing import FakeServer, Request, Said, serving

HERE = Path(__file__).resolve().parents[1]
MODEL = "m"


def start(words: list[str], checkout: Path = HERE) -> subprocess.Popen[bytes]:
    """Start the command `harness` with `words`, with compiled modules as in an installation. checkout: folder of the
    version to start.
    """
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=checkout,
        env=variables | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.DEVNULL,
    )


class Server(FakeServer):
    """A server that lists one model and answers every completion request with a number derived from the request.

    first_at: time of the first completion request, on the monotonic clock. first_cpu: CPU seconds that the client had
    used by then. Both are None before it. enough: set once `n_until` completions have been requested.
    """

    def __init__(self) -> None:
        super().__init__(serving(self._number, MODEL))
        self.enough = Event()
        self._counting = Lock()

    def started(self, words: list[str], checkout: Path = HERE, *, n_until: int = 0) -> subprocess.Popen[bytes]:
        """Start a client with the command `words`, which sends its requests here; the count of requests restarts."""
        self.n_asked, self.n_until = 0, n_until
        self.first_at: float | None = None
        self.first_cpu: float | None = None
        self.enough.clear()
        self.client = start(words, checkout)
        return self.client

    def _number(self, request: Request) -> Said:
        """The reply to a request."""
        with self._counting:
            if self.first_at is None:
                self.first_at, self.first_cpu = time.monotonic(), cpu_of(self.client.pid)
            self.n_asked += 1
            if self.n_asked >= self.n_until > 0:
                self.enough.set()
        # Equal requests get equal replies, because at temperature 0 a run compares the replies of its sessions.
        number = zlib.crc32(request.body) % 100
        return Said(rf"It goes {number} km: \boxed{{{number}}}", 12, model=MODEL)


def cpu_of(pid: int) -> float:
    """CPU seconds that all threads of a process have used so far."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
