"""`harness run --dry-run`: shows all that shapes the score, and the first prompt and reference of each benchmark."""

from __future__ import annotations

from collections.abc import Mapping

import click

from harness.asking.options.judge import JudgeOptions
from harness.asking.options.run import RunOptions
from harness.asking.prepare import Asked, prepare, questions_of, server_of
from harness.asking.watching import Watcher
from harness.benchmarks.questions import QuestionSet
from harness.cli import terminal
from harness.cli.terminal import Terminal
from harness.core import codec
from harness.core.codec import sample_seed
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.secret import without_secrets, without_user_info
from harness.generation.context import fitted_max_tokens
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.verbs.elsewhere import cluster
from harness.verbs.judge import judge_of
from harness.verbs.judging_costs import most_requests
from harness.verbs.run import doubts_without_a_judge

MAX_REFERENCE_CHARS = 200
"""Longest reference answer that is shown whole, in characters; a longer one is clipped."""


def show(options: RunOptions, on: str | None, judge: JudgeOptions | None) -> None:
    """Print what the run would ask, and the command lines of a server that would be started.

    Nothing is sent except one look at the server. judge: who will score the run; it is asked nothing. None: the rules.
    """
    from server_launchers import replicas

    if options.serve is not None:
        watcher = Terminal()
        questions_asked = questions_of(options, watcher)
        spec = server_of(questions_asked)
        for line in replicas.dry_run(spec):
            click.echo(line)
        for sentence in replicas.remarks(spec):
            terminal.note(sentence)
        _show_unserved(options, questions_asked, judge)
        _warn(questions_asked.sets, judge, watcher)
        return
    if on is not None:
        options = cluster(on).check(options)
    with Terminal() as watcher, prepare(options, watcher, must_answer=True) as prepared:
        _show(prepared.settings, prepared.sets, prepared.contexts, judge)
        _warn(prepared.sets, judge, watcher)


def _warn(sets: list[QuestionSet], judge: JudgeOptions | None, watcher: Watcher) -> None:
    """Warn, as the run will, of references that the rules cannot compare, unless a judge decides."""

    for doubt in doubts_without_a_judge(sets) if judge is None else ():
        watcher.warn(doubt)


def _show(settings: RunSettings, sets: list[QuestionSet], contexts: list[int], judge: JudgeOptions | None) -> None:
    """Print the settings of the run and of its judge, then the first prompts.

    contexts: the context lengths that the servers state, in tokens.
    """
    fitted = _rows_of_fitted(settings, sets, contexts)
    rows = [
        ("model", settings.model),
        ("endpoints", ", ".join(e.base_url for e in settings.endpoints)),
        ("run folder", str(settings.out)),
        ("api", settings.spelling.api),
        ("concurrency", str(settings.concurrency)),
        ("run seed", "none" if settings.seed is None else str(settings.seed)),
        ("server context", ", ".join(map(str, contexts)) or "not stated"),
    ]
    if settings.spelling.extra_body:
        rows.append(("extra body", str(without_secrets(dict(settings.spelling.extra_body)))))
    if settings.spelling.chat_template_kwargs:
        rows.append(("chat template", str(without_secrets(dict(settings.spelling.chat_template_kwargs)))))
    for questions in sets:
        benchmark = settings.benchmarks[questions.name]
        rows += [
            *_questions_rows(questions, benchmark),
            *fitted.get(questions.name, ()),
            (f"{questions.name}: neutral", ", ".join(f"{k} {v}" for k, v in benchmark.neutral.items()) or "none"),
            (
                f"{questions.name}: filled by the server",
                ", ".join(settings.benchmark_record(questions.name)["filled_by_server"]) or "nothing that is known",
            ),
            (f"{questions.name}: request", _request(settings, questions)),
            *_prompt_rows(questions),
        ]
    terminal.table(("setting", "value"), [*rows, *_judge_rows(judge, sets, settings.benchmarks)])
    _show_prompts(sets)


def _rows_of_fitted(
    settings: RunSettings, sets: list[QuestionSet], contexts: list[int]
) -> dict[str, list[tuple[str, str]]]:
    """Benchmark → its row of the table, for benchmarks whose max_tokens is lowered to fit the server's context.

    Raises `ServerError`, as the run would, if max_tokens does not fit and the options do not allow lowering it.
    """

    if not contexts:
        return {}
    rows = {}
    for questions in sets:
        bound = settings.benchmarks[questions.name].sampling.max_tokens
        lowered = fitted_max_tokens(
            questions.name, questions.questions, bound, min(contexts), fit=settings.may_lower(questions.name)
        )
        if lowered != bound:
            rows[questions.name] = [(f"{questions.name}: max_tokens, lowered to fit the context", str(lowered))]
    return rows


