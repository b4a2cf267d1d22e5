"""`harness run`: what is asked (cards, data, prompts, sampling), of whom (endpoints), and how the session ended."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import terminal
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.benchmarks.sampling import Sampling
    from harness.client.endpoint import Endpoint
    from harness.client.transport import Transport
    from harness.generation.runner import Outcome
    from harness.generation.settings import RunSettings

DEFAULT_CONCURRENCY = 64
SHOWN_CAUSES = 5

_SAMPLING_FLAGS = (
    click.option("--temperature", type=float, help="Default: 0.6. 0 is greedy."),
    click.option("--top-p", type=float, help="Default: 0.95."),
    click.option("--top-k", type=int, help="Default: not sent."),
    click.option("--min-p", type=float, help="Default: not sent."),
    click.option("--max-tokens", type=int, help="New tokens of one completion, thinking included. Default: 32768."),
    click.option("--repetition-penalty", type=float, help="Default: not sent."),
    click.option("--presence-penalty", type=float, help="Default: not sent."),
    click.option("--frequency-penalty", type=float, help="Default: not sent."),
    click.option("--stop", multiple=True, help="Text that ends a completion; may be repeated."),
)


def _sampling_flags(function: Any) -> Any:
    for option in reversed(_SAMPLING_FLAGS):
        function = option(function)
    return function


@click.command("run")
@click.argument("benchmarks", required=False)
@click.option("--model", help="Model name as the server lists it. May be left out when it lists exactly one.")
@click.option(
    "--base-url",
    "base_urls",
    multiple=True,
    metavar="URL[,weight=N]",
    help="Server, with or without /v1; repeat it for several. Default: OPENAI_BASE_URL, else the running server.",
)
@click.option("--server", help="Name of a server of `harness serve status`, with all its replicas.")
@click.option(
    "--samples", type=click.IntRange(1), help="Samples per question. Default: the card's. aime24:64 beats it."
)
@click.option(
    "--concurrency", type=click.IntRange(1), help="Requests in flight. Default: what the server states, else 64."
)
@_sampling_flags
@click.option("--preset", help="Named sampling: r1, llmeval, limo, qwen3, greedy.")
@click.option(
    "--seed", default="0", show_default=True, help="Run seed, from which each sample's comes; `none` sends none."
)
@click.option("--prompt", help="Prompt by name. Default: the card's.")
@click.option("--system-prompt", help="System prompt, by name or as text; `none` sends none.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions.")
@click.option("--ids", help="Only these question ids, separated by commas.")
@click.option("--filter", "filters", multiple=True, metavar="COLUMN=VALUE", help="Only questions with this value.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. Default: results/ and the model's name.")
@click.option("--data", help="JSONL, JSON, CSV or Parquet file of questions, also .gz and .zst.")
@click.option("--question-key", help="Column of the question in --data.")
@click.option("--answer-key", help="Column of the reference answer in --data.")
@click.option("--id-key", help="Column of the question's id in --data. Default: a checksum of the row.")
@click.option("--split", help="Split of --data, where it is a folder of splits.")
@click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True)
@click.option("--api-key-env", default="OPENAI_API_KEY", show_default=True, help="Environment variable with the key.")
@click.option("--api-key-file", type=click.Path(path_type=Path), help="File with the key, on one line.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Extra request header; stored nowhere.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="PEM file of the authority to trust for https.")
@click.option("--extra-body", metavar="JSON", help="Fields merged into each request.")
@click.option("--chat-template-kwargs", metavar="JSON", help="E.g. '{\"enable_thinking\": false}'.")
@click.option(
    "--max-tokens-field",
    type=click.Choice(["max_tokens", "max_completion_tokens"]),
    default="max_tokens",
    show_default=True,
)
@click.option("--no-stream", is_flag=True, help="Ask for whole replies, for endpoints that cannot stream.")
@click.option("--transport", default="auto", show_default=True, help="How requests travel.")
@click.option("--first-token-timeout", type=float, help="Seconds from the request to the first token. Default: 600.")
@click.option("--idle-timeout", type=float, help="Seconds between two tokens. Default: 120.")
@click.option("--attempts", type=click.IntRange(1), help="Requests per sample before it is given up. Default: 5.")
@click.option(
    "--budget-tokens", type=click.IntRange(1), help="Stop at the whole round that reaches so many new tokens."
)
@click.option("--fit-context", is_flag=True, help="Lower max_tokens to the server's context instead of refusing.")
@click.option("--accept-missing", is_flag=True, help="What can never succeed (a prompt too long) owes nothing.")
@click.option("--no-canary", is_flag=True, help="Go on when the first samples are all empty, identical or truncated.")
@click.option("--break-lock", is_flag=True, help="Take over a lock that another, dead host left behind.")
@click.option("--dry-run", is_flag=True, help="Show every setting and the first prompt; send nothing.")
def command(benchmarks: str | None, **flags: Any) -> None:
    """Sample completions for BENCHMARK[,BENCHMARK...] (NAME, NAME:SAMPLES or a card's file) into a run folder.

    The same command again asks only for what is missing; more --samples extend the run. Score it with
    `harness score RUN_FOLDER`.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    """
    from harness.cli import endpoints as addresses

    asked = _asked(benchmarks, flags)
    sets = _question_sets(asked, flags)
    for questions in sets:
        for note in questions.notes:
            terminal.warn(note)
    sampling = {a.name: _sampling(flags, questions) for a, questions in zip(asked, sets, strict=True)}
    resolved, _about = addresses.resolve(
        flags["base_urls"], flags["server"], flags["headers"], flags["api_key_env"], flags["api_key_file"]
    )
    settings, contexts = _settings(asked, sets, sampling, resolved, flags)
    _advise(settings)
    if flags["dry_run"]:
        _show(settings, sets, contexts)
        return
    sys.exit(_closing(_generate(settings, sets, flags), settings))


@dataclass(frozen=True)
class Asked:
    """One benchmark of the command line. samples: of `name:samples`."""

    name: str
    samples: int | None
    card: Any


def _asked(text: str | None, flags: dict[str, Any]) -> list[Asked]:
    """The cards that were named, or the file's own. Raises `UsageError`."""
    from harness.benchmarks import card, catalogue

    for key in ("question_key", "answer_key", "id_key", "split"):
        if flags[key] and not flags["data"]:
            raise UsageError(f"--{key.replace('_', '-')} goes with --data FILE")
    named = [part for part in (text or "").split(",") if part.strip()]
    if not named and not flags["data"]:
        raise UsageError("name a benchmark (see `harness benchmarks`), or give a file with --data")
    found = []
    for part in named:
        name, colon, number = part.strip().rpartition(":")
        if not colon or not number.isdigit():
            name, number = part.strip(), ""
        if number and not 1 <= int(number) <= 100_000:
            raise UsageError(f"{part}: the number of samples must be from 1 to 100000")
        found.append((catalogue.load(name), int(number) if number else None))
    if flags["data"]:
        keys = {key: flags[key] for key in ("question_key", "answer_key", "id_key", "split")}
        if not found:
            found = [(card.from_file(flags["data"], **keys), None)]
        elif len(found) > 1:
            raise UsageError("--data goes with one benchmark, or with none")
        elif any(keys[key] for key in ("question_key", "answer_key", "id_key")):
            raise UsageError(
                "--question-key, --answer-key and --id-key are for data without a card: leave out the benchmark"
            )
        else:
            found = [(found[0][0].with_data(flags["data"], flags["split"]), found[0][1])]
    names = [loaded.name for loaded, _ in found]
    if len(set(names)) < len(names):
        raise UsageError(
            f"a benchmark is named twice: {', '.join(sorted(n for n in set(names) if names.count(n) > 1))}"
        )
    return [Asked(loaded.name, number, loaded) for loaded, number in found]


def _question_sets(asked: list[Asked], flags: dict[str, Any]) -> list[QuestionSet]:
    from harness.benchmarks import questions

    ids = [part.strip() for part in flags["ids"].split(",") if part.strip()] if flags["ids"] else None
    return [
        questions.build(
            one.card,
            prompt=flags["prompt"],
            system_prompt=flags["system_prompt"],
            limit=flags["limit"],
            ids=ids,
            filters=flags["filters"],
            api=flags["api"],
        )
        for one in asked
    ]


def _sampling(flags: dict[str, Any], questions: QuestionSet) -> Sampling:
    """Command line over preset over card over defaults."""
    from pydantic import ValidationError

    from harness.benchmarks import sampling

    given = {name: flags[name] for name in sampling.Sampling.model_fields if flags[name] not in (None, ())}
    try:
        line = sampling.Sampling(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"--{name} {first['input']}: {first['msg']}") from error
    preset = sampling.preset(flags["preset"]) if flags["preset"] else None
    return sampling.resolve(line, preset, questions.card.sampling)


def _settings(
    asked: list[Asked],
    sets: list[QuestionSet],
    sampling: dict[str, Sampling],
    endpoints: tuple[Endpoint, ...],
    flags: dict[str, Any],
) -> tuple[RunSettings, list[int]]:
    """(settings, contexts that the endpoints state). Asks the servers for their models, unless nothing is owed."""
    from harness.cli import endpoints as addresses
    from harness.client import discovery
    from harness.client.transport import Deadlines
    from harness.generation.settings import BenchmarkSettings, Patience, RunSettings
    from harness.runs import RunFolder

    ca_file = flags["ca_file"]
    model, found = addresses.find_models(endpoints, flags["model"], ca_file)
    concurrency = flags["concurrency"]
    if concurrency is None:
        stated = [discovery.stated_concurrency(endpoint, ca_file=ca_file) for endpoint in endpoints]
        concurrency = sum(n for n in stated if n) if all(stated) else DEFAULT_CONCURRENCY
    defaults, patience = Deadlines(), Patience()
    settings = RunSettings(
        model=model,
        endpoints=endpoints,
        benchmarks={
            one.name: BenchmarkSettings(
                samples=one.samples or flags["samples"] or questions.card.samples, sampling=sampling[one.name]
            )
            for one, questions in zip(asked, sets, strict=True)
        },
        out=flags["out"] or RunFolder.default(model).path,
        api=flags["api"],
        concurrency=concurrency,
        seed=_seed(flags["seed"]),
        extra_body=_json_object("--extra-body", flags["extra_body"]),
        chat_template_kwargs=_json_object("--chat-template-kwargs", flags["chat_template_kwargs"]),
        max_tokens_field=flags["max_tokens_field"],
        stream=not flags["no_stream"],
        deadlines=Deadlines(
            first_token=flags["first_token_timeout"] or defaults.first_token,
            idle=flags["idle_timeout"] or defaults.idle,
        ),
        patience=Patience(attempts=flags["attempts"] or patience.attempts),
        transport=flags["transport"],
        fit_context=flags["fit_context"],
        accept_missing=flags["accept_missing"],
        canary=not flags["no_canary"],
        budget_tokens=flags["budget_tokens"],
    )
    return settings, [info.context_tokens for info in found if info.context_tokens]


def _seed(text: str) -> int | None:
    if text.lower() == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--seed {visible(text, 40)}: expected an integer, or `none`") from None


def _json_object(flag: str, text: str | None) -> dict[str, Any]:
    from harness.core import codec

    if text is None:
        return {}
    try:
        return codec.decode(text, dict[str, Any])
    except codec.DecodeError as error:
        raise UsageError(f"{flag}: expected a JSON object such as '{{\"top_k\": 20}}' ({error})") from error


def _advise(settings: RunSettings) -> None:
    for name, benchmark in settings.benchmarks.items():
        if benchmark.sampling.temperature == 0 and benchmark.samples > 1:
            terminal.warn(f"{name}: {benchmark.samples} samples at temperature 0 are all alike on most servers")
        if settings.seed is None and benchmark.samples > 1:
            terminal.warn(f"{name}: without seeds a server with a cache may repeat one reply {benchmark.samples} times")


def _show(settings: RunSettings, sets: list[QuestionSet], contexts: list[int]) -> None:
    """`--dry-run`: everything that shapes the score, and the first prompt of each benchmark."""
    rows = [
        ("model", settings.model),
        ("endpoints", ", ".join(e.base_url for e in settings.endpoints)),
        ("run folder", str(settings.out)),
        ("api", settings.api),
        ("concurrency", str(settings.concurrency)),
        ("run seed", "none" if settings.seed is None else str(settings.seed)),
        ("server context", ", ".join(map(str, contexts)) or "not stated"),
    ]
    if settings.extra_body:
        rows.append(("extra body", str(dict(settings.extra_body))))
    if settings.chat_template_kwargs:
        rows.append(("chat template", str(dict(settings.chat_template_kwargs))))
    for questions in sets:
        benchmark = settings.benchmarks[questions.card.name]
        rows += [
            (
                f"{questions.card.name}: data",
                f"{questions.origin}, {len(questions.questions)} of {questions.n_all} questions",
            ),
            (f"{questions.card.name}: samples", f"{benchmark.samples} per question"),
            (f"{questions.card.name}: sampling", ", ".join(f"{k} {v}" for k, v in benchmark.sampling.sent().items())),
            (f"{questions.card.name}: prompt", questions.prompt),
            (f"{questions.card.name}: system prompt", questions.system_prompt or "none"),
        ]
    terminal.table(("setting", "value"), rows)
    for questions in sets:
        first = questions.questions[0]
        click.echo(f"First prompt of {questions.card.name} (question {visible(first.question_id)}):")
        for message in first.messages:
            click.echo(f"[{message.role}]")
            for text in message.content.split("\n"):
                click.echo(f"  {visible(text)}")
        for text in first.prompt.split("\n") if first.prompt else ():
            click.echo(f"  {visible(text)}")


def _generate(settings: RunSettings, sets: list[QuestionSet], flags: dict[str, Any]) -> Outcome:
    from harness.cli.progress import ProgressLine
    from harness.client import discovery
    from harness.generation import runner

    def context_of(endpoint: Endpoint, model: str) -> int | None:
        info = discovery.find_model(endpoint, model, ca_file=flags["ca_file"])
        return info.context_tokens if info else None

    def transport() -> Transport:
        from harness.client.aio import AiohttpTransport

        return AiohttpTransport(ca_file=flags["ca_file"])

    names = ", ".join(f"{s.card.name} {len(s.questions)} × {settings.benchmarks[s.card.name].samples}" for s in sets)
    click.echo(f"{visible(settings.model)} · {names} · run folder {settings.out}", err=True)
    with ProgressLine() as line:
        return runner.generate(
            settings,
            sets,
            transport_factory=transport,
            context_of=context_of,
            on_progress=line,
            resume_command=shlex.join(["harness", *sys.argv[1:]]),
            break_lock=flags["break_lock"],
        )


def _closing(outcome: Outcome, settings: RunSettings) -> int:
    """Say how the session ended and what to do next. Returns the exit code."""
    from harness.cli.progress import duration

    for warning in outcome.warnings:
        terminal.warn(warning)
    if outcome.n_session:
        click.echo(
            f"{outcome.n_session} samples in {duration(outcome.elapsed_s)}, {outcome.tokens:,} new tokens"
            f" ({outcome.tokens / max(outcome.elapsed_s, 1e-9):,.0f} tokens/s)",
            err=True,
        )
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: {cause}", err=True)
    if outcome.complete:
        missing = f" ({outcome.n_missing} can never succeed and are accepted as missing)" if outcome.n_missing else ""
        what = "complete" if outcome.n_session else "nothing is owed"
        click.echo(f"{what}: {outcome.n_done} of {outcome.n_expected} samples{missing}", err=True)
        click.echo(f"score them with: harness score {shlex.quote(str(settings.out))}", err=True)
        return EXIT_COMPLETE
    why = f" ({outcome.stopped})" if outcome.stopped else ""
    owed = f"{outcome.n_owed} of {outcome.n_expected} samples are owed{why}"
    click.echo(f"harness: {owed}; the same command asks for them again", err=True)
    return EXIT_OWED
