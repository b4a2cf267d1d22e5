"""Questions and samples of a run as rows of plain values, for the terminal (`sample_text`) and for pages (`pages`)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.images import ImageFacts, ImageFolder
from harness.core.records import Grade, Key, Question, Sample, VerdictName
from harness.core.sanitize import visible
from harness.grading.external_graders import shown_references
from harness.runs.manifest import OUTPUTS
from harness.scoring.run_reader import OpenBenchmark
from harness.scoring.stats import wilson
from harness.tools.table import shown
from reasoning_answers.host import NEAR_MISSES

EXCERPT_CHARS = 1000
"""Number of characters of a question in a list, of which the screen shows one line and a printout shows all."""

MAX_TITLE_CHARS = 200
"""Longest title of a question."""

MAX_FIELD_CHARS = 2000
"""Longest metadata value or reference shown; longer ones are cut."""

MAX_VOTES = 50
"""Largest number of distinct answers on a question's page, which lists the most frequent first."""

WORDS: dict[VerdictName | None, str] = {
    "correct": "correct",
    "wrong": "wrong",
    "no_answer": "no answer",
    "undecided": "undecided",
    None: "not graded",
}
"""Verdict → its words in lists."""

SIGNS: dict[VerdictName | None, str] = {"correct": "+", "wrong": "-", "no_answer": "o", "undecided": "?", None: "."}
"""Verdict → its sign in a question's row."""

Mark = Literal["hand", "cut", "near", "odd", "disputed"]
"""Notable properties of a sample: judged manually, truncated, a near miss, corrupted text, or graders that disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSample:
    """One sample in a list.

    verdict: the verdict that counts; None: not graded. anomalies: signs that its text is corrupted. stored: whether its
    text is in the journal. marks: mark → text on what is notable.
    """

    index: int
    verdict: VerdictName | None
    extracted: str | None
    vote: str | None
    rule: str | None
    anomalies: tuple[str, ...]
    tokens: int | None
    stored: bool
    marks: Mapping[Mark, str]

    @property
    def text(self) -> str:
        """The verdict and the marks, as text."""
        return ", ".join((WORDS[self.verdict], *self.marks.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """An answer and the samples that gave it. answer: as written in the first of these samples. n_correct: number of
    these samples that are correct. verdict: the samples' verdict; None if their verdicts differ, which a person, a
    judge, or the sentence around the answer may cause.
    """

    answer: str
    n: int
    n_correct: int
    verdict: VerdictName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """One question in a list.

    number: its number in the benchmark, from 1. title: the result of `title`. verdicts: a sign for each sample, in
    index order (see `SIGNS`). percent, interval: text with the percentage of graded samples that are correct, and with
    its 95% interval; empty before any grading. marks: mark → number of samples. majority: the most frequent answer;
    None if no sample gave one, or if there is a tie. facets: name → values to filter a list by, such as metadata or
    rules.
    """

    number: int
    id: str
    title: str
    excerpt: str
    references: tuple[str, ...]
    verdicts: str
    n_graded: int
    n_correct: int
    percent: str
    interval: str
    mean_tokens: float | None
    majority: Vote | None
    marks: Mapping[Mark, int]
    facets: Mapping[str, Sequence[str]]


def text_of(question: Question) -> str:
    """Return the text of the question; in a conversation, each message after its role."""
    if not question.messages:
        return question.prompt
    if len(question.messages) == 1:
        return question.messages[0].content
    return "\n\n".join(f"[{message.role}] {message.shown}" for message in question.messages)


def images_of(benchmark: OpenBenchmark, question: Question) -> Iterator[ImageFacts | str]:
    """Yield the facts of each image in the question, in order; for a lost image, a sentence instead."""
    folder = ImageFolder(benchmark.folder.images)
    for name in dict.fromkeys(image.sha256 for image in question.images):
        try:
            yield folder.facts(name)
        except StoreError as error:
            yield str(error)


def shown_text(benchmark: OpenBenchmark, question: Question) -> str:
    """The question to show with a reply: as it was sent, or, if a file's replies are scored with a card's questions,
    without the card's instruction, which the model never received.
    """
    read = benchmark.record.settings.get(OUTPUTS, {}).get("read", {})
    return bare_text(benchmark, question) if "benchmark" in read else text_of(question)


def sample_rows(benchmark: OpenBenchmark, question_id: str) -> list[ListedSample]:
    """Return the question's samples by index, graded or not."""
    return [sample_row(benchmark, Key(question_id, index)) for index in benchmark.indices(question_id)]


