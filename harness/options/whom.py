"""Options for the server: addresses, a hosted provider, a server started here earlier, or one to start for this run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness.core.choices import Api, TransportName
from harness.core.errors import UsageError
from harness.core.options import Kind, Option, Options
from harness.core.secret import Secret, reveal_secrets
from harness.options.headings import LIMITS, WHOM


def _headers(value: Any) -> Any:
    """Return the headers in a mapping, or in texts NAME:VALUE, as pairs of a name and a secret value.

    Raises `UsageError`, which never repeats the text: it may hold a key.
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
    """Return a mapping with `engine` and fields of a server's spec; an engine's name becomes such a mapping."""
    if isinstance(value, str):
        return {"engine": value}
    if isinstance(value, Mapping) and not value.get("engine"):
        raise ValueError('expected an engine\'s name, or a mapping such as {"engine": "vllm", "tp": 8}')
    return value


HEADERS = Kind("Mapping[str, str] | Texts", _headers, str | tuple[str, ...] | dict[str, str])
SERVED = Kind("str | Mapping[str, Any]", _as_server_fields)
"""Kind of an option that describes a server to start: an engine's name, or a mapping whose fields are those of
`server_launchers.spec.ServerSpec`.
"""


class WhichServer(Options):
    """The server of a run. Without an address or a provider: OPENAI_BASE_URL, else the running server.

    flag: the words of a command line that give an address.
    """

    flag: ClassVar[str] = "base_url"

    model: Annotated[str | None, Option(under=WHOM)] = None
    """Model name as the server lists it. Default: the only one it lists."""
    base_url: Annotated[tuple[str, ...], Option(under=WHOM, metavar="URL|NAME|FILE")] = ()
    """Server, with or without /v1, or unix:/PATH of its socket; repeat it for several. Or the name of a server, as
    `harness serve status` shows it; or a file of servers, one URL a line, or the folder in which servers register,
    whose changes the run follows (docs/scaling.md). Default: OPENAI_BASE_URL, else the running server.
    """
    provider: Annotated[str | None, Option(under=WHOM, metavar="NAME")] = None
    """Hosted provider by name (deepseek, openrouter …; docs/hosted.md). Default: recognised by the server's address."""
    serve: Annotated[dict[str, Any] | None, Option(under=WHOM, metavar="ENGINE", kind=SERVED)] = None
    """Start this engine for the run and stop it after."""
    api_key_env: Annotated[str | None, Option(under=WHOM, metavar="VARIABLE")] = None
    """Environment variable with the key. Default: the provider's (DEEPSEEK_API_KEY …), else OPENAI_API_KEY."""
    header: Annotated[
        tuple[tuple[str, Secret], ...], Option(under=WHOM, metavar="NAME:VALUE", kind=HEADERS, secret=True)
    ] = ()
    """Extra request header; stored nowhere. May be repeated."""
    concurrency: Annotated[int | None, Option(under=LIMITS, least=1)] = None
    """Requests in flight. Default: what the server states, else 64."""

    def for_worker(self) -> dict[str, Any]:
        """The options that were set, with keys in the clear, as values for a worker process of ours."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in self.given.items()}
        revealed: dict[str, Any] = reveal_secrets(plain)
        return revealed

    def _check(self) -> None:
        """Raise `UsageError` if the server is named in two ways, has an empty address, or lacks a model to serve."""
        super()._check()
        # A shell puts an empty text in the place of a variable that is not set.
        if not all(self.base_url):
            raise UsageError("base_url is empty: give the server's address, such as http://127.0.0.1:8000")
        if self.serve is not None:
            if self.base_url or self.provider:
                others = "base_url and `provider`"
                raise UsageError(
                    f"it starts a server, but {others} name a running one: give either this option or one of those",
                    field="serve",
                )
            if not self.model:
                raise UsageError("it needs `model`, the model to serve", field="serve")


class HowReached(Options):
    """How the servers of a run are reached: by which API, and by which transport."""

    api: Annotated[Api, Option(under=WHOM)] = "chat"
    """chat, responses and messages take turns of a conversation; completions one plain prompt, without a template."""
    transport: Annotated[TransportName, Option(under=WHOM)] = "http"
    """Transport of requests. http: our own. openai: the openai package."""
