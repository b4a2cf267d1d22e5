"""A small run against the embedded server, and what is in its journal afterwards."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.embedded import MODEL
from tests.system.command import Result, start

# Short prompts, since a processor that is busy reads few tokens a second; open ones, so that each answer is cut at 8.
ASKED = ("Tell me of the sea.", "Tell me of snow.", "Count to a hundred.", "Name twenty birds.")
QUESTIONS, SAMPLES = len(ASKED), 2
# A prompt that llama.cpp has in its cache is computed in other batches, so that the same seed may give another text.
UNCACHED = ("--extra-body", '{"cache_prompt": false}')
# A fingerprint's requests would meet faults, too; they are no samples, and stand in no log of failed requests.
SMALL = ("run", "--data", "asked.jsonl", "--prompt", "none", "--system-prompt", "none")
SHORT = ("--samples", str(SAMPLES), "--max-tokens", "8", "--no-canary", "--no-fingerprint", "--model", MODEL)
# Said, since a tool hides which engine is behind it, and that one fills in sampling of its own.
NEUTRAL = ("--top-k", "0", "--min-p", "0")
RUN = (*SMALL, *SHORT, *NEUTRAL, *UNCACHED, "--concurrency", "1", "--attempts", "12")
TOOL_SECONDS = RUN_SECONDS = 1000
"""Only a failure takes so long: beside a load of 40 a tool starts, and a run ends, after minutes."""
HEALTH_SECONDS = 60
"""Of one answer that a tool fetches from the server behind it."""

Texts = dict[tuple[str, int], str]
"""Question id and sample index → the stored text."""


def ask(folder: Path, url: str, transport: str, *words: str) -> Result:
    """The run, one request at a time unless `words` say otherwise, so that the same seed gives the same text."""
    rows = [{"problem": question, "answer": "1"} for question in ASKED]
    (folder / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    where = ("--out", "run", "--base-url", url, "--transport", transport)
    running = start(folder, [*RUN, *where, *words])
    try:
        out, err = running.communicate(timeout=RUN_SECONDS)
    finally:
        running.kill()
    assert "Traceback" not in err, err
    return Result(running.returncode, out, err)


def texts(folder: Path) -> Texts:
    """What the journal holds; each sample that was owed is there exactly once."""
    lines = (folder / "run" / "asked" / "samples.jsonl").read_bytes().split(b"\n")
    stored = [json.loads(line) for line in lines if line]
    by_key = {(sample["question_id"], sample["sample_index"]): sample["text"] for sample in stored}
    assert len(stored) == len(by_key) == QUESTIONS * SAMPLES
    return by_key


def failures(folder: Path) -> list[dict[str, Any]]:
    """The requests that failed, as the run's log has them."""
    events = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_bytes().splitlines()]
    return [event for event in events if event["event"] == "request_failed"]


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(argv: Sequence[str], log: Path, health: str) -> Iterator[None]:
    """A tool while the block runs; `health` answers 200 before it begins."""
    with log.open("wb") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + TOOL_SECONDS
        while not _answers(health):
            assert process.poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < end, log.read_text("utf-8", "replace")
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=HEALTH_SECONDS).status_code == 200
    except httpx.TransportError:
        return False
