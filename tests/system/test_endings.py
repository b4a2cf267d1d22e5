"""How a command ends where its surroundings fail: closed streams, no room for messages, a closed terminal, few
descriptors, a signal at any time, an odd folder or none. It is an exit code and a sentence, never a traceback.

For: harness.__main__, harness.cli.main.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.commands import rounds
from harness.core import channel, files
from harness.options.commands import COMMANDS
from harness.runs import RunFolder
from harness.testing import STALL, FakeServer, Pause, Request, Step, serving
from tests import warm
from tests.budget import thinned
from tests.commands.toy_model import Fault, Toy, answering
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS
from tests.system.command import Result, argv, environment, harness, process, program

FULL = Path("/dev/full")
PAGES = {"/v1/models": {"data": [{"id": "m", "max_model_len": 1_000_000}]}}


well, silent = serving("2", pages=PAGES), serving([STALL], pages=PAGES)


def ask(folder: Path, url: str) -> list[str]:
    (folder / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    return ["run", "--data", "q.jsonl", "--base-url", url, "--samples", "2", "--out", "run", "--no-canary"]


@pytest.mark.parametrize("redirection", thinned(["<&- >&- 2>&-", ">&-", ">&- 2>&-", "<&-"]))
@pytest.mark.parametrize("words", [("benchmarks", "list"), ("grade", "4", "-")])
def test_closed_streams_change_no_exit_code(tmp_path: Path, redirection: str, words: tuple[str, ...]) -> None:
    done = program(tmp_path, ["sh", "-c", f'"$@" {redirection}', "sh", *argv(*words)])
    assert (done.code, done.err) == (0, "")


def test_a_table_in_a_narrow_encoding_has_its_signs_escaped(tmp_path: Path) -> None:
    (tmp_path / "outputs.jsonl").write_text('{"gen": "so 5", "answer": 5}\n')
    done = process(tmp_path, "score", "outputs.jsonl", extra={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert r"\u2013" in done.out  # the dash of a value that is not known


def test_control_characters_of_a_path_reach_no_terminal(tmp_path: Path) -> None:
    for words in (("score", "run\x1b[31m"), ("report", "run\x1b[31m"), ("run", "--out\x1b[31m"), ("score\x1b[31m",)):
        done = harness(tmp_path, *words)
        assert done.code in (2, 3)
        assert r"\x1b[31m" in done.err
        assert "\x1b" not in done.err


@pytest.mark.skipif(not FULL.exists(), reason="/dev/full is on Linux only")
def test_messages_that_find_no_room_change_no_exit_code(tmp_path: Path) -> None:
    def code(*words: str) -> int:
        with FULL.open("wb") as full:
            return program(tmp_path, argv(*words), capture_output=False, stdout=subprocess.DEVNULL, stderr=full).code

    with FakeServer(well) as server:
        words = ask(tmp_path, server.base_url)
        assert code(*words) == 0
        assert code(*words, "--temperature", "0.1") == 3
        assert code(*words, "--temperature", "hot") == 2
    assert len((tmp_path / "run/q/samples.jsonl").read_bytes().splitlines()) == 2


def test_a_warning_about_a_setting_stands_among_the_last_lines_of_the_run(tmp_path: Path) -> None:
    words = "harness: warning: q: 2 samples at temperature 0 are all the same on most servers"
    with FakeServer(well) as server:
        asked = [*ask(tmp_path, server.base_url), "--temperature", "0"]
        lines, again = (harness(tmp_path, *asked).err.splitlines() for _ in range(2))
    warned = [number for number, line in enumerate(lines) if line.startswith(words)]
    (summed,) = (number for number, line in enumerate(lines) if "2 samples in" in line)
    assert (len(warned), warned[-1]) == (2, summed - 1), lines
    assert sum(line.startswith(words) for line in again) == 1, "a command that asks nothing has few lines"


def test_a_closed_terminal_ends_a_run_as_its_signal_does(tmp_path: Path) -> None:
    with FakeServer(silent) as server:
        words = ask(tmp_path, server.base_url)
        terminal, side = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *argv(*words)],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        assert server.wait_for(lambda: any(r.method == "POST" for r in server.requests))
        os.close(terminal)
        assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGHUP
    assert harness(tmp_path, "doctor", "run").code == 0


def signalled(words: Sequence[str], folder: Path, signum: int, when: Callable[[], object]) -> tuple[int, str]:
    """(exit code, messages) of the command, to which the signal is sent as `when` returns, after its first import."""
    # Code of the interpreter's own start runs before ours.
    line = [sys.executable, "-c", "from harness.__main__ import main; print('started', flush=True); main()", *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(line, cwd=folder, env=environment(folder), text=True, **pipes) as child:
        assert child.stdout is not None
        child.stdout.readline()
        when()
        child.send_signal(signum)
        err = child.communicate(timeout=PATIENCE_SECONDS)[1]
    assert "Traceback" not in err
    return child.returncode, err


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("seconds", thinned([0.1, 0.2, 2.0]))
def test_a_signal_to_a_reading_command_gets_a_line(tmp_path: Path, signum: signal.Signals, seconds: float) -> None:
    words = ["grade", "4", "-"]  # it waits for input that does not come
    code, err = signalled(words, tmp_path, signum, lambda: time.sleep(seconds))
    assert (code, err) in (
        (128 + signum, f"harness: stopped by {signum.name}.\n"),
        (-signum, ""),
    )  # before `main` began


@pytest.mark.parametrize("signum", thinned([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
@pytest.mark.parametrize("verb", thinned(["sweep", "dry run", "probe"]))
def test_a_signal_during_a_wait_for_a_server_gets_a_line(tmp_path: Path, verb: str, signum: signal.Signals) -> None:
    with FakeServer(lambda _: [STALL]) as server:
        (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
        (tmp_path / "s.yaml").write_text(
            f"run: {{base_url: '{server.base_url}'}}\nbenchmarks: [data: q.jsonl]\n", encoding="utf-8"
        )
        words = {
            "sweep": ["sweep", "s.yaml"],
            "probe": ["probe", server.base_url],
            "dry run": ["run", "--data", "q.jsonl", "--base-url", server.base_url, "--dry-run"],
        }[verb]
        code, err = signalled(words, tmp_path, signum, lambda: server.wait_for(lambda: bool(server.requests)))
    assert code == 128 + signum, err
    assert err.splitlines()[-1].startswith(f"harness: stopped by {signum.name}"), err


def test_a_command_that_waits_for_a_server_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "QUIET_S", 0.05)

    def slow(request: Request) -> Iterable[Step]:
        return [Pause(0.5), *well(request)] if request.method == "GET" else well(request)

    with FakeServer(slow) as server:
        done = harness(tmp_path, *ask(tmp_path, server.base_url))
    assert (done.code, f"waiting for an answer of {server.base_url}" in done.err) == (0, True)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["start", "imports", "connecting"])
def test_an_early_signal_says_how_to_resume(tmp_path: Path, signum: signal.Signals, moment: str) -> None:
    with FakeServer(lambda _: [STALL]) as server:
        waits = {
            "start": lambda: time.sleep(0.1),
            "imports": lambda: time.sleep(0.4),
            "connecting": lambda: server.wait_for(lambda: bool(server.requests)),
        }
        words = [*ask(tmp_path, server.base_url)]
        code, err = signalled(words, tmp_path, signum, waits[moment])
    assert code == 128 + signum
    line = err.splitlines()[-1]
    assert line.startswith(f"harness: stopped by {signum.name}"), line
    assert line.endswith(("run the same command again to resume.", "Run the same command to resume."))


UNRAISABLE = """
import threading, time
from harness import __main__ as door
from harness.cli import main as line

