"""Options for the server to use (addresses, a hosted provider, a server started here or for a run) and its requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness.core.errors import UsageError
from harness.core.option_kinds import JSON, Kind
from harness.core.options import Option, Options
from harness.core.secret import Secret, reveal_secrets, seal_secrets
from harness.options.command import LIMITS, REQUEST, WHOM


def _headers(value: Any) -> Any:
    """The headers in a mapping, or in texts NAME:VALUE, as pairs of a name and a secret value.

    Raises `UsageError`, which never repeats the text, because the text may contain a key.
    """
    refused = UsageError("expected NAME:VALUE", field="header")
    headers = value.items() if isinstance(value, Mapping) else (value,) if isinstance(value, str) else value or ()
    if not isinstance(headers, Iterable):
        raise refused
    pairs = []
    for header in headers:
        pair = header.split(":", 1) if isinstance(header, str) else header
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise refused
        name, text = pair
        if not isinstance(name, str) or not name.strip() or not isinstance(text, str | Secret):
            raise refused
        pairs.append((name.strip(), text if isinstance(text, Secret) else Secret(text.strip())))
    return tuple(pairs)


def _as_server_fields(value: Any) -> Any:
    """A mapping with `engine` and other fields of a server's spec; an engine's name becomes such a mapping."""
    if isinstance(value, str):
        return {"engine": value}
    if isinstance(value, Mapping) and not value.get("engine"):
        raise ValueError('expected an engine name, or a mapping such as {"engine": "vllm", "tp": 8}')
    return value


HEADERS = Kind("Mapping[str, str] | Texts", _headers, str | tuple[str, ...] | dict[str, str])
SERVED = Kind("str | Mapping[str, Any]", _as_server_fields)
"""Kind of an option that describes a server to start: an engine's name, or a mapping whose fields are those of
`server_launchers.spec.ServerSpec`.
"""


class WhichServer(Options):
    """The server of a run. Without an address or a provider: OPENAI_BASE_URL, or else the running server.

    flag, wait_flag: the words on a command line that specify an address, and how long to wait for it.
    """

    flag: ClassVar[str] = "base_url"
    wait_flag: ClassVar[str] = "wait"

    model: Annotated[str | None, Option(under=WHOM)] = None
    """Model name, as listed by the server. Default: the server's only model."""
    base_url: Annotated[tuple[str, ...], Option(under=WHOM, metavar="URL|NAME|FILE")] = ()
    """Server URL, name (`harness serve status`) or file (docs/scaling.md). Repeatable. Default: OPENAI_BASE_URL or the
    running server.
    """
    provider: Annotated[str | None, Option(under=WHOM, metavar="NAME")] = None
    """Hosted provider, such as deepseek or openrouter (docs/hosted.md). Default: inferred from the URL."""
    serve: Annotated[dict[str, Any] | None, Option(under=WHOM, metavar="ENGINE", kind=SERVED)] = None
    """Start a server with this engine for the run, and stop it afterwards."""
    api_key_env: Annotated[str | None, Option(under=WHOM, metavar="VARIABLE")] = None
    """Environment variable that holds the API key. Default: the provider's variable (such as DEEPSEEK_API_KEY), or
    OPENAI_API_KEY.
    """
    header: Annotated[
        tuple[tuple[str, Secret], ...], Option(under=WHOM, metavar="NAME:VALUE", kind=HEADERS, secret=True)
    ] = ()
    """Extra request header (never stored). Repeatable."""
    concurrency: Annotated[int | None, Option(under=LIMITS, least=1)] = None
    """Maximum number of requests in flight. Default: the server's limit, or 64."""

    wait: Annotated[float | None, Option(under=LIMITS, metavar="SECONDS", least=0)] = None
    """Maximum wait for the first reply of a server that is not ready; 0 fails at once. Default: 600 if it says that it
    is starting or if an address of this machine refuses connections, otherwise 120; 0 if no server answers at another
    machine's address.
    """

    def for_worker(self) -> dict[str, Any]:
        """The options that were set, with keys in plain text, as values for one of our worker processes."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in self.explicit.items()}
        revealed: dict[str, Any] = reveal_secrets(plain)
        return revealed

    def _check(self) -> None:
        """Raise `UsageError` if the server is specified twice, has an empty address, or has no model to serve."""
        super()._check()
        # A shell replaces an unset variable with an empty text.
        if not all(self.base_url):
            raise UsageError("`base_url` is empty: specify the server's address, such as http://127.0.0.1:8000")
        if self.serve is not None:
            if self.base_url or self.provider:
                others = "`base_url` and `provider`"
                raise UsageError(
                    f"it starts a server, but {others} specify a running server: use one or the other",
                    field="serve",
                )
            if not self.model:
                raise UsageError("it also requires `model`, the model to serve", field="serve")


def _body(value: Any) -> Any:
    """The fields with keys sealed. Raises `ValueError` for a value that JSON cannot represent."""
    sealed = seal_secrets(JSON.parse(value))
    try:
        json.dumps(reveal_secrets(sealed), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected values that can be represented in JSON ({error})") from error
    return sealed


BODY = JSON._replace(parse=_body)
"""Kind of an option for fields of a request's body. Values that may be keys are sealed, so they are never shown."""


class HowWritten(Options):
    """Fields of a request's body other than the sampling."""

    extra_body: Annotated[dict[str, Any], Option(under=REQUEST, metavar="JSON", kind=BODY)] = {}  # noqa: RUF012 - frozen
    """Fields to merge into each request body, such as '{"chat_template_kwargs": {"enable_thinking": false}}'."""
    drop: Annotated[tuple[str, ...], Option(under=REQUEST, metavar="FIELD")] = ()
    """Request field to omit, such as temperature. In a run, omitting `stream` turns streaming off. Repeatable."""

    def _check(self) -> None:
        """Raise `UsageError` if the chat template arguments are not an object."""
        super()._check()
        if not isinstance(self.extra_body.get("chat_template_kwargs", {}), dict):
            raise UsageError("chat_template_kwargs: expected a JSON object (or omit it)", field="extra_body")
