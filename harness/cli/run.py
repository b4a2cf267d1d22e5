"""`harness run`: what is asked, of whom, and how the session ended."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from harness.cli import terminal
from harness.cli.asked import Asked, asked_for, question_sets, sampling_of
from harness.cli.hosted import spelt, with_suggestion, without
from harness.cli.run_options import run_options
from harness.cli.server_options import refuse_server_flags
from harness.cli.spelling import Command
from harness.cli.spelling import spelt as words
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, ServerError, UsageError
from harness.core.inert import visible
from server_launchers.command_line import server_options

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.client.address.endpoint import Endpoint
    from harness.client.address.providers import Provider
    from harness.client.facts.discovery import ModelInfo
    from harness.experiments.stop_rules import Target
    from harness.generation.runner import Outcome
    from harness.generation.settings import RunSettings
    from harness.presets.preset import Preset
    from harness.presets.sampling import Sampling
    from server_launchers.spec import ServerSpec

DEFAULT_CONCURRENCY = 64

ENGINES_WITHOUT_LIST = ("transformers",)
"""Their model list holds what the hub's cache holds, not what they serve."""

SHOWN_CAUSES = 5


@click.command("run", cls=Command)
@click.argument("benchmarks", required=False)
@run_options
@server_options(hidden=True)
def command(benchmarks: str | None, **flags: Any) -> None:
    """Sample completions for BENCHMARK[,BENCHMARK...] (NAME, NAME:SAMPLES or a card's file) into a run folder.

    The same command again asks only for what is missing; more --samples extend the run. Score it with
    `harness score RUN_FOLDER`.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run aime24:64 --serve vllm --model Qwen/QwQ-32B --tp 8
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    """
    if flags["endpoints_file"] is not None:
        _read_endpoints(flags)
    asked = asked_for(benchmarks, flags)
    sets = question_sets(asked, flags)
    for questions in sets:
        for note in questions.notes:
            terminal.warn(note)
    preset, preset_sampling = _preset(flags["preset"])
    sampling = {
        a.name: without(sampling_of(flags, preset_sampling, s), flags["drop"]) for a, s in zip(asked, sets, strict=True)
    }
    if not flags["serve"]:
        refuse_server_flags(flags)
        sys.exit(_session(asked, sets, sampling, flags))

    from harness.cli.serve import launch, plan_lines

    spec = _spec(sets, sampling, preset, flags)
    if flags["dry_run"]:
        for line in plan_lines(spec):
            click.echo(line)
        return
    with launch(spec, detach=False) as server:
        flags |= {"server": server.name, "model": server.model}
        code = _session(asked, sets, sampling, flags)
    sys.exit(code)


def _read_endpoints(flags: dict[str, Any]) -> None:
    """Put what the file of endpoints says in the place of --base-url."""
    from harness.generation.network.endpoints_file import EndpointsFile

    if flags["base_url"] or flags["server"]:
        raise UsageError("--endpoints names the servers: leave out --base-url and --server")
    file = EndpointsFile(flags["endpoints_file"])
    weights = [endpoint.weight for endpoint in file.read()]
    flags["base_url"] = tuple(f"{a},weight={w:g}" for a, w in zip(file.addresses(), weights, strict=True))


def _preset(name: str | None) -> tuple[Preset | None, Sampling | None]:
    """(a model's preset, sampling of the preset) of that name. Raises `UsageError` with the near names."""
    from harness.presets import preset as presets

    if name is None:
        return None, None
    preset = presets.load(name)
    return preset, preset.sampling.plain if preset.sampling else None


