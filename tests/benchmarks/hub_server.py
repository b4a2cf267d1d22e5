"""A local server that speaks the part of the hub's protocol that downloads use, serving files from memory."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from harness.testing import CLOSE, FakeServer, Request, Step, http

FIRST, SECOND = "a" * 40, "b" * 40
"""Commits."""


def jsonl(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A file of JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A file of Parquet."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([*rows]), buffer)
    return buffer.getvalue()


def arrow(rows: Iterable[Mapping[str, Any]], writer: Any) -> bytes:
    """A file of Arrow. writer: `new_file` or `new_stream` of `pyarrow.ipc`."""
    buffer, table = io.BytesIO(), pyarrow.Table.from_pylist([*rows])
    with writer(buffer, table.schema) as file:
        file.write_table(table, max_chunksize=2)
    return buffer.getvalue()


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


@dataclass
class Dataset:
    """One data set. commits: files by path for each commit, the last one the newest. gated: needs the token.

    redirected: its files lie on another host. broken_off: downloads that end after half of the file.
    """

    commits: dict[str, dict[str, bytes]]
    configs: list[dict[str, Any]] = field(default_factory=list)
    gated: bool = False
    redirected: bool = False
    broken_off: int = 0


@dataclass
class Hub:
    """The server's state. log: (method, path, authorization) of each request."""

    url: str = ""
    datasets: dict[str, Dataset] = field(default_factory=dict)
    token: str = "hf_right"
    approved: bool = True
    broken: int | None = None
    log: list[tuple[str, str, str | None]] = field(default_factory=list)

    def answer(self, request: Request) -> Iterator[Step]:
        path, token = unquote(urlsplit(request.path).path), request.headers.get("authorization")
        self.log.append((request.method, path, token))
        status, body, headers, dataset = self._reply(path.strip("/").split("/"), token)
        if status == 200 and (start := request.headers.get("range", "")[6:-1]):
            headers |= {"content_range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
            status, body = 206, body[int(start) :]
        whole = http(status, body, **headers)
        if request.method == "HEAD":
            yield whole[: len(whole) - len(body)]
        elif dataset and dataset.broken_off:
            dataset.broken_off -= 1
            yield whole[: len(whole) - len(body) + len(body) // 2]
            yield CLOSE
        else:
            yield whole

    def _reply(self, parts: list[str], token: str | None) -> tuple[int, bytes, dict[str, str], Dataset | None]:
        """(status, body, headers, data set whose file the body is)."""

        def error(status: int, code: str = "") -> tuple[int, bytes, dict[str, str], None]:
            return status, b'{"error": "no"}', {"x_error_code": code, "x_error_message": code} if code else {}, None

        if self.broken:
            return error(self.broken)
        if parts[0] == "cdn":
            data = self.datasets["/".join(parts[1:3])].commits[parts[3]]["/".join(parts[4:])]
            return 200, data, {"etag": f'"{hashlib.sha256(data).hexdigest()}"'}, None
        listing = parts[:2] == ["api", "datasets"]
        if not listing and parts[3:4] != ["resolve"]:
            return error(404)
        name = "/".join(parts[2:4] if listing else parts[1:3])
        dataset, is_authorised = self.datasets.get(name), token == f"Bearer {self.token}"
        if dataset is None:  # the hub does not tell strangers whether a private set exists
            return error(404 if is_authorised else 401, "RepoNotFound")
        if dataset.gated and not listing and not (is_authorised and self.approved):  # the listing is public
            return error(403 if is_authorised else 401, "GatedRepo")
        revision = (parts[5:6] or ["main"])[0] if listing else parts[4]
        commit = [*dataset.commits][-1] if revision == "main" else revision
        if commit not in dataset.commits:
            return error(404, "RevisionNotFound")
        files = dataset.commits[commit]
        if listing:
            info = {
                "id": name,
                "sha": commit,
                "private": False,
                "gated": "auto" if dataset.gated else False,
                "tags": [],
                "siblings": [{"rfilename": file} for file in files],
                "cardData": {"configs": dataset.configs},
            }
            return 200, json.dumps(info).encode(), {"content_type": "application/json"}, None
        if (file := "/".join(parts[5:])) not in files:
            status, body, headers, _ = error(404, "EntryNotFound")
            return status, body, headers | {"x_repo_commit": commit}, None
        headers = {"x_repo_commit": commit, "etag": f'"{hashlib.sha256(files[file]).hexdigest()}"'}
        if not dataset.redirected:
            return 200, files[file], headers, dataset
        location = f"{self.url.replace('127.0.0.1', 'localhost')}/cdn/{name}/{commit}/{file}"
        linked = {"x_linked_etag": headers["etag"], "x_linked_size": str(len(files[file])), "location": location}
        return 302, b"", headers | linked, None


@contextmanager
def serve() -> Iterator[Hub]:
    """A running hub on a free port of the loopback."""
    hub = Hub()
    with FakeServer(hub.answer) as server:
        hub.url = server.base_url.removesuffix("/v1")
        yield hub
