"""Before any hostile server the command ends in time and in bounds, believes nothing false, and prints nothing raw.

A reply is the steps that answer one request; endless ones end when the client leaves.

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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.client.protocol.reply import RequestFailed
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER
from harness.generation.dispatch.retry import fault_of
from harness.testing import (
    CLOSE,
    DONE,
    END,
    HEAD,
    STALL,
    FakeServer,
    Pause,
    Request,
    Step,
    chunk,
    delta,
    event,
    http,
    models,
)
from tests.runs.recorded import intact_lines
from tests.system.command import environment

TRUE = "The answer is \\boxed{2}."
FALSE = "The answer is \\boxed{666}."
ESCAPES = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\u2066\r\x00\x08\u2028owned"
DEEP = b'{"a":' * 100_000
USAGE = {"prompt_tokens": 9, "completion_tokens": 3}
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

Reply = Callable[[], Iterable[Step]]


@dataclass(frozen=True)
class Hostile:
    """reply: to what is asked for hostile questions. look: to every GET. greeting: sent on a connection before any
    request. says: texts that may become samples of the hostile questions, since the server did say them whole.
    refuses: it tells that nothing can be asked here, which ends the run.
    """

    reply: Reply | None = None
    look: Reply | None = None
    greeting: bytes = b""
    says: frozenset[str] = frozenset()
    refuses: bool = False

    def answer(self, request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return self.look() if self.look else [models("m", max_model_len=40_000)]
        hostile = b"hostile" in request.body and self.reply is not None
        return self.reply() if hostile and self.reply else true(request.number)


def true(number: int, *last: Step) -> Iterator[Step]:
    """A sound reply."""
    yield HEAD
    yield from (chunk(one) for one in whole(f"true-{number}"))
    yield chunk(DONE) + END
    yield from last


def whole(name: str, text: str = TRUE) -> list[bytes]:
    said = json.loads(delta(text, finish="stop", usage=USAGE)[6:])
    return [event(said | {"id": name})]


def endless(piece: bytes, begin: bytes = b"") -> Reply:
    return lambda: itertools.chain([begin] if begin else [], itertools.repeat(piece * max(1, 65_536 // len(piece))))


def steps(*given: Step) -> Reply:
    return lambda: given


def body(*events: bytes, end: tuple[Step, ...] = (END,)) -> Reply:
    """A stream of these events, with nothing after them but `end`."""
    return steps(HEAD, *map(chunk, events), *end)


def lengths(headers: bytes, sent: bytes = b"".join(whole("length")) + DONE) -> Reply:
    return steps(SSE + headers + b"\r\n\r\n" + sent, CLOSE)


def chunked(raw: bytes, *last: Step) -> Reply:
    return steps(HEAD, raw, *(last or (CLOSE,)))


def value(choice: Any = ..., **fields: Any) -> bytes:
    """An event that says FALSE in a shape that the protocol does not have."""
    first = {"index": 0, "delta": {"content": FALSE}, "finish_reason": "stop"} if choice is ... else choice
    return event({"id": "v", "object": "chat.completion.chunk", "model": "m", "choices": [first]} | fields)


@cache
def compressed_zeros() -> bytes:
    return gzip.compress(b"0" * 100_000_000)


def bomb(encode: Callable[[bytes], bytes], name: bytes) -> Reply:
    @cache  # two seconds each, which only a test that asks should pay
    def packed() -> bytes:
        return encode(b"data: " + b"0" * 200_000_000)

    def reply() -> Iterator[Step]:
        yield SSE + b"Content-Encoding: " + name + b"\r\nContent-Length: %d\r\n\r\n" % len(packed())
        yield packed()

    return reply


def slow(data: bytes, seconds: float = 0.2) -> Reply:
    """A byte now and then, for ever: the end of `data` is repeated."""

    def drip() -> Iterator[Step]:
        for byte in itertools.chain(data, itertools.repeat(data[-1])):
            yield bytes([byte])
            yield Pause(seconds)

    return drip


def forged() -> bytes:
    """A whole reply that nobody asked for."""
    return HEAD + b"".join(map(chunk, whole("forged", FALSE))) + chunk(DONE) + END


def list_of(n: int, name: str = "model") -> Reply:
    return lambda: [http(200, {"data": [{"id": f"{name}-{i}"} for i in range(n)] + [{"id": "m"}]})]


LOOKS: dict[str, Reply] = {
    "models: a million": list_of(1_000_000),
    "models: names of escapes": list_of(1000, ESCAPES),
    "models: without end": endless(b'{"id": "x"},', b'HTTP/1.1 200 OK\r\n\r\n{"data": ['),
    "models: none": steps(http(200, {"data": []})),
    "models: names of a megabyte": steps(http(200, {"data": [{"id": "x" * 1_000_000}] * 5})),
    "models: a hundred thousand levels": steps(http(200, DEEP)),
    "models: a page of HTML": steps(http(200, b"<html>\x1b[2J</html>", content_type="text/html")),
    "models: 500 of escapes": steps(http(500, {"error": {"message": ESCAPES}})),
    "models: redirect": steps(http(302, b"", location="http://127.0.0.2:9/\x1b[2J")),
    "models: a line a second": slow(b"HTTP/1.1 200 OK\r\nX: y\r\n", 0.5),
    "models: 1xx without end": lambda: itertools.cycle((b"HTTP/1.1 103 X\r\n\r\n", Pause(0.01))),
    "models: silence": steps(STALL),
    "models: closed": steps(CLOSE),
    "models: compressed bomb": bomb(lambda data: gzip.compress(data, 9), b"gzip"),
    "models: lengths that lie": steps(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", STALL),
}
HEADS: dict[str, Reply] = {
    "status line without end": endless(b"a", b"HTTP/1.1 200 "),
    "status line of another protocol": steps(b"220 smtp.example ESMTP\r\n", CLOSE),
    "status line empty": steps(b"\r\n\r\n", CLOSE),
    "status 99": steps(b"HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n"),
    "status with a letter": steps(b"HTTP/1.1 20O OK\r\nContent-Length: 0\r\n\r\n"),
    "status of ten thousand digits": steps(b"HTTP/1.1 " + b"2" * 10_000 + b" OK\r\n\r\n", CLOSE),
    "status 204": steps(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status 101": steps(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", STALL
    ),
    "status 200 without a body": steps(http(200)),
    "header lines without end": endless(b"X-More: yes\r\n", b"HTTP/1.1 200 OK\r\n"),
    "header line without end": endless(b"a", b"HTTP/1.1 200 OK\r\nX: "),
    "header of 9 MB": steps(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 9_000_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "header with NUL": steps(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n"),
    "header without a colon": steps(b"HTTP/1.1 200 OK\r\nnothing here\r\nContent-Length: 0\r\n\r\n"),
    "header that is folded": steps(b"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 0\r\n\r\n"),
    "headers end in bare CR": steps(b"HTTP/1.1 200 OK\rContent-Length: 0\r\r", STALL),
    "1xx without end": endless(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "1xx thousands in one read": steps(b"HTTP/1.1 100 Continue\r\n\r\n" * 3000, CLOSE),
    "head that comes a byte at a time": slow(b"HTTP/1.1 200 OK\r\nX: a"),
    "no head": steps(STALL),
    "half a head": steps(b"HTTP/1.1 200 OK\r\nContent-Ty", STALL),
    "random bytes": steps(bytes(range(256)) * 4000, CLOSE),
    "a TLS alert": steps(b"\x15\x03\x01\x00\x02\x02\x28", CLOSE),
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
    "length below zero": lengths(b"Content-Length: -1"),
    "length that is a word": lengths(b"Content-Length: many"),
    "length of ten thousand digits": lengths(b"Content-Length: " + b"9" * 10_000),
    "length beyond 64 bits": lengths(b"Content-Length: 99999999999999999999999999", b"data: {"),
    "two lengths": lengths(b"Content-Length: 30\r\nContent-Length: 31"),
    "length zero": lengths(b"Content-Length: 0"),
    "chunk size without end": endless(b"0", HEAD),
    "chunk extension without end": endless(b"a", HEAD + b"5;"),
    "chunk without its line end": chunked(b"5\r\nhelloXX5\r\nhello\r\n"),
    "chunk that is cut": chunked(b"ffff\r\ndata: "),
    "chunk size that never ends": chunked(b"5", STALL),
    "trailers without end": endless(b"X: y\r\n", HEAD + chunk(delta("half")) + b"0\r\n"),
    "empty chunk lines": endless(b"\r\n", HEAD),
    "compressed bomb of gzip": bomb(lambda data: gzip.compress(data, 9), b"gzip"),
    "encodings one in another": lengths(b"Content-Encoding: gzip, gzip, gzip\r\nContent-Length: 40"),
    "a page of HTML": steps(http(200, b"<html><script>alert(1)</script>\x1b[2J</html>", content_type="text/html")),
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
    "silence after tokens": steps(HEAD, chunk(delta("half")), STALL),
    "JSON of a hundred thousand levels": body(b"data: " + DEEP + b"\n\n"),
    "JSON of a million values": body(b'data: {"choices":[' + b"0," * 1_000_000 + b"0]}\n\n"),
    "an integer of a million digits": body(b'data: {"choices":' + b"9" * 1_000_000 + b"}\n\n"),
    "[DONE] and tokens without end": endless(chunk(delta("x")), HEAD + chunk(delta("half")) + chunk(DONE)),
    "an error after tokens": body(delta(FALSE), event({"error": {"message": ESCAPES}})),
    "an error of a list": body(event({"error": [ESCAPES, {"a": ESCAPES}]})),
    "an error of ten megabytes": body(event({"error": {"message": "x" * 10_000_000}})),
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
    "418": steps(http(418, {"detail": [{"msg": ESCAPES}] * 1000})),
}
SAID: dict[str, Reply] = {
    "id and model are numbers": body(event(json.loads(delta(TRUE, finish="stop")[6:]) | {"id": 1, "model": 2}), DONE),
    "pings after [DONE] without end": lambda: itertools.chain(
        [HEAD, *map(chunk, whole("p")), chunk(DONE)], itertools.cycle((chunk(b": ping\n\n"), Pause(0.05)))
    ),
    "a flood after [DONE]": endless(chunk(b": x\n\n" * 5000), HEAD + b"".join(map(chunk, whole("f"))) + chunk(DONE)),
    "a leftover of NUL bytes": lambda: true(1, b"\x00" * 1000),
    "a leftover of half a head": lambda: true(2, b"HTTP/1.1 200 OK\r\nContent-"),
    "another reply behind the reply": lambda: true(3, forged()),
}


CORPUS: dict[str, Hostile] = {
    **{name: Hostile(one) for name, one in (HEADS | LENGTHS | BODIES | ERRORS).items()},
    **{name: Hostile(one, refuses=True) for name, one in REDIRECTS.items()},
    **{name: Hostile(one, says=frozenset({TRUE})) for name, one in SAID.items()},
    **{name: Hostile(look=one) for name, one in LOOKS.items()},
    "a reply before any request": Hostile(greeting=forged()),
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
    words += ["--concurrency", "2", "--attempts", "2", "--max-tokens", "64", "--no-canary", "--no-fingerprint"]
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
