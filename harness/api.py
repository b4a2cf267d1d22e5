"""The Python front door: what the command line does, as functions. `harness` hands on the names that stand here.

run = harness.run("aime24:64", base_url="http://127.0.0.1:8000")
harness.score(run)
harness.report([run])

Long: it is the one front door, a function for each command.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from harness.asking import servers
from harness.asking.keywords import (
    AuditKeywords,
    CompareKeywords,
    ExportKeywords,
    FilePath,
    GradeKeywords,
    MergeKeywords,
    PlanKeywords,
    PublishedUpdateKeywords,
    ReportKeywords,
    RunKeywords,
    ScoreKeywords,
    VerifyKeywords,
)
from harness.asking.options import (
    AuditOptions,
    CompareOptions,
    ExportOptions,
    GradeOptions,
    MergeOptions,
    PlanOptions,
    PublishedUpdateOptions,
    RaceRules,
    RepeatsRules,
    ReportOptions,
    RunOptions,
    ScoreOptions,
    SizesRules,
    VerifyOptions,
    verbs,
)
from harness.asking.options import JudgeOptions as Judge
from harness.asking.options.verbs import OnRay
from harness.asking.session import Ran
from harness.asking.watching import Watcher
from harness.core.errors import HarnessError, Interrupted, ServerError, UsageError
from harness.core.options import Options, options_of
from harness.exports import Written
from harness.exports import export as export_run
from harness.generation.progress import Progress
from harness.grading import Verdict
from harness.reports import Report
from harness.reports.plots import draw
from harness.results import Experiment, Pilot, Run, Scores, Swept
from harness.runs import RunFolder
from harness.runs.merging import Merged
from harness.showing.collecting import Collecting, OnProgress
from harness.verbs import race as races
from harness.verbs import repeats as experiments
from harness.verbs import score as scoring
from harness.verbs.again import options_again, python_call
from harness.verbs.audit import Audit
from harness.verbs.audit import audit as audit_run
from harness.verbs.compare import RunComparison, Verified
from harness.verbs.compare import compare as compare_runs
from harness.verbs.compare import verify as verify_run
from harness.verbs.grade import grade as grade_response
from harness.verbs.merge import merge as merge_runs
from harness.verbs.pilot import pilot as take_pilot
from harness.verbs.plan import Needed, plan_from
from harness.verbs.published import PublicScores, PublishedUpdate
from harness.verbs.published import published as published_scores
from harness.verbs.published import update as update_index
from harness.verbs.report import report as report_of
from harness.verbs.run import run_at
from harness.verbs.second_opinions import second_opinions
from harness.verbs.sweep import whole

if TYPE_CHECKING:
    from server_launchers.keeping.supervisor import RunningServer


def run(
    benchmarks: str | Sequence[str] = (),
    *,
    on: str | None = None,
    shards: int | None = None,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Run:
    """Sample completions, resumably: the same call again asks only for what is missing.

    benchmarks: "aime24:64,math500" (a name, with samples a question if you like), or card files. The options are
    those of `harness run`, by the same names; see `RunOptions`. on: "ray" or "ray://HOST:PORT", a cluster whose nodes
    ask `shards` parts of the questions (default: one a node), without progress. progress: show it as the command does,
    in a notebook below the cell. on_progress: called now and then.
    Raises `UsageError`, `ServerError`, `StoreError`, `StoppedByRule` (a budget, the canary), `Interrupted`.
    """
    run_options, where = _run_options(benchmarks, options), OnRay.of(on=on, shards=shards)
    return _run(run_options, Collecting(on_progress, shown=progress and on is None), where)


def _run_options(benchmarks: Any, options: Mapping[str, Any]) -> RunOptions:
    verbs.check("run", options)
    return RunOptions.of(benchmarks=benchmarks, **options)


def _run(options: RunOptions, watcher: Collecting, where: OnRay) -> Run:
    with contextlib.closing(watcher):
        return _ended(run_at(where, options, watcher), watcher)


def _ended(ran: Ran, watcher: Collecting) -> Run:
    sampled = ran.sampled
    return Run(
        path=ran.folder,
        model=ran.model,
        outcome=sampled.outcome,
        reached=sampled.reached,
        missed=sampled.missed,
        warnings=(*watcher.warnings, *map(str, sampled.outcome.warnings)),
    )


async def run_async(
    benchmarks: str | Sequence[str] = (),
    *,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Run:
    """`run`, without blocking the caller's loop; on_progress is called on that loop.

    Cancelled, it ends the session (what is stored counts) before it raises `asyncio.CancelledError`.
    """
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()

    def progressed(now: Progress) -> None:
        if cancelled.is_set():
            raise Interrupted("the task that runs it was cancelled; what is stored counts.", signal.SIGINT)
        if on_progress is not None:
            loop.call_soon_threadsafe(on_progress, now)

    run_options = _run_options(benchmarks, options)
    working = asyncio.ensure_future(
        asyncio.to_thread(_run, run_options, Collecting(progressed, shown=progress), OnRay())
    )
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        cancelled.set()
        with contextlib.suppress(HarnessError):
            await working
        raise


def pilot(
    benchmarks: str | Sequence[str] = (),
    *,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Pilot:
    """Two samples a question, which count towards the run, and a forecast of the rest: time, tokens, money, error."""
    watcher = Collecting(on_progress, shown=progress)
    with contextlib.closing(watcher):
        piloted = take_pilot(_run_options(benchmarks, options), watcher)
    warnings = (*watcher.warnings, *map(str, piloted.outcome.warnings))
    stored = Run(path=piloted.folder, model=piloted.model, outcome=piloted.outcome, warnings=warnings)
    return Pilot(run=stored, forecast=piloted.forecast, expected=dict(piloted.expected))


def score(
    source: Run | RunFolder | Merged | FilePath,
    *,
    judge: Judge | None = None,
    **options: Unpack[ScoreKeywords],
) -> Scores:
    """Grade and aggregate a run, or a file of another tool's outputs (then the columns, the tool or the card matter;
    what came of it stands in `FILE.scored`, for `report`, `compare` and `verify`).

    judge: a model that decides what the rules leave undecided. The options are those of `harness score`, by the same
    names; on: "ray" or "ray://HOST:PORT", a cluster whose nodes grade a run.
    Raises `UsageError`, `StoreError`, and with a judge what `run` raises.
    """
    verbs.check("score", options)
    score_options = ScoreOptions.of(**options)
    trackers = scoring.trackers_named(score_options.track)
    path = Path(source)
    scoring.check([path], score_options)
    scored = scoring.score(path, score_options, judge, Watcher())
    for tracker in trackers.values():
        scoring.tell(scored, tracker)
    opinions = (
        {}
        if score_options.also is None
        else second_opinions(scored.source, score_options.also, score_options.also_python)
    )
    reports = () if scored.judged is None else tuple(scored.judged.reports)
    return Scores(path.name, tuple(scored.scores), reports, opinions, scored.owed)


def audit(source: Run | RunFolder | FilePath, **options: Unpack[AuditKeywords]) -> list[Audit]:
    """The audit of each benchmark of a scored run: samples left for a person to judge, and what the verdicts say.

    samples: how many a person judges in all. out: a file that gets them; verdicts: that file with the verdicts filled
    in, which are then stored as corrections by `who`. A value holds `items` and `estimate`, the accuracy by a person
    with intervals that hold the grader's errors. Raises `UsageError`, `StoreError`.
    """
    verbs.check("audit", options)
    return audit_run(Path(source), AuditOptions.of(**options))


def merge(sources: Sequence[Run | RunFolder | FilePath], *, out: FilePath, **options: Unpack[MergeKeywords]) -> Merged:
    """Join run folders of one run (shards, or what was begun in several places) into the folder `out`.

    Each sample is kept once; the same call again adds what has come since. `harness.score` takes what it returns.
    Raises `UsageError`, `StoreError` with what differs.
    """
    verbs.check("merge", options)
    return merge_runs([Path(source) for source in sources], MergeOptions.of(out=out, **options))


def report(
    runs: Sequence[Run | RunFolder | FilePath] | Run | FilePath,
    **options: Unpack[ReportKeywords],
) -> Report:
    """One report of scored runs, the first one the baseline, beside published scores of their models. Scored outputs of
    other tools are runs here.

    out: a folder for report.html, .md, .csv and .tex. plots: a folder for each plot as SVG, PNG and CSV (extra
    `report`). show_withheld: show also the questions that their card asks to keep out of what is published. Without a
    folder nothing is written. Raises `UsageError`, `StoreError`.
    """
    verbs.check("report", options)
    report_options = ReportOptions.of(**options)
    sources = [Path(source) for source in ([runs] if isinstance(runs, Run | str | os.PathLike) else runs)]
    if not sources:
        raise UsageError("name at least one run", field="runs")
    built = report_of(
        sources, report_options, lambda manifest: [python_call(source) for source in options_again(manifest)]
    )
    if report_options.plots is not None:
        draw.write_plots(built.plots(), report_options.plots)
    if report_options.out is not None:
        built.write(report_options.out)
    return built


def export(source: Run | RunFolder | FilePath, to: str, **options: Unpack[ExportKeywords]) -> Written:
    """Write a run in another tool's format: sharegpt, alpaca, trl, parquet, llmeval … (docs/exports.md).

    out: a folder; none: `exports/` in the run's. finish_reasons: how replies must have ended; () = in any way. The
    options are those of `harness export`, by the same names; None leaves each as the format has it. Raises
    `UsageError`, `StoreError`.
    """
    verbs.check("export", options)
    return export_run(RunFolder.open(Path(source)), **dict(ExportOptions.of(to=to, **options)))


def compare(runs: Sequence[Run | RunFolder | FilePath], **options: Unpack[CompareKeywords]) -> list[RunComparison]:
    """Every other scored run minus the baseline (none: the first) on each benchmark that both were asked.

    Scored outputs of other tools are runs here. A value holds `decision` (verdicts, intervals, p after Holm over all
    values), `moved` and `settings`. Raises `UsageError`, `StoreError`.
    """
    verbs.check("compare", options)
    return compare_runs([Path(run) for run in runs], CompareOptions.of(**options))


def verify(source: Run | RunFolder | FilePath, **options: Unpack[VerifyKeywords]) -> list[Verified]:
    """A scored run, or another tool's outputs, beside what is published of its model, a value a benchmark.

    model: its published name, where the run's is another; no outputs say theirs. published: a file or folder of scores
    of one's own. Raises `UsageError` where nothing is published of it, `StoreError`.
    """
    verbs.check("verify", options)
    return verify_run(Path(source), VerifyOptions.of(**options))


def published(model: str, benchmark: str | None = None) -> PublicScores:
    """All public scores of a model: the shipped ones, and those of the local index (`update_published`).

    benchmark: a card's name, or a source's; None: all. Raises `UsageError` where nothing is known.
    """
    return published_scores(model, benchmark)


def update_published(**options: Unpack[PublishedUpdateKeywords]) -> list[PublishedUpdate]:
    """Bring the local index of public scores up to date. source: a folder of records, or "hub". Raises `UsageError`."""
    verbs.check("published update", options)
    return update_index(PublishedUpdateOptions.of(**options))


def plan(
    source: Run | RunFolder | FilePath,
    detect: float,
    **options: Unpack[PlanKeywords],
) -> list[Needed]:
    """Samples, tokens, seconds and money that find a true difference of `detect` points four times in five.

    source: a scored run that shows the spread, with two samples a question or more; or a benchmark's name: then the run
    in `results` whose scores of it are the latest. other_samples: of each question in what it is compared with; none:
    as many. price_in, price_out: USD per million tokens. Raises `UsageError`, `StoreError`.
    """
    verbs.check("plan", options)
    return plan_from(Path(source), PlanOptions.of(detect=detect, **options))


def race(
    benchmarks: str | Sequence[str] = (),
    *,
    candidates: Mapping[str, Mapping[str, Any]],
    margin: float = 0.0,
    step: int = 2,
    open_ended: bool = False,
    progress: bool = False,
    on_look: races.OnLook = lambda _standings: None,
    **options: Unpack[RunKeywords],
) -> races.Raced:
    """Sample whole rounds of all candidates until it is decided how each stands to the first: the same call goes on.

    candidates: name → what is its own of the options, which hold for all; samples: the most that one may use. margin:
    points below which two count as equal. step: rounds between two looks, of which on_look is told. open_ended: samples
    may be raised later. The result holds `standings`, `decided`, `folders`. Raises what `run` raises.
    """
    verbs.check("race", options)
    entrants = races.candidates(tuple(candidates.items()), {"benchmarks": benchmarks, **options})
    with contextlib.closing(Collecting(shown=progress)) as watcher:
        return races.race(entrants, RaceRules.of(margin=margin, step=step, open_ended=open_ended), watcher, on_look)


def sweep(
    file: FilePath,
    *,
    judge: Judge | None = None,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Swept:
    """Run and score every cell of a sweep's file, or of a suite: the same call goes on where it was stopped.

    options: of `run`; they stand above what the file says, `serve` where it names no servers. judge: as in `score`.
    progress, on_progress: as in `run`.
    Cells that fail are in the result's `lost` and stop no other. Here one server runs after the other, whatever `slots`
    the file has. Raises `UsageError`, `StoreError`, `Interrupted`.
    """
    verbs.check("sweep", options)
    planned = whole.planned(os.fspath(file), options, {} if judge is None else judge.given)
    with contextlib.closing(Collecting(on_progress, shown=progress)) as watcher:
        ended = whole.carry_out(planned, watcher)
    return Swept(folder=planned.out, ended=ended, warnings=tuple(watcher.warnings))


def repeats(
    source: Run | RunFolder | FilePath | Sequence[str],
    runs: int = 30,
    *,
    real: bool = False,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Experiment:
    """How far the accuracies of repeated runs lie apart, beside what their sampling error predicts.

    source: a scored run, whose samples are drawn without replacement (options: samples of each repeat, seed of the
    drawing); or with real=True benchmarks as `run` takes them, sampled `runs` times with seeds of their own into
    folders below `out`; then the options are those of `run`. Raises what `run` raises, and `ServerError` where samples
    are owed in the end.
    """
    verbs.check("experiment repeats", options)
    rules = RepeatsRules.of(runs=runs, real=real)
    with contextlib.closing(Collecting(on_progress, shown=progress)) as watcher:
        return _experiment(experiments.repeats(source, rules, options, watcher), real)


def sample_sizes(
    source: Run | RunFolder | FilePath | Sequence[str],
    n: Sequence[int],
    *,
    runs: int | None = None,
    real: bool = False,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Experiment:
    """How the sampling error falls with the samples of a question, beside the curve that it should follow.

    n: numbers of samples, each 2 or more. runs: repeats of each; none: 200 draws, or one real run. Otherwise as
    `repeats`.
    """
    verbs.check("experiment samples", options)
    rules = SizesRules.of(n=n, runs=runs, real=real)
    with contextlib.closing(Collecting(on_progress, shown=progress)) as watcher:
        return _experiment(experiments.sizes(source, rules, options, watcher), real)


def _experiment(experiment: experiments.Experimented[Any], real: bool) -> Experiment:
    if experiment.owed:
        raise ServerError(experiment.owed)
    return Experiment(tuple(experiment.results), experiment.out if real else None)


def grade(reference: str, response: str, **options: Unpack[GradeKeywords]) -> Verdict:
    """The verdict on one response, with the steps that led to it; true where the answer is right.

    The comparison runs in a process of its own, bounded in time (deadline: seconds) and memory. The options are those
    of `harness grade`, by the same names. Raises `UsageError`.
    """
    verbs.check("grade", options)
    return grade_response(reference, response, GradeOptions.of(**options))


def serve(engine: str, model: str = "", *, detach: bool = False, **fields: Any) -> RunningServer:
    """Start a server and wait until it really answers; a context manager that stops it.

    engine: llama_cpp, vllm, sglang …; fields: those of `server_launchers.spec.ServerSpec`, such as tp=8.
    detach: it outlives this process; stop it by `.stop()` or `harness serve stop`. Raises `UsageError`, `ServerError`.
    """
    watcher = Watcher()
    return servers.launched(servers.spec(engine, model, watcher, **fields), watcher, detach=detach)


def _named_keywords(function: Callable[..., Any], declared: type[Options]) -> None:
    """Let `help` and editors show the options by name in the place of `**options`."""
    shown = inspect.signature(function)
    fixed = [option for option in shown.parameters.values() if option.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.accepts)
        for name, option in options_of(declared).items()
        if not option.argument and option.default is not ...
    ]
    function.__signature__ = shown.replace(parameters=[*fixed, *options])  # type: ignore[attr-defined]


for _function in (run, run_async, pilot, race, repeats, sample_sizes, sweep):
    _named_keywords(_function, RunOptions)
_named_keywords(score, ScoreOptions)
for _verb, _declared in (
    (plan, PlanOptions),
    (merge, MergeOptions),
    (report, ReportOptions),
    (export, ExportOptions),
    (compare, CompareOptions),
    (verify, VerifyOptions),
    (update_published, PublishedUpdateOptions),
    (grade, GradeOptions),
    (audit, AuditOptions),
):
    _named_keywords(_verb, _declared)

__all__ = [
    "Experiment",
    "Judge",
    "Merged",
    "Pilot",
    "Report",
    "Run",
    "RunOptions",
    "Scores",
    "Swept",
    "Verdict",
    "Written",
    "audit",
    "compare",
    "export",
    "grade",
    "merge",
    "pilot",
    "plan",
    "published",
    "race",
    "repeats",
    "report",
    "run",
    "run_async",
    "sample_sizes",
    "score",
    "serve",
    "sweep",
    "update_published",
    "verify",
]
