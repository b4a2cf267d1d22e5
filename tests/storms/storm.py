"""One storm: a run and its score by the command, disturbed at moments drawn from a seed, resumed until it is done."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server_launchers.keeping import processes
from tests import warm
from tests.faults.server import FAILING
from tests.runs.recorded import intact_lines
from tests.storms.server import MODEL
from tests.system.command import environment

launch: Callable[..., subprocess.Popen[str]] = warm.started_cold
"""How commands and servers start: by new interpreters, whose imports are disturbed, too."""

ROOT = Path(__file__).resolve().parents[2]
CLOCK = Path(__file__).with_name("clock")
LIMIT_SECONDS = 600.0  # for one command that nobody disturbs, on a machine that is busy
KEY = "canary-93be07c51fa2d684-through-storms"
OF_THE_WAY = re.compile("replies that nobody asked for|the endpoints are not tested against each other")
"""Warnings of a score that tell how its samples came, not what they say."""

MEASURED = ("speed", "workload", "endpoints")
"""Fields of a score that tell when and where, not what: another run has others."""


NOT_OURS = re.compile(
    r"Exception ignored in: <function _get_module_lock.*\nTraceback.*\n.*importlib.*\nKeyboardInterrupt: ?\n"
    r"|Exception ignored in: <_io.FileIO .*\nTraceback.*\n.*importlib.*\nResourceWarning: .*\n"
    r"|(?:Fatal Python error: init_import_site: .*\n.*\n|Could not (?:import|access) runpy.*\n|'import warnings' .*\n)"
    r"(?:Traceback.*\n(?:  .*\n)*\w+: .*\n\nDuring handling of the above exception, another exception occurred:\n\n)*"
    r"Traceback.*\n(?:  .*\n)*KeyboardInterrupt\n"
    r"|Traceback.*\n  .* in _run_module_as_main\n  .* in _get_module_details\n(?:  .*\n)*KeyboardInterrupt\n"
    r"|Traceback.*\n(?:  .* in _run_(?:module_as_main|code)\n)+  .*__main__.py\", line \d+, in <module>\n"
    r"    (?:import|from) .*\n(?:  .*\n)*KeyboardInterrupt\n"
)
"""What the interpreter says of a Ctrl-C that reaches it inside its own bookkeeping of an import, before it is up,
while it looks for the command, or in the first imports of the command itself."""


class Broken(Exception):
    """A promise that a storm broke."""


@dataclass(frozen=True)
class Shape:
    """What is asked: so many questions, samples of each, over this transport."""

    questions: int
    samples: int
    transport: str


SHAPES = (Shape(6, 5, "http"), Shape(3, 8, "http"), Shape(10, 3, "http"), Shape(4, 6, "openai"))


@dataclass
class Storm:
    """A storm's places and what has happened in it so far."""

    seed: int
    folder: Path
    shape: Shape
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    seen: dict[int, processes.Process] = field(default_factory=dict)
    """Every process of a session, by number: none may be left."""

    @property
    def journal(self) -> Path:
        return self.folder / "run" / "sums" / "samples.jsonl"

    def run_words(self, *more: str) -> list[str]:
        words = [
            "run",
            "--data",
            "sums.jsonl",
            "--id-key",
            "id",
            "--model",
            MODEL,
            "--samples",
            str(self.shape.samples),
        ]
        words += ["--out", "run", "--concurrency", "6", "--transport", self.shape.transport, "--no-canary"]
        return [*words, "--no-fingerprint", "--no-progress", "--idle-timeout", "5", "--seed", "7", *more]


def prepare(folder: Path, shape: Shape) -> None:
    rows = [
        {"id": f"q{i}", "problem": f"What is {i} + 1 (mod 3)?", "answer": str(i % 3 + 1)}
        for i in range(shape.questions)
    ]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def server(port: int, seed: int, share: float, *more: str) -> subprocess.Popen[str]:
    """Start the model, and wait until it listens."""
    words = ["tests.storms.server", "--port", str(port), "--seed", str(seed), "--trouble", str(share), *more]
    child = launch(words, cwd=ROOT, start_new_session=True)
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return child
        time.sleep(0.02)
    child.kill()
    raise AssertionError("the storm's own server did not begin")


