"""From a user's options to a prepared run: the questions, the settings, and one look at each server.

`questions_of` reads the data and fixes the sampling without contacting any server. `prepare` also looks at the servers
and makes the settings; a server that it starts for the run lives for the length of the `with` block.

Long: the questions and the servers decide the settings together, and share the options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.benchmarks import card as cards
from harness.benchmarks import catalogue, questions, shards, usual_columns
from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources import tables
from harness.benchmarks.usual_columns import ANSWER_COLUMNS, ASKED_COLUMNS
from harness.client.address.providers import DROPPABLE
from harness.client.asker import Asker
from harness.client.interface import Deadlines
from harness.client.spelling import Spelling
from harness.core.errors import ServerError, UsageError, as_keyword, misspelt
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.core.money import prices_in
from harness.core.nouns import count_noun
from harness.core.records import GradeRules
from harness.core.secret import without_secrets
from harness.generation.context import fitted_max_tokens, may_lower
from harness.generation.settings import (
    BEFORE_SERVERS,
    DEFAULT_CONCURRENCY,
    BenchmarkSettings,
    Patience,
    RunSettings,
    Salvage,
    with_neutral,
    with_record,
)
from harness.generation.spending import Account
from harness.options.run import RunOptions, recorded_options
from harness.preparing import servers
from harness.preparing.advising import advise
from harness.preparing.batching import by_batch
from harness.preparing.edited_data import resumed
from harness.preparing.servers import Looks, ReachedServers
from harness.preparing.watching import Watcher
from harness.presets import preset as presets
from harness.presets.preset import Preset
from harness.presets.sampling import DEFAULT_SAMPLING, Sampling, resolve, sampling_fields
from harness.runs import RunFolder
from harness.runs.layout import begun_at, named_folder
from harness.runs.manifest import Manifest
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.benchmarks.card import Card
    from harness.client.address.endpoint import Endpoint
    from harness.client.address.providers import Provider
    from harness.core.choices import Thinking
    from harness.core.records import ServerFacts
    from harness.generation.network.endpoints_file import EndpointsFile
    from server_launchers.keeping.launch import RunningServer
    from server_launchers.spec import ServerSpec


FINGERPRINTED_SAMPLES = 16
"""A run with at least this many samples takes a fingerprint of every server, even of a hosted one, which bills its 350
tokens. A smaller run is a trial, which is compared with no other run.
"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The questions of a run, with their samples and sampling, before any server is contacted.

    benchmarks: settings by the name of the question set.
    """

    options: RunOptions
    sets: list[QuestionSet]
    benchmarks: Mapping[str, BenchmarkSettings]
    preset: Preset | None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that can begin.

    looks: what each endpoint stated when it was looked at, once. about: facts of the server for the manifest.
    endpoints_file: the file that lists the endpoints and is read again while the run goes on; None without one. hosted:
    whether a hosted provider is asked. server: the server that was started for the run; None without one.
    account: what the command has used of its budget.
    """

    options: RunOptions
    settings: RunSettings
    sets: list[QuestionSet]
    looks: Looks
    about: Mapping[str, Any] = field(default_factory=dict)
    endpoints_file: EndpointsFile | None = None
    hosted: bool = False
    server: RunningServer | None = None
    account: Account = field(default_factory=Account)

    @property
    def folder(self) -> RunFolder:
        """The run folder."""
        return RunFolder(self.settings.out)

    def describe(self, endpoint: Endpoint) -> ServerFacts:
        """Facts of an endpoint that joins the run.

        It blocks until the endpoint has answered. Raises `ServerError` if it does not answer.
        """
        return servers.facts_of_joining(endpoint, self.settings.model, hosted=self.hosted)

    @property
    def contexts(self) -> list[int]:
        """The contexts that the endpoints state, in tokens."""
        return self.looks.contexts


