"""A server that a probe queries over HTTP: non-streamed replies one by one, streams through a run's client, and the
log-probabilities that it assigns to the tokens of a given reply.

vLLM accepts token IDs at /v1/completions with `prompt_logprobs`, and returns token ID → log-probability for each
position. SGLang accepts them at /generate with `return_logprob`, and returns lists of (log-probability, token ID,
text).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from harness.client.address.endpoint import Endpoint, quote_safely, secrets_of, without_repeats
from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.facts import page
from harness.client.facts.server_info import ServerInfo
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Deadlines, Post
from harness.client.protocol.failures import RequestFailed, error_words, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.transport import open_transport
from harness.core import channel, codec
from harness.core.errors import ServerError
from harness.core.records import NOTHING_TOLD, Message, ServerFacts
from harness.generation.settings import Patience
from harness.options.probing import ProbeOptions
from harness.options.server import WhichServer
from harness.preparing import servers
from harness.preparing.servers import discover
from harness.probes.requests import Fields, ProbedServer, ProbeReply, Refused, read_reply
from harness.progress.events import Watcher
from server_launchers.engines import table as engines

PATIENCE_SECONDS = 300.0
"""Total number of seconds that one request waits, after the server's first reply, while it rejects the request because
of a rate limit (429) or overload (503).
"""

PAUSE_SECONDS = 2.0
"""Pause after a rejection that specifies none, in seconds; doubled each time."""

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of the body of a streamed reply, in bytes."""

