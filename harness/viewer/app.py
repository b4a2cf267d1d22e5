"""The viewer's server: serves pages and their JSON, and stores manual verdicts, for one person on this machine.

Guarantees: it listens on the loopback interface only. Every request needs the token created at startup: at first in the
URL, then in a cookie. The server rejects requests for another host name (DNS rebinding) and writes from another site's
page. No part of a URL becomes a path outside the package. Pages may run only the package's own scripts. Not covered:
other users of this machine who can read the terminal or the browser's memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.core import codec
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.images import ImageFolder
from harness.core.records import Key, VerdictName
from harness.core.sanitize import visible
from harness.runs import overrides
from harness.runs.layout import RunFolder
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.viewer import audit_samples, pages
from harness.viewer.pages import Library
from harness.viewer.rows import text_of
from harness.viewer.run_comparison import compare
from harness.viewer.sample_text import verdict_steps

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every response; pages may not load from or send to any other site."""
_FRONT = Path(__file__).parent / "front"
"""The folder with the HTML, scripts, and styles of the pages."""

MAX_BODY_BYTES = 64 * 1024
"""Largest request body for a manual verdict, in bytes; a body without a declared length is rejected, too."""

Published = Callable[[RunFolder, str], str]
"""(run, benchmark name) → text on what others report for the run's model; empty if nothing is published."""
Picture = Callable[[Sequence[OpenRun], str], str]
"""(runs, benchmark name) → a plot of the accuracies as SVG; empty if there is none. Raises `HarnessError`."""
ReadFacts = Callable[[RunFolder], Mapping[str, Any]]
"""Reads the contents of a run's page: tables, warnings, and commands. Raises `StoreError`."""


class Correction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page's request to override a verdict. verdict: None withdraws the earlier override."""

    run: str
    benchmark: str
    question: str
    sample: int
    verdict: VerdictName | None
    who: str
    why: str


