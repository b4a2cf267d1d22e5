"""The file `inflight.jsonl`: how far samples under way have come, so that a later session can go on with them.

Each line has a checksum, and is appended on a thread of its own. The lines of one request share a nonce and count up:

    line                       its content                         what a reader does
    number 0                   all that has come of the sample     forgets earlier lines of the sample, and begins
    number 1, 2 …              what has come since the last line   adds it, if no line before it is missing
    number -1                  the sample is stored, or of no use  forgets the sample
    damaged, or out of order   -                                   keeps the lines before, and adds no later one

Invariant: what is read of a sample is the beginning of what was written of one request. So a crash, a cut or a damaged
line costs tokens, and never makes a text that no server sent. Nothing here counts as a sample, and no failure here ends
a run: the file is given up, and the log says so.

Bounded: rewritten with what is still wanted when it has grown by `GROWTH_BYTES` and by its own size; removed when
nothing is wanted. Synced on demand only: it survives the death of the process, not of the machine.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import open_untrusted, write_atomically
from harness.core.inert import visible
from harness.core.records import SCHEMA_VERSION, Seam
from harness.runs import record
from harness.runs.layout import RunFolder
from harness.runs.line_file import LineFile, lines, refuse_link
from harness.runs.record import Task

GROWTH_BYTES = 32 * 1024 * 1024
"""Smallest growth of the file after which it is rewritten."""

MAX_WAITING = 64
"""Largest number of writes that may wait for the disk; above this number, nothing is added."""


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a sample that was written.

    request: digest of the request that began it. engine: the engine that served it, "" = unknown. text, reasoning: as
    sent, None = nothing came. tokens: their number. ids, prompt_ids: token ids of this part and of the prompt, where
    the server stated them. lengths: characters of each event's text. logprobs: of the last tokens, in order, at most
    16, where the server states them. seams: places of earlier interruptions.
    """

    request: str
    engine: str = ""
    server_model: str | None = None
    text: str | None = None
    reasoning: str | None = None
    tokens: int = 0
    ids: Sequence[int] | None = None
    prompt_ids: Sequence[int] | None = None
    lengths: Sequence[int] | None = None
    logprobs: tuple[float, ...] = ()
    seams: tuple[Seam, ...] = ()


