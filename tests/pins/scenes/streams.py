"""Replies as each server writes them: the samples that they give, and what becomes of a stream that is no reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.testing import END, HEAD, Request, Step, chunk, http, models
from tests.client import dialects
from tests.client.dialects import Recording
from tests.pins import reading
from tests.pins.stage import Scene, Stage, write_lines

NAME = re.compile(r"<(.*?)>")
MODEL = re.compile(rb'"model": ?"[^"]*"')
WORDS = ("--id-key", "id", "--no-canary", "--attempts", "1")
ENGINES = ("vllm", "sglang", "llama.cpp")


def serve(stage: Stage, recordings: Mapping[str, Recording]) -> str:
    """The address of a server that replies with the recording that the question names."""

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "GET":
            yield models("pinned")
            return
        one = recordings[NAME.findall(request.body.decode())[0]]
        body = MODEL.sub(b'"model":"pinned"', one.body)
        if one.status != 200 or body.startswith(b"{"):
            yield http(one.status, body, content_type="application/json")
            return
        yield HEAD
        if body:
            yield chunk(body)
        yield END

    return stage.server("server", answer).base_url


def ask(stage: Stage, url: str, names: Sequence[str], run: str) -> None:
    """A run that asks a question for each name."""
    write_lines(stage.folder / f"{run}.jsonl", [{"id": n, "question": f"<{n}>", "answer": "42"} for n in names])
    stage.command("run", "--data", f"{run}.jsonl", "--base-url", url, *WORDS, "--out", f"{run}-run")
    stage.keep(**reading.samples(stage.folder / f"{run}-run"))


def replies(stage: Stage) -> None:
    """Streams, completions and whole bodies that a server ends in order; the first of three answers."""
    spaced = [
        Recording(
            server, "blanks at both ends", b"".join(dialect.stream(pieces=("\n 4", "2 ", "\n"), thoughts=(" so\n",)))
        )
        for server, dialect in dialects.DIALECTS.items()
    ]
    by_name = {one.name: one for one in [*dialects.recordings(), *dialects.several_answers(), *spaced]}
    ask(stage, serve(stage, by_name), list(by_name), "all")


def broken(stage: Stage) -> None:
    """Streams of an engine that died, or that a proxy spoilt, and refused requests: a run of one question each."""
    spoilt = [one for one in [*dialects.broken(), *dialects.refusals()] if one.server in ENGINES]
    by_name = {one.name: one for one in spoilt}
    url = serve(stage, by_name)
    for name in by_name:
        ask(stage, url, [name], re.sub(r"\W+", "-", name))


def recorded(stage: Stage, folder: Path) -> None:
    """Streams that were recorded from real servers, where they are at hand."""
    found = {}
    for path in sorted([*folder.glob("*.sse"), *folder.glob("*.json")]):
        raw = path.read_bytes()
        head, body = re.fullmatch(rb"((?:# [^\n]*\n)*)(.*)", raw, re.DOTALL).groups()  # type: ignore[union-attr]
        whole = (
            b"# status: 200" in head and b"\n...\n" not in body and not re.search("midstream|cut_of|garbage", path.stem)
        )
        if whole:
            found[path.name] = Recording(path.stem, path.suffix, body)
    ask(stage, serve(stage, found), list(found), "all")


SCENES: tuple[Scene, ...] = (replies, broken)