def in_a_line(settings: RunSettings, sets: Sequence[QuestionSet]) -> str:
    """One line with model, benchmarks with questions and samples, shard and run folder; safe to print."""
    benchmarks = ", ".join(f"{s.name} {len(s.questions)} × {settings.benchmarks[s.name].samples}" for s in sets)
    line = f"{visible(settings.model)} · {benchmarks}"
    if (part := next((s.part for s in sets if s.part is not None), None)) is not None:
        line += f" · shard {part.shard}"
    line += f" · run folder {settings.out}"
    manifest = Manifest.find(RunFolder(settings.out))
    if manifest is not None and (others := manifest.benchmarks.keys() - {s.name for s in sets}):
        line += f", which holds {', '.join(map(visible, sorted(others)))} too"
    return line


@contextmanager
def prepare(
    options: RunOptions,
    watcher: Watcher | None = None,
    *,
    must_answer: bool = False,
    server: RunningServer | None = None,
) -> Iterator[Prepared]:
    """The run described by `options`, with its server running for the length of the block.

    must_answer: an unreachable server is an error even if the run has begun before, so that perhaps no sample is
    missing. server: a running server to use in place of a server that the options describe.
    Raises `UsageError` and `ServerError`.
    """
    watcher = watcher or Watcher()
    if server is not None:
        options = servers.at_server(options, server)
    # The data are read and the run folder is made before the server starts: a misspelt benchmark, or a folder that
    # cannot be written, must not cost minutes of loading weights.
    questions_asked = questions_of(options, watcher)
    if options.serve is None:
        yield _prepare(questions_asked, options, watcher, must_answer, server)
        return
    refuse_other_settings(questions_asked)
    spec = server_of(questions_asked, watcher)
    if (folder := _known_folder(options)) is not None:
        folder.create()
    with servers.launched(spec, watcher) as started:
        yield _prepare(questions_asked, servers.at_server(options, started), watcher, must_answer, started)


# ---- what is asked


def questions_of(options: RunOptions, watcher: Watcher | None = None) -> Asked:
    """Read the data and fix the sampling. Raises `UsageError`."""
    watcher = watcher or Watcher()
    named = _cards(options)
    preset = presets.load(options.preset) if options.preset is not None else None
    sets, benchmarks = [], {}
    for card, samples in named:
        question_set = _build(options, card)
        for note in question_set.notes:
            watcher.warn(f"{question_set.name}: {note}")
        sets.append(question_set)
        sampling, origins = sampling_of(options, preset, question_set.sampling)
        n = samples or options.samples or question_set.samples
        if options.target_error is not None:
            _refuse_too_few(options.target_error, question_set.name, n, named=samples is not None)
        benchmarks[question_set.name] = BenchmarkSettings(
            samples=n, sampling=sampling, origins=origins, options=_recorded(options)
        )
    for warning in _column_warnings(options):
        watcher.warn(warning)
    _check_verifiers(sets)
    if options.shard is not None:
        sets = shards.divide(sets, options.shard, watcher.warn)
    return Asked(options=options, sets=sets, benchmarks=benchmarks, preset=preset)


def refuse_other_settings(questions_asked: Asked) -> None:
    """Raise `StoreError` if the run folder is damaged, or if its samples were made with other settings of those that no
    server decides. The session would refuse them with any server, so none has to be started.
    """
    options, folder = questions_asked.options, _known_folder(questions_asked.options)
    manifest = None if folder is None else Manifest.find(folder)
    if folder is None or manifest is None:
        return
    settings = RunSettings(
        asker=Asker(model=manifest.model, spelling=Spelling(api=options.api)),
        endpoints=(),
        benchmarks=questions_asked.benchmarks,
        out=folder.path,
        seed=options.seed,
    )
    for question_set in resumed(questions_asked.sets, folder):
        former = manifest.benchmarks.get(question_set.name)
        if former is not None and folder.benchmark(question_set.name).has_samples():
            # The identity that the session will compare: what a server decides stays as it was, the rest is new.
            now = settings.identity(question_set)
            identity = without_secrets(former.identity) | {field: now.get(field) for field in BEFORE_SERVERS}
            with_record(manifest, question_set, msgspec.structs.replace(former, identity=identity))


