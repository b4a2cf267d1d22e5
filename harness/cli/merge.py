"""`harness merge`: joins the run folders of shards into one run."""

from __future__ import annotations

import shlex

from harness.cli import terminal
from harness.commands.merge import merge
from harness.core.errors import Exit
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.options.finished_runs import MergeCommand


def carry_out(options: MergeCommand) -> int:
    """Join the run folders, and print the result."""
    merged = merge(options.runs, options)
    for note in merged.notes:
        terminal.warn(note)
    for benchmark in merged.benchmarks:
        for note in benchmark.notes():
            terminal.warn(note)
        terminal.note(
            f"{visible(benchmark.name, 80)}: {count_noun(benchmark.n_samples, 'sample')}, {benchmark.n_added} of "
            "them new"
            + (f"; {benchmark.n_missing} of {benchmark.n_expected} are missing" if benchmark.n_missing else "")
        )
    if not merged.complete:
        return Exit.CANNOT_SAY
    terminal.note(f"score them with: harness score {shlex.quote(str(options.out))}")
    return Exit.YES