def _spec(
    sets: list[QuestionSet], sampling: dict[str, Sampling], preset: Preset | None, flags: dict[str, Any]
) -> ServerSpec:
    """The server to start, checked against the benchmarks before minutes are spent on it."""
    from harness.cli.server_options import spec_of
    from harness.generation.context import fitted_max_tokens

    if flags["base_url"] or flags["server"]:
        raise UsageError("--serve starts a server; --base-url and --server name one that runs: give one of them")
    if not flags["model"]:
        raise UsageError("--serve needs --model: what the engine is to serve")
    if preset is not None:
        if flags["server_reasoning_parser"] is None and preset.reasoning_parser:
            flags["server_reasoning_parser"] = preset.reasoning_parser.name
        if flags["server_context"] is None and preset.context:
            flags["server_context"] = preset.context.tokens
    spec = spec_of(flags["serve"], flags["model"], flags, flags["engine_flags"], None)
    if spec.context is not None:
        for questions in sets:
            name = questions.name
            fitted_max_tokens(
                name, questions.questions, sampling[name].max_tokens, spec.context, fit=flags["fit_context"]
            )
    return spec


def _session(asked: list[Asked], sets: list[QuestionSet], sampling: dict[str, Sampling], flags: dict[str, Any]) -> int:
    """Ask a running server for what is owed. Returns the exit code."""
    settings, contexts, about = _settings(asked, sets, sampling, flags)
    _advise(settings, sets, contexts)
    if flags["dry_run"]:
        from harness.cli import dry_run

        dry_run.show(settings, sets, contexts)
        return EXIT_COMPLETE
    try:
        if flags["pilot"]:
            return _pilot(settings, sets, about, flags)
        if flags["target_error"] is not None:
            return _towards(flags["target_error"], settings, sets, about, flags)
        return _closing(_generate(settings, sets, about, flags), settings)
    except ServerError as error:
        raise ServerError(with_suggestion(error.sentence.marked)) from error


def _pilot(settings: RunSettings, sets: list[QuestionSet], about: dict[str, Any], flags: dict[str, Any]) -> int:
    """Two samples a question, and what the rest would take. Returns the exit code."""
    from harness.cli import pilot

    first = pilot.of(settings)
    code = _closing(_generate(first, sets, about, flags), first)
    pilot.report(settings, sets)
    click.echo("the same command without --pilot goes on from here", err=True)
    return code


def _towards(
    error: float, settings: RunSettings, sets: list[QuestionSet], about: dict[str, Any], flags: dict[str, Any]
) -> int:
    """Whole rounds until the sampling error is small enough. Returns the exit code."""
    from harness.experiments.stop_rules import Target
    from harness.generation import runner
    from harness.runs import RunFolder

    folder = RunFolder(settings.out)
    target = Target(folder, sets, error)
    if folder.manifest.exists():
        target.look()
    if not target.reached():
        with target:
            outcome = _generate(settings, sets, about, flags, target)
        if outcome.complete or not target.reached():
            return _closing(outcome, settings)
        _summary(outcome, settings)
    # The plan becomes what was needed: the same settings are checked, nothing is owed, and the score is of a whole run.
    rounds = target.complete_rounds()
    fewer = {name: replace(one, samples=max(1, rounds[name])) for name, one in settings.benchmarks.items()}
    runner.generate(replace(settings, benchmarks=fewer), sets)
    click.echo(f"target reached: {target.reached()}", err=True)
    click.echo(f"score them with: harness score {shlex.quote(str(settings.out))}", err=True)
    return EXIT_COMPLETE


