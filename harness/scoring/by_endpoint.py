"""A test whether one of several endpoints is broken: its samples beside the others', question by question.

The scheduler chooses an endpoint by how long the samples of a question took so far, and short samples tend to be right.
So the endpoint of a sample depends on its question and on the outcomes of earlier samples, never on its own outcome.
The test relies on just that: it compares each sample with the mean of the samples of its question that started *later*,
whose outcomes no assignment had seen either. Take the samples of question q in the order of their start; y_j = 1 if
sample j is correct, r_j samples start after it, e_j = 1 if it went to the endpoint, and c_j is the endpoint's share of
all samples of the benchmark that started before. Then

    z = Σ w_j (y_j − mean of the r_j later y) / √ Σ w_j² (1 + 1/r_j) s_q²,
    w_j = (e_j − c_j) · r_j / (r_j + 1) / (s_q² + 0.05)

with s_q² the variance of the y of q (n_q − 1 in the denominator). The differences are Helmert's contrasts, which are
uncorrelated. A weight depends on earlier outcomes and on how many of the question's are right in all, and given these
the sample is as likely as each later one to be right: so z is about standard normal under any schedule if the endpoint
is like the rest. The division by s_q² gives more weight to questions that nearly always come out alike, since there a
fault shows best. A second test takes "truncated" in place of "correct". An endpoint stands out where the two-sided p is
below `ALPHA` divided by the number of tests that the benchmark gives (Bonferroni): two for each endpoint, one where no
sample is truncated. Questions with missing samples are left out, because samples are not missing at random. So are
questions of which a reply broke off and was asked for again: an endpoint that cuts long streams keeps its short, right
replies and hands the others on. One sample a question gives no test. `bench/simulate_endpoints.py` plays the scheduler
and prints how often sound endpoints are named, and how often broken ones.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import codec
from harness.core.files import open_untrusted
from harness.core.inert import visible
from harness.core.records import Grade, Key
from harness.runs import Manifest, RunFolder
from harness.runs.manifest import WEIGHTS, Provenance
from harness.runs.record import Plan
from harness.scoring.observed import Observed, Rows
from harness.scoring.stats import Interval, normal_two_sided, sampling_limits

ALPHA = 0.01
"""Largest chance that a run with only sound endpoints names one of them as an outlier."""

ADDED_VARIANCE = 0.05
"""Added to a question's variance in the weights, so that a single outcome of many does not decide the test."""

MAX_URL_CHARS = 120
"""Longest URL in a warning, in characters; a longer one is clipped."""

MAX_LOG_LINE_BYTES = 64 * 1024
"""Longest line of a log that is read, in bytes; the harness writes none that long."""


