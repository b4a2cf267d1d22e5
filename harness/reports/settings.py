"""Tables of run settings (questions, sampling, server) and of run times and tokens, in readable form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.benchmarks.catalog import DATA
from harness.core.contradictions import ARRIVED
from harness.core.number_text import describe_usd, duration
from harness.core.sanitize import visible
from harness.deciding.published_comparison import UNKNOWN
from harness.grading.verifier import RULES
from harness.presets.sampling import sampling_fields
from harness.reports.table import Table, short
from harness.runs.manifest import Provenance
from harness.runs.recorded_settings import (
    BEFORE_FIT,
    MAX_SETTING_CHARS,
    SAMPLING_FROM,
    as_sent,
    describe_plan,
    describe_setting,
    differs,
    flat,
    is_checksum,
    is_set,
    recorded_prices,
    setting_differences,
    settings_by_path,
    value_text,
)
from harness.scoring.client_metrics import Workload
from harness.scoring.grading_settings import current_graders, grading_settings
from harness.tools.table import name_in

if TYPE_CHECKING:
    from harness.reports.inputs import ScoredBenchmark, ScoredRun

_BY_WEIGHT = (
    *("attention_budget", "max_tokens", "context", "enable_thinking", "reasoning_effort"),
    *("prompt", "system_prompt", "samples"),
    *(name for name in sampling_fields() if name != "max_tokens"),
    *("engine", "precision", "dtype"),
)
"""Settings, ordered by their typical effect on a score: a budget that truncates replies costs the most points, followed
by thinking, the prompt, and the kind of sampling. Settings not listed here come last.
"""


_OPTIONS_OF = {
    "questions": ("limit", "filter"),
    "deadlines": ("timeout",),
    "chat_template_kwargs": ("thinking",),
    "extra_body": ("thinking",),
    "calling": ("tool_choice", "parallel_calls"),
    "requests_per_minute": ("rpm",),
    "requests_per_second": ("rate",),
}
"""Setting → the options that set it, if their names differ."""

_OTHERWISE = {
    **dict.fromkeys(("samples", "model"), ""),  # for a run from before they were recorded
    "endpoints": "options",
    **dict.fromkeys(("questions", "questions_made", "prompt"), "card"),
    **dict.fromkeys(("filled_by_server", "stream_usage", "max_tokens_field", "seed_field"), "server"),
}
"""Setting → its source if no option sets it; all other settings are defaults."""

STAR = " *"
"""Appended to the name of a setting that differs between runs."""


def settings_table(runs: Sequence[ScoredRun], benchmark: str) -> Table:
    """The settings of one benchmark, one column per run; a setting that differs between runs ends in an asterisk.

    Settings that no run has are left out, as are checksums, which have a separate table.
    """
    present = [run for run in runs if benchmark in run.benchmarks]
    records = [run.benchmarks[benchmark].record for run in present]
    servers = [run.manifest.provenance for run in present]
    changed = [change for record in records[1:] for change in setting_differences(records[0], record, servers)]
    recorded = _recorded(present, benchmark, checksums=False)
    grading = [_grading(run.benchmarks[benchmark]) for run in present]
    starred = {describe_setting(path) for column in recorded for path in column if differs(path, changed)}
    columns = [column | graded for column, graded in zip(_readable_names(recorded), grading, strict=True)]
    return _run_columns(f"Settings of {short(benchmark)}", "setting", present, columns, starred | _differing(grading))


def differing_table(runs: Sequence[ScoredRun], benchmark: str) -> Table:
    """The rows of `settings_table` that differ between runs."""
    table = settings_table(runs, benchmark)
    rows = tuple((name.removesuffix(STAR), *values) for name, *values in table.rows if name.endswith(STAR))
    return Table(f"Settings of {short(benchmark)} that differ", table.columns, rows)


def checksum_table(runs: Sequence[ScoredRun], benchmark: str) -> Table:
    """The checksums among the settings of one benchmark, one column per run, as in `settings_table`."""
    present = [run for run in runs if benchmark in run.benchmarks]
    columns = _readable_names(_recorded(present, benchmark, checksums=True))
    return _run_columns(f"Checksums of {short(benchmark)}", "setting", present, columns, _differing(columns))


def given_table(run: ScoredRun, benchmark: str) -> Table:
    """The settings of one benchmark in one run, and the source of each: the given `options`, a card, a preset, the
    server, or a default.
    """
    record = run.benchmarks[benchmark].record
    origins, by_path = record.settings.get(SAMPLING_FROM), settings_by_path(record)
    origin_of = dict.fromkeys(record.options or (), "options") | (dict(origins) if isinstance(origins, Mapping) else {})
    otherwise = "" if record.options is None else "default"
    origin_of |= {name: "options" for name, given in _OPTIONS_OF.items() if not origin_of.keys().isdisjoint(given)}
    origin_of = (_OTHERWISE if otherwise else {}) | origin_of
    if DATA in record.settings:
        origin_of["questions_made"] = "options"
    if BEFORE_FIT in by_path:
        origin_of[BEFORE_FIT] = origin_of.get("max_tokens", "")
        origin_of["max_tokens"] = "server"  # the value sent is derived from the server's context
    words = {describe_setting(path): value for path, value in by_path.items() if not is_checksum(path)}
    rows = [
        (
            visible(name, MAX_SETTING_CHARS),
            value_text(value),
            visible(str(origin_of.get(name.partition(".")[0], otherwise)), 80),
        )
        for name, value in words.items()
        if is_set(value)
    ]
    return Table(f"Settings of {short(benchmark)}", ("setting", "value", "set by (blank: not recorded)"), tuple(rows))


def rubrics(runs: Sequence[ScoredRun], benchmark: str) -> dict[str, str]:
    """The rubrics that judges used for one benchmark: name of the judge's prompt → text."""
    present = [run.benchmarks[benchmark] for run in runs if benchmark in run.benchmarks]
    return {
        str(part.score.judge_errors.settings.get("prompt")): part.rubric
        for part in present
        if part.rubric and part.score is not None and part.score.judge_errors is not None
    }


