"""A run folder from a stranger, before every command that reads one: an answer or a sentence, soon, and nothing else.

For: harness.core.files, harness.runs.manifest, harness.runs.line_file.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.runs import RunFolder, questions, record
from harness.testing import FakeServer
from harness.viewer.pages import Library
from tests.budget import examples, thinned
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS
from tests.system.command import Result, harness

NAME = "own"
SECRET = b"sk-of-the-person-who-reads\n"
FILES = (
    "manifest.json",
    "log.jsonl",
    "log.former.jsonl",
    "inflight.jsonl",
    "batches.jsonl",
    "run.lock",
    "report.html",
    "own/questions.jsonl",
    "own/samples.jsonl",
    "own/grades.jsonl",
    "own/opinions.jsonl",
    "own/overrides.jsonl",
    "own/scores.json",
    "own",
)
"""Files of a run, and the folder of a benchmark."""

HOSTILE: tuple[Any, ...] = (
    10**12, -5, 0, 10**5, 1.5, 2**63, 2**200, 1e308, "", "x" * 10_000, "\ud800", "\u202e\x1b[2J", "../../etc/passwd",
    "/dev/zero", None, True, [], {}, [None], {"a": None}, [[[[]]]] * 3, "2026-13-45", "9999999/9999999",
    {"part": "9999999/9999999", "selection": "s"},
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
        "benchmark": NAME,
        "question_id": "q0",
        "sample_index": 0,
        "verdict": "wrong",
        "graded": "correct",
        "who": "me",
        "when": "2026-01-02T03:04:05+00:00",
        "why": "look",
        "schema": 1,
    }
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
    return [*words, "--base-url", url, "--no-canary", "--out", out]


def _secret(path: Path) -> Path:
    """Outside the run's folder."""
    return next(p for p in path.parents if (p / "secret").exists()) / "secret"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


SHAPES: dict[str, Callable[[Path], object]] = {
    "a link to a secret": lambda path: path.symlink_to(_secret(path)),
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nowhere")),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "empty": Path.touch,
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(5000) + b"\n"),
    "zeros": lambda path: path.write_bytes(b"\0" * 5000 + b"\n"),
    "deeply nested": lambda path: path.write_bytes(b'{"a":' * 50_000 + b"\n"),
    "gone": lambda path: None,
}
"""What may stand in the place of a file."""


def _replaced(make: Callable[[Path], object], path: Path) -> None:
    _remove(path)
    make(path)


def _linked_twin(path: Path) -> None:
    """A link to an intact copy of itself: what it holds is right, and it still leads out."""
    twin = _secret(path).with_name(f"twin-{path.name}")
    if path.exists():
        _remove(twin)
        path.rename(twin)
    path.symlink_to(twin if twin.exists() else _secret(path))


def _cut(path: Path) -> None:
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)


def shapes() -> Iterator[Forgery]:
    """Every file as something else: a link out of the folder, a pipe, a folder, empty, cut, damaged, enormous."""
    forges = {name: partial(_replaced, make) for name, make in SHAPES.items()}
    for name in FILES:
        for kind, forge in {**forges, "cut in half": _cut, "a link to its like": _linked_twin}.items():
            yield Forgery(f"{name}: {kind}", lambda folder, forge=forge, name=name: forge(folder / name))  # type: ignore[misc]


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


MAX_SECONDS = 60.0
"""Of the processor for one command; an intact run takes less than two."""

MAX_GROWTH_KB = 400_000

COMMANDS: dict[str, Sequence[str]] = {
    "score": ("score", "r", "--workers", "1"),
    "report": ("report", "r"),
    "compare": ("compare", "r", "quiet"),
    "show": ("show", "r"),
    "show question": ("show", "r", "q0"),
    "audit": ("audit", "r", "--samples", "2", "--out", "to_judge"),
    "status": ("status", "r"),
    "diff": ("compare", "r", "quiet", "--samples"),
    "export trl": ("export", "r", "--to", "trl", "--i-know", "--out", "made"),
    "export inspect": ("export", "r", "--to", "inspect", "--i-know", "--out", "made"),
    "merge": ("merge", "r", "quiet", "--out", "made"),
    "doctor": ("doctor", "r"),
    "verify": ("verify", "r"),
    "plan": ("plan", "r", "--detect", "5"),
    "run": (),
}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer(able(0.5)) as running:
        yield running


