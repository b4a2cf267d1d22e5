"""A `Completion`, the sum of one reply's events, and the complete `Reply` that it becomes.

The reply parser (`sse`) passes it decoded events, or a whole body as one event; it never handles bytes.

Which events are trusted is a closed rule; docs/reliability.md has it as a table:

    an event with text or a finish reason     a second id or model is noted, and may not come twice
    an event without (a role, usage, a ping)  may have any id; another model's name is noted

An event that breaks the rule raises `BadEvent`, and the reply does not become a sample. Oddities that the rule allows
and that a score should mention are noted (`harness.core.reply_notes`). Memory is bounded: names have a maximum length,
`usage` is stored as four counts, and texts are joined every `_JOIN_AT` pieces. Impossible counts become None.

Some servers send the whole text so far in each event. If each event begins with the previous event's text, and at least
`_GROWN` events are longer than the previous one, the last event is the text, with a note.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from typing import Any, Final

import msgspec

from harness.client.address.endpoint import without_repeats
from harness.client.apis.api import MAX_NAME_CHARS, BadEvent, Call, Choice, Delta, Event, Turn
from harness.client.apis.parts import dense
from harness.client.protocol.repeated import ONCE, without_repetition
from harness.core import reply_notes
from harness.core.contradictions import Claims
from harness.core.records import Timing, Usage
from harness.core.reply_notes import ending
from harness.core.sanitize import quoted
from harness.core.secret import HIDDEN, Secret
from harness.core.token_counts import plausible_usage, stated_count, stated_usage
from reasoning_answers.host import final_part


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete reply: the server sent a finish reason.

    text, reasoning, refusal: as sent; None if the server sent null. server_model, fingerprint, request_id, provider: as
    the server stated them. stated, stated_total: token counts as the server stated them, added up
    (`core.token_counts`); `usage` omits counts that cannot be true. notes: oddities for the log, e.g. "no [DONE]".
    calls: complete calls of an offered tool. carry: what the next request sends back of the reply. echo: the request
    settings that the reply repeats. stamps: when each event with text arrived, in seconds; None for several replies.
    """

    text: str | None
    reasoning: str | None
    refusal: str | None = None
    finish_reason: str
    usage: Usage
    timing: Timing
    server_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    provider: str | None = None
    stated: Usage = Usage()
    stated_total: int | None = None
    notes: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    carry: tuple[Any, ...] = ()
    echo: Mapping[str, Any] = {}
    stamps: Sequence[float] | None = None

    @property
    def gaps(self) -> dict[int, int] | msgspec.UnsetType:
        """As in `Timing`; it has few entries, since n different gaps take at least n²/2 milliseconds."""
        if self.stamps is None:
            return msgspec.UNSET
        return Counter(sorted(max(0, round(1000 * gap)) for gap in map(sub, self.stamps[1:], self.stamps)))

    @property
    def turn(self) -> Turn:
        """What the next request of the conversation sends back."""
        return Turn(self.text, self.reasoning, self.calls, self.carry)

    def claims(self, max_tokens: int | None) -> Claims:
        """What the reply states and contains, to find contradictions. max_tokens: as sent; None: not sent."""
        return Claims(
            usage=self.stated,
            total=self.stated_total,
            finish_reason=self.finish_reason,
            n_bytes=sum(len(text.encode("utf-8", "surrogatepass")) for text in (self.text, self.reasoning) if text),
            has_reasoning=bool(self.reasoning),
            n_events=self.timing.events or 0,
            has_other=not {"tool call", "refusal"}.isdisjoint(self.notes),
            is_open=final_part(self.text or "", is_apart=bool(self.reasoning)) is None,
            max_tokens=max_tokens,
        )


def with_final_texts(reply: Reply, said: Mapping[str, str | None]) -> Reply:
    """`reply` with its final texts in place of those made of pieces, with a note if they differ."""
    anew = {name: text for name, text in said.items() if dense(text or "") != dense(getattr(reply, name) or "")}
    return msgspec.structs.replace(reply, **anew, notes=(*reply.notes, reply_notes.RESTATED)) if anew else reply