def run_table(runs: Sequence[ScoredRun]) -> Table:
    """Time, requests, tokens and machine, one column per run."""
    columns = [dict(_facts(run)) for run in runs]
    return _run_columns("The run" if len(runs) == 1 else "The runs", "", runs, columns, _differing(columns))


def failure_table(runs: Sequence[ScoredRun]) -> Table:
    """Failed requests by run, endpoint and kind; without rows if no request failed."""
    rows = [
        (
            short(run.label),
            visible(failures.endpoint, MAX_SETTING_CHARS),
            visible(failures.kind, MAX_SETTING_CHARS) + (f" {failures.status}" if failures.status else ""),
            f"{failures.count:,}",
            visible(failures.message, MAX_SETTING_CHARS),
        )
        for run in runs
        for failures in run.history.failures
    ]
    columns = ("run", "endpoint", "kind", "requests", "the latest said")
    return Table("Failed requests", columns, tuple(rows), (), frozenset((3,)))


def flat_settings(run: ScoredRun, benchmark: str) -> dict[str, object]:
    """Identity (as sent) and settings of one benchmark's samples by short name: `max_tokens` for `sampling.max_tokens`.

    If two fields have the same short name, the identity's field gets it, and the other keeps its full path.
    """
    record = run.benchmarks[benchmark].record
    by_name: dict[str, object] = {}
    for tree in (describe_plan(record), as_sent(record.identity), record.settings):
        leaves = flat(tree)
        last = Counter(name.rsplit(".", 1)[-1] for name in leaves)
        for name, value in leaves.items():
            tail = name.rsplit(".", 1)[-1]
            is_free = last[tail] == 1 and tail not in by_name
            by_name[tail if is_free else name] = value
    return by_name


def settings_beside(run: ScoredRun, benchmark: str, stated: Iterable[str]) -> dict[str, object]:
    """The settings of `flat_settings` and the conditions of the run's server, to compare with a published score.

    stated: names of the settings reported with the published score; settings that an imported run does not record are
    "unknown". The models of a jury count as its judge.
    """
    settings = flat_settings(run, benchmark)
    unknown = dict.fromkeys(stated, UNKNOWN) if run.benchmarks[benchmark].record.imported else {}
    tool = name_in(run.benchmarks[benchmark].record.identity)
    named = {"tool": tool} if tool else {}
    score = run.benchmarks[benchmark].score
    if score is not None and score.judging is not None:
        judge = score.judging.settings
        named["judge"] = ", ".join([str(judge.get("model")), *judge.get("jury", ())])
    return {**unknown, **settings, **named, **run.suite.conditions}


