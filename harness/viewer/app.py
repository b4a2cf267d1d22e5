"""The viewer's server: pages, their JSON and the overrides, for one person on this machine.

Guarantees: it listens on the loopback interface only. Every request needs the token of this start: in the address at
first, in a cookie afterwards. It refuses requests for another host name (DNS rebinding) and writes from another site's
page. No part of an address becomes a path on the disk. Pages may run only the package's own scripts. Not covered: other
users of this machine who can read the terminal or the browser's memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from aiohttp import web

from harness.core import codec
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.files import open_untrusted
from harness.core.inert import visible
from harness.core.records import Key, VerdictName
from harness.runs import overrides, sample_labels
from harness.runs.layout import VIEWER_LINK
from harness.viewer import auditing, pages
from harness.viewer.beside import Published
from harness.viewer.differ import compare
from harness.viewer.library import Library, OpenBenchmark
from harness.viewer.rows import text_of
from harness.viewer.search import MAX_HITS, SearchStep, search
from harness.viewer.why import why

MAX_BODY_BYTES = 64 * 1024
"""Largest request that is read, in bytes."""

MAX_REPORT_BYTES = 64 * 1024 * 1024
"""Largest report that is shown, in bytes."""

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

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Correction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of a page to override a verdict. verdict: None withdraws the earlier override."""

    run: str
    benchmark: str
    question: str
    sample: int
    verdict: VerdictName | None
    who: str
    why: str


