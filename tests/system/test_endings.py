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
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from harness.commands import rounds
from harness.core import channel
from harness.runs import RunFolder
from harness.testing import STALL, FakeServer, Pause, Request, Step, serving
from tests.budget import thinned
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS
from tests.system.command import argv, environment, harness, process, program

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
        asked = [*ask(tmp_path, server.base_url), "--no-fingerprint", "--temperature", "0"]
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
def test_a_signal_to_a_command_that_reads_is_answered_by_a_line(
    tmp_path: Path, signum: signal.Signals, seconds: float
) -> None:
    words = ["grade", "4", "-"]  # it waits for input that does not come
    code, err = signalled(words, tmp_path, signum, lambda: time.sleep(seconds))
    assert (code, err) in (
        (128 + signum, f"harness: stopped by {signum.name}.\n"),
        (-signum, ""),
    )  # before `main` began


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", thinned(["sweep", "dry run", "probe"]))
def test_a_signal_while_a_command_waits_for_a_server_is_answered_by_a_line(
    tmp_path: Path, verb: str, signum: signal.Signals
) -> None:
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
def test_a_signal_before_the_first_request_ends_with_a_line_on_how_to_go_on(
    tmp_path: Path, signum: signal.Signals, moment: str
) -> None:
    with FakeServer(lambda _: [STALL]) as server:
        waits = {
            "start": lambda: time.sleep(0.1),
            "imports": lambda: time.sleep(0.4),
            "connecting": lambda: server.wait_for(lambda: bool(server.requests)),
        }
        words = [*ask(tmp_path, server.base_url), "--no-fingerprint"]
        code, err = signalled(words, tmp_path, signum, waits[moment])
    assert code == 128 + signum
    line = err.splitlines()[-1]
    assert line.startswith(f"harness: stopped by {signum.name}"), line
    assert line.endswith("run the same command again to resume.") or "Resume with: harness run --data" in line


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
    [("KeyboardInterrupt", False, 130), ("KeyboardInterrupt", True, 130), ("ValueError", False, 0)],
)
def test_an_interrupt_that_falls_where_nothing_can_be_raised_is_quiet_and_not_lost(
    tmp_path: Path, error: str, busy: bool, code: int
) -> None:
    text = UNRAISABLE.replace("ERROR", error).replace("BUSY", str(busy)).replace("SECONDS", "60" if code else "0")
    done = program(tmp_path, [sys.executable, "-c", text])
    assert (done.code, done.out, error in done.err) == (code, "", code == 0)


@pytest.mark.parametrize("n", [1, 2])
def test_a_signal_while_a_run_grades_ends_with_the_command_that_resumes(
    tmp_path: Path, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with a target error is graded before and after each stage, outside of the sessions that ask for samples."""
    stages = itertools.count(1)
    grade = rounds.grade_new

    def interrupted(folder: RunFolder, benchmark: str) -> object:
        if next(stages) == n:
            os.kill(os.getpid(), signal.SIGINT)
        return grade(folder, benchmark)

    monkeypatch.setattr(rounds, "grade_new", interrupted)
    with FakeServer(well) as server:
        words = [*ask(tmp_path, server.base_url), "--no-fingerprint", "--samples", "8", "--target-error", "30"]
        done = harness(tmp_path, *words)
    assert done.code == 130
    assert done.err.splitlines()[-1].startswith("harness: stopped by SIGINT. Stored results are kept. Resume with: ")


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
def test_a_ctrl_c_ends_a_command_although_the_replies_in_flight_complete_a_part(
    tmp_path: Path, words: str, n: int, code: int
) -> None:
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
            assert "Resume with: harness " in done.err
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
def test_a_limit_of_memory_is_refused_in_one_sentence_or_lets_a_command_end(
    tmp_path: Path, kind: int, megabytes: int, code: int
) -> None:
    limits = (megabytes << 20, megabytes << 20)
    done = program(tmp_path, argv("grade", "2", "2"), preexec_fn=lambda: resource.setrlimit(kind, limits))
    assert (done.code, done.err.count("\n")) == (code, code // 2), done.err
    assert ("the memory limit is too low" in done.err) == bool(code)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread"), OSError(errno.ENOMEM, "Cannot allocate memory")]
)
def test_memory_that_ends_in_the_middle_of_a_command_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
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