@contextlib.contextmanager
def serving(seed: int, share: float, *more: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The model's address, and how to kill and restart it there."""
    port = free_port()
    running = [server(port, seed, share, *more)]

    def restart() -> None:
        running[0].kill()
        running[0].wait()
        running[0] = server(port, seed + 1, share, *more)

    try:
        yield f"http://127.0.0.1:{port}/v1", restart
    finally:
        running[0].kill()
        running[0].wait()


def command(storm: Storm, *words: str, extra: dict[str, str] | None = None, limit: int = 0) -> subprocess.Popen[str]:
    """Start `harness WORDS`. limit: bytes to which a file may grow, 0 = no limit. extra: variables, which a new
    interpreter reads."""
    return (warm.started_cold if extra else launch)(
        ["harness", *words],
        limits={resource.RLIMIT_FSIZE: limit} if limit else None,
        cwd=storm.folder,
        env=environment(storm.folder, {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY, **(extra or {})}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def ended(storm: Storm, child: subprocess.Popen[str], allowed: tuple[int, ...]) -> str:
    """Wait for a command; its standard output."""
    try:
        out, err = child.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        raise Broken(f"a command did not end in {LIMIT_SECONDS:g} s: {child.args!r}") from None
    if KEY in out + err:
        raise Broken(f"the key is printed: {out + err}")
    if "Traceback" in NOT_OURS.sub("", err):
        raise Broken(f"a traceback: {err}")
    if child.returncode not in allowed:
        raise Broken(f"exit code {child.returncode}, not one of {allowed}: {err[-2000:]}")
    storm.counts[f"exit {child.returncode}"] += 1
    return out


def records(storm: Storm) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What the journal holds by key, read by code of its own. Raises `Broken` at a key that stands there twice."""
    lines = intact_lines(storm.journal.read_bytes()) if storm.journal.exists() else []
    records_by_key: dict[tuple[str, int], tuple[Any, ...]] = {}
    for line in lines:
        key = line["question_id"], line["sample_index"]
        if key in records_by_key:
            raise Broken(f"{key} stands in the journal twice")
        records_by_key[key] = (
            line["text"],
            line["reasoning"],
            line["finish_reason"],
            line["usage"]["completion_tokens"],
            line["seed"],
        )
    return records_by_key


def some_moment(storm: Storm, child: subprocess.Popen[str]) -> bool:
    """Wait until a moment drawn from the seed, within a session's start or its asking. Whether the child still runs."""
    until = storm.chance.choice((0.0, 0.3, 1.0))
    more = storm.chance.uniform(0, 1.2)
    begun = len(records(storm))
    end = time.monotonic() + 30
    # The first samples of the session, so that the moments fall into its asking also on a slow machine.
    while until and child.poll() is None and len(records(storm)) <= begun and time.monotonic() < end:
        time.sleep(0.01)
    end = time.monotonic() + more
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    return child.poll() is None


SIGNALS = {signal.SIGKILL: (-9, 137), signal.SIGTERM: (143, -15), signal.SIGINT: (130, -2), signal.SIGHUP: (129, -1)}
DONE_OR_OWED = (0, 1)


def killed_client(storm: Storm) -> None:
    number = storm.chance.choice(list(SIGNALS))
    with serving(storm.chance.randrange(2**31), 0.15) as (url, _):
        child = command(storm, *storm.run_words("--base-url", url))
        if some_moment(storm, child):
            child.send_signal(number)
            if storm.chance.random() < 0.3:
                time.sleep(storm.chance.uniform(0, 0.2))
                child.send_signal(number)
        ended(storm, child, (*SIGNALS[number], *DONE_OR_OWED))


def killed_server(storm: Storm) -> None:
    with serving(storm.chance.randrange(2**31), 0.1) as (url, restart):
        child = command(storm, *storm.run_words("--base-url", url, "--attempts", "6"))
        for _ in range(storm.chance.randint(1, 2)):
            if some_moment(storm, child):
                restart()
        ended(storm, child, (*DONE_OR_OWED, 2, 4))


def failing_gateway(storm: Storm) -> None:
    """Most whole requests work, and all that go on with half-written answers fail: two sessions end the run."""
    kind = storm.chance.choice(list(FAILING))
    storm.counts[f"gateway: {kind}"] += 1
    with serving(storm.chance.randrange(2**31), 0.15, "--continuations", kind) as (url, _):
        words = storm.run_words("--base-url", url, "--first-token-timeout", "2", "--attempts", "20")
        child = command(storm, *words)
        if storm.chance.random() < 0.5 and some_moment(storm, child):
            child.send_signal(signal.SIGKILL)
            ended(storm, child, (-9, *DONE_OR_OWED))
            child = command(storm, *words)
        ended(storm, child, DONE_OR_OWED)
        ended(storm, command(storm, *words), (0,))


def killed_guard(storm: Storm) -> None:
    """A server of the run's own: any process below the client is killed, its guard among them, or the client itself."""
    words = [sys.executable, "-m", "tests.storms.server", "--port", "{port}", "--trouble", "0.1"]
    words += ["--seed", str(storm.chance.randrange(2**31))]
    flags = [part for word in words for part in ("--serve-option", f"engine-flag={word}")]
    options = ("health-path=/health", f"served-name={MODEL}", "stop-grace=1")
    more = ["--serve", "command", *(part for one in options for part in ("--serve-option", one)), *flags]
    child = command(storm, *storm.run_words(*more))
    if some_moment(storm, child):
        below = processes.descendants(child.pid)
        for pid in (child.pid, *below):
            if (seen := processes.process(pid)) is not None:
                storm.seen[pid] = seen
        victim = storm.chance.choice([child.pid, *below])
        storm.counts["killed client of a server" if victim == child.pid else "killed guard or server"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    ended(storm, child, (-9, 137, *DONE_OR_OWED, 2, 4))


def full_disk(storm: Storm) -> None:
    """No file may grow beyond a size that is drawn: as on a full disk, a write comes short or fails."""
    sizes = [path.stat().st_size for path in storm.folder.rglob("*") if path.is_file()]
    limit = max(sizes) + storm.chance.randint(1, 20_000)
    with serving(storm.chance.randrange(2**31), 0.1) as (url, _):
        child = command(storm, *storm.run_words("--base-url", url), limit=limit)
        ended(storm, child, (*DONE_OR_OWED, 3))


def jumping_clock(storm: Storm) -> None:
    extra = {"PYTHONPATH": f"{CLOCK}:{ROOT}", "STORM_CLOCK": str(storm.chance.random())}
    with serving(storm.chance.randrange(2**31), 0.15) as (url, _):
        ended(storm, command(storm, *storm.run_words("--base-url", url), extra=extra), DONE_OR_OWED)


def killed_scorer(storm: Storm) -> None:
    if not (storm.folder / "run" / "manifest.json").exists():
        if records(storm):
            raise Broken("samples stand in the journal of a run that has no manifest")
        return
    child = command(storm, "score", "run")
    end = time.monotonic() + storm.chance.uniform(0.1, 1.5)
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    child.kill()
    ended(storm, child, (-9, 0, 1))


TROUBLES = (
    killed_client,
    killed_client,
    killed_server,
    failing_gateway,
    killed_guard,
    full_disk,
    jumping_clock,
    killed_scorer,
)


def finish(storm: Storm, *words: str) -> None:
    """Run `harness WORDS` to its end; nobody disturbs it."""
    ended(storm, command(storm, *words), (0,))


def outcome(storm: Storm) -> tuple[dict[tuple[str, int], tuple[Any, ...]], dict[str, Any]]:
    """(records, score) once nobody disturbs: the run asked to its end, and scored from what stands in its folder."""
    with serving(0, 0.0) as (url, _):
        finish(storm, *storm.run_words("--base-url", url))
    finish(storm, "score", "run")
    (score,) = storm.folder.glob("run/*/scores.json")
    return records(storm), content_of_score(score)


def content_of_score(path: Path) -> dict[str, Any]:
    """What a score says of the samples, without what it says of when, where, and on which connections."""
    score = json.loads(path.read_bytes())
    score["warnings"] = [one for one in score["warnings"] if not OF_THE_WAY.search(one["text"])]
    return {name: value for name, value in score.items() if name not in MEASURED}


def _holds_the_key(path: Path) -> bool:
    return KEY.encode() in path.read_bytes()


_quiet_lock = threading.Lock()


@functools.cache
def _quiet(shape: Shape) -> tuple[dict[tuple[str, int], tuple[Any, ...]], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="harness-quiet-") as parent:
        prepare(Path(parent), shape)
        return outcome(Storm(0, Path(parent), shape, random.Random(0)))


def quiet(shape: Shape) -> tuple[dict[tuple[str, int], tuple[Any, ...]], dict[str, Any]]:
    """What an undisturbed run of this shape comes to."""
    with _quiet_lock:
        return _quiet(shape)


def play(seed: int) -> Counter[str]:
    """The storm of this seed: how often each thing happened. Raises `Broken`; its folder is then kept and named."""
    chance = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    storm = Storm(seed, Path(tempfile.mkdtemp(prefix=f"harness-storm-{seed}-")), shape, chance)
    try:
        disturb_and_compare(storm)
    except Broken as broken:
        raise Broken(f"{broken} (seed {seed}, kept in {storm.folder})") from None
    shutil.rmtree(storm.folder)
    return storm.counts


def disturb_and_compare(storm: Storm) -> None:
    """The storm in its folder: after every trouble nothing is lost or false, at the end all is as in the quiet run."""
    expected, score = quiet(storm.shape)
    prepare(storm.folder, storm.shape)
    before: dict[tuple[str, int], tuple[Any, ...]] = {}
    for _ in range(storm.chance.randint(2, 5)):
        happens = storm.chance.choice(TROUBLES)
        storm.counts[happens.__name__.replace("_", " ")] += 1
        happens(storm)
        stored = records(storm)
        if lost := [key for key, value in before.items() if stored.get(key) != value]:
            raise Broken(f"{lost} stood in the journal and is gone or another after {happens.__name__}")
        if false := [key for key, value in stored.items() if expected.get(key) != value]:
            raise Broken(f"{false} was never said by the model, after {happens.__name__}")
        before = stored
    stored, scored = outcome(storm)
    if stored != expected:
        raise Broken(f"keys or texts are not those of the quiet run: {sorted(set(stored) ^ set(expected))}")
    if scored != score:
        names = [name for name in score.keys() | scored.keys() if scored.get(name) != score.get(name)]
        raise Broken(f"the score is not that of the quiet run in {sorted(names)}")
    if leaking := [str(path) for path in storm.folder.rglob("*") if path.is_file() and _holds_the_key(path)]:
        raise Broken(f"the key is stored in {leaking}")
    storm.counts["samples"] += len(stored)
    end = time.monotonic() + 30
    while left := [child.pid for child in storm.seen.values() if child.alive()]:
        if time.monotonic() > end:
            raise Broken(f"processes are left: {[processes.describe(pid) for pid in left]}")
        time.sleep(0.05)
