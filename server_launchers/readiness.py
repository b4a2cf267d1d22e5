"""A single check of a started server: whether it is healthy, serves the model, and has generated a token."""

from __future__ import annotations

import os
import ssl
from typing import Any

import httpx

from harness.core.sanitize import visible
from server_launchers.engines.engine import Readiness

PAGE_SECONDS = 5.0
"""Seconds that the health page and the model list may each take."""
_LOADING = 503
"""Status of a server that is still loading."""
TOKEN_SECONDS = 120.0
"""Seconds that the first token may take; it may have to wait for kernel compilation."""

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""An empty set of certificates for plain http; loading the system's certificates at every check would take longer than
the page."""


class NotReady(Exception):
    """The server is not ready yet; the text says what is missing."""


class NoCompletion(NotReady):
    """The server answers a first request with something other than a completion, and does not report that it is still
    loading (503). Each of these requests may add lines to its log, so a growing log is not a sign of progress in this
    case.
    """


class WrongServer(Exception):
    """The server that answers cannot be the one that we started."""


def check_ready(base_url: str, readiness: Readiness, model: str, api_key_env: str | None) -> str:
    """Check once whether the server at `base_url` is ready, and return its model's name; otherwise raise NotReady or
    WrongServer.

    model: the expected name; if empty, the first name that the server lists is used. readiness: the indications that a
    server of this engine is ready. api_key_env: the environment variable with the key.
    """
    key = os.environ.get(api_key_env, "") if api_key_env else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # Proxies from the environment are for other hosts, not for a server that we started.
    verify = NO_CERTIFICATES if base_url.startswith("http://") else True
    with httpx.Client(
        base_url=base_url, headers=headers, timeout=PAGE_SECONDS, verify=verify, trust_env=False
    ) as client:
        try:
            if readiness.health_path is not None:
                answer = client.get(readiness.health_path)
                if answer.status_code != 200:
                    raise NotReady(f"{readiness.health_path} answers {answer.status_code}")
            if readiness.lists_models or not model:
                model = _check_listed(client, model)
            _check_token(client, model)
        except httpx.HTTPError as error:
            # A refused connection is normal for minutes and gets its own wording; other errors are named by their
            # class.
            refused = isinstance(error, httpx.ConnectError)
            raise NotReady("it is not listening yet" if refused else type(error).__name__) from None
    return model


def _check_listed(client: httpx.Client, model: str) -> str:
    """The name under which the server lists the model (if `model` is empty, the first name in the list).

    Raises NotReady, or WrongServer for a server that is not ours.
    """
    answer = client.get("/v1/models")
    # A server of ours would know the key: another program has taken the port.
    if answer.status_code == 401:
        raise WrongServer("it rejected the API key (401)")
    if answer.status_code != 200:
        raise NotReady(f"/v1/models returned {answer.status_code}")
    try:
        names = [str(entry["id"]) for entry in answer.json()["data"]]
    # A list in another format comes from another program, and waiting would not change it.
    except (ValueError, KeyError, TypeError):
        raise WrongServer("its /v1/models page is not an OpenAI-compatible list") from None
    if not model and names:
        return names[0]
    if model not in names:
        listed = ", ".join(visible(name, 80) for name in names[:5]) or "no model"
        raise WrongServer(f"it serves {listed}, not {model}")
    return model


def _check_token(client: httpx.Client, model: str) -> None:
    """Generate one token with a chat request, or with a completions request if the model has no chat template.

    Raises `NotReady` while the server is loading, and `NoCompletion` for any other reply that is not a completion.
    """
    body: dict[str, Any] = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    answer = client.post("/v1/chat/completions", json=body, timeout=TOKEN_SECONDS)
    # A base model has no chat template: vLLM then returns 400, and servers without a chat page return 404.
    if answer.status_code in (400, 404):
        body = {"model": model, "max_tokens": 1, "prompt": "Hi"}
        answer = client.post("/v1/completions", json=body, timeout=TOKEN_SECONDS)
    text = visible(answer.text.strip(), 200)
    if answer.status_code != 200:
        kind = NotReady if answer.status_code == _LOADING else NoCompletion
        raise kind(f"the first request returned {answer.status_code}: {text}")
    try:
        answer.json()["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        form = visible(answer.headers.get("content-type", "no content type"), 80)
        raise NoCompletion(
            f"the first request (POST {answer.request.url.path} without `stream`) returned {form} instead of a "
            f"JSON completion: {text}"
        ) from None