class Labelling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of a page to put a label on a sample. put: False takes the label off."""

    run: str
    benchmark: str
    question: str
    sample: int
    label: str
    put: bool
    who: str


class Viewer:
    """Answers the requests of the viewer's pages about the runs of one library. published: returns the published scores
    beside a run's. facts: reads the settings and the log of a run. token: the secret of this start. port: the port on
    which the server listens.
    """

    def __init__(self, library: Library, published: Published, facts: pages.ReadFacts, token: str, port: int) -> None:
        self._library = library
        self._published = published
        self._facts = facts
        self._token = token
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

    def application(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                web.get("/static/{name:[\\s\\S]*}", self._static),
                web.get("/api/runs", self._runs),
                web.get("/api/run", self._run),
                web.get("/api/benchmark", self._benchmark),
                web.get("/api/question", self._question),
                web.get("/api/sample", self._sample),
                web.get("/api/why", self._why),
                web.get("/api/audit", self._audit),
                web.get("/api/compare", self._compare),
                web.get("/api/search", self._search),
                web.get("/raw", self._raw),
                web.get("/report", self._report),
                web.post("/api/override", self._override),
                web.post("/api/label", self._label),
                web.get("/", self._page),
                web.get("/run/{rest:[\\s\\S]*}", self._page),
                web.get("/audit/{rest:[\\s\\S]*}", self._page),
                web.get("/compare/{rest:[\\s\\S]*}", self._page),
            ]
        )
        return app

    # --- who may ask ---
    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request; errors become responses, and every response gets the security headers."""
        try:
            response = await self._admitted(request, handler)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.reason)
        except HarnessError as error:
            status = 400 if isinstance(error, UsageError) else 409
            response = _json({"error": str(error)}, status=status)
        if not response.prepared:
            for name, value in _HEADERS.items():
                # A handler may have set a stricter policy of its own.
                response.headers.setdefault(name, value)
        return response

    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request in if it names our host and carries the token; otherwise refuse it or exchange the token for a
        cookie."""
        if request.headers.get("Host", "") not in self._hosts:
            return web.Response(
                status=421, text="This viewer answers only to the name 127.0.0.1; use that name in the address."
            )
        offered = request.query.get("token")
        if offered is not None and request.method == "GET":
            if not self._is_token(offered):
                return web.Response(status=403, text="This token is not the one that `harness view` printed.")
            pairs = [(name, value) for name, value in _query(request) if name != "token"]
            rest = urlencode(pairs, errors="surrogatepass")
            # The raw path keeps its percent-encoding. With two slashes at its beginning it would name another host.
            path = "/" + request.raw_path.partition("?")[0].lstrip("/\\")
            response = web.Response(status=303, headers={"Location": path + (f"?{rest}" if rest else "")})
            # After SameSite=Strict, a link from another page would lead here without the cookie.
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="Lax", path="/")
            return response
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return web.Response(status=403, text="Open the address that `harness view` printed: it holds a token.")
        # A page of another site may send this header only after a preflight request, which this server refuses.
        if request.method == "POST" and request.headers.get("X-Harness-View") != "1":
            return web.Response(status=403, text="Only the viewer's own pages may change verdicts.")
        return await handler(request)

    def _is_token(self, offered: str) -> bool:
        # An ordinary comparison takes longer the more of the token is right, which a guesser could measure.
        return hmac.compare_digest(offered.encode("utf-8", "replace"), self._token.encode())

    # --- pages ---
    async def _page(self, _request: web.Request) -> web.Response:
        return self._file("index.html")

    async def _static(self, request: web.Request) -> web.Response:
        return self._file(request.match_info["name"])

    def _file(self, name: str) -> web.Response:
        """Return the response with a file of the front end. Raises `web.HTTPNotFound` for any other name."""
        if name not in self._front:
            raise web.HTTPNotFound
        suffix = name[name.rindex(".") :]
        charset = None if suffix == ".woff2" else "utf-8"
        return web.Response(body=self._front[name], content_type=_TYPES[suffix], charset=charset)

    # --- facts ---
    async def _runs(self, request: web.Request) -> web.Response:
        lines = await asyncio.to_thread(pages.overview, self._library)
        return _unless_browser_has_it(request, codec.encode({"runs": lines, "who": overrides.this_user()}))

    async def _run(self, request: web.Request) -> web.Response:
        def build() -> bytes:
            run = self._library.run(_parameter(request, "run"))
            return codec.encode(pages.run_page(run, self._facts(run.folder)))

        return _unless_browser_has_it(request, await asyncio.to_thread(build))

    async def _benchmark(self, request: web.Request) -> web.Response:
        def page(benchmark: OpenBenchmark) -> object:
            run = self._library.run(_parameter(request, "run"))
            return pages.benchmark_page(benchmark, self._published(run.folder, benchmark.name))

        return await self._of_benchmark(request, page)

    async def _question(self, request: web.Request) -> web.Response:
        question_id = _parameter(request, "question")
        return await self._of_benchmark(request, lambda benchmark: pages.question_page(benchmark, question_id))

    async def _sample(self, request: web.Request) -> web.Response:
        key = _key(request)
        return await self._of_benchmark(request, lambda benchmark: pages.sample_page(benchmark, key))

    async def _audit(self, request: web.Request) -> web.Response:
        return await self._of_benchmark(request, pages.audit_page)

    async def _of_benchmark(self, request: web.Request, page: Callable[[OpenBenchmark], object]) -> web.Response:
        """Answer a request for the data of a page about a benchmark: the JSON that `page` makes, or "not modified" if
        the browser has it and no file has changed since.
        """

        def build() -> tuple[str, bytes | None]:
            """(the page's tag; its JSON, None if the browser has it)."""
            benchmark = self._opened(request)
            state = repr((request.path_qs, benchmark.refresh())).encode()
            tag = f'"{hashlib.sha256(state).hexdigest()[:32]}"'
            if request.headers.get("If-None-Match") == tag:
                return tag, None
            return tag, codec.encode(page(benchmark))

        tag, body = await asyncio.to_thread(build)
        return _with_tag(tag, body)

    async def _why(self, request: web.Request) -> web.Response:
        """Return the steps to the verdict on a sample, after grading it again."""
        key = _key(request)

        def steps() -> list[str]:
            benchmark = self._opened(request)
            return why(benchmark, benchmark.question(key.question_id), benchmark.offsets.read(key))

        return _json({"steps": await asyncio.to_thread(steps)})

    async def _compare(self, request: web.Request) -> web.Response:
        """The comparison of two runs on one benchmark."""
        name = _parameter(request, "benchmark")

        def build() -> bytes:
            first, second = (self._library.run(_parameter(request, which)) for which in ("first", "second"))
            return codec.encode(compare(first, second, name))

        return _unless_browser_has_it(request, await asyncio.to_thread(build))

    async def _search(self, request: web.Request) -> web.StreamResponse:
        """Stream the search as lines of JSON: a line for each step, and a last line for an error that ends the
        search."""
        text = _parameter(request, "text")
        benchmark = await asyncio.to_thread(self._opened, request)
        steps = search(benchmark, text, MAX_HITS)
        # A streamed response needs its headers now; the middleware would add them after the handler.
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "application/x-ndjson; charset=utf-8"})
        await response.prepare(request)
        try:
            while True:
                step: SearchStep | None = await asyncio.to_thread(next, steps, None)
                if step is None:
                    break
                await response.write(codec.encode(step) + b"\n")
        except HarnessError as error:
            await response.write(codec.encode({"error": str(error)}) + b"\n")
        except ConnectionResetError:  # The visitor has started another search.
            return response
        finally:
            await asyncio.to_thread(steps.close)
        await response.write_eof()
        return response

    async def _raw(self, request: web.Request) -> web.Response:
        """Return a whole part of a sample as plain text. `part` in the address: text, reasoning, record or question."""
        part = request.query.get("part", "text")

        def read() -> bytes:
            """The requested text as bytes."""
            if part == "question":
                return text_of(self._opened(request).question(_parameter(request, "question"))).encode(
                    "utf-8", "backslashreplace"
                )
            key = _key(request)
            offsets = self._opened(request).offsets
            if part == "record":
                return offsets.line(key) + b"\n"
            sample = offsets.read(key)
            text = sample.reasoning if part == "reasoning" else sample.text
            return (text or "").encode("utf-8", "backslashreplace")

        response = web.Response(body=await asyncio.to_thread(read), content_type="text/plain", charset="utf-8")
        # If a browser takes the reply for HTML, the sandbox lets it run nothing.
        response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        if request.query.get("download") == "1":
            response.headers["Content-Disposition"] = (
                f"attachment; filename={pages.file_name(dict(_query(request)), part)}"
            )
        return response

    async def _report(self, request: web.Request) -> web.Response:
        """The report in a run's folder, as a page that can run nothing and load nothing."""

        def read() -> bytes:
            """The report's bytes. Raises `StoreError` if there is no report or it is too long."""
            run = self._library.run(_parameter(request, "run"))
            try:
                with open_untrusted(run.folder.path / pages.REPORT) as file:
                    page = file.read(MAX_REPORT_BYTES + 1)
            except OSError as error:
                raise StoreError(f"{run.label} has no report that can be read: `harness report` writes one.") from error
            if len(page) > MAX_REPORT_BYTES:
                raise StoreError(f"the report of {run.label} is longer than {MAX_REPORT_BYTES} bytes.")
            link = (
                f'<p><a href="/run/{quote(run.label, safe="", errors="surrogatepass")}">This run in the viewer</a></p>'
            )
            return page.replace(VIEWER_LINK.encode(), link.encode(), 1)

        response = web.Response(body=await asyncio.to_thread(read), content_type="text/html", charset="utf-8")
        response.headers["Content-Security-Policy"] = (
            "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
        )
        return response

    # --- overrides ---
    async def _override(self, request: web.Request) -> web.Response:
        """Store a verdict by hand, or take one back."""
        try:
            correction = codec.decode(await request.read(), Correction)
        except codec.DecodeError as error:
            raise UsageError(f"the correction cannot be read: {error}.") from error
        await asyncio.to_thread(self._correct, correction)
        return _json({"stored": True})

    async def _label(self, request: web.Request) -> web.Response:
        """Put a label on a sample, or take it off."""
        try:
            labelling = codec.decode(await request.read(), Labelling)
        except codec.DecodeError as error:
            raise UsageError(f"the label cannot be read: {error}.") from error

        def store() -> None:
            benchmark, key = self._sample_of(labelling)
            sample_labels.set_label(benchmark.folder, key, labelling.label, put=labelling.put, who=labelling.who)

        await asyncio.to_thread(store)
        return _json({"stored": True})

    def _sample_of(self, change: Correction | Labelling) -> tuple[OpenBenchmark, Key]:
        """The benchmark and key of the sample that the page names. Raises `StoreError` if there is no such sample."""
        benchmark = self._library.run(change.run).benchmark(change.benchmark)
        key = Key(change.question, change.sample)
        if key.sample_index not in benchmark.indices(key.question_id):
            question = visible(key.question_id, 100)
            raise StoreError(f"{benchmark.name} has no sample {key.sample_index} of question {question!r}.")
        return benchmark, key

    def _correct(self, correction: Correction) -> None:
        """Store the correction, and in the score what follows. Raises `StoreError` if there is no such sample."""
        benchmark, key = self._sample_of(correction)
        grade = benchmark.grade(key)
        with self._correcting:
            overrides.correct(
                benchmark.folder,
                key,
                correction.verdict,
                graded=None if grade is None else grade.verdict,
                who=correction.who,
                why=correction.why,
            )
            benchmark.refresh()
            if auditing.is_scored(benchmark):
                auditing.take_in(benchmark)

    def _opened(self, request: web.Request) -> OpenBenchmark:
        return self._library.run(_parameter(request, "run")).benchmark(_parameter(request, "benchmark"))


