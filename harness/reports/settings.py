"""Tables of the settings of runs (questions, sampling, server) and of their times and tokens, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.core.inert import visible
from harness.presets.sampling import sampling_fields
from harness.reports.tables import Table, short
from harness.runs import setting_names
from harness.runs.manifest import Provenance
from harness.scoring.workload import Workload

if TYPE_CHECKING:
    from harness.reports.scored import ScoredRun

MAX_SETTING_CHARS = 400
"""Longest setting, such as a system prompt, that a table shows whole, in characters; a longer one is clipped."""

MAX_SETTING_DEPTH = 6
"""Levels of nested settings that get a row each; deeper levels share one cell."""

MAX_LISTED = 12
"""Largest number of items of a list in a cell; the others are counted."""

_BY_WEIGHT = (
    "attention_budget",
    "max_tokens",
    "fitted_max_tokens",
    "context",
    "enable_thinking",
    "reasoning_effort",
    "prompt",
    "system_prompt",
    "samples",
    *(name for name in sampling_fields() if name != "max_tokens"),
    "engine",
    "precision",
    "dtype",
)
"""Settings, ordered by how much they tend to move a score: a budget that cuts replies costs the most points; then
thinking, prompt, and the kind of sampling. A setting that is not listed here comes last.
"""

_DECIDED_BY = {"sampling_from": "sampling.", "chosen_by": "", "spelt_by": ""}
"""Part of a run's record that says who decided settings → the beginning of the paths of these settings."""

_PARTS = {"base_url": "address"}
"""Key of a value that is a mapping → its name for people, if the key is not a word."""

_DIGEST_CHARS = 64
"""Length of a SHA-256 in hexadecimal; a table shows only the first 12 characters of a value of this length."""


def settings_table(runs: Sequence[ScoredRun], benchmark: str) -> Table:
    """The settings of one benchmark, one column per run; a field in which runs differ ends in an asterisk.

    Settings that no run has are left out.
    """
    present = [run for run in runs if benchmark in run.benchmarks]
    columns = [_by_words(settings_by_path(run, benchmark)) for run in present]
    return _side_by_side(f"Settings of {short(benchmark)}", "setting", present, columns)


def decided_table(run: ScoredRun, benchmark: str) -> Table:
    """The settings of one benchmark of one run, each with who decided it."""
    deciders = _deciders(run.benchmarks[benchmark].record.settings)
    rows = [
        (visible(setting_names.in_words(path), MAX_SETTING_CHARS), in_words(value), _decider(path, deciders))
        for path, value in settings_by_path(run, benchmark).items()
        if _is_set(value)
    ]
    return Table(f"Settings of {short(benchmark)}", ("setting", "value", "decided by"), tuple(rows))


def run_table(runs: Sequence[ScoredRun]) -> Table:
    """Time, requests, tokens and machine, one column per run."""
    return _side_by_side("The run" if len(runs) == 1 else "The runs", "", runs, [dict(_facts(run)) for run in runs])


def failure_table(runs: Sequence[ScoredRun]) -> Table | None:
    """Failed requests by run, endpoint and kind; None if no request failed."""
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
    return Table("Failed requests", columns, tuple(rows), (), frozenset((3,))) if rows else None


def flat_settings(run: ScoredRun, benchmark: str) -> dict[str, object]:
    """Identity and settings of one benchmark's samples by short name: `max_tokens` for `sampling.max_tokens`.

    If two fields share a short name, the identity's field gets it and the other keeps its whole path.
    """
    record = run.benchmarks[benchmark].record
    by_name: dict[str, object] = {}
    for tree in (_plan(run, benchmark), record.identity, record.settings):
        flat = _flat(tree)
        last = Counter(name.rsplit(".", 1)[-1] for name in flat)
        for name, value in flat.items():
            tail = name.rsplit(".", 1)[-1]
            is_free = last[tail] == 1 and tail not in by_name
            by_name[tail if is_free else name] = value
    return by_name


def settings_by_path(run: ScoredRun, benchmark: str) -> dict[str, object]:
    """Plan, identity and settings of one benchmark's samples by path, without who decided them."""
    record = run.benchmarks[benchmark].record
    settings = {name: value for name, value in record.settings.items() if name not in _DECIDED_BY}
    return {**_plan(run, benchmark), **_flat(record.identity), **_flat(settings)}


