"""`harness score`: grade a run's samples, or any tool's outputs, and aggregate them."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import judge as judges
from harness.cli import terminal
from harness.cli.json_output import json_option, say
from harness.cli.shared_options import any_k
from harness.cli.spelling import Command
from harness.core.errors import EXIT_OWED, EXIT_UNJUDGED, UsageError
from harness.core.inert import visible
from harness.core.wording import option

if TYPE_CHECKING:
    from harness.asking.options import JudgeOptions
    from harness.cli.printed.scores import RunScore
    from harness.exports.trackers import Tracker
    from harness.grading.second.second_opinion import Agreement
    from harness.runs import RunFolder
    from harness.scoring import Score
    from harness.scoring.pipeline import Grading
    from harness.verbs.judge import Judged, JudgeSettings
    from harness.verbs.outputs import ScoredFile

_FIRST = ("response_key", "answer_key", "tool", "as_json", "fresh", "also", "follow", "judge_model", "judge_base_url")
_COLUMNS = ("response_key", "answer_key", "question_key", "id_key", "tool", "benchmark", "written_by", "repeats", "out")
"""Flags about a file of outputs."""


def _prints() -> Any:
    from harness.cli.printed.scores import RunScore

    return list[RunScore]


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
@click.option(
    "--benchmark",
    help="The card whose questions FILE answers: they are known by their text, and graded by its references.",
)
@click.option(
    "--written-by",
    metavar="MODEL",
    help="The model that wrote FILE, by its published name: `harness verify` and `report` set its scores beside.",
)
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
    help="Write the grades of FILE here, too, one JSON line a sample. Of shards: where they are joined.",
)
@json_option(_prints, "a list of the scores, one of each benchmark,")
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
    """Grade and score each SOURCE: a run folder, or a file of another tool's outputs; shards of one run are joined
    in --out first. What came of FILE stands in FILE.scored, for `harness report`, `compare` and `verify`.

    \b
    harness score results/qwq-32b
    harness score outputs.jsonl --response-key gen --answer-key answer
    harness score samples_aime24.jsonl --from lm_eval
    harness score results/qwq-32b aime24_bz64.jsonl --benchmark aime24
    harness score results/qwq-32b --k 10
    harness score results/qwq-32b --follow
    harness score results/qwq-32b --also math-verify
    harness score results/qwq-32b --track wandb
    harness score results/qwq-32b-shard-*-of-8 --out results/qwq-32b
    harness score results/qwq-32b --judge Qwen/Qwen2.5-32B-Instruct --serve vllm --tp 8
    """
    _load_numpy()
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
    columns = {name: flags.pop(name) for name in _COLUMNS}
    described = {name: value for name, value in columns.items() if value not in (None, "auto")}
    trackers = _trackers(track)
    judge_options = judges.judge_options_of(flags)
    if also_python and not also:
        raise UsageError("--also-python goes with --also GRADER")
    if follow and on is not None:
        raise UsageError("--follow goes on while a run does; --on grades one that has ended")
    if follow and judge_options is not None:
        raise UsageError("--follow grades by the rules; --judge goes with a run that has ended")
    if follow and len(sources) > 1:
        raise UsageError("--follow goes on with one run at a time")
    of_tools = [source for source in sources if _is_outputs(source, columns["tool"], described)]
    sources = _one_by_one(sources, of_tools, columns)
    if of_tools:
        for flag, value in (("--follow", follow), ("--track", track), ("--on", on)):
            if value:
                raise UsageError(f"{flag} goes with a run folder; {of_tools[0]} is a file")
    elif given := [name for name, value in columns.items() if value not in (None, "auto")]:
        raise UsageError(f"{option(given[0])} goes with a file of outputs; {sources[0]} is a run folder")
    scored = [
        _score_file(source, grading, columns, judge_options)
        if source in of_tools
        else _score_run(source, grading, judge_options, on=on, follow=follow)
        for source in sources
    ]
    named = _labelled(scored)
    if as_json:
        say(_told(named))
    else:
        _print_tables(named, k)
    for label, one in named:
        if also:
            from harness.verbs.second_opinions import second_opinions

            for benchmark, found in second_opinions(one.graded, also, also_python).items():
                _show_agreement(benchmark if len(named) == 1 else f"{label}, {benchmark}", found, also, stderr=as_json)
        for name, tracker in trackers.items():
            _track(one, name, tracker)
        if one.judged is not None:
            judges.show(*one.judged, stderr=as_json)
    outcomes = [one.judged[0].outcome for one in scored if one.judged is not None]
    if any(outcome is not None and not outcome.complete for outcome in outcomes):
        sys.exit(EXIT_OWED)
    if any(score.verifier_errors for one in scored for score in one.scores):
        sys.exit(EXIT_UNJUDGED)


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """What was scored, and its scores; judged: with the judge, if one was asked."""

    graded: RunFolder | ScoredFile
    folder: RunFolder
    scores: list[Score]
    judged: tuple[Judged, JudgeSettings] | None = None


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


def _track(scored: _Scored, name: str, tracker: Tracker) -> None:
    from harness.exports.trackers import track

    seen = track(scored.folder, scored.scores, tracker)
    click.echo(f"told {visible(name, 100)}{': ' + visible(seen, 400) if seen else ''}", err=True)


def _is_outputs(source: Path, tool: str | None, described: dict[str, Any]) -> bool:
    from harness.verbs.outputs import is_outputs

    return is_outputs(source, tool=tool, described=bool(described))


def _one_by_one(sources: tuple[Path, ...], of_tools: list[Path], columns: dict[str, Any]) -> tuple[Path, ...]:
    """What gets scores of its own: the sources, or the folder into which those of one run are joined."""
    out: Path | None = columns["out"]
    if len(sources) == 1:
        return sources
    if of_tools:
        if out is not None:
            raise UsageError(
                f"it goes with one file, or with the folders of one run; {of_tools[0]} is one of several sources. The "
                "grades of each file stand in FILE.scored",
                field="out",
            )
    elif out is not None:
        from harness.cli.merge import join

        join(sources, out)
        columns["out"] = None
        return (out,)
    if parts := [source for source in sources if source not in of_tools and _is_shard(source)]:
        raise UsageError(
            f"{parts[0]} is a shard: shards are joined before they are scored; give the folders of that run alone, and "
            "name the folder for that",
            field="out",
        )
    return sources


def _is_shard(source: Path) -> bool:
    from harness.runs import Manifest, RunFolder
    from harness.runs.manifest import SHARD

    return any(SHARD in record.identity for record in Manifest.load(RunFolder.open(source)).benchmarks.values())


def _labelled(scored: list[_Scored]) -> list[tuple[str, _Scored]]:
    from harness.runs.layout import labels

    return list(zip(labels([one.folder for one in scored]), scored, strict=True))


def _score_file(source: Path, grading: Grading, columns: dict[str, Any], judge_options: JudgeOptions | None) -> _Scored:
    from harness.cli.watching import Terminal
    from harness.verbs.outputs import score_file

    found = score_file(source, grading, Terminal(), **columns)
    if judge_options is None:
        return _Scored(graded=found, folder=found.folder, scores=found.scores)
    from harness.verbs.judge import judge_of
    from harness.verbs.judged_outputs import judge_file

    with Terminal() as watcher:
        judge, serve = judge_of(judge_options, watcher)
        judged = judge_file(
            found, judge, serve, on_progress=watcher.progressed, resume_command=watcher.resume_command,
            out=columns["out"],
        )  # fmt: skip
    return _Scored(graded=found, folder=found.folder, scores=judged.scores, judged=(judged, judge))


def _score_run(
    source: Path, grading: Grading, judge_options: JudgeOptions | None, *, on: str | None, follow: bool
) -> _Scored:
    from harness.cli import following
    from harness.cli.watching import Terminal
    from harness.runs import RunFolder
    from harness.scoring import pipeline

    folder = RunFolder.open(source)
    if on is not None:
        from harness.extensions.on_ray.grading import grade_on

        grading = grade_on(on, folder, grading, Terminal())
    if judge_options is not None:
        from harness.verbs.judge import judge_of, score_with_judge

        with Terminal() as watcher:
            judge, serve = judge_of(judge_options, watcher)
            judged = score_with_judge(
                folder, grading, judge, serve, on_graded=watcher.graded, on_progress=watcher.progressed,
                resume_command=watcher.resume_command,
            )  # fmt: skip
        return _Scored(graded=folder, folder=folder, scores=judged.scores, judged=(judged, judge))
    score = following.follow if follow else pipeline.score_run
    return _Scored(graded=folder, folder=folder, scores=score(folder, grading, Terminal().graded))


def _show_agreement(benchmark: str, found: Agreement, name: str, *, stderr: bool) -> None:
    from harness.cli.agreement import disagreement_lines, matrix_lines

    ours, other = 100 * found.accuracy_ours, 100 * found.accuracy_theirs
    click.echo(f"{visible(benchmark)}: rules {ours:.1f} %, {name} {other:.1f} %", err=stderr)
    for line in (*matrix_lines(found, name), *disagreement_lines(found, name, "the rules' verdict counts")):
        click.echo(line, err=stderr)


def _told(named: list[tuple[str, _Scored]]) -> list[RunScore]:
    import msgspec

    from harness.cli.printed.scores import RunScore

    return [RunScore(run=label, **msgspec.structs.asdict(score)) for label, one in named for score in one.scores]


def _print_tables(scored: list[tuple[str, _Scored]], ks: tuple[int, ...]) -> None:
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

    named = [(label, score) for label, one in scored for score in one.scores]
    cut = [one for one in named if one[1].first_right is not None]  # asked for by --cut-text
    over_k = over_k_table(named, ks) if ks else None
    where_any = (over_k, budget_table(cut), first_right_table(cut), speed_table(named), endpoint_table(named))
    tables = [score_table(named), sample_table(named), *(table for table in where_any if table is not None)]
    terminal.console().print(to_terminal(tables))