def _refuse_too_few(target: float, benchmark: str, samples: int, *, named: bool) -> None:
    """Raise `UsageError` if so few samples of each question are planned that no sampling error is judged by them.

    target: the target error, in points. named: the number of samples is in the benchmark's name, `aime24:64`.
    """
    from harness.scoring.stop import MIN_ROUNDS  # few runs need it, and it imports numpy

    if samples < MIN_ROUNDS:
        more = f"{visible(benchmark, 80)}:{MIN_ROUNDS}" if named else f"`samples` {MIN_ROUNDS}"
        raise UsageError(
            f"the sampling error is judged from {MIN_ROUNDS} samples of each question on, and "
            f"{visible(benchmark, 80)} plans {count_noun(samples, 'sample')}: give {more}, or more",
            field="target_error",
            value=f"{target:g}",
        )


def _recorded(options: RunOptions) -> dict[str, Any]:
    """The options that the user gave, for the manifest: without keys, and without those that it holds elsewhere.

    Ids are in the plan; a limit or filter beside them is left out with them.
    """
    given = recorded_options(without_secrets(options.plain))
    return {name: value for name, value in given.items() if options.ids is None or name not in ("limit", "filter")}


_OPTION_COLUMN = re.compile(r"(option|choice)?[ _]?[a-h1-8]|options|choices", re.IGNORECASE)
"""A column that by its name holds an option of a multiple-choice question: A, option_b, choice 3, choices."""


def _column_warnings(options: RunOptions) -> Iterator[str]:
    """Yield a warning if two columns of a user's own local file may hold the question, by their names, or two the
    answer, and one if columns look like choices that the model is not shown. Raises `UsageError`.
    """
    if not options.data or options.benchmarks or not Path(options.data).is_file():
        return
    first_row = next(tables.stream(Path(options.data), options.split), None)
    columns = {} if first_row is None else first_row.value
    file = visible(Path(options.data).name, 80)
    usual = {"question": (options.question_key, ASKED_COLUMNS), "answer": (options.answer_key, ANSWER_COLUMNS)}
    for what, (key, names) in usual.items():
        fitting = (usual_columns.find((name,), columns) for name in names)
        present = list(dict.fromkeys(name for name in fitting if name is not None))
        if key is None and len(present) > 1:
            also = " and ".join(visible(name, 40) for name in present[1:])
            yield (
                f"{file}: the {what} is taken from the column {visible(present[0], 40)}, although {also} may hold it "
                f"too; name another column by {what}_key"
            )
    used = (options.question_key, options.answer_key, options.id_key)
    choices = [name for name in columns if name not in used and _OPTION_COLUMN.fullmatch(name)]
    if not options.choices_key and (len(choices) > 1 or {"options", "choices"} & {name.casefold() for name in choices}):
        named = ", ".join(visible(name, 40) for name in choices)
        yield (
            f"{file}: the model is not shown the columns {named}; if they hold the options of multiple-choice "
            f"questions, name them with choices_key"
        )


def _known_folder(options: RunOptions) -> RunFolder | None:
    """The run's folder; None if its name depends on a model that a server has to name first."""
    return None if options.model is None and options.out is None else _folder(options, options.model or "")


def _check_verifiers(sets: Sequence[QuestionSet]) -> None:
    """Raise `UsageError` for a verifier of a benchmark that is not trusted, not found or no function of two arguments.

    Without this check, `harness score` would say so after hours of sampling.
    """
    # All questions of a card have the card's verifier.
    firsts = [question_set.questions[0] for question_set in sets if question_set.questions]
    own = [question for question in firsts if question.rules.grader != GradeRules().grader]
    if own:
        # Imported late: without a verifier, a run grades nothing.
        from harness.grading.elsewhere import is_elsewhere
        from harness.grading.processes.pool import grader_names

        grader_names([question for question in own if not is_elsewhere(question.rules.grader)])


def _build(options: RunOptions, card: Card) -> QuestionSet:
    """Build the questions of a card, with the prompt and the selection of the options. Raises `UsageError`."""
    try:
        return questions.build(
            card,
            prompt=options.prompt,
            system_prompt=options.system_prompt,
            limit=options.limit,
            ids=options.ids,
            filters=options.filter,
            api=options.api,
        )
    except UsageError as error:
        if not (options.data and options.benchmarks):
            raise
        raise UsageError(
            f"{error.sentence.removesuffix('.')}. The file is read as data of the benchmark "
            f"{card.name}; without the name {card.name} it is read as questions of your own"
        ) from error


