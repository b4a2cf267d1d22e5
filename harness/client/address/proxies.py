"""Which proxy the environment names for an endpoint.

The first that applies: loopback and private hosts have none; then `https_proxy` or `http_proxy` by the address's
scheme; then `all_proxy`; and a host that `no_proxy` names has none. Names of variables count in any case.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from harness.client.address.endpoint import Endpoint
from harness.client.address.redact import redacted
from harness.core.errors import UsageError


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the proxy for `endpoint`, user-info included; None for loopback, private and excepted hosts."""
    if endpoint.local:
        return None
    named = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy") and value}
    parts = urlsplit(endpoint.base_url)
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    if not proxy or _excepted(parts.hostname or "", parts.port, named.get("no_proxy", "")):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise UsageError(
            f"the environment names the proxy {redacted(proxy)}; only http:// proxies are supported: "
            f"set {parts.scheme.upper()}_PROXY, or NO_PROXY={parts.hostname}"
        )
    try:
        _ = urlsplit(proxy).port
    except ValueError:
        raise UsageError(
            "the proxy that the environment names has no readable port; percent-encode its password"
        ) from None
    return proxy


def _excepted(host: str, port: int | None, no_proxy: str) -> bool:
    """NO_PROXY: names and their subdomains, `*`, with or without a port."""
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip(".")
        if name == "*" or (name and (host == name or host.endswith(f".{name}") or f"{host}:{port}" == name)):
            return True
    return False
