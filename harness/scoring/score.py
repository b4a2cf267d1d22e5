"""The record of a benchmark's score in `scores.json`. All values are fractions, not percentages.

`benchmark_score` computes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import read_record, write_atomically
from harness.core.hidden_limit import EarlyCut, HiddenLimit
from harness.core.records import NearMiss
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import refuse_link
from harness.scoring.anomalies import Anomalies, Copies
from harness.scoring.client_metrics import EndpointScore, Speed, ToolUse, Workload
from harness.scoring.engine_metrics import EngineMetrics, Speculation
from harness.scoring.goodput import Goodput
from harness.scoring.judging import JudgeErrors, Judging
from harness.scoring.measures import BudgetScore, TokenStatistics
from harness.scoring.stats import Estimate
from harness.scoring.turn_scores import TurnScore

MAX_SCORES_BYTES = 16 * 1024 * 1024
"""Maximum size of scores.json in bytes."""

MAX_GRADER_CHARS = 160
"""Maximum length of a grader's name in a warning, in characters: a verifier with its checksum, then a judge."""


SCORES_SCHEMA = 2
"""Version of the format of `scores.json`; in the first version, an estimate and its intervals were separate fields."""


class Bounds(msgspec.Struct, frozen=True):
    """The range of possible accuracies, depending on the verdicts on the missing and undecided samples."""

    low: float
    """Accuracy if all missing and undecided samples were wrong, as a fraction."""
    high: float
    """Accuracy if all missing and undecided samples were correct, as a fraction."""


class GroupScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score on the questions that share a value of a metadata field."""

    accuracy: Estimate | None
    """Fraction correct; None if there are no samples."""
    n_questions: int
    """Number of questions with this value."""
    n_answered: int
    """Number of questions with at least one sample. The accuracy covers only these questions."""
    n_samples: int
    """Number of samples."""
    n_undecided: int
    """Number of samples that the grader could not decide."""


WarningKind = Literal[
    "journal", "continued", "answerers", "replies", "card", "regraded", "hidden limit", "left out", "stored since",
    "unequal", "breakdown", "cut", "missing", "verifier", "undecided", "near misses", "copies", "one sample", "graders",
    "file", "judge", "judge errors", "by hand", "audit", "points", "calls", "limits", "rate", "retries",
]  # fmt: skip
"""The topics of a score's warnings; `audit` and `breakdown` occur only in older scores."""


class ScoreWarning(msgspec.Struct, frozen=True):
    """A warning about a score."""

    kind: WarningKind
    """Warning topic."""
    text: str
    """Warning text."""


