"""A run knows when the served server that it asks has ended.

For: harness.asking.session, harness.asking.own_servers, server_launchers.keeping.servers.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.asking import servers
from harness.asking.options.run import RunOptions
from harness.asking.session import ServedHere
from harness.client.address.endpoint import Endpoint
from server_launchers.keeping import servers as kept
from server_launchers.keeping.servers import MemberState, ServerState
from server_launchers.machine import processes


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))


def serve(name: str = "mine", port: int = 8001, **more: Any) -> None:
    """Write the state file of a server whose guard is this process."""
    fields: dict[str, Any] = {
        "name": name,
        "engine": "command",
        "model": "m",
        "source": "m",
        "base_urls": [f"http://127.0.0.1:{port}"],
        "api_key_env": None,
        "created": datetime.now(UTC),
        "mark": "m",
        "grace": 1.0,
        "guard_pid": os.getpid(),
        "guard_started": processes.start_of(os.getpid()),
        "status": "ready",
        "members": [MemberState(role="engine", argv=["engine"], port=port)],
    }
    state = ServerState(**{**fields, **more})
    kept.write(kept.path_of(state.name), state)


ENDED: dict[str, Any] = {"status": "exited", "members": [MemberState("engine", ["engine"], 8001, exit_code=-9)]}


def asks(*ports: int, host: str = "localhost") -> ServedHere:
    served = ServedHere([Endpoint(base_url=f"http://{host}:{port}/v1") for port in ports])
    assert served.lost() is None
    return served


def test_a_server_that_has_ended_is_named_with_the_cause() -> None:
    serve()
    served = asks(8001)
    assert served.lost() is None
    serve(**ENDED)
    assert (why := served.lost()) is not None
    assert why.startswith("the server mine, which this run asks, has ended: ")
    assert "killed by signal 9" in why


def test_a_guard_that_was_killed_took_its_server_along() -> None:
    serve()
    served = asks(8001)
    serve(guard_started="gone")
    assert (why := served.lost()) is not None
    assert "its guard, the process that watches it, was killed" in why


def test_two_servers_must_both_have_ended() -> None:
    serve()
    serve("other", 8002)
    served = asks(8001, 8002)
    serve(**ENDED)
    assert served.lost() is None
    serve("other", 8002, **ENDED)
    assert served.lost() is not None


def test_an_endpoint_of_somebody_else_may_still_answer() -> None:
    serve()
    served = asks(8001, 9000)
    serve(**ENDED)
    assert served.lost() is None


def test_a_server_on_another_machine_is_not_known_by_its_port() -> None:
    serve()
    served = asks(8001, host="10.0.0.7")
    serve(**ENDED)
    assert served.lost() is None


def test_an_old_state_file_says_nothing_of_the_server_that_has_the_port_now() -> None:
    serve(**ENDED)
    assert asks(8001).lost() is None


def test_a_server_that_was_started_again_goes_on_and_a_file_that_is_gone_says_nothing() -> None:
    serve()
    served = asks(8001)
    serve(guard_pid=1, **ENDED)
    assert served.lost() is None
    kept.path_of("mine").unlink()
    assert served.lost() is None


def test_a_server_that_is_named_by_its_address_is_recorded_as_one_that_is_named() -> None:
    argv = ["engine", "--api-key", "sk-secret", "--context", "9"]
    serve(members=[MemberState(role="engine", argv=argv, port=8001)], versions={"engine_version": "7"})

    def about(*addresses: str) -> dict[str, Any]:
        return dict(servers.find(RunOptions(base_url=addresses, data=Path("x"))).about)

    named = dict(servers.find(RunOptions(base_url=("mine",), data=Path("x"))).about)
    assert named["commands"] == ["engine --api-key HIDDEN --context 9"]
    for host in ("http://127.0.0.1:8001", "http://localhost:8001/v1", "127.0.0.1:8001"):
        assert about(host) == named
    serve("other", 8002)
    assert about("http://127.0.0.1:8001", "http://127.0.0.1:8002") == {"commands": [*named["commands"], "engine"]}
    # The wrong twins: another port, another machine, a server of somebody else beside ours, one that has ended.
    for addresses in (("http://127.0.0.1:8003",), ("http://10.0.0.7:8001",), ("http://[::1]:8003",),
                      ("http://127.0.0.1:8001", "http://127.0.0.1:9000")):  # fmt: skip
        assert about(*addresses) == {}, addresses
    serve(**ENDED)
    assert about("http://127.0.0.1:8001") == {}