READ_WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before each further attempt to read the tokens of a stored reply; then the check is untested."""

MAX_READ_BYTES = 256 * 1024 * 1024
"""Maximum size of a body with the log-probabilities of a prompt, in bytes; 128,000 tokens take about 50 MB."""


TOP_READ = 5
"""Number of likeliest tokens that are requested at each position."""

LEAST, MOST = -1e4, 0.1
"""Bounds of a log-probability, in nats: vLLM returns -9,999 for minus infinity, and rounding may produce values above
0.
"""


class ReadTokens(NamedTuple):
    """What a server returns for some tokens. logprobs: the log-probability of each. tops: token ID → log-probability of
    the likeliest tokens at each position, empty where it returns none.
    """

    logprobs: list[float]
    tops: list[dict[str, float]]


@dataclass(kw_only=True)
class ProbedEndpoint(ProbedServer):
    """A server reached over HTTP. facts: what it reports about itself. seconds: how long to wait for a reply.
    calls_endpoint: endpoint of the API through which function calls are checked; its address may differ. patience: how
    long the first reply is waited for.
    """

    endpoint: Endpoint
    calls_endpoint: Endpoint
    facts: ServerFacts = NOTHING_TOLD
    seconds: float
    patience: Patience
    _begun: float = field(default_factory=time.monotonic)

    def send(self, body: Fields, api: API) -> ProbeReply:
        """Send one request as is, retrying while the server's limits reject it; return its reply. Raises `Refused`."""
        content = self._post(self.endpoint.base_url + api.path, body, page.MAX_PAGE_BYTES)
        # Findings quote replies and references store them, so keys that a reply repeats are hidden first.
        secrets = secrets_of(self.endpoint, self.asker.spelling.secrets)
        text = without_repeats(content.decode("utf-8", "surrogateescape"), secrets)
        return read_reply(text.encode("utf-8", "surrogateescape"), api)

    def read(self, prompt: Sequence[int], reply: Sequence[int]) -> ReadTokens:
        """The log-probabilities that the server assigns to a reply's tokens. prompt, reply: token IDs. Raises
        `Refused`.
        """
        path, body = _request(self.engine, self.asker.model, prompt, reply)
        for wait in (*READ_WAITS, None):
            try:
                content = self._post(self.endpoint.root + path, body, MAX_READ_BYTES)
                break
            except ServerError as error:
                # `_post` has already waited after 429 and 503; other statuses below 500 are rejections.
                is_refused = isinstance(error, Refused) and (error.status < 500 or error.status == 503)
                if wait is None or is_refused:
                    raise
                time.sleep(wait)
        self.answered = True
        with self._lock:
            self.n_tokens += len(prompt) + len(reply)
        return _tokens(self.engine, content, reply, self.endpoint.base_url)

    def _post(self, url: str, body: Fields, max_bytes: int) -> bytes:
        """The body of the reply to a request, retried while the server is not ready. Raises `ServerError`."""
        waited, pause = 0.0, PAUSE_SECONDS
        failure: RequestFailed | ServerError
        while True:
            self._count_request()
            try:
                # `transient`: this loop does the retries, not `get`, which gives up sooner and counts nothing.
                send = partial(page.get, self.endpoint, url, timeout=self.seconds, transient=(), max_bytes=max_bytes)
                answer = send(content=codec.encode(body))
            except ServerError as error:
                end = failure = error
            else:
                if answer.status == 200:
                    return answer.body
                end = Refused(answer.status, self.redacted(error_words(answer.body)))
                failure = failure_of_status(answer.status, answer.body, answer.headers)
            if (wait := self._seconds_to_retry(failure, waited, pause)) is None:
                raise end
            with channel.waiting(self._why(wait, failure)):
                time.sleep(wait)
            waited, pause = waited + wait, 2 * pause

    def _seconds_to_retry(self, failure: RequestFailed | ServerError, waited: float, pause: float) -> float | None:
        """Seconds after which a failed request is sent again; None if its failure is final."""
        wait = getattr(failure, "retry_after", None) or pause
        if self.answered:
            is_busy = getattr(failure, "kind", "") == "rate_limited" and waited + wait <= PATIENCE_SECONDS
            return wait if is_busy else None
        left = self._begun + self.patience.before_reply([failure.hope]) - time.monotonic()
        return min(wait, left) if left > 0 and failure.hope not in (None, "slow") else None

    def _why(self, wait: float, failure: RequestFailed | ServerError) -> str:
        """The end of the line about a wait."""
        return f"{wait:.0f} s because the server is rejecting requests: {self.redacted(str(failure))}"

    def send_streams(self, bodies: Sequence[Fields], api: API = CHAT) -> list[Reply | RequestFailed]:
        """Send requests as they are, one by one; return their replies in order, parsed as in a run. A failure takes the
        place of its reply.
        """
        replies: list[Reply | RequestFailed] = []
        # Runs in a separate thread, because the caller may already run an event loop. After Ctrl-C, nobody waits for
        # it.
        send = partial(asyncio.run, self._streams(bodies, api))
        thread = threading.Thread(target=lambda: replies.extend(send()), daemon=True)
        thread.start()
        thread.join()
        return replies

    async def _streams(self, bodies: Sequence[Fields], api: API) -> list[Reply | RequestFailed]:
        """The reply or failure of each request, in order. A request is retried while the server is not ready."""
        transport = open_transport(secrets=self.asker.spelling.secrets)
        patience = Deadlines(connect=10, first_token=self.seconds, idle=60)
        endpoint = self.endpoint if api is CHAT else self.calls_endpoint

        async def ask(body: Fields) -> Reply | RequestFailed:
            waited, pause = 0.0, PAUSE_SECONDS
            while True:
                self._count_request()
                try:
                    post = Post(endpoint, api, codec.encode(body), patience, MAX_BYTES)
                    return await transport.complete(post)
                except RequestFailed as failed:
                    if (wait := self._seconds_to_retry(failed, waited, pause)) is None:
                        return failed
                    why = self._why(wait, failed)
                with channel.waiting(why):
                    await asyncio.sleep(wait)
                waited, pause = waited + wait, 2 * pause

        try:
            return [await ask(body) for body in bodies]
        finally:
            await transport.close()

    def render(self, messages: Sequence[Message]) -> tuple[str, list[int]] | None:
        """The prompt for these messages, as text and token IDs; None if the engine does not reveal prompts."""
        if self.engine is None or engines.profile(self.engine).tokens is None:
            return None
        tokenizer = Tokenizer(self.endpoint, self.engine, self.asker.model)
        return tokenizer.render(messages, self.asker.spelling.chat_template_kwargs)

    def _count_request(self) -> None:
        with self._lock:  # `send_many` sends requests in several threads.
            self.n_requests += 1

    def redacted(self, words: str) -> str:
        """The server's words, safe to show: without the key and other secrets of the endpoint."""
        return quote_safely(words, secrets_of(self.endpoint, self.asker.spelling.secrets))