def by_weight(setting: tuple[str, object]) -> tuple[int, str]:
    """Sort key of a (name, value) pair: the settings with the largest effect on a score come first."""
    name = setting[0].rsplit(".", 1)[-1]
    return (_BY_WEIGHT.index(name) if name in _BY_WEIGHT else len(_BY_WEIGHT)), setting[0]


def describe_differing(differing: Mapping[str, tuple[object, object]]) -> list[str]:
    """The differing settings, each as `NAME: OURS here, THEIRS there`, those with the largest effect on a score first.

    differing: name → (run's value, published score's value).
    """
    return [
        f"{short(name)}: {value_text(ours)} here, {value_text(theirs)} there"
        for name, (ours, theirs) in sorted(differing.items(), key=by_weight)
    ]


def _recorded(runs: Sequence[ScoredRun], benchmark: str, *, checksums: bool) -> list[dict[str, object]]:
    """The settings of the benchmark in each run, by path: either the checksums, or all others."""
    every = (settings_by_path(run.benchmarks[benchmark].record) for run in runs)
    return [{path: value for path, value in each.items() if is_checksum(path) == checksums} for each in every]


def _readable_names(columns: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The same settings, by their readable names."""
    return [{describe_setting(path): value for path, value in column.items()} for column in columns]


def _grading(benchmark: ScoredBenchmark) -> dict[str, object]:
    """The grading settings of a benchmark, by name; empty if it was graded only by rules."""
    score = benchmark.score
    if score is None or all(name.startswith(f"{RULES}/") and "+" not in name for name in current_graders(score)):
        return {}
    return grading_settings(score)


def _differing(columns: Sequence[Mapping[str, object]]) -> set[str]:
    """The names whose displayed values differ between these columns."""
    names = {name for column in columns for name in column}
    return {name for name in names if len({value_text(column.get(name)) for column in columns}) > 1}


def _run_columns(
    title: str, head: str, runs: Sequence[ScoredRun], columns: Sequence[Mapping[str, object]], starred: Collection[str]
) -> Table:
    """A table with one column per run, without rows for which no run has a value.

    head: the heading of the first column. columns: each run's values by name. starred: the names that differ; their
    rows have a star, which the title explains.
    """
    every = dict.fromkeys(name for column in columns for name in column)
    rows = [
        (
            visible(name, MAX_SETTING_CHARS) + (STAR if name in starred else ""),
            *(value_text(column.get(name)) for column in columns),
        )
        for name in every
        if any(is_set(column.get(name)) for column in columns)
    ]
    if any(row[0].endswith(STAR) for row in rows):
        title += " (* differs between runs)"
    return Table(title, (head, *(short(run.label) for run in runs)), tuple(rows))


def _facts(run: ScoredRun) -> Iterator[tuple[str, object]]:
    """Yield the known facts about a run as (name, value): its effort, sessions, failures, machine and servers."""
    manifest, history = run.manifest, run.history
    yield "model", manifest.model
    scores = run.scores
    workloads = [score.workload for score in scores if score.workload is not None]
    if workloads:
        yield from _effort(workloads, run)
    else:
        yield "created", manifest.created
        yield "times and tokens", None if scores else "run `harness score` to add them"
    yield "cost of all sessions", cost_of_sessions(run)
    for score in scores:
        if score.judging is not None and score.judging.cost is not None:
            yield f"{score.judging.name} of {score.benchmark}", score.judging.cost.text
    if history.sessions:
        left = f", {history.unfinished} without an end" if history.unfinished else ""
        yield "sessions", f"{history.sessions}{left}"
        yield "retried requests", history.retries
        yield "failed requests", sum(failures.count for failures in history.failures)
    yield "stopped early", history.stopped or None
    arrived = {path: history.notes[note] for path, note in ARRIVED.items()}
    yield "confirmed by the server", [f"{path} ({n:,} replies)" for path, n in arrived.items() if n]
    yield "harness", manifest.harness_version
    yield from flat(manifest.environment).items()
    yield from _servers(manifest.provenance)


def _servers(provenance: Provenance) -> Iterator[tuple[str, object]]:
    """The facts reported by the run's servers, each with all its values in the order of the sessions."""
    for kind, whose in (("model", "server's model"), ("host", "server")):
        facts = [getattr(server, kind) for server in provenance.servers.values()]
        for name in dict.fromkeys(name for fact in facts for name in fact):
            values = dict.fromkeys(value_text(fact[name]) for fact in facts if is_set(fact.get(name)))
            yield f"{whose}: {name}", "; ".join(values)
    yield "other models accepted", [change for session in provenance.sessions for change in session.accepted]


def _effort(workloads: Sequence[Workload], run: ScoredRun) -> Iterator[tuple[str, object]]:
    """Yield a run's time, requests, tokens and cost as (name, value)."""
    begun = datetime.fromtimestamp(min(workload.started for workload in workloads), UTC)
    ended = datetime.fromtimestamp(max(workload.ended for workload in workloads), UTC)
    yield "first request (UTC)", f"{begun:%Y-%m-%d %H:%M}"
    yield "last reply (UTC)", f"{ended:%Y-%m-%d %H:%M}"
    yield "time with requests in flight", " + ".join(duration(workload.busy_s) for workload in workloads)
    yield "total samples", sum(workload.n_samples for workload in workloads)
    yield "requests for them", sum(workload.requests for workload in workloads)
    tokens_in = sum(workload.prompt_tokens for workload in workloads)
    tokens_out = sum(workload.completion_tokens for workload in workloads)
    stated = sum(workload.n_stated for workload in workloads)
    samples = sum(workload.n_samples for workload in workloads)
    partly = "" if stated == samples else f" (for the {stated:,} samples with reported usage)"
    yield "tokens in", f"{tokens_in:,}{partly}" if stated else None
    yield "tokens out", f"{tokens_out:,}{partly}" if stated else None
    thinking = sum(workload.reasoning_tokens for workload in workloads)
    yield "of these, reasoning", f"{thinking:,} ({thinking / tokens_out:.0%})" if thinking and tokens_out else None
    cached = sum(workload.cached_tokens or 0 for workload in workloads)
    yield "tokens in, cached", f"{cached:,} ({cached / tokens_in:.0%})" if cached and tokens_in else None
    cost = _usd(run, tokens_in, tokens_out, cached)
    yield "cost of the samples", None if cost is None else describe_usd(cost)
    n_right = sum(score.n_correct or 0 for score in run.scores)
    yield "cost per right answer", describe_usd(cost / n_right) if cost is not None and n_right else None


def cost_of_sessions(run: ScoredRun) -> str | None:
    """The cost in USD of all ended sessions of a run, including replies that were not stored; None without prices."""
    spent = run.history.spent
    cost = _usd(run, *(spent[f"{of}_tokens"] for of in ("prompt", "completion", "cached"))) if spent else None
    # Some requests reported no token counts.
    hedge = "at most " if spent["n_unstated"] or spent["n_bounded"] else "about " if spent["n_estimated"] else ""
    return None if cost is None else f"{hedge}{describe_usd(cost)}"


def cost_of_judges(run: ScoredRun) -> str | None:
    """The cost in USD of the judges of a run's scores; None without prices."""
    costs = [score.judging.cost for score in run.scores if score.judging is not None]
    amounts = [cost.usd for cost in costs if cost is not None and cost.usd is not None]
    return describe_usd(sum(amounts)) if amounts else None


def _usd(run: ScoredRun, *tokens: int) -> float | None:
    """The cost in USD at the prices of the first benchmark that records them; None without prices. tokens: of prompts,
    of replies, and of prompts from a cache.
    """
    prices = [recorded_prices(benchmark.record) for benchmark in run.benchmarks.values()]
    stated = next(filter(None, prices), None)
    return None if stated is None else stated.usd(*tokens)
