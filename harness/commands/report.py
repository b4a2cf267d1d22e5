"""Makes the report on scored runs, with published scores of their models for comparison."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.benchmarks import catalog
from harness.benchmarks.judge_forms import OF_CARD, RUBRIC
from harness.commands.baselines import Side
from harness.commands.benchmark_identity import card_name
from harness.commands.comparison_warnings import comparison_warnings
from harness.commands.imported_runs import open_scored
from harness.commands.repeated_replies import repeat_warnings
from harness.core import channel
from harness.core.errors import StoreError
from harness.core.files import real
from harness.core.options import options_of
from harness.core.sanitize import visible
from harness.core.secret import HIDDEN
from harness.deciding.paired_comparison import PairedComparison
from harness.deciding.published import load_published
from harness.grading.second.judge_messages import without_judge
from harness.grading.verifier import TRUST_VARIABLE, own_module
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions, recorded_options
from harness.reports.inputs import ScoredBenchmark, ScoredRun, read_without_grades
from harness.reports.report import Report
from harness.reports.report import report as report_of
from harness.reports.settings import checksum_table, failure_table, given_table, run_table
from harness.runs import sweep_cell
from harness.runs.layout import SHARDS, RunFolder, readable, runs_in
from harness.runs.manifest import KEY_VARIABLE, BenchmarkRecord, Manifest
from harness.runs.merging import describe_unjoined
from harness.scoring.judging import JudgeErrors
from harness.scoring.score import Score


def report(sources: Sequence[Path]) -> Report:
    """The report on these run folders, or scored outputs of other tools; the first is the baseline. Writes nothing.

    A folder of runs, such as a sweep's, means the runs in it; if it is the only source, it names the report. Raises
    `UsageError`, `StoreError`.
    """
    for source in sources:
        for shards in sorted(source.glob(f"*/{SHARDS}")) if runs_in(source) else ():
            if not RunFolder(shards.parent).manifest.is_file() and runs_in(shards):
                path = visible(str(shards.parent), 200)
                channel.warn(f"{path} is omitted because its shards have not been joined: run `harness score {path}`")
    named = [folder for source in sources for folder in sorted(runs_in(source), key=_place) or [open_scored(source)]]
    manifests = dict(readable(named, Manifest.load))
    folders = list(manifests)
    published = load_published(models=[manifest.model for manifest in manifests.values()])
    of_one_folder = len(sources) == 1 and bool(runs_in(sources[0]))
    return report_of(
        folders,
        published,
        repeat=lines_again,
        known_as=card_name,
        remarks=repeat_warnings,
        cautions=_pair_warnings,
        title=visible(real(sources[0]).name, 200) if of_one_folder else "",
    )


def _pair_warnings(
    run: ScoredRun, ours: ScoredBenchmark, base: ScoredRun, theirs: ScoredBenchmark, paired: PairedComparison
) -> Sequence[str]:
    """The warnings that `compare` would give; a sentence instead if a file that they need cannot be read."""
    try:
        return comparison_warnings(Side(run, ours), Side(base, theirs), paired)
    except StoreError as error:
        return [f"some warnings could not be computed: {error}"]


def _place(folder: RunFolder) -> int:
    """The run's position in its sweep; 0 if no sweep has recorded it or the record is damaged."""
    try:
        return sweep_cell.read_note(folder).place
    except StoreError:
        return 0


def run_facts(folder: RunFolder) -> dict[str, Any]:
    """What the viewer's page for a run shows: tables of its times and failures, `folded` tables of settings and
    checksums, its warnings, and the commands that repeat it. Raises `StoreError`.
    """
    run = read_without_grades(folder)
    return {
        "tables": [*filter(None, (run_table([run]), failure_table([run])))],
        "folded": [
            *(given_table(run, benchmark) for benchmark in run.benchmarks),
            *(table for benchmark in run.benchmarks if (table := checksum_table([run], benchmark)).rows),
        ],
        "warnings": [*run.history.warnings, *describe_unjoined(folder)],
        "commands": lines_again(run.manifest, run.label, run.scores),
    }


def default_folder(sources: Sequence[Path]) -> Path:
    """The default folder of a report: the folder of the only run; for several runs, the folder that contains the first;
    for a folder of runs, that folder.
    """
    if runs_in(sources[0]):
        return sources[0]
    first = open_scored(sources[0]).path
    return first if len(sources) == 1 else first.parent


# ---- the commands that repeat a run


AGAIN = "-again"
"""The end of the name of the folder into which a run is repeated."""

RUBRIC_FILE = "./rubric.txt"
"""The file of a judge's rubric in the commands."""