def without_keys(reply: Reply, secrets: Iterable[Secret]) -> Reply:
    """`reply` with `[hidden]` in place of keys that it repeats; a note names the fields.

    A model name that equals a whole secret is kept: some gateways choose the model by a header, header values count as
    secrets, and a run must compare the model's name with the requested one.
    """
    secrets = tuple(secrets)
    if not secrets:
        return reply
    hidden: dict[str, Any] = {}
    for name in reply.__struct_fields__:
        text = getattr(reply, name)
        if isinstance(text, str) and (shown := without_repeats(text, secrets)) != text:
            hidden[name] = shown
    if without_repeats(arguments := "\0".join(call.arguments for call in reply.calls), secrets) != arguments:
        hidden["calls"] = tuple(
            msgspec.structs.replace(call, arguments=without_repeats(call.arguments, secrets)) for call in reply.calls
        )
    if hidden.get("server_model") == HIDDEN:
        del hidden["server_model"]
    notes = tuple(without_repeats(note, secrets) for note in reply.notes)
    if not hidden:
        return reply if notes == reply.notes else msgspec.structs.replace(reply, notes=notes)
    note = f"a key of the request occurs in its {', '.join(hidden)} and is hidden"
    return msgspec.structs.replace(reply, **hidden, notes=(*notes, note))


# ---- the events


_JOIN_AT = 256
"""Number of token texts that are kept separate before they are joined into one string.

A list of 8,000 short strings takes 15 times the memory of the joined string.
"""

_GROWN = 3
"""Number of events that must be longer than the previous one before a reply counts as resent in full each time."""

_MAX_NOTES = 20
"""Largest number of notes on a reply. A note may name a field, and a server can invent any number of field names."""

_TEXT: Final = 0
_REASONING: Final = 1
_REFUSAL: Final = 2
"""Which of a reply's three texts a piece belongs to, as indexes into its lists."""


