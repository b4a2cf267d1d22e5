"""Questions and samples of a run as rows of plain values, for pages."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from harness.core.records import Grade, Key, NearMiss, Question, VerdictName
from harness.grading.elsewhere import shown_references
from harness.runs.manifest import OUTPUTS
from harness.scoring.stats import Interval, wilson
from harness.viewer.library import OpenBenchmark

EXCERPT_CHARS = 1000
"""Characters of a question that a list holds: a line on the screen, all of them on paper."""

MAX_TITLE_CHARS = 200
"""Longest title of a question."""

MAX_VOTES = 50
"""Largest number of different answers on a question's page, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSample:
    """One sample in a list.

    verdict: the verdict that counts; None: not graded. graded: the grader's verdict, if a person overrode it. stored:
    whether its text is in the journal. truncated: cut by max_tokens. near_miss: in which way its answer narrowly misses
    a right one. anomalies: signs that its text is broken. disputed_by: second graders that contradict the grader.
    reply_bytes: length of its text and reasoning in UTF-8; None if it is not stored, or not measured. labels: words
    that a person put on it.
    """

    index: int
    verdict: VerdictName | None
    graded: VerdictName | None
    extracted: str | None
    vote: str | None
    rule: str | None
    truncated: bool
    near_miss: NearMiss | None
    anomalies: tuple[str, ...]
    disputed_by: tuple[str, ...]
    tokens: int | None
    reply_bytes: int | None
    stored: bool
    labels: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """An answer and the samples that gave it. answer: as the first of these samples wrote it. n_correct: number of them
    that are correct. verdict: theirs; None if they differ, as by hand, by a judge, or if a sentence does not state it.
    """

    answer: str
    n: int
    n_correct: int
    verdict: Literal["correct", "wrong", "undecided"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """One question in a list.

    number: its number in the benchmark, from 1. title: as `title` gives it. verdicts: a sign for each sample in the
    order of indices (see `SIGNS`). fraction: correct of graded samples; interval: its 95 % interval; None before any
    grading. near_misses: kind → number of samples. n_anomalous: samples whose text looks broken. anomalies: sign of a
    broken text → number of samples. n_disputed: samples that a second grader judges otherwise. labels: label → number
    of samples that a person gave it. mean_tokens: over samples whose server stated them. majority: the most frequent
    answer; None if no sample gave one, or another answer is as frequent. majority_verdict: that of its samples; None if
    they differ, or there is no majority.
    """

    number: int
    id: str
    title: str
    excerpt: str
    references: tuple[str, ...]
    metadata: dict[str, Any]
    verdicts: str
    n_graded: int
    n_correct: int
    n_truncated: int
    near_misses: dict[NearMiss, int]
    n_anomalous: int
    anomalies: dict[str, int]
    n_disputed: int
    n_overridden: int
    fraction: float | None
    interval: Interval | None
    mean_tokens: float | None
    majority: str | None
    majority_verdict: Literal["correct", "wrong", "undecided"] | None
    rules: tuple[str, ...]
    labels: dict[str, int]


SIGNS: dict[VerdictName | None, str] = {"correct": "c", "wrong": "w", "no_answer": "n", "undecided": "u", None: "."}
"""VerdictName → the character that stands for it in a question's row."""


def text_of(question: Question) -> str:
    """Return the text of the question; in a conversation, each message after its role."""
    if not question.messages:
        return question.prompt
    if len(question.messages) == 1:
        return question.messages[0].content
    return "\n\n".join(f"[{message.role}] {message.content}" for message in question.messages)


def shown_text(benchmark: OpenBenchmark, question: Question) -> str:
    """The question as a person reads it beside a reply: as it was sent, or, where a file's replies are scored by a
    card's questions, without the card's instruction, which nobody saw.
    """
    read = benchmark.record.settings.get(OUTPUTS, {}).get("read", {})
    return bare_text(benchmark, question) if "benchmark" in read else text_of(question)


def sample_rows(benchmark: OpenBenchmark, question_id: str) -> list[ListedSample]:
    """Return the question's samples by index, graded or not."""
    return [sample_row(benchmark, Key(question_id, index)) for index in benchmark.indices(question_id)]


def sample_row(benchmark: OpenBenchmark, key: Key) -> ListedSample:
    """Return the sample's row, graded or not."""
    grade, location = benchmark.grade(key), benchmark.offsets.of(key.question_id).get(key.sample_index)
    override = benchmark.overrides.get(key)
    truncated, tokens = False, None
    if grade is not None:
        truncated, tokens = bool(grade.truncated), grade.completion_tokens
    elif location is not None:
        truncated, tokens = location.truncated, location.tokens
    return ListedSample(
        index=key.sample_index,
        verdict=benchmark.verdict(key),
        graded=grade.verdict if grade is not None and override is not None else None,
        extracted=None if grade is None else grade.extracted,
        vote=None if grade is None else grade.vote,
        rule=None if grade is None else grade.rule,
        truncated=truncated,
        near_miss=None if grade is None else near_miss_of(grade),
        anomalies=() if grade is None else grade.anomalies,
        disputed_by=benchmark.disputed_by(key),
        tokens=tokens,
        reply_bytes=None,
        stored=location is not None,
        labels=benchmark.labels.get(key, ()),
    )


def near_miss_of(grade: Grade) -> NearMiss | None:
    """Return the kind of near miss of a wrong grade; grades of earlier versions know only the kind "another box"."""
    if grade.verdict != "wrong":
        return None
    return grade.near_miss or ("another box" if grade.unextracted else None)


_ANSWERED = frozenset(("undecided", "wrong", "correct"))
"""The verdicts of samples with an answer."""


def votes(rows: Sequence[ListedSample]) -> list[Vote]:
    """Return the answers, ordered by how many samples gave them."""
    voters = defaultdict[str, list[ListedSample]](list)
    for row in rows:
        if row.vote is not None and row.verdict in _ANSWERED:
            voters[row.vote].append(row)
    most = sorted(voters.items(), key=lambda item: -len(item[1]))[:MAX_VOTES]
    return [_vote(vote, samples) for vote, samples in most]


def _vote(vote: str, samples: Sequence[ListedSample]) -> Vote:
    """Return the vote of the samples that gave one answer. vote: its form in `grades.jsonl`."""
    verdicts = {sample.verdict for sample in samples}
    return Vote(
        answer=next((sample.extracted for sample in samples if sample.extracted is not None), vote),
        n=len(samples),
        n_correct=sum(sample.verdict == "correct" for sample in samples),
        verdict=verdicts.pop() if len(verdicts) == 1 else None,  # type: ignore[arg-type]  # one of `_ANSWERED`
    )


def _majority(counted: Sequence[Vote]) -> Vote | None:
    """The most frequent answer; None without any, and where another answer is as frequent. counted: as from `votes`."""
    tied = len(counted) > 1 and counted[0].n == counted[1].n
    return counted[0] if counted and not tied else None


def question_row(benchmark: OpenBenchmark, number: int, question: Question) -> QuestionRow:
    """Return the question's row in a list. number: the question's number in the benchmark, from 1."""
    rows = sample_rows(benchmark, question.question_id)
    graded = [row for row in rows if row.verdict is not None]
    correct = sum(row.verdict == "correct" for row in graded)
    tokens = [row.tokens for row in rows if row.tokens is not None]
    majority = _majority(votes(rows))
    return QuestionRow(
        number=number,
        id=question.question_id,
        title=title(benchmark, question),
        excerpt=excerpt(benchmark, question),
        references=tuple(shown_references(question)),
        metadata=question.metadata,
        verdicts="".join(SIGNS[row.verdict] for row in rows),
        n_graded=len(graded),
        n_correct=correct,
        n_truncated=sum(row.truncated for row in rows),
        near_misses=dict(Counter(row.near_miss for row in rows if row.near_miss is not None)),
        n_anomalous=sum(bool(row.anomalies) for row in rows),
        anomalies=dict(Counter(sign for row in rows for sign in row.anomalies)),
        n_disputed=sum(bool(row.disputed_by) for row in rows),
        n_overridden=sum(row.graded is not None for row in rows),
        fraction=correct / len(graded) if graded else None,
        interval=interval(correct, len(graded)),
        mean_tokens=math.fsum(tokens) / len(tokens) if tokens else None,
        majority=None if majority is None else majority.answer,
        majority_verdict=None if majority is None else majority.verdict,
        rules=tuple(sorted({row.rule for row in rows if row.rule is not None})),
        labels=dict(Counter(label for row in rows for label in row.labels)),
    )


def bare_text(benchmark: OpenBenchmark, question: Question) -> str:
    """The question as its data have it, without the instruction that the run added."""
    from harness.benchmarks import prompts  # few commands that list samples show a question

    return prompts.bare_text(question, benchmark.prompt)


def title(benchmark: OpenBenchmark, question: Question) -> str:
    """The beginning of the question's text, which stands for an id that is only a checksum; empty for any other id."""
    return "" if question.has_own_id else bare_text(benchmark, question)[:MAX_TITLE_CHARS]


def excerpt(benchmark: OpenBenchmark, question: Question) -> str:
    """The beginning of the question without its instruction, at most `EXCERPT_CHARS` characters."""
    text = bare_text(benchmark, question)
    return text if len(text) <= EXCERPT_CHARS else text[:EXCERPT_CHARS] + "…"


def question_rows(benchmark: OpenBenchmark) -> list[QuestionRow]:
    """Return all questions in the order of the run."""
    return [
        question_row(benchmark, number, question) for number, question in enumerate(benchmark.questions.values(), 1)
    ]


def interval(correct: int, n: int) -> Interval | None:
    """Wilson's 95 % interval of the chance that a sample of this question is correct; None without a sample."""
    return wilson(np.array(correct / n), np.array(n)).interval() if n else None
