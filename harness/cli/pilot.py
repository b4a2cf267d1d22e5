"""`harness run --pilot`: two samples a question, then what the whole run would take and how exact it would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.generation.forecast import Forecast
    from harness.generation.settings import RunSettings

SAMPLES = 2
"""A question: the fewest that show a spread."""


def of(settings: RunSettings) -> RunSettings:
    """The pilot of a run: the same, with fewer samples. They count towards the run."""
    fewer = {name: replace(one, samples=min(SAMPLES, one.samples)) for name, one in settings.benchmarks.items()}
    return replace(settings, benchmarks=fewer)


def report(settings: RunSettings, sets: Sequence[QuestionSet]) -> None:
    """Print the forecast of the run `settings` from the samples in its folder."""
    from harness.generation.forecast import forecast
    from harness.runs import RunFolder, read_samples

    folder = RunFolder(settings.out)
    planned = {s.name: (len(s.questions), settings.benchmarks[s.name].samples) for s in sets}
    wanted = {(s.name, q.question_id) for s in sets for q in s.questions}
    stored = (
        sample
        for name in planned
        for sample in read_samples(folder.benchmark(name))
        if (sample.benchmark, sample.question_id) in wanted
    )
    found = forecast(stored, planned, settings.concurrency, settings.prices)
    for line in lines(found, errors(folder.path, sets, planned), settings.concurrency):
        click.echo(line)


def errors(path: object, sets: Sequence[QuestionSet], planned: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Benchmark → what its accuracy and its sampling error at the planned samples will be about."""
    from harness.grading.processes import pool
    from harness.runs import RunFolder, read_samples
    from harness.scoring import score_benchmark

    said = {}
    for chosen in sets:
        name = chosen.name
        questions = {q.question_id: q for q in chosen.questions}
        samples = (s for s in read_samples(RunFolder(str(path)).benchmark(name)) if s.question_id in questions)
        score = score_benchmark(chosen.questions, pool.grade_all(questions, samples), None)
        n = planned[name][1]
        if score.accuracy is None:
            said[name] = "no sample"
            continue
        accuracy = f"accuracy about {100 * score.accuracy:.1f} %"
        if score.sampling_error is None:
            said[name] = f"{accuracy}; the sampling error cannot be told from one sample a question"
            continue
        at_hand = score.n_samples / score.n_questions
        # The variance of a mean of n samples of each question falls with 1/n.
        then = score.sampling_error * (at_hand / n) ** 0.5
        said[name] = (
            f"{accuracy}, sampling error about {100 * then:.2f} points at {n} samples a question "
            f"({100 * score.sampling_error:.2f} now)"
        )
    return said


def lines(found: Forecast, accuracy: Mapping[str, str], concurrency: int) -> list[str]:
    """The forecast in words."""
    from harness.cli.progress import duration

    if not found.n_samples:
        said = ["forecast: nothing is left to ask"]
    else:
        about = f"{found.tokens / 1e6:,.2f} ± {found.tokens_error / 1e6:,.2f} million new tokens"
        said = [
            f"forecast: {found.n_samples:,} samples are left, {about}",
            f"  time: {duration(found.least_s)} to {duration(found.most_s)} with {concurrency} in flight "
            "(from streams as fast as now, to all together as fast as now)",
        ]
        if found.usd is not None:
            said.append(f"  cost: about {found.usd:,.2f} USD")
    return said + [f"  {name}: {sentence}" for name, sentence in accuracy.items()]
