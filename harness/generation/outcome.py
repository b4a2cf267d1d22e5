"""The result of a session, and warnings about whatever makes its scores doubtful."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.core.errors import Sentence, option
from harness.core.nouns import are, count_noun
from harness.core.reply_notes import ALL_REASONING, CUMULATIVE, TOO_FEW_STATED
from harness.generation.dispatch.canary import ANSWERS_IN_REASONING, MIN_DUPLICATE_CHARS
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.snapshot import Cause
from harness.generation.progress import Progress
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

    n_done of n_expected samples are on disk; n_owed are not. complete: no sample is owed, except n_missing that can
    never succeed and that `accept_missing` accepts. causes: why samples are owed. n_session: samples finished in this
    session; of these n_truncated are truncated, n_duplicates repeat another reply word by word, n_loops end in a loop,
    n_continued continued a written part (kept_tokens: tokens of these parts). tokens: completion tokens of this
    session. spent: tokens that the session was billed for; spent_before: those of the
    run's earlier sessions, without killed ones. stopped: why the session ended early; "" if it did not. caught: number
    of the signal that came while the last of its samples were awaited; None without one.
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
    caught: int | None = None
    spent: Spent = field(default_factory=Spent)
    spent_before: Spent = field(default_factory=Spent)
    progress: Progress | None = None


def truncated_in_words(n: int, n_finished: int) -> str:
    """The warning that max_tokens cuts `n` of the finished samples."""
    share = f"{n} of {count_noun(n_finished, 'sample')} ({n / n_finished:.0%})"
    return f"{share} {are(n)} truncated: raise {option('max_tokens')}."


def in_common(warning: Sentence, outcome: Outcome, settings: RunSettings) -> Sentence:
    """The words of a warning of `outcome` in which it may hold for other runs, too: that the same max_tokens cuts some
    samples, whatever their number, which each score states; any other warning as it is.
    """
    if not outcome.n_truncated or warning != Sentence(truncated_in_words(outcome.n_truncated, outcome.n_session)):
        return warning
    bounds = {str(each.sampling.max_tokens) for each in settings.benchmarks.values()}
    return Sentence(f"samples are truncated at {' and '.join(sorted(bounds))} tokens: raise {option('max_tokens')}.")


def doubts(dispatcher: Dispatcher, *, seeded: bool) -> Iterator[str]:
    """Warnings that stand beside the score, one sentence each. seeded: each request was sent a seed of its own."""
    yield from dispatcher.warnings
    counts = dispatcher.counts
    if not counts.finished:
        return
    n_false = counts.notes.get(TOO_FEW_STATED, 0)
    if n_false > MANY_FALSE_USAGES * counts.finished:
        share = n_false / counts.finished
        yield (
            f"{n_false} of {count_noun(counts.finished, 'reply', 'replies')} ({share:.0%}) came as many more token "
            "events than their usage states tokens: either the usage is false, and lengths, speeds and costs from it "
            "are too low, or something on the way cuts tokens into pieces."
        )
    if (n := counts.notes.get(ALL_REASONING, 0)) > MANY_ALL_REASONING * counts.finished:
        yield f"{n} of {count_noun(counts.finished, 'reply', 'replies')} have {ANSWERS_IN_REASONING}."
    if n := counts.notes.get(CUMULATIVE, 0):
        yield f"{n} of {count_noun(counts.finished, 'reply', 'replies')}: {CUMULATIVE}."
    truncated = counts.truncated / counts.finished
    if truncated > MANY_TRUNCATED and (early := dispatcher.cut_lengths.early(counts.finished)) is not None:
        yield f"{early.sentence}."
    elif truncated > MANY_TRUNCATED:
        yield truncated_in_words(counts.truncated, counts.finished)
    if (limit := dispatcher.lengths.limit) is not None:
        yield f"{limit.sentence}."
    n_cut = counts.failed.get("cut", (0,))[0] - counts.continued
    n_streams = n_cut + counts.finished
    if n_cut > MANY_CUT * n_streams:
        yield (
            f"{n_cut} of {count_noun(n_streams, 'stream')} ({n_cut / n_streams:.0%}) broke off, and no later request "
            "continued them. Long replies break off more often than short ones, so the stored ones may be too short."
        )
    loops = counts.loops / counts.finished
    if loops > MANY_LOOPS:
        yield f"{counts.loops} of {counts.finished} samples ({loops:.0%}) end in a loop of the same words."
    if seeded and dispatcher.duplicates.n / counts.finished > MANY_DUPLICATES:
        yield (
            f"{dispatcher.duplicates.n} of {counts.finished} replies have {MIN_DUPLICATE_CHARS} characters or more and "
            "repeat another one to the same question word by word, under different seeds: the server ignores seeds, a "
            "cache answers, or the model has few ways to word such a reply, as a judge its verdict."
        )
