"""Which published scores stand beside a run's score, in which order, and what they say together.

One order serves tables, CSV, JSON, reports and verdicts. A published score is of one kind, and the kinds come in this
order:

| kind | which scores |
| --- | --- |
| own | the suite's own source printed it, for the run's attention budget (tokens that the attention may see) |
| equal | its source states its settings, and ours equal all of them |
| other | other settings, or settings that are not stated, or a number that the source quotes |
| apart | another attention budget, a stated other prompt, or a mean over settings: it decides nothing |

Within a kind: original numbers before quoted ones, then sources of the suite's authors, then those that state the run's
settings, then those with the fewest differences. A setting of `NEEDED` that the source does not state counts as a
difference, and so does another or an unknown number of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from harness.scoring.comparison_published import PublishedComparison, PublishedVerdict
from harness.scoring.published.value import PublishedScore

NEEDED = ("temperature", "top_p", "max_tokens")
"""Settings that every measurement has. If a source does not state such a setting, its value may be anything."""

MAX_BLUNTNESS = 2.0
"""A published score may confirm a run only if its smallest detectable difference is at most this many times that of the
sharpest score. Otherwise nearly every run would agree with a score from one sample of each question.
"""

OWN, EQUAL, OTHER, APART = range(4)
"""The kinds of published scores in the table at the top, in its order."""

VENDOR = "vendor"
"""Name of the model's own authors among several sources."""

MAX_SOURCES = 4
"""Largest number of sources that stand beside one score in a cell; the tables of published scores hold them all."""


class Reported(NamedTuple):
    """One of several sources beside a run. name: its repository, or `VENDOR`."""

    name: str
    comparison: PublishedComparison


class Standing(NamedTuple):
    """The verdict on a run beside all published scores, and the scores that decided it, the nearest first."""

    verdict: PublishedVerdict
    by: Sequence[PublishedComparison]


def in_order(
    comparisons: Iterable[PublishedComparison], suite: str = "", samples: float | None = None
) -> list[PublishedComparison]:
    """Sort the published scores of one model and benchmark by how comparable they are with the run, the nearest first.

    suite: address of the source of the run's suite; empty without a suite. samples: per question, in the run.
    """

    def key(comparison: PublishedComparison) -> tuple[int, bool, bool, bool, int]:
        """The sort key: the kind, then the order within it that the last paragraph of the module states."""
        published = comparison.published
        stated = published.settings if published.stated else {}
        differences = len(comparison.differing) + sum(name not in stated for name in NEEDED)
        differences += samples is None or published.samples != samples
        others = not _same_authors(published.source.url, suite)
        return kind(comparison, suite), published.quoted, others, not comparison.same_settings, differences

    return sorted(comparisons, key=key)


def kind(comparison: PublishedComparison, suite: str = "") -> int:
    """How comparable a published score is with the run: one of the kinds in the module's table.

    `OWN` (printed by the suite's source), `EQUAL` or `OTHER` (same or other settings), `APART` (it measures something
    else). suite: address of the source of the run's suite; empty without one.
    """
    published = comparison.published
    if comparison.apart:
        return APART
    if _is_of(suite, published):
        return OWN
    return EQUAL if comparison.same_settings and not published.quoted else OTHER


