"""`harness verify`: compares a run with published scores of its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from harness.cli.json_output import print_json
from harness.commands.compare import Verified, verify
from harness.core.errors import Exit
from harness.core.number_text import count_noun, in_percent
from harness.core.sanitize import visible
from harness.deciding.published_comparison import PublishedComparison
from harness.options.decisions import VerifyCommand
from harness.reports.comparison_tables import describe_settings, label_of
from harness.scoring.stats import Z_95

MAX_DECIDING = 2
"""Largest number of deciding scores in the headline; the lines below mark all of them."""

_CODES = {"compatible": Exit.YES, "cannot say": Exit.CANNOT_SAY, "not compatible": Exit.NO}
"""Verdict of a benchmark against its published scores → exit code."""


def carry_out(options: VerifyCommand) -> int:
    """Print how the run's scores compare with the published ones. Returns the exit code."""
    verified = verify(options.run, options)
    if options.as_json:
        print_json(verified)
    else:
        for benchmark in verified:
            listed = sorted(enumerate(benchmark.comparisons), key=lambda each: _by_authors(each[1]))
            decided_by = [entry for number, entry in listed if number in benchmark.decided_by]
            click.echo(_headline(benchmark, decided_by))
            for sentence in filter(None, (benchmark.reason, benchmark.judge)):
                click.echo(f"  {sentence}")
            for _, comparison in listed:
                for line in _lines(comparison, decides=comparison in decided_by):
                    click.echo(f"  {line}")
    return Exit.of(_CODES[benchmark.standing] for benchmark in verified)


def _headline(verified: Verified, decided_by: Sequence[PublishedComparison]) -> str:
    """The verdict, the scores that decided it, and the number of scores for each verdict."""
    by = [f"{entry.published.printed}% by {visible(entry.published.source.title, 60)}" for entry in decided_by]
    more = f" and {len(by) - MAX_DECIDING} more" if len(by) > MAX_DECIDING else ""
    named = f" with {', '.join(by[:MAX_DECIDING])}{more}" if by else ""
    counts = Counter(entry.verdict for entry in verified.comparisons)
    each = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    of = f" (of the {counts.total()} published scores, {each})" if counts.total() > 1 else ""
    return f"{label_of(verified.benchmark, verified.comparisons)}: {verified.standing}{named}{of}"


def _by_authors(comparison: PublishedComparison) -> int:
    """Sort key: scores published by the model's authors, then scores that others quote from them, then all other
    scores.
    """
    published = comparison.published
    return 2 if published.by != "authors" else int(published.quoted)


def _lines(comparison: PublishedComparison, *, decides: bool) -> list[str]:
    """The lines on one published score: the score and the verdict, the settings that differ, a note."""
    published = comparison.published
    samples = "an unknown number of samples" if published.samples is None else count_noun(published.samples, "sample")
    size = f"{published.replies:,} replies with calls" if published.replies else f"{samples} per question"
    quoted = ", quoted by" if published.quoted else " by the model's authors," if published.by == "authors" else " by"
    error = "" if published.standard_error is None else f" ± {100 * published.standard_error:.2g}"
    lines = [
        f"{visible(published.measure)} {published.printed}{error}%{quoted} {visible(published.source.title, 100)} "
        f"({size}): {_verdict(comparison)}{'; this decides' if decides else ''}"
    ]
    lines += [f"  {line}" for line in describe_settings(comparison)]
    if published.note:
        lines.append(f"  {visible(published.note, 200)}")
    return lines


def _verdict(comparison: PublishedComparison) -> str:
    """A comparison in words: `compatible (41.2%; would detect 3.5 points)`, `lower by 2.1 ± 1.4 points`.

    The number after ± is 1.96 standard errors: a difference within it is called compatible.
    """
    if comparison.ours is None or comparison.difference is None or comparison.verdict == "cannot say":
        return f"cannot say: {comparison.reason}"
    ours = f"{in_percent(comparison.ours)}% here"
    if comparison.verdict == "compatible":
        smallest = comparison.detectable
        unseen = "would not detect even the largest possible difference"
        return f"compatible ({ours}; {unseen if smallest is None else f'would detect {in_percent(smallest)} points'})"
    way = "lower" if comparison.difference < 0 else "higher"
    error = ""
    if comparison.error is not None:
        limit = Z_95 * comparison.error
        digits = 1 if limit >= 0.0005 else 2  # With one digit, a smaller limit would round to 0.0.
        error = f" ± {100 * limit:.{digits}f}"
    return f"{way} by {in_percent(abs(comparison.difference))}{error} points ({ours})"
