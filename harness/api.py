"""The Python front door: a function for each command, which `import harness` offers (`grade`: `commands.grade`).

    run = harness.run("aime24:64", base_url="http://127.0.0.1:8000")
    harness.score(run)
    harness.report([run])

The tests run the example of each function, in this order; `other` is a second run, and OPENAI_BASE_URL names a server.

Long: this module is the one front door, a function for each command.
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
from harness.gates import race as races
from harness.judges.audit import Audit
from harness.judges.audit import audit as audit_run
from harness.options.commands import takes
from harness.options.deciding import CompareOptions, PlanBasis, PlanOptions, RaceRules, VerifyOptions
from harness.options.finished import AuditOptions, ExportOptions, MergeOptions, ReportOptions
from harness.options.judge import JudgeOptions as Judge
from harness.options.probing import ProbeOptions
from harness.options.run import RunOptions
from harness.options.score import JudgingCosts, ScoreOptions
from harness.preparing.server_start import launched, spec_of
from harness.probes.findings import ProbeReport
from harness.probes.probe import probe as probe_server
from harness.progress.watching import Collecting, OnProgress, Watcher
from harness.reports.plots.plot import write_plots
from harness.reports.report import Report
from harness.results import Run, Scores, Swept
from harness.runs import RunFolder
from harness.runs.merging import Merged
from harness.scoring.opened import OpenRun
from harness.sweeps import cells as sweep_cells
from harness.sweeps import whole

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
    from server_launchers.keeping.launch import RunningServer


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
    """Sample completions of benchmarks. The same call again asks only for the samples that are missing.

    benchmarks: "aime24:64,math500" (a name, if you like with the number of samples a question), or card files. The
    options are those of `harness run`, by the same names; see `RunOptions`. on: "ray" or "ray://HOST:PORT": the nodes
    of this cluster sample the questions, each a shard of them; progress is not shown then.
    judge: the judge that will score the run; it is tried on two answers before the first request. progress: show the
    run's progress. on_progress: called about twice a second with a `Progress`.
    In an event loop: `await asyncio.to_thread(harness.run, …)`. Cancelling the task or Ctrl-C does not end the run
    then; an exception that `on_progress` raises does.
    Raises `UsageError`, `ServerError`, `StoreError`, `StoppedByRule` (a budget, the canary), `Interrupted`.

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
    """Raise `UsageError` for a judge that is no `Judge`, such as the text that a command line takes."""
    if not isinstance(judge, Judge | None):
        raise UsageError("expected harness.Judge(model=…, base_url=…)", field="judge")


@takes(ScoreOptions)
def score(
    source: Run | RunFolder | Merged | FilePath,
    *,
    judge: Judge | None = None,
    prices: FilePath | tuple[float, float] | None = None,
    **options: Unpack[ScoreKeywords],
) -> Scores:
    """Grade the samples of a run, or the outputs of another tool, and return their scores.

    source: a run, a run folder, or a file of another tool's outputs; then options name the columns, the tool or the
    card, and the file becomes the run folder `FILE.scored`, for which it stands wherever a run is taken. judge: a model
    that decides the answers that the rules leave undecided. prices: USD per million tokens of the judge's prompts and
    replies; `judging.cost` of each score then has its cost.
    The options are those of `harness score`, by the same names. on: "ray" or "ray://HOST:PORT": the nodes of this
    cluster grade the run.
    Raises `UsageError`, `StoreError`, and with a judge what `run` raises.

    >>> scores = harness.score(run)
    >>> scores["demo"].accuracy.value
    0.1
    """
    score_options = ScoreOptions.of(**options)
    costs = JudgingCosts.of(prices=prices)
    _check_judge(judge)
    judge_prices = scoring.judge_prices(costs, judge, "judge=harness.Judge(model=…)")
    trackers = scoring.trackers_named(score_options.track)  # a misspelt name is refused before the grading
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
    """Audit the grades of a scored run: draw samples for a person to judge; estimate the accuracy by the verdicts.

    samples: how many samples of each benchmark a person judges. undecided: those that the grader left undecided, in
    place of a random draw; their verdicts estimate nothing. out: the file to which the drawn samples are written.
    verdicts: this file once a person has filled it in; its verdicts are stored as corrections by `who`. Returns a value
    for each benchmark: `items` are the samples still to judge, `estimate` is the accuracy by the person's verdicts,
    whose intervals allow for errors of the grader. Raises `UsageError`, `StoreError`.

    >>> (demo,) = harness.audit(run, samples=20, out="to-judge.jsonl")
    >>> len(demo.items)
    20
    """
    audit_options, path = AuditOptions.of(**options), Path(source)
    return audit_run(OpenRun.of(open_scored(path), path.name), audit_options)


