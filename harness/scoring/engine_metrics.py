"""The engine's metrics of a run, from readings of its metrics pages (`runs.engine_pages`), and acceptance by replies.

Each metric is a ratio of sums over all sessions and endpoints of the run. If a counter fell, vanished, or contradicts
another counter, the metrics that depend on it are unknown, never 0. One comparison guards against everything else
(other users, a hidden replica, an unnoticed restart): the number of tokens on the pages is compared with the number
that the client received.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise, starmap
from typing import NamedTuple

import msgspec
import numpy as np

from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.runs.engine_pages import EnginePage, EngineReading, Series
from harness.scoring.stats import Array, between, t_factor
from server_launchers.engines.metrics import APPEARING, GAUGES

TOLERANCE = 0.02
"""Largest accepted difference between the tokens on the pages and the client's count, as a fraction of the larger
number. Closed streams and tokens hidden by stop words can explain that much; on an idle vLLM or llama.cpp server, it is
0.
"""

PLATEAU = 0.9
"""The client's tokens per second are measured while at least this fraction of the allowed requests is in flight: a tail
of two long replies halves the rate of a whole run and says nothing about the server.
"""

DEAD_DRAFTER = 0.01
"""If less than this fraction of a drafter's proposed tokens is accepted, speculative decoding has no effect."""

MIN_READINGS = 3
"""Minimum number of readings with requests in flight for the mean of a gauge."""

OFTEN = 0.5
"""A server state that occurs in more than this fraction of the readings is reported as a cause."""

Quantities = dict[str, float | None]
"""Quantity → its increase; None if unknown."""


class EngineMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's metrics over a run. A metric is None if the metrics page does not include it, or if it is unknown
    for a reason given in `remarks`.
    """

    engine: str
    """Engine name, taken from the prefix of its metrics. Multiple names are joined by "+"."""
    tokens: float | None
    """Number of generated tokens, according to the metrics pages; None if readings are missing."""
    client_tokens: int
    """Number of generated tokens, as counted by the client."""
    own: bool
    """Whether the two token counts agree. If they do, the metrics cover only this run."""
    tokens_per_s: float | None
    """`tokens` divided by the total duration of all sessions, in seconds."""
    client_tokens_per_s: float | None
    """Tokens per second received by the client while it was at or near its maximum number of requests in flight."""
    acceptance_length: float | None
    """Mean tokens per decoding step, over steps that used a draft."""
    acceptance_rate: float | None
    """Fraction of draft tokens that were accepted."""
    draft_share: float | None
    """Fraction of decoding steps that used a draft."""
    cache_hit_rate: float | None
    """Fraction of prompt tokens found in the prefix cache."""
    first_token_s: float | None
    """Mean time to first token, in seconds."""
    gap_s: float | None
    """Mean time between tokens, as measured by the engine, in seconds."""
    preempted: float | None
    """Number of requests that the server preempted."""
    running: float | None
    """Mean number of running requests, averaged over readings taken while requests were in flight."""
    waiting: float | None
    """Mean number of waiting requests, averaged over readings taken while requests were in flight."""
    waiting_share: float | None
    """Fraction of readings with at least one waiting request, among readings taken while requests were in flight."""
    kv_cache: float | None
    """Peak fraction of the KV cache in use, among readings taken while requests were in flight."""
    concurrency: int
    """Maximum number of requests that the client allowed in flight."""
    remarks: tuple[str, ...] = ()
    """Explanations of unusual or unknown metrics, one sentence each."""


def rise(before: Series, after: Series) -> float | None:
    """The increase of a counter over all its series; new series start at 0. None if any series is unknown, fell, or
    vanished.
    """
    if not after or not before.keys() <= after.keys():
        return None
    total = 0.0
    for labels, value in after.items():
        first = before.get(labels, 0.0)
        if value is None or first is None or value < first:
            return None
        total += value - first
    return total


def rises(pages: Sequence[EnginePage], model: str) -> tuple[Quantities, str]:
    """The increases between an endpoint's first and last page in a session, and a remark; all unknown after a restart.
    model: the run's name for the model.
    """
    if len(pages) < 2:
        return {}, "the metrics page could be read only once"
    name, names, remark = visible(model), [*pages[-1].models], ""
    if name not in names and len(names) > 1:
        shown = " and ".join(sorted(map(_quote, names[:3])))
        return {}, f"the metrics page has counters for {shown}, but not for {_quote(model)}"
    if name not in names:
        (name,) = names
        remark = f"the metrics page calls the model {_quote(name)}" if name else ""
    counted, starts = [page.models.get(name, {}) for page in pages], [page.started for page in pages]
    marks, falls = {page.started for page in pages} - {""}, sum(starmap(_fell, pairwise(counted)))
    if falls >= _rising(counted) or len(marks) < len([mark for mark, _ in groupby(filter(None, starts))]):
        return (
            {},
            "its counters fall and rise because several replicas share this address; give each its own address",
        )
    if falls or len(marks) > 1:
        return {}, "the server was restarted during the run, or several replicas share this address"
    first, last = counted[0], counted[-1]
    quantities = {each: rise(first[each], last.get(each, {})) for each in first if each not in GAUGES}
    for each in APPEARING.get(pages[-1].engine, ()):
        if each not in first and "queries" in quantities:
            quantities[each] = rise({}, last.get(each, {"": 0.0}))
    if unclear := sorted(each for each, rose in quantities.items() if rose is None):
        remark = f"{', '.join(unclear)} unknown: a counter disappeared, appeared twice, or was not a number"
    for served in {*names} - {name}:
        if rise(*(page.models.get(served, {}).get("tokens", {}) for page in (pages[0], pages[-1]))) != 0:
            other = "so its times and rates include requests from outside this run"
            remark = f"the server also served {_quote(served)}, {other}"
    return quantities, remark


def _fell(before: Mapping[str, Series], after: Mapping[str, Series]) -> bool:
    """Whether any counter is below its earlier value."""
    return any(
        (value := after.get(quantity, {}).get(labels)) is not None and old is not None and value < old
        for quantity, series in before.items()
        if quantity not in GAUGES
        for labels, old in series.items()
    )


def _rising(pages: Sequence[Mapping[str, Series]]) -> int:
    """The minimum number of servers that explains these pages, if each server's counters never fall."""
    latest = list[Mapping[str, Series]]()
    for page in pages:
        others = [each for each in latest if _fell(each, page)]
        # Of the servers that the page may come from, choose the one that has counted the most tokens.
        fitting = sorted((each for each in latest if each not in others), key=_tokens)
        latest = [*others, *fitting[:-1], page]
    return len(latest)


def _tokens(page: Mapping[str, Series]) -> float:
    """The number of tokens on a page, as far as known."""
    return sum(filter(None, page.get("tokens", {}).values()))


class Moment(NamedTuple):
    """The load between two readings.

    minutes: time of the run at the end of the moment, without pauses between sessions. seconds: its length. tokens:
    number received by the client in this time. is_full: nearly all allowed requests were in flight. is_idle: no request
    was in flight at its end. running, waiting, kv_cache: requests at all endpoints, and the fullest cache, according to
    their latest pages; None: unknown.
    """

    minutes: float
    seconds: float
    tokens: int
    is_full: bool
    is_idle: bool
    running: float | None
    waiting: float | None
    kv_cache: float | None


