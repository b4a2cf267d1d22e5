"""Warnings before a run's first request about settings that are allowed but seldom intended.

Nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.asking.prices import doubtful
from harness.client.facts.tokens import Tokenizer, has_token_pages
from harness.core.errors import ServerError
from harness.generation.context import fitted_max_tokens
from harness.presets import preset as presets
from harness.presets.preset import Preset

if TYPE_CHECKING:
    from harness.asking.options.run import RunOptions
    from harness.asking.servers import Looks
    from harness.asking.watching import Watcher
    from harness.benchmarks.questions import QuestionSet
    from harness.core.records import Question
    from harness.generation.settings import RunSettings

MAX_USUAL_TEMPERATURE = 2.0
"""Largest temperature that OpenAI's API accepts; a run with a higher temperature gets a warning."""


def advise(
    settings: RunSettings, sets: Sequence[QuestionSet], options: RunOptions, looks: Looks, watcher: Watcher
) -> None:
    """Warn of the effects of the run's settings, and of settings that the model's card advises against."""
    if settings.prices is not None and (doubt := doubtful(settings.prices)):
        watcher.advise(doubt)
    preset = presets.for_model(settings.model)
    for question_set in sets:
        name = question_set.name
        benchmark = settings.benchmarks[name]
        n = benchmark.samples
        if benchmark.sampling.temperature == 0 and n > 1:
            watcher.advise(f"{name}: {n} samples at temperature 0 are all the same on most servers")
        temperature = benchmark.sampling.temperature
        if temperature is not None and temperature > MAX_USUAL_TEMPERATURE:
            watcher.advise(
                f"{name}: temperature {temperature:g} is above {MAX_USUAL_TEMPERATURE:g}, at which replies are "
                f"nearly random and which many servers refuse: is {_usual(temperature):g} meant?"
            )
        if settings.seed is None and n > 1:
            watcher.advise(f"{name}: without seeds a server with a cache may repeat one reply {n} times")
        if preset is not None and question_set.questions:
            for sentence in preset.contradictions(_as_cards_see_it(settings, options, question_set, preset, looks)):
                watcher.advise(f"{name}: {sentence}")


def _usual(temperature: float) -> float:
    """The temperature without the powers of ten that take it above the usual ones."""
    return temperature if temperature <= MAX_USUAL_TEMPERATURE else _usual(temperature / 10)


def _as_cards_see_it(
    settings: RunSettings, options: RunOptions, question_set: QuestionSet, preset: Preset, looks: Looks
) -> presets.RunProfile:
    """Return the settings of one benchmark as the `RunProfile` that a preset's rules, from a model's card, check."""
    first = question_set.questions[0]
    name, context = question_set.name, min(looks.contexts) if looks.contexts else None
    sampling = settings.benchmarks[name].sampling
    if context is not None and settings.may_lower(name):
        fitted = fitted_max_tokens(name, question_set.questions, sampling.max_tokens, context, fit=True)
        sampling = sampling.but(max_tokens=fitted)
    return presets.RunProfile(
        sampling=sampling,
        prompt="\n".join([first.prompt, *(message.content for message in first.messages)]),
        system_prompt=question_set.system_prompt,
        mathematics=first.kind in ("integer", "number", "expression", "multiple"),
        api=question_set.api,
        context=context,
        # Fields that the user adds may switch thinking on or off, under any name that the chat template has for it.
        thinking=options.thinking or ("by hand" if options.extra_body else None),
        opens=_opens_reasoning(first, settings, looks) if preset.rule("opens") is not None else None,
    )


def _opens_reasoning(question: Question, settings: RunSettings, looks: Looks) -> bool | None:
    """Whether the chat template of the first server that answers ends the prompt with an open reasoning block.

    None if no server answers, if the server does not show the tokens of a prompt, or if the prompt is plain text.
    """
    engine = looks.engine
    look = next((look for look in looks.each if look.failure is None), None)
    if look is None or engine is None or not has_token_pages(engine) or not question.messages:
        return None
    tokenizer = Tokenizer(look.endpoint, engine, settings.model)
    try:
        return tokenizer.opens_reasoning(question, settings.spelling.chat_template_kwargs)
    except ServerError:
        return None
