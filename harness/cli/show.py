"""`harness show`: prints a run's questions and samples in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from harness.commands.imported_runs import open_scored
from harness.core.errors import Exit, StoreError, UsageError
from harness.core.number_text import count_noun
from harness.core.records import Key, VerdictName
from harness.core.sanitize import visible
from harness.options.display import ShowCommand
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.viewer import sample_text
from harness.viewer.rows import Mark, question_rows, sample_rows
from harness.viewer.sample_text import Style, curl, verdict_steps
from harness.viewer.search import SampleFilter, column_text, matching_samples

_BY_FLAG: tuple[VerdictName, ...] = ("correct", "wrong", "no_answer", "undecided")
"""Verdicts with a flag of the same name; with several of these flags, samples with any of the verdicts are shown."""

_MARKS: dict[str, Mark] = {"cut": "cut", "near_miss": "near", "anomaly": "odd", "disputed": "disputed"}
"""Name of a flag → the mark of the samples that it selects."""

SHOWN_LEVELS = 20
"""Largest number of levels, values, or columns that an error lists."""

LEGEND = "+ correct, - wrong, o no answer, ? undecided"


def carry_out(options: ShowCommand) -> int:
    """Print what the options select. Returns the exit code."""
    opened = OpenRun.of(open_scored(options.run), options.run.name)
    names = [options.benchmark] if options.benchmark else list(opened.benchmarks)
    benchmarks = [opened.benchmark(name) for name in names]
    question, sample = None, None
    if options.question is not None:
        benchmarks, question, sample = _find_question(opened, benchmarks, options.question)
    choice = _choice(benchmarks, options)
    texts = _texts(benchmarks, question, sample, choice, reasoning=options.reasoning)
    if sys.stdout.isatty():
        click.echo_via_pager(texts)
    else:
        for part in texts:
            click.echo(part, nl=False)
    # The problem has been printed, along with what is readable.
    return StoreError.exit_code if any(held.problems for held in benchmarks) else Exit.YES


def _column(benchmarks: list[OpenBenchmark], text: str) -> tuple[str, str]:
    """The column and value in a filter such as `unit=3`. Raises `UsageError` if no question has them."""
    name, equals, value = (part.strip() for part in text.partition("="))
    questions = [question for benchmark in benchmarks for question in benchmark.questions.values()]
    if not equals or not name:
        raise UsageError(f"expected a filter COLUMN=VALUE, such as level=5, got {visible(text, 100)!r}")
    values = {shown for question in questions if (shown := column_text(question, name)) is not None}
    if value in values:
        return name, value
    if values:
        there = ", ".join(visible(shown, 40) for shown in sorted(values)[:SHOWN_LEVELS])
        raise UsageError(f"no question has {visible(name, 100)}={visible(value, 100)}; its values are {there}")
    names = sorted({visible(column, 60) for question in questions for column in question.metadata})
    there = f"they have {', '.join(names[:SHOWN_LEVELS])}" if names else "they have no metadata"
    raise UsageError(
        f"no question of this run has {visible(name, 100)!r} in its metadata; {there}. To keep a column "
        f"as metadata, add `metadata: [{visible(name, 100)}]` to the card."
    )


def _choice(benchmarks: list[OpenBenchmark], options: ShowCommand) -> SampleFilter:
    """The sample filter. Raises `UsageError` if the filter needs grades and there are none."""
    choice = SampleFilter(
        verdicts=frozenset(verdict for verdict in _BY_FLAG if getattr(options, verdict)),
        marks=frozenset(mark for flag, mark in _MARKS.items() if getattr(options, flag)),
        columns=tuple(_column(benchmarks, text) for text in options.filter),
        text=options.grep,
        why=options.why,
    )
    # Without grades, a verdict filter would match nothing, and "0 samples" would be misleading.
    for benchmark in benchmarks if choice.needs_grade else ():
        if not benchmark.grades and benchmark.n_stored:
            raise UsageError(
                f"no sample of {visible(benchmark.name)} in {options.run} has been graded yet, and this filter needs "
                f"grades: run `harness score {options.run}`."
            )
    return choice


def _find_question(
    opened: OpenRun, benchmarks: list[OpenBenchmark], word: str
) -> tuple[list[OpenBenchmark], str, int | None]:
    """Return the benchmark (as a list) and id of the question that the user typed, and the sample's index or None.

    word: QUESTION or QUESTION:SAMPLE, as typed. Raises `UsageError` if no benchmark or more than one has the question.
    """
    stem, _, index = word.rpartition(":")
    # The whole word first: an id may itself end in a colon and a number.
    readings: list[tuple[str, int | None]] = [(word, None)]
    if stem and index.isascii() and index.isdigit():
        readings.append((stem, int(index)))
    for question_id, sample in readings:
        holding = [benchmark for benchmark in benchmarks if question_id in benchmark.questions]
        if len(holding) > 1:
            names = ", ".join(benchmark.name for benchmark in holding)
            raise UsageError(f"question {visible(question_id, 100)!r} is in {names}; choose one with `benchmark`.")
        if holding:
            return holding, question_id, sample
    if len(benchmarks) == 1:
        benchmarks[0].question(readings[-1][0])  # Raises an error that suggests similar names.
    raise UsageError(f"no benchmark in run {opened.label} has a question {visible(readings[-1][0], 100)!r}.")


def _texts(
    benchmarks: list[OpenBenchmark],
    question_id: str | None,
    sample: int | None,
    choice: SampleFilter,
    *,
    reasoning: bool,
) -> Iterator[str]:
    """Yield the text to print: one sample, the samples that a filter selects, one question, or the list of questions.

    reasoning: whether to print the reasoning, too.
    """
    style = _style()
    for benchmark in benchmarks:
        for problem in benchmark.problems:
            yield f"{visible(problem)}\n"
        if sample is not None and question_id is not None:
            yield from _sample(benchmark, Key(question_id, sample), style, reasoning=reasoning)
        elif not choice.keeps_all:
            yield from _matching(benchmark, choice, question_id, style, reasoning=reasoning)
        elif question_id is not None:
            yield from sample_text.question_text(benchmark, benchmark.question(question_id), style, whole=True)
            yield from sample_text.sample_list(sample_rows(benchmark, question_id), style)
        else:
            rows = question_rows(benchmark)
            yield f"{style.title(visible(benchmark.name))}: {count_noun(len(rows), 'question')}; {LEGEND}\n"
            if by_hand := benchmark.override_sentence():
                yield f"{by_hand}; this list is based on these manual verdicts\n"
            yield from (sample_text.question_line(row, style) for row in rows)


def _sample(benchmark: OpenBenchmark, key: Key, style: Style, *, reasoning: bool) -> Iterator[str]:
    """Yield the text of one sample: its question, the reply, the steps to its verdict, and the command that sends the
    request again.
    """
    question, stored = benchmark.question(key.question_id), benchmark.offsets.read(key)
    yield from sample_text.question_text(benchmark, question, style, whole=True)
    yield "\n"
    yield from sample_text.sample_text(benchmark, question, stored, style, reasoning=reasoning)
    yield f"\n{style.title('why')}\n"
    yield from (f"  {visible(step)}\n" for step in verdict_steps(benchmark, key))
    if not stored.foreign:
        yield f"\n{style.title('request')}\n{sample_text.lines(curl(benchmark.record, question, stored))}\n"


def _matching(
    benchmark: OpenBenchmark, choice: SampleFilter, question_id: str | None, style: Style, *, reasoning: bool
) -> Iterator[str]:
    """Yield the text of the samples that a filter selects, grouped below their questions, and a line with their number.

    question_id: the id of the only question to include; None: all.
    """
    n_samples, last_id = 0, ""
    for question, key in matching_samples(benchmark, choice, question_id):
        if question.question_id != last_id:
            yield from sample_text.question_text(benchmark, question, style, whole=False)
            yield "\n"
        last_id = question.question_id
        stored = benchmark.offsets.read(key)
        yield from sample_text.sample_text(benchmark, question, stored, style, reasoning=reasoning)
        yield f"{style.quiet('─' * 60)}\n"
        n_samples += 1
    yield f"{visible(benchmark.name)}: {count_noun(n_samples, 'sample')}\n"


def _style() -> Style:
    """The output colors; none if the output is not a terminal or NO_COLOR is set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return Style()
    colors = {"correct": "green", "wrong": "red", "no_answer": "yellow", "undecided": "magenta"}
    return Style(
        title=lambda text: click.style(text, bold=True),
        quiet=lambda text: click.style(text, dim=True),
        answer=lambda text: click.style(text, bold=True, reverse=True),
        verdicts=lambda verdict, text: click.style(text, fg=colors.get(verdict or "")),
    )
