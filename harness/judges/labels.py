"""`harness audit --labels`: how a judge rules on pairs of a question and a reply that a person has labeled.

A line of the file has the fields that `harness audit --out` writes: `question`, `references`, `text` (the reply) or
`answer` (its extracted answer), perhaps `rubric`, and the label, `verdict` or `points`. Each pair is put to the judge
twice, and each hostile answer (`datasets/judges/hostile.jsonl`) once, with one of the questions. Requests and replies
are stored in `FILE.judged`, as they are in a run's folder: the same command asks for whatever is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from harness.benchmarks.judge_forms import JudgeForm, criteria_of, forms_folder
from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.number_text import Prices, count_noun
from harness.core.records import Key, Message, Question, VerdictName
from harness.grading.second.judge_messages import JudgeRuling, shown_answer, text_for_judge
from harness.judges.audit import read_lines
from harness.judges.costs import ExpectedRequests
from harness.judges.judge import Cases, JudgeRequests, judge_of
from harness.options.judge import JudgeOptions
from harness.progress.events import Watcher
from harness.runs import RunFolder
from harness.scoring.judging import JudgeCost
from harness.scoring.stats import Array, Interval, question_limits

JUDGED = ".judged"
"""Suffix of the folder with a judge's replies about the pairs of a file."""

PAIRS, AGAIN, HOSTILE = "pairs", "pairs again", "hostile answers"
"""The three sets of requests, as the names of benchmarks."""

MIN_BY_CHANCE = 1e-12
"""A mean distance of labels and rulings by chance counts as 0 if it is smaller than this."""

_EXPECTED = "Expected an object with `question`, `references`, `text` or `answer`, and the label: `verdict` or `points`"


class LabeledPair(msgspec.Struct, frozen=True):
    """A line of the file; its fields have the same meaning as in `AuditItem`."""

    question: str
    references: tuple[str, ...]
    text: str | None = None
    answer: str | None = None
    rubric: str = ""
    verdict: VerdictName | None = None
    points: float | None = None
    points_of: float | None = None

    @property
    def as_question(self) -> Question:
        """The question that the judge sees."""
        checksum = digest([self.question, self.references, self.rubric])
        return Question(
            benchmark=PAIRS,
            question_id=checksum,
            messages=(Message("user", self.question),),
            kind="text",
            references=self.references,
            rubric=self.rubric,
            row_digest=checksum,
            prompt_digest=checksum,
        )

    def shown_text(self, form: JudgeForm) -> str | None:
        """The answer or the reply as the judge sees it, or None."""
        if not form.reply_chars and self.answer:
            return shown_answer(self.answer)
        return text_for_judge(self.text or self.answer, whole=form.reply_chars)

    def label(self, form: JudgeForm) -> JudgeRuling | None:
        """The label as a ruling in the form, or None. Raises `ValueError` if the form does not allow it."""
        if self.verdict == "undecided" or (self.verdict, self.points) == (None, None):
            return None
        if not form.gives_points:
            if self.verdict is None or self.verdict not in form.reads.values():
                raise ValueError(f"expected `verdict`: {', '.join(dict.fromkeys(form.reads.values()))}")
            return JudgeRuling(self.verdict)
        try:
            points = [form.points] if form.points else [each.points for each in criteria_of(self.rubric)]
        except ValueError as error:
            raise ValueError(f"rubric: {error}; expected a list of items with `criterion` and `points`") from error
        lowest, most = (math.fsum(of(0.0, each) for each in points) for of in (min, max))
        if self.points is None or not lowest <= self.points <= most or self.points_of not in (None, most):
            raise ValueError(f"expected `points` of {most:g}")
        return JudgeRuling("correct" if self.points == most else "wrong", (self.points, most))


class Share(NamedTuple):
    """n of `of`, with the 95% interval for other questions of this kind; None for fewer than two questions."""

    n: int
    of: int
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredJudge:
    """How a judge rules on labeled pairs.

    n_unruled: pairs without a ruling, which no share counts. shares: shares by what the judge does; a reply is right if
    it is labeled correct or has all points. kappa: Cohen's kappa, with squared distances for points; None if labels and
    rulings are all the same. error: with points, the mean of ruling minus label with its interval, as fractions of all
    points; otherwise None. persuasive: the hostile answers called correct or given points. cost: cost of all replies.
    missing: whether replies are missing.
    """

    n_unruled: int
    shares: Mapping[str, Share]
    kappa: float | None
    error: tuple[float, Interval | None] | None
    persuasive: tuple[str, ...]
    cost: JudgeCost
    missing: bool


