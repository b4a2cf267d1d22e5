"""The other transport: the openai package sends and receives; our own parser reads the bytes, so samples are the same.

For endpoints that need the package's ways of addressing and signing requests. Its retries are off and no redirect is
followed. It is slow: 0.1 ms a token. Works with openai 2.8 (on httpx) to 3.x (on an HTTP library of its own).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import openai

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for, secrets_of
from harness.client.interface import ERROR_BODY_S, Arriving, Deadlines
from harness.client.protocol.failures import failure_of_status, failure_to_connect
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.core import codec
from harness.core.limits import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret


class OpenaiTransport:
    """Sends requests with the openai package, one client of it for each endpoint. The arguments are `Transport`'s."""

    def __init__(
        self,
        *,
        insecure: bool = False,
        secrets: Sequence[Secret] = (),
    ) -> None:
        self._insecure = insecure
        self._secrets = tuple(secrets)
        self._clients: dict[Endpoint, openai.AsyncOpenAI] = {}

    async def complete(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None = None,
    ) -> Reply:
        """POST `body` to `path` of `endpoint`; see `interface.Transport.complete`."""
        parser = ReplyParser(
            started=time.monotonic(),
            started_utc=time.time(),
            max_body_bytes=max_body_bytes,
            secrets=secrets_of(endpoint, self._secrets),
            written=arriving.written if arriving is not None else None,
        )
        if arriving is not None:
            arriving.count, arriving.so_far = lambda: parser.n_tokens, parser.so_far
        client = self._clients.get(endpoint) or self._client(endpoint, deadlines)
        loop, cut, address = asyncio.get_running_loop(), "", host_and_port(endpoint.base_url)

        def due() -> float:  # on the loop's clock, which is not the parser's
            return loop.time() + deadlines.due(parser) - time.monotonic()

        try:
            async with asyncio.timeout_at(due()) as limit, _create(client, path, body) as response:
                encoding = response.headers.get("content-encoding", "identity").lower()
                if encoding != "identity":
                    raise parser.failure("malformed", f"the reply is compressed ({encoding}), which was not asked for")
                parser.request_id = response.headers.get("x-request-id")
                try:
                    async for data in response.iter_bytes():
                        parser.feed(data, time.monotonic())
                        limit.reschedule(due())
                except RequestFailed:
                    raise
                except Exception as error:  # noqa: BLE001 - of whichever HTTP library the package has
                    cut = str(_innermost(error)) or type(error).__name__
                return parser.finish(time.monotonic(), cut)
        except TimeoutError:
            return deadlines.end_late(parser, time.monotonic())
        except openai.APITimeoutError:
            raise parser.failure("timeout", f"no connection to {address} within {deadlines.connect:g} s") from None
        except openai.APIConnectionError as error:
            cause = _innermost(error)
            if isinstance(cause, RequestFailed):
                raise cause from None
            raise failure_to_connect(cause, address, parser.secrets) from None

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _client(self, endpoint: Endpoint, deadlines: Deadlines) -> openai.AsyncOpenAI:
        """The package's client for an endpoint, with retries, redirects and its own choice of proxies switched off."""
        if endpoint.socket_path is not None:
            message = f"{endpoint.socket_path}: the openai package reaches no unix socket; use transport=http"
            raise RequestFailed("refused", message)
        client = self._clients[endpoint] = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key="EMPTY",  # the package insists on one; the endpoint's own is in the headers below
            max_retries=0,  # the dispatcher retries, within the run's budget
            # Each request has its own connection: on one that is used again, the package's HTTP library would take
            # bytes behind the end of a reply for the next reply.
            default_headers={"Accept-Encoding": "identity", "Connection": "close", **endpoint.own_headers()},
            default_query={} if endpoint.query is None else dict(parse_qsl(endpoint.query.reveal())),
            timeout=openai.Timeout(None, connect=deadlines.connect),
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                trust_env=False,  # a .netrc would add a password of its own
                proxy=proxy_for(endpoint),
                verify=not self._insecure and ssl.create_default_context(),
                event_hooks={"response": [partial(_refuse, secrets_of(endpoint, self._secrets))]},
            ),
        )
        return client


def _create(client: openai.AsyncOpenAI, path: str, body: bytes) -> Any:
    """The package's request for `body`; fields that it does not know are sent as they are."""
    fields: dict[str, Any] = codec.decode(body, dict)
    resource: Any = client.chat.completions if path == "/chat/completions" else client.completions
    known = {name: fields.pop(name) for name in ("model", "messages", "prompt", "stream") if name in fields}
    return resource.with_streaming_response.create(**known, extra_body=fields)


async def _refuse(secrets: Sequence[Secret], response: Any) -> None:
    """Raise `RequestFailed` for an error status, before the package reads the body, and unpacks it without a bound."""
    if response.status_code < 300:
        return
    body, due = b"", time.monotonic() + ERROR_BODY_S
    async for piece in response.aiter_raw():
        body += piece
        if len(body) >= MAX_ERROR_BODY_BYTES or time.monotonic() > due:
            break
    raise failure_of_status(response.status_code, body[:MAX_ERROR_BODY_BYTES], response.headers, secrets)


def _innermost(error: BaseException) -> BaseException:
    """The first cause of an exception, which knows the system's error."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error
