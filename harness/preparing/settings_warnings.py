"""Warnings before a run's first request about settings that are allowed but seldom intended.

Nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.generation.context import fitted_max_tokens
from harness.presets import preset as presets

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.generation.settings import RunSettings
    from harness.options.run import RunOptions
    from harness.preparing.looks import Looks
    from harness.preparing.watching import Watcher


USUAL = {"temperature": (0.0, 2.0), "top_p": (0.1, 1.0), "repetition_penalty": (0.5, 2.0)}
"""Sampling field → the range (low, high) outside which a value is more likely mistyped than meant."""


def warn_of_settings(
    settings: RunSettings, sets: Sequence[QuestionSet], options: RunOptions, looks: Looks, watcher: Watcher
) -> None:
    """Warn of the effects of the run's settings, and of settings that the model's card advises against."""
    preset = presets.for_model(settings.model)
    for question_set in sets:
        name = question_set.name
        benchmark = settings.benchmarks[name]
        n = benchmark.samples
        for field, (low, high) in USUAL.items():
            value = getattr(benchmark.sampling, field)
            if value is not None and not low <= value <= high:
                watcher.advise(f"{name}: {field} is {value:g}; usual are {low:g} to {high:g}")
        if benchmark.sampling.temperature == 0 and n > 1:
            watcher.advise(f"{name}: {n} samples at temperature 0 are all the same on most servers")
        if settings.seed is None and n > 1:
            watcher.advise(f"{name}: without seeds a server with a cache may repeat one reply {n} times")
        if preset is not None and question_set.questions:
            for sentence in preset.contradictions(_profile(settings, options, question_set, looks)):
                watcher.advise(f"{name}: {sentence}")


def _profile(settings: RunSettings, options: RunOptions, question_set: QuestionSet, looks: Looks) -> presets.RunProfile:
    """Return the settings of one benchmark as the `RunProfile` that a preset's rules, from a model's card, check."""
    name, context = question_set.name, min(looks.contexts) if looks.contexts else None
    sampling = settings.benchmarks[name].sampling
    if context is not None and settings.may_lower(name):
        fitted = fitted_max_tokens(name, question_set.questions, sampling.max_tokens, context, fit=True)
        sampling = sampling.but(max_tokens=fitted)
    return presets.RunProfile(
        sampling=sampling,
        system_prompt=question_set.system_prompt,
        templated=settings.spelling.wire.templated,
        context=context,
        # Fields that the user adds may switch thinking on or off, under any name that the chat template has for it.
        thinking=options.thinking or ("by hand" if options.extra_body else None),
    )
