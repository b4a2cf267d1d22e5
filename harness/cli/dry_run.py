"""`harness run --dry-run`: shows every setting that affects the score, and each benchmark's first prompt and
reference.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources.images import shared_folder
from harness.cli import terminal
from harness.cli.judge import judge_names
from harness.cli.terminal import Terminal
from harness.commands.card_data import prompt_text
from harness.commands.cluster_interface import cluster
from harness.core import codec
from harness.core.codec import sample_seed
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.core.secret import without_secrets, without_user_info
from harness.core.turn_settings import turns_in
from harness.generation.context import fitted_max_tokens
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.judges.costs import most_requests
from harness.judges.judge import judge_of
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.preparing.prepare import prepare
from harness.preparing.question_warnings import unusual_images, warnings_without_a_judge
from harness.preparing.run_questions import questions_of
from harness.preparing.server_start import checked_spec
from harness.tools.tool import ToolSettings

MAX_REFERENCE_CHARS = 200
"""Longest reference answer shown in full, in characters; longer ones are clipped."""


_BY_SERVER = "as reported by the server"
"""Placeholder for values that a server that is not yet started will determine."""


def show(options: RunOptions, on: str | None, judge: JudgeOptions | None) -> None:
    """Print what the run would send, and the command lines of the server that it would start.

    Nothing is sent except one inspection of the server. judge: the judge that will score the run, which receives no
    requests; None: the rules.
    """
    from server_launchers import replicas

    if options.serve is None and on is not None:
        options = cluster(on).check(options)
    with Terminal() as watcher:
        if options.serve is not None:
            asked = questions_of(options, watcher)
            spec = checked_spec(asked)
            for line in replicas.dry_run(spec):
                click.echo(line)
            for sentence in replicas.start_problems(spec):
                terminal.note(sentence)
            _show(_rows_before_server(options), asked.sets, asked.benchmarks, {}, judge)
            sets = asked.sets
        else:
            with prepare(options.replace(wait=options.wait or 0), watcher, must_answer=True) as prepared:
                settings, sets = prepared.settings, prepared.sets
                of_set = {each.name: _rows_of_request(settings, each, prepared.server_info.contexts) for each in sets}
                _show(_rows_of_run(settings, prepared.server_info.contexts), sets, settings.benchmarks, of_set, judge)
        for warning in (*unusual_images(sets), *(warnings_without_a_judge(sets) if judge is None else ())):
            watcher.warn(warning)


def _show(
    rows: list[tuple[str, str]],
    sets: list[QuestionSet],
    benchmarks: Mapping[str, BenchmarkSettings],
    of_set: Mapping[str, list[tuple[str, str]]],
    judge: JudgeOptions | None,
) -> None:
    """Print the settings of the run, of each benchmark and of the judge, then the first prompts.

    of_set: for each benchmark, the rows that a server determines.
    """
    for questions in sets:
        name, benchmark = questions.name, benchmarks[questions.name]
        data = f"{questions.origin}, {len(questions.questions)} of {count_noun(questions.n_all, 'question')}"
        rows += [
            (f"{name}: data", data),
            (f"{name}: samples", f"{benchmark.samples} per question"),
            (f"{name}: sampling", ", ".join(f"{k} {v}" for k, v in benchmark.sampling.request_fields().items())),
            *([(f"{name}: tool", _tool_row(benchmark.tool))] if benchmark.tool is not None else []),
            *of_set.get(name, ()),
            *([(f"{name}: images", images)] if (images := _describe_images(questions)) else []),
            (f"{name}: prompt", questions.prompt),
            (f"{name}: system prompt", questions.system_prompt or "none"),
        ]
    terminal.table(("setting", "value"), [*rows, *_judge_rows(judge, sets, benchmarks)])
    _show_prompts(sets)


def _describe_images(questions: QuestionSet) -> str:
    """The number and size of the images that the questions contain, and the first one; empty without images."""
    names, folder = [part.sha256 for item in questions.questions for part in item.images], shared_folder()
    if not names:
        return ""
    n_with = sum(bool(item.images) for item in questions.questions)
    n_bytes = sum((folder.path / name).stat().st_size for name in {*names})
    return (
        f"{count_noun(len(names), 'image')} in {count_noun(n_with, 'question')}, {n_bytes:,} bytes in "
        f"{count_noun(len({*names}), 'file')}; the first: {folder.facts(names[0]).description}"
    )


def _tool_row(tool: ToolSettings) -> str:
    """The tool's limits, and what else its outputs depend on."""
    facts = dict(tool.facts)
    packages = " ".join(f"{name} {version}" for name, version in facts.pop("packages", {}).items())
    values = [f"{name} {value}" for name, value in {**tool.limits, **facts}.items()]
    return visible(", ".join([tool.tool.name, *values, *filter(None, [packages])]), 2000)