@pytest.fixture(scope="module")
def whole(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A secret, and an intact run twice."""
    path = tmp_path_factory.mktemp("strangers")
    (path / "secret").write_bytes(SECRET)
    sums(path, 3).rename(path / "own.jsonl")
    make(path, server.base_url)
    shutil.copytree(path / "intact", path / "quiet")
    return path


@pytest.fixture
def workspace(whole: Path, tmp_path: Path) -> Path:
    """Where a stranger's folder `r` will stand."""
    return Path(shutil.copytree(whole, tmp_path / "place"))


def forged(workspace: Path, forgery: Forgery) -> None:
    for name in ("r", "made"):
        if (workspace / name).exists():
            shutil.rmtree(workspace / name)
    shutil.copytree(workspace / "intact", workspace / "r")
    forgery.forge(workspace / "r")


def words_of(command: str, url: str) -> Sequence[str]:
    if command == "run":
        return run_words(url, "r")
    return COMMANDS[command]


def meet(workspace: Path, forgery: Forgery, command: str, server: FakeServer) -> Result:
    """Have the command meet the forgery. It must end soon, in a way of ours, and take nothing out of the secret."""
    forged(workspace, forgery)
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = looked_at(workspace) if command == "view" else harness(workspace, *words_of(command, server.base_url))
    hint = f"{command} met {forgery.name}: {done}"
    assert done.code in range(5), hint
    assert done.code or command == "view" or done.out + done.err, f"it ended silently: {hint}"
    assert "Traceback" not in done.err, hint
    assert time.process_time() - began < MAX_SECONDS, hint
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MAX_GROWTH_KB, hint
    assert (workspace / "secret").read_bytes() == SECRET, hint
    shown = [done.out.encode("utf-8", "replace"), done.err.encode("utf-8", "replace")]
    contents = [path.read_bytes() for path in workspace.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [text for text in [*shown, *contents] if SECRET.strip() in text and text != SECRET], hint
    return done


def looked_at(workspace: Path) -> Result:
    """What the viewer reads of a run."""
    from harness.core.errors import HarnessError

    try:
        library = Library([workspace / "r"])
        library.refresh()
        for run in library.runs.values():
            run.refresh()
            for name in list(run.benchmarks):
                benchmark = run.benchmark(name)
                benchmark.tallies(overridden=True)
                for question in list(benchmark.questions)[:3]:
                    benchmark.indices(question)
    except HarnessError as error:
        return Result(error.exit_code, "", str(error))
    return Result(0, "", "")


EVERY = [*COMMANDS, "view"]


def drawn(chance: random.Random) -> dict[str, Forgery]:
    """A wrong shape and a wrong value."""
    return {"shape": chance.choice([*shapes()]), "value": values(chance)}


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("what", ["shape", "value"])
def test_a_wrong_file_or_size_or_value_is_answered(what: str, workspace: Path, server: FakeServer) -> None:
    chance = random.Random(random.randrange(2**32))
    for _ in range(examples(40)):
        meet(workspace, drawn(chance)[what], chance.choice(EVERY), server)


def linked(file: str) -> Forgery:
    return next(forgery for forgery in shapes() if forgery.name == f"{file}: a link to its like")


LINKED = ("manifest.json", f"{NAME}/questions.jsonl", f"{NAME}/samples.jsonl", NAME)
READERS = ("score", "report", "merge", "compare", "export trl", "doctor", "show", "diff")
NOT_READ = {"report": [f"{NAME}/samples.jsonl"], "diff": [f"{NAME}/samples.jsonl", f"{NAME}/questions.jsonl"]}
"""Command → files of which it needs nothing."""


@pytest.mark.slow
@pytest.mark.parametrize(("file", "command"), thinned(product(LINKED, READERS)))
def test_a_link_is_refused_even_to_a_right_target(command: str, file: str, workspace: Path, server: FakeServer) -> None:
    done = meet(workspace, linked(file), command, server)
    if file in NOT_READ.get(command, ()):
        assert done.code == 0
    else:
        assert done.code == 3
        assert "symbolic link" in done.err + done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "command"),
    thinned(product((10**12, -5, 0), ("merge", "score", "report", "status", "export trl", "run"))),
)
def test_a_plan_of_impossible_size_is_refused(samples: int, command: str, workspace: Path, server: FakeServer) -> None:
    forge = _changed("manifest.json", 0, ("benchmarks", NAME, "plan", "samples"), samples)
    done = meet(workspace, Forgery(f"samples = {samples}", forge), command, server)
    assert done.code == 3
    assert f"{samples} samples per question, expected 1 to 100000" in done.err
    assert not (workspace / "made").exists()