class ViewerServer(uvicorn.Server):
    """Serves the pages of a library's runs on the first free port of `ports`; 0: any port. Requests wait until `run`.

    address: the URL for the browser. published: returns the published scores to show next to a run's. facts: reads a
    run's settings and log. picture: plots accuracies. Raises `UsageError` if no port is free.
    """

    def __init__(
        self, library: Library, *, published: Published, facts: ReadFacts, picture: Picture, ports: Sequence[int]
    ) -> None:
        self._listening, token = _listen(ports), secrets.token_urlsafe(24)
        port = self._listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/?token={token}"
        app = Views(library, published, facts, picture).application()
        # access_log=False, because a request log would contain the token.
        super().__init__(
            uvicorn.Config(
                guarded(app, token, port),
                access_log=False,
                log_config=None,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until SIGINT, SIGTERM or `should_exit`."""
        super().run(sockets or [self._listening])


def _listen(ports: Sequence[int]) -> socket.socket:
    """Return a socket that listens on the first free port of `ports`. Raises `UsageError`."""
    for port in ports:
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise UsageError(
        "the port is in use on 127.0.0.1; choose another port, or 0 for any free port.", field="port", value=ports[0]
    )


# --- who may ask ---
def guarded(app: ASGIApp, token: str, port: int) -> ASGIApp:
    """The application, restricted to clients with the token; every response, even a rejection, gets the security
    headers.
    """
    # The port is in the cookie's name, because browsers send cookies to all ports of a host.
    cookie = f"harness-view-{port}"

    def is_token(offered: str) -> bool:
        # An ordinary comparison takes longer the more of the token is correct, which an attacker could measure.
        return hmac.compare_digest(offered.encode("utf-8", "replace"), token.encode())

    def with_cookie(request: Request) -> Response:
        """A redirect to the same URL without the token, which is moved to the cookie."""
        try:
            rest = urlencode({**_Query(request), "token": ()}, doseq=True, errors="surrogatepass")
        except UsageError as error:
            return PlainTextResponse(str(error), 400)
        # The raw path keeps its percent-encoding. Two leading slashes would make it name another host.
        path = "/" + request.scope["raw_path"].decode("ascii", "replace").lstrip("/\\")
        response = Response(status_code=303, headers={"Location": path + (f"?{rest}" if rest else "")})
        # With SameSite=Strict, a link from another page would arrive without the cookie.
        response.set_cookie(cookie, token, httponly=True, samesite="lax")
        return response

    def not_admitted(request: Request) -> Response | None:
        """None if a request names our host and contains the token. Otherwise, a rejection, or a redirect that moves a
        token from the URL to the cookie.
        """
        if request.headers.get("Host", "") not in {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}:
            name = "This viewer responds only to 127.0.0.1; use it as the host name in the address."
            return PlainTextResponse(name, 421)
        offered = request.query_params.get("token")
        if offered is not None and request.method == "GET":
            if not is_token(offered):
                return PlainTextResponse("The token is wrong; open the address that `harness view` printed.", 403)
            return with_cookie(request)
        if not is_token(request.cookies.get(cookie, "")):
            return PlainTextResponse("The token is missing; open the address that `harness view` printed.", 403)
        # Another site's page may send this header only after a preflight request, which this server rejects.
        if request.method == "POST" and request.headers.get("X-Harness-View") != "1":
            return PlainTextResponse("Verdicts can be changed only from the viewer's own pages.", 403)
        return None

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)  # A view may have set a stricter policy.
            await send(message)

        await (not_admitted(Request(scope)) or app)(scope, receive, send_with_headers)

    return application


# --- what it hands out; Starlette runs these in threads ---
class _AddressOfPage(PathConvertor):
    """The rest of a path. Unlike Starlette's "path", it may contain line feeds, because question ids may."""

    regex = "(?s:.*)"


register_url_convertor("address", _AddressOfPage())


class Views:
    """Responds to requests from the viewer's pages about the runs of one library."""

    def __init__(self, library: Library, published: Published, facts: ReadFacts, picture: Picture) -> None:
        self._library, self._published, self._facts, self._draw = library, published, facts, picture
        # Each manual verdict rewrites the score from all of them, so the last write must include the last stored
        # verdict.
        self._correcting = threading.Lock()

    def application(self) -> ASGIApp:
        """The application, without access control."""
        index: Callable[[Request], Response] = lambda _: FileResponse(_FRONT / "index.html")  # noqa: E731
        return Starlette(
            routes=[
                *(Route(path, index) for path in ("/", "/run/{rest:address}", "/compare/{rest:address}")),
                Mount("/static", StaticFiles(directory=_FRONT, follow_symlink=True)),  # as some installers place them
                Route("/raw", self._raw),
                Route("/picture", self._picture),
                Route("/image", self._image),
                Route("/api/override", self._override, methods=["POST"]),
                Route("/api/{page}", self._page),
            ],
            exception_handlers={HarnessError: _refused},
        )

    def _page(self, request: Request) -> Response:
        """The JSON of a page, or "not modified" if the browser's copy has the same tag (ETag)."""
        query, library = _Query(request), self._library
        tagged_by_files: dict[str, Callable[[OpenBenchmark], object]] = {
            "benchmark": lambda opened: pages.benchmark_page(
                opened, self._published(library.run(query["run"]).folder, opened.name)
            ),
            "question": lambda opened: pages.question_page(opened, query["question"]),
            "sample": lambda opened: pages.sample_page(opened, query.key),
        }
        tagged_by_content: dict[str, Callable[[], object]] = {
            "runs": lambda: {"runs": pages.overview(library), "who": overrides.this_user()},
            "run": lambda: pages.run_page(library.run(query["run"]), self._facts),
            "compare": lambda: compare(library.run(query["first"]), library.run(query["second"]), query["benchmark"]),
            "search": lambda: pages.search_page(self._opened(query), query["text"]),
            "why": lambda: {"steps": verdict_steps(self._opened(query), query.key)},
        }
        page = request.path_params["page"]
        if page in tagged_by_files:  # A page with 100,000 samples is rebuilt only if a file has changed.
            opened = self._opened(query)
            state, body = repr((page, query, opened.refresh())).encode(), None
        elif page in tagged_by_content:
            state = body = codec.encode(tagged_by_content[page]())
        else:
            raise HTTPException(404)
        tag = f'"{hashlib.sha256(state).hexdigest()[:32]}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        if body is None:
            body = codec.encode(tagged_by_files[page](opened))
        return Response(body, media_type="application/json", headers={"ETag": tag})

    def _raw(self, request: Request) -> Response:
        """One part of a sample in full, as plain text. `part` in the URL: text, reasoning, record, or question."""
        query = _Query(request)
        part, opened = query.get("part", "text"), self._opened(query)
        text: str | bytes | None
        if part == "record":
            text = opened.offsets.line(query.key) + b"\n"
        elif part == "question":
            text = text_of(opened.question(query["question"]))
        else:
            sample = opened.offsets.read(query.key)
            text = sample.reasoning if part == "reasoning" else sample.text
        data = text if isinstance(text, bytes) else (text or "").encode("utf-8", "backslashreplace")
        # If a browser interprets the reply as HTML, the sandbox prevents scripts from running.
        return PlainTextResponse(data, headers={"Content-Security-Policy": "sandbox; default-src 'none'"})

    def _picture(self, request: Request) -> Response:
        """A plot, as SVG, of the accuracies of two runs on a benchmark."""
        query = _Query(request)
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        drawn = self._draw([self._library.run(query[name]) for name in ("first", "second")], query["benchmark"])
        return Response(drawn, media_type="image/svg+xml", headers=policy)

    def _image(self, request: Request) -> Response:
        """An image from a question. The media type, determined from the first bytes, is one of four allowed types."""
        query = _Query(request)
        folder, name = ImageFolder(self._opened(query).folder.images), query["name"]
        data = folder.read(name)
        policy = {"Content-Security-Policy": "sandbox; default-src 'none'"}
        return Response(data, media_type=folder.media_type(name, data), headers=policy)

    async def _override(self, request: Request) -> Response:
        """Store or withdraw a manual verdict, and update the score accordingly."""
        if int(request.headers.get("content-length", MAX_BODY_BYTES + 1)) > MAX_BODY_BYTES:
            raise HTTPException(413)
        try:
            correction = codec.decode(await request.body(), Correction)
        except codec.DecodeError as error:
            raise UsageError(f"the correction is invalid: {error}.") from error
        await run_in_threadpool(self._store, correction)
        return Response(b'{"stored":true}', media_type="application/json")

    def _store(self, correction: Correction) -> None:
        benchmark = self._library.run(correction.run).benchmark(correction.benchmark)
        key = Key(correction.question, correction.sample)
        if key.sample_index not in benchmark.indices(key.question_id):
            question = visible(key.question_id, 100)
            raise StoreError(f"{benchmark.name} has no sample {key.sample_index} of question {question!r}.")
        grade, who, why_so = benchmark.grade(key), correction.who, correction.why
        with self._correcting:
            graded = None if grade is None else grade.verdict
            overrides.correct(benchmark.folder, key, correction.verdict, graded=graded, who=who, why=why_so)
            benchmark.refresh()
            if audit_samples.is_scored(benchmark):
                audit_samples.update_score(benchmark)

    def _opened(self, query: _Query) -> OpenBenchmark:
        return self._library.run(query["run"]).benchmark(query["benchmark"])


class _Query(dict[str, str]):
    """Names and values in a URL's query string. A missing name or a query that is not UTF-8 raises `UsageError`; unlike
    in strict UTF-8, an id may contain a lone surrogate.
    """

    def __init__(self, request: Request) -> None:
        try:
            raw = request.scope["query_string"].decode("ascii")
            super().__init__(parse_qsl(raw, keep_blank_values=True, errors="surrogatepass"))
        except ValueError as error:
            raise UsageError("the query string is not UTF-8.") from error

    def __missing__(self, name: str) -> str:
        raise UsageError(f"the query string has no {name}.")

    @property
    def key(self) -> Key:
        """The key of the sample that the URL names."""
        index = self["sample"]
        # `isdigit` is also true for ², which `int` rejects.
        if not (index.isascii() and index.isdigit() and len(index) <= 18):
            raise UsageError(f"{visible(index, 100)!r} is not a sample index.")
        return Key(self["question"], int(index))


def _refused(_request: Request, error: Exception) -> Response:
    """The response to a rejected request, with the error's sentence."""
    status = 400 if isinstance(error, UsageError) else 409
    return Response(codec.encode({"error": str(error)}), status, media_type="application/json")
