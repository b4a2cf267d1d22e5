"""A ready server's address in a file for other machines: written as others reach it, gone with the server.

For: server_launchers.lifecycle.launch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from server_launchers.lifecycle.launch import refuse_unreachable, registered
from server_launchers.spec import ServerSpec
from tests.patience import PATIENCE_SECONDS
from tests.server_launchers.planned import planned
from tests.system.command import harness, start


@pytest.mark.parametrize("nodes", [{}, {"nodes": 2, "node_rank": 1, "head_address": "n", "tp": 2}])
def test_a_node_that_does_not_serve_registers_nothing(tmp_path: Path, nodes: dict[str, Any]) -> None:
    spec = ServerSpec(engine="vllm", model="m", host="0.0.0.0", **nodes)
    urls = planned(spec).base_urls
    with registered(tmp_path / "place" / "0.url", spec, urls):
        assert len(list(tmp_path.glob("place/*"))) == (0 if nodes else 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("llama_cpp", "m.gguf", "--register", "a.url"), "host='127.0.0.1': other machines cannot reach this address"),
        (("llama_cpp", "m.gguf", "--register", "a.url", "--detach"), "--register does not work with --detach"),
        (("stop", "--on", "ray"), "`harness run --base-url FOLDER` uses them all"),
        (
            ("llama_cpp", "m.gguf", "--on", "ray"),
            "Run `harness serve ENGINE MODEL --host 0.0.0.0 --register FOLDER/NAME.url` on each node",
        ),
        (("llama_cpp", "m.gguf", "--slurm", "2"), "`harness run --base-url FOLDER` uses them all (docs/scaling.md)"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, given: tuple[str, ...], message: str) -> None:
    done = harness(tmp_path, "serve", *given)
    assert done.code == 2
    assert message in done.err


def test_a_server_registers_as_others_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "node7")
    file = tmp_path / "place" / "0.url"
    for fields, address in (
        ({"host": "0.0.0.0"}, "http://node7:8000"),
        ({"host": "0.0.0.0", "node_address": "10.0.0.7"}, "http://10.0.0.7:8000"),
        ({"host": "::", "node_address": "fe80::1"}, "http://[fe80::1]:8000"),
        ({"host": "10.0.0.9"}, "http://10.0.0.9:8000"),
    ):
        spec = ServerSpec(**{"engine": "vllm", "model": "m"} | fields)
        refuse_unreachable(spec)
        pair = spec.but(dp=2, port=8000)
        urls = planned(pair).base_urls
        with registered(file, spec, urls):
            assert file.read_text() == f"{address}\n{address[:-1]}1\n"
            assert list(file.parent.iterdir()) == [file]
        assert not file.exists()
    for host in ("127.0.0.1", "localhost", "::1"):
        with pytest.raises(UsageError, match="other machines cannot"):
            refuse_unreachable(ServerSpec(engine="vllm", model="m", host=host))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_is_registered_while_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    program = str(Path(__file__).parent / "faulty_server.py")
    words = ["command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    words += ["--host", "0.0.0.0", "--register", "place/0.url", "--", sys.executable, program, "{port}"]
    server = start(tmp_path, ["serve", *words])
    file = tmp_path / "place" / "0.url"
    while not file.exists():
        assert server.poll() is None, server.communicate()
        time.sleep(0.02)
    assert file.read_text().startswith(f"http://{socket.gethostname()}:")
    server.send_signal(number)
    server.communicate(timeout=PATIENCE_SECONDS)
    assert not file.exists(), "nobody is sent to a server that has gone"


@pytest.mark.parametrize("moment", ["written", "held"])
def test_an_interrupt_leaves_no_address(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the file is there, and while the server is held."""
    file = tmp_path / "place" / "0.url"
    real = os.replace

    def interrupted(source: Any, target: Any) -> None:
        real(source, target)
        assert file.exists()
        raise KeyboardInterrupt

    if moment == "written":
        monkeypatch.setattr(os, "replace", interrupted)
    spec = ServerSpec(engine="vllm", model="m", host="10.0.0.9")
    with contextlib.suppress(KeyboardInterrupt), registered(file, spec, ["http://a/v1"]):
        assert (moment, file.exists()) == ("held", True)
        raise KeyboardInterrupt
    assert not file.exists()
