"""How every command ends where its surroundings fail: a closed pipe, a full disk, a damaged folder, Ctrl-C.

For: harness.cli.main.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.core import files
from harness.options.commands import COMMANDS
from harness.testing import FakeServer, Request, Step
from tests import warm
from tests.commands.toy_model import Fault, Toy, answering
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS
from tests.system.command import Result, environment, harness

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="/dev/full is on Linux only")


class Row(NamedTuple):
    """A command.

    words: URL stands for the server. code: its exit code where all is well. run: the folder that is damaged; one that
    the command makes, if it begins with `new`. refuses: letters of `DAMAGE` that are an error; all others are none.
    stops: what is opened or asked as Ctrl-C comes; "" where another test sends it. writes: it writes files. prints: it
    writes on standard output. resumes: after Ctrl-C it says how to go on; the others store nothing before they end.
    """

    words: str
    code: int = 0
    run: str = "r"
    refuses: str = ""
    stops: str = "manifest.json"
    writes: bool = False
    prints: bool = True
    resumes: bool = False


ASKED = "--data sums.jsonl --concurrency 1 --id-key id --no-canary --no-fingerprint --base-url URL --out new --samples"
ROWS = {
    "serve": Row("serve status", stops=""),  # tests/server_launchers: test_foreground, test_state_folder
    # Its threads need a process that ends: tests/commands/test_probe.py sends the signal.
    "probe": Row("probe URL --checks usage,streaming", stops=""),
    "run": Row(f"run {ASKED} 2", 0, "new", "MQS", "POST", writes=True, prints=False, resumes=True),
    "sweep": Row("sweep sweep.yaml --out new", 0, "new/sums", "MQSGD", "POST", writes=True, resumes=True),
    "benchmarks": Row("benchmarks show own.yaml", refuses="C", stops="own.yaml"),
    "status": Row("status r", refuses="MQS"),
    "merge": Row("merge r twin --out made", refuses="MQS", writes=True, prints=False),
    "score": Row("score r --workers 1 --fresh", refuses="MQSD", stops="samples.jsonl", writes=True),
    "grade": Row("grade 4 4", stops=""),
    "audit": Row("audit r --samples 2 --out made", refuses="MQSLVGD", writes=True),
    "report": Row("report twin r", refuses="MQVGD", stops="grades.jsonl", writes=True),
    "show": Row("show r", refuses="MQSVGD"),
    "view": Row("view r --no-open --port 0", stops=""),  # tests/viewer: it serves until Ctrl-C, its page names damage
    "export": Row("export r --to trl --i-know --out made", refuses="MQSGD", stops="samples.jsonl", writes=True),
    "compare": Row("compare r twin", refuses="MQSVGD", stops="grades.jsonl"),
    "gate": Row("gate gate.yaml r", 4, "r", "MQVGD", writes=True, resumes=True),
    "plan": Row("plan r --detect 5", refuses="MQSVGD", stops="scores.json"),
    "verify": Row("verify r --published published.yaml", refuses="MQVGD", stops="published.yaml"),
    "doctor": Row("doctor r", refuses="MQSGD"),
}
"""All commands."""

DAMAGE = {
    "M": ("manifest.json", "torn"),
    "Q": ("sums/questions.jsonl", "noise"),
    "S": ("sums/samples.jsonl", "a folder"),
    "L": ("sums/samples.jsonl", "noise"),  # lines of a journal that do not count
    "V": ("sums/scores.json", "torn"),
    "G": ("sums/grades.jsonl", "torn"),
    "D": ("sums/grades.jsonl", "a folder"),
    "C": ("../own.yaml", "noise"),
}
"""Letter → a file of a run, or the card, and what becomes of it."""

PUBLISHED = {
    "schema": 1,
    "source": {"title": "A report", "url": "https://example.org/report", "by": "others"},
    "settings": {"temperature": 0.6},
    "questions": {"sums": 3},
    "scores": [{"model": "toy", "benchmark": "sums", "metric": "pass@1", "percent": 50, "samples": 64}],
}
CARD = {
    "name": "own",
    "title": "Own",
    "prompt": "boxed",
    "source": {"kind": "file", "path": "sums.jsonl"},
    "columns": {"question": "problem", "answer": "answer", "id": "id"},
}


class Server:
    """An able model, and a sound one for a probe. interrupts: at its first reply it interrupts this process."""

    def __init__(self) -> None:
        self.interrupts, self.url = False, ""
        self._able, self._toy = able(0.5), answering(Toy(), Fault())

    def __call__(self, request: Request) -> Iterable[Step]:
        if self.interrupts and request.method == "POST":
            self.interrupts = False
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # the signal comes before the reply
        return (self._able if re.search(rb"What is \d \+ 1", request.body) else self._toy)(request)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    answer = Server()
    with FakeServer(answer) as running:
        answer.url = running.base_url
        yield answer


@pytest.fixture(scope="module")
def whole(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands work on: a scored run twice, and files."""
    folder = tmp_path_factory.mktemp("ends")
    sums(folder, 3)
    asked = {"base_url": server.url, "id_key": "id", "canary": False, "fingerprint": False}
    floor = {"floor": 50, "loss": 15, "max_samples": 8}
    for name, content in {
        "sweep": {"run": asked, "score": {"workers": 1}, "benchmarks": [{"data": "sums.jsonl", "samples": 2}]},
        "gate": {"name": "t", "run": asked | {"data": "sums.jsonl"}, "benchmarks": {"sums": floor}, "history": "hist"},
        "published": PUBLISHED,
        "own": CARD,
    }.items():
        (folder / f"{name}.yaml").write_text(json.dumps(content))
    for words in (ROWS["run"].words.replace("new", "r"), "score r --workers 1"):
        done = harness(folder, *words.replace("URL", server.url).split())
        assert done.code == 0, done.err
    shutil.copytree(folder / "r", folder / "twin")
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "here"))


