"""What the events of one reply add up to: texts, times of tokens, finish reason, token counts, names.

The reply parser (`sse`) feeds it decoded events; it never sees bytes. There are two ways in, and the same events
give the same reply by both:

    add_plain    one event of the usual form (`PlainEvent`)
    add          one event of any form, or a whole body in one piece

Which events are believed is a closed rule; docs/reliability.md has it as a table:

    an event with text or a finish reason     must have the same id and model as the events with text before it
    an event without (a role, usage, a ping)  may have any id; another model's name is noted

An event against the rule raises `BadEvent`, and no sample is made of the reply. Oddities that the rule allows and that
a score should mention are noted (`harness.core.reply_notes`). Memory is bounded: names have a largest length, `usage`
is kept as six counts, and texts are joined every `_JOIN_AT` pieces.

Long: a completion is one value that is fed in two ways (plain events, any event), which must add up to the same.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from operator import sub
from typing import Any, Final, Literal, NoReturn

from harness.client.protocol.event_fields import (
    BadEvent,
    json_kind,
    may_hold_text,
    name_of,
    reasoning_parts,
    string_or_none,
    token_logprobs,
)
from harness.client.protocol.plain_event import PlainEvent
from harness.client.protocol.reply import Reply
from harness.client.protocol.usage import StatedUsage, stated_usage, usage_of
from harness.client.protocol.written import SoFar, WrittenTokens
from harness.core.inert import quoted
from harness.core.records import Timing
from harness.core.reply_notes import IDS_VARY, LATE_TEXT, MORE_CHOICES, RENAMED, SECOND_FINISH, UNREAD_TEXT

_JOIN_AT = 256
"""Number of token texts that are kept apart before they are joined into one string.