start = door._thread.start_new_thread

def start_and_wait(function, arguments):
    # The second interrupt comes while the first is still being handled, as it may on a busy machine.
    door._thread.start_new_thread = start
    ended = threading.Event()
    start(lambda: (function(*arguments), ended.set()), ())
    ended.wait(10)

class Late:
    def __del__(self):
        raise ERROR

def command():
    Late()
    time.sleep(SECONDS)

door._thread.start_new_thread = start_and_wait if BUSY else start
line._command = command
door.main()
"""
"""A command in which an error is raised where Python can only print it."""


@pytest.mark.parametrize(
    ("error", "busy", "code"),
    [
        ("KeyboardInterrupt", False, 130),
        ("KeyboardInterrupt", True, 130),
        ("line.Signalled(15)", False, 143),
        ("ValueError", False, 0),
    ],
)
def test_an_interrupt_in_a_callback_is_quiet_and_kept(tmp_path: Path, error: str, busy: bool, code: int) -> None:
    text = UNRAISABLE.replace("ERROR", error).replace("BUSY", str(busy)).replace("SECONDS", "60" if code else "0")
    done = program(tmp_path, [sys.executable, "-c", text])
    assert (done.code, done.out, error in done.err) == (code, "", code == 0)


@pytest.mark.parametrize("n", [1, 2])
def test_a_signal_while_grading_says_how_to_resume(tmp_path: Path, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a target error is graded before and after each stage, outside of the sessions that ask for samples."""
    stages = itertools.count(1)
    grade = rounds.grade_new

    def interrupted(folder: RunFolder, benchmark: str) -> object:
        if next(stages) == n:
            os.kill(os.getpid(), signal.SIGINT)
        return grade(folder, benchmark)

    monkeypatch.setattr(rounds, "grade_new", interrupted)
    with FakeServer(well) as server:
        words = ["8" if word == "2" else word for word in ask(tmp_path, server.base_url)] + ["--target-error", "30"]
        done = harness(tmp_path, *words)
    assert done.code == 130
    assert done.err.splitlines()[-1].startswith(
        "harness: stopped by SIGINT. Stored results are kept. Run the same command "
    )


