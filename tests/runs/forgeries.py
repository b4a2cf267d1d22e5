"""Run folders as a stranger may forge them: every file of a run in every wrong shape, every value a hostile one."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.runs import RunFolder, questions, record
from tests.system.command import harness

NAME = "own"
SECRET = b"sk-of-the-person-who-reads\n"
FILES = (
    "manifest.json", "log.jsonl", "log.former.jsonl", "inflight.jsonl", "batches.jsonl", "run.lock", "report.html",
    "own/questions.jsonl", "own/samples.jsonl", "own/grades.jsonl",
    "own/opinions.jsonl", "own/overrides.jsonl", "own/scores.json", "own",
)  # fmt: skip
"""Files of a run, and the folder of a benchmark."""

HOSTILE: tuple[Any, ...] = (
    10**12, -5, 0, 2**63, 2**200, 1e308, "", "x" * 10_000, "\ud800", "\u202e\x1b[2J", "../../etc/passwd", "/dev/zero",
    None, True, [], {}, [None], {"a": None}, [[[[]]]] * 3, "2026-13-45", "9999999/9999999",
)  # fmt: skip

Forge = Callable[[Path], None]


@dataclass(frozen=True)
class Forgery:
    """One wrong thing about a run folder. name: what it is, for messages."""

    name: str
    forge: Forge


def make(parent: Path, url: str) -> RunFolder:
    """An intact run in `place`, sampled from the server at `url` and scored, with every file that a run may have."""
    for words in (run_words(url, "intact"), ["score", "intact", "--workers", "1"]):
        done = harness(parent, *words)
        assert done.code == 0, done.err
    run = RunFolder(parent / "intact")
    files = run.benchmark(NAME)
    override = {
        "benchmark": NAME, "question_id": "q0", "sample_index": 0, "verdict": "wrong", "graded": "correct", "who": "me",
        "when": "2026-01-02T03:04:05+00:00", "why": "look", "schema": 1,
    }  # fmt: skip
    opinion = {"benchmark": NAME, "question_id": "q0", "sample_index": 0, "grader": "g", "correct": False, "schema": 1}
    files.overrides.write_text(json.dumps(override) + "\n")
    files.opinions.write_text(json.dumps(opinion) + "\n")
    failed = {"event": "request_failed", "task": [NAME, "q0", 0], "endpoint": "http://h/v1", "kind": "status"}
    with run.log.open("a") as log:
        log.write(json.dumps(failed) + "\n")
    return run


def run_words(url: str, out: str) -> list[str]:
    """The run's command line; `place` holds own.jsonl."""
    words = ["run", "--data", "own.jsonl", "--id-key", "id", "--samples", "3", "--model", "test-model"]
    return [*words, "--base-url", url, "--no-canary", "--no-fingerprint", "--out", out]


def shapes() -> Iterator[Forgery]:
    """Every file as something else: a link out of the folder, a pipe, a folder, empty, cut, damaged, enormous."""
    for name in FILES:
        for kind, forge in {
            "a link to a secret": _linked, "a link to nothing": _dangling, "a pipe": _piped, "a folder": _foldered,
            "empty": _emptied, "cut in half": _cut, "noise": _noisy, "zeros": _zeroed, "deeply nested": _nested,
            "gone": _gone, "a link to its like": _linked_twin,
        }.items():  # fmt: skip
            yield Forgery(f"{name}: {kind}", lambda folder, forge=forge, name=name: forge(folder / name))  # type: ignore[misc]


def _secret(path: Path) -> Path:
    """Outside the run's folder."""
    return next(p for p in path.parents if (p / "secret").exists()) / "secret"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _linked(path: Path) -> None:
    _remove(path)
    path.symlink_to(_secret(path))


def _linked_twin(path: Path) -> None:
    """A link to an intact copy of itself: what it holds is right, and it still leads out."""
    if not path.exists():
        return _linked(path)
    twin = _secret(path).with_name(f"twin-{path.name}")
    _remove(twin)
    path.rename(twin)
    path.symlink_to(twin)
    return None


def _dangling(path: Path) -> None:
    _remove(path)
    path.symlink_to(path.with_name("nowhere"))


def _piped(path: Path) -> None:
    _remove(path)
    os.mkfifo(path)


def _foldered(path: Path) -> None:
    _remove(path)
    path.mkdir()


