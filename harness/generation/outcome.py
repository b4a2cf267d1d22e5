"""What a session came to, and what in it should make the reader wary of its scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.core.wording import Sentence, option
from harness.generation.comparing import UNLIKE
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.snapshot import Cause
from harness.generation.progress import Progress
from harness.generation.spending import Spent

MANY_TRUNCATED = 0.01
"""A larger share of truncated samples is a warning: it is the commonest cause of a bad number."""

MANY_LOOPS = 0.01
"""A larger share of samples that end in a loop is a warning."""

MANY_DUPLICATES = 0.05
"""A larger share of replies that repeat another one under another seed is a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a session came to. Samples: n_done of n_expected are on disk, n_owed are not.

    complete: nothing is owed, but for what `accept_missing` accepts (n_missing of the owed).
    causes: why samples are owed. n_session, n_truncated: finished in this session, and truncated among them.
    n_duplicates: replies that repeat another one word by word; n_loops: that end in a loop.
    n_continued: that went on from a beginning written before; kept_tokens: how long those were. spent: as stated.
    stopped: why the session ended early; else empty.
    """

    complete: bool
    n_expected: int
    n_done: int
    n_owed: int
    n_missing: int
    elapsed_s: float
    warnings: list[Sentence]
    n_session: int = 0
    n_truncated: int = 0
    n_duplicates: int = 0
    n_loops: int = 0
    n_continued: int = 0
    kept_tokens: int = 0
    tokens: int = 0
    causes: list[Cause] = field(default_factory=list)
    stopped: Sentence = field(default=Sentence(""))
    spent: Spent = field(default_factory=Spent)
    progress: Progress | None = None


def doubts(dispatcher: Dispatcher, *, seeded: bool) -> Iterator[str]:
    """Warnings that stand beside the score, one sentence each. seeded: each request was sent a seed of its own."""
    yield from dispatcher.warnings
    counts = dispatcher.counts
    if not counts.finished:
        return
    for note in UNLIKE.values():
        if n := counts.notes.get(note):
            yield (
                f"{note}: {n} half-written answer{'' if n == 1 else 's'}, of whose last tokens the server says other "
                "log-probabilities than when they were written: another model or precision."
            )
    truncated = counts.truncated / counts.finished
    if truncated > MANY_TRUNCATED:
        yield (
            f"{counts.truncated} of {counts.finished} samples ({truncated:.0%}) are truncated: "
            f"raise {option('max_tokens')}."
        )
    loops = counts.loops / counts.finished
    if loops > MANY_LOOPS:
        yield f"{counts.loops} of {counts.finished} samples ({loops:.0%}) end in a loop of the same words."
    if seeded and dispatcher.duplicates.n / counts.finished > MANY_DUPLICATES:
        yield (
            f"{dispatcher.duplicates.n} of {counts.finished} replies repeat another one to the same question word by "
            "word, under different seeds: the server ignores seeds, or a cache answers."
        )
