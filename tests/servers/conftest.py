"""Real engines on the CPU of this machine: `pytest tests/servers`, which plain `pytest` leaves out for its length."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
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
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):  # gone since the listing
            if library.search(Path(f"/proc/{process.pid}/maps").read_text()) and not of_another_session(process):
                pids.append(process.pid)
    return pids


def of_another_session(process: psutil.Process) -> bool:
    """Whether another session's state folder stands in the environment of this process, or of what started it."""
    session = Path(os.environ["HARNESS_STATE"]).parent
    with contextlib.suppress(psutil.Error):
        for started_by in (process, *process.parents()):
            if folder := started_by.environ().get("HARNESS_STATE"):
                return session not in Path(folder).parents
    return False
