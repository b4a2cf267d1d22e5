"""Where a scene plays: a folder, servers that record, the two doors, and the transcript that is compared.

Nothing below the front door is imported here, so that the code of another checkout can play the same scenes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import inspect
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.faults.server import Answer, FaultServer
from tests.pins import golden
from tests.pins.volatile import Volatile

OWN_VARIABLES = ("OPENAI_", "HARNESS_", "HF_", "SSL_", "NO_COLOR", "COLUMNS", "LINES", "TZ", "LANG", "LC_")
"""Beginnings of the environment's names that a scene does not inherit; keys and proxies are left out by their ends."""
OWN_ENDS = ("_API_KEY", "_proxy", "_PROXY")


USAGE = "Try 'harness "


@dataclass(frozen=True)
class Printed:
    """What a command came to: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The value that `--json` printed."""
        return json.loads(self.out)


class Stage:
    """One scene's folder and transcript.

    Each step is recorded: a command, a call of Python, a file, the requests that a server got.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[dict[str, Any]] = []
        self._ports: dict[int, str] = {}
        self._servers = contextlib.ExitStack()

    # ---- doors

    def command(self, *words: str, show_errors: bool = False, silent: bool = False) -> Printed:
        """`harness WORDS` in this process. Standard error is recorded where the command refused, or if show_errors.

        silent: nothing is recorded but the words and the exit code; the scene notes what is compared.
        """
        printed = run_command(words)
        if silent:
            self._record({"command": shlex.join(words), "exit code": printed.code})
            return printed
        step: dict[str, Any] = {
            "command": shlex.join(words),
            "exit code": printed.code,
            "out": golden.as_json(printed.out),
        }
        if printed.code == 2 or show_errors:
            step["err"] = refusal(printed.err)
        self._record(step)
        return printed

    def python(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """`harness.NAME(...)`. A refusal is recorded by its class and sentence, and returned."""
        import harness

        step: dict[str, Any] = {"function": name, "arguments": plain(arguments), "keywords": plain(keywords)}
        try:
            value = getattr(harness, name)(*arguments, **keywords)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
        except harness.HarnessError as error:
            value = error
            step["refusal"] = [type(error).__name__, *refusal(str(error))]
        else:
            step["value"] = plain(value)
        self._record(step)
        return value

    def file(self, path: str, *, ordered_by: Sequence[str] = ()) -> Any:
        """Record a file's content; of a file of JSON lines, sorted by these keys (replies arrive in any order)."""
        content = self.content(path, ordered_by=ordered_by)
        self._record({"file": path, "content": content})
        return content

    def content(self, path: str, *, ordered_by: Sequence[str] = ()) -> Any:
        """A file's content, which is compared with the other door's only."""
        data = (self.folder / path).read_bytes()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:  # an archive, whose bytes hold times
            return "<binary>"
        if not path.endswith(".jsonl"):
            return golden.as_json(text)
        lines = text.splitlines()
        if ordered_by:
            lines.sort(key=lambda line: [json.loads(line)[key] for key in ordered_by])
        return [golden.as_json(line) for line in lines]

    def note(self, name: str, value: Any) -> None:
        """Record a value that the scene made of what was printed."""
        self._record({"note": name, "value": value})

    def tree(self, path: str) -> None:
        """Record the names of all files below a folder."""
        top = self.folder / path
        names = sorted(str(file.relative_to(top)) for file in top.rglob("*") if file.is_file())
        self._record({"files in": path, "names": names})

    # ---- servers

    def server(self, name: str, answer: Answer | FaultServer) -> FaultServer:
        """Start a server that stops with the scene; in the transcript its address is `<NAME>`."""
        server = self._servers.enter_context(answer if isinstance(answer, FaultServer) else FaultServer(answer))
        self._ports[server.port] = name
        return server

    def requests(self, server: FaultServer, since: int = 0, *, record: bool = True) -> list[Any]:
        """The bodies of POST that reached the server, in an order of their own.

        record: bodies, pages and headers stand in the transcript; else they are compared with the other door's only.
        """
        arrived = list(server.requests[since:])
        pages = sorted({request.path for request in arrived if request.method == "GET"})
        posted = grouped([(request.path, request.body.decode()) for request in arrived if request.method == "POST"])
        headers = next((sorted(r.headers.items()) for r in arrived if r.method == "POST"), [])
        headers = [pair for pair in headers if pair[0] not in ("content-length", "host", "user-agent")]
        step = {"requests to": self._ports[server.port], "pages": pages, "headers": headers, "posted": posted}
        if record:
            self._record(step)
        return posted

    # ---- what is compared

    def settled(self, value: Any) -> Any:
        """The value with names in the place of what differs between two runs of a scene."""
        return Volatile(self.folder, self._ports, live=bool(self._ports)).value(value)

    def _record(self, step: dict[str, Any]) -> None:
        """Add a step. What came before the first server holds no measured value."""
        self.steps.append(self.settled(step))

    def alike(self, one: Any, other: Any) -> None:
        """Both doors gave the same: compared without a golden file."""
        first, second = (golden.laid_out(self.settled(plain(value))) for value in (one, other))
        difference = golden.unified(first, second, "one door", "the other")
        assert not difference, f"the doors differ:\n{difference}"

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()


SEED = re.compile(r'"seed":(\d+)')
"""The seed in the text of a body."""
MAX_CHARACTERS = 2000
"""A longer body (a prompt that fills a context) is pinned by its length, its beginning and its checksum."""


