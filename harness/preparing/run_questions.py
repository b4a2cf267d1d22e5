"""Reads the questions that a run's options name, and determines their number of samples and sampling settings.

No server is contacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.benchmarks import card as cards
from harness.benchmarks import catalog, column_names, questions, shards
from harness.benchmarks.card import Card
from harness.benchmarks.column_names import ANSWER_COLUMNS, ASKED_COLUMNS
from harness.benchmarks.questions import QuestionSet
from harness.client.address.fields import DROPPABLE
from harness.client.apis.api import API
from harness.client.apis.table import WITH_TOOLS, api_of
from harness.core.errors import UsageError, misspelled
from harness.core.number_text import count_noun
from harness.core.records import MAX_SAMPLES
from harness.core.sanitize import visible
from harness.core.secret import without_secrets
from harness.core.turn_settings import turns_in
from harness.generation.settings import BenchmarkSettings
from harness.options.run import OF_DATA, RunOptions, recorded_options
from harness.presets import preset as presets
from harness.presets.preset import Preset
from harness.presets.sampling import DEFAULT_SAMPLING, Sampling, sampling_fields
from harness.progress.events import Watcher
from harness.runs import RunFolder
from harness.runs.journal import stored_keys
from harness.tools.table import NO_TOOL, tool_of
from harness.tools.tool import ToolSettings


@dataclass(frozen=True, kw_only=True)
class RunQuestions:
    """The questions of a run, with their samples and sampling, before any server is contacted.

    benchmarks: settings by the name of the question set.
    """

    options: RunOptions
    sets: list[QuestionSet]
    benchmarks: Mapping[str, BenchmarkSettings]
    preset: Preset | None

    def are_sampled(self, folder: RunFolder) -> bool:
        """Whether the folder has every planned sample of these questions."""
        plans = [(each, self.benchmarks[each.name].plan()) for each in self.sets]
        return all(
            plan.n_stored(stored_keys(folder.benchmark(each.name)), each.ids) == plan.total(each.ids)
            for each, plan in plans
        )


def questions_of(options: RunOptions, watcher: Watcher | None = None) -> RunQuestions:
    """Read the data and determine the sampling settings. Raises `UsageError`."""
    watcher = watcher or Watcher()
    api, named = api_of(options.api), _cards(options)
    preset = presets.load(options.preset) if options.preset is not None else None
    # For the manifest, which has no keys and has ids in its plan; limits and filters given with ids are also omitted.
    given = recorded_options(without_secrets(options.plain))
    recorded = {name: given[name] for name in given if options.ids is None or name not in ("limit", "filter")}
    sets, benchmarks = [], {}
    for card, samples in named:
        question_set = questions.build(
            card,
            prompt=options.prompt,
            system_prompt=options.system_prompt,
            limit=options.limit,
            ids=options.ids,
            filters=options.filter,
            templated=api.templated,
            turns=options.turns,
        )
        for note in question_set.notes:
            watcher.warn(f"{question_set.name}: {note}")
        sets.append(question_set)
        sampling, origins = sampling_of(options, preset, question_set.sampling)
        n = first_number(samples, options.samples, question_set.samples)
        of_samples = "options" if samples or options.samples else "default" if card.is_of_data else "card"
        origins |= {"samples": of_samples, "model": "options" if options.model else "server"}
        if options.target_error is not None:
            _refuse_too_few(options.target_error, question_set.name, n, named=samples is not None)
        chosen = _tool(options, preset, question_set.tool)
        if question_set.offers_tools:
            _refuse_for_calls(options, api, question_set.name, has_tool=chosen is not None)
        tool = _offered_tool(chosen, options, api, sampling)
        if tool is not None:
            origins["tool"] = (
                "options" if options.tool else f"preset {preset.name}" if preset and preset.tool else "card"
            )
        turns = turns_in(question_set.turns) if question_set.has_turns else None
        if turns is not None:
            _refuse_for_turns(options, api, question_set.name)
        benchmarks[question_set.name] = BenchmarkSettings(
            samples=n, sampling=sampling, origins=origins, options=recorded, tool=tool, turns=turns
        )
        for warning in _column_warnings(options, question_set):
            watcher.warn(warning)
    if options.calling and not any(each.offers_tools for each in sets):
        raise UsageError(
            "no question offers tools",
            field="parallel_calls" if options.tool_choice is None else "tool_choice",
        )
    if options.turns and not any(each.has_turns for each in sets):
        raise UsageError("no question is a conversation of several turns", field="turns", value=options.turns)
    _check_verifiers(sets)
    if options.shard is not None:
        sets = shards.divide(sets, options.shard, watcher.warn)
    return RunQuestions(options=options, sets=sets, benchmarks=benchmarks, preset=preset)


def first_number(*numbers: float | None) -> float:
    """The first number given; a whole number without decimals, as it is stored and shown."""
    first = next(number for number in numbers if number is not None)
    return int(first) if first == int(first) else first


def _cards(options: RunOptions) -> list[tuple[Card, float | None]]:
    """Return (card, number of samples or None) for each benchmark that the user named or for the user's own file.

    Raises `UsageError`.
    """
    if not options.benchmarks and not options.data:
        raise UsageError("specify a benchmark, such as demo (see `harness benchmarks`), or a file with `data`")
    named = [_name_and_samples(benchmark) for benchmark in options.benchmarks]
    if options.data:
        numbered = [_with_data(options, options.data, named)]
    else:
        of_data = {name: value for name in OF_DATA if (value := getattr(options, name))}
        if of_data and not any(catalog.is_table(name) for name, _ in named):
            raise UsageError(
                "it only applies to a file of questions: use `data` instead of a benchmark", field=next(iter(of_data))
            )
        numbered = [(catalog.load(name, **of_data), number) for name, number in named]
    numbers = {number for _, number in numbered}
    if options.samples is not None and None not in numbers and numbers != {options.samples}:
        listed = ", ".join(f"{card.name}:{number:g}" for card, number in numbered)
        raise UsageError(
            f"all benchmarks specify their own number of samples ({visible(listed, 200)}); omit either this "
            "option or those numbers",
            field="samples",
            value=f"{options.samples:g}",
        )
    names = [card.name for card, _ in numbered]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"a benchmark is listed twice: {', '.join(twice)}; list each one once")
    return numbered


def _name_and_samples(benchmark: str) -> tuple[str, float | None]:
    """A benchmark's name or path, and the number of samples after it (None if there is none). Raises `UsageError`."""
    # Split at the last colon, since the path of a card file may contain other colons.
    name, _, number = benchmark.rpartition(":")
    if not name or not re.fullmatch(r"\d+(\.\d+)?", number):
        return benchmark, None
    if not 1 <= float(number) <= MAX_SAMPLES:
        raise UsageError(f"{benchmark}: the number of samples must be from 1 to {MAX_SAMPLES}")
    return name, float(number)


