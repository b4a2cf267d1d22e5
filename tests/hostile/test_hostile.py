"""Before any hostile server the command ends in time and in bounds, believes nothing false, and prints nothing raw.

`make test-hostile` plays all of them over all transports; the ordinary suite plays a few.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.client.protocol.reply import RequestFailed
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER
from harness.generation.dispatch.retry import fault_of
from tests.faults.server import FaultServer
from tests.hostile.corpus import CORPUS, FALSE, TRUE, Hostile
from tests.runs.recorded import intact_lines
from tests.system.command import environment

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [__name__, "harness.cli.run", "harness.generation.runner", "harness.client.transport", "openai"]
)

LIMIT_SECONDS = 400.0
"""Longest run before any hostile server, on a machine that is busy. What the command waits for is far less."""

QUESTIONS = ("sound 1", "sound 2", "hostile 1", "hostile 2")
SAMPLES = 2
KEY = "canary-6f1d2a94c07be835-before-hostile-servers"


@dataclass(frozen=True)
class Attacked:
    """code: exit code, None if it did not end in time. texts: what stands in the journal, by question. peak_mib: beyond
    the memory that the program takes before it does anything.

    waited: it took the endpoint for down, for which it would have waited ten minutes; a Ctrl-C ended that.
    leaking: what holds the key that it was given.
    """

    code: int | None
    printed: str
    log: str
    texts: list[tuple[str, str]]
    peak_mib: float
    waited: bool = False
    leaking: tuple[str, ...] = ()


def attacked(folder: Path, hostile: Hostile, transport: str, *, deadline_seconds: int = 3) -> Attacked:
    """One run of four questions before this server, in a new folder. deadline_seconds: of a reply's first token."""
    folder.mkdir()
    rows = [{"id": one, "problem": one, "answer": "2"} for one in QUESTIONS]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["run", "--data", "q.jsonl", "--id-key", "id", "--model", "m", "--samples", str(SAMPLES), "--out", "run"]
    words += ["--concurrency", "2", "--attempts", "2", "--max-tokens", "64", "--no-canary", "--no-fingerprint"]
    words += ["--first-token-timeout", str(deadline_seconds), "--idle-timeout", "2", "--transport", transport]
    variables = environment(folder, {"OPENAI_API_KEY": KEY})
    if hostile.reply is not None:
        next(
            iter(hostile.reply()), None
        )  # a bomb is packed here: on a busy machine that takes longer than a client waits
    with FaultServer(hostile.answer, greeting=hostile.greeting) as server:
        words += ["--base-url", server.base_url]
        child = _PROCESSES.Process(target=_command, args=(folder, words, variables))
        child.start()
        assert child.pid is not None
        begun = peak = _peak_mib(child.pid)
        waited, end = False, time.monotonic() + LIMIT_SECONDS
        while child.is_alive() and time.monotonic() < end:
            peak = max(peak, _peak_mib(child.pid))
            if not waited and _takes_it_for_down(folder / "run"):
                waited = True
                os.kill(child.pid, signal.SIGINT)
            child.join(0.02)
        code = child.exitcode
        child.kill()
        child.join()
    printed = (folder / "printed").read_bytes().decode("utf-8", "surrogateescape")
    log = folder / "run" / "log.jsonl"
    logged = log.read_bytes().decode("utf-8", "surrogateescape") if log.exists() else ""
    leaking = tuple(str(path) for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes())
    leaking += ("what was printed",) if KEY in printed else ()
    return Attacked(code, printed, logged, _texts(folder / "run"), peak - begun, waited, leaking)


def _command(folder: Path, words: list[str], variables: Mapping[str, str]) -> None:
    """Be `harness WORDS` in `folder`: its streams go to the file `printed`, and each warning is an error."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number in (1, 2):
        os.dup2(os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    sys.argv = ["harness", *words]
    warnings.simplefilter("error")
    main()


def _takes_it_for_down(run: Path) -> bool:
    """Nothing sound is left, and enough requests in a row have failed as those to an endpoint that is down."""
    if sum(question.startswith("sound") for question, _ in _texts(run)) < 2 * SAMPLES:
        return False
    lines = (run / "log.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines if line.endswith(b"}")]
    last = [one for one in events if one["event"] == "request_failed"][-SET_ASIDE_AFTER:]
    faults = [fault_of(RequestFailed(one["kind"], "", status=one["status"]), probing=False) for one in last]
    return len(faults) == SET_ASIDE_AFTER and set(faults) <= {"endpoint", "pace"}


def _texts(run: Path) -> list[tuple[str, str]]:
    journal = run / "q" / "samples.jsonl"
    lines = intact_lines(journal.read_bytes()) if journal.exists() else []
    return [(one["question_id"], one["text"]) for one in lines]


def _peak_mib(pid: int) -> float:
    """Largest resident memory of a process so far, as the kernel has it; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