def sample_row(benchmark: OpenBenchmark, key: Key) -> ListedSample:
    """Return the sample's row, graded or not."""
    grade, location = benchmark.grade(key), benchmark.offsets.locations(key.question_id).get(key.sample_index)
    tokens, cut = None, False
    if grade is not None:
        tokens, cut = grade.completion_tokens, bool(grade.truncated)
    elif location is not None:
        tokens, cut = location.tokens, location.truncated
    return ListedSample(
        index=key.sample_index,
        verdict=benchmark.verdict(key),
        extracted=grade.extracted if grade else None,
        vote=grade.vote if grade else None,
        rule=grade.rule if grade else None,
        anomalies=grade.anomalies if grade else (),
        tokens=tokens,
        stored=location is not None,
        marks=_marks(benchmark, key, grade, cut=cut),
    )


def _marks(benchmark: OpenBenchmark, key: Key, grade: Grade | None, *, cut: bool) -> dict[Mark, str]:
    """Return mark → text on what is notable about a sample. cut: whether a limit truncated the sample."""
    marks: dict[Mark, str] = {}
    if grade is not None and key in benchmark.overrides:
        marks["hand"] = f"by hand; the grader said {WORDS[grade.verdict]}"
    if cut:
        marks["cut"] = "cut short"
    if grade is None:
        return marks
    # Grades from earlier versions record only one kind of near miss.
    near = grade.near_miss or ("another box" if grade.unextracted else None)
    if grade.verdict == "wrong" and near is not None:
        marks["near"] = NEAR_MISSES.get(near, near)
    if grade.anomalies:
        marks["odd"] = f"looks wrong: {', '.join(grade.anomalies)}"
    others = benchmark.disputing_graders(key)
    if others:
        marks["disputed"] = f"{', '.join(visible(name, 80) for name in others)} disagrees"
    return marks


