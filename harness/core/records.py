"""The records that the stages exchange through files: a question, a sample, a grade, a server's facts.

Fields are written in the order in which they are declared here. The key (benchmark, question_id, sample_index) comes
first, so that a reader finds it at the start of a line without decoding the text. All records are frozen.

Long: it keeps all types of records together, and most lines document fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from harness.core.reply_notes import ending
from reasoning_answers import Rules
from reasoning_answers.host import AnswerKind as AnswerKind
from reasoning_answers.host import CallSign as CallSign
from reasoning_answers.host import NearMiss as NearMiss
from reasoning_answers.host import OfferedTool as OfferedTool
from reasoning_answers.host import SentCall as SentCall
from reasoning_answers.host import VerdictName as VerdictName

GradeRules = Rules
"""The rules by which a question's answers are compared, as the grader defines them."""

SCHEMA_VERSION = 1
"""Version of the files of a run. A reader rejects a newer version and converts an older one in memory."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Longest line of a journal; a writer rejects a longer one, and a reader skips it."""

MAX_SAMPLES = 100_000
"""Largest number of samples per question; a larger number is a typo or comes from a forged manifest."""

Anomaly = Literal["repetition", "garbled", "no text"]
"""A sign in a text that something went wrong in the server or the model."""


FROM_FILE = "file:"
"""First characters of `Sample.endpoint` for a sample that was imported from another tool's file."""


UNSTATED_REASON = "unknown"
"""`Sample.finish_reason` of a sample whose file does not say why it ended."""

NO_REPLY = "its source file contains only the verdict, not the reply"
"""The words shown instead of the text of a sample that `has_verdict_only`."""


class Key(NamedTuple):
    """The identity of a sample within a benchmark. sample_index: the index among its question's samples, from 0."""

    question_id: str
    sample_index: int


CHECKSUM_ID_CHARS = 16
"""Number of characters of a row's checksum that serve as the question's id if the data have no id."""


OWN_METADATA = frozenset({"cluster", "same_as", "twin_of", "choice_order"})
"""Names in a question's metadata that the harness uses for its own facts: which questions are not independent, and the
order of the options shown.
"""


def metadata_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of the data as metadata. A column with a name in `OWN_METADATA` is renamed to `NAME (column)`, so that
    its values are not taken for the harness's own facts.
    """
    return {f"{name} (column)" if name in OWN_METADATA else name: value for name, value in columns.items()}


MediaKind = Literal["image"]
"""The kind of a part of a message other than text."""


class MediaPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a message other than text, which is sent in place of the characters `start` to `end` of the content."""

    kind: MediaKind = "image"
    """Kind of part."""
    sha256: str
    """Checksum of its bytes, by which a run names its file (`harness.core.images`)."""
    start: int
    """Position of the first character that it replaces."""
    end: int
    """Position after the last character that it replaces."""
    url: str | msgspec.UnsetType = msgspec.UNSET
    """Its bytes as a data URL in a message about to be sent; never stored."""


class Message(msgspec.Struct, frozen=True):
    """A chat message as it is sent."""

    role: str
    """Role of the message's author: "system", "user", "assistant" or "tool"."""
    content: str
    """Message text."""
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET
    """Calls in an earlier reply; absent if there are none."""
    call_id: str | msgspec.UnsetType = msgspec.UNSET
    """ID of the call whose result this tool message contains; absent in other messages."""
    breaks: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    """If the content is sent as a list, the positions in `content` of the line breaks between its parts; absent for
    plain text.
    """
    media: tuple[MediaPart, ...] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="images")
    """Images in the message, in order; absent if there are none."""

    @property
    def identity(self) -> list[Any]:
        """The values from which its digest is made."""
        calls = [[call.id, call.name, call.arguments] for call in self.calls or ()]
        breaks = {"breaks": self.breaks} if self.breaks else None
        media: dict[str, list[list[Any]]] = {}
        for part in self.media or ():
            media.setdefault(f"{part.kind}s", []).append([part.sha256, part.start, part.end])
        return [self.role, self.content, *filter(None, (calls, self.call_id, breaks, media))]

    def in_parts_of(self, other: Message) -> Message:
        """The message with the parts of another one, whose whole content it contains; otherwise unchanged."""
        at = self.content.find(other.content) if other.breaks and self.role == other.role else -1
        breaks = tuple(at + each for each in other.breaks or ())
        return self if at < 0 else msgspec.structs.replace(self, breaks=breaks)

    @property
    def texts(self) -> list[str]:
        """The texts that make up its content."""
        ends = (*(self.breaks or ()), len(self.content))
        return [self.content[start:end] for start, end in zip((0, *(each + 1 for each in ends)), ends, strict=False)]

    @property
    def parts(self) -> Iterator[str | MediaPart]:
        """The content as it is sent: texts, and the media between them. Blank texts next to media are left out."""
        if not self.media:
            yield from self.texts
            return
        at = 0
        for part in self.media:
            if (text := self.content[at : part.start]).strip():
                yield text
            yield part
            at = max(at, part.end)
        if (text := self.content[at:]).strip():
            yield text

    @property
    def shown(self) -> str:
        """Its content and its calls as readable text."""
        return "\n".join([self.content, *(f"{call.name}({call.arguments})" for call in self.calls or ())]).strip("\n")


class AskedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of a conversation: what is asked, and its reference answers."""

    messages: tuple[Message, ...] = ()
    """The turn's new messages; empty for the first turn, whose messages are the question's."""
    references: tuple[str, ...] = ()
    """All reference answers; empty for a turn that is not graded by a reference."""
    kind: AnswerKind = "text"
    """Kind of answer."""
    max_tokens: int | None = None
    """Limit on the new tokens of the reply, if the data state one."""
    delay: float = 0.0
    """Seconds between the reply before and this turn, if the data state them."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is sent, with its reference answers; one line of `questions.jsonl`. Either `messages` or
    `prompt` is empty.
    """

    benchmark: str
    """Name of the benchmark."""
    question_id: str
    """ID of the question."""
    messages: tuple[Message, ...] = ()
    """The chat messages; empty for an API without a chat template."""
    prompt: str = ""
    """The prompt text, for an API without a chat template."""
    references: tuple[str, ...]
    """All reference answers, as strings. An answer that matches any of them is correct."""
    kind: AnswerKind
    """Kind of answer, which determines how it is compared."""
    rules: GradeRules = GradeRules()
    """Rules for comparing an answer with its reference."""
    choices: tuple[str, ...] = ()
    """Option texts in the order shown, starting with A; empty unless the question is multiple choice."""
    metadata: dict[str, Any] = {}
    """Metadata by which scores can be broken down, such as level and subject."""
    row_digest: str
    """SHA-256 of the dataset row."""
    prompt_digest: str
    """SHA-256 of the messages or prompt."""
    rubric: str | msgspec.UnsetType = msgspec.UNSET
    """The row's rubric for a judge; absent if it has none."""
    tools: tuple[OfferedTool, ...] | msgspec.UnsetType = msgspec.UNSET
    """Tools offered with the question; absent if the answer is not a function call."""
    calling: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The row's `tool_choice` and `parallel_tool_calls`, as in the chat API; absent if the row has neither."""
    turns: tuple[AskedTurn, ...] | msgspec.UnsetType = msgspec.UNSET
    """The turns of a conversation, which are asked one after the other; `references` are those of the last one. Absent
    if the question is a single turn.
    """
    schema: int = SCHEMA_VERSION
    """Version of this format."""

    @property
    def graded_by_turn(self) -> list[Any]:
        """The references and kind of each turn of a conversation, in a list; empty without a conversation."""
        return [[[turn.references, turn.kind] for turn in self.turns]] if self.turns else []

    @property
    def has_own_id(self) -> bool:
        """Whether its id comes from the data; otherwise the id is the beginning of the row's checksum, which means
        nothing to a reader.
        """
        return not self.row_digest or not self.question_id.startswith(self.row_digest[:CHECKSUM_ID_CHARS])

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The media of all messages, in order; a part that is shown twice counts twice."""
        return tuple(part for message in self.messages for part in message.media or ())

    @property
    def images(self) -> tuple[MediaPart, ...]:
        """The images among them."""
        return tuple(part for part in self.media if part.kind == "image")

    @property
    def last_turn(self) -> str:
        """The question itself: the last user turn, which may follow examples; or the raw prompt."""
        turns = [message.content for message in self.messages if message.role == "user"]
        return turns[-1] if turns else self.prompt


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts, as reported by the server; None if not reported."""

    prompt_tokens: int | None = None
    """Prompt tokens."""
    completion_tokens: int | None = None
    """Completion tokens, including reasoning."""
    reasoning_tokens: int | None = None
    """Number of completion tokens used for reasoning."""
    cached_tokens: int | None = None
    """Prompt tokens served from the cache."""
    spec_tokens: int | msgspec.UnsetType = msgspec.UNSET
    """Tokens generated by speculative decoding steps; absent if not reported."""
    spec_steps: int | msgspec.UnsetType = msgspec.UNSET
    """Number of speculative decoding steps; absent if not reported."""


Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
"""Numbers of a stranger's file that are added up: bounded, so that the sum can be a float."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When a sample's request was sent and how long its reply took, in seconds."""

    started: float
    """Unix time at which the request was sent."""
    queued: float | None = None
    """Time between planning the sample and sending its request, in seconds; None if not measured."""
    first_token: float | None = None
    """Time from the request to the first token, in seconds; None if there were no tokens."""
    last_token: float | None = None
    """Time from the request to the last token, in seconds; None if there were no tokens."""
    total: float
    """Time from the request to the end of the reply, in seconds."""
    gap_p50: float | None = None
    """Median time between consecutive token events, in seconds; None if there were fewer than two events."""
    gap_p99: float | None = None
    """99th percentile of the time between consecutive token events, in seconds; None if there were fewer than two
    events.
    """
    events: int = 0
    """Number of token events."""
    gaps: dict[Milliseconds, Count] | msgspec.UnsetType = msgspec.UNSET
    """In a sweep over loads, the times between consecutive token events: whole milliseconds → how many. Otherwise, and
    for several requests, absent.
    """
    clock: Literal["kernel", "user"] = "user"
    """Clock used for these times: "kernel" (the socket's receive timestamps) or "user" (the client's clock when the
    bytes were read).
    """
    late: float | msgspec.UnsetType = msgspec.UNSET
    """In a run with a `rate`, the time from the planned arrival to sending the request, in seconds; the other times are
    from the planned arrival, too. Otherwise absent.
    """
    lag: float | None = None
    """Delay before received bytes were read (99th percentile over the session), in seconds; None if not measured."""