def _cards(options: RunOptions) -> list[tuple[Card, int | None]]:
    """Return (card, number of samples or None) of each benchmark that the user named, or of the user's own file.

    Raises `UsageError`.
    """
    if not options.benchmarks and not options.data:
        raise UsageError("give a benchmark (see `harness benchmarks`), or a file with `data`")
    numbered: list[tuple[Card, int | None]] = []
    for part in options.benchmarks:
        # Split at the last colon, since the path of a card's file may hold other colons.
        name, colon, number = part.rpartition(":")
        if not colon or not number.isdigit():
            if colon and catalogue.knows(name):
                raise UsageError(f"{visible(part, 100)}: a number of samples goes after the colon, as in {name}:4")
            name, number = part, ""
        before, second_colon, _ = name.rpartition(":")
        if number and second_colon and catalogue.knows(before):
            raise UsageError(f"{visible(part, 100)} has two numbers of samples; give one, as in {before}:{number}")
        if number and not 1 <= int(number) <= MAX_SAMPLES:
            raise UsageError(f"{part}: the number of samples must be from 1 to {MAX_SAMPLES}")
        numbered.append((catalogue.load(name), int(number) if number else None))
    if options.data:
        numbered = [_with_data(options, options.data, numbered)]
    numbers = {number for _, number in numbered}
    if options.samples is not None and None not in numbers and numbers != {options.samples}:
        listed = ", ".join(f"{card.name}:{number}" for card, number in numbered)
        raise UsageError(
            f"all benchmarks name their own number of samples ({visible(listed, 200)}): leave out this option or "
            f"these numbers",
            field="samples",
            value=options.samples,
        )
    names = [card.name for card, _ in numbered]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"a benchmark is named twice: {', '.join(twice)}; name each once")
    return numbered


def default_folder(parent: Path, options: RunOptions) -> Path:
    """The folder in `parent` that is named after the benchmarks of `options`. Raises `UsageError`."""
    return named_folder(parent, ",".join(card.name for card, _ in _cards(options)))


def _with_data(options: RunOptions, data: str, numbered: list[tuple[Card, int | None]]) -> tuple[Card, int | None]:
    """Return the card for a user's file of data, and the samples of each question if `name:samples` states them.

    Without a benchmark the card is drafted from the file; with a benchmark it is the benchmark's card, with the file as
    its data.
    data: path or address of the file. numbered: (card, samples) of the benchmarks that the user named, at most one.
    Raises `UsageError`.
    """
    if re.fullmatch(r"\w[\w.-]*/[\w.-]+", data) and not Path(data).suffix and not Path(data).exists():
        raise UsageError(
            f"there is no such file; a data set of the hub is hf://datasets/{data}", field="data", value=data
        )
    if not numbered:
        return cards.from_file(
            data,
            question_key=options.question_key,
            answer_key=options.answer_key,
            id_key=options.id_key,
            split=options.split,
            choices_key=options.choices_key,
        ), None
    if len(numbered) > 1:
        raise UsageError(
            f"the file holds the questions of one benchmark, but {len(numbered)} are named: name one, or none",
            field="data",
        )
    keys = ("question_key", "answer_key", "id_key", "choices_key")
    if any(getattr(options, key) for key in keys):
        raise UsageError(f"{', '.join(keys)} are only for data without a card: leave out the benchmark")
    card, samples = numbered[0]
    return card.with_data(data, options.split), samples


