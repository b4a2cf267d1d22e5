"""The state folder is believed only where nobody else could have written it, and nothing in it is a command or a path.

For: server_launchers.lifecycle.servers, server_launchers.machine.programs.
"""

from __future__ import annotations

import functools
import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from server_launchers.errors import LaunchError
from server_launchers.lifecycle import launch, servers
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine.processes import MARK
from server_launchers.spec import ServerSpec
from tests.budget import thinned
from tests.system.command import harness

STRANGER = 12345
"""Number of a user that is nobody here."""

VICTIM = "VICTIM: not to be printed, not to be changed"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    return servers.servers_folder()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim.txt"
    path.write_text(VICTIM)
    return path


def gone(name: str = "forged", **fields: Any) -> ServerState:
    """A server whose processes are all gone."""
    base: dict[str, Any] = {
        "name": name,
        "engine": "vllm",
        "model": "m",
        "source": "m",
        "base_urls": ["http://127.0.0.1:1"],
        "api_key_env": None,
        "created": datetime.now(UTC),
        "mark": "mark",
        "grace": 0.0,
        "guard_pid": 2**22,
        "guard_started": "0",
        "status": "ready",
        "members": [MemberState("engine", ["true"], None)],
    }
    return ServerState(**base | fields)


def record(server: ServerState) -> None:
    servers.write(servers.path_of(server.name), server)


def test_our_own_state_is_read_and_forgotten_when_it_is_stopped(folder: Path) -> None:
    record(gone())
    assert [server.name for server in servers.status()] == ["forged"]
    assert (folder / "forged.json").stat().st_mode & 0o077 == 0
    assert servers.stop("forged") == (["forged"], [])
    assert servers.status() == []


@pytest.mark.parametrize("name", ["forged", "../forged", "../../victim", "/etc/passwd", ""])
def test_a_forged_file_of_our_own_runs_prints_and_removes_nothing(
    name: str, tmp_path: Path, folder: Path, victim: Path
) -> None:
    """As from an unpacked archive: its owner and mode are right, and a program or a path stands in a member's field."""
    command, outsider = ["/bin/sh", "-c", f"echo PWNED > {victim}"], tmp_path / "victim.json"
    outsider.write_text(VICTIM)
    forgeries: dict[str, Any] = {
        "cleanup": command,
        "argv": command,
        "log": str(victim),
        "container": f"harness-1; {' '.join(command)}",
        "role": "router",
        "devices": [str(victim)],
    }
    for field, value in forgeries.items():
        record = msgspec.to_builtins(gone()) | {"name": name}
        record["members"][0][field] = value
        (folder / "forged.json").write_text(json.dumps(record))
        shown = shown_by(tmp_path, "status", "status --json", "logs forged", "stop forged", "stop --all")
        assert (VICTIM in shown, victim.read_text(), outsider.read_text()) == (False, VICTIM, VICTIM), field


def shown_by(tmp_path: Path, *lines: str) -> str:
    """What `harness serve LINE` prints of each line."""
    variables = {"HARNESS_STATE": str(tmp_path / "state")}
    done = [harness(tmp_path, "serve", *line.split(), extra=variables) for line in lines]
    return "".join(one.out + one.err for one in done)


OWNERS = [pytest.param(STRANGER, marks=needs_root), None]
"""The user that a file is given to; None: ourselves."""


