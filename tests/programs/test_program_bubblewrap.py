"""The command line of a sandbox and the choice of its Python, without starting either.

For: harness.extensions.answers.program.bubblewrap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.bubblewrap import Interpreter

PLAIN_USER, ROOT = 1000, 0


class Machine:
    """Pythons of a machine. versions: what each path answers to the probe; None: it does not work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.versions: dict[str, list[int] | None] = {}
        self.users: list[dict[str, Any]] = []
        self.numpy = folder / "packages"
        self.user = PLAIN_USER
        (folder / "lib").mkdir()
        self.own = self.add("own", [3, 12, 1])
        monkeypatch.setattr(sys, "_base_executable", self.own, raising=False)
        monkeypatch.setattr(os, "geteuid", lambda: self.user)
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(bubblewrap, "find_spec", lambda _: SimpleNamespace(origin=str(self.numpy / "numpy/x.py")))

    def add(self, name: str, version: list[int] | None) -> str:
        path = self.folder / name
        path.write_text("")
        self.versions[str(path)] = version
        return str(path)

    def run(self, words: list[str], **options: Any) -> SimpleNamespace:
        version = self.versions.get(words[0])
        if version is None:
            raise FileNotFoundError(words[0])
        self.users.append({key: value for key, value in options.items() if key in ("user", "group", "extra_groups")})
        numpy = words[6:]
        files = [f"{self.folder}/lib/x.so", f"{self.folder}/c.so", *(f"{folder}/numpy/n.so" for folder in numpy)]
        stdlib = f"{self.folder}/lib"
        facts = {"version": version, "stdlib": stdlib, "has_numpy": bool(numpy), "files": files}
        return SimpleNamespace(stdout=json.dumps(facts).encode())

    def interpreter(self) -> Interpreter:
        return bubblewrap.interpreter.__wrapped__()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_programs_run_with_the_harnesss_own_python_or_the_systems(machine: Machine) -> None:
    stdlib, library = f"{machine.folder}/lib", f"{machine.folder}/c.so"
    machine.numpy.mkdir()
    with_numpy = Interpreter(machine.own, (3, 12, 1), stdlib, (library,), str(machine.numpy))
    assert machine.interpreter() == with_numpy, "files below its folders are bound with them"
    assert with_numpy.name == "python3.12.1"
    machine.numpy.rmdir()
    assert machine.interpreter().numpy_folder is None
    system = os.path.realpath("/usr/bin/python3")
    machine.versions |= {machine.own: [3, 8, 9], system: [3, 9, 0]}
    assert machine.interpreter() == Interpreter(system, (3, 9, 0), stdlib, (library,), None)
    machine.versions[machine.own] = None
    assert machine.interpreter().path == system
    Path(machine.own).unlink()  # nobody can read it
    machine.versions[machine.own] = [3, 12, 1]
    assert machine.interpreter().path == system
    machine.versions[system] = [3, 8, 0]
    with pytest.raises(UsageError, match="no Python that the sandbox's user can read"):
        machine.interpreter()


def test_root_probes_as_nobody_and_only_what_nobody_can_read(machine: Machine) -> None:
    machine.interpreter()
    assert machine.users == [{}]
    machine.user = ROOT
    system = os.path.realpath("/usr/bin/python3")
    machine.versions[system] = [3, 11, 0]
    machine.folder.chmod(0o700)
    assert machine.interpreter().path == system, "no stranger may enter its folder"
    assert machine.users[-1] == {"user": 65534, "group": 65534, "extra_groups": ()}


