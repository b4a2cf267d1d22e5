"""A canary in every place where a key can stand is in no byte written, no page, no output and no child's command line,
over all commands that meet a run; and in no text of any object that a run, a judge or a probe holds, and in no pickle.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import os
import pickle  # noqa: TID251 - what is tried is that it refuses
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.chat import CHAT
from harness.client.batch_service import BatchService
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Deadlines, Post
from harness.client.protocol.failures import RequestFailed
from harness.client.transport import open_transport
from harness.core.errors import ServerError
from harness.judges.judge import judge_of
from harness.options.commands import COMMANDS
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeOptions
from harness.options.run import RunOptions
from harness.options.server import WhichServer
from harness.preparing import servers
from harness.preparing.prepare import prepare
from harness.probes.probed_endpoint import probed
from harness.progress.events import Watcher
from harness.testing import (
    FakeServer,
    Reply,
    Request,
    Step,
    completion,
    delta,
    event,
    event_stream,
    http,
    models,
    serving,
)
from server_launchers.machine import processes
from tests.conftest import CHECKOUT
from tests.faults.able import sums
from tests.system.command import harness
from tests.viewer.running import viewing

PLACES = ("environment", "file", "header", "url", "body", "endpoints", "env-flag", "judge-url", "judge-key", "proxy")
PLACES += ("odd name", "depth", "template")
CANARIES = {place: f"canary-{hashlib.sha256(place.encode()).hexdigest()[:28]}" for place in PLACES}
ENGINE_FLAG = "canary-engine-flag-9-0n-1ts-c0mmand-line"
"""A key that an engine takes on its command line: the engine's own must hold it, and nothing else may."""


def split(text: str) -> Iterator[bytes]:
    """A character an event."""
    return event_stream(*(delta(character) for character in f"\\boxed{{0}} {text}"), delta(finish="stop"))


