"""Where a scene plays: a folder, servers that record, the two doors, and the steps that are compared.

A step is one command (`harness score first --json`) or one call (`harness.score('first')`). Under it stand its exit
code, the keys of its warnings and errors, what the scene reads of its result, and the requests that it sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.testing import Answer, FakeServer, Request
from tests.system import command

INHERITED = ("PATH", "TMPDIR", "LD_", "PYTHON", "PYTEST_", "COVERAGE_")
"""Beginnings of the environment's names that a scene inherits: what a process needs to start, and no user's setting."""
COMMON_HEADERS = ("accept", "connection", "content-length", "content-type", "host", "user-agent", "x-stainless-")
"""Beginnings of the names of headers that no server decides by."""
UNKNOWN = "?"
"""The beginning of the key of a sentence that `notes.toml` does not know."""

Read = Callable[[Any], Mapping[str, Any]]
Scene = Callable[["Stage"], None]


class Stage:
    """One scene's folder, servers and steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: dict[str, dict[str, Any]] = {}
        self._step: dict[str, Any] = {}
        self._names: dict[str, str] = {str(folder): "."}
        self._seen: dict[str, int] = {}
        self._refusal = ""
        self._servers = contextlib.ExitStack()

    # ---- doors

    def command(self, *words: str, read: Read | None = None) -> Any:
        """`harness WORDS` in this process; what `--json` printed, or the text. read: what is pinned of it."""
        openai = {name: value for name, value in os.environ.items() if name.startswith("OPENAI_")}
        done = command.harness(self.folder, *words, extra=openai)
        value = json.loads(done.out) if "--json" in words and done.out else done.out
        self._refusal = done.err
        lines = done.err.splitlines()
        said = [line.removeprefix("harness: ") for line in lines if line.startswith("harness: ")]
        said += [line for line in lines if line.startswith("Error: ")]
        self._begin(f"harness {shlex.join(words)}", [*said, *_warnings(value)], exit=done.code)
        if read is not None and done.code in (0, 1, 4):
            self.keep(**read(value))
        return value

    def python(self, name: str, *arguments: Any, read: Read | None = None, **keywords: Any) -> Any:
        """`harness.NAME(…)`; what it returned, or the error. read: what is pinned of what it returned."""
        import harness

        said = ", ".join([*map(_said, arguments), *(f"{key}={_said(value)}" for key, value in keywords.items())])
        call = f"harness.{name}({said})"
        try:
            value = getattr(harness, name)(*arguments, **keywords)
        except harness.HarnessError as error:
            self._begin(call, [str(error)], refused=type(error).__name__)
            return error
        several = value if isinstance(value, Sequence) else [value]
        self._begin(call, [note for one in several for note in _warnings({"warnings": getattr(one, "warnings", [])})])
        if read is not None:
            self.keep(**read(value))
        return value

    def listed(self, before: str = "expected one of ") -> list[str]:
        """The values that the last refusal names, so that a new one has a step that nobody pinned yet."""
        (values,) = re.findall(rf"{before}(.*?)\.?(?:\. |\n|$)", self._refusal)
        return str(values).split(", ")

    def both(
        self,
        name: str,
        *arguments: Any,
        read: Read | None = None,
        then: Callable[[str], None] | None = None,
        json: bool = True,
        **keywords: Any,
    ) -> None:
        """The same by both doors: `harness NAME …` and `harness.NAME(…)`, each with a folder of its own for `out`.

        then: pins more, of the folder that `out` names. json: the command has `--json`.
        """
        positional = [word for one in arguments for word in (one if isinstance(one, list) else [one])]
        words = [*map(str, positional), *words_of(keywords), *(["--json"] if json else [])]
        self.command(name, *words, read=read)
        if then is not None:
            then(keywords.get("out", ""))
        if keywords.get("out"):
            keywords["out"] += "-by-python"
        self.python(name, *arguments, read=read, **keywords)
        if then is not None:
            then(keywords.get("out", ""))

    def _begin(self, key: str, sentences: Iterable[str], **fields: Any) -> None:
        key = self._settled(key)
        n = sum(one == key or one.startswith(f"{key} #") for one in self.steps) + 1
        notes = sorted({note_key(sentence) for sentence in sentences})
        self._step = self.steps[key if n == 1 else f"{key} #{n}"] = fields | ({"notes": notes} if notes else {})

    def keep(self, **fields: Any) -> None:
        """Pin more of the last step; what is empty is left out."""
        self._step |= {name: self._settled_value(v) for name, v in fields.items() if v not in (None, [], {}, ())}

    # ---- servers

    def server(self, name: str, answer: Answer) -> FakeServer:
        """Start a server that stops with the scene; in the steps its address is `<NAME>`."""
        server = self._servers.enter_context(FakeServer(answer))
        self._names[f"127.0.0.1:{server.port}"] = f"<{name}>"
        return server

    def requests(self, *servers: FakeServer, pages: bool = False) -> None:
        """Pin what reached the servers since the last look. pages: also which of their pages were read."""
        for server in servers:
            name = self._names[f"127.0.0.1:{server.port}"].strip("<>")
            arrived = server.requests[self._seen.get(name, 0) :]
            self._seen[name] = len(server.requests)
            if pages:
                self.keep(**{f"pages of {name}": sorted({r.path for r in arrived if r.method == "GET"})})
            self.keep(**{f"requests to {name}": grouped([r for r in arrived if r.method == "POST"])})

    # ---- what is compared

    def _settled(self, text: str) -> str:
        for found, name in self._names.items():
            text = text.replace(found, name)
        return text

    def _settled_value(self, value: Any) -> Any:
        return json.loads(self._settled(json.dumps(value, ensure_ascii=False)))

    def close(self) -> None:
        """Stop the servers."""
        self._servers.close()


