"""How a run's progress reads: one line for a log, several for a terminal. Pure text; `display` puts it on the screen.

Foreign text (ids, addresses, a server's words) is made visible here, whatever was done to it before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.generation.forecast import TimeLeft
    from harness.generation.progress import BenchmarkProgress, Progress
    from harness.showing.running_score import RunningScore

LEAST_BAR_CELLS = 10
"""A narrower bar says nothing, and is left out."""

MOST_BAR_CELLS = 60

MAX_FAILURES = 3
"""Kinds of failures and endpoints in trouble that are shown, each; the rest are counted."""

MAX_CAUSE_CHARS = 240

_BAR = {"done": "█", "in flight": "▓", "retrying": "▒", "given up": "×", "": "·"}
_ASCII_BAR = {"done": "#", "in flight": ">", "retrying": "?", "given up": "x", "": "."}


class Span(NamedTuple):
    """A stretch of a line. kind: what it stands for, by which it is coloured; empty: plain."""

    text: str
    kind: str = ""


Line = Sequence[Span]


# ---- one line


def line(progress: Progress, scores: Mapping[str, RunningScore] | None = None) -> str:
    """Samples done of all, tokens/s, in flight, what went wrong, when it ends. For a log: it stands alone."""
    parts = [f"{progress.done}/{progress.total} samples ({percent(progress.done, progress.total)})"]
    if progress.tokens_per_s_now is not None:
        parts.append(f"{counted(progress.arrived, 'token')}, {progress.tokens_per_s_now:,.0f}/s")
    parts.append(f"{progress.in_flight} in flight")
    retrying = sum(one.retrying for one in progress.benchmarks)
    if retrying:
        parts.append(f"{retrying} to ask again")
    if progress.truncated:
        parts.append(f"{_share(progress.truncated, progress.finished)} truncated")
    if progress.continued.samples:
        parts.append(continued(*progress.continued))
    if progress.failures:
        parts.append(counted(progress.failures, "failed request"))
    if progress.given_up:
        parts.append(f"{progress.given_up} given up")
    present = [e.state for e in progress.endpoints if e.state != "left"]
    n_waiting = len(present) - present.count("open")
    if n_waiting:
        parts.append(f"{n_waiting} of {len(present)} endpoints waiting")
    parts += [f"{visible(name, 40)} {score_in_words(one)}" for name, one in (scores or {}).items()]
    parts.append(f"{duration(progress.elapsed_s)} so far")
    if ending := _ending(progress):
        parts.append(ending)
    elif progress.eta is not None and progress.done < progress.total:
        parts.append(f"{time_range(progress.eta)} left")
    return " · ".join(parts)


def _ending(progress: Progress) -> str:
    """What is waited for, how long, and what Ctrl-C does, where nothing more is asked; empty otherwise."""
    n, grace = progress.in_flight, progress.grace_s
    if not progress.stopping:
        return "paused: `harness ctl … resume` goes on" if progress.paused else ""
    if not n:
        return "ending"
    if grace is None:
        return f"ending: {n} in flight have as long as they take"
    return f"ending: {n} in flight have {grace:.0f} s; Ctrl-C again ends them now (they stay owed)"


# ---- several lines


def panel(
    progress: Progress,
    width: int,
    height: int,
    scores: Mapping[str, RunningScore] | None = None,
    *,
    ascii_only: bool = False,
) -> list[Line]:
    """At most `height` lines of at most `width` columns: a bar for each benchmark, then the facts, weightiest first."""
    facts = list(_facts(progress, scores or {}))
    bars = _bars(progress, width, max(1, height - min(len(facts), 4)), ascii_only)
    return [_cut(one, width) for one in [*bars, *facts]][:height]


def _facts(progress: Progress, scores: Mapping[str, RunningScore]) -> list[Line]:
    now, mean = progress.tokens_per_s_now, progress.tokens_per_s
    tokens = f"{progress.arrived:,}"
    if now is not None and mean is not None:
        tokens += f" · {now:,.0f}/s now · {mean:,.0f}/s mean"
    if progress.finished:
        tokens += f" · {progress.truncated / progress.finished:.1%} truncated"
    tokens += f" · {progress.in_flight}/{progress.concurrency} in flight"
    left = "too early to say when it ends"
    if progress.stopping or progress.paused or progress.done >= progress.total:
        left = ""
    elif progress.eta is not None:
        left = f"{time_range(progress.eta)} left, likely {duration(progress.eta.likely_s)}"
    facts: list[Line] = [[Span("tokens    ", "label"), Span(tokens)]]
    facts.append([Span("time      ", "label"), Span(" · ".join(filter(None, (duration(progress.elapsed_s), left))))])
    if progress.continued.samples:
        facts.append([Span("salvage   ", "label"), Span(continued(*progress.continued))])
    if ending := _ending(progress):
        facts.insert(0, [Span(ending, "retrying")])
    if (oldest := progress.oldest) is not None:
        key = f"{visible(oldest.question_id, 60)}:{oldest.sample_index} of {visible(oldest.benchmark, 40)}"
        facts.append(
            [
                Span("oldest    ", "label"),
                Span(f"{duration(oldest.seconds)} in flight, {counted(oldest.tokens, 'token')}: {key}"),
            ]
        )
    facts += [
        [Span("accuracy  ", "label"), Span(f"{visible(name, 40)} {score_in_words(one)}")]
        for name, one in scores.items()
    ]
    for one in progress.failed[:MAX_FAILURES]:
        said = f"{one.count} × {one.kind}, latest {duration(one.ago_s)} ago: {visible(one.latest, MAX_CAUSE_CHARS)}"
        facts.append([Span("failures  ", "label"), Span(said, "given up")])
    if (n := len(progress.failed) - MAX_FAILURES) > 0:
        facts.append([Span("failures  ", "label"), Span(f"{n} other kinds", "given up")])
    troubled = [one for one in progress.endpoints if one.state not in ("open", "left")]
    for place in troubled[:MAX_FAILURES]:
        wait = f", asked again in {place.wait_s:.0f} s" if place.wait_s > 0 else ""
        why = f": {visible(place.why, MAX_CAUSE_CHARS)}" if place.why else ""
        said = f"{visible(place.base_url, 80)} {place.state}{wait}{why}"
        facts.append([Span("endpoint  ", "label"), Span(said, "retrying")])
    if len(troubled) > MAX_FAILURES:
        facts.append([Span("endpoint  ", "label"), Span(f"{len(troubled) - MAX_FAILURES} more waiting", "retrying")])
    return facts


def _bars(progress: Progress, width: int, height: int, ascii_only: bool) -> list[Line]:
    """A line for each benchmark; where they are too many, those under way, and the rest counted."""
    shown = list(progress.benchmarks)
    hidden: list[BenchmarkProgress] = []
    if len(shown) > height:
        active = [one for one in shown if one.in_flight or one.retrying]
        others = [one for one in shown if not (one.in_flight or one.retrying)]
        shown, hidden = (active + others)[: height - 1], (active + others)[height - 1 :]
    names = [visible(one.name, 30) for one in shown]
    room = min(max(map(cells_of, names), default=0), max(8, width // 5))
    counts = [f"{one.done}/{one.total}" for one in shown]
    counted = max(map(len, counts), default=0)
    notes = [_notes(one) for one in shown]
    longest = max((sum(len(span.text) for span in note) for note in notes), default=0)
    cells = min(MOST_BAR_CELLS, width - room - counted - longest - 8)
    bars: list[Line] = []
    for one, name, count, note in zip(shown, names, counts, notes, strict=True):
        label = name if cells_of(name) <= room else clipped(name, room)
        label += " " * (room - cells_of(label))
        bar = [*_bar(one, cells, ascii_only), Span(" ")] if cells >= LEAST_BAR_CELLS else []
        bars.append([
            Span(f"{label} "), *bar, Span(f"{count:>{counted}} {percent(one.done, one.total):>4}"), *note,
        ])  # fmt: skip
    if hidden:
        done = sum(one.done == one.total for one in hidden)
        bars.append(
            [Span(f"and {len(hidden)} more benchmarks: {done} done, {len(hidden) - done} under way or to come")]
        )
    return bars


def _notes(one: BenchmarkProgress) -> list[Span]:
    found = []
    if one.in_flight:
        found += [Span("  "), Span(f"{one.in_flight} in flight", "in flight")]
    if one.retrying:
        found += [Span("  "), Span(f"{one.retrying} to ask again", "retrying")]
    if one.given_up:
        found += [Span("  "), Span(f"{one.given_up} given up", "given up")]
    return found


def _bar(one: BenchmarkProgress, cells: int, ascii_only: bool) -> list[Span]:
    """Never full before all is done; what there is of a kind, however little, has a cell."""
    signs = _ASCII_BAR if ascii_only else _BAR
    total = max(1, one.total)
    others = {"in flight": one.in_flight, "retrying": one.retrying, "given up": one.given_up}
    spans = {kind: max(1, round(n * cells / total)) if n else 0 for kind, n in others.items()}
    room = cells - (one.done < one.total and not any(spans.values()))
    while sum(spans.values()) > cells:
        spans[max(spans, key=lambda kind: spans[kind])] -= 1
    spans = {"done": min(one.done * cells // total, room - sum(spans.values())), **spans}
    spans[""] = cells - sum(spans.values())
    return [Span(signs[kind] * n, kind or "rest") for kind, n in spans.items() if n > 0]


def _cut(one: Line, width: int) -> Line:
    kept: list[Span] = []
    for span in one:
        room = width - sum(cells_of(other.text) for other in kept)
        if cells_of(span.text) > room:
            kept.append(Span(clipped(span.text, room), span.kind))
            break
        kept.append(span)
    return kept


def cells_of(text: str) -> int:
    """Columns that `text` takes on a terminal: two for a wide character, as of Chinese."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def clipped(text: str, room: int) -> str:
    """The beginning of `text` in at most `room` columns, the last one an ellipsis."""
    kept = list(text[: max(0, room - 1)])
    while kept and cells_of("".join(kept)) > room - 1:
        kept.pop()
    return "".join(kept) + "…" if room > 0 else ""