class Seam(msgspec.Struct, frozen=True, kw_only=True):
    """The point at which an earlier version continued an interrupted sample with another request."""

    tokens: int
    """Number of completion tokens before this point."""
    text: int
    """Number of text characters before this point."""
    reasoning: int
    """Number of reasoning characters before this point."""
    exact: bool
    """Whether the continuation started from the same token IDs, with the same log-probabilities. If false, the text was
    tokenized again, or the log-probabilities differ.
    """
    difference: float | None = None
    """Mean absolute difference between the old and new log-probabilities of the compared tokens, in nats; None if
    nothing was compared.
    """
    compared: int = 0
    """Number of tokens before this point whose log-probabilities were compared."""


class SampleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record about one sample. Its first fields identify the sample."""

    benchmark: str
    """Name of the benchmark."""
    question_id: str
    """ID of the question."""
    sample_index: int
    """Zero-based index of the sample among its question's samples."""

    @property
    def key(self) -> Key:
        """The sample's identity within its benchmark."""
        return Key(self.question_id, self.sample_index)


CallEnd = Literal["ran", "failed", "stopped", "unreadable", "unknown tool", "not run"]
"""How a call ended. failed: it raised an exception. stopped: it exceeded a limit, or its interpreter ended. unreadable:
its arguments are not JSON. not run: the sample ended with it."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool."""

    id: str
    """Id of the call, as sent."""
    name: str
    """Name of the tool, as sent."""
    arguments: str
    """Arguments, as sent."""
    output: str
    """Output that the model got."""
    end: CallEnd
    """How the call ended."""
    seconds: float = 0.0
    """CPU time, in seconds."""


