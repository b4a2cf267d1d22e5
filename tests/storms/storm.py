"""One storm over a campaign: its commands killed at moments and calls drawn from a seed, their disk and server failing.

A campaign is a list of command lines that are started one after the other. The same list again goes on from where a
storm left it, so a campaign that was disturbed at any line and played once more must end as an undisturbed one.

After each trouble every sample that stood in a journal still stands there, once and unchanged. At the end the same
commands, undisturbed, come to the exit codes, the files and the printed tables of a quiet campaign.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import json
import math
import os
import random
import re
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

from server_launchers.machine import ports, processes
from tests import warm
from tests.runs.recorded import intact_lines
from tests.storms.server import MODEL
from tests.system.command import argv, environment

Line = list[str]

SAMPLED = ["--id-key", "id", "--model", MODEL, "--no-canary", "--concurrency", "6"]
SAMPLED += ["--timeout", "2", "--attempts", "20", "--seed", "7"]
N_QUESTIONS = 4
N_SAMPLES = 3


@dataclass(frozen=True)
class Campaign:
    """The commands that storms disturb.

    lines: the command lines, of the server's address. server: they ask one that is not theirs. told: what they answer
    depends on what came before, so neither exit codes nor what they print and sum up is compared.
    """

    lines: Callable[[str], list[Line]]
    server: bool = True
    told: bool = False


def prepare(folder: Path) -> None:
    """The questions that the campaigns name."""
    sums = [
        {"id": f"q{i}", "problem": f"What is {i} + 1 (mod 3)?", "answer": str(i % 3 + 1)} for i in range(N_QUESTIONS)
    ]
    prose = [
        {"id": f"p{i}", "problem": f"Say in prose what {i} is.", "answer": rf"\text{{a {i} in light}}"} for i in (1, 2)
    ]
    for name, rows in (("sums", sums), ("prose", prose)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run_line(out: str, url: str, *more: str, data: str = "sums.jsonl") -> Line:
    """The command line that samples into the folder `out`."""
    asked = ["run", "--data", data, *SAMPLED, "--samples", str(N_SAMPLES), "--out", out]
    return [*asked, *(["--base-url", url] if url else []), *more]


def _sampled(url: str) -> list[Line]:
    return [run_line("run", url), ["score", "run", "--workers", "2"]]


def _served(_url: str) -> list[Line]:
    options = ["health-path=/health", f"served-name={MODEL}", "stop-grace=1"]
    options += [f"engine-flag={word}" for word in (sys.executable, "-m", "tests.storms.server", "--port", "{port}")]
    serve = [word for option in options for word in ("--serve-option", option)]
    return [run_line("run", "", "--serve", "command", *serve), ["score", "run"]]


def _judged(url: str) -> list[Line]:
    judge = ["--judge", f"{MODEL}@{url}", "--workers", "1"]
    return [run_line("told", url, data="prose.jsonl"), ["score", "told", *judge]]


CAMPAIGNS = {
    "run": Campaign(_sampled),
    "run served": Campaign(_served, server=False),
    "judge": Campaign(_judged, told=True),
}


launch: Callable[..., subprocess.Popen[str]] = warm.started_cold
"""How commands and servers start: by new interpreters, whose imports are disturbed, too."""

ROOT = Path(__file__).resolve().parents[2]
CLOCK = Path(__file__).with_name("clock")
LIMIT_SECONDS = 600.0  # for one command that nobody disturbs, on a machine that is busy
KEY = "canary-93be07c51fa2d684-through-storms"
MEASURED = ("speed", "workload", "endpoints")
"""Fields of a score that tell when and where, not what: another run has others."""


class Broken(Exception):
    """A promise that a storm broke."""


SIGNALS = {signal.SIGKILL: (-9, 137), signal.SIGTERM: (143, -15), signal.SIGHUP: (129, -1)}
"""Signals that end a command, with the exit codes that may follow."""

ENDS = (0, 1, 2, 3, 4, 5)
"""Exit codes of a command that something disturbed and no signal ended."""

UNEQUAL = ("manifest.json", "log.jsonl", "run.lock", "opinions.jsonl", "engine.jsonl")
"""Files of a run that hold times, the order in which things happened, or replies that were asked for once more."""

COST_OF_SESSIONS = re.compile(r"^all sessions of .*\n", re.MULTILINE)
"""What all requests took, those that a kill cut off as well: a quiet campaign has none."""

CREATED = re.compile(rb'"created": "[^"]*"')
"""When a folder of scores was made, in its record."""

Records = dict[str, tuple[Any, ...]]
"""By journal, question and index: what a sample says."""


@dataclass(frozen=True)
class Started:
    """How a command is started: a program before it, and variables."""

    prefix: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)


@dataclass
class Play:
    """A campaign's folder, its server, and what happened so far."""

    name: str
    folder: Path
    chance: random.Random
    url: str = ""
    restart: Callable[[], None] = lambda: None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def campaign(self) -> Campaign:
        return CAMPAIGNS[self.name]