def warned(kind: WarningKind, sentences: Iterable[str | None]) -> list[ScoreWarning]:
    """A warning of this kind for each sentence that is not empty."""
    return [ScoreWarning(kind, sentence) for sentence in sentences if sentence]


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one benchmark. An `Estimate` is a mean over questions, with its two 95% intervals.

    Wide: it is the record of `scores.json`, and its fields are the columns of that file.
    """

    benchmark: str
    """Name of the benchmark."""
    accuracy: Estimate | None
    """Fraction correct, or fraction of points earned if a judge awards points; None if there are no samples."""
    sampling_error: float | None
    """Standard error if the same questions were sampled again; None if no question has at least two samples, or if many
    samples are duplicates. The intervals are not simple multiples of this standard error.
    """
    question_error: float | None
    """Standard error for new questions of the same kind, including sampling error; None if all questions are in one
    cluster.
    """
    n_questions: int
    """Number of questions covered by the score."""
    n_samples: int
    """Number of samples covered by the score."""
    n_missing: int
    """Number of planned samples that have no grade."""
    n_truncated: int | None
    """Number of samples truncated by max_tokens; None if another tool's file does not report truncation."""
    n_undecided: int
    """Number of samples that no rule could decide or whose grading ran out of time or memory. These samples count as
    wrong.
    """
    pass_at: dict[int, Estimate]
    """For each k, the probability that at least one of k samples is correct (pass@k)."""
    pass_hat: dict[int, Estimate] = {}
    """For each k, the probability that all k samples are correct (pass^k)."""
    maj_at: dict[int, Estimate]
    """For each k, the probability that the majority answer of k samples is correct (maj@k)."""
    mean_completion_tokens: float | None
    """Mean completion tokens per sample, over samples for which the server reported a count; None if there are no such
    samples.
    """
    bounds: Bounds
    """The accuracy if all missing and undecided samples were wrong, and the accuracy if all were correct."""
    partial: bool = False
    """Whether the score covers incomplete rounds, which biases the accuracy toward samples that finished first."""
    rounds: int | float
    """Number of samples per question covered by the score."""
    samples_per_question: int | float | None
    """Planned number of samples per question; None if no number was planned, or if an earlier run set a different
    number for each question.
    """
    n_clusters: int | None = None
    """Number of independent groups of questions (`cluster_of`); None if every question is a separate group."""
    sampling_error_bound: float | None = None
    """Upper bound on the sampling error, for scores whose `sampling_error` is None."""
    n_imputed: int = 0
    """Number of questions with only one sample, whose variance is estimated from the other questions."""
    n_correct: int = 0
    """Number of correct samples; if `right_from` is set, the number of samples with at least that many points."""
    n_no_answer: int = 0
    """Number of samples without an answer."""
    n_unextracted: int = 0
    """Number of samples whose text contains the correct answer but does not present it as the answer."""
    n_tokens_known: int = 0
    """Number of samples for which the server reported completion tokens."""
    undecided_share: float = 0.0
    """Fraction of samples that are undecided."""
    undecided_bounds: Bounds | None = None
    """Accuracy if all undecided samples were wrong (low; equal to the accuracy) or correct (high); None if no samples
    are undecided.
    """
    accuracy_finished: Estimate | None = None
    """Accuracy over the samples not truncated by max_tokens."""
    accuracy_from_reasoning: Estimate | None = None
    """Accuracy if the reasoning were searched for an answer whenever a reply has no final answer. It shows the effect
    of the token limit and is not a score; None if not requested.
    """
    n_overridden: int = 0
    """Number of verdicts corrected by a person."""
    accuracy_overridden: Estimate | None = None
    """Accuracy with the corrected verdicts, which no other field uses; None if no verdicts were corrected."""
    measures: dict[str, Estimate] = {}
    """Other metrics that the benchmark's authors report, by name (`harness.scoring.measures`)."""
    turns: dict[int, TurnScore] | msgspec.UnsetType = msgspec.UNSET
    """Score by turn, of the turns with a reference; absent without conversations."""
    points_of: float | msgspec.UnsetType = msgspec.UNSET
    """Maximum points for an answer (the highest maximum if questions differ); absent unless a judge awards points. The
    accuracy is then the mean of the points, each as a fraction of its question's maximum.
    """
    right_from: float | msgspec.UnsetType = msgspec.UNSET
    """Minimum points for a sample to count as correct in `n_correct`, `pass_at`, `pass_hat` and `maj_at`. If absent, a
    sample must earn full credit to count as correct, and `pass_at` is empty.
    """
    budgets: dict[int, BudgetScore] = {}
    """Accuracy if replies longer than a token limit counted as wrong, by limit; empty if any sample's token count is
    unknown.
    """
    tokens: TokenStatistics | None = None
    """Token counts of all samples, of the correct ones, and of the others."""
    speed: Speed | None = None
    """Latency and throughput; None if no reply was streamed."""
    goodput: Goodput | msgspec.UnsetType = msgspec.UNSET
    """Requests that met the limits of `limits`, and right answers among them; absent without limits, or if the server
    was never at full load.
    """
    workload: Workload | None = None
    """Server load, in requests and tokens."""
    tool: ToolUse | msgspec.UnsetType = msgspec.UNSET
    """How the samples used the tool; absent if no tool was offered."""
    engine: EngineMetrics | msgspec.UnsetType = msgspec.UNSET
    """The engine's metrics over the whole run; absent if no server has a metrics page."""
    speculation: Speculation | msgspec.UnsetType = msgspec.UNSET
    """Tokens per speculative decoding step, as reported in the replies; absent if not reported."""
    endpoints: dict[str, EndpointScore] = {}
    """Score by endpoint URL; empty if there is only one endpoint."""
    breakdowns: dict[str, dict[str, GroupScore]] = {}
    """Score by metadata field, then by the field's value."""
    anomalies: Anomalies | None = None
    """Samples whose text appears to be broken."""
    hidden_limit: HiddenLimit | None = None
    """A limit inferred from reply lengths but not reported by the server; None if no such limit is suspected."""
    early_cut: EarlyCut | None = None
    """A limit below max_tokens at which the server truncates replies and reports the truncation; None if there is none.
    """
    copies: Copies | None = None
    """Samples with the same text. If there are many, `sampling_error` is None and the sampling intervals are upper
    bounds.
    """
    judge_errors: JudgeErrors | None = None
    """Information about the judge's errors; None if no judge was used."""
    judging: Judging | None = None
    """The judge used for this score, even if it decided no samples; None if no judge was used."""
    graders: tuple[str, ...] = ()
    """Names and versions of the graders, sorted."""
    verifier_errors: tuple[str, ...] = ()
    """Cases in which the benchmark's own verifier returned no verdict, one sentence each. The affected samples either
    are undecided or were graded by a judge.
    """
    near_misses: dict[NearMiss, int] = {}
    """Number of wrong answers by kind of near miss."""
    warnings: tuple[ScoreWarning, ...] = ()
    """Warnings to show with the score."""
    schema: int = SCORES_SCHEMA
    """Version of this format."""

    @classmethod
    def load(cls, folder: BenchmarkFolder) -> Score | None:
        """The benchmark's stored score; None before `harness score`.

        Raises `StoreError` if it is damaged, or if its format is from another version of the harness.
        """
        score = read_record(folder.scores, Score, MAX_SCORES_BYTES, what="a scores file", remedy=_REMEDY)
        if score is not None and score.schema != SCORES_SCHEMA:
            raise StoreError(f"{folder.scores} has schema {score.schema}, expected {SCORES_SCHEMA}. {_REMEDY}")
        return score

    @property
    def sentences(self) -> list[str]:
        """The texts of the warnings."""
        return [warning.text for warning in self.warnings]

    def save(self, folder: BenchmarkFolder) -> None:
        """Store the score as its benchmark's `scores.json`, replacing any earlier score. Raises `StoreError`."""
        # In someone else's folder, a link could redirect the write elsewhere.
        refuse_link(folder.scores)
        write_atomically(folder.scores, codec.pretty(self))


_REMEDY = "Run `harness score` again."
"""The end of an error message about a scores file."""


class RunScore(Score, frozen=True, kw_only=True):
    """The score of one benchmark, as in `scores.json`."""

    run: str
    """Name of the run's folder or file."""
