"""The real server of transformers on the CPU, started by its launcher."""

from __future__ import annotations

from pathlib import Path

from server_launchers.spec import ServerSpec
from tests.servers.running import engine, harness, kill, known, launched, samples, wait_for_restart
from tests.servers.specs import OFFLINE
from tests.servers.streams import ask


def test_it_streams_without_done_serves_a_run_and_comes_back(
    transformers: Path, models: Path, private_state: Path, tmp_path: Path
) -> None:
    model = str(models / "scripted")
    spec = ServerSpec(
        engine="transformers", model=model, python=transformers, device="cpu", environment=OFFLINE, restarts=1
    )
    with launched(spec) as server:
        reply = ask(server)
        assert (reply.finish, reply.done, reply.broken) == (["stop"], False, None)
        assert r"\boxed{42}" in reply.text()
        assert [len(event["choices"]) for event in reply.events if event.get("usage")] == [1]
        assert ask(server, no_such_field=1).status == 422
        words = ("run", "demo:1", "--limit", "4", "--out", "run", "--no-canary", "--max-tokens", "64")
        done = harness(tmp_path, *words, "--base-url", server.base_urls[0], "--model", server.model)
        assert done.code == 0, done.err
        assert len(samples(tmp_path / "run")) == 4
        assert known(server).versions["transformers"] == "5.23.0"
        kill(engine(server).pid)
        wait_for_restart(server, 1)
        assert ask(server).finish == ["stop"]