def _settings(
    asked: list[Asked], sets: list[QuestionSet], sampling: dict[str, Sampling], flags: dict[str, Any]
) -> tuple[RunSettings, list[int], dict[str, Any]]:
    """(settings, contexts that the endpoints state, what is known of a server of ours)."""
    from harness.cli.prices import prices_of
    from harness.client.interface import Deadlines
    from harness.client.protocol.spelling import Spelling
    from harness.generation.settings import BenchmarkSettings, Patience, RunSettings
    from harness.runs import RunFolder

    found = _server(flags)
    defaults, patience = Deadlines(), Patience()
    settings = RunSettings(
        model=found.model,
        endpoints=found.endpoints,
        benchmarks={
            one.name: BenchmarkSettings(
                samples=one.samples or flags["samples"] or questions.samples, sampling=sampling[one.name]
            )
            for one, questions in zip(asked, sets, strict=True)
        },
        out=flags["out"] or RunFolder.default(found.model).path,
        spelling=Spelling(
            api=flags["api"],
            stream=flags["stream"],
            extra_body=_json_object("--extra-body", flags["extra_body"]),
            chat_template_kwargs=_json_object("--chat-template-kwargs", flags["chat_template_kwargs"]),
        ),
        concurrency=flags["concurrency"] or found.concurrency or DEFAULT_CONCURRENCY,
        seed=flags["seed"],
        deadlines=Deadlines(
            first_token=flags["first_token_timeout"] or defaults.first_token,
            idle=flags["idle_timeout"] or defaults.idle,
        ),
        patience=Patience(attempts=flags["attempts"] or patience.attempts),
        transport=flags["transport"],
        ca_file=flags["ca_file"],
        fit_context=flags["fit_context"],
        accept_missing=flags["accept_missing"],
        canary=flags["canary"],
        budget_tokens=flags["budget_tokens"],
        budget_usd=flags["budget_usd"],
        prices=prices_of(flags, found.model),
        requests_per_minute=flags["rpm"],
        tokens_per_minute=flags["tpm"],
    )
    return spelt(settings, found.provider, flags), found.contexts, found.about


@dataclass(frozen=True)
class _Server:
    """What is known of the server before the first request. concurrency: as it states; None if it does not."""

    provider: Provider
    endpoints: tuple[Endpoint, ...]
    model: str
    contexts: list[int]
    concurrency: int | None
    about: dict[str, Any]


def _server(flags: dict[str, Any]) -> _Server:
    """The server that the flags and the environment name.

    One that cannot be reached is no error yet where a run of a named model is to be resumed: perhaps nothing is
    owed. What is owed then fails with the same sentence.
    """
    from harness.cli import find_server as addresses
    from harness.client.facts import discovery
    from harness.runs import RunFolder

    model, ca_file = flags["model"], flags["ca_file"]
    resumed = model and RunFolder(flags["out"] or RunFolder.default(model).path).manifest.exists()
    endpoints: tuple[Endpoint, ...] = ()
    provider = addresses.provider_of(flags["provider"], flags["base_url"], flags["server"])
    try:
        endpoints, about = addresses.resolve(
            flags["base_url"],
            flags["server"],
            flags["headers"],
            flags["api_key_env"],
            flags["api_key_file"],
            flags["provider"],
        )
        found: list[ModelInfo] = []
        if model is None or about.get("engine") not in ENGINES_WITHOUT_LIST:
            model, found = addresses.find_models(provider, endpoints, model, ca_file)
        own = not provider.hosted and not flags["concurrency"]
        slots = [discovery.stated_concurrency(e, ca_file=ca_file) for e in endpoints] if own else []
    except ServerError:
        if not resumed or flags["dry_run"]:
            raise
        return _Server(provider, endpoints, model, [], None, {})
    contexts = [info.context_tokens for info in found if info.context_tokens]
    return _Server(provider, endpoints, model, contexts, sum(n for n in slots if n) if all(slots) else None, about)


def _json_object(flag: str, text: str | None) -> dict[str, Any]:
    from harness.core import codec

    if text is None:
        return {}
    try:
        return codec.decode(text, dict[str, Any])
    except codec.DecodeError as error:
        raise UsageError(f"{flag}: expected a JSON object such as '{{\"top_k\": 20}}' ({error})") from error


def _advise(settings: RunSettings, sets: list[QuestionSet], contexts: list[int]) -> None:
    """Warnings about settings that are allowed and seldom meant."""
    from harness.presets import preset as presets

    preset = presets.for_model(settings.model)
    for questions in sets:
        name = questions.name
        benchmark = settings.benchmarks[name]
        if benchmark.sampling.temperature == 0 and benchmark.samples > 1:
            terminal.warn(f"{name}: {benchmark.samples} samples at temperature 0 are all alike on most servers")
        if settings.seed is None and benchmark.samples > 1:
            terminal.warn(f"{name}: without seeds a server with a cache may repeat one reply {benchmark.samples} times")
        if preset is not None:
            for sentence in preset.contradictions(
                temperature=benchmark.sampling.temperature,
                system_prompt=questions.system_prompt,
                max_tokens=benchmark.sampling.max_tokens,
                context=min(contexts) if contexts else None,
            ):
                terminal.warn(f"{name}: {sentence}")