class EndpointScore(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one endpoint in a benchmark. Shares are fractions of its n_samples.

    expected_accuracy, expected_truncated: the shares if the endpoint did on each question as all endpoints together do.
    A schedule may shift both by some points even if all endpoints are alike, so z is not computed from them.
    sampling_interval: 95 %, of the accuracy if the endpoint got the same questions again and again, each as often.
    at_most: the endpoint has one sample of each question, so the interval is the widest possible. Endpoints get
    different questions, so their intervals do not compare them. z_accuracy, z_truncated: z of the module's formula;
    None where no comparison is possible. outlier: one of the two z is beyond chance. tokens_per_s: of one stream, over
    samples with stated tokens. n_failures: failed requests in the run's log. n_questions_cut: questions that the test
    leaves out because a reply to one of their samples broke off.
    """

    endpoint: str
    n_samples: int
    accuracy: float
    expected_accuracy: float
    z_accuracy: float | None
    truncated: float
    expected_truncated: float
    z_truncated: float | None
    no_answer: float
    tokens_per_s: float | None
    n_failures: int
    outlier: bool
    sampling_interval: Interval | None = None
    at_most: bool = False
    n_questions_cut: int = 0

    @property
    def warning(self) -> str:
        """The sentence for an endpoint that is an outlier."""
        shares = []
        if self.z_accuracy is not None:
            shares.append(
                f"{self.accuracy:.1%} correct where {self.expected_accuracy:.1%} were to be expected of the same "
                f"questions (z {self.z_accuracy:+.1f})"
            )
        if self.z_truncated is not None:
            shares.append(
                f"{self.truncated:.1%} truncated instead of {self.expected_truncated:.1%} (z {self.z_truncated:+.1f})"
            )
        url = visible(self.endpoint, MAX_URL_CHARS)
        return (
            f"the endpoint {url} differs from the rest, with {', '.join(shares)}: check that its model, precision and "
            "engine are those of the others"
        )


def scores(
    observed: Observed,
    rows: Rows,
    grades: Sequence[Grade],
    failed: FailedRequests,
    planned: Plan | int | None = None,
) -> tuple[EndpointScore, ...]:
    """A score for each endpoint, sorted by URL, with a test whether it differs from the others.

    Empty when all samples come from one endpoint. rows: the samples of the `grades`. failed: from `failed_requests`.
    planned: samples of each question; None = as many as are stored.
    """
    if len(observed.endpoints) < 2:
        return ()
    ordered = _Ordered.of(observed, rows, grades, failed.unanswered, planned)
    names = sorted(observed.endpoints)
    present = [name for name in names if (ordered.endpoint == observed.endpoints[name]).any()]
    zs = {name: _zs(observed.endpoints[name], len(observed.endpoints), ordered) for name in present}
    n_tests = sum(z is not None for of_endpoint in zs.values() for z in of_endpoint)
    return tuple(_score(name, observed, ordered, failed.by_endpoint, zs=zs[name], n_tests=n_tests) for name in present)


def _restarted(provenance: Provenance, urls: Iterable[str]) -> bool:
    """Whether these base URLs are those of one server that was started again for each session: one after the other, on
    one host, with the same facts, and a checksum of the weights among them (which is known only of servers that the
    harness starts).
    """
    each = [endpoint for session in provenance.sessions for endpoint in session.endpoints.items()]
    names = {name for _, name in each}
    return (
        all(len(session.endpoints) == 1 for session in provenance.sessions)
        and set(urls) <= {url for url, _ in each}
        and len({urlsplit(url).hostname for url, _ in each}) == 1
        and len(names) == 1
        and not provenance.servers[names.pop()].model.keys().isdisjoint(WEIGHTS)
    )


class FailedRequests(NamedTuple):
    """The failed requests of a benchmark in a run's log, by base URL.

    unanswered: samples whose failed requests all failed before a reply began, so their own outcome played no part.
    """

    by_endpoint: Mapping[str, int]
    unanswered: Set[Key]


class _FailedRequest(msgspec.Struct, frozen=True):
    """The fields of a line of `log.jsonl` that this test reads."""

    event: str
    endpoint: str
    task: tuple[str, str, int]
    kind: str = ""
    status: int | None = None

    @property
    def unanswered(self) -> bool:
        """Whether the request failed before a reply began: without a connection, or with a status."""
        return self.kind in ("connect", "out_of_files", "rate_limited") or (
            self.kind == "server" and self.status is not None
        )


def failed_requests(folder: RunFolder, benchmark: str, endpoints: Collection[str]) -> FailedRequests | None:
    """The failed requests of a benchmark, from the run's log; None if the endpoints of its samples are one server,
    started again for each session.
    """
    if _restarted(Manifest.load(folder).provenance, endpoints):
        return None
    counts: Counter[str] = Counter()
    unanswered, begun = set[Key](), set[Key]()
    for path in folder.logs():
        with contextlib.suppress(OSError), open_untrusted(path) as log:
            for line in log:
                # The cheap test first: a log has a line for many other events.
                if b'"request_failed"' not in line or len(line) > MAX_LOG_LINE_BYTES:
                    continue
                with contextlib.suppress(codec.DecodeError):
                    failure = codec.decode(line, _FailedRequest)
                    if failure.event == "request_failed" and failure.task[0] == benchmark:
                        counts[failure.endpoint] += 1
                        (unanswered if failure.unanswered else begun).add(Key(*failure.task[1:]))
    # A sample that failed in both ways had a reply that broke off.
    return FailedRequests(counts, unanswered - begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ordered:
    """The samples in the order of their start, in columns.

    question, endpoint: the number of each sample's question and endpoint; questions are numbered in the order of their
    ids. silent: no answer was found. cut_questions: numbers of the questions of which a reply broke off and was asked
    for again. planned: samples of each question, by its number.
    """

    rows: Rows
    question: NDArray[np.int64]
    endpoint: NDArray[np.int64]
    correct: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    silent: NDArray[np.bool_]
    cut_questions: NDArray[np.int64]
    planned: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        observed: Observed,
        rows: Rows,
        grades: Sequence[Grade],
        unanswered: Set[Key],
        planned: Plan | int | None,
    ) -> _Ordered:
        """The graded samples as arrays, in the order in which their requests started."""
        plan = Plan.every(planned or 0)
        numbers: dict[str, int] = {}
        question, index, facts = array("q"), array("q"), bytearray()
        for grade in grades:
            question.append(numbers.setdefault(grade.question_id, len(numbers)))
            index.append(grade.sample_index)
            correct, silent = grade.verdict == "correct", grade.verdict == "no_answer"
            # The fourth bit: no reply of the sample had begun when a request failed.
            facts.append(correct | bool(grade.truncated) << 1 | silent << 2 | (grade.key in unanswered) << 3)
        rank = np.empty(len(numbers), dtype=np.int64)  # by id, so that the order of the grades does not matter
        rank[[numbers[question_id] for question_id in sorted(numbers)]] = np.arange(len(numbers))
        ranked = rank[np.frombuffer(question, dtype=np.int64)]
        # The last key of `lexsort` sorts first: by start; question and sample only break ties.
        order = np.lexsort((np.frombuffer(index, dtype=np.int64), ranked, observed.started.of(rows)))
        bits = np.frombuffer(facts, dtype=np.uint8)[order]
        # A sample with several attempts and a failure after its reply had begun.
        again = ~np.isnan(observed.attempts.of(rows))[order] & ~(bits >> 3 & 1).astype(bool)
        return cls(
            rows=rows[order],
            question=ranked[order],
            endpoint=observed.endpoint(rows[order]).astype(np.int64),
            correct=(bits & 1).astype(bool),
            truncated=(bits >> 1 & 1).astype(bool),
            silent=(bits >> 2 & 1).astype(bool),
            cut_questions=np.unique(ranked[order][again]),
            planned=np.array([plan.of(name) for name in sorted(numbers)], dtype=np.int64),
        )

    def of_questions(self) -> Iterator[NDArray[np.int64]]:
        """Yield for each question that can be tested the positions of its samples, in the order of their requests.

        A question can be tested if all its planned samples are stored and no sample was asked for again because its
        reply had broken off.
        """
        questions, first, counts = np.unique(self.question, return_index=True, return_counts=True)
        begins = np.cumsum(counts) - counts
        grouped = np.argsort(self.question, kind="stable")
        cut = np.isin(questions, self.cut_questions)
        for number in np.argsort(first, kind="stable"):
            if counts[number] >= self.planned[questions[number]] and not cut[number]:
                yield grouped[begins[number] : begins[number] + counts[number]]


def _zs(number: int, n_endpoints: int, ordered: _Ordered) -> list[float | None]:
    """The two z of the endpoint with this number: of "correct" and of "truncated"."""
    mine = ordered.endpoint == number
    before = np.cumsum(mine) - mine
    # e_j − c_j; c_j counts one imagined sample at every endpoint, so that the first sample has a share too.
    weights = mine - (1 + before) / (n_endpoints + np.arange(len(mine)))
    return [_z(_by_question(ordered, outcome, weights)) for outcome in (ordered.correct, ordered.truncated)]


def _score(
    name: str,
    observed: Observed,
    ordered: _Ordered,
    failures: Mapping[str, int],
    *,
    zs: Sequence[float | None],
    n_tests: int,
) -> EndpointScore:
    """The score of one endpoint.

    failures: base URL → its failed requests. zs: the endpoint's test statistics for accuracy and truncation. n_tests:
    number of tests of all endpoints.
    """
    number = observed.endpoints[name]
    mine = ordered.endpoint == number
    n = int(mine.sum())
    rows = ordered.rows[mine]
    tokens, seconds = np.nan_to_num(observed.completion_tokens.of(rows)), observed.total.of(rows)
    timed = (tokens != 0) & (seconds > 0)
    in_all = math.fsum(seconds[timed])
    # The interval is of the share of right samples at this endpoint: a question weighs by its samples there.
    per_question = np.bincount(ordered.question[mine])
    right = np.bincount(ordered.question[mine & ordered.correct], minlength=len(per_question))
    counts, correct = per_question[per_question > 0].astype(float), right[per_question > 0].astype(float)
    return EndpointScore(
        endpoint=name,
        n_samples=n,
        accuracy=int(ordered.correct[mine].sum()) / n,
        expected_accuracy=_expected(ordered, ordered.correct, mine) / n,
        z_accuracy=zs[0],
        truncated=int(ordered.truncated[mine].sum()) / n,
        expected_truncated=_expected(ordered, ordered.truncated, mine) / n,
        z_truncated=zs[1],
        no_answer=int(ordered.silent[mine].sum()) / n,
        tokens_per_s=int(tokens[timed].sum()) / in_all if in_all else None,
        n_failures=failures.get(name, 0),
        outlier=any(z is not None and normal_two_sided(z) * n_tests < ALPHA for z in zs),
        sampling_interval=sampling_limits(correct, counts, counts / n).interval(),
        at_most=bool((counts == 1).all()),
        n_questions_cut=len(ordered.cut_questions),
    )


def endpoint_warnings(scores: Sequence[EndpointScore]) -> list[str]:
    """A warning for each endpoint that is an outlier, and one if broken replies leave nothing to test."""
    sentences = [score.warning for score in scores if score.outlier]
    if any(score.n_questions_cut for score in scores) and all(score.z_accuracy is None for score in scores):
        sentences.append(
            f"the endpoints are not tested against each other: replies to {scores[0].n_questions_cut} questions broke "
            "off and were asked for again, which sends long replies to the sounder endpoint"
        )
    return sentences


def _expected(ordered: _Ordered, outcome: NDArray[np.bool_], mine: NDArray[np.bool_]) -> float:
    """Expected number of samples of `mine` with this outcome, if each question had its rate over all endpoints."""
    of_all = np.bincount(ordered.question)
    hits = np.bincount(ordered.question[outcome], minlength=len(of_all))
    own = np.bincount(ordered.question[mine], minlength=len(of_all))
    return math.fsum(own * hits / of_all)


def _by_question(
    ordered: _Ordered, outcomes: NDArray[np.bool_], weights: NDArray[np.float64]
) -> Iterator[tuple[list[bool], list[float]]]:
    """Yield (outcomes, weights) of each tested question's samples in the order of their start."""
    for positions in ordered.of_questions():
        yield outcomes[positions].tolist(), weights[positions].tolist()


def _z(rows: Iterable[tuple[Sequence[bool], Sequence[float]]]) -> float | None:
    """Return how far one endpoint's samples differ from the others', in standard errors: z of the formula above.

    rows: of `_by_question`.
    """
    total = variance = 0.0
    for row, weighed in rows:
        n, hits = len(row), sum(row)
        # All right or all wrong: every contrast is 0, and so is its variance.
        if not 0 < hits < n:
            continue
        spread = hits * (n - hits) / (n * (n - 1))
        # The spread is that of all outcomes of the question together, so that no outcome sets its own weight.
        steady = spread + ADDED_VARIANCE
        later = 0
        # The loop goes from the last sample back, so that `later` counts the right samples that started after each one.
        for after, (outcome, weight) in enumerate(zip(reversed(row), reversed(weighed), strict=True)):
            if after:
                scaled = weight * after / (after + 1) / steady
                total += scaled * (outcome - later / after)
                variance += scaled * scaled * (1 + 1 / after) * spread
            later += outcome
    return total / math.sqrt(variance) if variance else None
