"""A run's progress in words: one line for a log, several for a terminal. Pure; `display` puts them on the screen.

Foreign text (ids, addresses, messages of a server) is escaped here, even if it was escaped before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.core import channel
from harness.core.number_text import count_noun, duration, in_percent
from harness.core.sanitize import visible

if TYPE_CHECKING:
    from harness.generation.run_progress import BenchmarkProgress, Progress, ToolProgress
    from harness.progress.running_score import RunningScore
    from harness.scoring.score import Score

MIN_BAR_CELLS = 10
"""Minimum width of a bar, in columns; if there is less room, no bar is shown."""

MAX_BAR_CELLS = 60
"""Maximum width of a bar, in columns."""

MAX_FAILURES = 3
"""Maximum number of failure kinds, and of troubled endpoints, that are shown."""

MAX_CAUSE_CHARS = 240
"""Longest server message that is shown in full, in characters; a longer one is clipped."""

MAX_CAUSE_IN_LINE = 80
"""The same limit for the single line of a log, which has many other parts."""

_BAR = {"done": "█", "in flight": "▓", "retrying": "▒", "given up": "×", "": "·"}


class Span(NamedTuple):
    """A part of a line. kind: its meaning, which chooses its color (`display.STYLES`); empty: plain."""

    text: str
    kind: str = ""


Line = Sequence[Span]


# ---- one line


MAX_CELL_CHARS = 120
"""Longest name of a sweep's cell that is shown in full, in characters; a longer one is clipped."""


def line(progress: Progress, scores: Mapping[str, RunningScore] | None = None, cell: str = "") -> str:
    """Return one line for a log: samples done, tokens/s, requests in flight, failures, scores, time left.

    cell: name of the sweep's cell, at the start of the line; empty for a run outside a sweep.
    """
    begin = f"{visible(cell, MAX_CELL_CHARS)}: " if cell else ""
    parts = [
        f"{begin}{progress.done}/{count_noun(progress.total, 'sample')} ({percent(progress.done, progress.total)})"
    ]
    if progress.tokens_per_s_now is not None:
        parts.append(f"{count_noun(progress.arrived, 'token')}, {progress.tokens_per_s_now:,.0f}/s")
    parts.append(f"{progress.in_flight} in flight")
    retrying = sum(benchmark.retrying for benchmark in progress.benchmarks)
    if retrying:
        parts.append(f"{retrying} to retry")
    if progress.tool is not None and progress.tool.waiting:
        parts.append(_calls(progress.tool))
    if progress.truncated and progress.finished:
        share = f"{progress.truncated / progress.finished:.1%}"
        parts.append(f"{progress.truncated}{_session_share(progress)} ({share}) truncated")
    if progress.failures:
        parts.append(count_noun(progress.failures, "failed request"))
    if progress.given_up:
        parts.append(f"{progress.given_up} given up")
    present = [endpoint for endpoint in progress.endpoints if endpoint.state != "left"]
    troubled = [endpoint for endpoint in present if endpoint.state != "open"]
    if troubled:
        why = visible(troubled[0].why, MAX_CAUSE_IN_LINE)
        wait = min(endpoint.wait_s for endpoint in troubled)
        asked = f", retry in {duration(wait)}" if wait > channel.QUIET_S else ""
        parts.append(f"{len(troubled)} of {len(present)} endpoints waiting{asked}{f' ({why})' if why else ''}")
    stored = {benchmark.name: benchmark.done for benchmark in progress.benchmarks}
    parts += [f"{visible(name, 40)} {score_text(score, stored.get(name))}" for name, score in (scores or {}).items()]
    parts.append(f"{duration(progress.elapsed_s)} so far")
    if ending := _end_text(progress):
        parts.append(ending)
    elif progress.eta is not None and progress.done < progress.total and (not present or len(troubled) < len(present)):
        parts.append(time_left(progress, progress.eta))
    return " · ".join(parts)


def _end_text(progress: Progress) -> str:
    """Return what an ending run is waiting for, how long, and what Ctrl-C does; or when a run without any answering
    endpoint gives up; otherwise "".
    """
    n, grace = progress.in_flight, progress.grace_s
    if not progress.stopping and progress.patience_s is not None:
        return (
            f"gives up if there is no response within {duration(progress.patience_s)}; press Ctrl-C to end it now "
            "without losing replies"
        )
    if not progress.stopping:
        return ""
    if not n:
        return "ending"
    if grace is None:
        return f"ending: {count_noun(n, 'request')} will be allowed to finish, with no time limit"
    return f"ending: {count_noun(n, 'request')} may take {grace:.0f} s to finish; press Ctrl-C again to cancel"


