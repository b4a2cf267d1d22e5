"""`harness score`: grade a run's samples, or any tool's outputs, and aggregate them."""

from __future__ import annotations

import importlib
import os
import sys
from functools import partial
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

if TYPE_CHECKING:
    from harness.asking.options import OutputsOptions, ScoreOptions
    from harness.cli.printed.scores import RunScore
    from harness.verbs.score import Scored, Spread

_FIRST = ("response_key", "answer_key", "tool", "as_json", "fresh", "also", "follow", "judge_model", "judge_base_url")
_RULES_COUNT = "the rules' verdict counts"


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
    from harness.asking.options import OutputsOptions, ScoreOptions
    from harness.cli import following
    from harness.cli.watching import Terminal
    from harness.runs.layout import labels
    from harness.scoring.pipeline import score_run
    from harness.verbs import score as scoring

    options = ScoreOptions.of(
        workers=workers,
        deadline=deadline,
        fresh=fresh,
        answer_from_reasoning=answer_from_reasoning,
        cut_text=cut_text,
        k=k,
        salvaged=salvaged,
        also=also,
        also_python=also_python,
    )
    outputs = OutputsOptions.of(**{name: flags.pop(name) for name in OutputsOptions.model_fields})
    trackers = scoring.trackers_named(track)
    judge = judges.judge_options_of(flags)
    if follow and on is not None:
        raise UsageError("--follow goes on while a run does; --on grades one that has ended")
    if follow and judge is not None:
        raise UsageError("--follow grades by the rules; --judge goes with a run that has ended")
    if follow and len(sources) > 1:
        raise UsageError("--follow goes on with one run at a time")
    sources, outputs = _one_by_one(sources, outputs)
    scoring.check(sources, outputs, {"follow": follow, "track": track, "on": on})
    spread = None if on is None else _on_cluster(on)
    by_rules = following.follow if follow else score_run
    scored = []
    for source in sources:
        with Terminal() as watcher:
            scored.append(scoring.score(source, options, outputs, judge, watcher, spread=spread, by_rules=by_rules))
    named = list(zip(labels([one.folder for one in scored]), scored, strict=True))
    if as_json:
        say(_records(named))
    else:
        _print_tables(named, k)
    for label, one in named:
        if also:
            _show_opinions(label if len(named) > 1 else "", one, options, stderr=as_json)
        for name, tracker in trackers.items():
            seen = scoring.tell(one, tracker)
            click.echo(f"told {visible(name, 100)}{': ' + visible(seen, 400) if seen else ''}", err=True)
        if one.judged is not None and one.judge is not None:
            judges.show(one.judged, one.judge, stderr=as_json)
    codes = {one.exit_code for one in scored}
    for code in (EXIT_OWED, EXIT_UNJUDGED):
        if code in codes:
            sys.exit(code)


def _on_cluster(on: str) -> Spread:
    from harness.extensions.on_ray.grading import grade_on

    return partial(grade_on, on)


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


def _one_by_one(sources: tuple[Path, ...], outputs: OutputsOptions) -> tuple[tuple[Path, ...], OutputsOptions]:
    """What gets scores of its own, the sources or the folder into which those of one run are joined, and what is said
    of files then."""
    from harness.verbs.score import are_outputs

    if len(sources) == 1:
        return sources, outputs
    files = [source for source in sources if are_outputs(source, outputs)]
    if files:
        if outputs.out is not None:
            raise UsageError(
                f"it goes with one file, or with the folders of one run; {files[0]} is one of several sources. The "
                "grades of each file stand in FILE.scored",
                field="out",
            )
    elif outputs.out is not None:
        from harness.cli.merge import join

        join(sources, outputs.out)
        return (outputs.out,), outputs.model_copy(update={"out": None})
    if parts := [source for source in sources if source not in files and _is_shard(source)]:
        raise UsageError(
            f"{parts[0]} is a shard: shards are joined before they are scored; give the folders of that run alone, and "
            "name the folder for that",
            field="out",
        )
    return sources, outputs


def _is_shard(source: Path) -> bool:
    from harness.runs import Manifest, RunFolder
    from harness.runs.manifest import SHARD

    return any(SHARD in record.identity for record in Manifest.load(RunFolder.open(source)).benchmarks.values())


def _show_opinions(label: str, scored: Scored, options: ScoreOptions, *, stderr: bool) -> None:
    """How a second grader agrees with the grades, and where it does not."""
    from harness.cli.agreement import disagreement_lines, matrix_lines
    from harness.verbs.second_opinions import second_opinions

    assert options.also is not None
    for benchmark, found in second_opinions(scored.source, options.also, options.also_python).items():
        ours, theirs = 100 * found.accuracy_ours, 100 * found.accuracy_theirs
        place = f"{label}, {benchmark}" if label else benchmark
        click.echo(f"{visible(place)}: rules {ours:.1f} %, {options.also} {theirs:.1f} %", err=stderr)
        lines = (*matrix_lines(found, options.also), *disagreement_lines(found, options.also, _RULES_COUNT))
        for line in lines:
            click.echo(line, err=stderr)


def _records(named: list[tuple[str, Scored]]) -> list[RunScore]:
    import msgspec

    from harness.cli.printed.scores import RunScore

    return [RunScore(run=label, **msgspec.structs.asdict(score)) for label, one in named for score in one.scores]


def _print_tables(scored: list[tuple[str, Scored]], ks: tuple[int, ...]) -> None:
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
