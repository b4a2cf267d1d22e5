"""The Python front door: a function for each command, which `import harness` offers (`grade`: `commands.grade`).

    run = harness.run("aime24:64", base_url="http://127.0.0.1:8000")
    harness.score(run)
    harness.report([run])

The tests run the example of each function, in this order; `other` is a second run, and OPENAI_BASE_URL names a server.

Long: this module is the single entry point, with a function for each command.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from harness.commands import score as scoring
from harness.commands.compare import Comparisons, Verified
from harness.commands.compare import compare as compare_runs
from harness.commands.compare import verify as verify_run
from harness.commands.export import export as export_source
from harness.commands.imported_runs import open_scored
from harness.commands.merge import merge as merge_runs
from harness.commands.plan import Needed, sources_of
from harness.commands.plan import plan as plan_comparison
from harness.commands.report import report as report_of
from harness.commands.run import run_at
from harness.core.errors import UsageError
from harness.exports import Written
from harness.judges.audit import Audit
from harness.judges.audit import audit as audit_run
from harness.options.commands import takes
from harness.options.decisions import CompareOptions, PlanBasis, PlanOptions, VerifyOptions
from harness.options.finished_runs import AuditOptions, ExportOptions, MergeOptions, ReportOptions
from harness.options.judge import JudgeOptions as Judge
from harness.options.probing import ProbeOptions
from harness.options.run import RunOptions
from harness.options.score import JudgingCosts, ScoreOptions
from harness.preparing.server_start import launch_server, spec_of
from harness.probes.findings import ProbeReport
from harness.probes.probe import probe as probe_server
from harness.progress.events import Collecting, OnProgress, Watcher
from harness.reports.plots.plot import write_plots
from harness.reports.report import Report
from harness.results import Run, Scores, Swept
from harness.runs import RunFolder
from harness.runs.merging import Merged
from harness.scoring.run_reader import OpenRun
from harness.sweeps import cells as sweep_cells
from harness.sweeps import sweep_runner

if TYPE_CHECKING:
    from arro3.core import Table

    from harness.exports.frame import Of
    from harness.options.keywords import (
        AuditKeywords,
        CompareKeywords,
        ExportKeywords,
        FilePath,
        MergeKeywords,
        PlanKeywords,
        ProbeKeywords,
        ReportKeywords,
        RunKeywords,
        ScoreKeywords,
        VerifyKeywords,
    )
    from server_launchers.lifecycle.launch import RunningServer


@takes(RunOptions)
def run(
    benchmarks: str | Sequence[str] = (),
    *,
    on: str | None = None,
    judge: Judge | None = None,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Run:
    """Sample completions for benchmarks. Call it again to request only missing samples.

    benchmarks: names, optionally with a number of samples per question, such as "aime24:64,math500"; or card files. The
    options have the same names as in `harness run` (see `RunOptions`). on: "ray" or "ray://HOST:PORT" to sample on the
    nodes of this Ray cluster, with one shard of the questions per node; no progress is shown. judge: the judge that
    will be used to score the run. It is first tested on two answers. progress: show a progress display. on_progress:
    function that is called about twice a second with a `Progress`. In an event loop, use `await
    asyncio.to_thread(harness.run, …)`. In that case, canceling the task or pressing Ctrl-C does not stop the run; to
    stop it, raise an exception in `on_progress`. Raises `UsageError`, `ServerError`, `StoreError`, `StoppedByRule`
    (because of a budget or the canary) or `Interrupted`.

    >>> run = harness.run("demo:2", base_url="http://127.0.0.1:8000", out="results/a")
    >>> run.complete, len(list(run.samples()))
    (True, 80)
    """
    run_options = RunOptions.of(benchmarks=benchmarks, **options)
    _check_judge(judge)
    with contextlib.closing(Collecting(on_progress, shown=progress and on is None)) as watcher:
        outcome = run_at(on, run_options, watcher, judge)
    return Run(outcome=outcome, warnings=(*watcher.warnings, *map(str, outcome.warnings)))


def _check_judge(judge: object) -> None:
    """Raise `UsageError` for a judge that is not a `Judge`, such as a string as used on the command line."""
    if not isinstance(judge, Judge | None):
        raise UsageError("expected harness.Judge(model=…, base_url=…)", field="judge")


@takes(ScoreOptions)
def score(
    source: Run | RunFolder | Merged | FilePath,
    *,
    judge: Judge | None = None,
    prices: FilePath | tuple[float, ...] | None = None,
    **options: Unpack[ScoreKeywords],
) -> Scores:
    """Grade the samples of a run, or the outputs of another tool, and return their scores.

    source: a run, a run folder, or a file of another tool's outputs. For a file, use options to specify the columns,
    the tool or the benchmark. The file is converted to the run folder `FILE.scored`, and its path can then be passed
    wherever a run is accepted. judge: model that grades answers left undecided by the rules. prices: the judge's
    prices in USD per million prompt and completion tokens; each score's `judging.cost` then includes the judge's cost.
    The options have the same names as in `harness score`. on: "ray" or "ray://HOST:PORT" to grade on the nodes of this
    Ray cluster. Raises `UsageError` or `StoreError`; with a judge, the same errors as `run`.

    >>> scores = harness.score(run)
    >>> scores["demo"].accuracy.value
    0.1
    """
    score_options = ScoreOptions.of(**options)
    costs = JudgingCosts.of(prices=prices)
    _check_judge(judge)
    judge_prices = scoring.judge_prices(costs, judge, "judge=harness.Judge(model=…)")
    trackers = scoring.trackers_named(score_options.track)  # a misspelled name is refused before the grading
    path = Path(source)
    scoring.check([path], score_options)
    scored = scoring.score(path, score_options, judge, Watcher(), prices=judge_prices)
    for tracker in trackers.values():
        scoring.send_scores(scored, tracker, score_options)
    agreements = {
        grader: scoring.second_opinions(scored.folder, grader, score_options.also_python)
        for grader in score_options.second_graders
    }
    reports = () if scored.judged is None else tuple(scored.judged.reports)
    return Scores(scored.folder.source.name, tuple(scored.scores), reports, scored.missing, agreements)


@takes(AuditOptions)
def audit(source: Run | RunFolder | FilePath, **options: Unpack[AuditKeywords]) -> list[Audit]:
    """Audit the grades of a scored run: draw samples for a person to grade, and count the differing verdicts.

    samples: number of samples to grade per benchmark. undecided: grade the samples that the grader left undecided,
    instead of randomly drawn ones. out: file to write the drawn samples to. verdicts: the same file after a person has
    filled it in; its verdicts are stored as corrections by `who`. Returns one `Audit` per benchmark: `items` lists the
    samples that still need a verdict, and `by_hand` says how many verdicts differ, with the accuracy that results.
    Raises `UsageError` or `StoreError`.

    >>> (demo,) = harness.audit(run, samples=20, out="to-judge.jsonl")
    >>> len(demo.items)
    20
    """
    audit_options, path = AuditOptions.of(**options), Path(source)
    return audit_run(OpenRun.of(open_scored(path), path.name), audit_options)


def _paths(runs: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath]) -> list[Path]:
    """The paths of one run or of several; a string is one path."""
    return [Path(run) for run in ([runs] if isinstance(runs, Run | RunFolder | str | os.PathLike) else runs)]


@takes(MergeOptions)
def merge(sources: Sequence[Run | RunFolder | FilePath], *, out: FilePath, **options: Unpack[MergeKeywords]) -> Merged:
    """Merge several folders of a single run (shards, or parts sampled on several machines) into the folder `out`.

    Duplicate samples are merged into one. Call it again to add new samples. The result can be passed to
    `harness.score`. Raises `UsageError` or `StoreError`. If the folders' settings differ, the error lists the
    differences.

    >>> shards = [harness.run("demo:2", shard=shard, out=f"shard-{shard[0]}") for shard in ("1/2", "2/2")]
    >>> harness.merge(shards, out="results/both").benchmarks[0].n_samples
    80
    """
    return merge_runs(_paths(sources), MergeOptions.of(out=out, **options))


@takes(ReportOptions)
def report(
    runs: Sequence[Run | RunFolder | FilePath] | Run | FilePath,
    **options: Unpack[ReportKeywords],
) -> Report:
    """Create a single report on scored runs, including their models' published scores. The first run is the baseline.

    runs: runs, run folders, or scored outputs of other tools. out: folder for report.html, .md, .csv and .tex; with
    None, no files are written. plots: folder for the plots, as SVG and CSV. Raises `UsageError` or `StoreError`.

    >>> report = harness.report([run, other], out="report")
    >>> "| demo " in report.markdown()  # in a notebook, `report` alone shows its tables
    True
    """
    report_options = ReportOptions.of(**options)
    sources = _paths(runs)
    if not sources:
        raise UsageError("specify at least one run", field="runs")
    built = report_of(sources)
    if report_options.plots is not None:
        write_plots(built.plots(), report_options.plots)
    if report_options.out is not None:
        built.write(report_options.out)
    return built


@takes(ExportOptions)
def export(
    source: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath],
    to: str,
    **options: Unpack[ExportKeywords],
) -> Written:
    """Export runs to another tool's format: sharegpt, alpaca, trl, parquet, lm_eval … (docs/exports.md).

    source: a run, or several runs of different benchmarks. to: format name. out: folder for the files; None means
    `exports/` in the first run folder. finish_reasons: export only replies with one of these finish reasons; () means
    all. The other options have the same names as in `harness export`; None means the format's default. Raises
    `UsageError` or `StoreError`.

    >>> written = harness.export(run, "parquet")
    >>> [(file.path.name, file.n) for file in written.files]
    [('demo.parquet', 80), ('fields.json', None)]
    """
    return export_source(_paths(source), ExportOptions.of(to=to, **options))


def frame(runs: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath], of: Of = "samples") -> Table:
    """Return the samples, grades or scores of runs as an Arrow table, which pandas, Polars and DuckDB can read.

    runs: one run or several. of: what each row describes. Samples have the same columns as in `harness export RUN --to
    parquet`. Raises `StoreError`, or `UsageError` if there are no rows.

    >>> samples = harness.frame([run, other])
    >>> samples.num_rows
    160
    """
    from harness.exports.frame import frame as frame_of

    return frame_of([open_scored(path) for path in _paths(runs)], of)


@takes(CompareOptions)
def compare(runs: Sequence[Run | RunFolder | FilePath], **options: Unpack[CompareKeywords]) -> Comparisons:
    """Compare scored runs with a baseline: which run is better on each benchmark, and how certain that is.

    runs: runs, run folders, or scored outputs of other tools. baseline: run that the others are compared with; by
    default, for each benchmark, the first run that includes it. Returns a list with one item per benchmark for each run
    other than the baseline. The list's `uncompared` attribute contains a sentence for each benchmark on which no two
    runs could be compared. An item's `decision` contains the verdicts, the intervals for the difference, and the
    p-values (how likely a difference this large is by chance alone), corrected for the number of comparisons by Holm's
    method. Its `settings` lists the settings that differ. Raises `UsageError` or `StoreError`.

    >>> (demo,) = harness.compare([run, other])
    >>> demo.decision.paired.difference.value, demo.decision.verdict
    (-0.025, 'no difference seen')
    """
    return compare_runs(_paths(runs), CompareOptions.of(**options))


@takes(VerifyOptions)
def verify(source: Run | RunFolder | FilePath, **options: Unpack[VerifyKeywords]) -> list[Verified]:
    """Check whether a run's scores, or another tool's scored outputs, agree with the model's published scores.

    Returns one result per benchmark. model: name under which the model's scores are published, if the run uses a
    different name; required if another tool's outputs do not name their model. published: file or folder with your own
    published scores. Raises `StoreError`, or `UsageError` if no published score of the model is known.

    >>> (demo,) = harness.verify(run, published="our-scores.yaml")
    >>> demo.standing
    'compatible'
    """
    return verify_run(Path(source), VerifyOptions.of(**options))


@takes(PlanBasis)
def plan(
    source: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath],
    detect: float | None = None,
    **options: Unpack[PlanKeywords],
) -> list[Needed]:
    """Plan a comparison: the samples, tokens, time and cost that are needed to detect a difference of `detect` points.

    A difference of this size is detected with a probability of 80%. source: a scored run with at least two samples per
    question, whose spread is used; or the name of a benchmark or a file of questions, for which the spread of published
    runs is used. Several sources, in a list or separated by commas, are planned together as one comparison. With a
    number of samples after the name (`aime24:64`), `smallest_difference` is the difference that this number of samples
    can detect, and `detect` can be omitted. accuracy: your model's accuracy in %, if you do not have a run. margin:
    instead of `detect`, plan to show that an equally good model is worse by less than this many points. recovery: the
    same, with the minimum given as a percentage of the baseline's accuracy, such as 95. prices: USD per million prompt
    and completion tokens; None means the run's prices. floor: a threshold in %, for `floor_fails` and `floor_loss`.
    limit: plan for so many of the benchmark's questions. plots: folder for a plot of `by_samples`. Raises `UsageError`
    or `StoreError`.

    >>> (demo,) = harness.plan(run, detect=5)
    >>> demo.samples
    17
    """
    sources = sources_of([str(path) for path in _paths(source)])
    return plan_comparison(sources, PlanOptions.of(detect=detect, **options))


@takes(RunOptions)
def sweep(
    file: FilePath | Mapping[str, Any],
    *,
    judge: Judge | None = None,
    k: int | None = None,
    track: Sequence[str] = (),
    limits: str | Mapping[str, Any] | None = None,
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Swept:
    """Run and score every cell of a sweep file or a suite. Repeat the call to resume.

    file: its path, a suite's name, or its content. options: options of `run`, which override the options in the file;
    `serve` is used only if the file lists no servers. judge: as in `score`. k: value of k for pass@k in the tables,
    instead of the file's value. track: trackers that receive each cell's scores; all checkpoints of a series are sent
    to one tracker run. limits: time limits for the scores, as in `score`. progress, on_progress: as in `run`. If a
    cell fails, the others continue, and the result's `lost` lists it. Raises `UsageError`, `StoreError` or
    `Interrupted`.

    >>> swept = harness.sweep("temperatures.yaml")
    >>> swept.complete
    True
    """
    _check_judge(judge)
    source = file if isinstance(file, Mapping) else os.fspath(file)
    planned = sweep_cells.plan_of(source, options, {} if judge is None else judge.explicit, k, track, limits)
    with contextlib.closing(Collecting(on_progress, shown=progress)) as watcher:
        ended = sweep_runner.run_sweep(planned, watcher)
    return Swept(folder=planned.out, ended=ended, warnings=tuple(watcher.warnings))


@takes(ProbeOptions)
def probe(base_url: str | None = None, **options: Unpack[ProbeKeywords]) -> ProbeReport:
    """Check a server for faults in protocol, sampling, context, chat template, load or weights that would invalidate a
    score.

    base_url: the server's URL; None means OPENAI_BASE_URL or, if that is not set, the running server. The options have
    the same names as in `harness probe`. The report's `passed` is true if no check found a problem that would
    invalidate a score. Each of its `findings` describes what was sent and received, why it matters, and how to fix it.
    Raises `UsageError`; `ServerError` if the server is unreachable; or `Interrupted` if a signal arrives, with
    the finished checks, if any, in its `report`.

    >>> probed = harness.probe("http://127.0.0.1:8000", checks=["protocol"])
    >>> [finding.check for finding in probed.findings if finding.outcome == "fail"]
    ['stop sequences']
    """
    return probe_server(ProbeOptions.of(base_url=base_url, **options))


def serve(engine: str, model: str = "", *, detach: bool = False, **fields: Any) -> RunningServer:
    """Start a server and wait until it responds. The result is a context manager that stops the server.

    engine: name of the engine, such as llama_cpp or vllm. fields: fields of `server_launchers.spec.ServerSpec`, such as
    tp=8. detach: keep the server running after this process ends, until `.stop()` or `harness serve stop`. Raises
    `UsageError` or `ServerError`.

    >>> with harness.serve("command", "able", extra_flags=["python", "able_server.py", "--port", "{port}"]) as server:
    ...     run = harness.run("demo:2", limit=5, base_url=server.name, out="results/able")
    """
    watcher = Watcher()
    return launch_server(spec_of(engine, model, watcher, **fields), watcher, detach=detach)