# ---- several lines


def panel(
    progress: Progress,
    width: int,
    height: int,
    scores: Mapping[str, RunningScore] | None = None,
    cell: str = "",
) -> list[Line]:
    """Return at most `height` lines: the cell of a sweep, a bar for each benchmark in `width` columns, then facts.

    The screen cuts off what is longer. The most important facts come first. cell: empty for a run outside a sweep,
    which has no such line.
    """
    first: list[Line] = [[Span(visible(cell, MAX_CELL_CHARS))]] if cell else []
    facts = list(_facts(progress, scores or {}))
    bars = _bars(progress, width, max(1, height - len(first) - min(len(facts), 4)))
    return [*first, *bars, *facts][:height]


def _facts(progress: Progress, scores: Mapping[str, RunningScore]) -> list[Line]:
    """Return the lines below the bars: tokens, time, oldest sample, accuracy, failures, endpoints."""
    now, mean = progress.tokens_per_s_now, progress.tokens_per_s
    tokens = f"{progress.arrived:,}"
    if now is not None and mean is not None:
        tokens += f" · {now:,.0f}/s now · {mean:,.0f}/s mean"
    if progress.finished:
        tokens += f" · {progress.truncated / progress.finished:.1%}{_session_share(progress)} truncated"
    tokens += f" · {progress.in_flight}/{progress.concurrency} in flight"
    present = [endpoint for endpoint in progress.endpoints if endpoint.state != "left"]
    troubled = [endpoint for endpoint in present if endpoint.state != "open"]
    time = duration(progress.elapsed_s)
    if not (progress.stopping or progress.done >= progress.total):
        if present and len(troubled) == len(present):
            time += " · no endpoint is in use"  # The rate does not predict the end while a server says when to return.
        elif progress.eta is not None:
            time += f" · {time_left(progress, progress.eta)}"
        else:
            time += " · too early to estimate the finish time"
    facts: list[Line] = [[Span("tokens    ", "label"), Span(tokens)], [Span("time      ", "label"), Span(time)]]
    if ending := _end_text(progress):
        facts.insert(0, [Span(ending, "retrying")])
    if progress.tool is not None:
        facts.append([Span("tool      ", "label"), Span(_calls(progress.tool))])
    if (oldest := progress.oldest) is not None:
        key = f"{visible(oldest.question_id, 60)}:{oldest.sample_index} of {visible(oldest.benchmark, 40)}"
        facts.append(
            [
                Span("oldest    ", "label"),
                Span(f"{duration(oldest.seconds)} in flight, {count_noun(oldest.tokens, 'token')}: {key}"),
            ]
        )
    stored = {benchmark.name: benchmark.done for benchmark in progress.benchmarks}
    facts += [
        [Span("accuracy  ", "label"), Span(f"{visible(name, 40)} {score_text(score, stored.get(name))}")]
        for name, score in scores.items()
    ]
    for failure in progress.failed[:MAX_FAILURES]:
        latest = visible(failure.latest, MAX_CAUSE_CHARS)
        text = f"{failure.count} × {failure.kind}, latest {duration(failure.ago_s)} ago: {latest}"
        facts.append([Span("failures  ", "label"), Span(text, "given up")])
    for endpoint in troubled[:MAX_FAILURES]:
        wait = f", retry in {endpoint.wait_s:.0f} s" if endpoint.wait_s > 0 else ""
        why = f": {visible(endpoint.why, MAX_CAUSE_CHARS)}" if endpoint.why else ""
        text = f"{visible(endpoint.base_url, 80)} {endpoint.state}{wait}{why}"
        facts.append([Span("endpoint  ", "label"), Span(text, "retrying")])
    return facts