def billed(server: FakeServer) -> int:
    """New tokens of all replies of a server: each has 50."""
    return 50 * sum(request.method == "POST" for request in server.requests)


def interrupting(answer: Callable[[Request], Iterator[Step]], n: int) -> Callable[[Request], Iterator[Step]]:
    """The model, whose user presses Ctrl-C while reply `n` is awaited. The reply comes all the same."""
    numbers = itertools.count(1)

    def reply(request: Request) -> Iterable[Step]:
        if request.method == "POST" and next(numbers) == n:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return answer(request)

    return reply


@pytest.mark.parametrize(
    ("words", "n", "code"),
    [
        ("run --samples 1", 12, 0),  # nothing is left to do
        # The first stage has 8 rounds of 12 requests, which are too few for one point.
        ("run --samples 64 --target-error 1 --concurrency 2 --prices 0,1", 96, 130),
        ("sweep own.yaml", 12, 130),
    ],
)
def test_ctrl_c_ends_a_command_although_replies_complete_a_part(tmp_path: Path, words: str, n: int, code: int) -> None:
    """A part: a stage towards a target, a cell of a sweep."""
    sums(tmp_path, 12)
    (tmp_path / "own.yaml").write_text(
        "run: {model: test-model, canary: false, samples: 1}\nbenchmarks: [{data: sums.jsonl, id_key: id}]\n"
        "sampling: [{name: cold, temperature: 0.2}, {name: hot, temperature: 0.8}]\n"
    )
    with FakeServer(interrupting(able(0.5), n)) as server:
        asked = "" if words.startswith("sweep") else "--data sums.jsonl --id-key id --no-canary"
        done = harness(tmp_path, *f"{words} {asked} --out out --base-url {server.base_url}".split())
        assert (done.code, billed(server)) == (code, 50 * n), done.err
        if asked and code:
            assert f"stopped by SIGINT: {n} samples are stored in " in done.err
            assert "Run the same command to resume." in done.err
            assert ("This session: 0.0048 USD" in done.err) == ("--prices" in words)
        if not asked:
            again = harness(tmp_path, "sweep", "own.yaml", "--out", "out", "--base-url", server.base_url)
            assert (again.code, billed(server)) == (0, 1200), again.err


TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep other descriptors open")
@pytest.mark.parametrize("limit", thinned([16, 12, 20]))
def test_too_few_descriptors_for_a_run_are_one_sentence(tmp_path: Path, limit: int) -> None:
    with FakeServer(well) as server:
        done = program(
            tmp_path,
            argv(*ask(tmp_path, server.base_url)),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
        )
    assert (done.code, "Traceback" in done.err) == (2, False), done.err
    assert "the open-file limit (ulimit -n)" in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep the limit")
@pytest.mark.parametrize(
    ("kind", "megabytes", "code"),
    [
        (resource.RLIMIT_AS, 300, 2),
        (resource.RLIMIT_AS, 30, 2),
        (resource.RLIMIT_DATA, 200, 2),
        (resource.RLIMIT_AS, 513, 0),
    ],
)
def test_a_memory_limit_is_one_sentence_or_a_clean_end(tmp_path: Path, kind: int, megabytes: int, code: int) -> None:
    limits = (megabytes << 20, megabytes << 20)
    done = program(tmp_path, argv("grade", "2", "2"), preexec_fn=lambda: resource.setrlimit(kind, limits))
    assert (done.code, done.err.count("\n")) == (code, code // 2), done.err
    assert ("the memory limit is too low" in done.err) == bool(code)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread"), OSError(errno.ENOMEM, "Cannot allocate memory")]
)
def test_exhausted_memory_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("harness.cli.grade.carry_out", fail)
    done = harness(tmp_path, "grade", "2", "2")
    assert (done.code, done.err.count("\n"), "harness: not enough memory" in done.err) == (2, 1, True)


