"""`harness score`: grade a run's samples, or any tool's outputs, and aggregate them."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import judge as judges
from harness.cli import terminal
from harness.cli.shared_options import any_k
from harness.cli.spelling import Command
from harness.core.errors import EXIT_OWED, EXIT_UNJUDGED, UsageError
from harness.core.inert import visible
from harness.core.wording import option

if TYPE_CHECKING:
    from harness.experiments.judging import Judged, JudgeSettings
    from harness.experiments.options import JudgeOptions
    from harness.experiments.outputs import ScoredFile
    from harness.exports.trackers import Tracker
    from harness.grading.second.second_opinion import Agreement
    from harness.scoring import Score
    from harness.scoring.pipeline import Grading

_FIRST = ("response_key", "answer_key", "tool", "as_json", "fresh", "also", "follow", "judge_model", "judge_base_url")
_COLUMNS = ("response_key", "answer_key", "question_key", "id_key", "tool", "benchmark", "repeats", "out")
"""Flags about a file of outputs."""


@click.command("score", cls=Command, first=_FIRST)
@click.argument("sources", metavar="SOURCE", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--response-key", help="Column of the response in FILE; a cell may hold a list of samples.")
@click.option("--answer-key", help="Column of the reference answer in FILE.")
@click.option("--question-key", help="Column of the question in FILE: equal questions are samples of one.")
@click.option("--id-key", help="Column of the question's id in FILE.")
@click.option(
    "--from",
    "tool",
    help="The tool that wrote FILE: llmeval, limo, lm_eval, inspect, openai_batch, sglang, nemo_skills and "
    "sgl_eval (also a folder of output-rs*.jsonl), opencompass, evalscope.",
)
@click.option("--benchmark", help="Card with the questions, for files that hold no reference answers.")
@click.option(
    "--repeats",
    type=click.Choice(["auto", "samples", "questions"]),
    default="auto",
    show_default=True,
    help="What equal rows of FILE are.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the grades of FILE here, one JSON line a sample. Of several run folders: where they are joined.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the scores as a JSON list, one of each benchmark (docs/json.md)."
)
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that grade. Default: the cores.")
@click.option("--deadline", type=float, help="Seconds for one answer, after which it is undecided. Default: 2.")
@click.option("--fresh", is_flag=True, help="Grade all samples again, also those graded by this version.")
@click.option(
    "--answer-from-reasoning",
    is_flag=True,
    help="Also say what the accuracy would be if reasoning without a final answer were searched.",
)
@click.option(
    "--cut-text",
    is_flag=True,
    help="Also grade what longer replies had come to at smaller budgets, and when the right answer first stood.",
)
@any_k
@click.option(
    "--no-salvaged",
    "salvaged",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Leave samples out that went on after an interruption (see --salvage of `harness run`).",
)
@click.option(
    "--also", type=click.Choice(["math-verify", "sympy"]), help="Grade a second time by this grader, and compare."
)
@click.option(
    "--also-python",
    type=click.Path(exists=True, dir_okay=False),
    help="Interpreter that has it. Default: this one.",
)
@click.option(
    "--track",
    multiple=True,
    metavar="TOOL",
    help="Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/howto/trackers.md); may be repeated.",
)
@click.option(
    "--on", metavar="ray[://HOST:PORT]", help="Grade on the nodes of a Ray cluster, and count here (docs/howto/ray.md)."
)
@click.option("--follow", is_flag=True, help="Go on while the run does, grading what is stored meanwhile.")
@judges.judge_options
def command(
    sources: tuple[Path, ...],
    as_json: bool,
    workers: int | None,
    deadline: float | None,
    fresh: bool,
    answer_from_reasoning: bool,
    cut_text: bool,
    k: tuple[int, ...],
    salvaged: bool,
    also: str | None,
    also_python: str | None,
    follow: bool,
    track: tuple[str, ...],
    on: str | None,
    **flags: Any,
) -> None:
    """Grade and score SOURCE: a run folder, several of one run (shards; --out says where they are joined), or a file
    of another tool's outputs.

    \b
    harness score results/qwq-32b
    harness score outputs.jsonl --response-key gen --answer-key answer
    harness score samples_aime24.jsonl --from lm_eval
    harness score results/qwq-32b --k 10
    harness score results/qwq-32b --follow
    harness score results/qwq-32b --also math-verify
    harness score results/qwq-32b --track wandb
    harness score results/qwq-32b-shard-*-of-8 --out results/qwq-32b
    harness score results/qwq-32b --judge Qwen/Qwen2.5-32B-Instruct --serve vllm --tp 8
    """
    _load_numpy()
    from harness.core import codec
    from harness.scoring.pipeline import Grading

    defaults = Grading()
    grading = Grading(
        workers=workers or os.cpu_count() or 1,
        deadline_s=deadline if deadline is not None else defaults.deadline_s,
        fresh=fresh,
        answer_from_reasoning=answer_from_reasoning,
        cut_text=cut_text,
        ks=k,
        salvaged=salvaged,
    )
    source = sources[0] if len(sources) == 1 else _joined(sources, flags)
    columns = {name: flags.pop(name) for name in _COLUMNS}
    trackers = _trackers(track)
    given = {name: value for name, value in columns.items() if value not in (None, "auto")}
    judge_options = judges.judge_options_of(flags)
    if also_python and not also:
        raise UsageError("--also-python goes with --also GRADER")
    judged = of_file = None
    if (source.is_dir() and columns["tool"] is None) or not (source.exists() or given):
        if given:
            raise UsageError(f"{option(next(iter(given)))} goes with a file of outputs; {source} is a run folder")
        if on is not None:
            if follow:
                raise UsageError("--follow goes on while a run does; --on grades one that has ended")
            grading = _grade_on(on, source, grading)
        if judge_options is not None:
            if follow:
                raise UsageError("--follow grades by the rules; --judge goes with a run that has ended")
            judge, judged = _judge_run(source, grading, judge_options)
            scores = judged.scores
        else:
            scores = _score_run(source, grading, follow=follow)
    else:
        for flag, value in (("--follow", follow), ("--track", track), ("--on", on)):
            if value:
                raise UsageError(f"{flag} goes with a run folder; {source} is a file")
        from harness.cli.watching import Terminal
        from harness.experiments.outputs import score_file

        of_file = score_file(source, grading, Terminal(), **columns)
        scores = of_file.scores
        if judge_options is not None:
            judge, judged = _judge_file(of_file, judge_options, columns["out"])
            scores = judged.scores
    if as_json:
        click.echo(codec.pretty(scores).decode(), nl=False)
    else:
        _print_tables(source.name, scores, k)
    if also:
        from harness.experiments.second_opinions import second_opinions
        from harness.runs import RunFolder

        graded = RunFolder.open(source) if of_file is None else of_file
        for benchmark, found in second_opinions(graded, also, also_python).items():
            _show_agreement(benchmark, found, also, stderr=as_json)
    for name, tracker in trackers.items():
        _track(source, scores, name, tracker)
    if judged is not None:
        judges.show(judged, judge, stderr=as_json)
        if judged.outcome is not None and not judged.outcome.complete:
            sys.exit(EXIT_OWED)
    if any(score.verifier_errors for score in scores):
        sys.exit(EXIT_UNJUDGED)


def _load_numpy() -> None:
    """numpy without the threads of its linear algebra, which take half of the time that it needs to load; what is
    started later, a server among them, has its own."""
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        return
    os.environ[name] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[name]


def _trackers(names: tuple[str, ...]) -> dict[str, Tracker]:
    """Those named; refused before anything is graded."""
    if not names:
        return {}
    from harness.exports.trackers import tracker_named

    return {name: tracker_named(name) for name in names}


def _track(source: Path, scores: list[Score], name: str, tracker: Tracker) -> None:
    from harness.exports.trackers import track
    from harness.runs import RunFolder

    seen = track(RunFolder.open(source), scores, tracker)
    click.echo(f"told {visible(name, 100)}{': ' + visible(seen, 400) if seen else ''}", err=True)


def _joined(sources: tuple[Path, ...], flags: dict[str, Any]) -> Path:
    """The folder into which several are joined."""
    from harness.cli.merge import join

    if files := [source for source in sources if source.is_file()]:
        raise UsageError(f"{files[0]} is a file: give one file of outputs at a time, or the folders of one run")
    out: Path | None = flags["out"]
    if out is None:
        raise UsageError("several run folders are joined before they are scored: name the folder for that", field="out")
    join(sources, out)
    flags["out"] = None
    return out


def _grade_on(on: str, path: Path, grading: Grading) -> Grading:
    from harness.cli.watching import Terminal
    from harness.experiments.on_ray.grading import grade_on
    from harness.runs import RunFolder

    return grade_on(on, RunFolder.open(path), grading, Terminal())


def _judge_run(path: Path, grading: Grading, options: JudgeOptions) -> tuple[JudgeSettings, Judged]:
    from harness.cli.watching import Terminal
    from harness.experiments.judging import judge_of, score_with_judge
    from harness.runs import RunFolder

    folder = RunFolder.open(path)
    with Terminal() as watcher:
        judge, serve = judge_of(options, watcher)
        return judge, score_with_judge(
            folder, grading, judge, serve, on_graded=watcher.graded, on_progress=watcher.progressed,
            resume_command=watcher.resume_command,
        )  # fmt: skip


def _judge_file(of_file: ScoredFile, options: JudgeOptions, out: Path | None) -> tuple[JudgeSettings, Judged]:
    from harness.cli.watching import Terminal
    from harness.experiments.judged_outputs import judge_file
    from harness.experiments.judging import judge_of

    with Terminal() as watcher:
        judge, serve = judge_of(options, watcher)
        return judge, judge_file(
            of_file, judge, serve, on_progress=watcher.progressed, resume_command=watcher.resume_command, out=out
        )


def _score_run(path: Path, grading: Grading, *, follow: bool) -> list[Score]:
    from harness.cli import following
    from harness.cli.watching import Terminal
    from harness.runs import RunFolder
    from harness.scoring import pipeline

    if follow:
        return following.follow(RunFolder.open(path), grading, Terminal().graded)
    return pipeline.score_run(RunFolder.open(path), grading, Terminal().graded)


def _show_agreement(benchmark: str, found: Agreement, name: str, *, stderr: bool) -> None:
    from harness.cli.agreement import disagreement_lines, matrix_lines

    ours, other = 100 * found.accuracy_ours, 100 * found.accuracy_theirs
    click.echo(f"{visible(benchmark)}: rules {ours:.1f} %, {name} {other:.1f} %", err=stderr)
    for line in (*matrix_lines(found, name), *disagreement_lines(found, name, "the rules' verdict counts")):
        click.echo(line, err=stderr)


def _print_tables(label: str, scores: list[Score], ks: tuple[int, ...]) -> None:
    from harness.reports import (
        budget_table,
        endpoint_table,
        first_right_table,
        over_k_table,
        sample_table,
        score_table,
        speed_table,
        to_terminal,
    )

    named = [(label, score) for score in scores]
    cut = [one for one in named if one[1].first_right is not None]  # asked for by --cut-text
    over_k = over_k_table(named, ks) if ks else None
    where_any = (over_k, budget_table(cut), first_right_table(cut), speed_table(named), endpoint_table(named))
    tables = [score_table(named), sample_table(named), *(table for table in where_any if table is not None)]
    terminal.console().print(to_terminal(tables))