def _parameter(request: web.Request, name: str) -> str:
    """Return the parameter `name` of the address. Raises `UsageError` if the address lacks it."""
    try:
        return dict(_query(request))[name]
    except KeyError:
        raise UsageError(f"the address lacks {name}.") from None


def _query(request: web.Request) -> list[tuple[str, str]]:
    """Return names and values in the query of the address.

    Decoded here, because an id may hold a lone surrogate, which the framework's strict UTF-8 refuses.
    """
    raw = request.raw_path.partition("?")[2]
    try:
        return parse_qsl(raw, keep_blank_values=True, errors="surrogatepass")
    except ValueError as error:
        raise UsageError("the query of the address is not UTF-8.") from error


def _key(request: web.Request) -> Key:
    index = _parameter(request, "sample")
    # `isdigit` is true for ² too, which `int` refuses.
    if not (index.isascii() and index.isdigit() and len(index) <= 18):
        raise UsageError(f"{visible(index, 100)!r} is no index of a sample.")
    return Key(_parameter(request, "question"), int(index))


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=codec.encode(value), status=status, content_type="application/json")


def _with_tag(tag: str, body: bytes | None) -> web.Response:
    """Return the response with `body` and its tag (ETag), or "not modified" if `body` is None."""
    if body is None:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, content_type="application/json", headers={"ETag": tag})


def _unless_browser_has_it(request: web.Request, body: bytes) -> web.Response:
    """Return the response with `body`, or "not modified" if the browser's copy has the same tag."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return _with_tag(tag, None if request.headers.get("If-None-Match") == tag else body)
