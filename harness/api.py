"""The Python front door: what the command line does, as functions. `harness` hands on the names that stand here.

run = harness.run("aime24:64", base_url="http://127.0.0.1:8000")
harness.score(run)
harness.report([run])
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from harness.core.errors import HarnessError, Interrupted, UsageError
from harness.core.records import AnswerKind, GradeRules
from harness.core.wording import Sentence, option
from harness.experiments import servers
from harness.experiments.again import options_again, python_call
from harness.experiments.judging import judge_of, score_with_judge
from harness.experiments.keywords import FilePath, RunKeywords
from harness.experiments.options import JudgeOptions as Judge
from harness.experiments.options import RunOptions
from harness.experiments.outputs import score_file
from harness.experiments.pilot import pilot as take_pilot
from harness.experiments.prepare import prepare
from harness.experiments.sample import sample
from harness.experiments.watching import Watcher
from harness.foreign.outputs import Format
from harness.generation.progress import Progress
from harness.grading import Verdict
from harness.grading.processes import pool
from harness.reports import Report
from harness.reports import report as report_of
from harness.results import Pilot, Run, Scores
from harness.runs import Manifest, RunFolder
from harness.scoring import load_published
from harness.scoring.pipeline import Grading, score_run

if TYPE_CHECKING:
    from server_launchers.keeping.supervisor import RunningServer

OnProgress = Callable[[Progress], None]


class _Collecting(Watcher):
    """Keeps the warnings, and hands progress on."""

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        self.warnings: list[str] = []
        self._on_progress = on_progress

    def warn(self, sentence: Sentence) -> None:
        """See `Watcher.warn`."""
        self.warnings.append(sentence)

    def progressed(self, progress: Progress) -> None:
        """See `Watcher.progressed`."""
        if self._on_progress is not None:
            self._on_progress(progress)


def run(
    benchmarks: str | Sequence[str] = (), *, on_progress: OnProgress | None = None, **options: Unpack[RunKeywords]
) -> Run:
    """Sample completions, resumably: the same call again asks only for what is missing.

    benchmarks: "aime24:64,math500" (a name, with samples a question if you like), or card files. The options are
    those of `harness run`, by the same names; see `RunOptions`. on_progress: called now and then.
    Raises `UsageError`, `ServerError`, `StoreError`, `StoppedByRule` (a budget, the canary), `Interrupted`.
    """
    return _run(RunOptions.of(benchmarks=benchmarks, **options), _Collecting(on_progress))


def _run(options: RunOptions, watcher: _Collecting) -> Run:
    with prepare(options, watcher) as prepared:
        sampled = sample(prepared, watcher)
        settings = prepared.settings
        said = (*watcher.warnings, *map(str, sampled.outcome.warnings))
    return Run(
        path=settings.out,
        model=settings.model,
        outcome=sampled.outcome,
        reached=sampled.reached,
        missed=sampled.missed,
        warnings=said,
    )


async def run_async(
    benchmarks: str | Sequence[str] = (), *, on_progress: OnProgress | None = None, **options: Unpack[RunKeywords]
) -> Run:
    """`run`, without blocking the caller's loop; on_progress is called on that loop.

    Cancelled, it ends the session (what is stored counts) before it raises `asyncio.CancelledError`.
    """
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()

    def progressed(progress: Progress) -> None:
        if cancelled.is_set():
            raise Interrupted("the task that runs it was cancelled; what is stored counts.", signal.SIGINT)
        if on_progress is not None:
            loop.call_soon_threadsafe(on_progress, progress)

    chosen = RunOptions.of(benchmarks=benchmarks, **options)
    working = asyncio.ensure_future(asyncio.to_thread(_run, chosen, _Collecting(progressed)))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        cancelled.set()
        with contextlib.suppress(HarnessError):
            await working
        raise


def pilot(
    benchmarks: str | Sequence[str] = (), *, on_progress: OnProgress | None = None, **options: Unpack[RunKeywords]
) -> Pilot:
    """Two samples a question, which count towards the run, and a forecast of the rest: time, tokens, money, error."""
    watcher = _Collecting(on_progress)
    with prepare(RunOptions.of(benchmarks=benchmarks, **options), watcher) as prepared:
        taken = take_pilot(prepared, watcher)
        settings = prepared.settings
    said = (*watcher.warnings, *map(str, taken.outcome.warnings))
    stored = Run(path=settings.out, model=settings.model, outcome=taken.outcome, warnings=said)
    return Pilot(run=stored, forecast=taken.forecast, expected=dict(taken.expected))


def score(
    source: Run | RunFolder | FilePath,
    *,
    judge: Judge | None = None,
    workers: int | None = None,
    deadline: float | None = None,
    fresh: bool = False,
    answer_from_reasoning: bool = False,
    cut_text: bool = False,
    response_key: str | None = None,
    answer_key: str | None = None,
    question_key: str | None = None,
    id_key: str | None = None,
    tool: Format | None = None,
    benchmark: str | None = None,
    repeats: Literal["auto", "samples", "questions"] = "auto",
) -> Scores:
    """Grade and aggregate a run, or a file of another tool's outputs (then the columns, the tool or the card matter).

    judge: a model that decides what the rules leave undecided. workers: processes that grade; none: the cores.
    deadline: seconds for one answer. fresh: grade all again. Raises `UsageError`, `StoreError`, and with a judge what
    `run` raises.
    """
    defaults = Grading()
    grading = Grading(
        workers=(os.cpu_count() or 1) if workers is None else workers,
        deadline_s=defaults.deadline_s if deadline is None else deadline,
        fresh=fresh,
        answer_from_reasoning=answer_from_reasoning,
        cut_text=cut_text,
    )
    path = _path(source)
    named: dict[str, Any] = {
        "response_key": response_key,
        "answer_key": answer_key,
        "question_key": question_key,
        "id_key": id_key,
        "tool": tool,
        "benchmark": benchmark,
    }
    if path.is_file() or (not path.exists() and any(named.values())):
        if judge is not None:
            raise UsageError(f"it goes with a run folder, where its replies are kept; {path} is a file", field="judge")
        watcher = Watcher()
        return Scores(path.name, tuple(score_file(path, grading, watcher, **named, repeats=repeats)))
    if given := [name for name, value in named.items() if value]:
        raise UsageError(f"{option(given[0])} goes with a file of outputs; {path} is a run folder")
    folder = RunFolder.open(path)
    if judge is None:
        return Scores(path.name, tuple(score_run(folder, grading)))
    settings, serving = judge_of(judge)
    judged = score_with_judge(folder, grading, settings, serving)
    return Scores(path.name, tuple(judged.scores), tuple(judged.reports))


def report(
    runs: Sequence[Run | RunFolder | FilePath] | Run | FilePath,
    *,
    out: FilePath | None = None,
    show_withheld: bool = False,
) -> Report:
    """One report of scored runs, the first one the baseline, beside published scores of their models.

    out: a folder for report.html, .md, .csv and .tex. show_withheld: show also the questions that their card asks to
    keep out of what is published. Raises `StoreError`.
    """
    listed = [runs] if isinstance(runs, (Run, RunFolder, str, os.PathLike)) else list(runs)
    if not listed:
        raise UsageError("name at least one run", field="runs")
    folders = [RunFolder.open(_path(one)) for one in listed]
    made = report_of(
        folders,
        load_published(models=[Manifest.load(folder).model for folder in folders]),
        repeat=lambda manifest: [python_call(options) for options in options_again(manifest)],
        show_withheld=show_withheld,
    )
    if out is not None:
        made.write(Path(out))
    return made


def grade(
    reference: str,
    response: str,
    *,
    kind: AnswerKind | Literal["auto"] = "auto",
    choices: Sequence[str] = (),
    relative_tolerance: float = 0.0,
    absolute_tolerance: float = 0.0,
    round_to_reference: bool = False,
    deadline: float | None = None,
) -> Verdict:
    """The verdict on one response, with the steps that led to it; true where the answer is right.

    The comparison runs in a process of its own, bounded in time (deadline: seconds) and memory.
    """
    rules = GradeRules(
        relative_tolerance=relative_tolerance,
        absolute_tolerance=absolute_tolerance,
        round_to_reference=round_to_reference,
    )
    limit = pool.DEADLINE_SECONDS if deadline is None else deadline
    return pool.verdict_on(reference, response, kind=kind, rules=rules, choices=tuple(choices), deadline_s=limit)


def serve(engine: str, model: str = "", *, detach: bool = False, **fields: Any) -> RunningServer:
    """Start a server and wait until it really answers; a context manager that stops it.

    engine: llama_cpp, vllm, sglang …; fields: those of `server_launchers.spec.ServerSpec`, such as tp=8.
    detach: it outlives this process; stop it by `.stop()` or `harness serve stop`. Raises `UsageError`, `ServerError`.
    """
    watcher = Watcher()
    return servers.launched(servers.spec(engine, model, watcher, **fields), watcher, detach=detach)


def _path(source: Run | RunFolder | FilePath) -> Path:
    return source.path if isinstance(source, (Run, RunFolder)) else Path(source)


def _named_keywords(function: Callable[..., Any]) -> None:
    """Let `help` and editors show the options by name in the place of `**options`."""
    shown = inspect.signature(function)
    fixed = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
        for name, field in RunOptions.model_fields.items()
        if name != "benchmarks"
    ]
    function.__signature__ = shown.replace(parameters=[*fixed, *options])  # type: ignore[attr-defined]


for _function in (run, run_async, pilot):
    _named_keywords(_function)

__all__ = [
    "Judge",
    "Pilot",
    "Report",
    "Run",
    "RunOptions",
    "Scores",
    "Verdict",
    "grade",
    "pilot",
    "report",
    "run",
    "run_async",
    "score",
    "serve",
]