@pytest.mark.wide
def test_a_whole_run_in_an_odd_folder_and_the_c_locale(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "größe – 評価 %s {x}" / ("long-" * 30)
    folder.mkdir(parents=True)
    plain = {"LC_ALL": "C", "LANG": "C"}
    rows = [{"id": f"é{i}", "problem": f"Was ist {i} – 0?", "answer": str(i)} for i in range(3)]
    (folder / "sätze.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    with FakeServer(serving("ja: \\boxed{1} ≤ 😀", "m")) as server:
        words = ["run", "--data", "sätze.jsonl", "--id-key", "id", "--base-url", server.base_url, "--samples", "2"]
        for _ in range(2):
            done = process(folder, *words, "--out", "läufe/ein lauf", "--no-canary", extra=plain)
            assert done.code == 0, done.err
    scored = process(folder, "score", "läufe/ein lauf", "--json", extra=plain)
    assert scored.code == 0, scored.err
    (journal,) = folder.glob("läufe/ein lauf/*/samples.jsonl")
    texts = [json.loads(line)["text"] for line in journal.read_bytes().splitlines()]
    assert texts == ["ja: \\boxed{1} ≤ 😀"] * 6
    (scores,) = folder.glob("läufe/ein lauf/*/scores.json")
    assert json.loads(scores.read_bytes())["n_correct"] == 2
    assert process(folder, "report", "läufe/ein lauf", extra=plain).code == 0


@pytest.mark.parametrize(
    "line",
    [
        "run --data rows.jsonl --base-url http://127.0.0.1:9/v1 --out run",
        "score run",
        "report run",
        "serve transformers model",
    ],
)
def test_a_current_folder_that_was_deleted_is_said(tmp_path: Path, line: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"rmdir {shlex.quote(str(gone))} && exec {shlex.join(argv(*line.split()))}"
    done = program(gone, ["sh", "-c", line], env=environment(tmp_path))
    assert done.code in {2, 3}, done.err
    assert done.err.startswith("harness: "), done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("score", "{name}"),
        ("show", "{name}"),
        ("compare", "{name}", "{name}"),
        ("sweep", "{name}.yaml"),
        ("export", "{name}", "--to", "csv"),
        ("run", "{name}.jsonl", "--model", "m", "--dry-run"),
        ("run", "demo", "--model", "m", "--out", "{name}"),
        ("run", "demo", "--model", "m", "--base-url", "unix:{path}"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_name_too_long_for_the_system_is_refused_in_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / ("s" * 120 + ".sock")
    done = harness(tmp_path, *(word.format(name="x" * 300, path=path) for word in words))
    assert done.code == 2
    assert "too long" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


# -- every command in a failing environment ----------------------------------------------------------------------------


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


ASKED = "--data sums.jsonl --concurrency 1 --id-key id --no-canary --base-url URL --out new --samples"
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
    asked = {"base_url": server.url, "id_key": "id", "canary": False}
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
def test_a_closed_output_ends_the_command_with_one_sentence(command: str, folder: Path, server: Server) -> None:
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


@pytest.mark.parametrize("command", thinned(command for command in ROWS if command != "view"))
def test_a_full_disk_is_one_sentence_and_loses_nothing(command: str, folder: Path, server: Server) -> None:
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
def test_commands_name_the_damaged_file_and_lose_nothing(command: str, folder: Path, server: Server) -> None:
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
        assert done.code in (2, 3, 4), (hint, done)
        assert Path(name).name in done.err + done.out + (notes.read_text() if notes.exists() else ""), (hint, done)
        assert contents(place).items() >= before.items(), hint


@pytest.mark.parametrize("command", [command for command in ROWS if ROWS[command].stops])
def test_ctrl_c_ends_every_command_with_130_and_the_next_call_finishes(
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
    assert ("Run the same command to resume." in done.err) == row.resumes, done
    assert contents(folder).items() >= before.items()
    assert harness(folder, *words).code == row.code
    assert contents(folder).keys() == contents(quiet).keys()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["run", "score", "gate"])
def test_a_signal_stays_one_if_a_library_renames_it(
    command: str, signum: signal.Signals, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pydantic does with a `SchemaError` for a signal that comes while it builds a model."""

    def renaming(_path: Path, _flags: int) -> object:
        try:
            signal.raise_signal(signum)
        except KeyboardInterrupt as stop:
            raise ValueError("a schema that cannot be built") from stop
        return None

    monkeypatch.setattr(files, "_open", renaming)
    done = harness(folder, *words_of(command, server))
    assert (done.code, "a schema" in done.err) == (128 + signum, False), done
    assert f"stopped by {signum.name}" in done.err