def start(play: Play, line: Line, how: Started | None = None) -> subprocess.Popen[str]:
    """Start `harness LINE` in the campaign's folder."""
    how = how or Started()
    variables = {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": KEY, "COLUMNS": "160", **how.extra}
    variables |= {"HARNESS_CACHE": str(play.folder / "cache")}
    options: dict[str, Any] = {
        "cwd": play.folder,
        "env": environment(play.folder, variables),
        "start_new_session": True,
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    if how.prefix:
        return subprocess.Popen([*how.prefix, *argv(*line)], text=True, **options)
    return (warm.started_cold if how.extra else launch)(["harness", *line], **options)


def ended(play: Play, child: subprocess.Popen[str], allowed: tuple[int, ...]) -> tuple[int, str]:
    """(exit code, standard output) of a command that must end by itself."""
    try:
        out, err = child.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        raise Broken(f"a command did not end in {LIMIT_SECONDS:g} s: {child.args!r}") from None
    if KEY in out + err:
        raise Broken(f"the key is printed: {out + err}")
    if "Traceback" in err:
        raise Broken(f"a traceback of {child.args!r}: {err}")
    if child.returncode not in allowed:
        raise Broken(f"exit code {child.returncode}, not one of {allowed}, of {child.args!r}: {err[-2000:]}")
    play.counts[f"exit {child.returncode}"] += 1
    return child.returncode, out


# -- the model -------------------------------------------------------------------------------------------------------


def server(port: int, seed: int, share: float) -> subprocess.Popen[str]:
    """Start the model, and wait until it listens."""
    words = ["tests.storms.server", "--port", str(port), "--seed", str(seed), "--trouble", str(share)]
    child = launch(words, cwd=ROOT, start_new_session=True)
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return child
        time.sleep(0.02)
    child.kill()
    raise AssertionError("the storm's own server did not begin")


@contextlib.contextmanager
def serving(seed: int, share: float) -> Iterator[tuple[str, Callable[[], None]]]:
    """The model's address, and how to kill and restart it there."""
    (port,) = ports.free_ports("127.0.0.1", None, 1)
    running = [server(port, seed, share)]

    def restart() -> None:
        running[0].kill()
        running[0].wait()
        running[0] = server(port, seed + 1, share)

    try:
        yield f"http://127.0.0.1:{port}/v1", restart
    finally:
        running[0].kill()
        running[0].wait()


# -- what a campaign leaves ------------------------------------------------------------------------------------------


def records(folder: Path) -> Records:
    """What all journals hold, read by code of its own. Raises `Broken` at a key that stands in one twice."""
    rows: Records = {}
    for path in sorted(folder.rglob("samples.jsonl")):
        for row in intact_lines(path.read_bytes()):
            key = f"{path.relative_to(folder)}:{row['question_id']}:{row['sample_index']}"
            if key in rows:
                raise Broken(f"{key} stands in the journal twice")
            rows[key] = row["text"], row["reasoning"], row["finish_reason"], row["seed"]
    return rows


def _grades(path: Path) -> object:
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    return sorted((row["question_id"], row["sample_index"], row["verdict"]) for row in rows)


def files_of(play: Play) -> dict[str, object]:
    """What stands in the folder, as far as two quiet campaigns agree on it."""
    values: dict[str, object] = {}
    for path in sorted(play.folder.rglob("*")):
        name = str(path.relative_to(play.folder))
        if not path.is_file() or path.name in (*UNEQUAL, "samples.jsonl"):
            continue
        if name.startswith(("state/", "cache/")) or (play.campaign.told and path.name == "scores.json"):
            continue
        if path.name == "scores.json":
            values[name] = content_of_score(path)
        elif path.name == "grades.jsonl":
            values[name] = _grades(path)
        else:
            # The time is left out: two quiet campaigns in one second would agree on it.
            content = CREATED.sub(b"", path.read_bytes().replace(str(play.folder).encode(), b""))
            values[name] = content
    return values


def content_of_score(path: Path) -> dict[str, Any]:
    """What a score says of the samples, without what it says of when, where, and on which connections."""
    score = json.loads(path.read_bytes())
    return {name: value for name, value in score.items() if name not in MEASURED}


@dataclass(frozen=True)
class Outcome:
    """codes and printed: of each line. files: by name. samples: of all journals."""

    codes: list[int]
    printed: list[str]
    files: dict[str, object]
    samples: Records


def differences(outcome: Outcome, quiet: Outcome, *, told: bool) -> list[str]:
    """What an undisturbed end has otherwise than the quiet campaign. told: it answers what came before."""
    wrong = []
    if outcome.codes != quiet.codes and not told:
        wrong.append(f"exit codes {outcome.codes}, not {quiet.codes}")
    if outcome.samples != quiet.samples:
        names = {
            key for key in {**outcome.samples, **quiet.samples} if outcome.samples.get(key) != quiet.samples.get(key)
        }
        wrong.append(f"the samples differ: {sorted(names)[:5]}")
    names = {name for name in {**outcome.files, **quiet.files} if outcome.files.get(name) != quiet.files.get(name)}
    if names:
        wrong.append(f"the files differ: {sorted(names)[:5]}")
    for number, (printed, expected) in enumerate(zip(outcome.printed, quiet.printed, strict=True)):
        if printed != expected and not told:
            wrong.append(f"line {number} printed {printed[:2000]!r}, not {expected[:2000]!r}")
    return wrong


def undisturbed(play: Play) -> Outcome:
    """All lines of the campaign, to their ends."""
    ends = [ended(play, start(play, line), ENDS) for line in play.campaign.lines(play.url)]
    printed = [
        COST_OF_SESSIONS.sub("", out.replace(str(play.folder), "").replace(play.url or "no server", "URL"))
        for _, out in ends
    ]
    return Outcome([code for code, _ in ends], printed, files_of(play), records(play.folder))


# -- troubles --------------------------------------------------------------------------------------------------------


CALLS = {
    "openat": 4000,
    "write": 60,
    "pwrite64": 10,
    "fsync": 12,
    "fdatasync": 12,
    "rename": 8,
    "unlink": 8,
    "mkdir": 10,
}
"""System calls at which a command is killed, with about the number that a command makes."""


def _when(chance: random.Random, largest: int) -> int:
    """A number from 1 to `largest`, small ones as likely as large ones by their logarithm."""
    return round(math.exp(math.log(largest) * chance.random()))


def killed(play: Play, line: Line, seconds: float) -> None:
    """A signal at a moment of the command's life, perhaps twice."""
    number = play.chance.choice(list(SIGNALS))
    child = start(play, line)
    _wait(child, play.chance.uniform(0, 1.2 * seconds))
    child.send_signal(number)
    if play.chance.random() < 0.3:
        time.sleep(play.chance.uniform(0, 0.2))
        child.send_signal(number)
    ended(play, child, (*SIGNALS[number], *ENDS))


def killed_at_a_call(play: Play, line: Line, seconds: float) -> None:
    """Any process of the command is killed at its n-th call of a kind."""
    strace = shutil.which("strace")
    if strace is None:
        killed(play, line, seconds)
        return
    ended(play, start(play, line, _traced(play.chance, strace)), (-9, 137, *ENDS))


def killed_below(play: Play, line: Line, seconds: float) -> None:
    """A process below the command is killed: a worker, a guard, a server."""
    child = start(play, line)
    _wait(child, play.chance.uniform(0.2, 1.2 * seconds))
    if below := processes.descendants(child.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(play.chance.choice(sorted(process.pid for process in below)), signal.SIGKILL)
    ended(play, child, ENDS)


def killed_at_birth(play: Play, line: Line, seconds: float) -> None:
    """The first processes below the command are killed when they appear: sandboxes, interpreters, workers, guards."""
    del seconds
    child, seen, n_left = start(play, line), set[int](), play.chance.randint(1, 4)
    while child.poll() is None and n_left:
        for process in processes.descendants(child.pid):
            if n_left and process.pid not in seen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                n_left -= 1
                play.counts["killed processes"] += 1
            seen.add(process.pid)
        time.sleep(0.005)
    ended(play, child, ENDS)


def stopped(play: Play, line: Line, seconds: float) -> None:
    """The whole session stands still for a while, and goes on or is killed."""
    child = start(play, line)
    _wait(child, play.chance.uniform(0, 1.2 * seconds))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGSTOP)
        time.sleep(play.chance.uniform(0, 1))
        os.killpg(child.pid, play.chance.choice((signal.SIGCONT, signal.SIGKILL)))
        os.killpg(child.pid, signal.SIGCONT)
    ended(play, child, (-9, 137, *ENDS))


def failing_disk(play: Play, line: Line, seconds: float) -> None:
    """The n-th call of a kind on a file of the folder fails, or all of them are short."""
    if (library := _failing_disk()) is None:
        killed(play, line, seconds)
        return
    ended(play, start(play, line, _on_failing_disk(play, library)), ENDS)


def jumping_clock(play: Play, line: Line, seconds: float) -> None:
    del seconds
    ended(play, start(play, line, _jumping(play.chance)), ENDS)


def restarted_server(play: Play, line: Line, seconds: float) -> None:
    """The model's server dies and comes again. Without a server: a signal."""
    if not play.url:
        killed(play, line, seconds)
        return
    child = start(play, line)
    _wait(child, play.chance.uniform(0.2, 1.2 * seconds))
    play.restart()
    ended(play, child, ENDS)


TROUBLES = (
    *(killed, killed_at_a_call, failing_disk) * 2,
    *(killed_below, killed_at_birth, stopped, jumping_clock, restarted_server),
)


def _traced(chance: random.Random, strace: str) -> Started:
    call = chance.choice(list(CALLS))
    inject = f"inject={call}:signal=KILL:when={_when(chance, CALLS[call])}"
    return Started((strace, "-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e", f"trace={call}", "-e", inject))


def _on_failing_disk(play: Play, library: Path) -> Started:
    call = play.chance.choice(("read", "write", "write", "fsync", "truncate"))
    error = play.chance.choice((errno.EIO, errno.ENOSPC if call == "write" else errno.EIO, 0))
    when = 0 if error == 0 else _when(play.chance, 60)
    disk = {"DISK_PATH": str(play.folder), "DISK_CALL": call, "DISK_WHEN": str(when), "DISK_ERRNO": str(error)}
    return Started(extra={**disk, "LD_PRELOAD": str(library)})


def _jumping(chance: random.Random) -> Started:
    return Started(extra={"PYTHONPATH": f"{CLOCK}:{ROOT}", "STORM_CLOCK": str(chance.random())})


def _wait(child: subprocess.Popen[str], seconds: float) -> None:
    end = time.monotonic() + seconds
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.005)


def _until_the_end(name: str) -> Path:
    """A temporary folder that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix=f"harness-storms-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _failing_disk() -> Path | None:
    """The library of tests/faults/failing_disk.c; None where it cannot be made."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = _until_the_end("disk") / "failing_disk.so"
    source = ROOT / "tests" / "faults" / "failing_disk.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, capture_output=True
    )
    return library


