"""The shapes that the stages exchange through files: question, sample, grade, score.

Field order is file order; the key comes first, so that a reader can find it without decoding the text.
All are frozen. `Key` = (question_id, sample_index) within one benchmark.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec

SCHEMA_VERSION = 1
"""Version of every file of a run. A reader refuses a newer one and upgrades an older one in memory."""

Verdict = Literal["correct", "wrong", "no_answer", "undecided"]

AnswerKind = Literal["integer", "number", "expression", "multiple", "choice", "text", "program"]
"""integer: compared as an integer · number: one numeric value · expression: any single mathematical object ·
multiple: several answers, order free unless the rules say so · choice: a letter · text: words · program: a program,
right if it passes the tests that its reference holds."""

Form = Literal["fraction", "decimal", "simplest", "factored", "expanded"]
"""fraction: one integer over another · decimal: digits with a point · simplest: nothing left to compute or cancel ·
factored: the factors of the reference · expanded: no product of sums."""

NearMiss = Literal["another box", "form", "rounded", "unit"]
"""How a wrong answer misses a right one: another box held it · right but for the form asked for · the exact value of
a rounded reference · the right number with another unit."""

Anomaly = Literal["repetition", "garbled", "rare characters", "language switch", "log-probabilities"]
"""A sign in a text, or in what came with it, that something went wrong: with the server or with the model."""


FROM_FILE = "file:"
"""Begins the endpoint of a sample that another tool made and that was taken over from its file."""


class Key(NamedTuple):
    """One sample of one question within a benchmark."""

    question_id: str
    sample_index: int


class Message(msgspec.Struct, frozen=True):
    """One chat message as it is sent."""

    role: str
    content: str


class GradeRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the card says about equality. Stored with each question, so that grading never reads the card.

    grader: "rules", "package.module:function" of a benchmark's own verifier, or "program": an extension that runs it.
    relative_tolerance, absolute_tolerance: accepted distance of a number from the reference; 0 = exact.
    round_to_reference: a decimal that rounds to the reference at the reference's own digits is accepted.
    several_boxes: the boxes of the last sentence together are the answer (multi-part answers).
    ordered: the parts of a "multiple" answer must come in the reference's order.
    form: the form that was asked for, which the answer must be written in.
    conventions: conventions of `docs/grading.md` switched off (false) or on (true) for this benchmark.
    """

    grader: str = "rules"
    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    round_to_reference: bool = False
    several_boxes: bool = False
    ordered: bool = False
    form: Form | None = None
    conventions: dict[str, bool] = {}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One problem as it was asked, with its reference answers: a line of `questions.jsonl`.

    messages: chat messages (api "chat"); prompt: raw text (api "completions"); the other one is empty.
    references: every accepted reference answer, as text.
    choices: option texts in the order shown, letter A first; empty when it is not multiple choice.
    row_digest: SHA-256 of the source row; prompt_digest: SHA-256 of what is sent.
    metadata: level, subject …, by which scores can be broken down.
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
    schema: int = SCHEMA_VERSION

    @property
    def prompt_chars(self) -> int:
        """Characters of what is asked."""
        return len(self.prompt) + sum(len(message.content) for message in self.messages)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts as the server states them; None = unknown, never guessed as 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. `started` is UTC (Unix time) when the request was sent; the others are durations from there.

    queued: from the moment the key was planned to the request. first_token, last_token, total: from the request.
    gap_p50, gap_p99: quantiles of the time between token events; None with fewer than two.
    clock: "kernel" (receive stamps of the socket) or "user" (the loop's clock at the read).
    lag: how long a token that had arrived waited to be read, 99th percentile over the session; None = not measured.
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
    """Where a sample was interrupted, and went on in another request.

    tokens: completion tokens before it. text, reasoning: characters before it. exact: it went on over the very token
    ids that had been written; else over text that was turned into tokens anew, or where the server said other
    log-probabilities. difference: between those that it had said of the last `compared` tokens when it wrote them and
    those that it said before it went on, mean of the absolute values, nats; None = nothing was compared.
    """

    tokens: int
    text: int
    reasoning: int
    exact: bool
    difference: float | None = None
    compared: int = 0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One finished completion: a line of `samples.jsonl`. It stands alone and is never rewritten.

    text, reasoning: as sent; null stays None. finish_reason: as sent ("stop", "length", …).
    attempts: requests made for this key, this one included. request_id: the server's.
    salvaged_at: where it was interrupted and went on, in order; usage counts all its parts, timing the last request.
    odd_logprobs: log-probabilities were asked for, and none came with a text, or some of them are no numbers.
    The journal adds a checksum to each line (see `harness.runs.journal`).
    """

    benchmark: str
    question_id: str
    sample_index: int
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
    salvaged_at: tuple[Seam, ...] = ()
    odd_logprobs: Literal["none", "not numbers"] | None = None
    schema: int = SCHEMA_VERSION

    @property
    def key(self) -> Key:
        """Identity within the benchmark."""
        return Key(self.question_id, self.sample_index)

    @property
    def foreign(self) -> bool:
        """Another tool made it: under which settings, and when, is not known here."""
        return self.endpoint.startswith(FROM_FILE)

    @property
    def truncated(self) -> bool:
        """The budget ended the completion; finished all the same."""
        return self.finish_reason == "length"


class Grade(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The verdict on one sample: a line of `grades.jsonl`.

    extracted: the answer as found in the text, None when there is none. rule: the rule that decided
    ("numeric", "structural", …). grader: name and version of the grader. vote: canonical form of the
    extracted answer, by which maj@k counts; None does not vote. span: (start, end) of the answer in `text`,
    in characters. unextracted: a right answer stood in the text but was not given as the answer.
    near_miss: how a wrong answer misses a right one, where it does by little. anomalies: signs that the text or the
    reasoning looks wrong; no verdict depends on them.
    basis: short digest of the references and rules that it was graded by; another one means to grade again.
    """

    benchmark: str
    question_id: str
    sample_index: int
    verdict: Verdict
    extracted: str | None
    rule: str
    grader: str
    vote: str | None = None
    span: tuple[int, int] | None = None
    unextracted: bool = False
    near_miss: NearMiss | None = None
    truncated: bool = False
    completion_tokens: int | None = None
    anomalies: tuple[Anomaly, ...] = ()
    basis: str = ""

    @property
    def key(self) -> Key:
        """Identity within the benchmark."""
        return Key(self.question_id, self.sample_index)


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself without being asked for a token, by dotted name, as JSON values; unknown facts are
    left out.

    model: facts that change the distribution of its replies (weights, chat template, quantisation, parsers, sampling
    defaults): samples under two different ones do not mix. host: the rest (engine, version, context, machine).
    """

    model: dict[str, Any] = {}
    host: dict[str, Any] = {}

    def over(self, defaults: ServerFacts) -> ServerFacts:
        """These facts, and those of `defaults` that are not among them."""
        return ServerFacts(model={**defaults.model, **self.model}, host={**defaults.host, **self.host})


NOTHING_TOLD: Final = ServerFacts()
"""The facts of a server that was not asked, or did not answer."""
