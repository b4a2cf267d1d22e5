"""A server that a probe asks over HTTP, at the pace that it allows (see `pacing`)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from harness.client.address.endpoint import Endpoint, quote_safely, secrets_of
from harness.client.asker import Asker
from harness.client.facts import page
from harness.client.facts.tokens import Tokenizer, has_token_pages
from harness.client.interface import Deadlines
from harness.client.protocol.failures import error_words, failure_of_status
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.transport import open_transport
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.http_get import TRANSIENT_STATUSES, Page
from harness.core.records import Message
from harness.verbs.probe.acceptance import Acceptance, Attempt, FieldRejected
from harness.verbs.probe.asking import CHAT, SECONDS, Fields, ProbeReply, Refused, ReplyUsage, stated_usage
from harness.verbs.probe.ledger import Ledger, OverBudget
from harness.verbs.probe.pacing import AT_ONCE, LIMITING, Pacer
from server_launchers.engines.dialect import MODELS

UNPACED = TRANSIENT_STATUSES - {*LIMITING}
"""Statuses after which a request is sent again at once, and not when the server's pace allows it."""

BACK_PAUSES_S = (0.0, 1.0, 2.0)
"""Pauses, in seconds, before each look whether a server answers again at whose address nothing answered."""

MAX_BYTES = 16 * 1024 * 1024
"""Longest body of a streamed reply, in bytes."""


