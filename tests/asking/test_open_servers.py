"""A server that everybody in the network can use is warned of, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.asking.servers import launched
from harness.asking.watching import Watcher
from harness.core.errors import ServerError
from server_launchers.spec import ServerSpec


class Listener(Watcher):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, sentence: str) -> None:
        self.warnings.append(str(sentence))


@pytest.mark.parametrize(
    ("host", "key", "warned"),
    [("0.0.0.0", None, True), ("::", None, True), ("0.0.0.0", "KEY", False), ("127.0.0.1", None, False)],
)
def test_a_server_without_a_key_on_every_network_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, key: str | None, warned: bool
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KEY", "sk-0123456789")
    monkeypatch.setenv("PATH", "")
    listener = Listener()
    spec = ServerSpec(engine="llama_cpp", model=str(tmp_path / "none.gguf"), host=host, api_key_env=key)
    with pytest.raises(ServerError):
        launched(spec, listener)
    assert ["everybody in the network" in one for one in listener.warnings] == ([True] if warned else [])