class Completion:
    """A completion that is being received.

    started, started_utc: when the request was sent, on the clock of the stamps and as Unix time. stamps: arrival time
    of each event with text. finish_reason: None until it is received; then the text is complete, and only token counts
    may follow. may_hold_halves: whether the texts may contain lone surrogates. notes: oddities, for `Reply.notes`.
    """

    __slots__ = (
        "_blocks", "_came", "_fingerprint", "_first_id", "_halves", "_latest", "_n_grown", "_others", "_pieces",
        "_provider", "_server_model", "_started_utc", "_text_id", "_text_model", "_total", "_usage", "finish_reason",
        "may_hold_halves", "n_chars", "notes", "stamps", "started",
    )  # fmt: skip

    def __init__(self, started: float, started_utc: float) -> None:
        self.started, self._started_utc = started, started_utc
        self.stamps = array("d")
        self.finish_reason: str | None = None
        self.may_hold_halves = False
        self.notes: list[str] = []
        # Each has one entry for the text, the reasoning and the refusal. A text is its blocks, then its pieces.
        self._pieces: tuple[list[str], ...] = ([], [], [])  # the latest token texts
        self._blocks: tuple[list[str], ...] = ([], [], [])  # earlier token texts, joined
        # Every second piece of the blocks, if each piece came twice
        self._halves: list[list[str] | None] = [[], [], []]
        self._came = [False] * 3  # whether a string came, even an empty one: null and "" are distinguished
        self._latest: list[str | None] = [""] * 3  # the latest piece; None: one did not begin with the previous piece
        self._n_grown = [0] * 3  # pieces that were longer than the previous piece
        self.n_chars = 0  # characters of all pieces
        self._usage = Usage()
        self._total: int | None = None
        self._first_id: str | None = None  # of any event, with or without text
        self._server_model: str | None = None
        self._fingerprint: str | None = None
        self._provider: str | None = None
        # Events with text or a finish reason, to which the rule above applies:
        self._text_id: str | None = None
        self._text_model: str | None = None
        self._others: dict[str, tuple[str, int]] = {}  # "id" or "model" → the latest other one, events with others

    def add(self, event: Event, arrived: float) -> None:
        """Add an event or a whole body. arrived: when it arrived. Raises `BadEvent`."""
        if event.usage is not None:
            self._usage = stated_usage(event.usage, event.metrics, event.sglext, event.timings)
            self._total = stated_count(event.usage.get("total_tokens"))
        if event.id != self._first_id or event.model != self._server_model:
            self._name(event.id, event.model)
        if event.system_fingerprint and event.system_fingerprint != self._fingerprint:
            self._fingerprint = event.system_fingerprint[:MAX_NAME_CHARS]
        if event.provider and event.provider != self._provider:
            self._provider = event.provider[:MAX_NAME_CHARS]
        for choice in event.choices:
            delta = choice.delta
            added, reason = self._add_texts(choice), choice.finish_reason
            # Azure sends its findings about an earlier text without an id and a model.
            if delta is None and choice.text is None and not reason and (event.id or event.model):
                self.note(reply_notes.NO_PLACE)
            if added or reason:
                if event.id != self._text_id:
                    self._text_id = self._owner("id", self._text_id, event.id)
                if event.model != self._text_model:
                    self._text_model = self._owner("model", self._text_model, event.model)
            if added:
                self.stamps.append(arrived)
                if self.finish_reason is not None:
                    self.note(reply_notes.LATE_TEXT)
            if reason:
                self._finish(reason)

    def _add_texts(self, choice: Choice) -> bool:
        """Add the texts of an event. Returns whether they have any character. Raises `BadEvent`."""
        delta = choice.delta
        if delta is None:
            return choice.text is not None and self._take(_TEXT, choice.text)
        text = delta.content
        if choice.text:  # Together sends both, with the same text
            if text and text != choice.text:
                raise BadEvent("the text of a choice differs from the text of its message")
            text = choice.text
        if delta.refusal:
            self._take(_REFUSAL, delta.refusal)
            self.note("refusal")
        added = text is not None and self._take(_TEXT, text)
        if delta.reasoning_content is not None and self._take(_REASONING, delta.reasoning_content):
            return True
        return (delta.reasoning is not None and self._take(_REASONING, delta.reasoning)) or added

    def reply(self, ended: float, request_id: str | None) -> Reply:
        """The finished reply.

        ended: when it ended, on the clock of the stamps. request_id: the id in the response's headers, used if the
        events have none.
        """
        assert self.finish_reason is not None
        text, reasoning = self._text(_TEXT), self._text(_REASONING)
        stamps = self.stamps
        if self.is_cumulative:
            self.note(reply_notes.CUMULATIVE)
        else:
            text, reasoning = self._once(text, reasoning)
        gaps = sorted(map(sub, stamps[1:], stamps))  # each stamp minus the previous one; `map` ends with the shorter
        return Reply(
            text=text,
            reasoning=reasoning,
            refusal=self._text(_REFUSAL),
            finish_reason=self.finish_reason,
            usage=plausible_usage(self._usage, has_text=bool(text), has_reasoning=bool(reasoning)),
            timing=Timing(
                started=self._started_utc,
                first_token=stamps[0] - self.started if stamps else None,
                last_token=stamps[-1] - self.started if stamps else None,
                total=ended - self.started,
                gap_p50=_quantile(gaps, 0.5),
                gap_p99=_quantile(gaps, 0.99),
                events=len(stamps),
            ),
            server_model=self._text_model or self._server_model,
            fingerprint=self._fingerprint,
            request_id=self._first_id or request_id,
            provider=self._provider,
            stated=self._usage,
            stated_total=self._total,
            notes=tuple(self.notes),
            stamps=stamps,
        )

    @property
    def is_cumulative(self) -> bool:
        """Whether each event repeats the text of the previous event."""
        return self._is_sent_anew(_TEXT) or self._is_sent_anew(_REASONING)

    def _is_sent_anew(self, which: int) -> bool:
        return self._latest[which] is not None and self._n_grown[which] >= _GROWN

    def _take(self, which: int, piece: str) -> bool:
        """Store a piece of the text or the reasoning (`which`: `_TEXT` or `_REASONING`).

        Returns whether the piece has any characters.
        """
        self._came[which] = True
        if not piece:
            return False
        n_chars = len(piece)
        self.n_chars += n_chars
        if (before := self._latest[which]) is not None:
            repeats = piece.startswith(before)
            self._latest[which] = piece if repeats else None
            # The first piece has no predecessor, and an equal piece may be a repeated token: neither has grown.
            self._n_grown[which] += repeats and 0 < len(before) < n_chars
        pieces = self._pieces[which]
        if len(pieces) >= _JOIN_AT:
            self._join(which)
        pieces.append(piece)
        return True

    def _join(self, which: int) -> None:
        """Join the latest pieces to a block, and keep every second one as long as each came twice."""
        pieces, halves = self._pieces[which], self._halves[which]
        if halves is not None:
            # One or two words, again and again, are a loop.
            if pieces[::2][: len(pieces) // 2] == pieces[1::2] and (halves or len({*pieces}) > 2):
                halves.append("".join(pieces[::2]))
            else:
                self._halves[which] = None
        self._blocks[which].append("".join(pieces))
        pieces.clear()

    def skip_whole(self, event: Event) -> None:
        """Take the texts out of a whole message that repeats those before it. Raises `BadEvent` if it does not."""
        for choice in event.choices:
            for which, again in enumerate((choice.delta.content, choice.delta.reasoning) if choice.delta else ()):
                if dense(again or "") not in ("", dense(self._text(which) or "")):
                    raise BadEvent("it is a full message that differs from the parts before it")
            choice.delta = Delta()
            self.note(ONCE)

    def _once(self, *texts: str | None) -> list[str | None]:
        """The text and the reasoning without what the stream repeats."""
        last = ["".join(self._pieces[which][-1:]) for which in range(len(texts))]
        for which in range(len(texts)):
            self._join(which)
        halved = ["".join(halves or ()) or text or "" for halves, text in zip(self._halves, texts, strict=False)]
        hidden = 0 if texts[_REASONING] else self._usage.reasoning_tokens or 0
        n_stated = max(0, (self._usage.completion_tokens or 0) - hidden)
        once, note = without_repetition([text or "" for text in texts], last, halved, len(self.stamps), n_stated)
        if note:
            self.note(note)
        return [None if text is None else kept for text, kept in zip(texts, once, strict=True)]

    def _finish(self, reason: str) -> None:
        """Record the finish reason: of several, the first whose meaning is known."""
        if self.finish_reason is not None:
            self.note(f"{reply_notes.SECOND_FINISH}: {quoted(reason)}")
        if self.finish_reason is None or ending(self.finish_reason) == "unknown":
            self.finish_reason = reason[:MAX_NAME_CHARS]

    # -- which reply an event belongs to -----------------------------------------------------------------------------

    def _name(self, reply_id: str | None, model: str | None) -> None:
        """Keep the first id and the first model name as the reply's own; note a different model name."""
        if self._first_id is None and reply_id:
            self._first_id = reply_id[:MAX_NAME_CHARS]
        if model and model != self._server_model:
            if self._server_model is None:
                self._server_model = model[:MAX_NAME_CHARS]
            elif not any(note.startswith(reply_notes.RENAMED) for note in self.notes):
                self.note(f"{reply_notes.RENAMED}: {quoted(self._server_model)}, then {quoted(model)}")

    def _owner(self, field: str, owner: str | None, name: str | None) -> str | None:
        """The id or model of the texts, after an event with text of this `name`. owner: the one before.

        A single event may have another name. Raises `BadEvent` if two names have several events each.
        """
        name = name and name[:MAX_NAME_CHARS]
        if owner is None or not name or name == owner:
            return owner or name or None
        if field == "id":
            self.note(reply_notes.IDS_VARY)
        latest, n_others = self._others.get(field, ("", 0))
        self._others[field] = name, n_others + 1
        if name != latest:
            return owner
        if len(self.stamps) - n_others > 1:
            raise BadEvent(f"the stream contains two replies, with the {field}s {quoted(owner)} and {quoted(name)}")
        self._others[field] = owner, len(self.stamps) - 1  # the first event was the one with another name
        return name

    def note(self, note: str) -> None:
        """Add a note about an oddity; the same note is added only once."""
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)

    def _text(self, which: int) -> str | None:
        """The text or the reasoning (`which`: `_TEXT` or `_REASONING`), joined from its pieces; None without pieces."""
        if not self._came[which]:
            return None
        latest = self._latest[which] if self._is_sent_anew(which) else None
        text = "".join([*self._blocks[which], *self._pieces[which]]) if latest is None else latest
        if self.may_hold_halves:  # join the surrogates of a character that came in two events; a lone one stays
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text


def _quantile(ascending: Sequence[float], share: float) -> float | None:
    """The first of the values that exceeds this share of them; None if there are no values."""
    return ascending[int(len(ascending) * share)] if ascending else None