# -- a storm ---------------------------------------------------------------------------------------------------------


_lock = threading.Lock()


@contextlib.contextmanager
def played(name: str, seed: int, trouble: float) -> Iterator[Play]:
    """A campaign in a folder of its own, with its server. The folder goes at the end, but for a promise broken."""
    folder = Path(tempfile.mkdtemp(prefix="harness-storm-"))
    with contextlib.ExitStack() as stack:
        play = Play(name, folder, random.Random(seed))
        if play.campaign.server:
            play.url, play.restart = stack.enter_context(serving(seed, trouble))
        prepare(folder)
        yield play
    shutil.rmtree(folder)


@functools.cache
def _quiet(name: str) -> tuple[Outcome, float]:
    with played(name, 0, 0.0) as play:
        begun = time.monotonic()
        outcome = undisturbed(play)
        return outcome, (time.monotonic() - begun) / len(outcome.codes)


def quiet(name: str) -> tuple[Outcome, float]:
    """What an undisturbed campaign of this name comes to, and the seconds that each of its lines takes."""
    with _lock:
        return _quiet(name)


def name_of(chance: random.Random) -> str:
    """The campaign of a storm."""
    return chance.choice([*CAMPAIGNS])


def play(seed: int) -> Counter[str]:
    """The storm of this seed: how often each thing happened. Raises `Broken`; its folder is then kept and named."""
    chance = random.Random(seed)
    name = name_of(chance)
    expected, seconds = quiet(name)
    with played(name, seed, 0.1) as storm:
        storm.chance = chance
        try:
            disturb_and_compare(storm, expected, seconds)
        except Broken as broken:
            raise Broken(f"{name}: {broken} (seed {seed}, kept in {storm.folder})") from None
    storm.counts[f"campaign: {name}"] += 1
    return storm.counts


