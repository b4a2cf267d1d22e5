"""Choosing the transport, the code that carries a request.

    transport  module                  carries                                             chosen by `auto` for
    fast       fast.transport          plain http over TCP, without a proxy                all that it carries
    aiohttp    libraries.aio           http, https, proxies, unix sockets                  everything else
    sdk        libraries.sdk           what the openai package can reach                   nothing

`auto` decides for each endpoint anew, so one run can use both. A transport's module is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from harness.client.address.endpoint import Endpoint, proxy_for
from harness.client.interface import Arriving, Deadlines, Transport
from harness.client.protocol.reply import Reply
from harness.client.protocol.written import Memory
from harness.core.about import install_line
from harness.core.choices import TransportName
from harness.core.errors import UsageError
from harness.core.secret import Secret


def open_transport(
    name: TransportName = "auto",
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    secrets: Sequence[Secret] = (),
    memory: Memory | None = None,
) -> Transport:
    """The transport of that name. The fast one reaches its full speed on `event_loop.new_event_loop` only.

    ca_file: PEM file of the certificate authorities to trust. insecure: accept any certificate. secrets: texts in the
    bodies of requests that no message may show. memory: the count of bytes that all replies hold, if transports share
    one. Raises `UsageError`.
    """
    if name == "fast":
        from harness.client.fast.transport import FastTransport

        return FastTransport(secrets=secrets, memory=memory)
    if name == "aiohttp":
        from harness.client.libraries.aio import AiohttpTransport

        return AiohttpTransport(ca_file=ca_file, insecure=insecure, secrets=secrets, memory=memory)
    if name == "sdk":
        try:
            from harness.client.libraries.sdk import SdkTransport
        except ImportError as error:
            raise UsageError(
                f"it needs the package openai: {install_line('sdk')}", field="transport", value=name
            ) from error

        return SdkTransport(ca_file=ca_file, insecure=insecure, secrets=secrets, memory=memory)
    return _AutoTransport(ca_file, insecure, secrets)


def transport_for(name: TransportName, endpoint: Endpoint) -> Literal["fast", "aiohttp", "sdk"]:
    """Return the name of the transport for `endpoint`.

    "auto" becomes "fast", our own HTTP client, for plain http without a proxy, and "aiohttp" for everything else; any
    other name stays. Raises `UsageError` if the environment names a proxy that is not supported.
    """
    if name != "auto":
        return name
    plain = endpoint.base_url.startswith("http://") and (endpoint.local or proxy_for(endpoint) is None)
    return "fast" if plain else "aiohttp"


class _AutoTransport:
    """Hands each request to the fast transport or to the one on aiohttp, as `transport_for` says."""

    def __init__(self, ca_file: Path | None, insecure: bool, secrets: Sequence[Secret]) -> None:
        self._memory = Memory()
        self._fast = open_transport("fast", secrets=secrets, memory=self._memory)
        self._general: Transport | None = None
        self._ca_file = ca_file
        self._insecure = insecure
        self._secrets = secrets

    async def complete(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None = None,
    ) -> Reply:
        """Send the request by the transport that `transport_for` names; aiohttp is opened when first needed."""
        if transport_for("auto", endpoint) == "fast":
            return await self._fast.complete(endpoint, path, body, deadlines, max_body_bytes, arriving)
        if self._general is None:
            self._general = open_transport(
                "aiohttp",
                ca_file=self._ca_file,
                insecure=self._insecure,
                secrets=self._secrets,
                memory=self._memory,
            )
        return await self._general.complete(endpoint, path, body, deadlines, max_body_bytes, arriving)

    async def close(self) -> int:
        """Close both transports. Returns the number of replies of both that may be leftovers."""
        n_doubtful = await self._fast.close()
        if self._general is not None:
            n_doubtful += await self._general.close()
        return n_doubtful
