"""What a judge would be asked about a run and the maximum cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.benchmarks.questions import QuestionSet
from harness.client.request_builder import Asker
from harness.client.request_fields import most_prompt_tokens, prompt_bytes
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.number_text import Prices, count_noun
from harness.generation.settings import BenchmarkSettings
from harness.judges.judge import JudgeRequests, JudgeSettings, cases_of, judge_of
from harness.options.judge import JudgeOptions
from harness.options.score import ScoreOptions
from harness.progress.events import Watcher
from harness.runs import RunFolder
from harness.scoring.pipeline import grade_run

REMINDER_BYTES = 400
"""Largest number of bytes by which a second request about an answer is longer than the first."""

STORING = ("out", "track", "on", "also")
"""Options of `score` that write, send or ask somewhere else; a dry run rejects them."""


class ExpectedRequests(NamedTuple):
    """What a judge would be asked. judge: its settings, with the form. n_answers: distinct answers in its scope.
    n_outside, n_silent: samples that it would not see (`Cases`). n_stored: number of stored replies. n_requests:
    requests for the missing replies. prompt_tokens, new_tokens: the most that these requests can take, with a second
    request about each answer if the judge's form allows one, and without any resent after a failure.
    """

    judge: JudgeSettings
    n_answers: int
    n_outside: int
    n_silent: int
    n_stored: int
    n_requests: int
    prompt_tokens: int
    new_tokens: int

    @classmethod
    def of(cls, requests: JudgeRequests) -> ExpectedRequests:
        """What would be asked now; nothing is sent."""
        judge, missing = requests.judge, requests.missing
        template, n_repeats = (
            Asker(model=judge.model).template(judge.sampling.request_fields()),
            judge.prompt.requests - 1,
        )
        sizes = [prompt_bytes(codec.decode(template.body(question))) for question in missing]
        prompts = (most_prompt_tokens(n) + n_repeats * most_prompt_tokens(n + REMINDER_BYTES) for n in sizes)
        n_answers = sum(len(cases.questions) for cases in requests.cases)
        new_tokens = len(missing) * (1 + n_repeats) * judge.max_tokens
        return cls(
            judge=judge,
            n_answers=n_answers,
            n_outside=sum(cases.n_outside for cases in requests.cases),
            n_silent=sum(cases.n_silent for cases in requests.cases),
            n_stored=len(judge.members) * n_answers - len(missing),
            n_requests=len(missing),
            prompt_tokens=sum(prompts),
            new_tokens=new_tokens,
        )

    def describe_maximum(self, prices: Prices | None) -> str:
        """The maximum number of tokens and the maximum cost at these prices, in words."""
        usd = "" if prices is None else f", {prices.usd(self.prompt_tokens, self.new_tokens):,.4f} USD"
        tokens = f"{count_noun(self.prompt_tokens, 'prompt token')} and {self.new_tokens:,} new tokens"
        return f"at most {tokens} ({self.judge.max_tokens:,} per reply){usd}"


def expected_judging(
    folder: RunFolder, options: ScoreOptions, judge: JudgeOptions, watcher: Watcher
) -> tuple[ExpectedRequests, dict[str, ExpectedRequests]]:
    """Report what `score` would ask the judge about this run now: in total, and for each benchmark with an answer in
    the judge's scope. The rules grade first; nothing is sent or stored.

    Raises `UsageError`, also for options that write or send, and `StoreError`.
    """
    for name in STORING:
        if name in options.changed:
            raise UsageError("omit this option: `dry_run` does not send or store anything", field=name)
    settings = judge_of(judge, watcher)
    of_each, every = {}, []
    for benchmark in grade_run(folder, options, watcher.graded):
        own = settings.for_form(benchmark.questions[0].rules.judge)
        expected = ExpectedRequests.of(JudgeRequests(folder, own, [cases_of(benchmark, own)]))
        every.append(expected)
        if expected.n_answers:
            of_each[benchmark.folder.name] = expected
    return ExpectedRequests(settings, *map(sum, zip(*(each[1:] for each in every), strict=True))), of_each


def most_requests(
    sets: Sequence[QuestionSet], benchmarks: Mapping[str, BenchmarkSettings], judge: JudgeSettings
) -> int:
    """Largest number of requests to a run's judge: as many as its form makes for each sample, as if no two answers were
    equal.

    benchmarks: benchmark → its sampling settings.
    """
    own = [judge.for_form(each.questions[0].rules.judge) for each in sets]
    return sum(
        of.prompt.requests * len(of.members) * benchmarks[each.name].plan().total(each.ids)
        for each, of in zip(sets, own, strict=True)
    )