def facts_of(sample: Sample) -> list[tuple[str, str]]:
    """Return (name, value as text) pairs on a sample's request. Facts that another tool's file does not contain are
    omitted.
    """
    usage, timing = sample.usage, sample.timing
    first, last, tokens = timing.first_token, timing.last_token, usage.completion_tokens
    counted, speed = "?" if tokens is None else f"{tokens:,}", None
    if usage.reasoning_tokens:
        counted += f", {usage.reasoning_tokens:,} of them reasoning"
    visible_only = " (visible tokens only)" if sample.hides_reasoning else ""
    if tokens and last and first and last > first and not visible_only:
        speed = f"{(tokens - 1) / (last - first):.1f}"
    facts = {
        "finish reason": None if sample.foreign and sample.finish_reason == "unknown" else sample.finish_reason,
        "tokens": None if sample.foreign and tokens is None else counted,
        "prompt tokens": usage.prompt_tokens,
        # A sample from a file has no time and stores 0.
        "time": f"{timing.total:.1f} s" if timing.started > 0 else None,
        "first token": None if first is None else f"{first:.2f} s{visible_only}",
        "tokens a second": speed,
        "seed": sample.seed,
        "attempts": sample.attempts,
        "endpoint": sample.endpoint,
        "model": sample.server_model,
        "provider": sample.provider or None,
        "fingerprint": sample.fingerprint,
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def steps_of(sample: Sample, question: Question, grade: Grade | None) -> Iterator[tuple[str, str]]:
    """Yield (text, description) for each part of the earlier steps of a sample with a tool, for each call, and for each
    later turn of a conversation, with the verdict and the time of the reply before it.
    """
    verdicts = {turn.turn: turn for turn in (grade.turns or () if grade is not None else ())}
    turn = 1
    for number, step in enumerate(sample.steps or (), 1):
        if step.turn and step.turn > turn:
            turn = step.turn
            for message in (question.turns or ())[turn - 1].messages:
                yield message.content, f"[turn {turn}: {message.role}]"
        for text, what in ((step.reasoning, "reasoning"), (step.text, "text")):
            if text:
                yield text, f"[step {number}: {what}]"
        for call in step.calls:
            yield shown(call), f"[step {number}: call of {visible(call.name, 60)}]"
            yield call.output, f"[step {number}: {call.end}, {call.seconds:.1f} s]"
        if step.turn and not step.calls:
            found = verdicts.get(step.turn)
            seconds = f", {step.timing.total:.1f} s" if step.timing else ""
            answer = "" if found is None else found.extracted or ""
            yield answer, f"[turn {step.turn}: {'not graded' if found is None else WORDS[found.verdict]}{seconds}]"
    for sent in sample.calls or ():
        yield sent.arguments, f"[call of {visible(sent.name, 60)}]"


def votes(rows: Sequence[ListedSample]) -> list[Vote]:
    """Return the answers, ordered by the number of samples that gave them."""
    voters = defaultdict[str, list[ListedSample]](list)
    for row in rows:
        if row.vote is not None and row.verdict in ("undecided", "wrong", "correct"):
            voters[row.vote].append(row)
    return [
        Vote(
            answer=next((row.extracted for row in of_vote if row.extracted is not None), vote),
            n=len(of_vote),
            n_correct=sum(row.verdict == "correct" for row in of_vote),
            verdict=of_vote[0].verdict if len({row.verdict for row in of_vote}) == 1 else None,
        )
        for vote, of_vote in sorted(voters.items(), key=lambda item: -len(item[1]))[:MAX_VOTES]
    ]


def question_rows(benchmark: OpenBenchmark) -> list[QuestionRow]:
    """Return all questions in the order of the run."""
    return [
        _question_row(benchmark, number, question) for number, question in enumerate(benchmark.questions.values(), 1)
    ]


def _question_row(benchmark: OpenBenchmark, number: int, question: Question) -> QuestionRow:
    """Return the question's list row. number: the question's number in the benchmark, from 1."""
    rows = sample_rows(benchmark, question.question_id)
    n_graded, n_correct = sum(row.verdict is not None for row in rows), sum(row.verdict == "correct" for row in rows)
    likely = wilson(np.array(n_correct / n_graded), np.array(n_graded)).interval() if n_graded else None
    tokens = [row.tokens for row in rows if row.tokens is not None]
    counted = votes(rows)
    tied = len(counted) > 1 and counted[0].n == counted[1].n
    of_samples = {
        "near miss": {row.marks["near"] for row in rows if "near" in row.marks},
        "looks wrong": {sign for row in rows for sign in row.anomalies},
        "decided by": {row.rule for row in rows if row.rule is not None},
    }
    return QuestionRow(
        number=number,
        id=question.question_id,
        title=title(benchmark, question),
        excerpt=excerpt(benchmark, question),
        references=tuple(shown_references(question)),
        verdicts="".join(SIGNS[row.verdict] for row in rows),
        n_graded=n_graded,
        n_correct=n_correct,
        percent=f"{100 * n_correct / n_graded:.0f}" if n_graded else "",
        interval="" if likely is None else f"{100 * likely.low:.0f}–{100 * likely.high:.0f}",
        mean_tokens=math.fsum(tokens) / len(tokens) if tokens else None,
        majority=counted[0] if counted and not tied else None,
        marks=Counter(mark for row in rows for mark in row.marks),
        facets={name: [value] for name, value in fields(question.metadata).items()}
        | {name: sorted(values) for name, values in of_samples.items() if values},
    )


def fields(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as short texts: strings unchanged, everything else as JSON."""
    return {
        field(name): field(value if isinstance(value, str) else codec.encode(value).decode())
        for name, value in metadata.items()
    }


def field(text: str, most: int = MAX_FIELD_CHARS) -> str:
    """`text`, cut to this number of characters."""
    return text if len(text) <= most else text[:most] + "…"


def bare_text(benchmark: OpenBenchmark, question: Question) -> str:
    """The question as in its data, without the instruction that the run added."""
    from harness.benchmarks import prompts  # few commands that list samples show questions

    return prompts.bare_text(question, benchmark.prompt)


def title(benchmark: OpenBenchmark, question: Question) -> str:
    """The beginning of the question's text if its id is only a checksum; empty for any other id."""
    return "" if question.has_own_id else bare_text(benchmark, question)[:MAX_TITLE_CHARS]


def excerpt(benchmark: OpenBenchmark, question: Question) -> str:
    """The first `EXCERPT_CHARS` characters of the question without its instruction."""
    return field(bare_text(benchmark, question), EXCERPT_CHARS)
