"""Is one of several endpoints broken? Its samples beside those of the others, question by question. Pure.

A schedule that gives a slow endpoint the short samples gives it the easy questions, so plain shares may differ without
any fault. The test therefore compares within questions (Cochran, Mantel and Haenszel; Mantel and Haenszel 1959,
J. Natl. Cancer Inst. 22:719, without correction for continuity): with n_q samples of question q, c_q of them correct,
and m_q of them from the endpoint,

    z = Σ_q (correct of its m_q − m_q c_q / n_q) / √ Σ_q m_q (n_q − m_q) c_q (n_q − c_q) / (n_q² (n_q − 1))

is about standard normal where the endpoint is like the rest. The same with "truncated" for "correct". An endpoint
stands out where the two-sided p is below `ALPHA`, divided by the number of tests of the benchmark (Bonferroni). One
sample a question, or none shared with another endpoint, gives no test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from harness.core.inert import visible
from harness.core.records import Grade, Key, Sample

ALPHA = 0.01
"""Chance that a run with sound endpoints only names one, at most."""

MAX_URL_CHARS = 120


class EndpointScore(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint contributed to a benchmark. Shares are fractions of its n_samples.

    expected_accuracy, expected_truncated: the same if it did on each question as all endpoints together do.
    z_accuracy, z_truncated: see the module; None where nothing can be compared. outlier: one of them stands out.
    tokens_per_s: of one stream, over the samples whose tokens are stated. n_failures: failed requests, as logged.
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


class _Origin(NamedTuple):
    endpoint: str
    seconds: float
    tokens: int


class Origins:
    """Which endpoint each sample came from; a few words a sample are kept."""

    def __init__(self) -> None:
        self._of: dict[Key, _Origin] = {}
        self._names: dict[str, str] = {}

    def observe(self, sample: Sample) -> None:
        """One sample of the benchmark; of a repeated key the first counts."""
        name = self._names.setdefault(sample.endpoint, sample.endpoint)
        tokens = sample.usage.completion_tokens or 0
        self._of.setdefault(sample.key, _Origin(name, sample.timing.total, tokens))

    @property
    def several(self) -> bool:
        """Whether there is anything to compare."""
        return len(self._names) > 1

    def scores(self, grades: Iterable[Grade], failures: Mapping[str, int]) -> tuple[EndpointScore, ...]:
        """One score an endpoint, by its URL; none when all samples are of one. failures: failed requests by URL."""
        if not self.several:
            return ()
        of_endpoint: dict[str, dict[str, list[Grade]]] = {}
        of_question: dict[str, list[Grade]] = {}
        for grade in grades:
            origin = self._of.get(grade.key)
            if origin is not None:
                of_endpoint.setdefault(origin.endpoint, {}).setdefault(grade.question_id, []).append(grade)
                of_question.setdefault(grade.question_id, []).append(grade)
        n_tests = 2 * len(of_endpoint)
        found = []
        for name in sorted(of_endpoint):
            mine = of_endpoint[name]
            flat = [grade for row in mine.values() for grade in row]
            correct = _compare(mine, of_question, "correct")
            truncated = _compare(mine, of_question, "truncated")
            known = [one for g in flat if (one := self._of[g.key]).tokens and one.seconds > 0]
            seconds = math.fsum(one.seconds for one in known)
            found.append(
                EndpointScore(
                    endpoint=name,
                    n_samples=len(flat),
                    accuracy=correct.share,
                    expected_accuracy=correct.expected,
                    z_accuracy=correct.z,
                    truncated=truncated.share,
                    expected_truncated=truncated.expected,
                    z_truncated=truncated.z,
                    no_answer=sum(g.verdict == "no_answer" for g in flat) / len(flat),
                    tokens_per_s=sum(one.tokens for one in known) / seconds if seconds else None,
                    n_failures=failures.get(name, 0),
                    outlier=any(z is not None and two_sided(z) * n_tests < ALPHA for z in (correct.z, truncated.z)),
                )
            )
        return tuple(found)


def two_sided(z: float) -> float:
    """Chance of a standard normal value at least as far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def warnings(scores: Iterable[EndpointScore]) -> list[str]:
    """A sentence for each endpoint that stands out."""
    found = []
    for one in scores:
        if not one.outlier:
            continue
        said = []
        if one.z_accuracy is not None:
            said.append(
                f"{one.accuracy:.1%} correct where {one.expected_accuracy:.1%} were to be expected of the same "
                f"questions (z {one.z_accuracy:+.1f})"
            )
        if one.z_truncated is not None:
            said.append(
                f"{one.truncated:.1%} truncated instead of {one.expected_truncated:.1%} (z {one.z_truncated:+.1f})"
            )
        url = visible(one.endpoint, MAX_URL_CHARS)
        found.append(
            f"the endpoint {url} stands out, with {', '.join(said)}: is it the same model, precision and engine?"
        )
    return found


class _Comparison(NamedTuple):
    share: float
    expected: float
    z: float | None


def _compare(mine: Mapping[str, list[Grade]], everybody: Mapping[str, list[Grade]], what: str) -> _Comparison:
    total, hits, expected, variance = 0, 0, 0.0, 0.0
    for question_id, row in mine.items():
        n, m = len(everybody[question_id]), len(row)
        c = sum(_holds(grade, what) for grade in everybody[question_id])
        total += m
        hits += sum(_holds(grade, what) for grade in row)
        expected += m * c / n
        if n > 1:
            variance += m * (n - m) * c * (n - c) / (n * n * (n - 1))
    z = (hits - expected) / math.sqrt(variance) if variance else None
    return _Comparison(hits / total, expected / total, z)


def _holds(grade: Grade, what: str) -> bool:
    return grade.truncated if what == "truncated" else grade.verdict == "correct"
