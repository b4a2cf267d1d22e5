"""Presets: YAML files with the settings that a model, a model family or a paper recommends, each with its source.

A preset that the user names fills in settings that the run does not specify. If the user names none, the preset of the
run's model is still looked up, but sets nothing: it only warns about settings that the model's own card advises against
(`Preset.contradictions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from harness.core.errors import UsageError, near_names
from harness.core.sanitize import visible
from harness.core.validation import validated
from harness.core.yaml_file import fits_any, read_mapping
from harness.core.yaml_mapping import Part
from harness.presets.sampling import Sampling, sampling_fields
from harness.tools.table import TOOL

_FOLDER = Path(__file__).parent / "files"


class Sourced(Part):
    """A fact and its source.

    read: how the fact was checked. "page": on the page itself or a stored copy; "quoted": in a source that quotes the
    page; "no": not at all.
    """

    source: str
    read: Literal["page", "quoted", "no"]


class SourcedSampling(Sourced):
    """Sampling settings with their source.

    plain: the settings; in the file they are next to `source` and the other fields. card: True: the model's authors
    recommend them; False: somebody measured the model with them. range: field → (smallest, largest) value that the
    authors accept, for fields that allow more than the value in `plain`.
    """

    plain: Sampling = Sampling()
    card: bool = True
    range: dict[str, tuple[float, float]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather_sampling(cls, value: dict[str, object]) -> dict[str, object]:
        """Move the sampling fields of the file into `plain`."""
        fields = sampling_fields()
        rest = {name: field for name, field in value.items() if name not in fields}
        return {**rest, "plain": {name: field for name, field in value.items() if name in fields}}


class ReasoningParser(Sourced):
    """The reasoning parser that a server needs for the model.

    name: the name in vLLM and in all engines that are not in `but`. but: engine → the parser's name in that engine;
    None if the engine has no such parser.
    """

    name: str
    but: dict[str, str | None] = Field(default_factory=dict)

    def name_in(self, engine: str) -> str | None:
        """The parser's name in this engine; None if the engine has no such parser."""
        return self.but.get(engine, self.name)


class Context(Sourced):
    """The model's context length: maximum number of tokens in prompt and answer together."""

    tokens: int = Field(ge=1)


Rule = Literal["no_greedy", "no_system_prompt", "system_prompt", "chat", "thinking_off", "effort"]
"""Advice that a model's card may give in addition to sampling settings. no_greedy: no temperature 0. no_system_prompt:
send no system prompt. system_prompt: send a system prompt. chat: use the chat template. thinking_off: thinking is off
unless the request switches it on. effort: set an effort."""


class Advice(Sourced):
    """A piece of advice in a model's card. rule: the kind of advice, for the check. text: the wording for a user."""

    rule: Rule
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProfile:
    """The run settings that are compared with a model's card.

    templated: whether the server puts the prompt into its chat template. context: context length in tokens, as reported
    by the server. thinking: the thinking switch or effort.
    """

    sampling: Sampling
    system_prompt: str | None = None
    templated: bool = True
    context: int | None = None
    thinking: str | None = None


