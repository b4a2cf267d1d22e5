"""What the events of one reply add up to: texts, times of tokens, finish reason, usage, names. Knows no bytes."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from harness.client.protocol.plain_event import PlainEvent
from harness.client.protocol.reply import LATE_TEXT, MOST_LIKELIEST, Reply
from harness.client.protocol.usage import usage_of
from harness.client.protocol.written import SoFar, Written
from harness.core.inert import quoted
from harness.core.records import Timing

_JOIN_AT = 256
"""Token texts that are joined into one block: a list of 8,000 short strings takes 15 times the memory."""

_LONG_PIECE = 4096
"""Characters of one event's text from which it is joined at once, so that what waits to be joined stays small."""


class Completion:
    """One completion under way.

    stamps: when each token came. finish_reason: None until it came; the completion is whole then, though usage may
    follow. may_hold_halves: lone surrogates may have come. notes: oddities, for `Reply.notes`.
    second_reply: after the finish reason came the text of another one. written: told of what it is made of.
    """

    __slots__ = (
        "_block_bytes",
        "_blocks",
        "_came",
        "_fingerprint",
        "_finish_id",
        "_id",
        "_likeliest",
        "_n_logprobs",
        "_n_odd_logprobs",
        "_n_taken",
        "_pieces",
        "_server_model",
        "_usage",
        "finish_reason",
        "may_hold_halves",
        "notes",
        "second_reply",
        "stamps",
        "written",
    )  # fmt: skip

    def __init__(self, written: Written | None = None) -> None:
        self.written = written
        self.stamps = array("d")
        self.finish_reason: str | None = None
        self.may_hold_halves = False
        self.notes: list[str] = []
        # Of each pair the first is the text's, the second the reasoning's.
        self._pieces = ([], [])  # type: tuple[list[str], list[str]]  # the latest
        self._blocks = ([], [])  # type: tuple[list[str], list[str]]  # joined ones, before those
        self._came = [False, False]  # a string came, even an empty one
        self._block_bytes = 0
        self._n_taken = 0  # characters, event by event
        self._n_logprobs = self._n_odd_logprobs = 0  # tokens
        self._likeliest: object = None  # of the latest token, as plain completions say it
        self._usage: dict[str, Any] | None = None
        self._id: str | None = None
        self._server_model: str | None = None
        self._fingerprint: str | None = None
        self._finish_id: str | None = None  # of the event that brought the finish reason
        self.second_reply = False

    @property
    def held_bytes(self) -> int:
        """Memory that texts and stamps take, about."""
        return self._block_bytes + self.stamps.itemsize * len(self.stamps)

    def add_tokens(
        self, texts: Sequence[str], stamps: Sequence[float], *, reasoning: bool, ids: Sequence[list[int]] | None = None
    ) -> None:
        """Texts of tokens, in order, with the time each event came, and its ids where it stated them."""
        if self.written is not None:
            self.written.events(texts, ids)
        self._pieces[reasoning].extend(texts)
        self._join(reasoning)
        self._came[reasoning] = True
        if self.finish_reason is not None:
            self.note(LATE_TEXT)
        self.stamps.extend(stamps if all(texts) else [at for text, at in zip(texts, stamps, strict=True) if text])

    def add_plain(self, event: PlainEvent, at: float) -> None:
        """An event as nearly all are, received at `at`."""
        if event.usage is not None:
            self._usage = event.usage
        if self._server_model is None:
            self._server_model = event.model or None
            self._id = event.id or self._id
        elif event.model and event.model != self._server_model:
            self._renamed(event.model)
        if event.system_fingerprint:
            self._fingerprint = event.system_fingerprint
        if self.written is not None:
            self.written.prompt(event.prompt_token_ids)
        for choice in event.choices:
            delta = choice.delta
            before = self._n_taken
            came = False
            if delta.content is not None:
                came = self._take(0, delta.content)
            reasoned = delta.reasoning_content is not None and self._take(1, delta.reasoning_content)
            if not reasoned and delta.reasoning is not None:
                reasoned = self._take(1, delta.reasoning)
            logprobs: list[float | None] = []
            if choice.logprobs is not None and choice.logprobs.content:
                logprobs = [token.logprob for token in choice.logprobs.content]
                self._count_logprobs(logprobs)
            if self.written is not None:
                self.written.event(self._n_taken - before, choice.token_ids, logprobs)
            if came or reasoned:
                self.stamps.append(at)
                if self.finish_reason is not None:
                    self._late(event.id)
            if choice.finish_reason:
                self.finish_reason = choice.finish_reason
                self._finish_id = event.id

    def add(self, event: dict[str, Any], at: float) -> None:
        """Any event that is no error, or a whole body; what it holds of other kinds than expected is passed over."""
        usage = event.get("usage")
        if type(usage) is dict:
            self._usage = usage
        if self._server_model is None:
            self._server_model = _string(event.get("model"))
            self._id = _string(event.get("id")) or self._id
        elif (model := _string(event.get("model"))) and model != self._server_model:
            self._renamed(model)
        self._fingerprint = _string(event.get("system_fingerprint")) or self._fingerprint
        choices = event.get("choices")
        if self.written is not None:
            self.written.prompt(event.get("prompt_token_ids"))
        if type(choices) is list:
            for choice in choices:
                # One completion a request: other indices belong to a caller who asked for n > 1.
                if type(choice) is dict and choice.get("index") in (0, None):
                    self._add_choice(choice, _string(event.get("id")), at)

    def reply(
        self,
        *,
        started: float,
        started_utc: float,
        ended: float,
        clock: Literal["kernel", "user"],
        request_id: str | None,
    ) -> Reply:
        """The finished reply. started, ended: on the clock of the stamps; started_utc: the start as Unix time;
        request_id: the one of the response's head, for events without one."""
        assert self.finish_reason is not None
        text, reasoning = self._text(0), self._text(1)
        stamps = self.stamps
        gaps = sorted(map(float.__sub__, stamps[1:], stamps))
        return Reply(
            text=text,
            reasoning=reasoning,
            finish_reason=self.finish_reason,
            usage=usage_of(self._usage, has_text=bool(text or reasoning), has_reasoning=bool(reasoning)),
            timing=Timing(
                started=started_utc,
                first_token=stamps[0] - started if stamps else None,
                last_token=stamps[-1] - started if stamps else None,
                total=ended - started,
                gap_p50=gaps[len(gaps) // 2] if gaps else None,
                gap_p99=gaps[min(len(gaps) - 1, int(len(gaps) * 0.99))] if gaps else None,
                events=len(stamps),
                clock=clock,
            ),
            server_model=self._server_model,
            fingerprint=self._fingerprint,
            request_id=self._id or request_id,
            n_logprobs=self._n_logprobs,
            n_odd_logprobs=self._n_odd_logprobs,
            likeliest=_likeliest_of(self._likeliest),
            notes=tuple(self.notes),
        )

    def so_far(self) -> SoFar:
        """What has come until now."""
        written = self.written or Written()
        return SoFar(
            text=self._text(0),
            reasoning=self._text(1),
            ids=written.ids,
            prompt_ids=written.prompt_ids,
            lengths=written.lengths,
            n_events=len(self.stamps),
            server_model=self._server_model,
            request_id=self._id,
            logprobs=written.logprobs,
        )

    def diagnosis(self) -> str:
        """Reasoning and text as they have come."""
        return "".join([*self._blocks[1], *self._pieces[1], *self._blocks[0], *self._pieces[0]])

    def _add_choice(self, choice: dict[str, Any], event_id: str | None, at: float) -> None:
        before = self._n_taken
        delta = choice.get("delta")
        if type(delta) is not dict:
            delta = choice.get("message")
        came = False
        reasoned = False  # some servers send a reasoning under both names, or one of them empty
        if type(delta) is dict:
            for name, piece in delta.items():
                if name == "content":
                    if type(piece) is str:
                        came |= self._take(0, piece)
                    elif type(piece) is list:
                        for is_reasoning, part in _parts(piece):
                            came |= self._take(is_reasoning, part)
                elif name == "refusal" and piece:
                    self.note("refusal")
                elif name == "tool_calls" and piece:
                    self.note("tool call")
            for name in ("reasoning_content", "reasoning"):
                if type(piece := delta.get(name)) is str and not reasoned:
                    reasoned = self._take(1, piece)
            came |= reasoned
        text = choice.get("text")
        if type(text) is str:
            came |= self._take(0, text)
        said = choice.get("logprobs")
        logprobs = [*_logprobs_of(said)]
        self._count_logprobs(logprobs)
        if logprobs and type(said) is dict and type(top := said.get("top_logprobs")) is list and top:
            self._likeliest = top[-1]
        if self.written is not None:
            self.written.prompt(choice.get("prompt_token_ids"))
            self.written.event(self._n_taken - before, choice.get("token_ids"), logprobs)
        if came:
            self.stamps.append(at)
            if self.finish_reason is not None:
                self._late(event_id)
        reason = choice.get("finish_reason")
        if reason and type(reason) is str:
            self.finish_reason = reason
            self._finish_id = event_id

    def _count_logprobs(self, logprobs: Iterable[object]) -> None:
        for value in logprobs:
            self._n_logprobs += 1
            self._n_odd_logprobs += type(value) not in (int, float)

    def _take(self, which: int, piece: str) -> bool:
        self._came[which] = True
        if not piece:
            return False
        self._n_taken += len(piece)
        pieces = self._pieces[which]
        pieces.append(piece)
        if len(pieces) >= _JOIN_AT or len(piece) >= _LONG_PIECE:
            self._join(which)
        return True

    def _join(self, which: int) -> None:
        block = "".join(self._pieces[which])
        self._pieces[which].clear()
        self._blocks[which].append(block)
        self._block_bytes += sys.getsizeof(block)

    def _late(self, event_id: str | None) -> None:
        """Text came after the finish reason: under another id, where ids do not change from event to event, it belongs
        to another reply."""
        self.note(LATE_TEXT)
        if event_id is not None and self._finish_id == self._id != event_id:
            self.second_reply = True

    def _renamed(self, model: str) -> None:
        was, now = quoted(self._server_model or ""), quoted(model)
        if not any(note.startswith("the model's name") for note in self.notes):
            self.notes.append(f"the model's name changes inside the stream: {was}, then {now}")

    def note(self, note: str) -> None:
        """Keep an oddity, once."""
        if note not in self.notes:
            self.notes.append(note)

    def _text(self, which: int) -> str | None:
        if not self._came[which]:
            return None
        text = "".join([*self._blocks[which], *self._pieces[which]])
        if self.may_hold_halves:  # halves of one character in two events meet here; a lone half stays
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text


def _logprobs_of(said: object) -> Iterator[object]:
    """Of each token, as chat completions have them (`content`) or as plain completions do (`token_logprobs`)."""
    if isinstance(said, dict):
        if isinstance(content := said.get("content"), list):
            yield from (one.get("logprob") if isinstance(one, dict) else None for one in content)
        elif isinstance(alone := said.get("token_logprobs"), list):
            yield from alone


def _likeliest_of(said: object) -> dict[str, float]:
    """Token → log-probability; empty where it is anything else, or more than a server lists."""
    if type(said) is not dict or len(said) > MOST_LIKELIEST:
        return {}
    numbers = {token: value for token, value in said.items() if type(value) in (int, float) and math.isfinite(value)}
    return numbers if len(numbers) == len(said) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _parts(content: list[Any]) -> Iterable[tuple[bool, str]]:
    """(is reasoning, text) of content sent as typed parts, as Mistral's reasoning models do."""
    for part in content:
        if isinstance(part, dict):
            thinking = part.get("thinking")
            if isinstance(thinking, str):
                yield True, thinking
            elif isinstance(thinking, list):
                for piece in thinking:
                    if isinstance(piece, dict) and isinstance(piece.get("text"), str):
                        yield True, piece["text"]
            text = part.get("text")
            if isinstance(text, str):
                yield False, text
