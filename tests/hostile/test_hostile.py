"""Before any hostile server the command ends in time and in bounds, believes nothing false, and prints nothing raw.

`make test-hostile` plays all of them over all transports; the ordinary suite plays a few.
"""

from __future__ import annotations

import gzip
import itertools
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
from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER
from harness.generation.dispatch.retry import sign_of
from harness.testing import CLOSE, DONE, HEAD, RESET, STALL, FakeServer, Pause, chunk, delta, event, http
from tests.hostile.replies import (
    DEEP,
    ESCAPES,
    FALSE,
    LOOKS,
    TRUE,
    Hostile,
    Reply,
    body,
    bomb,
    chunked,
    compressed_zeros,
    deflate,
    endless,
    forged,
    lengths,
    slow,
    steps,
    true,
    value,
    whole,
)
from tests.runs.recorded import intact_lines
from tests.system.command import environment

HEADS: dict[str, Reply] = {
    "status line without end": endless(b"a", b"HTTP/1.1 200 "),
    "status line of HTTP 0.9": steps(b"The answer is \\boxed{666}.\n", CLOSE),
    "preface of HTTP 2": steps(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", CLOSE),
    "status 204": steps(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status 101": steps(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", STALL
    ),
    "status 200 without a body": steps(http(200)),
    "header lines without end": endless(b"X-More: yes\r\n", b"HTTP/1.1 200 OK\r\n"),
    "header line without end": endless(b"a", b"HTTP/1.1 200 OK\r\nX: "),
    "header of 9 MB": steps(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 9_000_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "headers end in bare CR": steps(b"HTTP/1.1 200 OK\rContent-Length: 0\r\r", STALL),
    "1xx without end": endless(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "head that comes a byte at a time": slow(b"HTTP/1.1 200 OK\r\nX: a"),
    "no head": steps(STALL),
    "half a head": steps(b"HTTP/1.1 200 OK\r\nContent-Ty", STALL),
    "random bytes": steps(bytes(range(256)) * 4000, CLOSE),
    "a TLS alert": steps(b"\x15\x03\x01\x00\x02\x02\x28", CLOSE),
    "reset at once": steps(RESET),
}
REDIRECTS: dict[str, Reply] = {
    f"redirect {code} to {name}": steps(http(code, b"", location=target))
    for code, name, target in (
        (301, "another host", "http://127.0.0.2:9/v1/chat/completions"),
        (302, "a file", "file:///etc/passwd"),
        (303, "itself", "/v1/chat/completions"),
        (307, "a name with escapes", "http://x\x1b[2J/"),
        (308, "nothing", ""),
        (307, "a megabyte", "http://" + "a" * 60_000),
    )
}
REDIRECTS["status 304"] = steps(b"HTTP/1.1 304 Not Modified\r\n\r\n")
LENGTHS: dict[str, Reply] = {
    "length beyond 64 bits": lengths(b"Content-Length: 99999999999999999999999999", b"data: {"),
    "chunk size without end": endless(b"0", HEAD),
    "chunk extension without end": endless(b"a", HEAD + b"5;"),
    "chunk size that never ends": chunked(b"5", STALL),
    "chunks without a last one": body(delta("half"), end=(CLOSE,)),
    "trailers without end": endless(b"X: y\r\n", HEAD + chunk(delta("half")) + b"0\r\n"),
    "empty chunk lines": endless(b"\r\n", HEAD),
    "compressed bomb of gzip": bomb(lambda data: gzip.compress(data, 9), b"gzip"),
    "compressed bomb of deflate": bomb(deflate, b"deflate"),
    "says it is brotli": lengths(b"Content-Encoding: br"),
    "says it is zstd": lengths(b"Content-Encoding: zstd\r\nContent-Length: 40"),
    "encodings one in another": lengths(b"Content-Encoding: gzip, gzip, gzip\r\nContent-Length: 40"),
    "a page of HTML": steps(http(200, b"<html><script>alert(1)</script>\x1b[2J</html>", content_type="text/html")),
    "a page of nothing known": steps(http(200, b"\x89PNG\r\n" * 9, content_type="image/png")),
}
BODIES: dict[str, Reply] = {
    "line without end": endless(chunk(b"a" * 60_000), HEAD + chunk(b"data: ")),
    "comments without end": endless(chunk(b": ping\n\n"), HEAD),
    "blank lines without end": endless(chunk(b"\n" * 1000), HEAD),
    "data lines of one event without end": endless(chunk(b"data:\n" * 1000), HEAD),
    "event names without end": endless(chunk(b"event: x\n" * 1000), HEAD),
    "retry fields without end": endless(chunk(b"retry: 1\n\n" * 1000), HEAD),
    "tokens without end": endless(chunk(delta("word " * 400)), HEAD),
    "reasoning without end": endless(chunk(delta(reasoning_content="hmm " * 400)), HEAD),
    "empty deltas without end": endless(chunk(delta()), HEAD),
    "pings and silence": slow(HEAD + chunk(b": ping\n\n") * 50, 0.05),
    "a byte at a time": slow(HEAD + chunk(delta("x")), 0.1),
    "silence after the head": steps(HEAD, STALL),
    "silence after tokens": steps(HEAD, chunk(delta("half")), STALL),
    "NUL bytes": body(b"\x00" * 100_000),
    "broken UTF-8": body(b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}\n\n'),
    "no JSON": body(b"data: not json\n\n"),
    "half of JSON": body(b'data: {"choices": [\n\n'),
    "JSON of a hundred thousand levels": body(b"data: " + DEEP + b"\n\n"),
    "JSON of a million values": body(b'data: {"choices":[' + b"0," * 1_000_000 + b"0]}\n\n"),
    "an integer of a million digits": body(b'data: {"choices":' + b"9" * 1_000_000 + b"}\n\n"),
    "a number": body(event(7)),
    "a string": body(event("The answer is 666")),
    "null": body(event(None)),
    "a list": body(event([{"choices": []}])),
    "[DONE] alone": body(DONE),
    "[DONE] and tokens without end": endless(chunk(delta("x")), HEAD + chunk(delta("half")) + chunk(DONE)),
    "nothing at all": body(),
    "content and no finish reason": body(delta(FALSE)),
    "an error after tokens": body(delta(FALSE), event({"error": {"message": ESCAPES}})),
    "an error that is a string": body(event({"error": ESCAPES})),
    "an error that is a number": body(event({"error": 5})),
    "an error of a list": body(event({"error": [ESCAPES, {"a": ESCAPES}]})),
    "an error of ten megabytes": body(event({"error": {"message": "x" * 10_000_000}})),
    "an error event": body(b"event: error\ndata: " + json.dumps(ESCAPES).encode() + b"\n\n"),
    "two answers in one stream": body(*whole("one", FALSE), *whole("two", FALSE), DONE),
    "a second choice": body(value({"index": 1, "delta": {"content": FALSE}, "finish_reason": "stop"}), DONE),
}
ERRORS: dict[str, Reply] = {
    "500 without end": endless(b"error ", b"HTTP/1.1 500 X\r\n\r\n"),
    "500 of escapes": steps(http(500, {"error": {"message": ESCAPES}})),
    "500 of raw escapes": steps(http(500, ESCAPES.encode())),
    "500 of blanks after a word that looks like a key": steps(http(500, b"api_key:" + b" " * 200_000 + b"x")),
    "500 of a hundred thousand levels": steps(http(500, DEEP)),
    "500 that is compressed": lambda: [http(500, compressed_zeros(), content_encoding="gzip")],
    "500 that never comes": steps(b"HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nhalf", STALL),
    "500 with a reason of escapes": steps(b"HTTP/1.1 500 \x1b[2J\x9b\r\nContent-Length: 0\r\n\r\n"),
    "400 in the words of another error": steps(http(400, {"error": {"message": ESCAPES, "type": [], "code": {}}})),
    "413": steps(http(413, b"\xff\xfe\x00")),
    "418": steps(http(418, {"detail": [{"msg": ESCAPES}] * 1000})),
    "503 with a wait of words": steps(http(503, b"", retry_after="soon\x1b[2J")),
    "429 with a wait that is no number": steps(http(429, b"", retry_after="NaN")),
}
SAID: dict[str, Reply] = {
    f"usage is {name}": body(event(json.loads(delta(TRUE, finish="stop")[6:]) | {"usage": bad, "id": "u"}), DONE)
    for name, bad in (
        ("a word", "many"),
        ("a list", [1]),
        ("below zero", {"prompt_tokens": -1, "completion_tokens": -5}),
        ("beyond 64 bits", {"prompt_tokens": 10**30, "completion_tokens": 10**30}),
        ("of words", {"prompt_tokens": "9", "completion_tokens": {}}),
    )
}
SAID |= {
    "usage is NaN": body(delta(TRUE), delta(finish="stop")[:-3] + b',"usage":{"completion_tokens":NaN}}\n\n', DONE),
    "usage is 1e400": body(delta(TRUE), delta(finish="stop")[:-3] + b',"usage":{"completion_tokens":1e400}}\n\n', DONE),
    "id and model are numbers": body(event(json.loads(delta(TRUE, finish="stop")[6:]) | {"id": 1, "model": 2}), DONE),
    "pings after [DONE] without end": lambda: itertools.chain(
        [HEAD, *map(chunk, whole("p")), chunk(DONE)], itertools.cycle((chunk(b": ping\n\n"), Pause(0.05)))
    ),
    "a flood after [DONE]": endless(chunk(b": x\n\n" * 5000), HEAD + b"".join(map(chunk, whole("f"))) + chunk(DONE)),
    "a leftover of NUL bytes": lambda: true(1, b"\x00" * 1000),
    "a leftover of half a head": lambda: true(2, b"HTTP/1.1 200 OK\r\nContent-"),
    "another reply behind the reply": lambda: true(3, forged()),
    "a byte order mark": body(b"\xef\xbb\xbf" + whole("b")[0], DONE),
    "lines that end in CR": body(whole("c")[0].replace(b"\n", b"\r"), DONE.replace(b"\n", b"\r")),
}


CORPUS: dict[str, Hostile] = {
    **{name: Hostile(one) for name, one in (HEADS | LENGTHS | BODIES | ERRORS).items()},
    **{name: Hostile(one, refuses=True) for name, one in REDIRECTS.items()},
    **{name: Hostile(one, says=frozenset({TRUE})) for name, one in SAID.items()},
    **{name: Hostile(look=one) for name, one in LOOKS.items()},
    "a greeting of noise": Hostile(greeting=b"\x00\xff" * 500),
}

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
    words += ["--concurrency", "2", "--attempts", "2", "--max-tokens", "64", "--no-canary"]
    words += ["--timeout", str(deadline_seconds), "--transport", transport]
    variables = environment(folder, {"OPENAI_API_KEY": KEY})
    if hostile.reply is not None:
        # A bomb is packed here: on a busy machine that takes longer than a client waits.
        next(iter(hostile.reply()), None)
    with FakeServer(hostile.answer, greeting=hostile.greeting) as server:
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
    signs = [sign_of(RequestFailed(one["kind"], one["message"], status=one["status"])) for one in last]
    return len(signs) == SET_ASIDE_AFTER and set(signs) <= {"away", "busy", "rejected", "refused"}


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

MAX_MIB = {"http": 270, "openai": 340}
"""Two hostile replies at once, of 64 MiB each: of one that failed nothing is kept. The openai package has
buffers of its own."""

A_FEW = (
    "header line without end",
    "compressed bomb of gzip",
    "tokens without end",
    "500 of raw escapes",
    "models: a million",
)
DEADLINES_SECONDS = (3, 60, 60)
"""Of a first token: again, and longer, only where a busy machine was late with a sound reply."""

LATE = re.compile("timeout|did not respond within")

ALL = bool(os.environ.get("HARNESS_HOSTILE"))
TRANSPORTS = os.environ.get("HARNESS_HOSTILE", "http").split()


def wrong(outcome: Attacked, hostile: Hostile, transport: str = "http") -> list[str]:
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
    if outcome.peak_mib > MAX_MIB[transport]:
        faults.append(f"{outcome.peak_mib:.0f} MiB of memory")
    if outcome.leaking:
        faults.append(f"the key in {outcome.leaking}")
    return faults


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", list(CORPUS) if ALL else A_FEW)
def test_a_hostile_server_cannot_hang_the_command_or_lie(tmp_path: Path, name: str, transport: str) -> None:
    hostile = CORPUS[name]
    answered = hostile.reply is not None and not hostile.refuses
    for number, seconds in enumerate(DEADLINES_SECONDS):
        outcome = attacked(tmp_path / str(number), hostile, transport, deadline_seconds=seconds)
        if not answered or n_sound(outcome) == 4 or not LATE.search(outcome.printed):
            break
    faults = wrong(outcome, hostile, transport)
    assert faults == [], f"{faults}\n{outcome.printed[-3000:]}"
    if answered:
        assert n_sound(outcome) == 4, f"a hostile reply cost a sound one: {outcome.printed[-3000:]}"


def n_sound(outcome: Attacked) -> int:
    """How many samples of the sound questions there are."""
    return sum(question.startswith("sound") for question, _ in outcome.texts)