def grouped(bodies: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """(path, body) of requests in an order of their own; those that differ in their seed alone stand together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path, body in sorted(bodies):
        groups.setdefault((path, SEED.sub('"seed":…', body)), []).append(body)
    return [_group(path, sorted(equal)) for (path, _), equal in sorted(groups.items())]


def _group(path: str, equal: list[str]) -> dict[str, Any]:
    first = equal[0]
    seeds = [int(found[1]) for body in equal if (found := SEED.search(body))]
    rest: dict[str, Any] = {} if len(equal) == 1 else {"seeds": sorted(seeds)} if seeds else {"times": len(equal)}
    if len(first) > MAX_CHARACTERS:
        digest = hashlib.sha256(first.encode()).hexdigest()
        return {"path": path, "body": [first[:200], f"… {len(first)} characters, SHA-256 {digest}"], **rest}
    return {"path": path, "body": golden.as_json(first), **rest}


def run_command(words: Sequence[str]) -> Printed:
    """`harness WORDS`, in this process."""
    from harness.__main__ import main

    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["harness", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _as_it_was():
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
    assert isinstance(code, int)
    return Printed(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Undo what a process of the command sets for itself: modules that it refuses, a hook, the garbage collector."""
    hook, thresholds, names = sys.unraisablehook, gc.get_threshold(), ("httpx._main", "trio")
    modules = {name: sys.modules[name] for name in names if name in sys.modules}
    try:
        yield
    finally:
        sys.unraisablehook = hook
        gc.set_threshold(*thresholds)
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(modules)


def refusal(err: str) -> list[str]:
    """The lines of a refusal, without how a bound or a companion is worded.

    The issue of these pins declares each option once and lets both doors refuse in the same sentence: what stays pinned
    is which option is refused, and every other sentence.
    """
    lines = [line for line in err.splitlines() if USAGE not in line]
    for pattern, short in WORDING:
        lines = [pattern.sub(short, line) for line in lines]
    return lines


WORDING = (
    (re.compile(r"^(Error: Invalid value for '[^']+'): .*"), r"\1: …"),
    (re.compile(r"^((?:harness: )?(?:--)?[\w-]+)(?:[ =]\S+)?: (?:expected|at least) .*"), r"\1: expected …"),
    (re.compile(r"^((?:harness: )?(?:--)?[\w-]+) goes with .*"), r"\1 goes with …"),
)
"""Sentences of the parser of the command line, of bounds, and of options that need another one."""


def plain(value: Any) -> Any:
    """A Python value as JSON: records by their fields, and what has `records()` by these and its text.

    The rows of a run hold measured seconds beside the rest: of these only the columns are pinned, for the run's files
    hold the values.
    """
    if callable(getattr(value, "markdown", None)):  # a report, whose files hold the values
        return {"markdown": value.markdown().splitlines()}
    if callable(getattr(value, "samples", None)):  # a run
        fields = {"warnings": value.warnings, "reached": value.reached, "missed": value.missed}
        return {"repr": repr(value), "complete": value.complete, **fields, "columns": list(value.records()[0])}
    if hasattr(value, "forecast") and hasattr(value, "records"):  # a pilot, whose forecast is made of measured seconds
        return {"run": plain(value.run), "columns": list(value.records()[0])}
    if callable(getattr(value, "records", None)):
        return {"repr": repr(value), "records": plain(value.records())}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return msgspec.to_builtins(value, enc_hook=_plain_object)


def _plain_object(value: Any) -> Any:
    if isinstance(given := getattr(value, "given", None), Mapping):  # options
        return plain(given)
    if callable(getattr(value, "model_dump", None)):  # options of the code before
        return value.model_dump(mode="json", exclude_unset=True)
    if callable(getattr(value, "tolist", None)):  # an array
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(path := getattr(value, "path", None), Path):  # a run's folder
        return str(path)
    raise NotImplementedError(type(value))


Scene = Callable[[Stage], None]


def without(rows: Sequence[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """The rows without what only one door states."""
    return [{key: value for key, value in row.items() if key not in keys} for row in rows]


def name_of(scene: Scene) -> str:
    """The name of a scene's golden file: `score.a_run_folder` of `test_pinned_score.a_run_folder`."""
    module = scene.__module__.rpartition(".")[2]
    return f"{module.removeprefix('test_pinned_')}.{scene.__name__}"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """In a folder, without settings of whoever runs the scene."""
    before, environment = Path.cwd(), dict(os.environ)
    for name in environment:
        if name.startswith(OWN_VARIABLES) or name.endswith(OWN_ENDS):
            del os.environ[name]
    os.environ |= {
        "HARNESS_STATE": str(folder / "state"),
        "HARNESS_CACHE": str(folder / "cache"),
        "COLUMNS": "110",
        "TZ": "UTC",
        "NO_COLOR": "1",
    }
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ |= environment


def play(scene: Scene, folder: Path) -> list[Any]:
    """The transcript of a scene, played in an empty folder."""
    stage = Stage(folder)
    with alone(folder), contextlib.closing(stage):
        scene(stage)
        return stage.steps


def write_sums(folder: Path, n: int, name: str = "sums") -> Path:
    """A file of `n` questions with a level each."""
    path = folder / f"{name}.jsonl"
    rows = [
        {"id": f"q{i}", "problem": f"What is {i} + {i + 2}?", "answer": str(2 * i + 2), "level": 1 + i % 2}
        for i in range(n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path