def lines_again(manifest: Manifest, run: str, scores: Sequence[Score]) -> list[str]:
    """The shell lines that repeat a run and its scores: a line that trusts the user's graders, the runs, and a scoring
    by each judge, or one without a judge. A rubric is in a file `rubric.txt`.

    Empty for a run without recorded options, such as an imported one.
    """
    groups = options_again(manifest, run)
    if not groups:
        return []
    judges: list[dict[str, Any]] = []
    for errors in (score.judge_errors for score in scores if score.judge_errors is not None):
        judge = _judge_again(errors)
        if judge and judge not in judges:
            judges.append(judge)
    # A run is rejected if one of the user's functions leaves answers to a judge and no judge is named.
    of_run = judges[0] if len(judges) == 1 and _own_graders(scores) else {}
    commands = [
        *(run_command(options, of_run) for options in groups),
        *(shlex.join(["harness", "score", f"{run}{AGAIN}", *_judge_words(judge)]) for judge in judges or [{}]),
    ]
    before = []
    # Trust the modules of the scores' graders, and import them from the folder where the commands run.
    if modules := ",".join(sorted({module for _, module in _own_graders(scores)})):
        before = [f'export {TRUST_VARIABLE}={shlex.quote(modules)} PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}"']
    if any(judge.get("prompt") == RUBRIC_FILE for judge in judges):
        before.append(f"# create {RUBRIC_FILE} from the rubric text (shown in the HTML report)")
    if any(HIDDEN in command for command in commands):
        before.append(f"# replace each {HIDDEN} with your own value: keys are not recorded")
    return [*before, *commands]


def _judge_again(errors: JudgeErrors) -> dict[str, Any]:
    """The fields of `JudgeOptions` that select the same judge; empty if they are not recorded."""
    settings = dict(errors.settings)
    if settings.pop("form", "") == OF_CARD:
        settings = {name: value for name, value in settings.items() if name not in ("prompt", "scope", "override")}
    rubric = {"prompt": RUBRIC_FILE} if str(settings.get("prompt", "")).startswith(RUBRIC) else {}
    key = {KEY_VARIABLE: errors.key_variable} if errors.key_variable else {}
    return {**settings, **rubric, **key}


def _own_graders(scores: Iterable[Score]) -> list[tuple[str, str]]:
    """The (name, module) of each of the user's own graders, in order; the name excludes a judge."""
    graders = sorted({without_judge(grader) for score in scores for grader in score.graders})
    return [(grader, module) for grader in graders if (module := own_module(grader))]


def options_again(manifest: Manifest, run: str = "") -> list[dict[str, Any]]:
    """The fields of `RunOptions` that repeat a run: one mapping for each group of benchmarks with the same options.

    run: the run's name; the repeat is then written to a folder `NAME-again`, so that it does not continue the run.

    The fields are those that the user set, except those that concern only a session (budgets, prices, pace, patience,
    accepting another server), and the run's model and endpoints. A manifest contains the name of the key's variable but
    no keys or headers, so the user must pass these again. Benchmarks without recorded options are left out.
    """
    groups: list[dict[str, Any]] = []
    for name, record in manifest.benchmarks.items():
        if record.options is None:
            continue
        options = _options(manifest.model, record, record.options)
        if run:
            options["out"] = f"{run}{AGAIN}"
        data, file = record.settings.get(catalog.DATA), record.settings.get(catalog.CARD)
        if record.settings.get(catalog.WITHOUT_CARD):
            # The user's options for these benchmarks, if any, replace what follows from the record.
            groups.append({"data": data, "samples": record.plan.samples, **options})
            continue
        if data is not None:
            options["data"] = data
        # A card's file is recorded without the release or dates that the user appended to it.
        _, sign, restriction = name.partition("@")
        benchmark = f"{name if file is None else f'{file}{sign}{restriction}'}:{record.plan.samples}"
        # Benchmarks share a command if their options are equal, except those that are run on a file.
        for group in groups:
            if "data" not in group and group == {"benchmarks": group["benchmarks"], **options}:
                group["benchmarks"].append(benchmark)
                break
        else:
            groups.append({"benchmarks": [benchmark], **options})
    return groups


def run_command(options: Mapping[str, Any], judge: Mapping[str, Any] | None = None) -> str:
    """The command `harness run …` with these options, from `options_again`, and with the judge if there is one."""
    words = ["harness", "run"]
    for name, value in options.items():
        words += [",".join(value)] if name == "benchmarks" else options_of(RunOptions)[name].arguments(value)
    return shlex.join([*words, *_judge_words(judge or {})])


def _judge_words(judge: Mapping[str, Any]) -> list[str]:
    """The words that name the judge; none without a judge."""
    if not judge:
        return []
    address = f"@{judge['base_url'][0]}" if judge.get("base_url") else ""
    keyed = (
        f",{name}={json.dumps(value) if isinstance(value, bool) else value}"
        for name, values in judge.items()
        for value in (values if isinstance(values, list | tuple) else [values])
        if name not in ("model", "base_url") and name in options_of(JudgeOptions) and value is not False
    )
    return ["--judge", f"{judge['model']}{address}{''.join(keyed)}"]


def _options(model: str, record: BenchmarkRecord, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run that requests the same samples. given: the user's recorded options."""
    settings, ids = record.settings, record.plan.question_ids
    options: dict[str, Any] = {"model": model}
    if addresses := [
        str(endpoint.get("base_url")) for endpoint in settings.get("endpoints") or [] if isinstance(endpoint, dict)
    ]:
        options["base_url"] = addresses
    if variable := settings.get(KEY_VARIABLE):
        options[KEY_VARIABLE] = variable
    if ids is not None and not given.keys() & {"limit", "filter"}:
        options["ids"] = ids
    return options | {name: value for name, value in recorded_options(given).items() if name not in _OF_A_SESSION}


_OF_A_SESSION = frozenset(
    [
        *("budget_tokens", "budget_usd", "prices", "rpm", "rate"),
        *("concurrency", "timeout", "attempts", "wait", "accept_server_change"),
    ]
)
"""Options that limit a session and change no reply. A complete run may have needed several sessions within a budget."""
