"""The result of a session, and warnings about whatever makes its scores doubtful."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.core.nouns import are, count_noun
from harness.core.reply_notes import ALL_REASONING, CUMULATIVE, TOO_FEW_STATED
from harness.generation.dispatch.canary import ANSWERS_IN_REASONING, MIN_DUPLICATE_CHARS
from harness.generation.dispatch.causes import Cause
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.progress import Progress, Tally
from harness.generation.settings import RunSettings
from harness.generation.spending import Spent

MANY_TRUNCATED = 0.01
"""A warning is given if more than this fraction of the samples is truncated, the commonest cause of a wrong score."""

MANY_LOOPS = 0.01
"""A warning is given if more than this fraction of the samples ends in a loop of the same words."""

MANY_FALSE_USAGES = 0.01
"""A warning is given if the usage of more than this fraction of the replies states too few tokens."""

MANY_ALL_REASONING = 0.01
"""A warning is given if more than this fraction of the replies has reasoning and no text, though it ended by itself."""

MANY_CUT = 0.05
"""A warning is given if more than this fraction of the streams broke off and no later request continued the reply."""

MANY_DUPLICATES = 0.05
"""A warning is given if more than this fraction of the replies repeats another reply, sent under another seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a session.

    n_done of n_expected samples are on disk; n_missing of the others can never succeed, which `accept_missing`
    accepts. causes: why samples are owed. tally: the counts of this
    session. spent_before: tokens that the run's earlier sessions were billed for, without killed ones. stopped: why
    the session ended early; "" if it did not. caught: number of the signal that came while the last of its samples
    were awaited; None without one.
    """

    n_expected: int
    n_done: int
    n_missing: int
    elapsed_s: float
    warnings: list[str]
    tally: Tally = field(default_factory=Tally)
    causes: list[Cause] = field(default_factory=list)
    stopped: str = field(default="")
    caught: int | None = None
    spent_before: Spent = field(default_factory=Spent)
    progress: Progress | None = None

    @property
    def n_owed(self) -> int:
        """Samples that are not on disk."""
        return self.n_expected - self.n_done

    @property
    def complete(self) -> bool:
        """Whether no sample is owed, except those that can never succeed."""
        return self.n_owed == self.n_missing

    @property
    def spent(self) -> Spent:
        """Tokens that the session was billed for."""
        return self.tally.spent.plus(self.tally.beside)


def truncated_in_words(n: int, n_finished: int) -> str:
    """The warning that max_tokens cuts `n` of the finished samples."""
    share = f"{n} of {count_noun(n_finished, 'sample')} ({n / n_finished:.0%})"
    return f"{share} {are(n)} truncated: raise max_tokens."


def in_common(warning: str, outcome: Outcome, settings: RunSettings) -> str:
    """The words of a warning of `outcome` in which it may hold for other runs, too: that the same max_tokens cuts some
    samples, whatever their number, which each score states; any other warning as it is.
    """
    tally = outcome.tally
    if not tally.truncated or warning != truncated_in_words(tally.truncated, tally.finished):
        return warning
    bounds = {str(each.sampling.max_tokens) for each in settings.benchmarks.values()}
    return f"samples are truncated at {' and '.join(sorted(bounds))} tokens: raise max_tokens."


def doubts(dispatcher: Dispatcher, *, seeded: bool) -> Iterator[str]:
    """Warnings that stand beside the score, one sentence each. seeded: each request was sent a seed of its own."""
    yield from dispatcher.warnings
    tally = dispatcher.tally
    if not tally.finished:
        return
    n_false = tally.notes.get(TOO_FEW_STATED, 0)
    if n_false > MANY_FALSE_USAGES * tally.finished:
        share = n_false / tally.finished
        yield (
            f"{n_false} of {count_noun(tally.finished, 'reply', 'replies')} ({share:.0%}) came as many more token "
            "events than their usage states tokens: either the usage is false, and lengths, speeds and costs from it "
            "are too low, or something on the way cuts tokens into pieces."
        )
    if (n := tally.notes.get(ALL_REASONING, 0)) > MANY_ALL_REASONING * tally.finished:
        yield f"{n} of {count_noun(tally.finished, 'reply', 'replies')} have {ANSWERS_IN_REASONING}."
    if n := tally.notes.get(CUMULATIVE, 0):
        yield f"{n} of {count_noun(tally.finished, 'reply', 'replies')}: {CUMULATIVE}."
    truncated = tally.truncated / tally.finished
    if truncated > MANY_TRUNCATED and (early := dispatcher.cut_lengths.early(tally.finished)) is not None:
        yield f"{early.sentence}."
    elif truncated > MANY_TRUNCATED:
        yield truncated_in_words(tally.truncated, tally.finished)
    if (limit := dispatcher.lengths.limit) is not None:
        yield f"{limit.sentence}."
    n_cut = dispatcher.n_cut - tally.continued
    n_streams = n_cut + tally.finished
    if n_cut > MANY_CUT * n_streams:
        yield (
            f"{n_cut} of {count_noun(n_streams, 'stream')} ({n_cut / n_streams:.0%}) broke off, and no later request "
            "continued them. Long replies break off more often than short ones, so the stored ones may be too short."
        )
    loops = tally.loops / tally.finished
    if loops > MANY_LOOPS:
        yield f"{tally.loops} of {tally.finished} samples ({loops:.0%}) end in a loop of the same words."
    if seeded and tally.duplicates / tally.finished > MANY_DUPLICATES:
        yield (
            f"{tally.duplicates} of {tally.finished} replies have {MIN_DUPLICATE_CHARS} characters or more and "
            "repeat another one to the same question word by word, under different seeds: the server ignores seeds, a "
            "cache answers, or the model has few ways to word such a reply, as a judge its verdict."
        )
