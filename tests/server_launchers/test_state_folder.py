"""What stands in the state folder is believed only where it is our own: it names processes to end, commands to run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from server_launchers.errors import LaunchError
from server_launchers.keeping import servers, state
from server_launchers.keeping.state import Member, ServerState
from tests.system.command import harness

STRANGER = 12345
"""Number of a user that is nobody here."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    return state.servers_folder()


def forged(tmp_path: Path, name: str = "forged") -> ServerState:
    """A server that is gone, with a command to run when it is stopped."""
    member = Member("engine", ["true"], None, tmp_path / "log", cleanup=["touch", str(tmp_path / "was-run")])
    return ServerState(
        name, "vllm", "m", "m", ["http://127.0.0.1:1"], None, datetime.now(UTC), "mark", 0.0, 2**22, "0", "ready",
        [member],
    )  # fmt: skip


def test_our_own_state_is_read_and_its_command_run(folder: Path, tmp_path: Path) -> None:
    state.write(forged(tmp_path))
    assert [one.name for one in servers.status()] == ["forged"]
    assert (folder / "forged.json").stat().st_mode & 0o077 == 0
    assert servers.stop("forged") == []
    assert (tmp_path / "was-run").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_file_and_folder_are_not_believed(folder: Path, tmp_path: Path) -> None:
    state.write(forged(tmp_path))
    os.chown(folder / "forged.json", STRANGER, STRANGER)
    assert servers.status() == []
    with pytest.raises(LaunchError, match="no server is called forged"):
        servers.stop("forged")
    os.chown(folder, STRANGER, STRANGER)
    with pytest.raises(LaunchError, match=f"belongs to the user with the number {STRANGER}"):
        servers.stop("forged")
    assert not (tmp_path / "was-run").exists()


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(msgspec.json.encode(forged(tmp_path), enc_hook=str))
    (folder / "forged.json").symlink_to(elsewhere)
    assert servers.status() == []
    (folder / ".true.json.new").symlink_to(tmp_path / "target")
    state.write(forged(tmp_path, "true"))
    assert not (tmp_path / "target").exists()
    assert [one.name for one in servers.status()] == ["true"]


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state" / "servers").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaunchError, match="is a link"):
        servers.status()


@pytest.mark.parametrize("content", [b"", b"garbage", b"{}", b"[" * 100_000])
def test_a_state_file_that_is_none_is_told_by_status(folder: Path, tmp_path: Path, content: bytes) -> None:
    state.write(forged(tmp_path))
    assert servers.unreadable() == []
    (folder / "hidden.json").write_bytes(content)
    assert servers.unreadable() == [folder / "hidden.json"]
    done = harness(tmp_path, "serve", "status", extra={"HARNESS_STATE": str(tmp_path / "state")})
    assert done.code == 0
    assert "hidden.json is no state file of ours" in done.err
    assert "forged" in done.out