def _emptied(path: Path) -> None:
    _remove(path)
    path.touch()


def _cut(path: Path) -> None:
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)


def _noisy(path: Path) -> None:
    _remove(path)
    path.write_bytes(random.Random(1).randbytes(5000) + b"\n")


def _zeroed(path: Path) -> None:
    _remove(path)
    path.write_bytes(b"\0" * 5000 + b"\n")


def _nested(path: Path) -> None:
    _remove(path)
    path.write_bytes(b'{"a":' * 50_000 + b"\n")


def _gone(path: Path) -> None:
    _remove(path)


def sizes() -> Iterator[Forgery]:
    """Sizes that no run has, where a run states one: of the plan, of its parts, of an index, of a count."""
    for forged in (10**12, -5, 0, 10**5, 10**18, 1.5, "3", True, None, [10**12]):
        for what, path in {
            "samples": ("benchmarks", NAME, "plan", "samples"), "shard": ("benchmarks", NAME, "identity", "shard"),
            "ids": ("benchmarks", NAME, "plan", "question_ids"), "sessions": ("provenance", "sessions"),
        }.items():  # fmt: skip
            value = {"part": f"{forged}/{forged}", "selection": "s"} if what == "shard" else forged
            yield Forgery(f"manifest.json: {what} = {value!r}", _changed("manifest.json", 0, path, value))
        for keys in (("sample_index",), ("usage", "completion_tokens"), ("attempts",), ("seed",), ("timing", "total")):
            for index in (0, -1):
                changed = _changed(f"{NAME}/samples.jsonl", index, keys, forged)
                yield Forgery(f"samples.jsonl: {'.'.join(keys)} = {forged!r} in sample {index}", changed)
        for keys in (("sample_index",), ("completion_tokens",)):
            yield Forgery(f"grades.jsonl: {keys[0]} = {forged!r}", _changed(f"{NAME}/grades.jsonl", 0, keys, forged))


def values(chance: random.Random) -> Forgery:
    """One value, anywhere in one file, in the place of which a hostile one stands."""
    here = ("manifest.json", "log.jsonl", *(f"{NAME}/{file_name}" for file_name in LINES), f"{NAME}/scores.json")
    name, hostile, seed = chance.choice(here), chance.choice(HOSTILE), chance.randrange(2**32)

    def forge(folder: Path) -> None:
        mine = random.Random(seed)
        n = len(_texts(folder / name))
        index = mine.randrange(n)
        keys = mine.choice(list(_places(json.loads(_texts(folder / name)[index]))))
        _changed(name, index, keys, hostile)(folder)

    return Forgery(f"{name}: {str(hostile)[:30]!a} at a place of seed {seed}", forge)


LINES = ("questions.jsonl", "samples.jsonl", "grades.jsonl", "opinions.jsonl", "overrides.jsonl")
"""Files of a benchmark with a record a line."""


def _texts(path: Path) -> list[bytes]:
    """A file's records."""
    return [path.read_bytes()] if path.suffix == ".json" else path.read_bytes().split(b"\n")[:-1]


def _changed(name: str, index: int, keys: tuple[Any, ...], value: Any) -> Forge:
    """Another value in record `at` of a file; samples keep right checksums, and no seal of the questions is left."""

    def forge(folder: Path) -> None:
        path = folder / name
        texts = _texts(path)
        changed = json.loads(texts[index])
        changed.pop("crc", None)
        _put(changed, keys, value)
        encoded = json.dumps(changed, separators=(",", ":")).encode("utf-8", "surrogatepass")
        texts[index] = record.seal(encoded)[:-1] if name.endswith("samples.jsonl") else encoded
        path.write_bytes(b"\n".join(texts) + b"\n")
        if name.endswith("questions.jsonl"):
            manifest = json.loads((folder / "manifest.json").read_bytes())
            settings = manifest["benchmarks"][NAME]["settings"]
            for noted in (questions.DIGEST, questions.MADE):
                settings.pop(noted, None)
            (folder / "manifest.json").write_text(json.dumps(manifest))

    return forge


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in steps:
        yield (*before, key)
        yield from _places(inner, (*before, key))


def _put(value: Any, keys: tuple[Any, ...], new: Any) -> None:
    for key in keys[:-1]:
        value = value.setdefault(key, {}) if isinstance(value, dict) else value[key]
    value[keys[-1]] = new