def moments(readings: Iterable[EngineReading]) -> list[Moment]:
    """The load of a run over time."""
    passed, begun = list[Moment](), 0.0
    ordered = sorted(readings, key=lambda reading: (reading.session, reading.time))
    for _, session in groupby(ordered, key=lambda reading: reading.session):
        latest, before = dict[str, EnginePage](), None
        for line in session:
            latest[line.endpoint] = line.page
            if before is not None and line.time - before.time < MIN_MOMENT_S:
                continue
            if before is not None:
                in_flight = min(before.in_flight, line.in_flight)
                load = [_gauge([*latest.values()], name) for name in ("running", "waiting", "kv_cache")]
                passed.append(
                    Moment(
                        begun + line.time / 60,
                        line.time - before.time,
                        line.arrived - before.arrived,
                        in_flight >= PLATEAU * max(before.concurrency, line.concurrency, 1),
                        not line.in_flight,
                        *load,
                    )
                )
            before = line
        begun = passed[-1].minutes if passed else begun
    return passed


MIN_MOMENT_S = 0.1
"""Readings of several endpoints that are closer together than this form one moment."""


def _gauge(pages: Sequence[EnginePage], quantity: str) -> float | None:
    """A gauge over all models and replicas of these pages: the sum, or the maximum for fractions; None if unknown."""
    series = [each.get(quantity, {}) for page in pages for each in page.models.values()]
    values = [value for each in series for value in each.values() if value is not None]
    return (max if quantity == "kv_cache" else sum)(values) if values else None


def engine_metrics(readings: Iterable[EngineReading], model: str) -> EngineMetrics | None:
    """The metrics of a run; None if no page was read. model: the name in the run's requests."""
    readings = list(readings)
    segments: dict[tuple[float, str], list[EngineReading]] = defaultdict(list)
    for reading in readings:
        segments[reading.session, reading.endpoint].append(reading)
    if not segments:
        return None
    sums, remarks, engines = list[Quantities](), list[str](), set[str]()
    for (_, endpoint), lines in segments.items():
        pages = [line.page for line in lines if line.page.models]
        engines.update(page.engine for page in pages)
        quantities, remark = (
            rises(pages, model) if pages else ({}, f"it reports no metrics ({visible(lines[-1].page.why, 200)})")
        )
        sums.append(quantities)
        if remark and (sentence := f"{visible(endpoint, 200)}: {remark}") not in remarks:
            remarks.append(sentence)
    total = {quantity: _sum([each.get(quantity) for each in sums]) for quantity in set().union(*sums)}
    return _metrics(total, readings, "+".join(sorted(engines)), remarks)