def settings_beside(run: ScoredRun, benchmark: str, stated: Iterable[str]) -> dict[str, object]:
    """The settings of `flat_settings` and the conditions of the run's server, to compare with a published score.

    stated: names of the settings that the published score states; those that an imported run does not record are
    "unknown".
    """
    unknown = dict.fromkeys(stated, "unknown") if run.benchmarks[benchmark].record.imported else {}
    return {**unknown, **flat_settings(run, benchmark), **run.suite.conditions}


def by_weight(setting: tuple[str, object]) -> tuple[int, str]:
    """Sort key of a (name, value) pair: the settings that move a score most come first."""
    name = setting[0].rsplit(".", 1)[-1]
    return (_BY_WEIGHT.index(name) if name in _BY_WEIGHT else len(_BY_WEIGHT)), setting[0]


def differing_in_words(differing: Mapping[str, tuple[object, object]]) -> list[str]:
    """The settings that differ in words, each as `NAME: OURS here, THEIRS there`, those that move a score most first.

    differing: name → (of the run, of the published score).
    """
    return [
        f"{short(name)}: {in_words(ours)} here, {in_words(theirs)} there"
        for name, (ours, theirs) in sorted(differing.items(), key=by_weight)
    ]


def in_words(value: object) -> str:
    """The value of a setting as a person says it, inert and bounded: `yes`, `32,768`, `not set`, `a; b`."""
    return visible(_text(value), MAX_SETTING_CHARS)


def duration(seconds: float) -> str:
    """A time in words: `42 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _text(value: object) -> str:
    """The value of a setting in words, not yet made inert: `not set`, `yes`, `32,768`."""
    match value:
        case None | "":
            return "not set"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) < 10**15 else str(value)
        case float():
            return f"{value:,.10g}"
        case str():
            kind, colon, hexadecimal = value.rpartition(":")
            return f"{kind}{colon}{hexadecimal[:12]}" if _is_digest(hexadecimal) else value
        case Mapping():
            given = [(str(key), inner) for key, inner in value.items() if _is_set(inner)]
            shown = [f"{_PARTS.get(key, key)} {_text(inner)}" for key, inner in given[:MAX_LISTED]]
            return ", ".join(shown) or "none"
        case list() | tuple():
            more = f" and {len(value) - MAX_LISTED} more" if len(value) > MAX_LISTED else ""
            return "; ".join(map(_text, value[:MAX_LISTED])) + more or "none"
    return str(value)


def _plan(run: ScoredRun, benchmark: str) -> dict[str, object]:
    """The plan of one benchmark, with the chosen questions counted."""
    plan = run.benchmarks[benchmark].record.plan
    questions = "all" if plan.question_ids is None else f"{len(plan.question_ids):,} chosen"
    return {"samples": plan.samples, "questions": questions}


def _deciders(settings: Mapping[str, object]) -> dict[str, str]:
    """Path of a setting → who decided it, as a benchmark's record says."""
    return {
        beginning + path: in_words(who)
        for part, beginning in _DECIDED_BY.items()
        if isinstance(tree := settings.get(part), Mapping)
        for path, who in _flat(tree).items()
    }


def _decider(path: str, deciders: Mapping[str, str]) -> str:
    """Who decided a setting: options, a preset, the benchmark's card, the server, a default.

    A record names some settings together, by the beginning of their paths. "not recorded": runs of earlier versions.
    """
    while path not in deciders and not setting_names.always_decided_by(path):
        path, dot, _ = path.rpartition(".")
        if not dot:
            return "not recorded"
    return deciders.get(path) or setting_names.always_decided_by(path)


