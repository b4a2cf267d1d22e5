"""A Ray cluster of several node processes on this machine; left out of plain `pytest` for what it installs."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import environments

CHECKOUT = Path(__file__).resolve().parents[2]
NODES = 3


class Nodes:
    """The cluster, with a client of it in the same environment."""

    def __init__(self, python: Path, state: Path) -> None:
        self.python = python
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "RAY_"))}
        self.environment = environment | {"PYTHONPATH": str(CHECKOUT), "RAY_USAGE_STATS_ENABLED": "0", "NO_COLOR": "1"}
        self.environment["HARNESS_STATE"] = str(state)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        self.client_address = f"ray://127.0.0.1:{port}"
        words = [python, "-m", "tests.on_ray.nodes", str(NODES), str(port)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(words, cwd=CHECKOUT, env=self.environment, text=True, **pipes)
        self.environment["RAY_ADDRESS"] = self._answer()

    def tell(self, command: str) -> int:
        """How many tasks ran when the command came."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return int(self._answer())

    def harness(self, folder: Path, *words: str) -> subprocess.Popen[str]:
        """`harness WORDS`, begun."""
        argv = [str(self.python), "-m", "harness", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=folder, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def python_says(self, folder: Path, program: str) -> str:
        """What a program of a client of the cluster prints."""
        argv = [str(self.python), "-c", program]
        done = subprocess.run(argv, cwd=folder, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        """End the cluster."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("cluster: "):
                return line.removeprefix("cluster: ").strip()
        raise AssertionError("the cluster ended")


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A cluster of `NODES` nodes with a processor each, and a head without."""
    cluster = Nodes(environments.python_of(environments.RAY), tmp_path_factory.mktemp("state"))
    yield cluster
    cluster.close()