def _metrics(total: Quantities, readings: Sequence[EngineReading], engine: str, remarks: list[str]) -> EngineMetrics:
    """The metrics, computed from the total increases over all endpoints and sessions."""
    get, load = total.get, moments(readings)
    ends = {reading.session: reading for reading in sorted(readings, key=lambda reading: reading.time)}
    ours, seconds = sum(end.arrived for end in ends.values()), sum(moment.seconds for moment in load)
    tokens, accepted, drafts, drafted = get("tokens"), get("accepted"), get("drafts"), get("drafted")
    own = tokens is not None and abs(tokens - ours) <= TOLERANCE * max(tokens, ours)
    is_part = tokens is not None and not own and tokens < ours
    if tokens is not None and is_part:
        remarks.append(
            f"the metrics pages show {1 - tokens / ours:.0%} fewer tokens than the client received: "
            "a replica is missing"
        )
    elif tokens and not own:
        remarks.append(
            f"{1 - ours / tokens:.0%} of the tokens on the metrics pages are not from this run: "
            "other clients used the server"
        )
    length = _ratio(accepted, drafts, 1.0) if "verified" not in total else _ratio(tokens, get("verified"))
    if (rate := _ratio(accepted, drafted)) is not None and rate > 1:
        rate = length = None
        remarks.append("more draft tokens were accepted than proposed: the counters contradict each other")
    elif rate is not None and rate < DEAD_DRAFTER:
        remarks.append(
            f"only {accepted:,.0f} of {drafted:,.0f} draft tokens were accepted, so speculative decoding has no effect"
        )
    queries = _sum([get("hits"), get("misses")]) if "misses" in total else get("queries")
    if (hit_rate := _ratio(get("hits"), queries)) is not None and not 0 < hit_rate <= 1:
        remarks.append(
            f"cache hit rate unknown: {get('hits'):,.0f} of {queries:,.0f} prompt tokens were counted as cached"
        )
        hit_rate = None
    if preempted := get("preempted"):
        n = count_noun(round(preempted), "request")
        remarks.append(f"the server preempted {n}: send fewer requests at a time, or give it more memory")
    running, waiting, caches = (
        [value for moment in load if not moment.is_idle and (value := getattr(moment, name)) is not None]
        for name in ("running", "waiting", "kv_cache")
    )
    waited = _mean([value > 0 for value in waiting])
    if waited is not None and waited > OFTEN:
        remarks.append(f"requests were queued in {waited:.0%} of the readings: the server is overloaded")
    full = [moment for moment in load if moment.is_full]
    return EngineMetrics(
        engine=engine,
        tokens=None if is_part else tokens,
        client_tokens=ours,
        own=own,
        tokens_per_s=None if is_part else _ratio(tokens, seconds),
        client_tokens_per_s=_ratio(sum(moment.tokens for moment in full), sum(moment.seconds for moment in full)),
        acceptance_length=length,
        acceptance_rate=rate,
        draft_share=_ratio(drafts or None, None if tokens is None or accepted is None else tokens - accepted),
        cache_hit_rate=hit_rate,
        first_token_s=_ratio(get("first_token_s"), get("first_token_n")),
        gap_s=_ratio(get("gap_s"), get("gap_n")),
        preempted=None if is_part else preempted,
        running=_mean(running),
        waiting=_mean(waiting),
        waiting_share=waited,
        kv_cache=max(caches, default=None),
        concurrency=max(each.concurrency for each in readings),
        remarks=tuple(remarks),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; None if any value is unknown."""
    return None if None in values else sum(value for value in values if value is not None)


def _ratio(part: float | None, whole: float | None, plus: float = 0.0) -> float | None:
    """`part` divided by `whole`, plus `plus`; None if one is unknown, or `whole` is 0."""
    return None if part is None or not whole else plus + part / whole


def _mean(values: Sequence[float]) -> float | None:
    """The mean of a gauge; None for fewer than `MIN_READINGS` readings."""
    return sum(values) / len(values) if len(values) >= MIN_READINGS else None


def _quote(name: str) -> str:
    """A model's name, quoted for a sentence."""
    return f'"{visible(name, 60)}"'


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens per speculative decoding step in one run, over replies that report both counts. Repeated runs on one
    server vary more than this error suggests (see `repeat`).
    """

    length: float
    """Tokens divided by steps."""
    error: float | None
    """Standard error for new questions of the same kind, with questions as clusters; None for a single question."""
    low: float | None
    """Lower endpoint of the 95% interval; None if there is only one question."""
    high: float | None
    """Upper endpoint of the 95% interval; None if there is only one question."""
    steps: int
    """Number of steps."""
    n_questions: int
    """Number of questions."""
    by_question: dict[str, tuple[float, float]] | msgspec.UnsetType = msgspec.UNSET
    """Token and step counts by question; absent in scores from earlier versions."""


def speculation(tokens: Array, steps: Array, questions: Sequence[str]) -> Speculation | None:
    """The ratio of sums over questions, with its error from `stats.between`; None if there are no steps.

    tokens, steps: counts of each reply, NaN if not reported. questions: each reply's question id.
    """
    stated = ~np.isnan(tokens) & ~np.isnan(steps) & (steps > 0)
    if not stated.any():
        return None
    names, index = np.unique(np.asarray(questions, dtype=object)[stated].astype(str), return_inverse=True)
    of_tokens, of_steps = (np.bincount(index, each[stated]) for each in (tokens, steps))
    n, total = len(of_steps), float(of_steps.sum())
    length, error, reach = float(of_tokens.sum()) / total, None, None
    if n > 1:
        spread = between(of_tokens / of_steps, weights=of_steps.astype(float))
        error = math.sqrt(float(spread.variance))
        reach = t_factor(spread.freedom) * error
    return Speculation(
        length=length,
        error=error,
        low=None if reach is None else length - reach,
        high=None if reach is None else length + reach,
        steps=round(total),
        n_questions=n,
        by_question=dict(zip(names.tolist(), zip(of_tokens.tolist(), of_steps.tolist(), strict=True), strict=True)),
    )


class Change(msgspec.Struct, frozen=True):
    """A ratio or difference between two runs, paired by question."""

    value: float
    """The ratio or difference."""
    low: float
    """Lower endpoint of the 95% interval for new questions of the same kind."""
    high: float
    """Upper endpoint of the 95% interval for new questions of the same kind."""


def paired_ratio(before: Array, after: Array) -> Change | None:
    """The second run's ratio of sums divided by the first run's; None for fewer than two questions, or if a sum is 0.

    before, after: (2, Q), both sums of each question. Linearized (Cochran 1977, Sampling Techniques, 6.4).
    """
    n, sums = before.shape[-1], [each.sum(axis=-1) for each in (before, after)]
    if n < 2 or not all(each.all() for each in sums):
        return None
    old, new = (each[0] / whole[0] - each[1] / whole[1] for each, whole in zip((before, after), sums, strict=True))
    reach = t_factor(n - 1) * math.sqrt(n / (n - 1) * float(((new - old) ** 2).sum()))
    ratio = float(sums[1][0] / sums[1][1] / (sums[0][0] / sums[0][1]))
    return Change(ratio, ratio * math.exp(-reach), ratio * math.exp(reach))


def acceptance_change(before: Speculation | msgspec.UnsetType, after: Speculation | msgspec.UnsetType) -> Change | None:
    """The ratio of two acceptance lengths over their shared questions; None if one of them is unknown."""
    if not before or not after or not before.by_question or not after.by_question:
        return None
    of_both = before.by_question, after.by_question
    both = [[of[name] for name in of_both[0] if name in of_both[1]] for of in of_both]
    return paired_ratio(*(np.array(each).reshape(-1, 2).T for each in both))


Side = tuple[EngineMetrics | msgspec.UnsetType, Speculation | msgspec.UnsetType]
"""A score's engine metrics, and the decoding steps counted from its replies."""


def engines_beside(before: Side, after: Side) -> list[str]:
    """Sentences that compare a run's acceptance length and tokens per second with its baseline's; empty if none is
    known. The ratio has a 95% interval, paired by question, if replies have counts.
    """
    (old, old_steps), (new, new_steps) = before, after
    if not old or not new:
        return []
    if old.concurrency != new.concurrency:
        load = f"up to {new.concurrency} requests in flight, baseline {old.concurrency}"
        return [f"the engine metrics are not compared because the load differs ({load})"]
    sentences = []
    if old_steps and new_steps and (change := acceptance_change(old_steps, new_steps)):
        lengths = f"acceptance length {new_steps.length:.3f}, baseline {old_steps.length:.3f}"
        ends = f"{change.low:.3f} to {change.high:.3f} for new questions"
        sentences.append(f"{lengths}: ratio {change.value:.3f} ({ends}; different runs of one server differ by more)")
    pairs = [("tokens/s at full load", old.client_tokens_per_s, new.client_tokens_per_s)]
    if not sentences and old.own and new.own:
        pairs.append(("acceptance length", old.acceptance_length, new.acceptance_length))
    elif not sentences and old.acceptance_length and new.acceptance_length:
        sentences.append(
            "the acceptance length is not compared because other clients used a server or a replica is missing"
        )
    for name, first, second in pairs:
        if first and second is not None:
            values = f"{name} {second:.4g}, baseline {first:.4g}"
            sentences.append(f"{values}: ratio {second / first:.3f} (its variation within a run is unknown)")
    return sentences
