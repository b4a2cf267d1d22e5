"""Sandboxes of a SandboxFusion server, given by its URL (`http://HOST:8080`).

Protocol: bytedance/SandboxFusion, sandbox/server/sandbox_api.py (POST /run_code) and server.py (GET /v1/ping).

    request   language, code, stdin, run_timeout, fetch_files
    reply     status: Success | Failed | SandboxError, message, run_result, files: path → content in base64

A request does one job: `code` is the sandbox of `inside` as a text (`carried`), `stdin` the job and its tests, and the
report comes back in a file, since the server keeps little of what a program prints. The file is sealed with a random
key that goes before the job: a program that may write the file can forge no report. Programs are confined there as
everywhere (`inside.confinement`), within the server's own isolation, and limits are of CPU time. So the server's own
verdicts (`status`, `return_code`, POST /submit) decide nothing: what is no report is a failure of the sandbox.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import httpx
import msgspec

from harness.client.address.endpoint import Endpoint, quote_safely, secrets_of
from harness.client.facts.page import http_client
from harness.core import codec, http_get
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.extensions.answers.program.carried import python_text
from harness.extensions.answers.program.cells import SandboxFailedError
from harness.extensions.answers.program.inside import frames

KEY_VARIABLE = "HARNESS_SANDBOX_KEY"
"""Environment variable with the key for a gateway before the server; the server itself needs no key."""

REPORT = "report"
"""File of the report, in the folder that the server makes for each request."""

_ATTEMPTS = 2
"""Number of times that a job is tried if its sandbox fails. Within each try, `http_get` repeats a request after a bad
status or a lost connection."""

_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS = 20.0

_START_SECONDS = 30.0
_RUN_FACTOR = 4.0
"""The server ends a request after `_START_SECONDS` plus `_RUN_FACTOR` times the limits of all cases of the job. The
factor leaves room, since the limits count CPU time and the server counts wall time."""

_MAX_RUN_SECONDS = 3600.0
_MAX_REPLY_BYTES = 128 * 1024 * 1024

_REFUSED = frozenset({400, 401, 403, 404, 405, 422})
"""HTTP statuses that end the grading, because every further request would get the same: the address is no SandboxFusion
server, or it refuses the key."""


class _RunResult(msgspec.Struct):
    status: str = ""
    stderr: str | None = None


class _Reply(msgspec.Struct):
    status: str
    message: str = ""
    run_result: _RunResult | None = None
    files: dict[str, str] = {}


class Fusion:
    """A SandboxFusion server as a sandbox for all threads: each job is a request of its own."""

    def __init__(self, url: str, sleep: Callable[[float], None] = time.sleep) -> None:
        try:
            self._endpoint = Endpoint.parse(url, os.environ.get(KEY_VARIABLE) or None)
        except UsageError as error:
            raise UsageError("expected bwrap, docker, podman, or http://HOST[:PORT] of a SandboxFusion server",
                             field="sandbox") from error  # fmt: skip
        self._url = self._endpoint.base_url.removesuffix("/v1") + "/run_code"
        self._sleep = sleep

    @cached_property
    def name(self) -> str:
        """The sandbox's name in grades: "fusion" and the server's version of Python.

        Raises `UsageError` if the server cannot be used.
        """
        try:
            ready = self._messages([], _START_SECONDS)[0]
        except SandboxFailedError as error:
            raise UsageError(f"the sandbox at {self._shown} does not work: {error}; nothing was executed") from error
        return f"fusion python{visible(str(ready.get('ready')), 40)}"

    @property
    def _shown(self) -> str:
        return visible(self._url, 200)

    def do(self, job: dict[str, Any], work: dict[str, Any]) -> dict[str, Any]:
        """Do a job and return its report. work: the tests, which the server gets together with the job.

        Raises `SandboxFailedError` after `_ATTEMPTS` tries, `UsageError` if the server cannot be used at all.
        """
        limits = job["limits"]
        seconds = min(_START_SECONDS + _RUN_FACTOR * (limits["cpu_total"] + limits["sleep"]), _MAX_RUN_SECONDS)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                # The order of messages: ready; the program has begun, or ended too early; the report; the job is over.
                _, *reports = self._messages([job, work], seconds)
                if reports and "end" in reports[0]:
                    return {**reports[0], "begun": False}
                if len(reports) < 2 or "over" in reports[1]:
                    raise SandboxFailedError("the job ended without a report")
                return reports[1]
            except SandboxFailedError as error:
                if attempt == _ATTEMPTS:
                    raise SandboxFailedError(str(error)) from error
                self._sleep(_PAUSE_SECONDS)
        raise AssertionError

    def close(self) -> None:
        """Do nothing: no connection is open between two requests."""

    def _messages(self, sent: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
        """Send messages to a new sandbox on the server and return its messages, in order.

        sent: a job and its tests; empty to see whether the server works. seconds: time for the request. Raises
        `SandboxFailedError`, or `UsageError` if the server cannot be used at all.
        """
        key = secrets.token_bytes(frames.KEY_BYTES)
        data = b"j" + b"".join(map(frames.message, sent)) if sent else b""
        request = {
            "language": "python", "code": python_text("arrival", f"serve_once({REPORT!r})", fresh=True),
            "stdin": base64.b64encode(key + data).decode(), "run_timeout": seconds, "fetch_files": [REPORT],
        }  # fmt: skip
        reply = self._reply(codec.encode(request), seconds)
        if REPORT not in reply.files:
            result = reply.run_result
            run_message = (result.stderr or result.status) if result is not None else ""
            words = reply.message or run_message or reply.status
            last = quote_safely(words.strip().rpartition("\n")[2], secrets_of(self._endpoint))
            raise SandboxFailedError(f"the server sent no report ({visible(reply.status, 40)}): {last}")
        try:
            report = base64.b64decode(reply.files[REPORT], validate=True)
            seal, data = report[: frames.SEAL_BYTES], report[frames.SEAL_BYTES :]
            if not hmac.compare_digest(seal, hmac.digest(key, data, "sha256")):
                raise SandboxFailedError("the server sent a report whose signature is not the sandbox's")
            return frames.messages(data)
        except (ValueError, frames.ClosedError) as error:
            raise SandboxFailedError(f"the server sent a report that cannot be read: {error}") from error

    def _reply(self, content: bytes, seconds: float) -> _Reply:
        """Send one request with the body `content` and return the server's reply. seconds: time for the run there.

        Raises `UsageError` if the server cannot be used at all, `SandboxFailedError` if only this request failed.
        """
        try:
            with http_client(self._endpoint, _CONNECT_SECONDS, None) as client:
                client.timeout = httpx.Timeout(_CONNECT_SECONDS, read=seconds + _START_SECONDS)
                page = http_get.get(
                    client, self._url, max_bytes=_MAX_REPLY_BYTES, body_s=seconds + _START_SECONDS, content=content
                )
        except (httpx.HTTPError, OSError) as error:
            words = quote_safely(str(error), secrets_of(self._endpoint)) or type(error).__name__
            if isinstance(error, httpx.ConnectError):
                raise UsageError(f"no sandbox answers at {self._shown} ({words}); nothing more was executed") from error
            raise SandboxFailedError(f"{self._shown}: {words}") from error
        if page.status in _REFUSED:
            raise UsageError(
                f"{self._shown} answers {page.status}, so it is no SandboxFusion server, or wants another "
                f"key: set {KEY_VARIABLE}; nothing was executed"
            )
        if page.status != 200 or not page.whole:
            raise SandboxFailedError(f"{self._shown} answers {page.status}{'' if page.whole else ', cut off'}")
        try:
            return codec.decode(page.body, _Reply)
        except codec.DecodeError as error:
            raise SandboxFailedError(f"{self._shown} sent what no SandboxFusion server sends: {error}") from error
