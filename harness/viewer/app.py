"""The viewer's server: pages, their JSON and the verdicts by hand, for one person on this machine.

Guarantees: it listens on the loopback interface only. Every request needs the token of this start: in the address at
first, in a cookie afterwards. It refuses requests for another host name (DNS rebinding) and writes from another site's
page. No part of an address becomes a path on the disk. Pages may run only the package's own scripts. Not covered: other
users of this machine who can read the terminal or the browser's memory.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.core import codec
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.inert import visible
from harness.core.records import Key, VerdictName
from harness.runs import overrides
from harness.runs.layout import RunFolder
from harness.scoring.opened import OpenBenchmark
from harness.viewer import auditing, pages
from harness.viewer.differ import compare
from harness.viewer.library import Library
from harness.viewer.rows import text_of
from harness.viewer.search import MAX_HITS, search
from harness.viewer.why import why

MAX_BODY_BYTES = 64 * 1024
"""Largest request that is read, in bytes."""

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
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
_FRONT = Path(__file__).parent / "front"

Published = Callable[[RunFolder, str], str]
"""(run, name of a benchmark) → what others report of the run's model, in words; empty where nothing is published."""
ReadFacts = Callable[[RunFolder], Mapping[str, Any]]
"""Reads the facts of a run's page: tables, warnings, commands. Raises `StoreError`."""
View = Callable[[Request], Response]


class Correction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of a page to override a verdict. verdict: None withdraws the earlier override."""

    run: str
    benchmark: str
    question: str
    sample: int
    verdict: VerdictName | None
    who: str
    why: str


class Viewer:
    """Answers the requests of the viewer's pages about the runs of one library. token: the secret of this start. port:
    the port on which the server listens.
    """

    def __init__(self, library: Library, published: Published, facts: ReadFacts, token: str, port: int) -> None:
        self._library, self._published, self._facts, self._token = library, published, facts, token
        # Each verdict by hand rewrites the score from all of them, so the last written must have seen the last stored.
        self._correcting = threading.Lock()
        # The port is in the cookie's name, because browsers send cookies to all ports of a host.
        self._cookie = f"harness-view-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        # Read once at the start, so that no part of an address ever becomes a path.
        self._front = {
            path.relative_to(_FRONT).as_posix(): path.read_bytes()
            for path in _FRONT.rglob("*")
            if path.is_file() and path.suffix in _TYPES
        }

    def application(self) -> ASGIApp:
        """Return the application to serve. Every response gets the security headers, also those of errors."""
        index: View = lambda _: self._file("index.html")  # noqa: E731
        views: dict[str, View] = {
            "/": index,
            "/run/{rest:path}": index,
            "/compare/{rest:path}": index,
            "/static/{name:path}": lambda request: self._file(request.path_params["name"]),
            "/api/runs": self._runs,
            "/api/run": self._run,
            "/api/benchmark": self._of_benchmark(self._benchmark_page),
            "/api/question": self._of_benchmark(lambda it, query: pages.question_page(it, query["question"])),
            "/api/sample": self._of_benchmark(lambda it, query: pages.sample_page(it, query.key)),
            "/api/why": self._why,
            "/api/compare": self._compare,
            "/api/search": self._search,
            "/raw": self._raw,
        }
        app = Starlette(
            routes=[
                *(Route(path, view, methods=["GET"]) for path, view in views.items()),
                Route("/api/override", self._override, methods=["POST"]),
            ],
            exception_handlers={HarnessError: _refused},
        )

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in _HEADERS.items():
                        headers.setdefault(name, value)  # A view may have set a stricter policy of its own.
                await send(message)

            await (self._not_admitted(Request(scope)) or app)(scope, receive, send_with_headers)

        return guarded

    # --- who may ask ---
    def _not_admitted(self, request: Request) -> Response | None:
        """None if a request names our host and carries the token. Else a refusal, or the exchange of a token in the
        address for a cookie."""
        if request.headers.get("Host", "") not in self._hosts:
            name = "This viewer answers only to the name 127.0.0.1; use that name in the address."
            return PlainTextResponse(name, 421)
        offered = request.query_params.get("token")
        if offered is not None and request.method == "GET":
            if not self._is_token(offered):
                return PlainTextResponse("This token is not the one that `harness view` printed.", 403)
            try:
                pairs = [(name, value) for name, value in _pairs(request) if name != "token"]
            except UsageError as error:
                return PlainTextResponse(str(error), 400)
            rest = urlencode(pairs, errors="surrogatepass")
            # The raw path keeps its percent-encoding. With two slashes at its beginning it would name another host.
            path = "/" + request.scope["raw_path"].decode("ascii", "replace").lstrip("/\\")
            response = Response(status_code=303, headers={"Location": path + (f"?{rest}" if rest else "")})
            # After SameSite=Strict, a link from another page would lead here without the cookie.
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
            return response
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return PlainTextResponse("Open the address that `harness view` printed: it holds a token.", 403)
        # A page of another site may send this header only after a preflight request, which this server refuses.
        if request.method == "POST" and request.headers.get("X-Harness-View") != "1":
            return PlainTextResponse("Only the viewer's own pages may change verdicts.", 403)
        return None

    def _is_token(self, offered: str) -> bool:
        # An ordinary comparison takes longer the more of the token is right, which a guesser could measure.
        return hmac.compare_digest(offered.encode("utf-8", "replace"), self._token.encode())

    # --- what it hands out; Starlette runs these in threads ---
    def _file(self, name: str) -> Response:
        """Return the response with a file of the front end. Raises `HTTPException` for any other name."""
        if name not in self._front:
            raise HTTPException(404)
        return Response(self._front[name], media_type=_TYPES[name[name.rindex(".") :]])

    def _runs(self, request: Request) -> Response:
        lines = pages.overview(self._library)
        return _unless_it_has_it(request, codec.encode({"runs": lines, "who": overrides.this_user()}))

    def _run(self, request: Request) -> Response:
        run = self._library.run(_Query(request)["run"])
        return _unless_it_has_it(request, codec.encode(pages.run_page(run, self._facts(run.folder))))

    def _benchmark_page(self, benchmark: OpenBenchmark, query: _Query) -> object:
        return pages.benchmark_page(benchmark, self._published(self._library.run(query["run"]).folder, benchmark.name))

    def _of_benchmark(self, page: Callable[[OpenBenchmark, _Query], object]) -> View:
        """A view of a benchmark's data: the JSON that `page` makes, or "not modified" if no file has changed since."""

        def view(request: Request) -> Response:
            query = _Query(request)
            benchmark = self._opened(query)
            state = repr((query, benchmark.refresh())).encode()
            return _unless_it_has_it(request, lambda: codec.encode(page(benchmark, query)), state)

        return view

    def _why(self, request: Request) -> Response:
        """The steps to the verdict on a sample, after grading it again."""
        query = _Query(request)
        benchmark = self._opened(query)
        question, sample = benchmark.question(query.key.question_id), benchmark.offsets.read(query.key)
        return _json({"steps": why(benchmark, question, sample)})

    def _compare(self, request: Request) -> Response:
        query = _Query(request)
        first, second = (self._library.run(query[name]) for name in ("first", "second"))
        return _unless_it_has_it(request, codec.encode(compare(first, second, query["benchmark"])))

    def _search(self, request: Request) -> Response:
        """The first hits of a search. complete: whether there are no more."""
        query = _Query(request)
        hits = search(self._opened(query), query["text"])
        shown = list(islice(hits, MAX_HITS))
        return _json({"hits": shown, "complete": next(hits, None) is None})

    def _raw(self, request: Request) -> Response:
        """A whole part of a sample as plain text. `part` in the address: text, reasoning, record or question."""
        query = _Query(request)
        part, benchmark = query.get("part", "text"), self._opened(query)
        if part == "record":
            data = benchmark.offsets.line(query.key) + b"\n"
        elif part == "question":
            data = _bytes(text_of(benchmark.question(query["question"])))
        else:
            sample = benchmark.offsets.read(query.key)
            data = _bytes(sample.reasoning if part == "reasoning" else sample.text)
        # If a browser takes the reply for HTML, the sandbox lets it run nothing.
        return PlainTextResponse(data, headers={"Content-Security-Policy": "sandbox; default-src 'none'"})

    # --- what it stores ---
    async def _override(self, request: Request) -> Response:
        """Store a verdict by hand, or take one back, and in the score what follows."""
        correction = await _correction(request)

        def store() -> None:
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
                if auditing.is_scored(benchmark):
                    auditing.take_in(benchmark)

        await run_in_threadpool(store)
        return _json({"stored": True})

    def _opened(self, query: _Query) -> OpenBenchmark:
        return self._library.run(query["run"]).benchmark(query["benchmark"])