class Preset(Part):
    """The settings of a model or family, or only sampling settings. models: patterns of the models' names on the hub,
    ignoring case. tool: as in the option."""

    name: str
    models: tuple[str, ...] = ()
    reasoning_parser: ReasoningParser | None = None
    context: Context | None = None
    sampling: SourcedSampling | None = None
    advice: tuple[Advice, ...] = ()
    tool: Annotated[str, BeforeValidator(TOOL.parse)] | None = None

    def rule(self, name: Rule) -> Advice | None:
        """The card's advice of this kind; None if there is none."""
        return next((advice for advice in self.advice if advice.rule == name), None)

    def contradictions(self, run: RunProfile) -> list[str]:
        """A sentence for each setting of the run that the model's card advises against."""
        return [*self._by_rules(run), *self._by_sampling(run.sampling), *self._by_length(run)]

    def _by_rules(self, run: RunProfile) -> Iterator[str]:
        """A sentence for each recommendation of the card that the run does not follow."""
        broken = {
            "no_greedy": (run.sampling.temperature == 0, "temperature 0"),
            "no_system_prompt": (bool(run.system_prompt), "a system prompt"),
            "system_prompt": (not run.system_prompt and run.templated, "no system prompt"),
            "chat": (not run.templated, "no chat template"),
            "thinking_off": (run.thinking in (None, "off", "none") and run.templated, "no thinking"),
            "effort": (run.thinking is None and run.templated, "no effort is set"),
        }
        cures = {"thinking_off": " (`thinking=on`)", "effort": " (`thinking`)", "system_prompt": " (`system_prompt`)"}
        for advice in self.advice:
            is_broken, what = broken[advice.rule]
            if is_broken:
                yield f"{what}: {advice.text}{cures.get(advice.rule, '')}"

    def _by_sampling(self, sent: Sampling) -> Iterator[str]:
        """A sentence if sampling fields differ from the card's values."""
        # At temperature 0 the other fields have no effect, and `no_greedy` covers the temperature itself.
        if self.sampling is None or not self.sampling.card or sent.temperature == 0:
            return
        asked_for = {name: value for name, value in self.sampling.plain.request_fields().items() if name in _NEUTRAL}
        odd = []
        for name, value in asked_for.items():
            number = getattr(sent, name)
            least, most = self.sampling.range.get(name, (value, value))
            if number is None and value != _NEUTRAL[name]:
                odd.append(f"{name} {value:g} (not sent)")
            elif number is not None and not least <= number <= most:
                odd.append(f"{name} {value:g} (not {number:g})")
        if odd:
            yield f"the model card recommends {', '.join(odd)}; `preset={self.name}` applies its sampling settings"

    def _by_length(self, run: RunProfile) -> Iterator[str]:
        """A sentence if max_tokens fills the context, or is below the card's value."""
        bound = run.sampling.max_tokens
        if bound is None:
            return
        room = run.context
        if room is None and self.context is not None:
            room = self.context.tokens
        if room is not None and bound >= room:
            yield f"`max_tokens` {bound} leaves no room for a prompt in a context of {room} tokens"
        own = self.sampling.plain.max_tokens if self.sampling is not None and self.sampling.card else None
        if own is not None and bound < own:
            yield f"`max_tokens` {bound}: the model card recommends {own:,}; longer reasoning is truncated"


_NEUTRAL = {name: field.neutral for name, field in sampling_fields().items() if field.neutral is not None}
"""Sampling field → the value that has the same effect as omitting the field, for fields with such a value."""


def names() -> list[str]:
    """The sorted names of all presets."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Preset:
    """The preset with this name. Raises a `UsageError` that lists the names and suggests similar ones."""
    listing = names()
    if name not in listing:
        there = f"unknown preset; expected one of {', '.join(listing)}.{near_names(name, listing)}"
        raise UsageError(there, field="preset", value=visible(name, 60))
    path = _FOLDER / f"{name}.yaml"
    return validated(Preset, {"name": name, **read_mapping(path, "a preset")}, str(path))


def for_model(model: str) -> Preset | None:
    """The preset for a model, by the model's name or its folder's name; if several match, the one with the longest
    pattern.

    None if no preset matches.
    """
    candidates = {model, Path(model).name}
    fitting = [
        (len(pattern), name)
        for name in names()
        for pattern in _models(name)
        if any(fits_any(candidate, (pattern, pattern.rpartition("/")[2])) for candidate in candidates)
    ]
    return load(max(fitting)[1]) if fitting else None


@cache
def _models(name: str) -> tuple[str, ...]:
    """The patterns of a preset; empty if it has no line `models:`.

    Only the line with the patterns is parsed, because every run checks all presets.
    """
    lines = read_mapping(_FOLDER / f"{name}.yaml", "a preset", is_wanted=lambda line: line.startswith("models:"))
    return tuple(lines.get("models", ()))