def with_other_questions(how: str) -> Forgery:
    def change(folder: Path) -> None:
        path = folder / NAME / "questions.jsonl"
        text = path.read_text("utf-8")
        path.unlink()
        if how != "gone":
            path.write_text(text[: text.index("\n") + 1] if how == "cut" else text.replace('["1"]', '["7"]'))

    return Forgery(how, change)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "command"),
    thinned(product(("cut", "edited", "gone"), ("report", "compare", "export trl", "score", "doctor"))),
)
def test_other_questions_scores_are_not_shown(how: str, command: str, workspace: Path, server: FakeServer) -> None:
    done = meet(workspace, with_other_questions(how), command, server)
    assert done.code == 3
    assert "questions.jsonl" in done.err + done.out
    assert "accuracy" not in done.out


@pytest.mark.slow
@pytest.mark.parametrize("how", ["intact", "cut", "edited", "gone"])
def test_status_and_overview_show_no_score_of_other_questions(how: str, workspace: Path, server: FakeServer) -> None:
    forgery = Forgery(how, lambda folder: None) if how == "intact" else with_other_questions(how)
    done = meet(workspace, forgery, "status", server)
    assert ("% correct" in done.out) == ("samples (100%)" in done.out) == (how == "intact")
    assert done.code == (0 if how == "intact" else 3)
    assert ("questions.jsonl was changed after the run wrote it" in done.err) == (how in ("cut", "edited"))
    library = Library((workspace / "r",))
    library.refresh()
    (run,) = library.runs.values()
    run.refresh()
    (benchmark,) = run.benchmarks.values()
    _ = benchmark.score
    assert (benchmark.score is not None) == (how == "intact")
    assert any("questions.jsonl" in problem for problem in benchmark.problems) == (how in ("cut", "edited"))


NAMED = {
    "a card": ("run", "PIPE.yaml", "--model", "m", "--base-url", "URL"),
    "a sweep": ("sweep", "PIPE.yaml"),
    "questions": ("run", "--data", "PIPE.jsonl", "--model", "m", "--base-url", "URL"),
    "endpoints": ("run", "--data", "own.jsonl", "--model", "m", "--base-url", "PIPE"),
    "outputs": ("score", "PIPE.jsonl"),
    "published scores": ("verify", "intact", "--published", "PIPE.yaml"),
}


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.parametrize("what", NAMED)
def test_a_pipe_that_is_named_is_refused_and_not_waited_for(what: str, workspace: Path, server: FakeServer) -> None:
    for name in ("PIPE", "PIPE.yaml", "PIPE.jsonl"):
        os.mkfifo(workspace / name)
    done = harness(workspace, *(word.replace("URL", server.base_url) for word in NAMED[what]))
    assert done.code in (2, 3), done
    assert "PIPE" in done.err, done