def sampling_of(options: RunOptions, preset: Preset | None, card: Sampling) -> tuple[Sampling, dict[str, str]]:
    """Return the sampling fields that each request sends, and for each field its origin.

    Options override the preset, the preset the card, the card the defaults.
    """
    for name in options.drop:
        if name not in DROPPABLE:
            raise UsageError(
                f"expected one of {', '.join(DROPPABLE)}.{misspelt(name, DROPPABLE)}",
                field="drop",
                value=name if name in sampling_fields() else "…",  # another text may be a key
            )
    given = {name: getattr(options, name) for name in sampling_fields()}
    own = Sampling(**{name: value for name, value in given.items() if value not in (None, ())})
    named = preset.sampling.plain if preset is not None and preset.sampling is not None else Sampling()
    # From the strongest layer to the weakest; the origin of a field is the first layer that sets it.
    layers = {"options": own, f"preset {options.preset}": named, "card": card, "default": DEFAULT_SAMPLING}
    origins = {name: origin for origin, layer in reversed(layers.items()) for name in layer.sent()}
    sampling = resolve(own, named, card).but(**{name: None for name in options.drop if name in sampling_fields()})
    return sampling, {name: origins[name] for name in sampling.sent()}


def server_of(questions_asked: Asked, watcher: Watcher | None = None) -> ServerSpec:
    """The server to start, checked against the benchmarks before minutes go into its start.

    Raises `UsageError`, and `ServerError` if a prompt with its max_tokens does not fit the server's context.
    """
    options, preset = questions_asked.options, questions_asked.preset
    assert options.serve is not None
    assert options.model is not None
    fields = dict(options.serve)
    engine = fields.pop("engine")
    if preset is not None:
        if preset.reasoning_parser is not None and servers.takes(engine, "reasoning_parser"):
            fields.setdefault("reasoning_parser", preset.reasoning_parser.of(servers.parsers_of(engine)))
        if preset.context is not None and servers.takes(engine, "context"):
            fields.setdefault("context", preset.context.tokens)
    spec = servers.spec(engine, fields.pop("model", None) or options.model, watcher or Watcher(), **fields)
    if spec.context is not None:
        for question_set in questions_asked.sets:
            benchmark = questions_asked.benchmarks[question_set.name]
            # A max_tokens that nobody gave is lowered to the context, and is no error.
            fit = may_lower(benchmark.origins, fit_context=options.fit_context)
            bound = benchmark.sampling.max_tokens
            # Only for its error: what is sent is computed again from the context that the started server states.
            fitted_max_tokens(question_set.name, question_set.questions, bound, spec.context, fit=fit)
    return spec


# ---- whom it is asked of


def _prepare(
    questions_asked: Asked, options: RunOptions, watcher: Watcher, must_answer: bool, server: RunningServer | None
) -> Prepared:
    """Look at the servers, make the settings, warn of doubtful ones, and return the run, ready to start.

    must_answer: whether a server that does not answer is an error even if the run has begun before. server: the server
    that was started for the run.
    """
    reached, looks = _looked_at(options, watcher, must_answer)
    settings = _settings(questions_asked, options, reached, looks, watcher)
    sets = resumed(questions_asked.sets, RunFolder(settings.out), watcher.warn)
    advise(settings, sets, options, looks, watcher)
    return Prepared(
        options=options,
        settings=settings,
        sets=sets,
        looks=looks,
        about=reached.about,
        endpoints_file=reached.file,
        hosted=reached.provider.hosted,
        server=server,
    )


def _looked_at(options: RunOptions, watcher: Watcher, must_answer: bool) -> tuple[ReachedServers, Looks]:
    """The endpoints, and what each reports about itself. A session looks at each endpoint only here.

    must_answer: whether a server that does not answer is an error even if the run has begun before.
    """
    reached = None
    try:
        reached = servers.find(options)
        return reached, servers.look_at(reached, options, watcher)
    except ServerError as error:
        # A run that has begun may miss no sample, and then needs no server. If a sample is missing, asking for it fails
        # with the same sentence.
        model = options.model
        if must_answer or model is None or not _folder(options, model).manifest.exists():
            raise
        reached = reached or ReachedServers(provider=servers.provider_of(options), endpoints=(), about={})
        return replace(reached, about={}), Looks.failed(model, reached.endpoints, error)


def _folder(options: RunOptions, model: str) -> RunFolder:
    """The run's folder, or that of its shard. model: its name makes the default folder."""
    run = RunFolder.default(model) if options.out is None else RunFolder(options.out)
    if options.begins is not None:
        run = begun_at(options.begins)
    return run if options.shard is None else run.of_shard(options.shard)