class _Query(dict[str, str]):
    """Names and values in the query of an address. A missing name raises `UsageError`, and so does a query that is not
    UTF-8."""

    def __init__(self, request: Request) -> None:
        super().__init__(_pairs(request))

    def __missing__(self, name: str) -> str:
        raise UsageError(f"the address lacks {name}.")

    @property
    def key(self) -> Key:
        """The key of the sample that the address names."""
        index = self["sample"]
        # `isdigit` is true for ² too, which `int` refuses.
        if not (index.isascii() and index.isdigit() and len(index) <= 18):
            raise UsageError(f"{visible(index, 100)!r} is no index of a sample.")
        return Key(self["question"], int(index))


def _pairs(request: Request) -> list[tuple[str, str]]:
    """Names and values in the query, in which an id may hold a lone surrogate, unlike in strict UTF-8."""
    try:
        raw = request.scope["query_string"].decode("ascii")
        return parse_qsl(raw, keep_blank_values=True, errors="surrogatepass")
    except ValueError as error:
        raise UsageError("the query of the address is not UTF-8.") from error


async def _correction(request: Request) -> Correction:
    """The correction that a page asks for. Raises `UsageError` for a body of another form, `HTTPException` for a long
    one."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413)
    try:
        return codec.decode(bytes(body), Correction)
    except codec.DecodeError as error:
        raise UsageError(f"the correction cannot be read: {error}.") from error


def _refused(_request: Request, error: Exception) -> Response:
    """The response to a request that a sentence refuses."""
    return _json({"error": str(error)}, 400 if isinstance(error, UsageError) else 409)


def _json(value: object, status: int = 200) -> Response:
    return Response(codec.encode(value), status, media_type="application/json")


def _bytes(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "backslashreplace")


def _unless_it_has_it(request: Request, body: bytes | Callable[[], bytes], state: bytes | None = None) -> Response:
    """Return the response with `body`, or "not modified" if the browser's copy has the same tag (ETag).

    state: what the tag is made of, if the body is made only where it is needed.
    """
    tag = f'"{hashlib.sha256(body if isinstance(body, bytes) else state or b"").hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    made = body if isinstance(body, bytes) else body()
    return Response(made, media_type="application/json", headers={"ETag": tag})
