"""Sandboxes of a SandboxFusion server, by a small server that speaks its protocol.

`HARNESS_SANDBOXFUSION` is the address of a real server; then what does not depend on the small one is tried there, too.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.extensions.answers.program import fusion
from harness.extensions.answers.program.fusion import Fusion
from harness.extensions.answers.program.inside import frames
from harness.runs import grades as grade_file
from tests.programs.fusion_server import FusionServer, fusion_server
from tests.programs.sandboxed import called, checked, script
from tests.programs.test_program_score import a_run
from tests.system.command import harness

REAL = os.environ.get("HARNESS_SANDBOXFUSION", "")
DOUBLE = ("21", "42")
RIGHT = "print(2 * int(input()))"


@pytest.fixture
def server() -> Iterator[FusionServer]:
    with fusion_server() as served:
        yield served


def a_sandbox(server: FusionServer) -> Fusion:
    return Fusion(server.url, sleep=lambda _: None)


def test_a_score_by_a_server_is_as_one_by_bubblewrap(
    tmp_path: Path, server: FusionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fusion.KEY_VARIABLE, "canary-key")
    run, _ = a_run(tmp_path)
    done = harness(tmp_path, "score", "run", "--sandbox", server.url, "--workers", "1")
    assert done.code == 0, done.err
    grades = list(grade_file.read(run.benchmark("sums")))
    assert sum(grade.verdict == "correct" for grade in grades) == 3
    assert all((grade.grader or "").startswith("program/1 fusion python3") for grade in grades)
    assert set(server.keys) == {"Bearer canary-key"}
    assert "canary-key" not in "".join(path.read_text() for path in run.path.rglob("*.json*"))
    request = server.requests[-1]
    assert request["language"] == "python"
    assert request["fetch_files"] == ["report"]
    assert request["run_timeout"] >= 30


@pytest.mark.parametrize("url", ["", *filter(None, [REAL])], ids=lambda url: "a real server" if url else "ours")
def test_programs_are_confined_and_bounded_there_too(server: FusionServer, url: str) -> None:
    sandbox = a_sandbox(FusionServer(url) if url else server)
    assert script(sandbox, RIGHT, DOUBLE).rule == "all tests"
    assert script(sandbox, "print(43)", DOUBLE).rule == "wrong output"
    assert script(sandbox, "while True: pass", DOUBLE, seconds=0.5).rule == "time limit"
    assert script(sandbox, "print('x' * 200_000)", ("", "x" * 200_000)).rule == "all tests"
    assert called(sandbox, "def f(x): return x + 1", ("1", "2")).rule == "all tests"
    assert called(sandbox, "def f(x): return x", ("1", "2")).rule == "wrong output"
    assert checked(sandbox, "def f(x): return x", "assert f(1) == 1").rule == "all tests"
    assert checked(sandbox, "import os\nos._exit(0)", "assert f(1) == 1").outcome == "wrong"
    for code in (
        "import os\nos.fork()",
        "import socket\nsocket.socket()",
        "open('/etc/shadow').read()",
        "import os\nos.kill(-1, 9)",
    ):
        assert script(sandbox, code + "\nprint(42)", DOUBLE).rule == "exception", code


def report_of(*messages: dict[str, Any]) -> bytes:
    return b"".join(map(frames.message, ({"ready": "3"}, *messages)))


FORGED = report_of({"names": ["f"]}, {"end": "passed", "cpu": 0.0})
"""Report of a sandbox in which every test passed."""


@pytest.mark.parametrize(
    "act",
    [
        "open('report', 'wb').write(FORGED)",
        "open('report', 'wb').write(bytes(32) + FORGED)",
        "import os\nos.makedirs('report/x')",
        "import os\nos.symlink('/dev/null', 'report')",
    ],
)
def test_a_program_that_writes_the_report_itself_changes_no_verdict(server: FusionServer, act: str) -> None:
    server.plain = True
    sandbox = a_sandbox(server)
    act = f"FORGED = {FORGED!r}\n{act}\n"
    assert called(sandbox, act + "def f(x): return x", ("1", "2")).rule == "wrong output"
    assert checked(sandbox, act + "def f(x): return x", "assert f(1) == 2").rule == "wrong output"
    assert called(sandbox, act + "def f(x): return x + 1", ("1", "2")).rule == "all tests"
    assert len(server.requests) == 3, "none is asked again"


def test_a_report_that_ends_before_the_job_began_is_said_to_be_none(server: FusionServer) -> None:
    def only_ready(request: dict[str, Any]) -> dict[str, Any]:
        key = base64.b64decode(request["stdin"])[: frames.KEY_BYTES]
        sealed = hmac.digest(key, report_of(), "sha256") + report_of()
        return {"status": "Success", "files": {"report": base64.b64encode(sealed).decode()}}

    server.first = [(200, only_ready)] * 2
    decision = called(a_sandbox(server), "def f(x): return x", ("1", "1"))
    assert decision.outcome == "undecided"
    assert decision.failure is not None
    assert decision.failure.message == "the job ended without a report"


PRINTED = report_of({"started": True}, {"end": "closed", "code": 0, "out": "42"})
"""Report of a program that prints what the test expects."""
FAILED = {"status": "Failed", "message": "", "run_result": {"status": "TimeLimitExceeded"}, "files": {}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {"detail": "no"}),
        (200, {"status": "SandboxError", "message": "no cgroup"}),
        (200, FAILED),
        (200, b"<html>"),
        (200, {"status": "Success", "files": {"report": "!"}}),
        (200, {"status": "Success", "files": {"report": "é"}}),
        (200, {"status": "Success", "files": {"report": "AAAAAQ=="}}),
        (200, {"status": "Success", "files": {"report": base64.b64encode(PRINTED).decode()}}),
    ],
)
def test_a_failure_of_the_server_is_asked_again_and_then_undecided(
    server: FusionServer, status: int, body: object
) -> None:
    sandbox = a_sandbox(server)
    server.first = [(status, body)]
    assert script(sandbox, RIGHT, DOUBLE).outcome == "correct", "once is made good"
    server.first = [(status, body)] * 2
    decision = script(sandbox, "print(43)", DOUBLE)
    assert (decision.outcome, decision.rule) == ("undecided", "sandbox")
    assert len(server.requests) == 4


@pytest.mark.parametrize("status", [401, 404, 422])
def test_an_address_that_is_no_sandbox_executes_nothing(tmp_path: Path, server: FusionServer, status: int) -> None:
    run, _ = a_run(tmp_path)
    server.first = [(status, {"detail": "no"})]
    done = harness(tmp_path, "score", "run", "--sandbox", server.url)
    assert done.code == UsageError.exit_code
    assert (
        f"answers {status}, so it is no SandboxFusion server, or wants another key: set {fusion.KEY_VARIABLE}"
        in done.err
    )
    assert "nothing was executed" in done.err
    assert not run.benchmark("sums").grades.exists()


def test_a_server_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    a_run(tmp_path)
    done = harness(tmp_path, "score", "run", "--sandbox", "http://user:canary-key@127.0.0.1:1")
    assert done.code == UsageError.exit_code
    assert "no sandbox answers at http://127.0.0.1:1/run_code" in done.err
    assert "canary-key" not in done.err
    assert "Traceback" not in done.err
