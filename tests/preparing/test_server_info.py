"""The look at the servers before the first sample: one deadline for all of them, whatever they send; their keys; and
the warning of one that is started for everybody in the network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness.client.facts.server_info import ServerInfo
from harness.core.errors import ServerError, UsageError
from harness.options.run import RunOptions
from harness.preparing import servers
from harness.preparing.server_start import launched
from harness.preparing.servers import discover
from harness.progress.watching import Collecting
from harness.testing import FakeServer, Pause, Request, Step, serving
from server_launchers.spec import ServerSpec
from tests.patience import PATIENCE_SECONDS


def interim(_: Request) -> Iterable[Step]:
    while True:
        yield b"HTTP/1.1 102 Processing\r\n\r\n"
        yield Pause(0.05)


def a_header_now_and_then(_: Request) -> Iterable[Step]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X: y\r\n"
        yield Pause(0.05)


well = serving("", "m", "n")


@contextlib.contextmanager
def options(*answers: object) -> Iterator[RunOptions]:
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(FakeServer(answer)).base_url for answer in answers]  # type: ignore[arg-type]
        yield RunOptions(base_url=urls, model="m")


DEADLINES_SECONDS = (1.5, 20.0, 80.0)
"""Of a look: a longer one only where a busy machine was late with the answer that has an end."""


def look(monkeypatch: pytest.MonkeyPatch, *answers: object) -> tuple[ServerInfo, Collecting]:
    """At servers of which the last lists its models."""
    for seconds in DEADLINES_SECONDS:
        monkeypatch.setattr("harness.client.facts.server_info.DISCOVERY_S", seconds)
        watcher = Collecting()
        with options(*answers) as run_options, contextlib.suppress(ServerError):
            server_info = discover(servers.find(run_options), run_options, watcher)
            if server_info.each[-1].failure is None:
                return server_info, watcher
    pytest.fail("the server that answers was not taken")


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_servers_without_an_end_share_one_deadline_and_the_others_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    server_info, watcher = look(monkeypatch, *[interim, a_header_now_and_then] * 4, well)
    assert [one.failure is None for one in server_info.each] == [False] * 8 + [True]
    assert len(watcher.warnings) == 8


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_a_server_whose_own_pages_have_no_end_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []

    def answer(request: Request) -> Iterable[Step]:
        asked_for.append(request.path)
        return well(request) if request.path.endswith("/models") else interim(request)

    server_info, _ = look(monkeypatch, answer)
    assert server_info.model == "m"
    assert server_info.concurrency is None


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_where_none_comes_to_an_end_the_reason_is_told_and_a_named_model_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.client.facts.server_info.DISCOVERY_S", 3.0)
    watcher = Collecting()
    with options(interim, interim) as run_options:
        server_info = discover(servers.find(run_options), run_options, watcher)
        assert [one.failure for one in server_info.each] == [None, None]
        assert all("did not finish its response" in said and "m is used anyway" in said for said in watcher.warnings)
        run_options = RunOptions(base_url=run_options.base_url)
        with pytest.raises(ServerError, match="did not finish its response"):
            discover(servers.find(run_options), run_options, Collecting())


def test_the_number_of_pages_does_not_grow_with_the_models_that_are_listed() -> None:
    def counted(n: int) -> int:
        with FakeServer(serving("", "m", *(f"m{i}" for i in range(n)))) as server:
            run_options = RunOptions(base_url=[server.base_url], model="m")
            discover(servers.find(run_options), run_options, Collecting())
            return len(server.requests)

    assert counted(2) == counted(2000)


KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("text", [KEY, f"\ufeff{KEY}\r\n", f" {KEY}\u200b"])
def test_the_ends_of_a_key_lose_invisible_characters(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MY_KEY", text)
    key = servers._from_environment("MY_KEY")
    assert key is not None
    assert key.reveal() == KEY


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ("\u2014", r"U\+2014"),
        ("\u200b", r"U\+200B"),
        ("\x07", r"U\+0007"),
    ],
)
def test_what_no_header_can_carry_is_named(monkeypatch: pytest.MonkeyPatch, odd: str, named: str) -> None:
    monkeypatch.setenv("MY_KEY", f"sk-012345{odd}6789abcdef")
    with pytest.raises(UsageError, match=f"the environment variable MY_KEY contains {named}") as refused:
        servers._from_environment("MY_KEY")
    assert "012345" not in str(refused.value)


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
    listener = Collecting()
    spec = ServerSpec(engine="llama_cpp", model=str(tmp_path / "none.gguf"), host=host, api_key_env=key)
    with pytest.raises(ServerError):
        launched(spec, listener)
    assert ["anyone on the network" in one for one in listener.warnings] == ([True] if warned else [])
