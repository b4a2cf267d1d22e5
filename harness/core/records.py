"""The records that the stages exchange through files: a question, a sample, a grade, a server's facts.

Fields are written in the order in which they stand here. The key (benchmark, question_id, sample_index) comes first, so
that a reader finds it at the start of a line without decoding the text. All records are frozen.

Long: the records are one vocabulary, and nearly all of their lines say what a field means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from harness.core.reply_notes import ending

SCHEMA_VERSION = 1
"""Version of the files of a run. A reader refuses a newer version and converts an older one in memory."""

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Longest line of a journal; the writer refuses a longer one, and a reader skips it."""

MAX_SAMPLES = 100_000
"""Largest number of samples per question; a larger number is a typing mistake or comes from a forged manifest."""

VerdictName = Literal["correct", "wrong", "no_answer", "undecided"]
"""no_answer: the text gives none. undecided: the rules could not tell whether the answer equals the reference."""

AnswerKind = Literal["integer", "number", "expression", "multiple", "choice", "text", "program", "calls"]
"""integer: compared as an integer · number: one numeric value · expression: any single mathematical object ·
multiple: several answers, order free unless the rules say so · choice: a letter · text: words · program: a program,
right if it passes the tests that its reference holds · calls: function calls (`harness.answers.calls`)."""

Form = Literal["fraction", "decimal", "simplest", "factored", "expanded", "scientific"]
"""fraction: one integer over another · decimal: digits with a point · simplest: nothing left to compute or cancel ·
factored: the factors of the reference · expanded: no product of sums · scientific: one digit other than 0 before the
point, times a power of ten."""

NearMiss = Literal["another box", "form", "rounded", "unit"]
"""Why an answer that was graded wrong is nearly right. another box: a box that was not taken as the answer holds the
right one · form: right value, not in the form that the question asks for · rounded: the exact value, where the
reference is rounded · unit: right number, another unit."""

Anomaly = Literal["repetition", "garbled", "no text"]
"""A sign in a text that the server or the model went wrong."""


CallSign = Literal[
    "call", "fits", "no_json", "unknown_name", "schema", "unreadable_schema", "unread_call", "cut_call", "same_id"
]
"""A sign of what a reply made of calls. call: it makes one · fits: the arguments of all fit their schemas · no_json,
unknown_name, schema, unreadable_schema: why one does not · unread_call: its text holds a call that the server has not
read · cut_call: max_tokens ended it after a call had begun · same_id: two calls have one id."""

FROM_FILE = "file:"
"""First characters of `Sample.endpoint` for a sample that was imported from another tool's file."""


UNSTATED_REASON = "unknown"
"""`Sample.finish_reason` of a sample whose file does not say why it ended."""

NO_REPLY = "the file states the verdict only, so there is no reply"
"""The words in place of the text of a sample that `has_verdict_only`."""


class Key(NamedTuple):
    """The identity of a sample within a benchmark. sample_index: counts a question's samples from 0."""

    question_id: str
    sample_index: int


class GradeRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When an answer equals its reference, as the card says. Stored in each question: grading never reads the card.

    grader: "rules" (ours), "package.module:function" (the benchmark's own verifier), "program" (an extension runs
    the answer) or "given" (the file of another tool states the verdicts).
    relative_tolerance, absolute_tolerance: largest accepted distance of a number from the reference;
    0 = exact. round_to_reference: whether a decimal is accepted that rounds to the reference at the reference's digits.
    several_boxes: whether all boxes of the last sentence together are the answer. ordered: whether the parts of an
    answer must come in the reference's order; None: they need not, but the grader leaves another order undecided beside
    values that the reference separates by semicolons. whole_reply: whether the verifier is given the whole reply
    behind its reasoning, and not the answer that was found in it. form: the form that the answer must be written in;
    None: any.
    conventions: conventions of `docs/grading.md` that this benchmark switches on (true) or off (false), by name.
    judge: name of a judge's form, or the path of its file; empty: that of the command. right_from: points from which a
    sample counts as correct; None: all of them.
    """

    grader: str = "rules"
    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    round_to_reference: bool = False
    several_boxes: bool = False
    ordered: bool | None = None
    whole_reply: bool = False
    form: Form | None = None
    conventions: dict[str, bool] = {}
    judge: str = ""
    right_from: float | None = None


CHECKSUM_ID_CHARS = 16
"""Characters of a row's checksum that are its question's id, if the data give none."""


OWN_METADATA = frozenset({"cluster", "same_as", "twin_of", "choice_order"})
"""Names in a question's metadata by which the harness states facts of its own: questions that are not independent, and
the order of shown options.
"""


def metadata_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of the data as metadata. A column with a name of `OWN_METADATA` is called `NAME (column)`, so that its
    values are not taken for facts of the harness.
    """
    return {f"{name} (column)" if name in OWN_METADATA else name: value for name, value in columns.items()}


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a question offers to the model. parameters: a JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class SentCall(msgspec.Struct, frozen=True, kw_only=True):
    """A function call that is (a part of) an answer and is never run; its texts are as sent."""

    id: str = ""
    name: str
    arguments: str