@dataclass(kw_only=True)
class ProbedEndpoint:
    """A server reached over HTTP; see `ProbedServer`."""

    endpoint: Endpoint
    asker: Asker
    engine: str | None = None
    context: int | None = None
    deterministic: bool = False
    ca_file: Path | None = None
    n_requests: int = 0
    ledger: Ledger = field(default_factory=Ledger, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _looking: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def acceptance(self) -> Acceptance:
        """What the server accepts."""
        return Acceptance(self.asker)

    @cached_property
    def _pacer(self) -> Pacer:
        return Pacer(self.endpoint)

    @property
    def n_tokens(self) -> int:
        """Tokens that the replies cost so far."""
        return self.ledger.n_tokens

    @property
    def n_bounded(self) -> int:
        """Replies without stated usage, which count with the most tokens possible."""
        return self.ledger.n_bounded

    @property
    def n_refused(self) -> int:
        """Requests that the server refused because of its limits."""
        return self._pacer.n_refused

    @property
    def refused_for_good(self) -> Mapping[str, int]:
        """The refusals among `n_refused` that no further request followed, by status."""
        return self._pacer.refused_for_good

    @property
    def seconds_waited(self) -> float:
        """Seconds in which the server's limits kept requests back."""
        return self._pacer.seconds_waited

    @property
    def ended(self) -> str:
        """Why the server is asked no more; empty while it answers."""
        return self._pacer.ended

    @property
    def n_unsent(self) -> int:
        """Requests that were not sent, or not sent again, because the server is asked no more."""
        return self._pacer.n_unsent

    def whole(self, body: Fields, path: str = CHAT) -> ProbeReply:
        """The reply to one request, not streamed. Raises `Refused`."""
        return self.acceptance.whole(body, partial(self._whole, path=path))

    def _whole(self, body: Fields, path: str) -> ProbeReply:
        """Send one request as it is, and return its reply. Raises `Refused`."""
        with self._reserved(body, path) as bill:
            status, content = self._post(path, codec.encode(body))
            if status != 200:
                raise Refused(status, self._shown(error_words(content)))
            try:
                answer: ProbeReply = codec.decode(content, ProbeReply)
            except codec.DecodeError as error:
                raise Refused(0, f"the reply is no completion ({error})") from error
            if not answer.choices:
                raise Refused(0, "the reply holds no choice")
            usage = answer.usage or ReplyUsage()
            bill(usage.prompt_tokens, usage.completion_tokens, answer.n_shown)
            return answer

    def many(self, bodies: Sequence[Fields], path: str = CHAT) -> list[ProbeReply | Refused]:
        """The replies in the order of `bodies`, read by `AT_ONCE` threads; a refusal stands in place of its reply."""

        def ask(body: Fields) -> ProbeReply | Refused:
            try:
                return self.whole(body, path)
            except Refused as refused:
                return refused

        pool, waits = ThreadPoolExecutor(AT_ONCE, "probe"), True
        try:
            return list(pool.map(ask, bodies))
        except KeyboardInterrupt:
            # The threads send nothing more, and the report does not wait for the replies under way.
            self._pacer.stop("the probe was stopped")
            waits = False
            raise
        finally:
            pool.shutdown(wait=waits, cancel_futures=not waits)

    def streamed(self, bodies: Sequence[Fields], at_once: int = 1) -> list[Reply | RequestFailed]:
        """The replies to chat requests as streams, read by a run's client; a failure stands in place of its reply."""
        replies: list[Reply | RequestFailed] = []
        ends: list[OverBudget | FieldRejected] = []

        def ask() -> None:
            try:
                replies.extend(asyncio.run(self._streams(bodies, at_once)))
            except (OverBudget, FieldRejected) as error:
                ends.append(error)

        # A thread of its own, because the caller may run an event loop already. After Ctrl-C nobody waits for it.
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        try:
            thread.join()
        except KeyboardInterrupt:
            self._pacer.stop("the probe was stopped")
            raise
        if ends:
            raise ends[0]
        return replies

    def posted(self, content: bytes) -> tuple[int, bytes]:
        """HTTP status and body of the reply to these bytes. Raises `ServerError`."""
        try:
            body = codec.decode(content, dict[str, Any])
        except codec.DecodeError:
            return self._posted({"prompt": content.decode(errors="replace")}, content)
        return self.acceptance.posted(body, lambda sent: self._posted(sent, codec.encode(sent)))

    def _posted(self, body: Fields, content: bytes) -> tuple[int, bytes]:
        """Send these bytes as they are. body: what they can cost is reserved by."""
        with self._reserved(body, CHAT) as bill:
            status, reply = self._post(CHAT, content)
            if status == 200:
                usage = stated_usage(reply) or ReplyUsage()
                bill(usage.prompt_tokens, usage.completion_tokens)
            return status, reply

    @contextmanager
    def _reserved(self, body: Fields, path: str) -> Iterator[Callable[..., None]]:
        """Reserve what a request can cost; the block gets a function to bill its reply. Raises `OverBudget`."""
        (reserve,) = self.ledger.reserve([body], path)
        billed = False

        def bill(prompt: int | None, completion: int | None, n_shown: int = 0) -> None:
            nonlocal billed
            billed = True
            self.ledger.settle(reserve, prompt, completion, n_shown)

        try:
            yield bill
        finally:
            if not billed:
                self.ledger.drop(reserve)

    def render(self, messages: Sequence[Message], kwargs: Fields) -> tuple[str, list[int]] | None:
        """The prompt of these messages as text and token ids; None where the engine shows no prompts."""
        switches = {**self.asker.spelling.chat_template_kwargs, **kwargs}
        with self._noticing() as tokenizer:
            return None if tokenizer is None else tokenizer.render(messages, switches)

    def tokens(self, text: str) -> list[int] | None:
        """The token ids of a text; None where the engine shows none. Raises `ServerError`."""
        with self._noticing() as tokenizer:
            return None if tokenizer is None else tokenizer.tokens_of(text)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of token ids; empty where the engine shows none. Raises `ServerError`."""
        with self._noticing() as tokenizer:
            return "" if tokenizer is None else tokenizer.text_of(ids)

    @contextmanager
    def _noticing(self) -> Iterator[Tokenizer | None]:
        """The server's tokenizer; None if it shows none. It is noticed here, too, if the server stops answering."""
        try:
            yield self._tokenizer
        except page.NoAnswer as error:
            if isinstance(error, page.SlowAnswer) or not self._gone():
                raise
            raise Refused(0, self.ended) from error

    @property
    def _tokenizer(self) -> Tokenizer | None:
        if self.engine is None or not has_token_pages(self.engine):
            return None
        return Tokenizer(self.endpoint, self.engine, self.asker.model, self.ca_file)

    async def _streams(self, bodies: Sequence[Fields], at_once: int) -> list[Reply | RequestFailed]:
        """Open the client of a run, and read the streams of all bodies with it, in order; a failure stands in place of
        its reply. at_once: largest number of requests in flight.
        """
        transport = open_transport(ca_file=self.ca_file, secrets=self.asker.spelling.secrets)
        gate = asyncio.Semaphore(at_once)
        patience = Deadlines(connect=10, first_token=SECONDS, idle=60)
        # Requests that test the load must not wait for each other, so all of them are reserved before the first.
        ahead = self.ledger.reserve(bodies, CHAT) if at_once > 1 else None

        async def ask(body: Fields) -> Reply | RequestFailed:
            """Send one body as a stream; a failure is returned instead of the reply."""
            self._count_request()
            try:
                return await transport.complete(self.endpoint, CHAT, codec.encode(body), patience, MAX_BYTES)
            except RequestFailed as failed:
                return failed

        async def paced(body: Fields) -> Reply | RequestFailed:
            """`ask` at the pace that the server allows."""
            while (ticket := await asyncio.to_thread(self._pacer.enter)) is not None:
                reply = await ask(body)
                failure = reply if isinstance(reply, RequestFailed) else None
                gone = failure is not None and failure.kind == "connect" and await asyncio.to_thread(self._gone)
                again = self._pacer.leave(ticket, failure if failure and failure.status in LIMITING else None)
                if not again and not gone:
                    return reply
            return RequestFailed("refused", self.ended)

        async def in_turn(number: int, body: Fields) -> Reply | RequestFailed:
            attempt, alone = Attempt(self.acceptance, body), at_once == 1
            async with gate:
                reserve = ahead[number] if ahead else self.ledger.reserve([body], CHAT)[0]
                reply = await (paced if alone else ask)(attempt.body)
                while self.acceptance.streamed(attempt, reply, alone=alone):
                    reply = await (paced if alone else ask)(attempt.body)
                if isinstance(reply, RequestFailed):
                    self.ledger.drop(reserve)
                else:
                    self.ledger.settle(reserve, reply.usage.prompt_tokens, reply.usage.completion_tokens)
                return reply

        try:
            return list(await asyncio.gather(*(in_turn(number, body) for number, body in enumerate(bodies))))
        finally:
            await transport.close()

    def _post(self, path: str, content: bytes) -> tuple[int, bytes]:
        """Send bytes as they are, again while the server's limits refuse them; return HTTP status and body.

        Raises `ServerError`; `Refused` if the server is asked no more.
        """
        retried = False
        while (ticket := self._pacer.enter()) is not None:
            self._count_request()
            refusal = None
            try:
                answer = self._page(path, content, UNPACED)
                refusal = self._limit(answer)
            except page.NoAnswer as error:
                if isinstance(error, page.SlowAnswer) or (not self._gone() and retried):
                    raise
                retried = True
                self._count_request(-1)
                continue
            finally:
                self._pacer.leave(ticket, refusal)
            if refusal is None:
                return answer.status, answer.body
        raise Refused(0, self.ended)

    def _page(self, path: str, content: bytes | None, transient: Collection[int] = TRANSIENT_STATUSES) -> Page:
        """The page at `path` below the base URL, of any status. content: as in `page.get`. Raises `ServerError`."""
        # A base URL may have a query (Azure's api-version), and the path goes before it.
        base = urlsplit(self.endpoint.base_url)
        url = urlunsplit((base.scheme, base.netloc, base.path + path, base.query, ""))
        return page.get(self.endpoint, url, timeout=SECONDS, ca_file=self.ca_file, content=content, transient=transient)

    def _gone(self) -> bool:
        """Whether nothing answers at the server's address any more, looked at a few times; it is then asked no more."""
        with self._looking:  # One thread looks, the others wait for what it sees.
            for pause in BACK_PAUSES_S if not self.ended else ():
                time.sleep(pause)
                try:
                    self._page(MODELS, None)
                except page.SlowAnswer:
                    return False
                except page.NoAnswer as error:
                    why = error.sentence
                except ServerError:
                    return False
                else:
                    return False
            self._pacer.stop(self.ended or why)
        return True

    def _limit(self, answer: Page) -> RequestFailed | None:
        """The failure of a request that the server refused because of its limits; None for any other reply."""
        if answer.status not in LIMITING:
            return None
        return failure_of_status(
            answer.status,
            answer.body,
            retry_after=answer.retry_after,
            retry_after_ms=answer.retry_after_ms,
            secrets=secrets_of(self.endpoint, self.asker.spelling.secrets),
        )

    def _count_request(self, n: int = 1) -> None:
        # The lock is needed because `many` sends requests in several threads.
        with self._lock:
            self.n_requests += n

    def _shown(self, words: str) -> str:
        """The server's words, safe to show: without the key and other secrets of the endpoint."""
        return quote_safely(words, secrets_of(self.endpoint, self.asker.spelling.secrets))
