"""Mistakes about places: the sentence says what is there and what to give instead.

For: harness.cli.dry_run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.asking.options.run import RunOptions
from harness.asking.prepare import questions_of, server_of
from harness.core.errors import ServerError, StoreError, UsageError
from harness.presets import preset as presets
from harness.testing import CLOSE, FakeServer, Request, completion, http, models
from server_launchers.engines import table as engines


def answer(request: Request) -> object:
    return [models("m")] if request.method == "GET" else completion("4")


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", CLOSE])
def test_https_at_a_port_of_plain_http(reply: object, tmp_path: Path) -> None:
    # A server that reads a handshake as a request line answers in plain text, or hangs up.
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.recv(4096)
        if isinstance(reply, bytes):
            connection.sendall(reply)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with listener, pytest.raises(ServerError, match=r"does not speak https .* base_url=http://127"):
        harness.run("demo", base_url=url, model="m", out=tmp_path / "run")


def test_https_at_a_server_of_plain_http_that_waits_for_more() -> None:
    import socket

    from harness.client.address.endpoint import Endpoint
    from harness.client.facts import page

    with socket.create_server(("127.0.0.1", 0)) as listener:
        plain = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        secure = plain.replace("http", "https")
        with pytest.raises(ServerError, match=f"if it speaks http, give base_url={plain}"):
            page.get(Endpoint(secure), f"{secure}/models", timeout=1.0)


def test_an_empty_folder_as_data(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"the folder .*empty holds no data files; expected one of \.jsonl"):
        harness.run(data=tmp_path / "empty", base_url="http://127.0.0.1:9", model="m")


def test_a_folder_of_other_things_as_the_run_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with FakeServer(answer) as server:  # type: ignore[arg-type]
        with pytest.raises(StoreError, match=r"no run folder and not empty \(it holds notes\.txt\)"):
            harness.run("demo:1", base_url=server.base_url, limit=1, out=tmp_path, canary=False)
        assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
        (tmp_path / "new").mkdir()
        for _ in range(2):
            run = harness.run("demo:1", base_url=server.base_url, limit=1, out=tmp_path / "new", canary=False)
            assert run.outcome.complete


@pytest.mark.parametrize(
    ("preset", "model"), [("limo", "GAIR/LIMO"), ("openthinker3", "open-thoughts/OpenThinker3-7B")]
)
def test_a_preset_that_fills_its_models_context_leaves_room_for_the_prompt(preset: str, model: str) -> None:
    options = RunOptions.of(benchmarks="demo", preset=preset, model=model, serve="vllm")
    assert server_of(questions_of(options)).context == 32768
    refused = options.but(max_tokens=32768)
    with pytest.raises(ServerError, match="32768"):
        server_of(questions_of(refused))


@pytest.mark.parametrize("engine", [name for name, each in engines.every().items() if each.assumed_version])
@pytest.mark.parametrize("preset", [name for name in presets.names() if presets.load(name).models])
def test_no_preset_refuses_itself_with_a_server(preset: str, engine: str) -> None:
    model = presets.load(preset).models[0].replace("*", "x")
    spec = server_of(questions_of(RunOptions.of(benchmarks="demo", preset=preset, model=model, serve=engine)))
    known = presets.load(preset).reasoning_parser
    known_engine = engines.by_name(spec.engine)
    takes = "reasoning_parser" in known_engine.takes
    assert spec.reasoning_parser == (known.of(known_engine.parsers) if known and takes else None)


def test_a_missing_page_is_no_tls_matter(tmp_path: Path) -> None:
    with (
        FakeServer(lambda _: [http(404, {})]) as server,
        pytest.raises(ServerError, match=r"HTTP 404.*usually ends in /v1"),
    ):
        harness.run("demo", base_url=server.base_url, model="m", out=tmp_path / "run")
