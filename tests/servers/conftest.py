"""Real engines on the CPU of this machine: `pytest tests/servers`, which plain `pytest` leaves out for its length."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.machine import processes
from tests.embedded import THINKING_TEMPLATE
from tests.servers import environments


@pytest.fixture(scope="session")
def vllm() -> Path:
    """Interpreter of the environment that holds vLLM."""
    return environments.python_of(environments.VLLM)


@pytest.fixture(scope="session")
def sglang() -> Path:
    """Interpreter of the environment that holds SGLang."""
    return environments.python_of(environments.SGLANG)


@pytest.fixture(scope="session")
def transformers() -> Path:
    """Interpreter of the environment that holds transformers and its server."""
    return environments.python_of(environments.TRANSFORMERS)


@pytest.fixture(scope="session")
def models(whole_smollm2: Path) -> Path:
    """Folder with the model `scripted`, see `make_models`."""
    return environments.models(whole_smollm2, THINKING_TEMPLATE)


@pytest.fixture(scope="module", autouse=True)
def nothing_survives(private_state: Path) -> Iterator[None]:
    """No process of any engine is alive once a module's servers have been stopped."""
    yield
    left = [processes.describe(pid) for pid in engine_processes()]
    assert not left


def engine_processes() -> list[int]:
    """Living processes of this session that have loaded a library of our environments.

    Engines overwrite their environment and their command line with a title, but not what they have mapped.
    """
    library = re.compile(rf"{re.escape(str(environments.folder()))}/[^/\n]+/lib/")
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and processes.start_of(int(entry.name)) is not None:
            try:
                mapped = (entry / "maps").read_text()
            except OSError:
                continue
            if library.search(mapped) and not of_another_session(int(entry.name)):
                pids.append(int(entry.name))
    return pids


def of_another_session(pid: int) -> bool:
    """Whether the guard that keeps this process keeps its state in another session's temporary folder."""
    session = Path(os.environ["HARNESS_STATE"]).parent
    try:
        while pid > 1:
            entry = Path("/proc") / str(pid)
            if b"server_launchers.keeping.guard" in (entry / "cmdline").read_bytes():
                variables = dict(
                    variable.partition(b"=")[::2] for variable in (entry / "environ").read_bytes().split(b"\0")
                )
                return session not in Path(os.fsdecode(variables.get(b"HARNESS_STATE", b"/"))).parents
            pid = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        pass
    return False