def _generate(
    settings: RunSettings,
    sets: list[QuestionSet],
    about: dict[str, Any],
    flags: dict[str, Any],
    target: Target | None = None,
) -> Outcome:
    from harness.cli import find_server as addresses
    from harness.cli.progress import ProgressLine
    from harness.experiments.stop_rules import answer_finder
    from harness.generation import lengths, runner
    from harness.generation.network.endpoints_file import EndpointsFile
    from harness.runs import RunFolder

    provider = addresses.provider_of(flags["provider"], flags["base_url"], flags["server"])

    def context_of(endpoint: Endpoint, model: str) -> int | None:
        if about.get("engine") in ENGINES_WITHOUT_LIST:
            return None
        info = addresses.find_model(provider, endpoint, model, flags["ca_file"])
        return info.context_tokens if info else None

    def complete(address: str) -> Endpoint:
        keys = (flags["headers"], flags["api_key_env"], flags["api_key_file"], flags["provider"])
        return addresses.resolve((address,), None, *keys)[0][0]

    followed = EndpointsFile(flags["endpoints_file"], complete) if flags["endpoints_file"] else None
    prior = lengths.mean_lengths(RunFolder.open(flags["lengths_from"])) if flags["lengths_from"] else None
    names = ", ".join(f"{s.name} {len(s.questions)} × {settings.benchmarks[s.name].samples}" for s in sets)
    click.echo(f"{visible(settings.model)} · {names} · run folder {settings.out}", err=True)
    with ProgressLine() as line:
        return runner.generate(
            settings,
            sets,
            context_of=context_of,
            on_progress=line,
            answered=answer_finder(sets),
            prior_lengths=prior,
            may_start_round=target.may_start_round if target is not None else None,
            endpoints_file=followed,
            environment=about,
            resume_command=shlex.join(["harness", *sys.argv[1:]]),
            break_lock=flags["break_lock"],
        )


def _summary(outcome: Outcome, settings: RunSettings) -> None:
    """Say what the session brought."""
    from harness.cli.progress import duration

    for warning in outcome.warnings:
        terminal.warn(warning)
    if outcome.n_session:
        click.echo(
            f"{outcome.n_session} samples in {duration(outcome.elapsed_s)}, {outcome.tokens:,} new tokens"
            f" ({outcome.tokens / max(outcome.elapsed_s, 1e-9):,.0f} tokens/s)",
            err=True,
        )
        for n, what in (
            (outcome.n_truncated, "truncated"),
            (outcome.n_loops, "ending in a loop of the same words"),
            (outcome.n_duplicates, "repeating another reply to the same question word by word"),
        ):
            if n:
                click.echo(f"  {n} of them {what} ({n / outcome.n_session:.1%})", err=True)
        if settings.prices is not None:
            click.echo(f"this session: {outcome.spent.sentence(settings.prices)}", err=True)


def _closing(outcome: Outcome, settings: RunSettings) -> int:
    """Say how the session ended and what to do next. Returns the exit code."""
    _summary(outcome, settings)
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: {words(with_suggestion(str(cause)))}", err=True)
    if outcome.complete:
        missing = f" ({outcome.n_missing} can never succeed and are accepted as missing)" if outcome.n_missing else ""
        what = "complete" if outcome.n_session else "nothing is owed"
        click.echo(f"{what}: {outcome.n_done} of {outcome.n_expected} samples{missing}", err=True)
        click.echo(f"score them with: harness score {shlex.quote(str(settings.out))}", err=True)
        return EXIT_COMPLETE
    why = f" ({words(outcome.stopped)})" if outcome.stopped else ""
    owed = f"{outcome.n_owed} of {outcome.n_expected} samples are owed{why}"
    click.echo(f"harness: {owed}; the same command asks for them again", err=True)
    return EXIT_OWED