class SampleStep(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a sample, its reply, and the calls that the reply makes. After a step without calls, the
    conversation's next turn is asked, if there is one.
    """

    text: str | msgspec.UnsetType | None = msgspec.UNSET
    """Text of the reply; absent in the last step, whose text is the sample's, unless a later turn got no reply."""
    reasoning: str | msgspec.UnsetType | None = msgspec.UNSET
    """Reasoning of the reply; absent where the text is."""
    finish_reason: str
    """Why the reply ended, as sent."""
    usage: Usage = Usage()
    """Token counts of this request."""
    calls: tuple[ToolCall, ...] = ()
    """Calls that the reply makes."""
    turn: int | msgspec.UnsetType = msgspec.UNSET
    """Number of the conversation's turn that the step belongs to, from 1; absent without a conversation."""
    timing: Timing | msgspec.UnsetType = msgspec.UNSET
    """Timing of this request; absent in samples of earlier versions."""
    resumed: bool | msgspec.UnsetType = msgspec.UNSET
    """True if this request is the first of another session than the step before it, so that the server's cache may have
    been empty; otherwise absent.
    """


class Sample(SampleRecord, frozen=True, kw_only=True):
    """A finished completion; one line of `samples.jsonl`, which is never rewritten. The journal adds a checksum to each
    line (see `harness.runs.journal`). If the sample used a tool or is a conversation, text, reasoning and finish_reason
    come from its last step; the text is None if a later turn got no reply.
    """

    text: str | None
    """Text, as sent by the server; None if the server sent null."""
    reasoning: str | None
    """Reasoning, as sent by the server; None if the server sent null."""
    finish_reason: str
    """Why the reply ended, as sent ("stop", "length", …), or "unknown" if another tool's file does not report it."""
    usage: Usage = Usage()
    """Token counts. They include all parts of a continued sample and all steps."""
    timing: Timing
    """Timing of the last request; for a sample with a tool, the time from the first request to the last byte."""
    endpoint: str
    """Endpoint URL, or `file:PATH` for a sample imported from another tool."""
    server_model: str | None = None
    """Model name, as reported by the server."""
    fingerprint: str | None = None
    """System fingerprint, as reported by the server."""
    request_id: str | None = None
    """Request ID, as reported by the server."""
    seed: int | None = None
    """Seed that was sent; None if no seed was sent."""
    attempts: int = 1
    """Number of requests made for this sample, including the successful one; for a sample with a tool, 1 plus the total
    number of retries across its steps.
    """
    prompt_digest: str = ""
    """SHA-256 of the messages or prompt."""
    refusal: str | msgspec.UnsetType = msgspec.UNSET
    """Text of a refusal that was sent separately from the main text; absent if there is none."""
    salvaged_at: tuple[Seam, ...] = ()
    """Points at which an earlier version continued the sample after an interruption, in order."""
    provider: str | msgspec.UnsetType = msgspec.UNSET
    """Provider behind a router, as reported by the server; absent if not reported."""
    steps: tuple[SampleStep, ...] | msgspec.UnsetType = msgspec.UNSET
    """The sample's requests, if it has a tool or is a conversation; absent otherwise."""
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET
    """Tool calls that make up the answer; absent if no tools were offered with the question."""
    verdict: Annotated[float, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    """Verdict from another tool's file: the fraction of the task that is correct (1 for correct, 0 for wrong). Absent
    if the harness grades the reply. A sample with a verdict might have no text.
    """
    schema: int = SCHEMA_VERSION
    """Version of this format."""

    @property
    def foreign(self) -> bool:
        """Whether another tool made the sample, so that its settings and timing are unknown."""
        return self.endpoint.startswith(FROM_FILE)

    @property
    def has_verdict_only(self) -> bool:
        """Whether another tool's file contains the verdict but no reply."""
        return self.verdict is not msgspec.UNSET and self.text is None

    @property
    def truncated(self) -> bool:
        """Whether the finish reason says that the limit on new tokens ended the completion. Such a sample is finished
        and is graded.
        """
        return ending(self.finish_reason) == "cut"

    @property
    def hides_reasoning(self) -> bool:
        """Whether the reasoning was withheld or summarized: its text has fewer bytes than the server counts tokens, and
        no token is shorter than a byte.
        """
        texts = (self.reasoning, *(step.reasoning for step in self.steps or ()))
        n_bytes = sum(len((text or "").encode("utf-8", "surrogatepass")) for text in texts)
        return n_bytes < (self.usage.reasoning_tokens or 0)


class TurnGrade(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The verdict on one turn of a conversation."""

    turn: int
    """Number of the turn, from 1."""
    verdict: VerdictName
    """The verdict."""
    rule: str
    """Rule that decided the verdict."""
    extracted: str | None
    """The answer, as written in the turn's reply; None if there is no answer."""
    parts: tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=1)]] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    """Number of correct parts, and number of parts; absent if the grader reports no parts."""


