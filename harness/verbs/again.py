"""Derives from a run's manifest and scores the commands that ask for the same samples and grade them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.asking.options.judge import JudgeOptions
from harness.asking.options.run import RunOptions
from harness.asking.options.what import OF_DATA
from harness.benchmarks import catalogue, prompts
from harness.benchmarks.card import Card
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.options import COMMAS, Option, options_of
from harness.grading.second.judge import without_judge
from harness.grading.second.judge_prompts import RUBRIC
from harness.grading.verifier import TRUST_VARIABLE, own_module
from harness.presets.sampling import DEFAULT_SAMPLING, SERVER_FILLED, sampling_fields
from harness.runs import questions
from harness.runs.manifest import ASKED_WITH, KEY_VARIABLE, SELECTED, BenchmarkRecord, Manifest
from harness.scoring.score import Score

FILLED_BY_SERVER = "filled_by_server"
"""Key of a setting in a run's record that says which sampling values the server filled in. Records without this key
come from versions that sent no neutral values (values without effect, sent so that a server does not use its defaults).
"""

_SELECTING = {"limit", "filter"}
"""The recorded options that select questions; without them, the ids in the plan select them."""

UNKNOWN_DATA = "QUESTIONS_FILE"
"""Stands for the path of a file of questions in a run of an earlier version, which records only the file's digest."""


AGAIN = "-again"
"""Ends the name of the folder to which a run is repeated."""


def lines_again(manifest: Manifest, run: str, scores: Sequence[Score]) -> list[str]:
    """The lines of a shell that repeat a run and its scores: a comment that lists the user's files, the line that
    trusts graders of one's own, the runs, and a scoring by each judge, or one without. A rubric is a file `rubric.txt`.
    """
    judges: list[dict[str, Any]] = []
    for score in scores:
        judge = {} if score.judge_errors is None else score.judge_errors.settings
        if str(judge.get("prompt", "")).startswith(RUBRIC):
            judge = judge | {"prompt": "./rubric.txt"}
        # Before the comparison below: the same judge behind another key is asked by a line of its own.
        if score.judge_errors is not None and score.judge_errors.key_variable:
            judge = judge | {KEY_VARIABLE: score.judge_errors.key_variable}
        if judge and judge not in judges:
            judges.append(judge)
    # A run is refused if a function of the user's own leaves answers to a judge, and no judge is named.
    is_own = any(own_module(without_judge(grader)) for score in scores for grader in score.graders)
    judge = judges[0] if len(judges) == 1 and is_own else {}
    runs = [run_command(options, judge) for options in options_again(manifest, run)]
    before = [*_files_line(manifest, scores), *_trusting(scores)]
    if runs and not judges:
        judges.append({})
    return [*before, *runs, *(score_command(f"{run}{AGAIN}", judge) for judge in judges)]


def _files_line(manifest: Manifest, scores: Sequence[Score]) -> Iterator[str]:
    """Yield a comment that lists the user's files that the commands need; none if they need none.

    A card and a file of questions are named by their paths, the questions of a card by the name in the card.
    """
    files: dict[str, None] = {}
    for record in manifest.benchmarks.values():
        card, data = record.settings.get(catalogue.CARD), record.settings.get(catalogue.DATA)
        note = record.settings.get(questions.MADE)
        origin = note.get("origin") if card and isinstance(note, Mapping) else None
        files |= dict.fromkeys(str(file) for file in (card, data or origin) if file)
    for grader in sorted({without_judge(grader) for score in scores for grader in score.graders}):
        if module := own_module(grader):
            file, digest = f"{module.replace('.', '/')}.py", grader.rpartition("@")[2]
            files[f"{file} (SHA-256 begins {digest}; in the folder of these commands)"] = None
    for judge in (score.judge_errors for score in scores if score.judge_errors is not None):
        if str(judge.settings.get("prompt", "")).startswith(RUBRIC):
            digest = f"SHA-256 begins {judge.rubric_file}; " if judge.rubric_file else ""
            files[f"rubric.txt ({digest}its text is below the settings in report.html)"] = None
    if files:
        names = ", ".join(map(visible, files))
        yield f"# needs these files, send them along: {names}. Change the paths below to where they lie"


def _trusting(scores: Iterable[Score]) -> Iterator[str]:
    """Yield the line that trusts the modules of the scores' graders, and imports them from the folder in which the
    commands run; none for the graders of the harness.
    """
    graders = {without_judge(grader) for score in scores for grader in score.graders}
    if modules := ",".join(sorted(set(filter(None, map(own_module, graders))))):
        yield f'export {TRUST_VARIABLE}={shlex.quote(modules)} PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}"'


def options_again(manifest: Manifest, run: str = "") -> list[dict[str, Any]]:
    """The fields of `RunOptions` that repeat a run: one mapping for each group of benchmarks with the same options.

    run: the run's name; the repeat is then written to a folder `NAME-again`, so that it does not continue the run.

    The fields fix the run's identity (the settings that its samples depend on) and the endpoints. Speed and limits are
    left to the defaults. A manifest holds the name of the key's variable, but no keys or headers, so the user gives
    these again. Benchmarks that another tool has run are left out.
    """
    groups: list[dict[str, Any]] = []
    for name, record in manifest.benchmarks.items():
        if record.imported:
            continue  # Another tool made these samples: there is no request to repeat.
        # A file may have the name of a benchmark by chance.
        card = None if record.settings.get(catalogue.WITHOUT_CARD) else _card(name)
        options = _options(manifest.model, record, card)
        samples = record.plan.samples
        if run:
            options["out"] = f"{run}{AGAIN}"
        data, file = record.settings.get(catalogue.DATA), record.settings.get(catalogue.CARD)
        if card is None and file is None:
            groups.append({"data": data or UNKNOWN_DATA, "samples": samples, **options})
            continue
        if data is not None:
            options["data"] = data
        # A card's file is recorded without the release or dates that the user put behind it.
        _, sign, restriction = name.partition("@")
        benchmark = f"{name if file is None else f'{file}{sign}{restriction}'}:{samples}"
        alike = [group for group in groups if _without_benchmarks(group) == options and "data" not in group]
        if alike:
            alike[0]["benchmarks"].append(benchmark)
        else:
            groups.append({"benchmarks": [benchmark], **options})
    return groups