@pytest.mark.parametrize("mode", [0o600, 0o601, 0o602, 0o603, 0o604, 0o605, 0o610, 0o640, 0o641, 0o643, 0o700, 0o755])
def test_as_root_the_bits_for_others_say_what_nobody_can_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Modes of the interpreter itself, then of a folder above it."""
    machine.user = ROOT
    system = os.path.realpath("/usr/bin/python3")
    machine.versions[system] = [3, 11, 0]
    modes = dict[str, int]()
    monkeypatch.setattr(bubblewrap, "_numpy_folder", lambda: None)
    monkeypatch.setattr(Path, "stat", lambda path, **_: SimpleNamespace(st_mode=modes.get(str(path), 0o755)))
    modes[machine.own] = mode
    assert (machine.interpreter().path == machine.own) is bool(mode & 0o4)
    modes.update({machine.own: 0o604, str(machine.folder): mode})
    assert (machine.interpreter().path == machine.own) is bool(mode & 0o1)


@pytest.mark.parametrize("found", [None, SimpleNamespace(origin=None)])
def test_a_python_without_numpy_is_one(machine: Machine, monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    monkeypatch.setattr(bubblewrap, "find_spec", lambda _: found)
    assert (machine.interpreter().path, machine.interpreter().numpy_folder) == (machine.own, None)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for folder in ("lib/site-packages", "lib/test", "packages/numpy", "shared"):
        (tmp_path / folder).mkdir(parents=True)
    library = tmp_path / "shared/libx.so.1"
    library.write_text("")
    (tmp_path / "shared/libx.so").symlink_to(library)
    (tmp_path / "shared/other.so").symlink_to(tmp_path / "elsewhere.so.1")
    python = Interpreter(
        "/usr/bin/pythonx", (3, 12, 1), str(tmp_path / "lib"), (str(library),), str(tmp_path / "packages")
    )
    monkeypatch.setattr(bubblewrap, "require", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(bubblewrap, "interpreter", lambda: python)

    def pairs() -> tuple[list[str], set[tuple[str, ...]]]:
        line = bubblewrap.command(7)
        return line, {tuple(line[n : n + 3]) for n in range(len(line))} | {
            tuple(line[n : n + 2]) for n in range(len(line))
        }

    return pairs


def test_a_sandbox_holds_its_python_and_nothing_installed(words: Any, tmp_path: Path) -> None:
    line, parts = words()
    stdlib, packages, shared = tmp_path / "lib", tmp_path / "packages", tmp_path / "shared"
    assert line[0] == "/usr/bin/bwrap"
    for path in ("/usr/bin/pythonx", str(shared / "libx.so.1"), str(stdlib)):
        assert ("--ro-bind", path, path) in parts
    assert {part for part in parts if part[0] == "--tmpfs" and len(part) == 2} == {
        ("--tmpfs", str(stdlib / name)) for name in ("site-packages", "test")
    }
    assert ("--ro-bind", str(packages / "numpy"), "/sandbox/numpy") in parts
    assert not any("numpy.libs" in word for word in line)
    inside = "harness/extensions/answers/program/inside"
    assert ("--ro-bind", str(Path(bubblewrap.__file__).parent / "inside"), f"/sandbox/{inside}") in parts
    assert ("--symlink", str(shared / "libx.so.1"), str(shared / "libx.so")) in parts
    assert not any("other.so" in word for word in line), "it leads to a file that is not in the sandbox"
    assert line[line.index("--") :][:2] == ["--", "/usr/bin/pythonx"]
    assert "frames.Channel(7, 7)" in line[-1]


def test_a_machine_without_bubblewrap_or_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/opt/{name}")
    monkeypatch.setattr(bubblewrap, "supported", lambda: True)
    assert bubblewrap.require() == "/opt/bwrap"
    monkeypatch.setattr(bubblewrap, "supported", lambda: False)
    with pytest.raises(UsageError, match="the sandbox is written for Linux on x86_64 and aarch64, not for "):
        bubblewrap.require()
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match="bwrap is not installed: `apt install bubblewrap`"):
        bubblewrap.require()


def test_a_sandbox_is_a_process_of_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "command", lambda channel: ["/bin/sleep", "600"])
    receives, sends = os.pipe()
    process = bubblewrap.start(sends, 1)
    try:
        assert os.getsid(process.pid) == process.pid
    finally:
        process.kill()
        process.communicate()
        os.close(receives)
        os.close(sends)