"""What may not reach a terminal or a log."""

MAX_MIB = 270
"""Two hostile replies at once: of one that failed nothing is kept."""

A_FEW = (
    "header lines without end",
    "compressed bomb of gzip",
    "tokens without end",
    "500 of raw escapes",
    "models: a million",
)
DEADLINES_SECONDS = (3, 60, 60)
"""Of a first token: again, and longer, only where a busy machine was late with a sound reply."""

LATE = re.compile("timeout|does not answer within")

ALL = bool(os.environ.get("HARNESS_HOSTILE"))
TRANSPORTS = os.environ.get("HARNESS_HOSTILE", "http").split()


def wrong(outcome: Attacked, hostile: Hostile) -> list[str]:
    """What the command did that it may not."""
    faults = []
    if outcome.code is None:
        faults.append("it did not end")
    elif outcome.code not in ((130,) if outcome.waited else (0, 1, 2, 4)):
        faults.append(f"exit code {outcome.code}")
    if "Traceback" in outcome.printed:
        faults.append("a traceback")
    if raw := RAW.search(outcome.printed):
        faults.append(f"raw {raw.group()!r} in what was printed")
    if raw := RAW.search(outcome.log):
        faults.append(f"raw {raw.group()!r} in the log")
    for question, text in outcome.texts:
        sound = question.startswith("sound") or hostile.reply is None
        if text not in ({TRUE} if sound else hostile.says):
            faults.append(f"{question} has the false sample {text[:80]!r}")
    if outcome.peak_mib > MAX_MIB:
        faults.append(f"{outcome.peak_mib:.0f} MiB of memory")
    if outcome.leaking:
        faults.append(f"the key in {outcome.leaking}")
    return faults


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", list(CORPUS) if ALL else A_FEW)
def test_before_a_hostile_server_the_command_ends_bounded_and_believes_nothing_false(
    tmp_path: Path, name: str, transport: str
) -> None:
    hostile = CORPUS[name]
    answered = hostile.reply is not None and not hostile.refuses
    for number, seconds in enumerate(DEADLINES_SECONDS):
        outcome = attacked(tmp_path / str(number), hostile, transport, deadline_seconds=seconds)
        if not answered or n_sound(outcome) == 4 or not LATE.search(outcome.printed):
            break
    faults = wrong(outcome, hostile)
    assert faults == [], f"{faults}\n{outcome.printed[-3000:]}"
    if answered:
        assert n_sound(outcome) == 4, f"a hostile reply cost a sound one: {outcome.printed[-3000:]}"


def n_sound(outcome: Attacked) -> int:
    """How many samples of the sound questions there are."""
    return sum(question.startswith("sound") for question, _ in outcome.texts)


def test_the_corpus_has_250_servers_and_the_few_are_among_them() -> None:
    assert len(CORPUS) >= 250
    assert set(A_FEW) <= set(CORPUS)


def test_a_command_that_did_each_forbidden_thing_would_be_found() -> None:
    sound = Attacked(1, "fine\n", '{"event": "x"}\n', [("sound 1", TRUE)], 60.0)
    server = CORPUS["no head"]
    assert wrong(sound, server) == []
    for change in (
        {"code": None},
        {"code": 139},
        {"code": 130},
        {"waited": True},
        {"printed": "Traceback (most recent call last)"},
        {"printed": "\x1b[2J"},
        {"log": "\u202e"},
        {"texts": [("hostile 1", FALSE)]},
        {"texts": [("sound 1", FALSE)]},
        {"peak_mib": 1000.0},
        {"leaking": ("log.jsonl",)},
    ):
        assert len(wrong(Attacked(**{**sound.__dict__, **change}), server)) == 1, change