def run_command(options: Mapping[str, Any], judge: Mapping[str, Any] | None = None) -> str:
    """The command `harness run …` with these options, as `options_again` gives them, and by a judge if there is one."""
    words = ["harness", "run", *([",".join(options["benchmarks"])] if "benchmarks" in options else [])]
    declared = options_of(RunOptions)
    for name, value in options.items():
        if name != "benchmarks":
            words += _words(declared[name], value)
    return shlex.join([*words, *_judge_words(judge or {})])


def score_command(run: str, judge: Mapping[str, Any]) -> str:
    """The command `harness score RUN` by a judge if there are fields of `JudgeOptions`."""
    return shlex.join(["harness", "score", run, *_judge_words(judge)])


def _judge_words(judge: Mapping[str, Any]) -> list[str]:
    """The words that name the judge; none without one."""
    if not judge:
        return []
    address = f"@{judge['base_url'][0]}" if judge.get("base_url") else ""
    keyed = (
        f",{name}={json.dumps(value) if isinstance(value, bool) else value}"
        for name, value in judge.items()
        if name not in ("model", "base_url") and name in options_of(JudgeOptions) and value is not False
    )
    return ["--judge", f"{judge['model']}{address}{''.join(keyed)}"]


def _words(option: Option, value: Any) -> Iterator[str]:
    """Yield the words of the command line that give the option this value."""
    if option.type is bool:
        yield option.flag_word
        return
    for member in value if option.is_list and option.kind is not COMMAS else [value]:
        yield option.flag_word
        if isinstance(member, dict):
            yield json.dumps(member)
        elif isinstance(member, list):
            yield ",".join(map(str, member))
        else:
            yield "none" if member is None else str(member)


def _without_benchmarks(group: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a group without its benchmarks: groups with equal options are merged."""
    return {name: value for name, value in group.items() if name != "benchmarks"}


def _options(model: str, record: BenchmarkRecord, card: Card | None) -> dict[str, Any]:
    """The run options that differ from the defaults; with them a run sends the same requests as the recorded one."""
    identity, settings = record.identity, record.settings
    options: dict[str, Any] = {"model": model}
    if addresses := [_address(endpoint) for endpoint in settings.get("endpoints") or [] if isinstance(endpoint, dict)]:
        options["base_url"] = addresses
    if variable := settings.get(KEY_VARIABLE):
        options[KEY_VARIABLE] = variable
    sampling = dict(identity.get("sampling") or {})
    options |= {name: sampling[name] for name in sampling_fields() if name in sampling}
    by_default = {**DEFAULT_SAMPLING.sent(), **(card.sampling.sent() if card is not None else {})}
    dropped = [name for name in by_default if name not in sampling]
    if FILLED_BY_SERVER not in settings:  # The run sent no neutral values, so its repeat must not send any.
        dropped += [name for name in SERVER_FILLED if name not in sampling]
    if dropped:
        options["drop"] = dropped
    if identity.get("api", "chat") != "chat":
        options["api"] = identity["api"]
    if identity.get("seed", 0) != 0:
        options["seed"] = identity["seed"]
    options |= _prompt(identity, card)
    # A run that an earlier version joined from shards has its selection among the settings.
    ids = settings.get(SELECTED, record.plan.question_ids)
    given = settings.get(ASKED_WITH, {})
    if isinstance(given, dict):
        options |= {name: value for name, value in given.items() if name in _SELECTING or name in OF_DATA}
    if ids is not None and not options.keys() & _SELECTING:
        options["ids"] = ids
    body = dict(identity.get("extra_body") or {})
    if identity.get("chat_template_kwargs"):
        body["chat_template_kwargs"] = identity["chat_template_kwargs"]
    if body:
        options["extra_body"] = body
    if identity.get("fitted_max_tokens") is not None:
        options["fit_context"] = True
    return options


def _prompt(identity: Mapping[str, Any], card: Card | None) -> dict[str, Any]:
    """The options for the prompt and the system prompt, each only if the run's differs from the card's.

    identity: the settings that the run's samples depend on.
    """
    name, system = identity.get("prompt"), identity.get("system_prompt")
    if not isinstance(name, str):
        return {}
    options = {} if card is not None and card.prompt == name else {"prompt": name}
    try:
        own = prompts.find_prompt(name, card.prompts if card is not None else ()).system
    except UsageError:
        own = None
    if (system or None) != (own or None):
        options["system_prompt"] = system or "none"
    return options


def _address(endpoint: Mapping[str, Any]) -> str:
    """The recorded endpoint as the option `base_url` takes it: `URL`, or `URL,weight=N`."""
    weight = endpoint.get("weight", 1.0)
    return str(endpoint.get("base_url")) + ("" if weight == 1.0 else f",weight={weight:g}")


def _card(name: str) -> Card | None:
    """The card of that name, restricted as the name says; None if there is none, or if it is damaged."""
    try:
        return catalogue.load(name) if catalogue.base_name(name) in catalogue.names() else None
    except UsageError:
        return None
