"""The result of a session, and warnings about anything that makes its scores doubtful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.core import contradictions
from harness.core.number_text import Prices, count_noun, is_are
from harness.core.reply_notes import ALL_REASONING, DOUBTFUL, NO_TEXT
from harness.core.sanitize import quoted
from harness.generation.dispatch.canary import ANSWERS_IN_REASONING
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.retry import Cause
from harness.generation.run_progress import Progress, Spent, Tally
from harness.generation.settings import RunSettings

MANY_TRUNCATED = 0.01
"""A warning is given if more than this fraction of the samples is truncated, the most common cause of a wrong score."""

MANY_ALL_REASONING = 0.01
"""A warning is given if more than this fraction of the replies has reasoning but no text although it ended normally."""

MAX_ODD = 5
"""Largest number of kinds of unusual replies in a warning; a score lists more."""

_ODD = tuple(DOUBTFUL - {ALL_REASONING, NO_TEXT})
"""The notes without a separate warning."""

MANY_CUT = 0.05
"""A warning is given if more than this fraction of the streams broke off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a session.

    folder: the run folder. n_done of n_expected samples are on disk; n_missing of the others can never succeed, which
    the user accepted with `accept_missing`. causes: why samples are missing. advice: what to do about them; "" if there
    is no advice. tally: the counts of this session. spent_before: tokens billed for the run's earlier sessions, except
    killed ones. stopped: why the session ended early; "" if it did not. caught: number of the signal received while
    waiting for the last samples; None if there was none. prices: token prices; None if unknown. reached, missed: a
    sentence if the target error was reached, or was not; "" otherwise, also without a target or with missing samples.
    A run with a target has one session per stage; its outcome is that of the last session, with the totals of all.
    """

    folder: Path
    model: str
    n_expected: int
    n_done: int
    n_impossible: int
    elapsed_s: float
    warnings: list[str]
    tally: Tally = field(default_factory=Tally)
    causes: list[Cause] = field(default_factory=list)
    advice: str = field(default="")
    stopped: str = field(default="")
    caught: int | None = None
    spent_before: Spent = field(default_factory=Spent)
    prices: Prices | None = None
    reached: str = ""
    missed: str = ""
    progress: Progress | None = None

    @property
    def n_missing(self) -> int:
        """Number of samples that are not on disk."""
        return self.n_expected - self.n_done

    @property
    def complete(self) -> bool:
        """Whether no sample is missing except those that can never succeed."""
        return self.n_missing == self.n_impossible

    @property
    def spent(self) -> Spent:
        """Tokens that the session was billed for."""
        return self.tally.spent.add(self.tally.overhead)


def describe_truncated(n: int, n_finished: int) -> str:
    """The beginning of the warning that `n` of the finished samples are truncated; the remedy follows it."""
    share = f"{n} of {count_noun(n_finished, 'sample')} ({n / n_finished:.0%})"
    return f"{share} {is_are(n)} truncated: "


def shared_warning(warning: str, outcome: Outcome, settings: RunSettings) -> str:
    """The part of a warning of `outcome` that may be common to several runs: that the same limit truncates some
    samples, without their number, which each score states. Any other warning is returned unchanged.
    """
    tally = outcome.tally
    own = describe_truncated(tally.truncated, tally.finished) if tally.truncated else ""
    if not own or not warning.startswith(own):
        return warning
    bounds = {str(each.sampling.max_tokens) for each in settings.benchmarks.values()}
    return f"samples are truncated (`max_tokens` {' and '.join(sorted(bounds))}): {warning.removeprefix(own)}"


def sample_warnings(dispatcher: Dispatcher) -> Iterator[str]:
    """Warnings about the samples, one sentence each, except for what a score states next to its number."""
    tally = dispatcher.tally
    if not tally.finished:
        return
    if (n := tally.notes.get(ALL_REASONING, 0)) > MANY_ALL_REASONING * tally.finished:
        yield f"{n} of {count_noun(tally.finished, 'reply', 'replies')} have {ANSWERS_IN_REASONING}."
    causes = {note.removeprefix(f"{NO_TEXT}: "): n for note, n in tally.notes.items() if note.startswith(NO_TEXT)}
    if n := sum(causes.values()):
        why = ", ".join(f"{n}: {cause}" for cause, n in causes.items())
        replies = f"{n} of {count_noun(tally.finished, 'reply', 'replies')}"
        yield (
            f"{replies} have no text, although they were not truncated by any limit ({why}). "
            "See `harness show RUN --anomaly`."
        )
    odd = Counter({quoted(note): n for note, n in tally.notes.items() if note.startswith(_ODD)}).most_common(MAX_ODD)
    if odd:
        yield f"unusual replies: {'; '.join(f'{n}: {note}' for note, n in odd)}."
    notes = {**tally.notes}
    if tally.truncated > MANY_TRUNCATED * tally.finished:
        if (early := dispatcher.cuts.early_cut(tally.finished)) is not None:
            notes.pop(contradictions.CUT_EARLY, None)  # the same replies
            yield f"{early.sentence}."
        else:
            yield f"{describe_truncated(tally.truncated, tally.finished)}{dispatcher.cuts.limits_and_remedies[1]}."
    if said := contradictions.sentence(notes, tally.finished):
        yield f"{said}."
    n_cut = dispatcher.n_cut
    n_streams = n_cut + tally.finished
    if n_cut > MANY_CUT * n_streams:
        yield (
            f"{n_cut} of {count_noun(n_streams, 'stream')} ({n_cut / n_streams:.0%}) were cut off. Long replies are "
            "cut off more often than short ones, so the stored replies may be biased toward short ones."
        )
