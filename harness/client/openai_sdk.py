"""The openai package: the other transport (`--transport openai`), and the client of a provider's batch API.

As a transport it sends and receives, and our own parser reads the bytes, so samples are the same. It is for endpoints
that need the package's ways of addressing and signing requests. It is slow: 0.1 ms per token. The package's retries are
off and no redirect but a ticket is followed. Works with openai 2.8 (on httpx) to 3.x (on its own HTTP library).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import openai

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for, quote_safely, secrets_of
from harness.client.interface import ERROR_BODY_S, Deadlines, Post, api_headers, encode_body
from harness.client.protocol.failures import RequestFailed, failure_of_status, failure_to_connect, refuse_compressed
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core import codec
from harness.core.sanitize import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret

Client = TypeVar("Client", openai.OpenAI, openai.AsyncOpenAI)


class OpenaiTransport:
    """Sends requests with the openai package, with one client per endpoint. The arguments are those of `Transport`."""

    def __init__(self, secrets: Sequence[Secret] = ()) -> None:
        self._secrets = tuple(secrets)
        self._clients: dict[Endpoint, openai.AsyncOpenAI] = {}

    async def complete(self, post: Post) -> Reply:
        """Send a request and return its reply; see `interface.Transport.complete`."""
        parser, ticket = post.parser(secrets_of(post.endpoint, self._secrets)), None
        while True:
            try:
                return await self._complete(post, parser, ticket)
            except RequestFailed as failure:
                if (ticket := await post.ticket(failure, parser)) is None:
                    raise

    async def _complete(self, post: Post, parser: ReplyParser, ticket: str | None) -> Reply:
        """The reply to a request, or the reply at `ticket`."""
        endpoint, deadlines = post.endpoint, post.deadlines
        post.arriving.count = lambda: parser.n_tokens
        loop, cut = asyncio.get_running_loop(), ""

        def due() -> float:  # on the loop's clock rather than the parser's
            return loop.time() + deadlines.due(parser) - time.monotonic()

        try:
            client = self._client(endpoint, deadlines, parser.secrets)
            async with asyncio.timeout_at(due()) as limit, _posted(client, post, ticket) as response:
                parser.take_headers(response.headers)
                try:
                    async for data in response.iter_bytes():
                        parser.feed(data, time.monotonic())
                        limit.reschedule(due())
                except RequestFailed:
                    raise
                except Exception as error:  # noqa: BLE001 - from whichever HTTP library the package uses
                    cut = str(_innermost(error)) or type(error).__name__
                return parser.finish(time.monotonic(), cut)
        except TimeoutError:
            return deadlines.end_late(parser, time.monotonic())
        except openai.APIConnectionError as error:
            raise failure_of(error, endpoint, deadlines.connect, parser.secrets) from None

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _client(self, endpoint: Endpoint, deadlines: Deadlines, secrets: Sequence[Secret]) -> openai.AsyncOpenAI:
        """The package's client for an endpoint, created once; it raises `RequestFailed` for an error status."""
        if endpoint not in self._clients:

            async def check(response: Any) -> None:
                body, due = b"", time.monotonic() + ERROR_BODY_S
                if is_refusal(response):
                    async for piece in response.aiter_raw():
                        body += piece
                        if len(body) >= MAX_ERROR_BODY_BYTES or time.monotonic() > due:
                            break
                    raise failure_of_status(response.status_code, body, response.headers, secrets)

            timeout = openai.Timeout(None, connect=deadlines.connect)
            self._clients[endpoint] = open_client(
                openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient, endpoint, timeout, check
            )
        return self._clients[endpoint]


def open_client(
    client: type[Client], http: Callable[..., Any], endpoint: Endpoint, timeout: Any, check: Callable[[Any], Any]
) -> Client:
    """The package's client for an endpoint, with retries, redirects and its own choice of proxies switched off.

    http: makes its HTTP client. timeout: `openai.Timeout`, or seconds for each step. check: called with each response
    before its body is read. Raises `RequestFailed`.
    """
    if endpoint.socket_path is not None:
        instead = "use `transport=http`" if client is openai.AsyncOpenAI else "use the HTTP URL of a batch API"
        message = f"{endpoint.socket_path}: the openai package does not support unix sockets; {instead}"
        raise RequestFailed("refused", message)
    return client(
        base_url=endpoint.base_url,
        api_key="EMPTY",  # the package requires a key; the endpoint's own key is in the headers
        max_retries=0,  # the caller retries, within the run's budget
        # Each request has its own connection: on a reused connection, the package's HTTP library would take bytes after
        # the end of a reply for the next reply.
        default_headers={"Accept-Encoding": "identity", "Connection": "close", **endpoint.own_headers()},
        default_query={} if endpoint.query is None else dict(parse_qsl(endpoint.query.reveal())),
        timeout=timeout,
        # With `trust_env` a .netrc file would add its own password.
        http_client=http(
            follow_redirects=False,
            trust_env=False,
            proxy=proxy_for(endpoint),
            verify=ssl.create_default_context(),
            event_hooks={"response": [check]},
        ),
    )


def is_refusal(response: Any) -> bool:
    """Whether the response has an error status. Raises `RequestFailed` if its body is compressed."""
    if response.status_code >= 300:
        return True
    refuse_compressed(response.headers)
    return False


def failure_of(error: Exception, endpoint: Endpoint, seconds: float, secrets: Sequence[Secret]) -> RequestFailed:
    """The failure for an error that the package raises. seconds: the timeout."""
    cause, address = _innermost(error), host_and_port(endpoint.base_url)
    if isinstance(cause, RequestFailed):
        return cause
    if isinstance(cause, ValueError):  # a key that is not a valid header value
        return RequestFailed("refused", f"the request is invalid: {quote_safely(str(cause), secrets)}")
    sent = not type(error.__cause__).__name__.startswith("Connect")  # ConnectError, ConnectTimeout of its HTTP library
    if isinstance(error, openai.APITimeoutError):
        message = f"no {'response from' if sent else 'connection to'} {address} within {seconds:g} s"
        return RequestFailed("timeout" if sent else "connect", message, sent=sent)
    failure = failure_to_connect(cause, address, secrets)
    failure.sent = sent
    return failure


@asynccontextmanager
async def _posted(client: openai.AsyncOpenAI, post: Post, ticket: str | None) -> AsyncIterator[Any]:
    """The unread response to a request, sent with the package's method for APIs that it may not know."""
    headers = {"X-Stainless-Raw-Response": "stream", **api_headers(post.endpoint, post.api)}
    options: Any = {"headers": headers}
    if ticket is not None:
        response: Any = await client.get(ticket, cast_to=object, options=options)
    else:
        body: Any = codec.decode(encode_body(post.body))
        response = await client.post(post.api.path, cast_to=object, body=body, options=options)
    try:
        yield response
    finally:
        await response.close()


def _innermost(error: BaseException) -> BaseException:
    """The first cause of an exception, which has the system's error."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