def probed(
    who: WhichServer, watcher: Watcher, written: ProbeOptions, *, shared_key: bool = True
) -> list[ProbedEndpoint]:
    """The servers that `who` names, each looked up once. Raises `UsageError`, or `ServerError` if a server cannot be
    queried.

    written: the fields that are added to all requests or dropped from them, apart from those of the checks. shared_key:
    as in `servers.find`.
    """
    addresses = servers.find(who, shared_key=shared_key)
    for_calls = servers.find(who, shared_key=shared_key, api=written.api)
    info = discover(addresses, who, watcher)
    endpoints = []
    for one, calls_endpoint in zip(info.each, for_calls.endpoints, strict=True):
        if one.failure is not None:
            raise one.failure
        asker = ServerInfo(info.model, (one,)).asker(addresses.provider)
        spelling = replace(
            asker.spelling.with_fields(written.extra_body),
            stream_usage=asker.spelling.stream_usage and "stream_options" not in written.drop,
        )
        endpoints.append(
            ProbedEndpoint(
                endpoint=one.endpoint,
                calls_endpoint=calls_endpoint,
                calls_api=written.api,
                asker=replace(asker, spelling=spelling, left_out=frozenset(written.drop)),
                engine=one.facts.host.get("engine"),
                facts=one.facts,
                seconds=written.timeout,
                patience=replace(servers.PATIENCE, wait=who.wait),
                context=one.entry.context_tokens if one.entry else None,
            )
        )
    return endpoints


# ---- how engines return the log-probabilities of a prompt's tokens


class _Stated(msgspec.Struct):
    logprob: float


class _Choice(msgspec.Struct):
    prompt_logprobs: list[dict[str, _Stated] | None] | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_Entry = tuple[float | None, int, str | None]


class _Meta(msgspec.Struct):
    input_token_logprobs: list[_Entry] | None = None
    input_top_logprobs: list[list[_Entry] | None] | None = None


class _Generated(msgspec.Struct):
    meta_info: _Meta


def lacks_reading(engine: str | None) -> str:
    """Why this engine's servers cannot return a reply's log-probabilities; empty if they can, or it is unknown."""
    if engine is None or engines.profile(engine).reads_prompts:
        return ""
    return f"{engine} does not return log-probabilities of prompt tokens, which this check needs; vLLM and SGLang do"


def _request(engine: str | None, model: str, prompt: Sequence[int], reply: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The path, below the server's root, and the body of the request that reads a reply."""
    ids = [*prompt, *reply]
    if engines.profile(engine).reads_prompts == "input_token_logprobs":
        return "/generate", {
            "input_ids": ids,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
            "logprob_start_len": len(prompt) - 1,
            "top_logprobs_num": TOP_READ,
            "return_text_in_logprobs": False,
        }
    return "/v1/completions", {
        "model": model,
        "prompt": ids,
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": TOP_READ,
    }


def _tokens(engine: str | None, body: bytes, reply: Sequence[int], by: str) -> ReadTokens:
    """What the response to `_request` says about the reply's tokens. by: the server's address. Raises `Refused`."""
    try:
        if engines.profile(engine).reads_prompts == "input_token_logprobs":
            meta = codec.decode(body, _Generated).meta_info
            entries = (meta.input_token_logprobs or [])[-len(reply) :]
            tops = [
                {str(token): value for value, token, _ in each or () if value is not None}
                for each in (meta.input_top_logprobs or [])[-len(reply) :]
            ]
            stated = [value for (value, token, _), sent in zip(entries, reply, strict=False) if token == sent]
        else:
            places = (codec.decode(body, _Completion).choices[0].prompt_logprobs or [])[-len(reply) :]
            tops = [{token: each.logprob for token, each in (place or {}).items()} for place in places]
            stated = [top.get(str(sent)) for top, sent in zip(tops, reply, strict=False)]
    except (codec.DecodeError, IndexError) as error:
        raise Refused(0, f"its reply contains no prompt log-probabilities ({error})", by) from error
    logprobs = [value for value in stated if value is not None]
    values = chain(logprobs, *(top.values() for top in tops))
    if odd := [value for value in values if not LEAST <= value <= MOST]:
        raise Refused(0, f"it returns {odd[0]:g} as a log-probability; expected a value from {LEAST:g} to 0", by)
    if len(logprobs) != len(reply):
        lack = f"it returns log-probabilities for only {len(logprobs)} of the {len(reply)} tokens sent"
        raise Refused(0, lack, by)
    return ReadTokens(logprobs, tops if len(tops) == len(reply) else [{} for _ in reply])