def in_field(name: str) -> Callable[[str], Iterator[bytes]]:
    def reply(text: str) -> Iterator[bytes]:
        choice = {"index": 0, "delta": {"content": "\\boxed{0}"}, "finish_reason": "stop"}
        value = {"id": "1", "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 3}}
        return event_stream(event(value | {"model": "test-model"} | {name: text}))

    return reply


def in_head(text: str) -> Iterator[bytes]:
    events = b"".join(event_stream(delta("\\boxed{0}", finish="stop"))).replace(b'"id":"chatcmpl-1",', b"")
    yield http(200, events.partition(b"\r\n\r\n")[2], **{"content-type": "text/event-stream", "x-request-id": text})


def whole(text: str) -> Iterator[bytes]:
    message = {"content": f"\\boxed{{0}} {text}", "reasoning_content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    yield http(
        200,
        {**dict.fromkeys(("id", "system_fingerprint", "provider"), text), "model": "test-model", "choices": choices},
    )


WAYS_OUT: dict[str, Callable[[str], Iterator[bytes]]] = {
    "text": lambda text: event_stream(delta(f"The answer is 0. {text} \\boxed{{0}}", finish="stop")),
    "text, split": split,
    "id": in_field("id"),
    "fingerprint": in_field("system_fingerprint"),
    "reasoning": lambda text: event_stream(delta(reasoning_content=text), delta("\\boxed{0}", finish="stop")),
    "finish reason": lambda text: event_stream(delta("\\boxed{0}", finish=text)),
    "provider": in_field("provider"),
    "head": in_head,
    "whole": whole,
}
SPELLINGS: dict[str, Callable[[str], str]] = {
    "whole": lambda key: key,
    "in a sentence": lambda key: f"your key is {key}, is it not?",
}
SCRIPT = [(way, spelling) for way in WAYS_OUT for spelling in SPELLINGS]


def answer(request: Request) -> Iterable[Step]:
    """Every third completion fails with what was sent to it: its headers and its body. Every other is good, and repeats
    a key that it was sent, in the next way and spelling.

    A failure's number stands there, since a sample is given up where the same words come back again and again.
    """
    if request.method == "GET":
        return [models("m", max_model_len=40_000)]
    if "judge" in request.headers.get("authorization", "") or b"VERDICT" in request.body:
        return completion("VERDICT: CORRECT", tokens=3)
    sent = f"{request.headers} {request.body.decode()}"
    if request.number % 3 == 0:
        return [http(500, {"error": {"message": f"refused {request.number}: {sent}"}})]
    for word in re.findall(r"Basic ([A-Za-z0-9+/=]+)", sent):
        sent += base64.b64decode(word).decode()
    keys = [key for key in CANARIES.values() if key in sent] or [""]
    way, spelling = SCRIPT[request.number % len(SCRIPT)]
    return WAYS_OUT[way](SPELLINGS[spelling](keys[request.number % len(keys)]))


def spellings(key: str) -> list[bytes]:
    """Whole, its second half, and the middle of its base64."""
    return [key.encode(), key[len(key) // 2 :].encode(), base64.b64encode(key.encode())[4:-8]]


def leaks(data: bytes, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if any(one in data for one in spellings(key))]


def leaking_files(folder: Path, given: set[Path]) -> list[tuple[str, list[str]]]:
    """The files below `folder` that hold a key, but those in which the user wrote it."""
    keys = [*CANARIES.values(), ENGINE_FLAG]
    files = [path for path in folder.rglob("*") if path.is_file() and path not in given]
    leaks_of_files = [(str(path.relative_to(folder)), leaks(path.read_bytes(), keys)) for path in files]
    return [(name, held) for name, held in leaks_of_files if held]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Commands:
    """Runs commands, and keeps all that they print and the command lines of all processes that they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: list[tuple[str, bytes]] = []
        self.lines: dict[int, bytes] = {}

    def __call__(self, *words: str, code: int | tuple[int, ...] = 0, **extra: str) -> bytes:
        watched = words[0] in START_PROCESSES or "--serve" in words
        with self.watching() if watched else nullcontext():
            done = harness(self.folder, *words, extra=extra)
        output = (done.out + done.err).encode()
        self.printed.append((words[0], output))
        assert done.code in ((code,) if isinstance(code, int) else code), output.decode()
        assert b"Traceback" not in output
        return output

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Meanwhile a thread looks at what this process starts."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(LOOK_SECONDS):
                self.look(os.getpid())

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def look(self, pid: int) -> None:
        own = _command_line(pid)
        for child in (process.pid for process in processes.descendants(pid)):
            # Between its fork and its own program a child has the command line of its parent.
            if (line := _command_line(child)) == own:
                continue
            self.lines[child] = line or self.lines.get(child, b"")

    def leaks(self) -> list[tuple[str, list[str]]]:
        keys = [*CANARIES.values(), ENGINE_FLAG]
        leaks_of_texts = [(f"output of {name}", leaks(output, keys)) for name, output in self.printed]
        for line in self.lines.values():
            # The engine itself was told to begin with the flag.
            leaks_of_texts.append((repr(line), leaks(line, CANARIES.values() if ENGINE in line else keys)))
        return [(place, held) for place, held in leaks_of_texts if held]


START_PROCESSES = {"score", "sweep", "serve"}
"""Commands whose children are looked at; the others start none."""
ENGINE = b"tests.storms.server"
LOOK_SECONDS = 0.02
"""Between two looks at the command lines: a program in Python takes longer than this to begin."""


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    rows = [{"id": f"q{i}", "problem": f"What is {i} mod 2?", "answer": str(i % 2)} for i in range(4)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Commands(tmp_path)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(answer) as running:
        yield running


def asked(out: str, *more: str) -> list[str]:
    words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--samples", "4", "--out", out, "--no-canary"]
    return [*words, "--model", "m", "--attempts", "9", *more]


def in_url(url: str, key: str) -> str:
    return url.replace("://", f"://user:{key}@")


@pytest.mark.timeout(300)
def test_no_command_shows_stores_or_passes_on_a_key(tmp_path: Path, commands: Commands, server: FakeServer) -> None:
    (tmp_path / "servers").write_text(in_url(server.base_url, CANARIES["endpoints"]) + "\n")
    given = {tmp_path / "servers"}
    header = ("--header", f"X-Key: {CANARIES['header']}")
    depth = {"options": [{"license": [CANARIES["depth"]]}]}
    fields = {"api_key": CANARIES["body"], "byok": CANARIES["odd name"], "provider": depth}
    fields["chat_template_kwargs"] = {"license": CANARIES["template"]}
    body = ("--extra-body", json.dumps(fields))
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), f"http://user:{CANARIES['proxy']}@127.0.0.1:9")

    environ = {"OPENAI_API_KEY": CANARIES["environment"], **proxy}
    commands(*asked("a", "--base-url", server.base_url, *header, *body), **environ)
    own = ("--base-url", "servers", "--api-key-env", "OWN_KEY", "--transport", "openai")
    commands(*asked("b", *own), OWN_KEY=CANARIES["file"])
    commands(*asked("a", "--base-url", server.base_url, *header, *body, "--dry-run"), **environ)
    gone = in_url("http://127.0.0.1:9", CANARIES["url"])
    commands(*asked("c", "--base-url", gone, *header, *body), code=2, **environ)
    sent = {key for request in server.requests for key in leaks(repr(request).encode(), CANARIES.values())}
    traveling = ("environment", "file", "header", "body", "odd name", "depth", "template")
    assert sent >= {CANARIES[place] for place in traveling}, "the keys did not travel"

    judge = in_url(server.base_url, CANARIES["judge-url"])
    commands("score", "a", "--judge", f"m@{judge},scope=all")
    keyed = ("--judge", f"m@{server.base_url},api_key_env=JUDGE_KEY,scope=all")
    commands("score", "b", *keyed, JUDGE_KEY=CANARIES["judge-key"])
    commands("report", "a", "b", "--out", "page")
    commands("show", "a", "q1:0")
    commands("status", "a", **environ)
    commands("doctor", "a", "b")
    commands("audit", "a", "--out", "sheet.jsonl")
    commands("compare", "a", "b")
    commands("compare", "a", "b", "--samples")
    with viewing(tmp_path, "a", "b") as viewer, viewer.client() as visitor:
        for path in ("/", "/a", "/a/sums", "/a/sums/q1", "/api/runs", "/a/report.html"):
            commands.printed.append((f"page {path}", visitor.get(path).content))
    assert commands.leaks() == []
    assert leaking_files(tmp_path, given) == []


@pytest.mark.timeout(300)
def test_a_server_of_ones_own_and_a_sweep_keep_their_keys(tmp_path: Path, commands: Commands) -> None:
    program = [sys.executable, "-m", ENGINE.decode(), "--port", "{port}", "--served-model", "m"]
    program += ["--api-key", ENGINE_FLAG]
    flags = [part for word in program for part in ("--serve-option", f"engine-flag={word}")]
    keys = ("--serve-option", f"env=MY_API_KEY={CANARIES['env-flag']}", "--serve-option", f"env=PYTHONPATH={CHECKOUT}")
    named = ("--serve-option", "health-path=/health", "--serve-option", "served-name=m")
    serve = ("--serve", "command", *named, *keys, *flags)
    commands(*asked("own", *serve, "--header", f"X-Key: {CANARIES['header']}"), OPENAI_API_KEY=CANARIES["environment"])
    assert any(ENGINE in line and ENGINE_FLAG.encode() in line for line in commands.lines.values()), (
        "no engine was seen"
    )
    commands("serve", "status")
    with FakeServer(answer) as server:
        run = {"id_key": "id", "canary": False, "attempts": 9, "extra_body": {"api_key": CANARIES["body"]}}
        run["base_url"] = in_url(server.base_url, CANARIES["url"])
        sweep = {"models": ["m"], "benchmarks": [{"data": "sums.jsonl", "samples": 2}], "run": run}
        (tmp_path / "sweep.yaml").write_text(json.dumps(sweep), encoding="utf-8")
        commands("sweep", "sweep.yaml", "--out", "swept", OPENAI_API_KEY=CANARIES["environment"])
        limits = {"floor": 50, "loss": 40, "max_samples": 2}
        policy = {"name": "gate", "run": run | {"data": "sums.jsonl"}, "benchmarks": {"sums": limits}}
        (tmp_path / "gate.yaml").write_text(json.dumps(policy), encoding="utf-8")
        commands("gate", "gate.yaml", "--out", "gated", code=(0, 1, 4), OPENAI_API_KEY=CANARIES["environment"])
    assert commands.leaks() == []
    assert leaking_files(tmp_path, {tmp_path / "sweep.yaml", tmp_path / "gate.yaml"}) == []


@pytest.mark.timeout(300)
def test_other_requests_keep_the_keys_secret(tmp_path: Path, commands: Commands, server: FakeServer) -> None:
    """Probes, repeats, shards, outputs of other tools, and what is printed as JSON."""
    header = ("--header", f"X-Key: {CANARIES['header']}")
    body = ("--extra-body", json.dumps({"api_key": CANARIES["body"]}))
    where = ("--base-url", in_url(server.base_url, CANARIES["url"]), *header, *body)
    key = {"OPENAI_API_KEY": CANARIES["environment"]}
    seen = range(16)  # any exit code of ours: what is found is not the matter

    commands(*asked("a", "--base-url", server.base_url, *header, *body, "--json"), **key)
    assert any(CANARIES["environment"] in repr(request) for request in server.requests), "the key did not travel"
    for shard in ("1", "2"):
        commands(*asked(f"s{shard}", *where, "--shard", f"{shard}/2"), **key)
    commands("merge", "s1", "s2", "--out", "joined")
    for folder in ("a", "joined"):
        commands("score", folder, "--json")
    for command in ("status", "compare", "verify"):
        commands(command, "a", *(["joined"] if command == "compare" else []), "--json", code=(*seen,), **key)
    commands("serve", "status", "--json", **key)
    commands("export", "a", "--to", "sharegpt", "--i-know", "--json")
    commands("export", "a", "--to", "parquet")
    commands("probe", where[1], "--quick", code=(*seen,), **key)
    commands("probe", where[1], "--checks", "protocol", "--json", code=(*seen,), **key)

    rows = [{"problem": f"What is {i} mod 2?", "answer": str(i % 2), "response": "It is one."} for i in range(2)]
    (tmp_path / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = ("--question-key", "problem", "--answer-key", "answer", "--response-key", "response")
    judge = ("--judge", f"m@{in_url(server.base_url, CANARIES['judge-url'])},scope=all")
    commands("score", "theirs.jsonl", *keys, *judge, "--out", "theirs", "--json", code=(*seen,))
    assert commands.leaks() == []
    assert leaking_files(tmp_path, {tmp_path / "keys.env"}) == []


MEETS_NO_KEY = {"benchmarks", "grade", "plan"}


def test_no_command_that_may_meet_a_key_is_left_out() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    tried = {"run", "view", *re.findall(r'commands\(\s*"([a-z]+)"', source), "status", "compare", "verify"}
    assert COMMANDS.keys() - MEETS_NO_KEY - tried == set()


def test_a_leak_of_any_kind_would_be_found(tmp_path: Path, commands: Commands) -> None:
    for place, key in CANARIES.items():
        for part in spellings(key):
            (tmp_path / place).write_bytes(b"..." + part + b"...")
            assert [held for name, held in leaking_files(tmp_path, set()) if name == place] == [[key]]
    with subprocess.Popen([sys.executable, "-c", "input()", CANARIES["url"]], stdin=subprocess.PIPE) as child:
        commands.look(os.getpid())
        child.communicate(b"\n")
    assert [held for _, held in commands.leaks()] == [[CANARIES["url"]]]


KEY = "sk-objects-canary-0123456789"


def said_to(request: Request) -> Reply:
    """Lists a model; refuses each completion in the words that it was sent."""
    if request.path.partition("?")[0].endswith("/completions"):
        return [http(400, {"error": {"message": f"refused: {request.headers} {request.body.decode()}"}})]
    return "4"


saying = serving(said_to, "m")


WAYS_IN: dict[str, dict[str, Any]] = {
    "environment": {"api_key_env": "MY_KEY"},
    "provider": {"api_key_env": "MY_KEY", "provider": "azure"},  # into a header of the provider's own
    "header": {"header": (f"X-Key: {KEY}",)},
    "mapping": {"header": {"X-Key": f"Bearer {KEY}"}},
    "user info": {"base_url": f"http://user:{KEY}@"},
    "query": {"base_url": f"?key={KEY}"},
    "body": {"extra_body": {"api_key": KEY, "nested": [{"access_token": KEY}]}},
}
IN_THE_BODY = ("user info", "query", "body")
"""Ways of which the options hold the text as it was typed: these are not pickled here, but by `for_worker`."""


def texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    yield f"repr of {name}", repr(value)
    yield f"str of {name}", str(value)
    yield f"format of {name}", f"{value}"
    record = logging.LogRecord("x", logging.INFO, "f", 1, "held: %r", (value,), None)
    yield f"log of {name}", logging.Formatter().format(record)
    yield f"JSON of {name}", json.dumps({"value": value}, default=repr)


def failure_of(endpoint: Endpoint, transport: Any, body: bytes) -> str:
    """The traceback of a completion that the server refuses in the words that it was sent."""

    async def once() -> None:
        try:
            await transport.complete(Post(endpoint, CHAT, body, Deadlines(), 1 << 20))
        finally:
            await transport.close()

    with pytest.raises(RequestFailed) as failed:
        asyncio.run(once())
    return "".join(traceback.format_exception(failed.value)) + repr(failed.value) + repr(failed.value.__dict__)


def objects(who: Mapping[str, Any], folder: Path, stack: ExitStack) -> dict[str, Any]:
    """What a run, a judge and a probe hold."""
    sent = {name: value for name, value in who.items() if name != "extra_body"}
    data = {"data": str(sums(folder, 1)), "question_key": "problem", "answer_key": "answer", "out": folder / "run"}
    options = RunOptions.of(**data, **who)
    prepared = stack.enter_context(prepare(options, Watcher()))
    judge = JudgeOptions.of(**sent)
    server = judge_of(judge).serve()
    (subject,) = probed(WhichServer.of(**sent), Watcher(), ProbeOptions())
    reached = servers.find(options)
    return {
        "options": options,
        "prepared": prepared,
        "settings": prepared.settings,
        "asker": prepared.settings.asker,
        "template": prepared.settings.template("sums"),
        "endpoint": prepared.settings.endpoints[0],
        "found": reached,
        "looks": prepared.server_info,
        "judge": judge,
        "the judge's server": server,
        "probed": subject,
        "tokenizer": Tokenizer(reached.endpoints[0], "vllm", "m"),
        "batches": BatchService(reached.endpoints[0]),
        "record": prepared.settings.settings_record(),
        "identity": prepared.settings.identity(prepared.sets[0]),
    }


@pytest.mark.parametrize("way", WAYS_IN)
def test_no_object_shows_a_key(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(saying) as server, ExitStack() as stack:
        who: dict[str, Any] = {"base_url": server.base_url, "model": "m", **WAYS_IN[way]}
        if way == "user info":
            who["base_url"] += server.base_url.partition("://")[2]
        elif way == "query":
            who["base_url"] = server.base_url + who["base_url"]
        held = objects(who, tmp_path, stack)
        shown = dict(text for name, value in held.items() for text in texts(name, value))
        settings = held["settings"]
        body = settings.template("sums").body_of_text("1+1?")
        for name in ("http", "openai"):
            transport = open_transport(name, secrets=settings.spelling.secrets)  # type: ignore[arg-type]
            shown |= dict(texts(name, transport))
            shown[f"failure by {name}"] = failure_of(settings.endpoints[0], transport, body)
        try:
            held["tokenizer"].text_of([1])
        except ServerError as error:
            shown["a page's failure"] = "".join(traceback.format_exception(error))
        traveled = any(KEY in repr(request) for request in server.requests)
    assert traveled, "the key is sent"
    assert [name for name, text in shown.items() if KEY in text] == []
    for name, value in held.items():
        assert not (name == "endpoint" or way not in IN_THE_BODY) or KEY not in pickled(value), name


def pickled(value: Any) -> str:
    """The pickle of a value; empty where it is refused."""
    try:
        return pickle.dumps(value).decode("latin-1")
    except Exception:  # noqa: BLE001 - a refusal of whatever kind
        return ""


def test_a_key_goes_to_a_worker_by_a_method_of_that_name_alone() -> None:
    options = RunOptions.of(model="m", base_url="http://h", header=(f"X-Key: {KEY}",), out=Path("x"))
    with pytest.raises(TypeError, match="for_worker"):
        pickle.dumps(options)
    carried = pickle.loads(pickle.dumps(options.for_worker()))
    assert carried["header"] == (("X-Key", KEY),)
    assert RunOptions(**carried) == options