class ImagePart(msgspec.Struct, frozen=True, kw_only=True):
    """An image in a message, which is sent in place of the characters `start` to `end` of the content."""

    sha256: str
    """The checksum of its bytes, by which a run names its file (`harness.core.images`)."""
    start: int
    end: int
    url: str | msgspec.UnsetType = msgspec.UNSET
    """Its bytes as a data URL, in a message that is about to be sent; never stored."""


class Message(msgspec.Struct, frozen=True):
    """A chat message as it is sent. role: "system", "user", "assistant" or "tool"."""

    role: str
    content: str
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET
    """The calls of an earlier reply; unset without any."""
    call_id: str | msgspec.UnsetType = msgspec.UNSET
    """The id of the call whose result this message of a tool is."""
    breaks: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    """Where the line breaks are between the texts of a content that is sent as a list; unset for a plain text."""
    images: tuple[ImagePart, ...] | msgspec.UnsetType = msgspec.UNSET
    """The images that it shows, in order; unset without any."""

    @property
    def identity(self) -> list[Any]:
        """What its digest is made of."""
        calls = [[call.id, call.name, call.arguments] for call in self.calls or ()]
        breaks = {"breaks": self.breaks} if self.breaks else None
        images = {"images": [[image.sha256, image.start, image.end] for image in self.images or ()]}
        return [self.role, self.content, *filter(None, (calls, self.call_id, breaks, self.images and images))]

    @property
    def texts(self) -> list[str]:
        """The texts of which its content is made."""
        ends = (*(self.breaks or ()), len(self.content))
        return [self.content[start:end] for start, end in zip((0, *(each + 1 for each in ends)), ends, strict=False)]

    @property
    def parts(self) -> Iterator[str | ImagePart]:
        """The content as it is sent: texts, and the images between them. Blank texts beside an image are left out."""
        at = 0
        for image in self.images or ():
            if (text := self.content[at : image.start]).strip():
                yield text
            yield image
            at = max(at, image.end)
        if (text := self.content[at:]).strip():
            yield text

    @property
    def shown(self) -> str:
        """Its content and its calls, for a reader."""
        return "\n".join([self.content, *(f"{call.name}({call.arguments})" for call in self.calls or ())]).strip("\n")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is sent, with its reference answers: a line of `questions.jsonl`.

    messages: the chat messages (api "chat"). prompt: the text (api "completions"). One of these two is empty.
    references: all reference answers as texts; an answer that equals any of them is right. choices: the texts of the
    options in the order shown, letter A first; empty unless the question is multiple choice. row_digest: SHA-256 of
    the data set's row. prompt_digest: SHA-256 of the messages or the prompt. metadata: level, subject and the like, by
    which scores can be broken down. rubric: the row's own, for a judge; unset without one. tools: those that the
    question offers; unset where its answer is no call. calling: the row's own `tool_choice` and `parallel_tool_calls`,
    as the chat API has them; unset without any.
    """

    benchmark: str
    question_id: str
    messages: tuple[Message, ...] = ()
    prompt: str = ""
    references: tuple[str, ...]
    kind: AnswerKind
    rules: GradeRules = GradeRules()
    choices: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    row_digest: str
    prompt_digest: str
    rubric: str | msgspec.UnsetType = msgspec.UNSET
    tools: tuple[OfferedTool, ...] | msgspec.UnsetType = msgspec.UNSET
    calling: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    schema: int = SCHEMA_VERSION

    @property
    def has_own_id(self) -> bool:
        """Whether the data gave its id; else the id is the beginning of the row's checksum, and means nothing to a
        reader.
        """
        return not self.row_digest or not self.question_id.startswith(self.row_digest[:CHECKSUM_ID_CHARS])

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The images of all messages, in order; one that is shown twice counts twice."""
        return tuple(image for message in self.messages for image in message.images or ())

    @property
    def last_turn(self) -> str:
        """The question itself: the last turn of the user, before which there may be examples; or the raw prompt."""
        turns = [message.content for message in self.messages if message.role == "user"]
        return turns[-1] if turns else self.prompt


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts as the server states them; None: the server did not say. spec_tokens, spec_steps: tokens that came
    of steps with speculative decoding, and these steps; unset where a reply does not count them.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    spec_tokens: int | msgspec.UnsetType = msgspec.UNSET
    spec_steps: int | msgspec.UnsetType = msgspec.UNSET


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When a sample's request was sent and how long its reply took, in seconds.

    started: when the request was sent, as Unix time (UTC). queued: time between planning the sample and sending its
    request. first_token, last_token, total: time from the request to the first token, the last token, and the end of
    the reply. gap_p50, gap_p99: median and 99th percentile of the time between two events with tokens; None if there
    were fewer than two. events: number of such events. clock: "kernel" (the socket's receive stamps) or "user" (our
    clock when the bytes were read). lag: how long arrived bytes waited to be read, 99th percentile over the session;
    None: not measured.
    """

    started: float
    queued: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    total: float
    gap_p50: float | None = None
    gap_p99: float | None = None
    events: int = 0
    clock: Literal["kernel", "user"] = "user"
    lag: float | None = None


class Seam(msgspec.Struct, frozen=True, kw_only=True):
    """The place in a sample where it was interrupted and then continued by another request.

    tokens: completion tokens before the place. text, reasoning: characters of each before the place. exact: whether the
    continuation started from the same token ids and the server gave them the same log-probabilities as before; False:
    the text was turned into tokens anew, or the log-probabilities differ. compared: number of tokens before the place
    whose log-probabilities were compared. difference: mean absolute difference of these log-probabilities, the first
    time and when they were asked for again, in nats; None: nothing was compared.
    """

    tokens: int
    text: int
    reasoning: int
    exact: bool
    difference: float | None = None
    compared: int = 0


class SampleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record about one sample. Its first fields say of which."""

    benchmark: str
    question_id: str
    sample_index: int

    @property
    def key(self) -> Key:
        """The sample's identity within its benchmark."""
        return Key(self.question_id, self.sample_index)


