"""Orders the published scores of a run's model and benchmark: which are shown next to the run, and their combined
verdict.

Tables, CSV, JSON, reports and verdicts use the same order. Each published score is of one kind, and the kinds are
ordered as follows:

| kind | which scores |
| --- | --- |
| own | reported by the suite's own source, for the run's attention budget (number of tokens attention can access) |
| equal | its source reports its settings, and ours match all of them |
| other | different or unreported settings, or a number that the source only quotes |
| apart | another attention budget, a different reported prompt, or a mean over settings: it decides nothing |

Within a kind, original numbers come before quoted ones, then sources by the suite's authors, then sources that report
the run's settings, then those with the fewest differences. A `NEEDED` setting that the source does not report counts as
a difference, as does a different or unknown number of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from harness.deciding.published import PublishedScore
from harness.deciding.published_comparison import PublishedComparison, PublishedVerdict

NEEDED = ("temperature", "top_p", "max_tokens")
"""Settings that every measurement has. If a source does not report one of them, its value may be anything."""

MAX_BLUNTNESS = 2.0
"""A published score may confirm a run only if its smallest detectable difference is at most this many times that of the
sharpest score. Otherwise nearly every run would agree with a score based on one sample per question.
"""

OWN, EQUAL, OTHER, APART = range(4)
"""The kinds of published scores, in the order of the module's table."""

VENDOR = "vendor"
"""Name used for the model's own authors in a list of sources."""

MAX_SOURCES = 4
"""Largest number of sources shown next to one score in a cell; the tables of published scores list them all."""


class Reported(NamedTuple):
    """One of several sources shown next to a run. name: its repository, or `VENDOR`."""

    name: str
    comparison: PublishedComparison


class Standing(NamedTuple):
    """The combined verdict of all published scores on a run, and the scores that decided it, nearest first."""

    verdict: PublishedVerdict
    by: Sequence[PublishedComparison]


def in_order(
    comparisons: Iterable[PublishedComparison], suite: str = "", samples: float | None = None
) -> list[PublishedComparison]:
    """Sort the published scores of one model and benchmark by how comparable they are with the run, nearest first.

    suite: address of the source of the run's suite; empty without a suite. samples: number per question in the run.
    """

    def key(comparison: PublishedComparison) -> tuple[int, bool, bool, bool, int]:
        """The sort key: the kind, then the order within it that the module docstring describes."""
        published = comparison.published
        stated = published.settings if published.stated else {}
        differences = len(comparison.differing) + sum(name not in stated for name in NEEDED)
        differences += samples is None or published.samples != samples
        others = not suite or _owner(published.source.url) != _owner(suite)
        return kind(comparison, suite), published.quoted, others, not comparison.same_settings, differences

    return sorted(comparisons, key=key)


def kind(comparison: PublishedComparison, suite: str = "") -> int:
    """How comparable a published score is with the run: one of the kinds in the module's table.

    `OWN` (printed by the suite's source), `EQUAL` or `OTHER` (same or other settings), `APART` (it measures something
    else). suite: address of the source of the run's suite; empty without one.
    """
    published = comparison.published
    if comparison.mismatch:
        return APART
    if _is_of(suite, published):
        return OWN
    return EQUAL if comparison.same_settings and not published.quoted else OTHER


