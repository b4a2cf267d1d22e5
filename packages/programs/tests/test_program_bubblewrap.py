"""The command line of a sandbox and the choice of its Python, without starting either.

For: reasoning_programs.bubblewrap.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from reasoning_programs import UnavailableError, bubblewrap

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
