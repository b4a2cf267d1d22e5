"""A process of `tests.warm` is as one of a new interpreter: streams, status, signals, limits, session, folder."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.patience import PATIENCE_SECONDS, until

Start = Callable[..., subprocess.Popen[str]]

pytestmark = pytest.mark.skipif(not warm.AT_HAND, reason="there is no warm process here")


def code(text: str) -> list[str]:
    """A program that runs this line."""
    return ["timeit", "-n", "1", "-r", "1", text]


@pytest.mark.parametrize("start", [warm.started, warm.started_cold])
def test_a_process_has_its_streams_status_folder_variables_and_limits(start: Start, tmp_path: Path) -> None:
    text = (
        "import json, os, resource, sys; s = sys.stdin.read(); sys.stderr.write(s.upper()); print(json.dumps("
        "[s, os.getcwd(), os.environ.get('X'), os.environ.get('HOME'), resource.getrlimit(resource.RLIMIT_NOFILE),"
        " os.getsid(0) == os.getpid(), os.getpid()])); sys.stdout.flush(); sys.stderr.flush(); os._exit(7)"
    )
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    options = {"cwd": tmp_path, "env": {"X": "ü"}, "limits": {resource.RLIMIT_NOFILE: 100}, "start_new_session": True}
    child = start(code(text), **pipes, **options)
    out, err = child.communicate("hé", timeout=PATIENCE_SECONDS)
    assert (child.returncode, err) == (7, "HÉ")
    assert json.loads(out) == ["hé", str(tmp_path), "ü", None, [100, 100], True, child.pid]


def test_a_killed_process_keeps_its_number_until_its_status_is_known() -> None:
    child = warm.started(code("import time; time.sleep(600)"), stdout=subprocess.DEVNULL, start_new_session=True)
    assert child.poll() is None
    os.killpg(child.pid, signal.SIGKILL)
    until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", "its end")
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{child.pid}").exists(), "its number to be free")


def test_the_warm_process_ends_with_its_test_process_and_kills_the_rest() -> None:
    text = (
        "from tests import warm; import sys;"
        " p = warm.started(['timeit', '-n', '1', 'import time; time.sleep(600)']); sys.stdout.write(str(p.pid));"
        " sys.stdout.flush(); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, cwd=warm.CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{done.stdout}").exists(), "the process to be killed")