CallEnd = Literal["ran", "failed", "stopped", "unreadable", "unknown tool", "not run"]
"""How a call ended. failed: it raised an exception. stopped: it passed a limit, or its interpreter ended. unreadable:
its arguments are no JSON. not run: the sample ended with it."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool. name, arguments: as sent. output: as told to the model. seconds: CPU time."""

    id: str
    name: str
    arguments: str
    output: str
    end: CallEnd
    seconds: float = 0.0


class SampleStep(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a sample, its reply, and the calls that the reply makes; each step but the last has calls.

    text, reasoning: unset in the last step, whose texts are the sample's.
    """

    text: str | msgspec.UnsetType | None = msgspec.UNSET
    reasoning: str | msgspec.UnsetType | None = msgspec.UNSET
    finish_reason: str
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()


class Sample(SampleRecord, frozen=True, kw_only=True):
    """A finished completion: a line of `samples.jsonl`, which is never rewritten.

    text, reasoning: as the server sent them; None if it sent null. refusal: the words of a refusal that is no text;
    unset without one. finish_reason: as sent ("stop", "length", …).
    endpoint: the URL that was asked, or `file:PATH` for a sample of another tool, whose finish_reason may be
    `UNSTATED_REASON`. server_model, fingerprint, request_id: as the server stated them. seed: the seed that was sent.
    attempts: requests made for this sample, the successful one included. salvaged_at: the places where the sample was
    interrupted and continued, in order; `usage` then counts all parts, `timing` is that of the last request.
    provider: who answered behind a router, as stated; unset where nobody is. steps: the requests of a sample with a
    tool, unset without one; text, reasoning and finish_reason are then the last step's, `usage` is the sum, `timing`
    goes from the first request to the last byte, and `attempts` counts requests beyond one a step from 1. calls: those
    that are the answer, unset where the question offers no tools. The journal
    adds a checksum to each line (see `harness.runs.journal`).
    """

    text: str | None
    reasoning: str | None
    finish_reason: str
    usage: Usage = Usage()
    timing: Timing
    endpoint: str
    server_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    seed: int | None = None
    attempts: int = 1
    prompt_digest: str = ""
    refusal: str | msgspec.UnsetType = msgspec.UNSET
    salvaged_at: tuple[Seam, ...] = ()
    provider: str | msgspec.UnsetType = msgspec.UNSET
    steps: tuple[SampleStep, ...] | msgspec.UnsetType = msgspec.UNSET
    calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET
    verdict: Annotated[float, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    """The share of the task that the file of another tool calls right, 1 or 0 for right or wrong; unset where the reply
    is graded here. A sample with a verdict may have no text."""
    schema: int = SCHEMA_VERSION

    @property
    def foreign(self) -> bool:
        """Whether another tool made the sample, so that its settings and its time are unknown."""
        return self.endpoint.startswith(FROM_FILE)

    @property
    def has_verdict_only(self) -> bool:
        """Whether another tool's file states the verdict and has no reply."""
        return self.verdict is not msgspec.UNSET and self.text is None

    @property
    def truncated(self) -> bool:
        """Whether the bound on new tokens is stated to have ended the completion. Such a sample is finished, and is
        graded.
        """
        return ending(self.finish_reason) == "cut"

    @property
    def hides_reasoning(self) -> bool:
        """Whether the reasoning was not sent, or only a summary: its text has fewer bytes than the server counts
        tokens, and no token is shorter than a byte.
        """
        texts = (self.reasoning, *(step.reasoning for step in self.steps or ()))
        n_bytes = sum(len((text or "").encode("utf-8", "surrogatepass")) for text in texts)
        return n_bytes < (self.usage.reasoning_tokens or 0)


class Grade(SampleRecord, frozen=True, kw_only=True, gc=False):
    """The verdict on one sample: a line of `grades.jsonl`.

    extracted: the answer as it stands in the text; None if there is none. rule: the rule that decided ("numeric",
    "structural", …). grader: name and version of the grader. vote: the canonical form of the answer, by which maj@k
    counts equal answers; None: this sample does not vote. span: (start, end) of the answer in `text`, in characters.
    unextracted: whether the right answer stands in the text without being given as the answer. near_miss: why a wrong
    answer is nearly right; None: it is not. truncated: whether max_tokens cut the reply; None: its file does not say.
    anomalies: signs that the text or the reasoning looks broken; no verdict depends on them. basis: short digest of the
    references and the rules; if the question's digest is another, the sample is graded again. reply_checksum: of the
    sample's text and reasoning; if the sample's is another, it is graded again; None: the version that made the grade
    stored none. parts: (parts of the answer that are right, parts that the question asks for), such as cells of a
    table; unset where the grader states none. points: (points that a judge gave, most points), the first below 0
    where a rubric takes points off; unset without them. confidence: as the reply states it, a fraction, by a judge's
    reading. The file adds a checksum to each line.
    """

    verdict: VerdictName
    extracted: str | None
    rule: str
    grader: str
    vote: str | None = None
    span: tuple[int, int] | None = None
    unextracted: bool = False
    near_miss: NearMiss | None = None
    truncated: bool | None = False
    completion_tokens: int | None = None
    anomalies: tuple[str, ...] = ()
    basis: str = ""
    reply_checksum: Annotated[int, msgspec.Meta(ge=0)] | None = None
    parts: tuple[Annotated[int, msgspec.Meta(ge=0)], Annotated[int, msgspec.Meta(ge=1)]] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    points: tuple[float, Annotated[float, msgspec.Meta(gt=0)]] | msgspec.UnsetType = msgspec.UNSET
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    call_signs: tuple[CallSign, ...] | msgspec.UnsetType = msgspec.UNSET
    """The signs of what the reply made of calls; unset where the question asks for none."""

    @property
    def counted(self) -> float:
        """What the accuracy counts: the share of the points; without points, 1 if the sample is correct, else 0."""
        return float(self.verdict == "correct") if self.points is msgspec.UNSET else self.points[0] / self.points[1]

    @property
    def share_right(self) -> float:
        """The fraction of the answer that is right: of the points; else 1 exactly if the sample is correct, so that a
        mean of these fractions is never below the accuracy.

        The parts count unless the verdict contradicts them (a judge ruled otherwise). Without parts the answer is one
        part.
        """
        if self.points is not msgspec.UNSET:
            return self.counted
        is_correct = self.verdict == "correct"
        if self.parts is msgspec.UNSET or (self.parts[0] >= self.parts[1]) != is_correct:
            return float(is_correct)
        return self.parts[0] / self.parts[1]


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's information pages say about it: dotted name → JSON value; unknown facts are left out.

    model: facts on which the replies depend (weights, chat template, quantisation, parsers, sampling defaults); a run
    refuses to mix samples made under different ones. host: all other facts (engine, version, context, machine).
    """

    model: dict[str, Any] = {}
    host: dict[str, Any] = {}

    def over(self, defaults: ServerFacts) -> ServerFacts:
        """These facts, completed by those of `defaults` whose names are missing here."""
        return ServerFacts(model={**defaults.model, **self.model}, host={**defaults.host, **self.host})


NOTHING_TOLD: Final = ServerFacts()
"""The facts of a server that was not asked, or did not answer."""
