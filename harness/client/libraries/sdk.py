"""The transport on the openai SDK, for endpoints that need the SDK's ways of addressing and signing requests.

The SDK sends and receives. Our own parser (`sse`) reads the bytes, so samples are the same as with other transports.
The SDK's retries are off and no redirect is followed. It is slow: 0.1 ms per token, and its connection pool takes time
quadratic in the number of connections. Not covered: an error body that stalls is bounded by the first-token deadline
only. Works with openai 2.8 (on httpx) to 3.x (on an HTTP library of its own).
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Unpack

import openai

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for
from harness.client.interface import ERROR_BODY_S, Arriving, Deadlines
from harness.client.libraries.watch import LibraryOptions, LibraryTransport
from harness.client.protocol.failures import failure_of_status
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core import codec
from harness.core.limits import MAX_ERROR_BODY_BYTES

_NETWORK_PACKAGES = frozenset({"openai", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "ssl"})
"""Packages whose exceptions mean a failure of the network; SDK 2.x passes on those of its HTTP library."""

_PACKED = "x-harness-content-encoding"
"""Header under which we hide the encoding of an error's body from the SDK, which would unpack it without a bound."""

_NO_KEY = "EMPTY"
"""Key for endpoints without one: the SDK insists on a key, and such servers ignore it."""


class SdkTransport(LibraryTransport):
    """Sends requests with the OpenAI SDK, one SDK client for each endpoint."""

    def __init__(self, **given: Unpack[LibraryOptions]) -> None:
        super().__init__(**given)
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
        """POST `body` to `path` of `endpoint`; see `Transport.complete`."""
        client = self._clients.get(endpoint) or self._client(endpoint, deadlines)
        create, arguments = _call(client, path, body)
        clock = asyncio.get_running_loop().time
        parser, watch, secrets = self._begin(endpoint, deadlines, max_body_bytes, arriving)
        address = host_and_port(endpoint.base_url)
        try:
            async with watch, create(**arguments) as response:
                encoding = response.headers.get("content-encoding", "identity").lower()
                if encoding != "identity":
                    raise parser.failure("malformed", f"the reply is compressed ({encoding}), which was not asked for")
                parser.request_id = response.headers.get("x-request-id")
                cut = ""
                try:
                    async for data in response.iter_bytes():
                        parser.feed(data, clock())
                except Exception as error:  # noqa: BLE001 - narrowed to the network's exceptions below
                    cut = _network_cause(error)
                return parser.finish(clock(), cut)
        except RequestFailed:
            # Already explained; the broad handlers below would rename it.
            raise
        except TimeoutError:
            return deadlines.end_late(parser, clock())
        except openai.APIStatusError as error:
            headers = error.response.headers
            raise failure_of_status(
                error.status_code,
                error.response.content[:MAX_ERROR_BODY_BYTES],
                content_encoding=headers.get(_PACKED, ""),
                retry_after=headers.get("retry-after"),
                retry_after_ms=headers.get("retry-after-ms"),
                location=headers.get("location"),
                secrets=secrets,
            ) from None
        except openai.APITimeoutError:
            raise parser.failure("timeout", f"no connection to {address} within {deadlines.connect:g} s") from None
        except Exception as error:  # noqa: BLE001 - narrowed to the network's exceptions below
            cause = _network_cause(error)
            if "certificate" in cause.lower() or "SSL" in cause:
                message = f"no trusted TLS connection to {address}: {cause}; ca_file names the authority to trust"
                raise parser.failure("refused", message) from None
            # The number of the error is lost on its way through the SDK; the system's words are left.
            if os.strerror(errno.EMFILE) in cause or os.strerror(errno.ENFILE) in cause:
                message = f"cannot connect to {address}: {cause}; lower the concurrency or raise `ulimit -n`"
                raise parser.failure("out_of_files", message) from None
            raise parser.failure("connect", f"cannot connect to {address}: {cause}") from None

    async def close(self) -> int:
        """Close all connections. Returns 0: each connection carries one request, so nothing can be left over."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        return 0

    def _client(self, endpoint: Endpoint, deadlines: Deadlines) -> openai.AsyncOpenAI:
        """The SDK's client for an endpoint, with retries, redirects and proxies switched off."""
        if endpoint.socket_path is not None:
            message = f"{endpoint.socket_path}: the openai package reaches no unix socket; use the transport aiohttp"
            raise RequestFailed("refused", message)
        client = self._clients[endpoint] = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=_NO_KEY,  # the endpoint's own key is in the headers below, which override this one
            # The dispatcher retries, within the run's budget.
            max_retries=0,
            # Each request has its own connection: on one that is used again, the SDK's HTTP library would take bytes
            # behind the end of a reply for the next reply.
            default_headers={"Accept-Encoding": "identity", "Connection": "close", **endpoint.own_headers()},
            # Only the wait for a connection is bounded here; `Watch` bounds the wait for tokens.
            timeout=openai.Timeout(None, connect=deadlines.connect),
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                # `proxy_for` decides about proxies, and a .netrc would add a password of its own.
                trust_env=False,
                proxy=proxy_for(endpoint),
                verify=self._tls,
                event_hooks={"response": [_bound_refusal]},
            ),
        )
        return client


async def _bound_refusal(response: Any) -> None:
    """Let the SDK see only the beginning of an error's body, still packed: it would read and unpack all of it."""
    if response.status_code >= 300:
        response.headers[_PACKED] = response.headers.pop("content-encoding", "")
        response.aiter_raw = partial(_beginning, response, response.aiter_raw)


async def _beginning(response: Any, pieces: Callable[[], AsyncIterator[bytes]], *_: Any) -> AsyncIterator[bytes]:
    """The body's pieces up to the bound on bytes or seconds; then the response is closed."""
    n_bytes, due = 0, time.monotonic() + ERROR_BODY_S
    async for piece in pieces():
        yield piece
        n_bytes += len(piece)
        if n_bytes >= MAX_ERROR_BODY_BYTES or time.monotonic() > due:
            break
    await response.aclose()


def _call(client: openai.AsyncOpenAI, path: str, body: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the SDK's method for `path` and its arguments; fields that it does not require go in `extra_body`."""
    fields: dict[str, Any] = codec.decode(body, dict)
    resource: Any = client.chat.completions if path == "/chat/completions" else client.completions
    named: dict[str, Any] = {
        name: fields.pop(name) for name in ("model", "messages", "prompt", "stream") if name in fields
    }
    return resource.with_streaming_response.create, {**named, "extra_body": fields}


def _network_cause(error: Exception) -> str:
    """The innermost reason of a network failure. An exception that is no network failure is raised again."""
    if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _NETWORK_PACKAGES:
        raise error
    inner: BaseException = error
    while inner.__cause__ is not None or inner.__context__ is not None:
        inner = inner.__cause__ or inner.__context__ or inner
    return str(inner) or str(error) or type(inner).__name__