# ---- words


def counted(n: int, what: str) -> str:
    """`1 token`, `2,000 tokens`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def continued(n: int, tokens: int) -> str:
    """`continued 12 half-written answers, 41k tokens kept`."""
    kept = f"{tokens / 1000:.0f}k" if tokens >= 10_000 else f"{tokens:,}"
    return f"continued {n} half-written {'answer' if n == 1 else 'answers'}, {kept} tokens kept"


def percent(done: int, total: int) -> str:
    """Whole percent, rounded down: 100 % means all."""
    return f"{100 * done // total}%" if total else "100%"


def _share(n: int, total: int) -> str:
    return f"{n} ({n / total:.1%})" if total else str(n)


def score_in_words(one: RunningScore) -> str:
    low, high = one.sampling_interval or (None, None)
    interval = f" ({100 * low:.1f} to {100 * high:.1f})" if low is not None and high is not None else ""
    return f"{100 * one.accuracy:.1f}% right so far{interval}, {one.n_samples} graded"


def time_range(left: TimeLeft) -> str:
    """`9 to 14 min`, `40 s to 3 min`: rounded outwards, so that what is said holds whenever the range does."""
    least, most = printed_range(left)
    first, last = duration(least), duration(most)
    if first == last:
        return last
    number, *unit = first.split(" ")
    return f"{number if unit == last.split(' ')[1:] and len(unit) == 1 else first} to {last}"


def printed_range(left: TimeLeft) -> tuple[int, int]:
    """The seconds that `time_range` says."""
    return _rounded(left.least_s, math.floor), _rounded(left.most_s, math.ceil)


def _rounded(seconds: float, way: Callable[[float], int]) -> int:
    return way(seconds) if way(seconds) < 100 else 60 * way(seconds / 60)


def duration(seconds: float) -> str:
    """`42 s`, `12 min`, `3 h 05 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else _minutes(round(seconds / 60))


def _minutes(minutes: int) -> str:
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
