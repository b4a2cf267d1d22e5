"""A local server that speaks the part of the hub's protocol that downloads use, serving files from memory."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Dataset:
    """One data set. commits: files by path for each commit, the last one the newest. gated: needs the token.

    broken_off: downloads that end after half of the file.
    """

    commits: dict[str, dict[str, bytes]]
    configs: list[dict[str, Any]] = field(default_factory=list)
    gated: bool = False
    redirected: bool = False
    broken_off: int = 0

    @property
    def newest(self) -> str:
        return list(self.commits)[-1]


@dataclass
class Hub:
    """The server's state. log: (method, path, authorization) of each request."""

    url: str = ""
    datasets: dict[str, Dataset] = field(default_factory=dict)
    token: str = "hf_right"
    approved: bool = True
    broken: int | None = None
    log: list[tuple[str, str, str | None]] = field(default_factory=list)


@contextmanager
def serve() -> Iterator[Hub]:
    """A running hub on a free port of the loopback."""
    hub = Hub()

    class Handler(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        token = self.headers.get("Authorization")
        self.state.log.append((self.command, path, token))
        if self.state.broken:
            return self._error(self.state.broken, "", body)
        if path.startswith("/cdn/"):
            return self._cdn(path, body)
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"] and parts[4:5] == ["tree"]:
            return self._tree(self._dataset("/".join(parts[2:4])), parts[5], token, body)
        if parts[:2] == ["api", "datasets"] and len(parts) >= 4:
            dataset, revision = self._dataset("/".join(parts[2:4])), parts[5] if parts[4:5] == ["revision"] else "main"
            return self._info("/".join(parts[2:4]), dataset, revision, token, body)
        if parts[:1] == ["datasets"] and parts[3:4] == ["resolve"]:
            return self._resolve(
                "/".join(parts[1:3]), self._dataset("/".join(parts[1:3])), parts[4], "/".join(parts[5:]), token, body
            )
        return self._error(404, "", body)

    def _dataset(self, name: str) -> Dataset | None:
        return self.state.datasets.get(name)

    def _refused(self, dataset: Dataset | None, token: str | None, body: bool) -> bool:
        is_authorised = token == f"Bearer {self.state.token}"
        if dataset is None:  # the hub does not tell strangers whether a private set exists
            self._error(404 if is_authorised else 401, "RepoNotFound", body)
        elif dataset.gated and not is_authorised:
            self._error(401, "GatedRepo", body)
        elif dataset.gated and not self.state.approved:
            self._error(403, "GatedRepo", body)
        else:
            return False
        return True

    def _info(self, name: str, dataset: Dataset | None, revision: str, token: str | None, body: bool) -> None:
        public = dataset is not None and dataset.gated  # the listing of a gated set is
        if not public and self._refused(dataset, token, body):
            return None
        assert dataset is not None
        commit = dataset.newest if revision == "main" else revision
        if commit not in dataset.commits:
            return self._error(404, "RevisionNotFound", body)
        info = {
            "id": name,
            "sha": commit,
            "private": False,
            "gated": "auto" if dataset.gated else False,
            "tags": [],
            "siblings": [{"rfilename": file} for file in dataset.commits[commit]],
            "cardData": {"configs": dataset.configs},
        }
        return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"}, body)

    def _tree(self, dataset: Dataset | None, commit: str, token: str | None, body: bool) -> None:
        if self._refused(dataset, token, body):
            return None
        assert dataset is not None
        files = [
            {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for path, data in dataset.commits[commit].items()
        ]
        return self._send(200, json.dumps(files).encode(), {"Content-Type": "application/json"}, body)

    def _resolve(
        self, name: str, dataset: Dataset | None, revision: str, file: str, token: str | None, body: bool
    ) -> None:
        if self._refused(dataset, token, body):
            return None
        assert dataset is not None
        commit = dataset.newest if revision == "main" else revision
        if commit not in dataset.commits:
            return self._error(404, "RevisionNotFound", body)
        if file not in dataset.commits[commit]:
            return self._error(404, "EntryNotFound", body, {"X-Repo-Commit": commit})
        data = dataset.commits[commit][file]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha256(data).hexdigest()}"'}
        if dataset.redirected:
            headers |= {
                "X-Linked-Etag": headers["ETag"],
                "X-Linked-Size": str(len(data)),
                "Location": f"{self.state.url.replace('127.0.0.1', 'localhost')}/cdn/{name}/{commit}/{file}",
            }
            return self._send(302, b"", headers, body)
        if self.headers.get("Range"):
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            headers |= {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            return self._send(206, data[start:], headers, body, broken_off=dataset)
        return self._send(200, data, headers, body, broken_off=dataset)

    def _cdn(self, path: str, body: bool) -> None:
        owner, name, commit, file = path.removeprefix("/cdn/").split("/", 3)
        data = self.state.datasets[f"{owner}/{name}"].commits[commit][file]
        return self._send(200, data, {"ETag": f'"{hashlib.sha256(data).hexdigest()}"'}, body)

    def _error(self, status: int, code: str, body: bool, headers: dict[str, str] | None = None) -> None:
        extra = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        return self._send(status, b'{"error": "no"}', extra | (headers or {}), body)

    def _send(
        self, status: int, data: bytes, headers: dict[str, str], body: bool, broken_off: Dataset | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body and broken_off is not None and broken_off.broken_off:
            broken_off.broken_off -= 1
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif body:
            self.wfile.write(data)