PLANTS: list[Callable[[Path, Path], object]] = [Path.symlink_to, Path.hardlink_to, lambda path, _: os.mkfifo(path)]
"""What lies in place of a file, beside the file of a victim."""
FILES = (".lock", "mine.log", "mine.guard.log", ".mine.json.new", "mine.json", "forged.json", "forged.log")


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("plant", thinned(PLANTS))
def test_nothing_is_opened_or_emptied_through_what_is_planted(
    plant: Callable[[Path, Path], object], owner: int | None, tmp_path: Path, folder: Path, victim: Path
) -> None:
    for name in FILES:
        record(gone())
        (folder / name).unlink(missing_ok=True)
        plant(folder / name, victim)
        if owner is not None:
            os.chown(folder / name, owner, owner, follow_symlinks=False)
        with pytest.raises(LaunchError) as refused:
            launch.launch(ServerSpec(engine="command", name="mine", extra_flags=["false"]))
        assert ("lock" in str(refused.value)) == (name == ".lock"), "only the lock is in the way of a start"
        assert VICTIM not in shown_by(tmp_path, "status", "logs forged", "stop forged")
        assert victim.read_text() == VICTIM
        os.chown(victim, os.geteuid(), os.getegid())
        (folder / name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("mode", "owner", "doubt"),
    [
        *((mode, None, None) for mode in (0o700, 0o750, 0o755, 0o711)),
        *((mode, None, "is writable by others") for mode in (0o777, 0o757, 0o775)),
        pytest.param(0o700, STRANGER, "belongs to another user", marks=needs_root),
    ],
)
def test_a_folder_that_others_can_change_is_refused(
    mode: int, owner: int | None, doubt: str | None, tmp_path: Path, folder: Path
) -> None:
    record(gone())
    folder.chmod(mode)
    if owner is not None:
        os.chown(folder, owner, owner)
    if doubt is None:
        assert [server.name for server in servers.status()] == ["forged"]
        return
    begin = functools.partial(launch.launch, ServerSpec(engine="command", extra_flags=["true"]))
    for call in (servers.status, functools.partial(servers.stop, all=True), begin):
        with pytest.raises(LaunchError, match=doubt):
            call()
    assert "set HARNESS_STATE to another folder" in shown_by(tmp_path, "status")


def test_the_folder_may_lie_behind_a_link_and_be_none_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to("elsewhere")
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    assert servers.status() == []
    folder = servers.servers_folder()
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(LaunchError, match="is not safe: it is a link"):
        servers.status()
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "circle" / "state"))
    with pytest.raises(LaunchError, match="cannot store server state"):
        servers.status()


def test_missing_folders_are_created_with_mode_700(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "a" / "b"))
    mask = os.umask(0)
    try:
        folder = servers.servers_folder()
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(step.stat().st_mode) for step in (folder, folder.parent, folder.parent.parent)} == {0o700}


STATE_OF_0_1_0 = """{
 "name": "old", "engine": "vllm", "model": "m", "source": "org/m", "base_urls": ["http://127.0.0.1:1"],
 "api_key_env": null, "created": "2026-11-20T20:13:17.599422Z", "mark": "a", "grace": 2.0, "guard_pid": 1,
 "guard_started": "gone", "status": "ready", "survivors": [], "versions": {"vllm": "0.32.0"}, "members": [
  {"role": "engine", "argv": ["vllm"], "port": 1, "log": "/x/old.log", "devices": null, "pid": null, "started": null,
   "exit_code": null, "restarts": 0, "family": [[2, "gone"]], "cleanup": null}]
}"""


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"garbage", b"[]", b"{}", b"[" * 100_000, b'{"name": 3}', b"\xff\xfe", b'{"name": "\xff"}'),
        STATE_OF_0_1_0[:-3].encode(),
        *(msgspec.json.encode(gone("hidden", guard_pid=n)) for n in (-1, 2**63)),
    ],
)
def test_a_damaged_file_hides_no_other_server(folder: Path, content: bytes) -> None:
    (folder / "old.json").write_text(STATE_OF_0_1_0)
    (folder / "hidden.json").write_bytes(content)
    (listed,) = [server for server in servers.status() if server.name != "hidden"]
    assert (listed.status, listed.log, listed.members[0].family) == ("exited", folder / "old.log", [(2, "gone")])


@pytest.mark.parametrize(
    ("name", "mark", "removed"),
    [
        ("harness-8000", "mark:0", True),
        ("harness-8000", "other:0", False),
        ("postgres", "mark:0", False),
        ("harness-1 postgres", "mark:0", False),
        ("--all", "mark:0", False),
    ],
)
def test_a_container_is_removed_only_if_it_was_started_with_the_servers_mark(
    name: str, mark: str, removed: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docker is a program here that knows one container, and notes what it is told."""
    told = tmp_path / "told"
    told.touch()
    knows = f"""[ "$1" = inspect ] && echo '["PATH=/bin", "{MARK}={mark}"]'"""
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$@" >> {told}\n{knows}\nexit 0\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    record(gone(members=[MemberState("engine", ["docker", "run"], None, container=name)]))
    assert servers.stop("forged") == (["forged"], [])
    assert [line for line in told.read_text().splitlines() if line.startswith("rm")] == ["rm -f harness-8000"] * removed