def _paths(runs: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath]) -> list[Path]:
    """The paths of a run or of several; a text is one path."""
    return [Path(run) for run in ([runs] if isinstance(runs, Run | RunFolder | str | os.PathLike) else runs)]


@takes(MergeOptions)
def merge(sources: Sequence[Run | RunFolder | FilePath], *, out: FilePath, **options: Unpack[MergeKeywords]) -> Merged:
    """Join run folders of one run (shards, or a run begun on several machines) into the folder `out`.

    Each sample is kept once. The same call again adds samples that have come since. `harness.score` takes the result.
    Raises `UsageError`; `StoreError` that names the setting in which the folders differ.

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
    """Make one report of scored runs, beside published scores of their models. The first run is the baseline.

    runs: runs, run folders, or scored outputs of other tools. out: the folder for report.html, .md, .csv and .tex;
    None: nothing is written. plots: the folder for each plot as SVG and CSV; as PNG, too, with the extra `report`.
    Raises `UsageError`, `StoreError`.

    >>> report = harness.report([run, other], out="report")
    >>> "| demo " in report.markdown()  # in a notebook, `report` alone shows its tables
    True
    """
    report_options = ReportOptions.of(**options)
    sources = _paths(runs)
    if not sources:
        raise UsageError("name at least one run", field="runs")
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
    """Write runs in another tool's format: sharegpt, alpaca, trl, parquet, lm_eval … (docs/exports.md).

    source: a run, or several of different benchmarks; with solution_key a benchmark's name, whose own solutions become
    training data. to: the name of the format. out: a folder; None: `exports/` in the folder of the first run.
    finish_reasons: only replies that ended in one of these ways are written; (): all. The options are those of
    `harness export`, by the same names; None means the default of the format. Raises `UsageError`, `StoreError`.

    >>> written = harness.export(run, "parquet")
    >>> [(file.path.name, file.n) for file in written.files]
    [('demo.parquet', 80), ('fields.json', None)]
    """
    return export_source(_paths(source), ExportOptions.of(to=to, **options))


def frame(runs: Run | RunFolder | FilePath | Sequence[Run | RunFolder | FilePath], of: Of = "samples") -> Table:
    """Return the samples, grades or scores of runs as an Arrow table, which pandas, polars and DuckDB read.

    runs: a run or several. of: what a row is. The columns of samples are those of `harness export parquet`. Raises
    `UsageError` if there is no row, `StoreError`.

    >>> samples = harness.frame([run, other])
    >>> samples.num_rows
    160
    """
    from harness.exports.frame import frame as frame_of

    return frame_of([open_scored(path) for path in _paths(runs)], of)


@takes(CompareOptions)
def compare(runs: Sequence[Run | RunFolder | FilePath], **options: Unpack[CompareKeywords]) -> Comparisons:
    """Compare scored runs with a baseline: which is better on each benchmark, and how sure that is.

    runs: runs, run folders, or scored outputs of other tools. In each benchmark the baseline is the first run that has
    it, unless the option names one. Returns a list with a value for each other run and benchmark; its `uncompared` has
    a sentence for each benchmark of which no two runs are compared. A value's `decision` holds the verdicts, the
    intervals of the difference, and the p-values (how likely so large a difference is by luck), corrected for the
    number of comparisons by Holm's method; `settings` are the settings that differ. Raises `UsageError`, `StoreError`.

    >>> (demo,) = harness.compare([run, other])
    >>> demo.decision.paired.difference.value, demo.decision.verdict
    (-0.025, 'no difference seen')
    """
    return compare_runs(_paths(runs), CompareOptions.of(**options))


@takes(VerifyOptions)
def verify(source: Run | RunFolder | FilePath, **options: Unpack[VerifyKeywords]) -> list[Verified]:
    """Check whether a scored run, or another tool's outputs, agrees with published scores of its model.

    Returns a value for each benchmark. model: the name under which scores are published, if the run has another one;
    needed for another tool's outputs, which do not name their model. published: a file or folder of your own published
    scores. Raises `UsageError` if no score of the model is known, `StoreError`.

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
    """Plan a comparison: how many samples, tokens, seconds and USD it takes to find a difference of `detect` points.

    To find means: with a probability of 80% if the true difference is that large. source: a scored run with at least
    two samples a question, from which the spread is taken; or the name of a benchmark or a file of questions: then the
    spread of published runs. Several, in a list or separated by commas, are planned for one comparison of all. With a
    number of samples behind the name (`aime24:64`), `smallest_difference` says what so many samples find, and `detect`
    may be left out. accuracy: of your model in %, where no run shows it.
    margin: instead of `detect`, how many samples show that an equally good model is not worse by so many points or
    more. recovery: the same for a percentage of the baseline's accuracy, such as 95. prices: USD per million tokens of
    prompts and replies; None: those that the run was given. plots: a folder for a picture of `by_samples`. Raises
    `UsageError`, `StoreError`.

    >>> (demo,) = harness.plan(run, detect=5)
    >>> demo.samples
    17
    """
    sources = sources_of([str(path) for path in _paths(source)])
    return plan_comparison(sources, PlanOptions.of(detect=detect, **options))