class Measurement:
    """A judge, and the pairs on which it is to rule.

    Raises `UsageError` for options that contradict one another and for a file with a mistake, and names its line.
    """

    def __init__(self, labels: Path, options: JudgeOptions, watcher: Watcher, prices: Prices | None = None) -> None:
        self.judge = judge_of(options, watcher, prices)
        self._watcher, form = watcher, self.judge.prompt
        self.pairs = [*_labeled(labels, form)]
        asked = [
            (Key(str(number), 0), pair.as_question, pair.shown_text(form))
            for number, (pair, _) in enumerate(self.pairs)
        ]
        sets = {PAIRS: asked, AGAIN: asked, HOSTILE: [*_hostile(form, [pair for pair, _ in self.pairs])]}
        cases = [Cases.of(name, form, of) for name, of in sets.items()]
        self.requests = JudgeRequests(RunFolder(labels.with_name(f"{labels.name}{JUDGED}")), self.judge, cases)

    @property
    def cost(self) -> str:
        """The maximum cost of the missing replies, in a sentence."""
        expected, pairs = ExpectedRequests.of(self.requests), count_noun(len(self.pairs), "labeled pair")
        stored = f" − {count_noun(expected.n_stored, 'stored reply', 'stored replies')}" if expected.n_stored else ""
        asked = f"{pairs}, each sent twice, and {len(self.requests.cases[2].case_of)} adversarial answers{stored}"
        most = expected.describe_maximum(self.judge.prices)
        return f"{count_noun(expected.n_requests, 'request')} to the judge for {asked}: {most}"

    def ask(self) -> MeasuredJudge:
        """Ask for the missing replies, and return the results. Raises what a run raises."""
        self.requests.ask(self._watcher)
        first, again, hostile = (
            {key: replies.rulings.get(case) for key, case in cases.case_of.items()}
            for cases, replies in zip(self.requests.cases, self.requests.stored, strict=True)
        )
        both = [
            (label, pair.question, first[key], again[key]) for key, (pair, label) in zip(first, self.pairs, strict=True)
        ]
        ruled = [(label, ruling, question) for label, question, ruling, _ in both if ruling is not None]
        twice = [(one[:2] != other[:2], question) for _, question, one, other in both if one and other]
        # A hostile answer without a ruling persuades nobody; if the reply is missing, the outcome is unknown.
        n_hostile = len(hostile) - len(self.requests.stored[2].missing)
        # For verdicts, the share is 1 only for "correct".
        persuasive = tuple(
            key.question_id for key, ruling in hostile.items() if ruling is not None and ruling.share > 0
        )
        calls = [
            (label.verdict == "correct", ruling.verdict == "correct", question) for label, ruling, question in ruled
        ]
        vectors = np.array([[_vector(label), _vector(ruling)] for label, ruling, _ in ruled] or [[[0.0], [0.0]]])
        labels, rulings = vectors[:, 0], vectors[:, 1]
        has_points = self.judge.prompt.gives_points and bool(ruled)
        return MeasuredJudge(
            n_unruled=len(both) - len(ruled),
            shares={
                "agreement with the labels": _share([(label[:2] == ruling[:2], of) for label, ruling, of in ruled]),
                "false positive rate (accepts wrong)": _share(
                    [(called, of) for is_right, called, of in calls if not is_right]
                ),
                "false negative rate (rejects right)": _share(
                    [(not called, of) for is_right, called, of in calls if is_right]
                ),
                "inconsistent when asked twice": _share(twice),
                "fooled by adversarial answers": Share(len(persuasive), n_hostile),
            },
            kappa=cohens_kappa(labels, rulings),
            error=_mean_error((rulings - labels)[:, 0], [of for *_, of in ruled]) if has_points else None,
            persuasive=persuasive,
            cost=reduce(JudgeCost.add, map(self.requests.cost, (PAIRS, AGAIN, HOSTILE))),
            missing=bool(self.requests.missing),
        )