def _by_words(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings by their names for people."""
    return {setting_names.in_words(path): value for path, value in settings.items()}


def _side_by_side(title: str, head: str, runs: Sequence[ScoredRun], columns: Sequence[Mapping[str, object]]) -> Table:
    """A table of settings with a column for each run; a star marks settings that differ.

    head: the heading of the first column. columns: the settings of each run, name → value.
    """
    every = dict.fromkeys(name for column in columns for name in column)
    names = [name for name in every if any(_is_set(column.get(name)) for column in columns)]
    rows = []
    for name in names:
        values = [in_words(column.get(name)) for column in columns]
        rows.append((visible(name, MAX_SETTING_CHARS) + (" *" if len(set(values)) > 1 else ""), *values))
    notes = ("* differs between the runs",) if any(row[0].endswith(" *") for row in rows) else ()
    return Table(title, (head, *(short(run.label) for run in runs)), tuple(rows), notes)


def _facts(run: ScoredRun) -> Iterator[tuple[str, object]]:
    """List as (name, value) what is known about a run: its effort, sessions, failures, machine and servers."""
    manifest, history = run.manifest, run.history
    yield "model", manifest.model
    scores = [benchmark.score for benchmark in run.benchmarks.values() if benchmark.score is not None]
    workloads = [score.workload for score in scores if score.workload is not None]
    if workloads:
        yield from _effort(workloads, run)
    else:
        yield "created", manifest.created
    if history.sessions:
        left = f", {history.unfinished} without an end" if history.unfinished else ""
        yield "sessions", f"{history.sessions}{left}"
        yield "requests made again", history.retries
        yield "requests that failed", sum(failures.count for failures in history.failures)
    yield "stopped early", history.stopped or None
    yield "harness", manifest.harness_version
    yield from ((setting_names.fact_in_words(name), value) for name, value in _flat(manifest.environment).items())
    yield from _servers(manifest.provenance)


def _servers(provenance: Provenance) -> Iterator[tuple[str, object]]:
    """The facts that the run's servers stated, each with all its values in the order of the sessions."""
    for kind, whose in (("model", "model of the server"), ("host", "server")):
        facts = [getattr(server, kind) for server in provenance.servers.values()]
        for name in dict.fromkeys(name for fact in facts for name in fact):
            values = dict.fromkeys(in_words(fact[name]) for fact in facts if _is_set(fact.get(name)))
            yield f"{whose}: {setting_names.fact_in_words(name)}", "; ".join(values)
    yield "other models accepted", [change for session in provenance.sessions for change in session.accepted]


def _effort(workloads: Sequence[Workload], run: ScoredRun) -> Iterator[tuple[str, object]]:
    """List as (name, value) a run's time, requests, tokens and cost."""
    begun = datetime.fromtimestamp(min(workload.started for workload in workloads), UTC)
    ended = datetime.fromtimestamp(max(workload.ended for workload in workloads), UTC)
    yield "first request (UTC)", f"{begun:%Y-%m-%d %H:%M}"
    yield "last reply (UTC)", f"{ended:%Y-%m-%d %H:%M}"
    yield "time with requests in flight", " + ".join(duration(workload.busy_s) for workload in workloads)
    yield "samples in all", sum(workload.n_samples for workload in workloads)
    yield "requests for them", sum(workload.requests for workload in workloads)
    tokens_in = sum(workload.prompt_tokens for workload in workloads)
    tokens_out = sum(workload.completion_tokens for workload in workloads)
    stated = sum(workload.n_stated for workload in workloads)
    samples = sum(workload.n_samples for workload in workloads)
    partly = "" if stated == samples else f" (of {stated:,} samples whose server states them)"
    yield "tokens in", f"{tokens_in:,}{partly}" if stated else None
    yield "tokens out", f"{tokens_out:,}{partly}" if stated else None
    thinking = sum(workload.reasoning_tokens for workload in workloads)
    yield "of them thinking", f"{thinking:,} ({thinking / tokens_out:.0%})" if thinking and tokens_out else None
    yield "cost", _cost(run, tokens_in, tokens_out)


def _cost(run: ScoredRun, tokens_in: int, tokens_out: int) -> str | None:
    """The cost in USD at the prices (USD per million tokens) of the first benchmark that records them; None without.

    tokens_in, tokens_out: prompt and completion tokens of the run.
    """
    for benchmark in run.benchmarks.values():
        prices = benchmark.record.settings.get("prices")
        if isinstance(prices, Mapping):
            prompt, completion = prices.get("prompt"), prices.get("completion")
            if isinstance(prompt, int | float) and isinstance(completion, int | float):
                return f"{(tokens_in * prompt + tokens_out * completion) / 1e6:,.2f} USD"
    return None


def _flat(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """The tree of settings as one mapping, with the names joined by dots."""
    leaves: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value and prefix.count(".") < MAX_SETTING_DEPTH:
            leaves.update(_flat(value, f"{prefix}{key}."))
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def _is_set(value: object) -> bool:
    """Whether the value is not None and not empty; 0 and False are set."""
    return value is not None and value != "" and value != [] and value != {}


def _is_digest(value: str) -> bool:
    """Whether the text looks like a SHA-256 in hexadecimal."""
    return len(value) == _DIGEST_CHARS and all(c in "0123456789abcdef" for c in value)