def _settings(
    questions_asked: Asked, options: RunOptions, reached: ReachedServers, looks: Looks, watcher: Watcher
) -> RunSettings:
    """The settings of the run, from its options and from what the servers state."""
    salvage = Salvage(mode="exact", engine=looks.engine or "")
    spelling = _spelling(options, looks.model, reached.provider, looks.engine)
    folder = _folder(options, looks.model)
    asker = Asker(
        model=looks.model,
        engine=looks.engine,
        spelling=replace(spelling, token_ids=salvage.states_ids(options.api)),
        left_out=frozenset(options.drop),
        deadlines=Deadlines(first_token=options.timeout, idle=options.timeout) if options.timeout else Deadlines(),
    )
    settings = RunSettings(
        asker=asker,
        endpoints=reached.endpoints,
        benchmarks=with_neutral(questions_asked.benchmarks, folder, asker),
        out=folder.path,
        key_variable=servers.key_variable(options),
        transport=options.transport,
        concurrency=options.concurrency or looks.concurrency or DEFAULT_CONCURRENCY,
        seed=options.seed,
        patience=Patience(attempts=options.attempts) if options.attempts else Patience(),
        fit_context=options.fit_context,
        accept_server_change=options.accept_server_change,
        canary=options.canary,
        fingerprint=_fingerprinted(questions_asked, reached, looks),
        budget_tokens=options.budget_tokens,
        budget_usd=options.budget_usd,
        prices=prices_in(options.prices) if options.prices else None,
        requests_per_minute=options.rpm,
        salvage=salvage,
    )
    _warn_of_ignored(settings, reached.provider, options.thinking, watcher)
    return by_batch(settings, options, reached.provider) if options.batch else settings


def _fingerprinted(questions_asked: Asked, reached: ReachedServers, looks: Looks) -> bool:
    """Whether the run takes a fingerprint of its servers: as the option says; without it, if all servers run a known
    engine and belong to no hosted provider, or if the run has at least `FINGERPRINTED_SAMPLES` samples.
    """
    if questions_asked.options.fingerprint is not None:
        return questions_asked.options.fingerprint
    names = [facts.host.get("engine") for facts in looks.facts.values()]
    all_known = bool(names) and all(engines.dialect(name).neutral is not None for name in names)
    if all_known and not reached.provider.hosted:
        return True
    benchmarks = questions_asked.benchmarks
    n_samples = sum(len(each.questions) * benchmarks[each.name].samples for each in questions_asked.sets)
    return n_samples >= FINGERPRINTED_SAMPLES


def _spelling(options: RunOptions, model: str, provider: Provider, engine: str | None) -> Spelling:
    """The wording of requests: the provider's, overridden by the options. Raises `UsageError` if both set a field."""
    by_provider = provider.spelling(
        model, api=options.api, thinking=options.thinking, thinking_tokens=options.thinking_tokens, engine=engine
    )
    by_options = Spelling().with_fields(options.extra_body)
    for attribute in ("extra_body", "chat_template_kwargs"):
        if set_twice := sorted(getattr(by_options, attribute).keys() & getattr(by_provider, attribute).keys()):
            # Only these options make a provider set fields.
            option = "thinking" if options.thinking is not None else "thinking_tokens"
            both = f"{as_keyword(option, getattr(options, option))} and extra_body"
            raise UsageError(f"{both} both set {', '.join(set_twice)}: give one of them")
    stream_usage = by_provider.stream_usage and "stream_options" not in options.drop
    spelling = replace(by_provider, stream="stream" not in options.drop, stream_usage=stream_usage)
    return spelling.with_fields(options.extra_body)


def _warn_of_ignored(settings: RunSettings, provider: Provider, thinking: Thinking | None, watcher: Watcher) -> None:
    """Warn of fields that the provider ignores. None is left out silently: only the user does that, by `drop`."""
    warnings: list[str] = []
    for benchmark in settings.benchmarks:
        sent = settings.template(benchmark).names(seed=settings.seed is not None)
        warnings += provider.warnings(settings.model, sent, thinking)
    for warning in dict.fromkeys(warnings):
        watcher.warn(warning)