def _judge_rows(
    judge: JudgeOptions | None, sets: list[QuestionSet], benchmarks: Mapping[str, BenchmarkSettings]
) -> list[tuple[str, str]]:
    """Rows of the table of settings: who judges, where, by which prompt, which samples, and how many requests that is
    at most; none without a judge.
    """
    if judge is None:
        return []

    settings, _ = judge_of(judge)
    scope = f"{settings.scope}{', its verdict replaces that of the rules' if settings.override else ''}"
    rows = [
        ("judge", settings.model),
        ("judge: address", ", ".join(map(without_user_info, judge.base_url)) or "the running server"),
        ("judge: prompt", settings.prompt.name),
        ("judge: samples", scope),
        ("judge: requests", f"at most {most_requests(sets, benchmarks):,} (questions × samples)"),
        ("judge: sampling", ", ".join(f"{k} {v}" for k, v in settings.sampling.sent().items())),
    ]
    key = judge.api_key_env
    return rows if key is None else [*rows, ("judge: key from", key)]


def _show_unserved(options: RunOptions, questions_asked: Asked, judge: JudgeOptions | None) -> None:
    """Print the settings that are known before the server runs. Not known yet: the server's context, and the sampling
    values to send so that it fills in none of its own.
    """
    by_server = "what the server states"
    rows = [
        ("model", str(options.model)),
        ("run folder", str(options.out or "results/ and the model's name")),
        ("api", options.api),
        ("concurrency", by_server if options.concurrency is None else str(options.concurrency)),
        ("run seed", "none" if options.seed is None else str(options.seed)),
    ]
    for questions in questions_asked.sets:
        rows += [*_questions_rows(questions, questions_asked.benchmarks[questions.name]), *_prompt_rows(questions)]
    judge_rows = _judge_rows(judge, questions_asked.sets, questions_asked.benchmarks)
    terminal.table(("setting", "value"), [*rows, *judge_rows])
    _show_prompts(questions_asked.sets)


def _questions_rows(questions: QuestionSet, benchmark: BenchmarkSettings) -> list[tuple[str, str]]:
    """Rows of the table of settings: the data, samples and sampling of one benchmark."""
    data = f"{questions.origin}, {len(questions.questions)} of {count_noun(questions.n_all, 'question')}"
    return [
        (f"{questions.name}: data", data),
        (f"{questions.name}: samples", f"{benchmark.samples} per question"),
        (f"{questions.name}: sampling", ", ".join(f"{k} {v}" for k, v in benchmark.sampling.sent().items())),
    ]


def _prompt_rows(questions: QuestionSet) -> list[tuple[str, str]]:
    """Rows of the table of settings: the prompt and the system prompt of one benchmark."""
    return [
        (f"{questions.name}: prompt", questions.prompt),
        (f"{questions.name}: system prompt", questions.system_prompt or "none"),
    ]


def _show_prompts(sets: list[QuestionSet]) -> None:
    """Print the first prompt of each benchmark as it is sent, and its reference answer."""
    for questions in sets:
        first = questions.questions[0]
        click.echo(f"First prompt of {questions.name} (question {visible(first.question_id)}):")
        for message in first.messages:
            click.echo(f"[{message.role}]")
            for text in message.content.split("\n"):
                click.echo(f"  {visible(text)}")
        for text in first.prompt.split("\n") if first.prompt else ():
            click.echo(f"  {visible(text)}")
        if first.references:
            click.echo(
                f"Its reference answer: {' or '.join(visible(text, MAX_REFERENCE_CHARS) for text in first.references)}"
            )


def _request(settings: RunSettings, questions: QuestionSet) -> str:
    """The body of the first request without its prompt, with secrets hidden."""

    first = questions.questions[0]
    seed = None if settings.seed is None else sample_seed(settings.seed, first.question_id, 0)
    body = codec.decode(settings.template(questions.name).body(first, seed), dict)
    prompt = "messages" if settings.spelling.api == "chat" else "prompt"
    # A sealed field is hidden, whatever its name.
    sealed_body = body | dict(settings.spelling.extra_body)
    return codec.encode(
        without_secrets({name: value for name, value in sealed_body.items() if name != prompt})
    ).decode()
