"""What a judge would be asked about a source, and what that costs at most, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.benchmarks.questions import QuestionSet
from harness.client.asker import Asker
from harness.client.spelling import most_prompt_tokens, prompt_bytes
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.money import Prices
from harness.generation.settings import BenchmarkSettings
from harness.judges.judge import JudgeRequests, JudgeSettings, cases_of, judge_of
from harness.options.judge import JudgeOptions
from harness.options.score import ScoreOptions
from harness.preparing.outputs import open_scored
from harness.preparing.watching import Watcher
from harness.scoring.pipeline import grade_run

REMINDER_BYTES = 400
"""The most bytes by which a second request about an answer is longer than the first."""

STORING = ("out", "track", "on", "also")
"""Options of a scoring that write, send or ask somewhere else, so that a dry run refuses them."""


class AnswersToJudge(NamedTuple):
    """Distinct answers of one benchmark in the judge's scope, and the requests about them. judge: with its form."""

    judge: JudgeSettings
    n_answers: int
    n_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedJudging:
    """What the judge would be asked about one source.

    benchmarks: by name, those with an answer in the judge's scope. n_answers, n_requests: of all; requests are for
    replies that are missing. prompt_tokens, new_tokens: the most that these requests can take if
    each is sent once.
    """

    judge: JudgeSettings
    benchmarks: Mapping[str, AnswersToJudge]
    prompt_tokens: int
    new_tokens: int

    @property
    def n_answers(self) -> int:
        """The number of distinct answers in the judge's scope."""
        return sum(of.n_answers for of in self.benchmarks.values())

    @property
    def n_requests(self) -> int:
        """The number of requests for replies that are missing."""
        return sum(of.n_requests for of in self.benchmarks.values())

    @property
    def n_stored(self) -> int:
        """The number of stored replies that are used."""
        return sum(len(of.judge.members) * of.n_answers for of in self.benchmarks.values()) - self.n_requests

    def usd(self, prices: Prices) -> float:
        """The most that the requests cost, in USD."""
        return prices.usd(self.prompt_tokens, self.new_tokens)


def expected_judging(source: Path, options: ScoreOptions, judge: JudgeOptions, watcher: Watcher) -> ExpectedJudging:
    """Say what `score` would ask the judge about `source` now. The rules grade first; nothing is sent or stored.

    Raises `UsageError`, also for options that write or send, and `StoreError`.
    """
    for name in STORING:
        if name in options.changed:
            raise UsageError("dry_run sends and stores nothing: leave it out", field=name)
    settings, _ = judge_of(judge, watcher)
    folder = open_scored(source)
    benchmarks, prompt_tokens, new_tokens = {}, 0, 0
    for benchmark in grade_run(folder, options, watcher.graded):
        own = settings.for_form(benchmark.questions[0].rules.judge)
        requests = JudgeRequests(folder, own, [cases_of(benchmark, own)])
        if n_answers := len(requests.cases[0].questions):
            benchmarks[benchmark.folder.name] = AnswersToJudge(own, n_answers, len(requests.owed))
        tokens = most_tokens(requests)
        prompt_tokens, new_tokens = prompt_tokens + tokens[0], new_tokens + tokens[1]
    return ExpectedJudging(
        judge=settings,
        benchmarks=benchmarks,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
    )


def most_tokens(requests: JudgeRequests) -> tuple[int, int]:
    """The most prompt tokens and new tokens that the missing replies take if each request is sent once."""
    judge = requests.judge
    template, again = Asker(model=judge.model).template(judge.sampling.sent()), judge.prompt.requests - 1
    prompt_tokens = 0
    for question in requests.owed:
        n_bytes = prompt_bytes(codec.decode(template.body(question)))
        prompt_tokens += most_prompt_tokens(n_bytes) + again * most_prompt_tokens(n_bytes + REMINDER_BYTES)
    return prompt_tokens, len(requests.owed) * (1 + again) * judge.max_tokens


def most_requests(
    sets: Sequence[QuestionSet], benchmarks: Mapping[str, BenchmarkSettings], judge: JudgeSettings
) -> int:
    """The most requests to the judge of a run: those of its form for each sample, as if no two answers were equal.

    benchmarks: benchmark → how it is sampled.
    """
    own = [judge.for_form(each.questions[0].rules.judge) for each in sets]
    return sum(
        of.prompt.requests * len(of.members) * benchmarks[each.name].plan().total(each.ids)
        for each, of in zip(sets, own, strict=True)
    )