def nearest(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> PublishedComparison | None:
    """Return the nearest published score of this metric; None if none is published.

    In a suite it is a score of the suite's own source, or one that states the run's settings. comparisons: `in_order`.
    """
    of_metric = _of_one_run(comparisons, metric)
    if suite:
        of_metric = [entry for entry in of_metric if kind(entry, suite) == EQUAL or _is_of(suite, entry.published)]
    return next(iter(of_metric), None)


def quotation(comparisons: Sequence[PublishedComparison], metric: str, suite: str) -> PublishedComparison | None:
    """Return the score that the suite's source quotes beside its own; None if it quotes none.

    comparisons: `in_order`. suite: address of the suite's source; empty without one.
    """
    of_metric = _of_one_run(comparisons, metric)
    return next((one for one in of_metric if one.published.quoted and one.published.source.url == suite), None)


def mean_over(runs: Sequence[Sequence[PublishedComparison]], metric: str) -> PublishedComparison | None:
    """Return the published score that is the mean over just these runs; None without one.

    runs: the comparisons of each run, which has one value of each setting that the score averages over.
    """
    for entry in runs[0]:
        published = entry.published
        averaged = {name: Counter(values) for name, values in published.settings.items() if isinstance(values, list)}
        of_runs = [other.differing for run in runs for other in run if other.published == published]
        # A setting that makes no difference, such as the seed, is not in `differing`.
        ours = {name: Counter(differing.get(name, (None,))[0] for differing in of_runs) for name in averaged}
        if averaged and published.metric == metric and len(of_runs) == len(runs) and ours == averaged:
            differing = {name: both for name, both in entry.differing.items() if name not in averaged}
            return msgspec.structs.replace(entry, differing=differing)
    return None


def vendor(comparisons: Sequence[PublishedComparison], metric: str, suite: str) -> PublishedComparison | None:
    """Return the score that the model's authors report; None if no source states one.

    Who the authors are depends on the model: a project's table also holds what it measured of others' models. A suite
    (such as LLMEval) often quotes the authors' score beside its own measurement. That quotation comes first, else a
    publication of the authors. comparisons: sorted by `in_order`. metric: such as "pass@1". suite: address of
    the publication whose settings the run follows.
    """
    theirs = [entry for entry in comparisons if entry.published.metric == metric and entry.published.by == "authors"]
    fitting = [entry for entry in theirs if kind(entry, suite) not in (APART, OWN)]
    quoted = [entry for entry in fitting if entry.published.quoted and entry.published.source.url == suite]
    return next(iter([*quoted, *fitting]), None)


def reported_scores(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> list[Reported]:
    """The sources that stand beside a run's score, each once, with its nearest number of this metric.

    The nearest comes first, then the model's own authors, then the others in their order; `MAX_SOURCES` in all. A score
    of another attention budget or prompt stands there only if nothing else is published. comparisons: `in_order`.
    suite: address of the source of the suite that the run belongs to; empty for none.
    """
    of_metric = _of_one_run(comparisons, metric)
    fitting = [entry for entry in of_metric if kind(entry, suite) != APART] or of_metric[:1]
    own = vendor(comparisons, metric, suite)
    firsts: dict[str, PublishedComparison] = {}
    for entry in [*fitting[:1], *([own] if own is not None else []), *fitting]:
        # A source's quotation of somebody else's number is left out, unless it is the authors' or the nearest.
        if entry is own or not entry.published.quoted or entry is fitting[0]:
            firsts.setdefault(VENDOR if entry is own else entry.published.source.repository, entry)
    return [Reported(name, entry) for name, entry in firsts.items()][:MAX_SOURCES]


def overall_verdict(comparisons: Sequence[PublishedComparison], suite: str = "") -> Standing:
    """A run beside all published scores of its model and benchmark: compatible if it agrees with one that counts.

    Three rules choose the scores that count:
    1. of the original scores that can be compared with the run, those of the first kind that occurs, and of these those
       that state the run's settings, if any does; if there are none, the verdict is "cannot say"; in a suite, a score
       of other settings than the run's counts only if the suite's own source states it;
    2. of these, those of pass@1, if there are any: the other metrics are made of the same samples, and pass@k hardly
       tells two models apart where nearly every question is solved in k samples;
    3. of these, the sharp ones (`MAX_BLUNTNESS`), if they agree with the run. A blunt score that disagrees counts, too.

    If the run agrees with none, it is "not compatible" only if it disagrees with a score whose settings are known:
    stated, or those that the run's suite repeats (`OWN`). Otherwise the difference may come from the settings.

    comparisons: `in_order`. suite: address of the source of the run's suite; empty without one.
    """
    decided = [entry for entry in comparisons if entry.verdict != "cannot say" and not entry.published.quoted]
    if suite:
        decided = [entry for entry in decided if kind(entry, suite) in (OWN, EQUAL)]
    first = min((kind(entry, suite) for entry in decided), default=APART)
    listed = [entry for entry in decided if kind(entry, suite) == first]
    listed = [entry for entry in listed if entry.same_settings] or listed
    listed = [entry for entry in listed if entry.published.metric == "pass@1"] or listed
    if not listed:
        return Standing("cannot say", ())
    # A score beside which no possible difference is found is the bluntest.
    smallest = [1.0 if entry.detectable is None else entry.detectable for entry in listed]
    sharp = [entry for entry, points in zip(listed, smallest, strict=True) if points <= MAX_BLUNTNESS * min(smallest)]
    if agreeing := [entry for entry in sharp if entry.verdict == "compatible"]:
        return Standing("compatible", agreeing)
    with_settings = [entry for entry in listed if first == OWN or entry.published.states_settings]
    disagreeing = [entry for entry in with_settings if entry.verdict == "not compatible"]
    return Standing("not compatible" if disagreeing else "cannot say", disagreeing)


def _of_one_run(comparisons: Sequence[PublishedComparison], metric: str) -> list[PublishedComparison]:
    """The scores of this metric that may stand beside a run: a mean over several settings is no run's."""
    return [entry for entry in comparisons if entry.published.metric == metric and not entry.published.averaged]


def _is_of(suite: str, published: PublishedScore) -> bool:
    """Whether the source of the suite states this score itself. suite: its address; empty without one."""
    return published.source.url == suite and not published.quoted


def _same_authors(url: str, suite: str) -> bool:
    """Whether both addresses are of one host and one owner: `github.com/OWNER/…`."""
    return bool(suite) and _owner(url) == _owner(suite)


def _owner(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc.casefold(), parts.path.strip("/").partition("/")[0].casefold()