A list of 8,000 short strings takes 15 times the memory of the joined string.
"""

_JOIN_CHARS = 16 * 1024
"""Token texts are joined, too, once they have this many characters together, however few they are."""

_PIECE_BYTES = 96
"""Memory of a short string and its list entry, besides its characters."""

_CHAR_BYTES = 4
"""Largest memory of a character."""

_READ_FIELDS = frozenset({"content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"})
"""Fields of a delta whose content is taken or noted."""

_SILENT_FIELDS = frozenset({"role", "name", "annotations", "provider_specific_fields"})
"""Fields of a delta that never hold a part of the answer, and are ignored."""

_MAX_NOTES = 20
"""Largest number of notes on a reply: a note may name a field, and a server can invent any number of field names."""

_FIELD_NAME = re.compile(r"[A-Za-z_]{1,40}\Z")
_TEXT: Final = 0
_REASONING: Final = 1
"""Which of the two texts of a reply a piece belongs to: indexes of its lists."""

_VARYING: Final = "\0"
"""Stands for "each event has another id" where the id of the events with text is kept; no server can send it as one."""


class Completion:
    """A completion that is being received.

    stamps: arrival time of each event with text. finish_reason: None until it has come; then the text is complete, and
    only token counts may follow. may_hold_halves: whether lone surrogates may have come. notes: oddities, for
    `Reply.notes`. written: records token ids, if the reply may have to be continued by another request. `add`
    and `add_plain` raise `BadEvent`.
    """

    __slots__ = (
        "_block_bytes",
        "_blocks",
        "_came",
        "_fingerprint",
        "_id",
        "_n_logprobs",
        "_n_odd_logprobs",
        "_n_pending",
        "_n_taken",
        "_pieces",
        "_server_model",
        "_text_id",
        "_text_id_from",
        "_text_ids_seen",
        "_text_model",
        "_usage",
        "finish_reason",
        "may_hold_halves",
        "notes",
        "stamps",
        "written",
    )  # fmt: skip

    def __init__(self, written: WrittenTokens | None = None) -> None:
        self.written = written
        self.stamps = array("d")
        self.finish_reason: str | None = None
        self.may_hold_halves = False
        self.notes: list[str] = []
        # In each pair the first entry is the text's, the second the reasoning's. A text is its blocks, then its pieces.
        self._pieces = ([], [])  # type: tuple[list[str], list[str]]  # the latest token texts
        self._blocks = ([], [])  # type: tuple[list[str], list[str]]  # earlier token texts, joined
        self._came = [False, False]  # whether a string came, even an empty one: null and "" are told apart
        self._block_bytes = 0
        self._n_pending = 0  # characters in `_pieces`
        self._n_taken = 0  # characters received by `add` and `add_plain`; the difference gives an event's length
        self._n_logprobs = self._n_odd_logprobs = 0  # tokens with a log-probability; those where it is no number
        self._usage: StatedUsage | None = None
        self._id: str | None = None
        self._server_model: str | None = None
        self._fingerprint: str | None = None
        # Events with text or a finish reason, to which the rule above applies:
        self._text_id: str | None = None  # the latest such event's id, or `_VARYING`
        self._text_id_from = 0  # number of token events before the first one with that id
        self._text_ids_seen: tuple[str, ...] = ()  # under `_VARYING`: the first id and the latest
        self._text_model: str | None = None

    @property
    def held_bytes(self) -> int:
        """Memory of the texts, stamps and token ids in bytes, rounded up."""
        n_pieces = len(self._pieces[0]) + len(self._pieces[1])
        held = self._block_bytes + _CHAR_BYTES * self._n_pending + _PIECE_BYTES * n_pieces
        held += self.stamps.itemsize * len(self.stamps)
        return held if self.written is None else held + self.written.held_bytes

    def add_plain(self, event: PlainEvent, arrived: float) -> None:
        """Add an event of the usual form, which arrived at the time `arrived`."""
        if event.usage is not None:
            self._usage = event.usage
        if event.id != self._id or event.model != self._server_model:
            self._name(event.id, event.model)
        if event.system_fingerprint and event.system_fingerprint != self._fingerprint:
            self._fingerprint = name_of(event.system_fingerprint, "system_fingerprint")
        if self.written is not None:
            self.written.add_prompt(event.prompt_token_ids)
        for choice in event.choices:
            delta = choice.delta
            before = self._n_taken
            added = False
            if delta.content is not None:
                added = self._take(_TEXT, delta.content)
            has_reasoning = delta.reasoning_content is not None and self._take(_REASONING, delta.reasoning_content)
            if not has_reasoning and delta.reasoning is not None:
                has_reasoning = self._take(_REASONING, delta.reasoning)
            if choice.logprobs is not None and choice.logprobs.content:
                self._count_logprobs([token.logprob for token in choice.logprobs.content])
            if self.written is not None:
                self.written.add_event(self._n_taken - before, choice.token_ids)
            added = added or has_reasoning
            reason = choice.finish_reason
            if added or reason:
                if event.id != self._text_id or event.model != self._text_model:
                    self._attribute(event.id, event.model)
                if added:
                    self.stamps.append(arrived)
                    if self.finish_reason is not None:
                        self.note(LATE_TEXT)
                if reason:
                    self._finish(reason)

    def add(self, event: dict[str, Any], arrived: float) -> None:
        """Add an event of any form that is not an error, or a whole body; `arrived`: when it arrived."""
        usage = event.get("usage")
        if type(usage) is dict:
            self._usage = stated_usage(usage)
        reply_id, model = string_or_none(event.get("id")), string_or_none(event.get("model"))
        self._name(reply_id, model)
        if fingerprint := string_or_none(event.get("system_fingerprint")):
            self._fingerprint = name_of(fingerprint, "system_fingerprint")
        if self.written is not None:
            self.written.add_prompt(event.get("prompt_token_ids"))
        choices = event.get("choices")
        if choices is None:
            return
        if type(choices) is not list:
            raise BadEvent(f"its choices are no list but {json_kind(choices)}")
        ours = [choice for choice in choices if self._is_ours(choice)]
        if len(ours) > 1:
            raise BadEvent(f"{len(ours)} choices of index 0 in one event, expected one")
        for choice in ours:
            self._add_choice(choice, reply_id, model, arrived)

    def reply(
        self,
        *,
        started: float,
        started_utc: float,
        ended: float,
        clock: Literal["kernel", "user"],
        request_id: str | None,
    ) -> Reply:
        """The finished reply.

        started, ended: times on the clock of the stamps. started_utc: the start as Unix time. request_id: the id in the
        response's headers, used if the events have none.
        """
        assert self.finish_reason is not None
        text, reasoning = self._text(0), self._text(1)
        stamps = self.stamps
        gaps = sorted(map(sub, stamps[1:], stamps))
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
            notes=tuple(self.notes),
        )

    @property
    def is_all_reasoning(self) -> bool:
        """Whether reasoning has come, and no character of a text, a refusal or a tool call."""
        has_text, has_reasoning = (bool(self._blocks[which] or self._pieces[which]) for which in (_TEXT, _REASONING))
        return has_reasoning and not has_text and not {"refusal", "tool call"}.intersection(self.notes)

    def so_far(self) -> SoFar:
        """The part of the reply that has come until now."""
        written = self.written or WrittenTokens()
        return SoFar(
            text=self._text(0),
            reasoning=self._text(1),
            ids=written.ids,
            prompt_ids=written.prompt_ids,
            n_events=len(self.stamps),
            server_model=self._server_model,
            request_id=self._id,
        )

    def _is_ours(self, choice: object) -> bool:
        """Whether the choice has index 0, or no index.

        Other choices are noted and not read: they belong to requests with `n` > 1, which the harness never sends.
        """
        if type(choice) is not dict:
            raise BadEvent(f"a choice is no object but {json_kind(choice)}")
        index = choice.get("index")
        if index is None or (type(index) is int and index == 0):
            return True
        if type(index) is not int or index < 0:
            raise BadEvent(f"a choice whose index is {json_kind(index)}")
        self.note(MORE_CHOICES)
        return False

    def _add_choice(self, choice: dict[str, Any], reply_id: str | None, model: str | None, arrived: float) -> None:
        """Add the choice of one event: its texts, log-probabilities, token ids and finish reason. Raises `BadEvent`.

        reply_id, model: what the event states. arrived: when the event came, in seconds.
        """
        before = self._n_taken
        delta, message, text = choice.get("delta"), choice.get("message"), choice.get("text")
        if message is not None and (delta is not None or self.stamps):
            raise BadEvent("a whole message beside parts of one")
        body = message if delta is None else delta
        if body is None:
            added = self._take_text(_TEXT, "text", text)
        elif type(body) is dict:
            added = self._add_delta(body)
            if text and text != body.get("content"):  # Together states both, and they are the same
                raise BadEvent("a text beside another in its message")
        elif body == []:  # what a gateway written in PHP makes of an empty object
            added = False
        else:
            raise BadEvent(f"its message is no object but {json_kind(body)}")
        self._count_logprobs(token_logprobs(choice.get("logprobs")))
        if self.written is not None:
            self.written.add_prompt(choice.get("prompt_token_ids"))
            self.written.add_event(self._n_taken - before, choice.get("token_ids"))
        reason = choice.get("finish_reason")
        if reason is not None and type(reason) is not str:
            raise BadEvent(f"its finish_reason is {json_kind(reason)}")
        if added or reason:
            self._attribute(reply_id, model)
        if added:
            self.stamps.append(arrived)
            if self.finish_reason is not None:
                self.note(LATE_TEXT)
        if reason:
            self._finish(reason)

    def _add_delta(self, delta: dict[str, Any]) -> bool:
        """Add the text and reasoning of `delta`, which a streamed event holds, or a whole reply as its message.

        Returns whether `delta` has any text or reasoning.
        """
        added = False
        content = delta.get("content")
        if type(content) is list:
            for is_reasoning, part in self._parts(content):
                added |= self._take(is_reasoning, part)
        else:
            added = self._take_text(_TEXT, "content", content)
        # Some servers send the same reasoning in both fields, or leave one empty: the first with characters counts.
        has_reasoning = False
        for name in ("reasoning_content", "reasoning"):
            if not has_reasoning:
                has_reasoning = self._take_text(_REASONING, name, delta.get(name))
        if delta.get("refusal"):
            self.note("refusal")
        if delta.get("tool_calls") or delta.get("function_call"):
            self.note("tool call")
        for name, value in delta.items():
            # `reasoning_details`, `thinking_blocks` and the like repeat the reasoning, with a signature.
            repeats_reasoning = has_reasoning and ("reason" in name or "think" in name)
            if (
                not repeats_reasoning
                and name not in _READ_FIELDS
                and name not in _SILENT_FIELDS
                and may_hold_text(value)
            ):
                self._note_unread(name)
        return added or has_reasoning

    def _take_text(self, which: int, name: str, text: object) -> bool:
        """Store `text`, the value of the field `name`, as a piece of the reply's text or reasoning.

        which: `_TEXT` or `_REASONING`. Returns whether `text` has characters. Raises `BadEvent` if it is neither a
        string nor null.
        """
        if text is None:
            return False
        if type(text) is not str:
            raise BadEvent(f"its {name} is no string but {json_kind(text)}")
        return self._take(which, text)

    def _parts(self, content: list[Any]) -> Iterator[tuple[bool, str]]:
        """Yield (whether it is reasoning, text) for each part of a content that is a list, as Mistral's are."""
        for part in content:
            if type(part) is not dict:
                raise BadEvent(f"a part of its content is no object but {json_kind(part)}")
            thinking, text = part.get("thinking"), part.get("text")
            if type(thinking) is list:
                thinking = "".join(reasoning_parts(thinking))
            for is_reasoning, part_text in ((True, thinking), (False, text)):
                if part_text is not None and type(part_text) is not str:
                    raise BadEvent(f"a part of its content is no string but {json_kind(part_text)}")
                if part_text is not None:
                    yield is_reasoning, part_text
            if thinking is None and text is None:
                self._note_unread(str(part.get("type")))

    def _note_unread(self, name: str) -> None:
        self.note(f"{UNREAD_TEXT}: {name}" if _FIELD_NAME.match(name) else UNREAD_TEXT)

    def _count_logprobs(self, logprobs: Iterable[object]) -> None:
        for value in logprobs:
            self._n_logprobs += 1
            self._n_odd_logprobs += type(value) not in (int, float)

    def _take(self, which: int, piece: str) -> bool:
        """Store a piece of the text or the reasoning (`which`: `_TEXT` or `_REASONING`).

        Returns whether the piece has any characters.
        """
        self._came[which] = True
        if not piece:
            return False
        n_chars = len(piece)
        self._n_taken += n_chars
        self._n_pending += n_chars
        pieces = self._pieces[which]
        pieces.append(piece)
        if len(pieces) >= _JOIN_AT or self._n_pending >= _JOIN_CHARS:
            self._join()
        return True

    def _join(self) -> None:
        """Join the stored token texts, for the text and for the reasoning, each into one string."""
        for which, pieces in enumerate(self._pieces):
            if pieces:
                self._add_block(which, "".join(pieces))
                pieces.clear()
        self._n_pending = 0

    def _add_block(self, which: int, block: str) -> None:
        self._blocks[which].append(block)
        self._block_bytes += sys.getsizeof(block) + 8

    def _finish(self, reason: str) -> None:
        """Note the finish reason. Raises `BadEvent` for a second, different one."""
        if self.finish_reason is None:
            self.finish_reason = name_of(reason, "finish_reason")
        elif reason != self.finish_reason:
            raise BadEvent(f"a second finish reason: {quoted(self.finish_reason)}, then {quoted(reason)}")
        else:
            self.note(SECOND_FINISH)

    # -- to which reply an event belongs -----------------------------------------------------------------------------

    def _name(self, reply_id: str | None, model: str | None) -> None:
        """Keep the first id and the first model's name as the reply's own; note another model's name."""
        if self._id is None and reply_id:
            self._id = name_of(reply_id, "id")
        if model and model != self._server_model:
            if self._server_model is None:
                self._server_model = name_of(model, "model")
            elif not any(note.startswith(RENAMED) for note in self.notes):
                self.note(f"{RENAMED}: {quoted(self._server_model)}, then {quoted(model)}")

    def _attribute(self, reply_id: str | None, model: str | None) -> None:
        """Raise `BadEvent` if an event with text has an id or a model that belongs to another reply."""
        if model and model != self._text_model:
            if self._text_model is not None:
                raise BadEvent(f"texts of two models in one stream: {quoted(self._text_model)} and {quoted(model)}")
            self._text_model = name_of(model, "model")
        if not reply_id or reply_id == self._text_id:
            return
        if self._text_id is None:
            self._text_id = name_of(reply_id, "id")
            self._text_id_from = len(self.stamps)
            return
        if self._text_id is not _VARYING:
            # Some servers give each event an id of its own. But once two events have had the same one, or the reply is
            # finished, another id is that of another reply.
            if len(self.stamps) - self._text_id_from > 1 or self.finish_reason is not None:
                self._refuse_id(self._text_id, reply_id)
            self._text_ids_seen = (self._text_id, name_of(reply_id, "id"))
            self._text_id = _VARYING
            self.note(IDS_VARY)
            return
        if reply_id in self._text_ids_seen:  # an id came back: these are the ids of two replies that take turns
            self._refuse_id(reply_id, self._text_ids_seen[-1])
        self._text_ids_seen = (self._text_ids_seen[0], name_of(reply_id, "id"))

    def _refuse_id(self, first: str, second: str) -> NoReturn:
        raise BadEvent(f"the stream holds a second reply, under another id: {quoted(first)} and {quoted(second)}")

    def note(self, note: str) -> None:
        """Keep a note about an oddity; the same note is kept once."""
        if note not in self.notes and len(self.notes) < _MAX_NOTES:
            self.notes.append(note)

    def _text(self, which: int) -> str | None:
        """The text or the reasoning (`which`: `_TEXT` or `_REASONING`), joined from its pieces; None if none came."""
        if not self._came[which]:
            return None
        text = "".join([*self._blocks[which], *self._pieces[which]])
        if self.may_hold_halves:  # join the two surrogates of a character that came in two events; a lone one stays
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text
