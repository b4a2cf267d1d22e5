"""A run under way that stays so until it is let go: its server holds every reply."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.generation.network.control import progress_of
from harness.runs import RunFolder
from harness.testing import FakeServer, Pause, Request, Step, delta, event_stream, models
from tests.system.command import start

SAID = 20
"""Tokens that a held reply has sent."""


class Holding:
    """Streams the first tokens of every reply, and the rest once it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.method == "GET":
            yield models("test-model")
            return
        head, *events = event_stream(*[delta("word ")] * SAID, delta(f"{request.json['seed']}", finish="stop"))
        yield head
        yield from events[:SAID]
        while not self.let_go.wait(0.01):
            yield Pause(0.01)
        yield from events[SAID:]


@contextmanager
def going(folder: Path, server: FakeServer, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`harness run` of 12 samples, 4 in flight, in the folder results/run."""
    rows = [{"id": f"q{n}", "problem": f"What is {n}?", "answer": "1"} for n in range(6)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = ["--data", "sums.jsonl", "--question-key", "problem", "--answer-key", "answer", "--id-key", "id"]
    options = ["--samples", "2", "--concurrency", "4", "--base-url", server.base_url, "--model", "test-model"]
    run = start(folder, ["run", *data, *options, "--out", "results/run", "--no-canary", "--no-fingerprint", *words])
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def until(server: FakeServer, folder: Path, held: Callable[[Any], bool]) -> Any:
    """The run's progress as soon as `held` says so."""
    seen: list[Any] = []

    def look() -> bool:
        seen.append(progress_of(RunFolder(folder / "results" / "run")))
        return seen[-1] is not None and held(seen[-1])

    assert server.wait_for(look), seen[-1]
    return seen[-1]
