"""Which sandbox a word names, and what is left of one that does not start: with makers of ours, without a sandbox.

For: reasoning_programs.cells, reasoning_programs.bubblewrap.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from reasoning_programs import Case, Grader, QuestionTests, UnavailableError, bubblewrap, cells
from reasoning_programs.containers import IMAGE


def test_a_sandbox_that_fails_to_start_is_refused_with_its_message() -> None:
    ended: list[object] = []
    complains = ["/bin/sh", "-c", "echo no room here >&2"]

    def start(channel: int, _memory: int, _packages: tuple[str, ...]) -> subprocess.Popen[bytes]:
        # As a sandbox does, it holds the channel until it has complained.
        return subprocess.Popen(complains, stderr=subprocess.PIPE, start_new_session=True, pass_fds=(channel,))

    with pytest.raises(UnavailableError, match="could not start a sandbox: no room here; nothing was executed"):
        cells.try_sandbox(SimpleNamespace(start=start, end=ended.append))
    assert len(ended) == 2, "it is tried twice"


# -- bubblewrap --------------------------------------------------------------------------------------------------------


PLAIN_USER, ROOT = 1000, 0


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Our own Python, with packages and tests beside its library; all folders may be entered."""
    for folder in ("bin", "lib/python3.12/site-packages/secret", "lib/python3.12/test", "packages/numpy"):
        (tmp_path / folder).mkdir(parents=True)
    python = tmp_path / "bin" / "python3.12"
    python.touch()
    monkeypatch.setattr(sys, "_base_executable", str(python), raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: PLAIN_USER)
    monkeypatch.setattr(bubblewrap, "SYSTEM_PYTHON", str(tmp_path / "system"))
    monkeypatch.setattr(bubblewrap, "require", lambda: "/usr/bin/bwrap")
    numpy = tmp_path / "packages/numpy/__init__.py"
    numpy.touch()
    monkeypatch.setattr(bubblewrap, "find_spec", lambda _: SimpleNamespace(origin=str(numpy)))
    return python


@pytest.mark.parametrize("mode", [0o600, 0o601, 0o602, 0o603, 0o604, 0o605, 0o610, 0o640, 0o641, 0o643, 0o700, 0o755])
def test_as_root_the_bits_for_others_say_which_python_is_taken(
    own: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Modes of the interpreter itself, then of a folder above it; the system's Python is taken in its place."""
    monkeypatch.setattr(os, "geteuid", lambda: ROOT)
    modes = {str(own): mode}
    monkeypatch.setattr(Path, "stat", lambda path, **_: SimpleNamespace(st_mode=modes.get(str(path), 0o755)))
    system = bubblewrap.SYSTEM_PYTHON
    assert bubblewrap.interpreter() == (str(own) if mode & 0o4 else system)
    modes |= {str(own): 0o604, str(own.parent): mode}
    assert bubblewrap.interpreter() == (str(own) if mode & 0o1 else system)


def test_without_a_python_that_can_be_read_nothing_runs(own: Path) -> None:
    own.unlink()
    with pytest.raises(UnavailableError, match="the sandbox user cannot read the Python installation"):
        bubblewrap.interpreter()
    Path(bubblewrap.SYSTEM_PYTHON).touch()
    assert bubblewrap.interpreter() == bubblewrap.SYSTEM_PYTHON
    assert "/sandbox/numpy" not in bubblewrap.command(), "numpy is for our own Python"


def test_a_sandbox_holds_its_python_and_nothing_installed(own: Path, tmp_path: Path) -> None:
    line = bubblewrap.command()
    bound = {line[n + 2]: line[n + 1] for n, word in enumerate(line) if word == "--ro-bind"}
    assert line[0] == "/usr/bin/bwrap"
    assert {path for path in bound if path.startswith(str(tmp_path))} == {str(own), f"{tmp_path}/lib"}
    assert {path for path in bound if not path.startswith(str(tmp_path))} <= {*bubblewrap._LIBRARIES, "/sandbox/numpy"}
    assert bound["/sandbox/numpy"] == f"{tmp_path}/packages/numpy"
    hidden = {line[n + 1] for n, word in enumerate(line) if word == "--tmpfs"}
    assert {f"{tmp_path}/lib/python3.12/{name}" for name in ("site-packages", "test")} <= hidden
    assert line[line.index("--") - 2 :][:4] == ["--remount-ro", "/", "--", str(own)]


def test_a_machine_without_bubblewrap_or_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/opt/{name}")
    monkeypatch.setattr(bubblewrap, "supported", lambda: True)
    assert bubblewrap.require() == "/opt/bwrap"
    monkeypatch.setattr(bubblewrap, "supported", lambda: False)
    with pytest.raises(UnavailableError, match="the sandbox supports Linux on x86_64 and aarch64, not "):
        bubblewrap.require()
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _: None)
    with pytest.raises(UnavailableError, match="bwrap is not installed: `apt install bubblewrap`"):
        bubblewrap.require()