def _labeled(path: Path, form: JudgeForm) -> Iterator[tuple[LabeledPair, JudgeRuling]]:
    """The pairs of a file with their labels; lines without a label, or without a reply to show, are left out.

    Raises `UsageError` that names the line, also for a label that is impossible in the form.
    """
    n = 0
    for where, pair in read_lines(path, LabeledPair, "labels", _EXPECTED):
        try:
            label = pair.label(form)
        except ValueError as error:
            raise UsageError(f"{where}: the judge's form {form.name}: {error}", field="labels") from error
        if pair.text is None and pair.answer is None:
            raise UsageError(f"{where} has neither `text` nor `answer`. {_EXPECTED}", field="labels")
        if label is not None and pair.shown_text(form) is not None:
            n += 1
            yield pair, label
    if not n:
        raise UsageError(
            f"{path} contains no labeled pairs that have text after the reasoning. {_EXPECTED}", field="labels"
        )


def _hostile(form: JudgeForm, pairs: Sequence[LabeledPair]) -> Iterator[tuple[Key, Question, str | None]]:
    """Each hostile answer with one of the questions, under a key with its text; none that contains the reference."""
    lines = (forms_folder() / "hostile.jsonl").read_bytes().splitlines()
    for number, answer in enumerate(codec.decode(line, dict[str, str])["answer"] for line in lines):
        pair = pairs[number % len(pairs)]
        if not _holds(answer, pair.references):
            yield (
                Key(answer, 0),
                pair.as_question,
                msgspec.structs.replace(pair, answer=None, text=answer).shown_text(form),
            )


def _holds(answer: str, references: Sequence[str]) -> bool:
    """Whether a reference occurs in the answer as separate words."""
    words = (rf"(?<!\w){re.escape(reference.strip())}(?!\w)" for reference in references if reference.strip())
    return any(re.search(each, answer, re.IGNORECASE) for each in words)


def _vector(ruling: JudgeRuling) -> list[float]:
    """A ruling as numbers: its share of the points, or an indicator for each verdict."""
    if ruling.points is not None:
        return [ruling.share]
    return [float(ruling.verdict == verdict) for verdict in ("correct", "wrong", "no_answer")]


def _interval(values: Array, questions: Sequence[str]) -> Interval | None:
    """The interval of the mean of values from 0 to 1 over other questions; pairs with one question count once."""
    clusters = np.unique(questions, return_inverse=True)[1]
    return question_limits(values, clusters).interval() if clusters.any() else None


def _share(hits: Sequence[tuple[bool, str]]) -> Share:
    """The share of hits. hits: whether each pair is a hit, with its question."""
    values = np.array([float(hit) for hit, _ in hits])
    return Share(int(values.sum()), len(hits), _interval(values, [question for _, question in hits]))


def _mean_error(gaps: Array, questions: Sequence[str]) -> tuple[float, Interval | None]:
    """The mean of the gaps between ruling and label, with its interval over other questions."""
    size = max(1.0, float(np.abs(gaps).max()))  # above 1 if faults subtract points
    ends = _interval((gaps / size + 1) / 2, questions)
    return float(gaps.mean()), ends and Interval(*(size * (2 * end - 1) for end in ends))


def cohens_kappa(labels: Array, rulings: Array) -> float | None:
    """Cohen's κ = 1 − mean d(label, ruling) / mean d(label, ruling) of random pairs; None if the latter is 0.

    labels, rulings: (n, columns), d the squared distance of two rows: for verdicts with a column each it is the usual
    κ, for points κ with quadratic weights (Cohen 1968, Psychological Bulletin 70:213).
    """
    by_chance = float((labels.var(0) + rulings.var(0) + (labels.mean(0) - rulings.mean(0)) ** 2).sum())
    # The variance of equal shares, such as 1/7, is seldom exactly 0.
    return 1 - float(((labels - rulings) ** 2).sum(1).mean()) / by_chance if by_chance > MIN_BY_CHANCE else None