def _with_data(options: RunOptions, data: str, named: list[tuple[str, float | None]]) -> tuple[Card, float | None]:
    """Return the card for a user's data file, and the samples per question if `name:samples` specifies them.

    Without a benchmark the card is drafted from the file; with a benchmark it is the benchmark's card, with the file as
    its data.
    data: path or address of the file. named: (name, samples) of the benchmark that the user named, if any.
    Raises `UsageError`.
    """
    if not named:
        return cards.from_file(data, **{name: getattr(options, name) for name in OF_DATA}), None
    if len(named) > 1:
        raise UsageError(
            f"the file contains the questions of one benchmark, but {len(named)} benchmarks are specified; specify one",
            field="data",
        )
    keys = [name for name in OF_DATA if name != "split"]
    if any(getattr(options, key) for key in keys):
        raise UsageError(f"{', '.join(keys)} are only for data without a card: omit the benchmark")
    name, samples = named[0]
    return catalog.load(name).with_data(data, options.split), samples


def sampling_of(options: RunOptions, preset: Preset | None, card: Sampling) -> tuple[Sampling, dict[str, str]]:
    """Return the sampling fields that each request sends, and for each field its origin.

    Options override the preset, which overrides the card, which overrides the defaults.
    """
    for name in options.drop:
        if name not in DROPPABLE:
            raise UsageError(
                f"expected one of {', '.join(DROPPABLE)}.{misspelled(name, DROPPABLE)}",
                field="drop",
                value=name if name in sampling_fields() else "…",  # any other text may be a key
            )
    given = {name: getattr(options, name) for name in sampling_fields()}
    own = Sampling(**{name: value for name, value in given.items() if value not in (None, ())})
    named = preset.sampling.plain if preset is not None and preset.sampling is not None else Sampling()
    # From the highest priority to the lowest; the origin of a field is the first layer that sets it.
    layers = {"options": own, f"preset {options.preset}": named, "card": card, "default": DEFAULT_SAMPLING}
    sent = {
        name: (origin, value)
        for origin, layer in reversed(layers.items())
        for name, value in layer.request_fields().items()
    }
    sampling = Sampling(**{name: value for name, (_, value) in sent.items() if name not in options.drop})
    return sampling, {name: sent[name][0] for name in sampling.request_fields()}


