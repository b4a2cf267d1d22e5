"""Public hosts through a proxy that the environment names: tunnels for https, forwarded pages for http.

For: harness.client.address.endpoint.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from harness.client.address.endpoint import Endpoint, proxy_for
from harness.client.facts.discovery import Pages, list_models
from harness.core.errors import ServerError, UsageError
from harness.testing import CLOSE, FakeServer, serving
from tests.client.test_transports import KEY, MAKERS, asked_at, failed, replied


class Tunnel:
    """A context manager. heads: the request heads that clients sent."""

    def __init__(self, port: int) -> None:
        self.heads: list[str] = []
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:pa%3Ass@127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Tunnel:
        self._threads[0].start()
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                head = b""
                while b"\r\n\r\n" not in head and (data := client.recv(65536)):
                    head += data
                self.heads.append(head.decode("latin-1"))
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open.append(server)
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                for source, target in ((client, server), (server, client)):
                    thread = threading.Thread(target=_pump, args=(source, target), daemon=True)
                    self._threads.append(thread)
                    thread.start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


HOST = "api.example.test"
CREDENTIALS = f"Basic {base64.b64encode(b'user:pa:ss').decode()}"


answer = serving("forty-two", "m")


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """PEM file of who signed the certificate of `HOST`."""
    return tmp_path / "ca.pem"


@pytest.fixture
def hosted(authority: Path) -> Iterator[FakeServer]:
    """The server that answers as `HOST`, over TLS."""
    signer = trustme.CA()
    signer.cert_pem.write_to_path(str(authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    signer.issue_cert(HOST).configure_cert(context)
    with FakeServer(answer, tls=context) as server:
        yield server


@pytest.fixture
def tunnel(hosted: FakeServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tunnel]:
    for name in ("HTTP_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Tunnel(hosted.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        yield proxy


@pytest.mark.parametrize("name", ["http", "openai"])
def test_https_goes_through_a_tunnel_that_never_sees_the_key(
    name: str, hosted: FakeServer, tunnel: Tunnel, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert replied(asked_at(MAKERS[name], f"https://{HOST}")).text == "forty-two"
    (request,) = hosted.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert "proxy-authorization" not in request.headers
    (head,) = tunnel.heads
    assert head.startswith(f"CONNECT {HOST}:443 ")
    assert CREDENTIALS in head
    assert KEY not in head


def test_the_list_of_models_goes_through_the_tunnel(
    hosted: FakeServer, tunnel: Tunnel, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint.parse(f"https://{HOST}", KEY)
    with monkeypatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(authority))
        assert [one.id for one in list_models(endpoint, Pages())] == ["m"]
    assert CREDENTIALS in tunnel.heads[0]
    assert KEY not in tunnel.heads[0]
    assert hosted.requests[0].headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(ServerError, match=rf"cannot establish a trusted TLS connection to {HOST}:443 .*SSL_CERT_FILE"):
        list_models(endpoint, Pages())


def test_plain_pages_are_fetched_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(answer) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.replace("//", "//user:pa%3Ass@").removesuffix("/v1"))
        assert [one.id for one in list_models(Endpoint.parse(f"http://{HOST}:8000"), Pages())] == ["m"]
    (request,) = proxy.requests
    assert request.path == f"http://{HOST}:8000/v1/models"
    assert request.headers["host"] == f"{HOST}:8000"
    assert request.headers["proxy-authorization"] == CREDENTIALS


@pytest.mark.parametrize(
    ("url", "is_proxied"),
    [
        ("https://api.example.com", True),
        ("https://one.example", True),
        ("http://api.example.com", False),
        ("https://internal.example", False),
        ("https://a.other.example", False),
        ("https://one.example:8443", False),
        ("https://[2600:1f18::5]:8000", False),
        ("https://[2600:1f18::6]:8000", True),
        ("https://10.0.0.7", False),
        ("https://localhost", False),
        ("https://[::1]", False),
    ],
)
def test_a_proxy_variable_serves_public_hosts_only(url: str, is_proxied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "http://user:secret@proxy:3128"
    monkeypatch.setenv("HTTPS_PROXY", "http://other")
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "internal.example, .other.example, one.example:8443, 2600:1f18::5")
    assert proxy_for(Endpoint.parse(url)) == (proxy if is_proxied else None)
    monkeypatch.setenv("no_proxy", "*")
    assert proxy_for(Endpoint.parse(url)) is None
    monkeypatch.setenv("no_proxy", "foo, *")
    assert proxy_for(Endpoint.parse(url)) is None


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("http://user:geh#eim@127.0.0.1:3128", "percent-encode its password"),
        ("http://127.0.0.1:geheim", "has an invalid port"),
        ("https://user:geheim@127.0.0.1:3128", "is not an http:// proxy"),
        ("socks5://127.0.0.1:1080", "is not an http:// proxy"),
    ],
)
def test_unusable_proxies_are_refused_safely(monkeypatch: pytest.MonkeyPatch, proxy: str, message: str) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(UsageError, match=message) as caught:
        list_models(Endpoint.parse(f"https://{HOST}"), Pages())
    assert "geh" not in str(caught.value)


def test_a_proxy_that_is_gone_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(answer) as proxy:
        port = proxy.port
    monkeypatch.setenv("https_proxy", f"http://user:geheim@127.0.0.1:{port}")
    with pytest.raises(ServerError, match=f"{HOST}:443 through the proxy 127.0.0.1:{port}") as caught:
        list_models(Endpoint.parse(f"https://{HOST}"), Pages())
    assert "geheim" not in str(caught.value)


def test_a_proxy_that_repeats_its_password_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(lambda request: [f"{request.headers['proxy-authorization']}\r\n\r\n".encode(), CLOSE]) as proxy:
        monkeypatch.setenv("https_proxy", f"http://user:geheim@127.0.0.1:{proxy.port}")
        failure = failed(asked_at(MAKERS["http"], f"https://{HOST}"))
    assert (failure.kind, "Basic" in failure.message) == ("refused", False), failure