def _rows_before_server(options: RunOptions) -> list[tuple[str, str]]:
    """The settings of a run that are known before its server starts."""
    return [
        ("model", str(options.model)),
        ("run folder", str(options.out or "results/MODEL")),
        ("api", options.api),
        ("concurrency", _BY_SERVER if options.concurrency is None else str(options.concurrency)),
        ("run seed", "none" if options.seed is None else str(options.seed)),
        ("server context", _BY_SERVER),
    ]


def _rows_of_run(settings: RunSettings, contexts: list[int]) -> list[tuple[str, str]]:
    """The settings of a run whose server responds. contexts: the context lengths that the servers report, in tokens."""
    rows = [
        ("model", settings.model),
        ("endpoints", ", ".join(e.base_url for e in settings.endpoints)),
        ("run folder", str(settings.out)),
        ("api", settings.spelling.api_name),
        ("concurrency", str(settings.concurrency)),
        ("run seed", "none" if settings.seed is None else str(settings.seed)),
        ("server context", ", ".join(map(str, contexts)) or "not stated"),
    ]
    more = {"extra body": settings.spelling.extra_body, "chat template": settings.spelling.chat_template_kwargs}
    return rows + [(name, str(without_secrets(dict(fields)))) for name, fields in more.items() if fields]


def _rows_of_request(settings: RunSettings, questions: QuestionSet, contexts: list[int]) -> list[tuple[str, str]]:
    """The settings of a benchmark's requests that the server determines.

    Raises `ServerError`, as the run would, if max_tokens does not fit and the options do not allow lowering it.
    """
    name, benchmark = questions.name, settings.benchmarks[questions.name]
    rows = []
    if contexts:
        bound = benchmark.sampling.max_tokens
        fitted = fitted_max_tokens(name, questions.selection, bound, min(contexts), fit=settings.may_lower(name))
        if fitted != bound:
            rows.append((f"{name}: max_tokens, lowered to fit the context", str(fitted)))
    filled = settings.benchmark_record(name)["filled_by_server"]
    return [
        *rows,
        (f"{name}: neutral", ", ".join(f"{k} {v}" for k, v in benchmark.neutral.items()) or "none"),
        (f"{name}: filled in by the server", ", ".join(filled) or "none known"),
        (f"{name}: request", _request(settings, questions)),
    ]


def _judge_rows(
    judge: JudgeOptions | None, sets: list[QuestionSet], benchmarks: Mapping[str, BenchmarkSettings]
) -> list[tuple[str, str]]:
    """Rows of the settings table for the judge: its model, server, and prompt, which samples it judges, and the maximum
    number of requests; none without a judge.
    """
    if judge is None:
        return []

    settings = judge_of(judge)
    own = [settings.for_form(each.questions[0].rules.judge) for each in sets]
    scopes = {f"{each.scope}{', overriding the verdict of the rules' if each.override else ''}": None for each in own}
    rows = [
        ("judge", judge_names(settings)),
        ("judge: address", ", ".join(map(without_user_info, judge.base_url)) or "the running server"),
        ("judge: prompt", ", ".join(dict.fromkeys(each.prompt.name for each in own))),
        ("judge: samples", "; ".join(scopes)),
        ("judge: requests", f"at most {most_requests(sets, benchmarks, settings):,} (questions × samples)"),
        ("judge: sampling", ", ".join(f"{k} {v}" for k, v in settings.sampling.request_fields().items())),
    ]
    key = judge.api_key_env
    return rows if key is None else [*rows, ("judge: key from", key)]


def _show_prompts(sets: list[QuestionSet]) -> None:
    """Print each benchmark's first prompt, exactly as sent, and its reference answer."""
    for questions in sets:
        first = questions.questions[0]
        click.echo(f"First prompt of {questions.name} (question {visible(first.question_id)}):")
        for text in prompt_text(first).split("\n"):
            click.echo(f"  {visible(text)}")
        if first.turns:
            n, history = count_noun(len(first.turns), "turn"), turns_in(questions.turns).history
            click.echo(f"It has {n}, asked one after the other; each reply's {history} is sent back (`turns`).")
        if first.references:
            click.echo(
                f"Its reference answer: {' or '.join(visible(text, MAX_REFERENCE_CHARS) for text in first.references)}"
            )


def _request(settings: RunSettings, questions: QuestionSet) -> str:
    """The body of the first request without its prompt, with secrets hidden."""
    first = questions.questions[0]
    seed = None if settings.seed is None else sample_seed(settings.seed, first.question_id, 0)
    body = codec.decode(settings.template(questions.name).body(first, seed), dict)
    prompt = settings.spelling.api.prompt(first.messages, first.prompt)
    # A sealed field is hidden regardless of its name.
    sealed_body = body | dict(settings.spelling.extra_body)
    return codec.encode(
        without_secrets({name: value for name, value in sealed_body.items() if name not in prompt})
    ).decode()