def named_tool(options: RunOptions, preset: Preset | None, of_card: str | None) -> str | None:
    """The tool named by the options, else the preset, else the card; None if none is named or the first is `none`."""
    tool = options.tool or (preset.tool if preset is not None else None) or of_card
    return None if tool == NO_TOOL else tool


def _tool(options: RunOptions, preset: Preset | None, of_card: str | None) -> ToolSettings | None:
    """The settings of the named tool (`named_tool`); None if none is named."""
    return tool_of(named_tool(options, preset, of_card))


def tools_of(options: RunOptions) -> dict[str, ToolSettings]:
    """The tool of each benchmark that has one, with the versions of this machine's sandbox. Raises `UsageError`."""
    preset = presets.load(options.preset) if options.preset is not None else None
    tools = ((card.name, _tool(options, preset, card.tool)) for card, _ in _cards(options))
    return {name: replace(tool, facts=_tool_facts(tool)) for name, tool in tools if tool is not None}


_TOKEN_LIMITS = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
"""Request fields that limit the new tokens, in all APIs."""


def _extra_fields(options: RunOptions, fields: set[str]) -> str:
    """Those of the fields that `extra_body` sets, in words; empty if it sets none."""
    return " and ".join(sorted(fields & options.extra_body.keys()))


def _offered_tool(tool: ToolSettings | None, options: RunOptions, api: API, sampling: Sampling) -> ToolSettings | None:
    """The tool, with the versions of its interpreter and packages (an interpreter is started to get
    them).

    Raises `UsageError` for settings that are impossible for samples with several requests, and if the tool has no
    sandbox here.
    """
    if tool is None:
        return None
    fields = _extra_fields(options, {"tools", "tool_choice", "functions", *_TOKEN_LIMITS})
    refusals = [
        (api.tools is None, f"`api={options.api}` does not support tool calls: use {WITH_TOOLS}"),
        (options.batch, "it does not work with `batch`: a sample with a tool needs several requests in sequence"),
        (sampling.stop is not None, "it does not work with `stop`: a stop sequence could end a reply inside a call"),
        (fields, f"the harness itself sets the tool and the token limit: remove {fields} from `extra_body`"),
        (
            options.budget_usd is not None and sampling.max_tokens is None,
            "it needs `max_tokens` if `budget_usd` is set",
        ),
    ]
    for applies, why in refusals:
        if applies:
            raise UsageError(why, field="tool")
    return replace(tool, facts=_tool_facts(tool))


def _refuse_for_calls(options: RunOptions, api: API, name: str, *, has_tool: bool) -> None:
    """Raise `UsageError` for settings that are impossible for a benchmark whose questions offer tools."""
    fields = _extra_fields(options, {"tools", "functions"})
    for applies, field, why in (
        (api.tools is None, "api", f"use {WITH_TOOLS}"),
        (options.batch, "batch", "omit this option"),
        (has_tool, "tool", "omit this option, or set `tool=none`"),
        (fields, "extra_body", f"remove {fields} from it"),
        (options.calling.keys() & options.extra_body.keys(), "extra_body", "it sets a field that an option also sets"),
    ):
        if applies:
            raise UsageError(f"the questions of {visible(name, 80)} have their own tools: {why}", field=field)