def nearest(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> PublishedComparison | None:
    """Return the nearest published score of this metric; None if none is published.

    For a suite, the score must be from the suite's own source or have the run's settings. comparisons: sorted by
    `in_order`.
    """
    of_metric = _of_one_run(comparisons, metric)
    if suite:
        of_metric = [entry for entry in of_metric if kind(entry, suite) == EQUAL or _is_of(suite, entry.published)]
    return next(iter(of_metric), None)


def quotation(comparisons: Sequence[PublishedComparison], metric: str, suite: str) -> PublishedComparison | None:
    """Return the score that the suite's source quotes next to its own; None if it quotes none.

    comparisons: sorted by `in_order`. suite: address of the suite's source; empty without one.
    """
    of_metric = _of_one_run(comparisons, metric)
    return next((one for one in of_metric if one.published.quoted and one.published.source.url == suite), None)


def mean_over(runs: Sequence[Sequence[PublishedComparison]], metric: str) -> PublishedComparison | None:
    """Return the published score that is the mean over exactly these runs; None if there is none.

    runs: the comparisons of each run. Each run has one value of every setting that the score averages over.
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
    """Return the score that the model's authors report; None if there is none.

    Who the authors are depends on the model: a project's table also contains its measurements of other authors' models.
    A suite (such as LLMEval) often quotes the authors' score next to its own measurement. This quotation comes first,
    then the authors' own publications. comparisons: sorted by `in_order`. metric: such as "pass@1". suite: address of
    the publication whose settings the run follows.
    """
    theirs = [entry for entry in comparisons if entry.published.metric == metric and entry.published.by == "authors"]
    fitting = [entry for entry in theirs if kind(entry, suite) not in (APART, OWN)]
    quoted = [entry for entry in fitting if entry.published.quoted and entry.published.source.url == suite]
    return next(iter([*quoted, *fitting]), None)


def reported_scores(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> list[Reported]:
    """The sources shown next to a run's score, each once, with its nearest score of this metric.

    The nearest source comes first, then the model's own authors, then the others in order, at most `MAX_SOURCES` in
    all. A score for another attention budget or prompt is shown only if nothing else is published. comparisons: sorted
    by `in_order`. suite: address of the source of the run's suite; empty without one.
    """
    of_metric = _of_one_run(comparisons, metric)
    fitting = [entry for entry in of_metric if kind(entry, suite) != APART] or of_metric[:1]
    own = vendor(comparisons, metric, suite)
    firsts: dict[str, PublishedComparison] = {}
    for entry in [*fitting[:1], *([own] if own is not None else []), *fitting]:
        # A quoted score is left out unless it is the authors' score or the nearest one.
        if entry is own or not entry.published.quoted or entry is fitting[0]:
            firsts.setdefault(VENDOR if entry is own else entry.published.source.repository, entry)
    return [Reported(name, entry) for name, entry in firsts.items()][:MAX_SOURCES]


def overall_verdict(comparisons: Sequence[PublishedComparison], suite: str = "") -> Standing:
    """The combined verdict on a run: compatible if it agrees with a published score that counts.

    Three rules choose the scores that count:
    1. of the original scores that can be compared with the run, those without a named server, if there are any; of
       these, the scores of the first kind that occurs; and of these, the scores with the run's settings, if there are
       any. If no score is left, the verdict is "cannot say". For a suite, a score with other settings than the run's
       counts only if the suite's own source reports it;
    2. of these, the pass@1 scores, if there are any: the other metrics use the same samples, and pass@k hardly
       distinguishes two models when nearly every question is solved in k samples;
    3. of these, the sharp scores (`MAX_BLUNTNESS`), if they agree with the run. A blunt score that disagrees counts,
       too.

    If the run agrees with no score, it is "not compatible" only if it disagrees with a score whose settings are known:
    either reported, or reproduced by the run's suite (`OWN`). Otherwise the settings may explain the difference.

    comparisons: sorted by `in_order`. suite: address of the source of the run's suite; empty without one.
    """
    decided = [entry for entry in comparisons if entry.verdict != "cannot say" and not entry.published.quoted]
    # Agreeing with another party's broken server does not make this one trustworthy.
    decided = [entry for entry in decided if not entry.published.server] or decided
    if suite:
        decided = [entry for entry in decided if kind(entry, suite) in (OWN, EQUAL)]
    first = min((kind(entry, suite) for entry in decided), default=APART)
    listed = [entry for entry in decided if kind(entry, suite) == first]
    listed = [entry for entry in listed if entry.same_settings] or listed
    listed = [entry for entry in listed if entry.published.metric == "pass@1"] or listed
    if not listed:
        return Standing("cannot say", ())
    # A score with no detectable difference is the bluntest.
    smallest = [1.0 if entry.detectable is None else entry.detectable for entry in listed]
    sharp = [entry for entry, points in zip(listed, smallest, strict=True) if points <= MAX_BLUNTNESS * min(smallest)]
    if agreeing := [entry for entry in sharp if entry.verdict == "compatible"]:
        return Standing("compatible", agreeing)
    with_settings = [entry for entry in listed if first == OWN or entry.published.states_settings]
    disagreeing = [entry for entry in with_settings if entry.verdict == "not compatible"]
    return Standing("not compatible" if disagreeing else "cannot say", disagreeing)


def _of_one_run(comparisons: Sequence[PublishedComparison], metric: str) -> list[PublishedComparison]:
    """The scores of this metric that can be compared with a single run; means over several settings are left out."""
    return [entry for entry in comparisons if entry.published.metric == metric and not entry.published.averaged_over]


def _is_of(suite: str, published: PublishedScore) -> bool:
    """Whether the suite's source reports this score as its own. suite: its address; empty without one."""
    return published.source.url == suite and not published.quoted


def _owner(url: str) -> tuple[str, str]:
    """The host and the owner in an address such as `github.com/OWNER/…`."""
    parts = urlsplit(url)
    return parts.netloc.casefold(), parts.path.strip("/").partition("/")[0].casefold()
