"""A hub of our own with an empty cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants  # noqa: F401 - it reads its environment at import: before any test changes it
import pytest

from tests.benchmarks.hub_server import Hub, serve


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A running hub that the environment points at; its cache is empty and no token is set."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serve() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running