@takes(RunOptions)
def race(
    benchmarks: str | Sequence[str] = (),
    *,
    candidates: Mapping[str, Mapping[str, Any]],
    margin: float = 0.0,
    step: int = 2,
    progress: bool = False,
    on_look: races.OnLook = lambda _standings: None,
    **options: Unpack[RunKeywords],
) -> races.Raced:
    """Sample several candidates in rounds until it is decided whether each is better or worse than the first.

    The same call again continues the race. candidates: name → options of its own; the other options hold for all.
    samples (an option): the most samples a question that a candidate may use. margin: candidates that differ by fewer
    points count as equal. step: rounds between two looks at the scores; on_look is called at each. The result holds
    `standings`, `decided`, `folders` and `n_rounds`. Raises what `run` raises.

    >>> raced = harness.race("demo:2", candidates={"cool": {"temperature": 0.2}, "warm": {"temperature": 1.0}}, limit=5)
    >>> raced.standings["warm"].verdict
    'undecided'
    """
    entrants = races.candidates(tuple(candidates.items()), {"benchmarks": benchmarks, **options})
    with contextlib.closing(Collecting(shown=progress)) as watcher:
        return races.race(entrants, RaceRules.of(margin=margin, step=step), watcher, on_look)


@takes(RunOptions)
def sweep(
    file: FilePath,
    *,
    judge: Judge | None = None,
    k: int | None = None,
    track: Sequence[str] = (),
    progress: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunKeywords],
) -> Swept:
    """Run and score every cell of a sweep file or a suite. The same call again continues where it was stopped.

    options: those of `run`; they override the file, but `serve` counts only if the file names no servers. judge: as in
    `score`. k: of pass@k in the tables, in place of the file's. track: trackers that get each cell's scores; a
    series of checkpoints is one run there. progress, on_progress: as in `run`. A cell that fails
    stops no other cell; the result's `lost` names it. Raises `UsageError`, `StoreError`, `Interrupted`.

    >>> swept = harness.sweep("temperatures.yaml")
    >>> swept.complete
    True
    """
    _check_judge(judge)
    planned = sweep_cells.plan_of(os.fspath(file), options, {} if judge is None else judge.given, k, track)
    with contextlib.closing(Collecting(on_progress, shown=progress)) as watcher:
        ended = whole.run_sweep(planned, watcher)
    return Swept(folder=planned.out, ended=ended, warnings=tuple(watcher.warnings))


@takes(ProbeOptions)
def probe(base_url: str | None = None, **options: Unpack[ProbeKeywords]) -> ProbeReport:
    """Examine a server: what of its protocol, sampling, context, template, load or weights would spoil a score.

    base_url: its address; None: OPENAI_BASE_URL, else the running server. The options are those of `harness probe`, by
    the same names. The report is `sound` where nothing spoils a score; each of its `findings` says what was sent, what
    came, why it matters and how to mend it. Raises `UsageError`; `ServerError` where the server cannot be asked;
    `Interrupted` for a signal, whose `report` holds the finished checks once the checks have begun.

    >>> probed = harness.probe("http://127.0.0.1:8000", checks=["protocol"])
    >>> [finding.check for finding in probed.findings if finding.outcome == "spoils"]
    ['stop texts']
    """
    return probe_server(ProbeOptions.of(base_url=base_url, **options))


def serve(engine: str, model: str = "", *, detach: bool = False, **fields: Any) -> RunningServer:
    """Start a server and wait until it answers a request; the result is a context manager that stops the server.

    engine: llama_cpp, vllm, sglang …; fields: those of `server_launchers.spec.ServerSpec`, such as tp=8. detach: the
    server outlives this process, until `.stop()` or `harness serve stop`. Raises `UsageError`, `ServerError`.

    >>> with harness.serve("command", "able", extra_flags=["python", "able_server.py", "--port", "{port}"]) as server:
    ...     run = harness.run("demo:2", limit=5, base_url=server.name, out="results/able")
    """
    watcher = Watcher()
    return launched(spec_of(engine, model, watcher, **fields), watcher, detach=detach)