def test_a_sandbox_is_a_process_of_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "command", lambda *_: ["/bin/sleep", "600"])
    ours, theirs = socket.socketpair()
    with ours, theirs, bubblewrap.start(theirs.fileno(), 1) as process:
        assert os.getsid(process.pid) == process.pid
        process.kill()


# -- Docker and Podman -------------------------------------------------------------------------------------------------


SUMS = QuestionTests(style="stdin", cases=(Case("1 2", "3"),))
FAKE = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import json, os, sys
words = sys.argv[1:]
with open({record!r}, "a") as file:
    file.write(json.dumps(words) + chr(10))
if {silent!r}:
    sys.exit("Cannot connect to the Docker daemon. Is it running?")
if words[0] == "image":
    sys.exit(0 if words[-1] == {image!r} else "Error: No such image")
if words[0] == "run":  # what follows the image is what the container's python3 gets
    os.execv({python!r}, [{python!r}, *words[words.index({image!r}) + 1 :]])
"""


def a_fake(folder: Path, patch: pytest.MonkeyPatch, *, image: str = IMAGE, silent: bool = False) -> Path:
    """Put a `docker` first in the path; returns the file in which it records its arguments."""
    record, command = folder / "record.jsonl", folder / "bin" / "docker"
    command.parent.mkdir()
    command.write_text(FAKE.format(python=sys.executable, record=str(record), image=image, silent=silent), "utf-8")
    command.chmod(0o755)
    patch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    return record


def test_containers_are_started_closed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = a_fake(tmp_path, monkeypatch)
    with contextlib.closing(Grader(1, "docker")) as grader:
        assert grader.name == f"program/2 docker python{sys.version.split()[0]}"
        verdicts = [grader.ask(SUMS, f"```\n{code}\n```").result() for code in ("print(3)", "print(4)")]
    assert [(verdict.outcome, verdict.grader) for verdict in verdicts] == [
        ("correct", grader.name),
        ("wrong", grader.name),
    ]
    calls = [json.loads(line) for line in record.read_text().splitlines()]
    started = [words for words in calls if words[0] == "run"]
    assert len(started) >= 2, "one for the version of its Python, one for the programs"
    for words in started:
        before = words[: words.index(IMAGE)]
        assert {
            "--network=none",
            "--ipc=none",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--pull=never",
            "--rm",
            "--pids-limit=128",
            "--entrypoint=python3",
        } <= set(before)
        named = dict(word.split("=", 1) for word in before if "=" in word)
        assert int(named["--user"].partition(":")[0]) >= 10_000
        assert int(named["--memory"]) == int(named["--memory-swap"]) > 0
        assert named["--tmpfs"].startswith("/tmp:")
        assert not {"--volume", "-v", "--mount", "--privileged"} & {word.partition("=")[0] for word in before}
        assert ["rm", "--force", named["--name"]] in calls
    assert int(dict(word.split("=", 1) for word in started[-1] if "=" in word)["--memory"]) > 4096 << 20


@pytest.mark.parametrize(
    ("kind", "silent", "message"),
    [
        ("docker", True, f"docker cannot inspect the image {IMAGE} (Cannot connect to the Docker daemon"),
        ("docker", False, f"`docker pull {IMAGE}`"),
        ("docker:own/image-2", False, "`docker pull own/image-2`"),
        ("docker:--privileged", False, "the name cannot begin with `-`"),
        ("podman", False, "podman is not installed"),
    ],
)
def test_where_no_container_can_be_started_nothing_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, silent: bool, message: str
) -> None:
    record = a_fake(tmp_path, monkeypatch, image="another", silent=silent)
    record.touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UnavailableError) as refused, contextlib.closing(Grader(1, kind)) as grader:
        grader.ask(SUMS, "```\nprint(3)\n```").result()
    assert [part for part in (message, "nothing was executed") if part not in str(refused.value)] == []
    assert not (silent and "pull" in str(refused.value)), "the image may be there"
    assert '"run"' not in record.read_text()