def words_of(command: str, server: Server) -> list[str]:
    return ROWS[command].words.replace("URL", server.url).split()


def contents(folder: Path) -> dict[str, bytes]:
    """The files, but for locks, logs, the state of servers, and what a sweep makes anew each time."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.stem not in ("run", "log", "table")]
    kept = [path for path in paths if not {"state", "cells"} & {*path.parts}]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def test_every_command_has_a_row() -> None:
    assert ROWS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("command", [command for command in ROWS if command != "view"])
def test_an_output_that_nobody_takes_ends_the_command_with_a_code_and_at_most_a_sentence(
    command: str, folder: Path, server: Server
) -> None:
    row, words = ROWS[command], words_of(command, server)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = harness(folder, *words, stdout=gone)
    assert (done.code, "Traceback" in done.err) == (128 + signal.SIGPIPE if row.prints else row.code, False), done
    with FULL.open("w") as full:
        done = harness(folder, *words, stdout=full)
    assert done.code == (3 if row.prints else row.code), done
    assert done.err.endswith("harness: cannot write the output: No space left on device\n") == row.prints, done


@pytest.mark.parametrize("words", ["run nope", "merge r twin --out made", "compare r twin"])
def test_messages_that_nobody_takes_end_the_command_as_an_output_does(words: str, folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with (
        os.fdopen(writing, "w") as gone,
        warm.started(
            ["harness", *words.split()], cwd=folder, env=environment(folder), stdout=gone, stderr=gone
        ) as process,
    ):
        assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGPIPE


@pytest.mark.parametrize("command", [command for command in ROWS if command != "view"])
def test_a_disk_without_room_is_a_sentence_with_the_file_and_nothing_is_lost(
    command: str, folder: Path, server: Server
) -> None:
    row, before = ROWS[command], contents(folder)
    with warm.started(
        ["harness", *words_of(command, server)],
        limits={resource.RLIMIT_FSIZE: 0},
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        err = process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert process.returncode == (3 if row.writes else row.code), err
    if row.writes:
        assert re.match("harness: cannot (lock|write) .*: File too large", err.splitlines()[-1])
        assert "Traceback" not in err
    assert contents(folder) == before
    assert harness(folder, *words_of(command, server)).code == row.code


def spoil(path: Path, how: str) -> None:
    if how == "torn":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "noise":
        path.write_bytes(bytes(range(1, 256)) + b"\n")
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("command", [command for command in ROWS if ROWS[command].refuses])
def test_a_damaged_file_is_named_by_each_command_that_needs_it_and_nothing_is_lost(
    command: str, folder: Path, server: Server
) -> None:
    row, words = ROWS[command], words_of(command, server)
    if row.run.startswith("new"):
        assert harness(folder, *words).code == row.code
    for letter, (name, how) in DAMAGE.items():
        place = shutil.copytree(folder, folder.with_name(letter))
        if not (place / row.run / name).exists():
            continue
        spoil(place / row.run / name, how)
        before = {file: content for file, content in contents(place).items() if file.endswith(".jsonl")}
        done, hint = harness(place, *words), f"{command} met {name}, {how}"
        assert "Traceback" not in done.err, hint
        if letter not in row.refuses:
            # Without a sample that counts there is nothing to export.
            assert done.code == row.code or (command, letter) in (("doctor", "L"), ("export", "L")), (hint, done)
            continue
        notes = place / "new/table.md"  # of a sweep, whose other cells go on
        assert done.code in (1, 2, 3), (hint, done)
        assert Path(name).name in done.err + done.out + (notes.read_text() if notes.exists() else ""), (hint, done)
        assert contents(place).items() >= before.items(), hint


@pytest.mark.parametrize("command", [command for command in ROWS if ROWS[command].stops])
def test_ctrl_c_ends_every_command_with_130_and_the_same_command_again_does_the_work(
    command: str, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, words, before = ROWS[command], words_of(command, server), contents(folder)
    quiet = shutil.copytree(folder, folder.with_name("quiet"))
    assert harness(quiet, *words).code == row.code
    opened, waiting = files._open, [row.stops]

    def interrupting(path: Path, flags: int) -> object:
        if path.name in waiting:
            waiting.clear()
            signal.raise_signal(signal.SIGINT)
        return opened(path, flags)

    monkeypatch.setattr(files, "_open", interrupting)
    server.interrupts = row.stops == "POST"
    done: Result = harness(folder, *words)
    monkeypatch.undo()
    assert (done.code, "Traceback" in done.err) == (130, False), done
    assert (f"Resume with: harness {command} " in done.err) == row.resumes, done
    assert contents(folder).items() >= before.items()
    assert harness(folder, *words).code == row.code
    assert contents(folder).keys() == contents(quiet).keys()