def disturb_and_compare(storm: Play, expected: Outcome, seconds: float) -> None:
    """The storm in its folder: after every trouble nothing is lost or false, at the end all is as in the quiet one."""
    before: Records = records(storm.folder)
    for _ in range(storm.chance.randint(1, 3)):
        happens = storm.chance.choice(TROUBLES)
        storm.counts[happens.__name__.replace("_", " ")] += 1
        lines = storm.campaign.lines(storm.url)
        struck = storm.chance.randrange(len(lines))
        for line in lines[:struck]:
            ended(storm, start(storm, line), ENDS)
        happens(storm, lines[struck], seconds)
        rows = records(storm.folder)
        if lost := [key for key, value in before.items() if rows.get(key) != value]:
            raise Broken(f"{lost} stood in the journal and is gone or another after {happens.__name__}")
        if false := [key for key, value in rows.items() if expected.samples.get(key) != value]:
            raise Broken(f"{false} was never said by the model, after {happens.__name__}")
        before = rows
    outcome = undisturbed(storm)
    if wrong := differences(outcome, expected, told=storm.campaign.told):
        raise Broken("; ".join(wrong))
    leftovers(storm)
    storm.counts["samples"] += len(outcome.samples)


def leftovers(storm: Play) -> None:
    """Raises `Broken` where a storm leaves a temporary file, the key or a process."""
    if left := [str(path) for path in storm.folder.rglob(".*.tmp")]:
        raise Broken(f"temporary files are left: {left}")
    if leaking := [
        str(path) for path in storm.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]:
        raise Broken(f"the key is stored in {leaking}")
    end = time.monotonic() + LIMIT_SECONDS
    while alive := standing_in(storm.folder):
        if time.monotonic() > end:
            raise Broken(f"processes are left: {[processes.describe(pid) for pid in alive]}")
        time.sleep(0.05)


def standing_in(folder: Path) -> list[int]:
    """Processes that stand in this folder or below it."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(folder):
                    pids.append(int(entry.name))
    return pids