class _PartialLine(Partial, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the file.

    number: of this line among those of its request, from 0; -1: the sample is no longer wanted. nonce: the same in all
    lines of a request, so that lines of two requests are never mixed.
    """

    benchmark: str
    question_id: str
    sample_index: int
    number: int
    nonce: int = 0
    schema: int = SCHEMA_VERSION

    @property
    def key(self) -> Task:
        return Task(self.benchmark, self.question_id, self.sample_index)


@dataclass(slots=True)
class Recovered:
    """The half-written samples read from the file. damaged: lines that do not count; notes: oddities, for the log."""

    partials: dict[Task, Partial] = field(default_factory=dict)
    damaged: int = 0
    notes: list[str] = field(default_factory=list)


def read(folder: RunFolder, is_wanted: Callable[[Task], bool] = lambda _: True) -> Recovered:
    """The stored parts of the samples for which `is_wanted` is true.

    A missing file means none. Never raises: an unreadable part is lost.
    """
    recovered = Recovered()
    gathered: dict[Task, _Gathered] = {}
    try:
        with open_untrusted(folder.inflight) as file:
            for line in lines(file):
                try:
                    if line.data is None or not line.complete:
                        raise record.Damaged("cut off" if not line.complete else "too long")
                    record.checksum(line.data)
                    entry = codec.decode(line.data, _PartialLine)
                    if entry.schema > SCHEMA_VERSION:
                        raise record.Damaged(f"schema {entry.schema}")
                except (record.Damaged, codec.DecodeError) as damage:
                    recovered.damaged += 1
                    if recovered.damaged == 1:
                        recovered.notes.append(f"line {line.number}: {visible(str(damage), 200)}")
                    # The next line of this request will not follow the one before, so `_Gathered` ends the part there.
                    continue
                if entry.number < 0:
                    gathered.pop(entry.key, None)
                elif entry.number == 0 and is_wanted(entry.key):
                    gathered[entry.key] = _Gathered(entry)
                elif entry.key in gathered:
                    gathered[entry.key].add(entry)
    except FileNotFoundError:
        pass
    except OSError as error:
        recovered.notes.append(f"cannot read {folder.inflight}: {error.strerror or error}")
    recovered.partials = {key: entry.partial() for key, entry in gathered.items()}
    return recovered


class _Gathered:
    """The lines of one request, in order; lines after a missing one are left out."""

    def __init__(self, first: _PartialLine) -> None:
        self._lines = [first]
        self._unbroken = True

    def add(self, line: _PartialLine) -> None:
        self._unbroken = self._unbroken and (line.number, line.nonce) == (len(self._lines), self._lines[0].nonce)
        if self._unbroken:
            self._lines.append(line)

    def partial(self) -> Partial:
        """The half-written sample that these lines hold together."""
        first, last = self._lines[0], self._lines[-1]
        return Partial(
            request=first.request,
            engine=first.engine,
            server_model=last.server_model or first.server_model,
            text=_joined([line.text for line in self._lines]),
            reasoning=_joined([line.reasoning for line in self._lines]),
            tokens=last.tokens,
            ids=_together([line.ids for line in self._lines]),
            prompt_ids=first.prompt_ids,
            lengths=_together([line.lengths for line in self._lines]),
            logprobs=last.logprobs,
            seams=first.seams,
        )


def _joined(texts: list[str | None]) -> str | None:
    came = [text for text in texts if text is not None]
    return "".join(came) if came else None


def _together(parts: list[Sequence[int] | None]) -> list[int] | None:
    """The parts joined into one list; None if a line has no part."""
    if any(part is None for part in parts):
        return None
    return [n for part in parts for n in part or ()]


class _Extent(NamedTuple):
    """How much of a sample the file holds, as numbers: of lines, tokens, characters, token ids and events.

    ids, lengths: None if the server states none.
    """

    request: str
    seams: tuple[Seam, ...]
    lines: int
    nonce: int
    tokens: int
    text: int
    reasoning: int
    ids: int | None
    lengths: int | None

    @classmethod
    def of(cls, partial: Partial, n_lines: int, nonce: int) -> _Extent:
        """Return the extent of a file that holds all of `partial`. n_lines: lines of this sample in the file."""
        ids, lengths = partial.ids, partial.lengths
        return cls(
            partial.request,
            partial.seams,
            n_lines,
            nonce,
            partial.tokens,
            len(partial.text or ""),
            len(partial.reasoning or ""),
            None if ids is None else len(ids),
            None if lengths is None else len(lengths),
        )

    def is_beginning_of(self, partial: Partial) -> bool:
        """Whether the file holds the beginning of `partial`, so that only the rest has to be appended."""
        now = self.of(partial, self.lines, self.nonce)
        comparable = (now.ids is None) == (self.ids is None) and (now.lengths is None) == (self.lengths is None)
        longer = now.tokens >= self.tokens and now.text >= self.text and now.reasoning >= self.reasoning
        return comparable and longer and (now.request, now.seams) == (self.request, self.seams)


class Inflight:
    """The file `inflight.jsonl`, open for writing.

    Its methods are called on one thread, and it writes on another. on_event: called on the writing thread when the file
    is given up.
    """

    def __init__(self, folder: RunFolder, on_event: Callable[..., None]) -> None:
        """Touches no file before the first `keep`, `rewrite` or `close`."""
        self._folder = folder
        self._on_event = on_event
        self._extents: dict[Task, _Extent] = {}
        self._file: LineFile | None = None
        self._size = 0
        self._compact_at = GROWTH_BYTES
        self._failed = False
        self._waiting: deque[Future[None]] = deque()
        # One thread only, so writes keep their order.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="inflight")

    @property
    def wants_rewriting(self) -> bool:
        """Whether the file has grown so much that `rewrite` is due."""
        return self._size >= self._compact_at

    @property
    def busy(self) -> bool:
        """Whether the disk is behind, so that nothing should be kept now."""
        # One thread writes, so the futures end in order.
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        return len(self._waiting) > MAX_WAITING

    def keep(self, key: Task, partial: Partial) -> None:
        """Add the new part of the sample to the file."""
        line = self._next_line(key, partial)
        if line is not None:
            self._add(line)

    def forget(self, key: Task) -> None:
        """Note in the file that the sample's part is no longer wanted, since the sample is stored or failed."""
        if self._extents.pop(key, None) is not None:
            self._add(_PartialLine(**key._asdict(), number=-1, request=""))

    def rewrite(self, partials: Mapping[Task, Partial]) -> None:
        """Replace the content of the file by these parts."""
        self._extents.clear()
        next_lines = (self._next_line(key, partial) for key, partial in partials.items())
        data = b"".join(_encoded(line) for line in next_lines if line is not None)
        self._size = len(data)
        self._compact_at = 2 * self._size + GROWTH_BYTES
        self._submit(self._replace, data)

    def sync(self) -> None:
        """Let the disk store all parts that were written so far, so that they survive a power loss. Does not wait."""
        self._submit(self._sync)

    def close(self) -> None:
        """Leave the file to the next session, synced; or remove it if all that it holds was forgotten."""
        self._submit(self._sync if self._extents else self._remove)
        self._writer.shutdown()
        # After the writer's last act: only then may this thread touch the file.
        self._close()

    def _next_line(self, key: Task, partial: Partial) -> _PartialLine | None:
        """The line to append so that the file holds all of `partial`; None if the file holds it already."""
        in_file = self._extents.get(key)
        if in_file is None or not in_file.is_beginning_of(partial):
            # The file holds nothing of this request yet, so its first line takes all of it.
            number, nonce = 0, secrets.randbits(48)
            in_file = _Extent.of(Partial(request=""), number, nonce)
            first = {"request": partial.request, "engine": partial.engine, "seams": partial.seams}
            prompt_ids = partial.prompt_ids and list(partial.prompt_ids)
        else:
            number, nonce = in_file.lines, in_file.nonce
            if in_file == _Extent.of(partial, number, nonce):
                return None
            first, prompt_ids = {"request": ""}, None
        self._extents[key] = _Extent.of(partial, number + 1, nonce)
        return _PartialLine(
            **key._asdict(),
            **first,  # type: ignore[arg-type]
            number=number,
            nonce=nonce,
            server_model=partial.server_model,
            prompt_ids=prompt_ids,
            text=_after(in_file.text, partial.text),
            reasoning=_after(in_file.reasoning, partial.reasoning),
            tokens=partial.tokens,
            ids=None if partial.ids is None else list(partial.ids[in_file.ids or 0 :]),
            lengths=None if partial.lengths is None else list(partial.lengths[in_file.lengths or 0 :]),
            logprobs=partial.logprobs,
        )

    def _add(self, line: _PartialLine) -> None:
        data = _encoded(line)
        self._size += len(data)
        self._submit(self._append, data)

    def _submit(self, act: Callable[..., None], *given: bytes) -> None:
        self._waiting.append(self._writer.submit(self._carefully, act, *given))

    # ---- on the writer's thread

    def _carefully(self, act: Callable[..., None], *given: bytes) -> None:
        """Do `act`, and give up the file for good if it fails: the run goes on without it."""
        if self._failed:
            return
        try:
            act(*given)
        except (OSError, StoreError) as error:
            # For good: a line after a lost one could extend nothing.
            self._failed = True
            self._on_event("inflight_given_up", reason=str(error))

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = LineFile(self._folder.inflight, durable=False)
        self._file.append(data)

    def _replace(self, data: bytes) -> None:
        # Closed first: later appends would go to the file that the new one replaces.
        self._close()
        refuse_link(self._folder.inflight)
        write_atomically(self._folder.inflight, data)

    def _sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remove(self) -> None:
        self._folder.inflight.unlink(missing_ok=True)


def _after(n: int, text: str | None) -> str | None:
    """The part of `text` behind its first `n` characters; None if there is no text, or if n > 0 and nothing is left."""
    return None if text is None or (n and len(text) == n) else text[n:]


def _encoded(line: _PartialLine) -> bytes:
    return record.seal(codec.inert(codec.encode(line))).line


def kept_tokens(partials: Iterable[Partial]) -> int:
    """Number of completion tokens in these parts."""
    return sum(partial.tokens for partial in partials)
