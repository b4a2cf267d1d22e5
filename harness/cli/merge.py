"""`harness merge`: join the run folders of shards into one run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.asking.options import MergeOptions
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.help import Helping
from harness.core.errors import EXIT_OWED
from harness.core.inert import visible
from harness.core.nouns import count_noun


@click.command("merge", cls=Helping, verb="merge")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(MergeOptions)
def command(runs: tuple[Path, ...], **given: Any) -> None:
    """Join the folders RUNS (one run that was begun on several machines) into one run folder.

    Shards that work in one folder need no merge: `harness score` joins them. Each sample is kept once. A folder with
    other settings is refused, and the differences are named. The same command again adds the samples that have come
    since. To ask for the missing samples, give `harness run` without --shard and with the joined folder as --out. Exit
    code 1 if samples are missing.

    \b
    harness merge node1/qwq-32b node2/qwq-32b --out results/qwq-32b
    """
    options = MergeOptions.of(**given)
    complete = join(runs, options)
    if complete:
        terminal.note(f"score them with: harness score {shlex.quote(str(options.out))}")
    sys.exit(0 if complete else EXIT_OWED)


def join(runs: Sequence[Path], options: MergeOptions) -> bool:
    """Join the run folders, and print the result. Returns whether all samples are there."""
    from harness.verbs.merge import merge

    merged = merge(runs, options)
    for note in merged.notes:
        terminal.warn(note)
    for benchmark in merged.benchmarks:
        for note in benchmark.notes():
            terminal.warn(note)
        terminal.note(
            f"{visible(benchmark.name, 80)}: {count_noun(benchmark.n_samples, 'sample')}, {benchmark.n_added} of "
            "them new" + (f"; {benchmark.n_owed} of {benchmark.n_expected} are missing" if benchmark.n_owed else "")
        )
    return merged.complete