def _refuse_for_turns(options: RunOptions, api: API, name: str) -> None:
    """Raise `UsageError` for settings that are impossible for conversations."""
    fields = _extra_fields(options, _TOKEN_LIMITS)
    for applies, field, why in (
        (api.tools is None, "api", f"use {WITH_TOOLS}"),
        (options.batch, "batch", "omit this option"),
        (fields, "extra_body", f"use `max_tokens` instead of {fields}"),
    ):
        if applies:
            raise UsageError(f"{visible(name, 80)} has conversations of several turns: {why}", field=field)


@cache
def _tool_facts(settings: ToolSettings) -> dict[str, Any]:
    return settings.tool.runner(settings).facts()


def _refuse_too_few(target: float, benchmark: str, samples: float, *, named: bool) -> None:
    """Raise `UsageError` if too few samples per question are planned for an estimate of the sampling error.

    target: the target error, in points. named: the number of samples is in the benchmark's name, `aime24:64`.
    """
    from harness.deciding.difference_stats import MIN_ROUNDS  # few runs need it, and it imports numpy

    if samples < MIN_ROUNDS:
        more = f"{visible(benchmark, 80)}:{MIN_ROUNDS}" if named else f"`samples` {MIN_ROUNDS}"
        raise UsageError(
            f"estimating the sampling error requires at least {MIN_ROUNDS} samples per question, but "
            f"{visible(benchmark, 80)} has {count_noun(samples, 'sample')}: set {more} or more",
            field="target_error",
            value=f"{target:g}",
        )


_OPTION_COLUMN = re.compile(r"(option|choice)?[ _]?[a-h1-8]|options|choices", re.IGNORECASE)
"""Name of a column that probably has an option of a multiple-choice question: A, option_b, choice 3, choices."""


def _column_warnings(options: RunOptions, question_set: QuestionSet) -> Iterator[str]:
    """Yield a warning if, by their names, two columns of a user's local file may have the question or two may have the
    answer, and a warning if columns look like choices that are not shown to the model.
    """
    if not question_set.without_card or question_set.data_file is None:
        return
    file, columns = visible(Path(question_set.data_file).name, 80), question_set.columns
    usual = {"question": (options.question_key, ASKED_COLUMNS), "answer": (options.answer_key, ANSWER_COLUMNS)}
    for what, (key, names) in usual.items():
        fitting = (column_names.find((name,), columns) for name in names)
        present = list(dict.fromkeys(name for name in fitting if name is not None))
        if key is None and len(present) > 1:
            also = " and ".join(visible(name, 40) for name in present[1:])
            yield (
                f"{file}: the {what} is taken from the column {visible(present[0], 40)}, although {also} may contain "
                f"it too; to use another column, set `{what}_key`"
            )
    used = (options.question_key, options.answer_key, options.id_key)
    choices = [name for name in columns if name not in used and _OPTION_COLUMN.fullmatch(name)]
    if not options.choices_key and (len(choices) > 1 or {"options", "choices"} & {name.casefold() for name in choices}):
        named = ", ".join(visible(name, 40) for name in choices)
        yield (
            f"{file}: the columns {named} are not shown to the model; if they contain multiple-choice options, "
            f"specify them with `choices_key`"
        )


def _check_verifiers(sets: Sequence[QuestionSet]) -> None:
    """Raise `UsageError` if a benchmark's verifier is not trusted, not found or not a function of two arguments.

    Without this check, `harness score` would report it after hours of sampling.
    """
    # All questions of a card have the card's verifier.
    firsts = [question_set.questions[0] for question_set in sets if question_set.questions]
    own = [question for question in firsts if not question.rules.is_built_in]
    if own:
        # Imported late: without a verifier, a run grades nothing.
        from harness.grading.external_graders import is_elsewhere
        from harness.grading.processes.pool import grader_names

        grader_names([question for question in own if not is_elsewhere(question.rules.grader)])