def _bars(progress: Progress, width: int, height: int) -> list[Line]:
    """Return a line for each benchmark; if there are more than `height`, those in progress come first."""
    from rich.cells import cell_len, set_cell_size  # a log needs no bars

    shown = list(progress.benchmarks)
    if len(shown) > height:
        shown = sorted(shown, key=lambda benchmark: not (benchmark.in_flight or benchmark.retrying))[:height]
    names = [visible(benchmark.name, 30) for benchmark in shown]
    counts = [f"{benchmark.done}/{benchmark.total}" for benchmark in shown]
    notes = [_notes(benchmark) for benchmark in shown]
    # Column widths: names, counts, notes; the bar gets what is left after these, the percentage and blanks.
    name_cells = min(max(map(cell_len, names), default=0), max(8, width // 5))
    count_cells = max(map(len, counts), default=0)
    note_cells = max((sum(len(span.text) for span in note) for note in notes), default=0)
    bar_cells = min(MAX_BAR_CELLS, width - name_cells - count_cells - note_cells - 8)
    bars: list[Line] = []
    for benchmark, name, count, note in zip(shown, names, counts, notes, strict=True):
        bar = [*_bar(benchmark, bar_cells), Span(" ")] if bar_cells >= MIN_BAR_CELLS else []
        done = f"{count:>{count_cells}} {percent(benchmark.done, benchmark.total):>4}"
        bars.append([Span(f"{set_cell_size(name, name_cells)} "), *bar, Span(done), *note])
    return bars


def _notes(benchmark: BenchmarkProgress) -> list[Span]:
    """Return the text after a bar: requests in flight, samples to retry, samples given up."""
    notes = []
    if benchmark.in_flight:
        notes += [Span("  "), Span(f"{benchmark.in_flight} in flight", "in flight")]
    if benchmark.retrying:
        notes += [Span("  "), Span(f"{benchmark.retrying} to retry", "retrying")]
    if benchmark.given_up:
        notes += [Span("  "), Span(f"{benchmark.given_up} given up", "given up")]
    return notes


def _bar(benchmark: BenchmarkProgress, cells: int) -> list[Span]:
    """Return a bar of `cells` columns. The done part fills the bar only when all samples are done; every other state
    that occurs gets at least one column.
    """
    total = max(1, benchmark.total)
    counts = {"in flight": benchmark.in_flight, "retrying": benchmark.retrying, "given up": benchmark.given_up}
    columns = {kind: max(1, round(n * cells / total)) if n else 0 for kind, n in counts.items()}
    while sum(columns.values()) > cells:
        columns[max(columns, key=lambda kind: columns[kind])] -= 1
    room = cells - sum(columns.values())
    if benchmark.done < benchmark.total and not any(columns.values()):
        room -= 1  # One column stays empty, since rounding must not make an unfinished bar look finished.
    done = min(benchmark.done * cells // total, room)
    columns = {"done": done, **columns, "": cells - done - sum(columns.values())}
    return [Span(_BAR[kind] * n, kind or "rest") for kind, n in columns.items() if n > 0]


# ---- words


def _calls(tool: ToolProgress) -> str:
    """Return `8 calls running, 12 waiting for memory; 40 interpreters with 5.1 of 18.0 GB`."""
    waiting = f", {tool.waiting} waiting for {tool.waits_for}" if tool.waiting else ""
    memory = f"{tool.memory / 2**30:.1f} of {tool.most_memory / 2**30:.1f} GB"
    kept = f"{count_noun(tool.interpreters, 'interpreter')} with {memory}"
    return f"{count_noun(tool.running, 'call')} running{waiting}; {kept}"


def percent(done: int, total: int) -> str:
    """Whole percent, rounded down: 100% means all."""
    return f"{100 * done // total}%" if total else "100%"


def _session_share(progress: Progress) -> str:
    """Return ` of this session's 48` if an earlier session stored samples, which this session does not count."""
    return f" of this session's {progress.finished:,}" if progress.done > progress.finished else ""


def score_text(score: RunningScore | Score, stored: int | None = None) -> str:
    """Return `61.2% correct so far (58.0 to 64.3), 240 graded`, or `240 of 300 graded` if more samples are stored.

    stored: number of samples on disk now; None: the samples in the score.

    The range is the 95% sampling interval: the likely accuracy if the same questions were asked again. With undecided
    samples, `4.2 to 62.5% correct so far, 24 graded, 14 undecided`: the range from all of these wrong to all right.
    """
    accuracy, bounds = score.accuracy, score.undecided_bounds
    of_stored = f" of {stored:,}" if stored is not None and stored > score.n_samples else ""
    graded = f"{score.n_samples:,}{of_stored} graded"
    if score.n_undecided:
        if score.n_undecided >= score.n_samples:
            return f"{graded}, all undecided"
        undecided = f"{graded}, {score.n_undecided:,} undecided"
        if bounds is None:
            return undecided
        return f"{in_percent(bounds.low)} to {in_percent(bounds.high)}% correct so far, {undecided}"
    if accuracy is None:
        return graded
    low, high = accuracy.sampling or (None, None)
    interval = f" ({in_percent(low)} to {in_percent(high)})" if low is not None and high is not None else ""
    return f"{in_percent(accuracy.value)}% correct so far{interval}, {graded}"


def time_left(progress: Progress, eta: float) -> str:
    """Return `about 9 min left`; `at least` once all samples are requested, since the last are longer than average."""
    return f"{'about' if progress.waiting else 'at least'} {duration(eta)} left"