class Grade(SampleRecord, frozen=True, kw_only=True, gc=False):
    """The verdict on one sample; one line of `grades.jsonl`. A checksum is added to each line."""

    verdict: VerdictName
    """The verdict."""
    extracted: str | None
    """The answer, as written in the text; None if there is no answer."""
    rule: str
    """Rule that decided the verdict ("numeric", "structural", …)."""
    grader: str
    """Name and version of the grader."""
    vote: str | None = None
    """The first of the equal answers that maj@k counts as one with this answer; None if this sample does not vote."""
    span: tuple[int, int] | None = None
    """Start and end of the answer in `text`, in characters; None if there is no answer."""
    unextracted: bool = False
    """Whether the text contains the correct answer but does not present it as the answer."""
    near_miss: NearMiss | None = None
    """Why a wrong answer counts as a near miss; None if it does not."""
    truncated: bool | None = False
    """Whether max_tokens truncated the reply; None if another tool's file does not report it."""
    completion_tokens: int | None = None
    """The sample's completion tokens; None if not reported."""
    anomalies: tuple[str, ...] = ()
    """Signs that the text or reasoning is broken. They do not affect the verdict."""
    basis: str = ""
    """Short digest of the references and rules. If it no longer matches the question's digest, the sample is regraded.
    """
    reply_checksum: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Checksum of the sample's text and reasoning. If it no longer matches the sample, the sample is regraded. None if
    the harness version that graded the sample did not store checksums.
    """
    parts: tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=1)]] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    """Number of correct parts in the answer, and number of parts that the question asks for (for example, table cells);
    absent if the grader reports no parts.
    """
    points: tuple[float, Annotated[float, msgspec.Meta(gt=0)]] | msgspec.UnsetType = msgspec.UNSET
    """Points awarded by a judge, and maximum points. The first number is negative if the rubric deducts more points
    than it awards. Absent if the grade has no points.
    """
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    """Confidence expressed in the reply, as extracted by a judge (a fraction); absent if the reply expresses none."""
    turns: tuple[TurnGrade, ...] | msgspec.UnsetType = msgspec.UNSET
    """Verdicts on the graded turns of a conversation, which is correct if all of them are; absent for other samples."""
    call_signs: tuple[CallSign, ...] | msgspec.UnsetType = msgspec.UNSET
    """Properties of the calls in the reply; absent if the question does not ask for calls."""

    @property
    def counted(self) -> float:
        """What the accuracy counts: the share of the points or, without points, 1 if the sample is correct, else 0."""
        return float(self.verdict == "correct") if self.points is msgspec.UNSET else self.points[0] / self.points[1]

    @property
    def share_right(self) -> float:
        """The fraction of the answer that is correct: the share of the points or, without points, 1 only if the
        sample is correct, so that the mean of these fractions is never below the accuracy.

        The parts count unless the verdict contradicts them (a judge ruled otherwise). Without parts, the answer is a
        single part.
        """
        if self.points is not msgspec.UNSET:
            return self.counted
        is_correct = self.verdict == "correct"
        if self.parts is msgspec.UNSET or (self.parts[0] >= self.parts[1]) != is_correct:
            return float(is_correct)
        return self.parts[0] / self.parts[1]


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's information pages report, as dotted name → JSON value; unknown facts are left out."""

    model: dict[str, Any] = {}
    """Facts on which replies depend (weights, chat template, quantization, parsers, sampling defaults); a run refuses
    to mix samples made under different ones.
    """
    host: dict[str, Any] = {}
    """All other facts (engine, version, context, machine)."""

    def with_defaults(self, defaults: ServerFacts) -> ServerFacts:
        """These facts, plus those in `defaults` whose names are missing here."""
        return ServerFacts(model={**defaults.model, **self.model}, host={**defaults.host, **self.host})


NOTHING_TOLD: Final = ServerFacts()
"""The facts about a server that was not asked or did not answer."""