def grouped(requests: Iterable[Request]) -> list[dict[str, Any]]:
    """Requests in no order: those that differ only in what they ask and in their seed stand together."""
    groups: dict[str, dict[str, Any]] = {}
    for request in requests:
        body = request.json
        messages, seed = body.pop("messages", None) or [body.pop("prompt", None)], body.pop("seed", "none")
        asked = messages[0]["content"] if [set(m) for m in messages if isinstance(m, dict)] == [USER] else messages
        headers = {name: value for name, value in request.headers.items() if not name.startswith(COMMON_HEADERS)}
        group = {"post": request.path} | ({"headers": headers} if headers else {}) | {"body": body}
        seeds = groups.setdefault(json.dumps(group, sort_keys=True), group).setdefault("asked", {})
        seeds.setdefault(asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False), []).append(seed)
    for group in groups.values():
        group["asked"] = {prompt: sorted(seeds, key=str) for prompt, seeds in sorted(group["asked"].items())}
    return [groups[key] for key in sorted(groups)]


USER = {"role", "content"}
SPELLED = {"tool": "from", "choices": "choice"}
"""Keywords → the options that are named otherwise."""


def words_of(keywords: Mapping[str, Any]) -> Iterator[str]:
    """The options of the command line for keywords of Python."""
    for name, value in keywords.items():
        option = SPELLED.get(name, name).replace("_", "-")
        if isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
            continue
        for one in value if isinstance(value, list) else [value]:
            yield from (
                f"--{option}",
                json.dumps(one) if isinstance(one, dict) else "none" if one is None else str(one),
            )


def _said(argument: Any) -> str:
    """An argument as it stands in the name of a step."""
    return repr(argument) if isinstance(argument, str | int | float | list | dict | None) else "…"


def _warnings(value: Any) -> Iterator[str]:
    """The sentences under `warnings`, at any depth."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "warnings" and isinstance(item, list | tuple):
            yield from (one["text"] if isinstance(one, dict) else getattr(one, "text", one) for one in item)
        else:
            yield from _warnings(item)


@cache
def patterns() -> Mapping[str, str]:
    """Key → the words that its sentence holds, in order, with `…` between."""
    return tomllib.loads(Path(__file__).with_name("notes.toml").read_text("utf-8"))


def note_key(sentence: str) -> str:
    """The key of a warning or an error."""
    sentence = sentence.removeprefix("warning: ")
    for key, words in patterns().items():
        if re.search(".*".join(re.escape(part.strip()) for part in words.split("…")), sentence, re.DOTALL | re.I):
            return key
    return f"{UNKNOWN} name this in notes.toml: {sentence}"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """In a folder, with a home of its own, and without settings of whoever runs the scene."""
    before, environment = Path.cwd(), dict(os.environ)
    own = {"HARNESS_STATE": "state", "HARNESS_CACHE": "cache", "HOME": "home"}
    os.environ.clear()
    os.environ |= {name: value for name, value in environment.items() if name.startswith(INHERITED)}
    os.environ |= {name: str(folder / place) for name, place in own.items()}
    os.environ |= {"COLUMNS": "1000", "TZ": "UTC", "NO_COLOR": "1"}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ |= environment


def play(scene: Scene, folder: Path) -> dict[str, dict[str, Any]]:
    """The steps of a scene, played in an empty folder."""
    stage = Stage(folder.resolve())
    with alone(stage.folder), contextlib.closing(stage):
        scene(stage)
        return stage.steps


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_sums(folder: Path, n: int) -> None:
    """Write `sums.jsonl`: `n` questions with a level each."""
    rows = [(f"q{i}", f"What is {i} + {i + 2}?", str(2 * i + 2), 1 + i % 2) for i in range(n)]
    write_lines(folder / "sums.jsonl", [dict(zip(("id", "problem", "answer", "level"), row)) for row in rows])  # noqa: B905
