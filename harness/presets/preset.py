"""Settings by name, as data with their sources: one YAML file a preset, of a model or family or of sampling alone.

A preset fills what a run leaves open, when it is asked for by name; without being asked it only warns
(`Preset.contradictions`): of sampling, prompt, length, template and prefill, by the rules of the model's own card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from harness.core.choices import Api
from harness.core.errors import UsageError, near_names, option
from harness.core.inert import visible
from harness.core.part import Part
from harness.core.validation import first_problem
from harness.core.yaml_file import fits_any, read_mapping
from harness.presets.sampling import Sampling, sampling_fields

_FOLDER = Path(__file__).parent / "files"


class Sourced(Part):
    """A fact and where it stands. read: the page itself, or a stored copy of it; as somebody quotes it; or neither."""

    source: str
    read: Literal["page", "quoted", "no"]


class SourcedSampling(Sourced):
    """Sampling that the model's authors, or those who measured it, used; and where that stands.

    plain: as it is sent; in the file its fields stand beside the rest. card: the authors ask for it; else somebody
    measured with it. range: by field, the least and the most that they allow, where that is more than the one value.
    """

    plain: Sampling = Sampling()
    card: bool = True
    range: dict[str, tuple[float, float]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, value: dict[str, object]) -> dict[str, object]:
        fields = sampling_fields()
        rest = {name: field for name, field in value.items() if name not in fields}
        return {**rest, "plain": {name: field for name, field in value.items() if name in fields}}


class Parser(Sourced):
    """The reasoning parser, in vLLM's spelling; but: engines' own names, None where one has no such parser."""

    name: str
    but: dict[str, str | None] = Field(default_factory=dict)

    def of(self, engine: str) -> str | None:
        """The name of the parser for an engine, by the key under which the engine's own names stand."""
        return self.but.get(engine, self.name)


class Context(Sourced):
    """Tokens that prompt and answer may use together."""

    tokens: int = Field(ge=1)


Rule = Literal["no_greedy", "no_system_prompt", "system_prompt", "boxed", "chat", "thinking_off", "effort", "prefill"]
"""A card's advice beside sampling: no greedy decoding; no system prompt, or one of its own; \\boxed{} in mathematics;
the chat template; thinking switched on, or an effort set, by the request; a reply that begins with `prefill`."""


class Advice(Sourced):
    """A rule of the model's card; `rule` is what is checked, `text` what a user reads."""

    rule: Rule
    text: str
    prefill: str = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.rule == "prefill") != bool(self.prefill):
            raise ValueError("`prefill` goes with the rule of that name")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProfile:
    """The settings of a run that a model's card may have rules about.

    prompt: all turns of the first question. mathematics: whether the answers are. context: tokens, as the server states
    them. thinking: the switch or the effort. prefill: the beginning of replies. opens: whether the server's prompt ends
    inside a reasoning that its template opened; None: not known.
    """

    sampling: Sampling
    prompt: str = ""
    system_prompt: str | None = None
    mathematics: bool = False
    api: Api = "chat"
    context: int | None = None
    thinking: str | None = None
    prefill: str | None = None
    opens: bool | None = None


class Preset(Part):
    """One model or family, or sampling alone. models: patterns of hub names, case ignored."""

    name: str
    models: tuple[str, ...] = ()
    reasoning_parser: Parser | None = None
    context: Context | None = None
    sampling: SourcedSampling | None = None
    advice: tuple[Advice, ...] = ()

    def rule(self, name: Rule) -> Advice | None:
        """The card's rule of that kind."""
        return next((advice for advice in self.advice if advice.rule == name), None)

    def contradictions(self, run: RunProfile) -> list[str]:
        """One sentence for each setting that the model's card speaks against."""
        return [*self._by_rules(run), *self._by_sampling(run.sampling), *self._by_length(run)]

    def _by_rules(self, run: RunProfile) -> Iterator[str]:
        broken = {
            "no_greedy": (run.sampling.temperature == 0, "temperature 0"),
            "no_system_prompt": (bool(run.system_prompt), "a system prompt"),
            "system_prompt": (not run.system_prompt and run.api == "chat", "no system prompt"),
            "boxed": (run.mathematics and "\\boxed" not in run.prompt, "the prompt names no \\boxed{}"),
            "chat": (run.api != "chat", option("api", run.api)),
            "thinking_off": (run.thinking in (None, "off", "none") and run.api == "chat", "no thinking"),
            "effort": (run.thinking is None and run.api == "chat", "no effort is set"),
            "prefill": (run.opens is False and not run.prefill, "replies that do not begin with their reasoning"),
        }
        cures = {
            "thinking_off": f" ({option('thinking', 'on')})",
            "effort": f" ({option('thinking')})",
            "system_prompt": f" ({option('system_prompt')})",
        }
        for advice in self.advice:
            is_broken, what = broken[advice.rule]
            if is_broken:
                cure = f" ({option('prefill', advice.prefill)})" if advice.prefill else cures.get(advice.rule, "")
                yield f"{what}: {advice.text}{cure}"

    def _by_sampling(self, sent: Sampling) -> Iterator[str]:
        if self.sampling is None or not self.sampling.card or sent.temperature == 0:
            return
        asked_for = {name: value for name, value in self.sampling.plain.sent().items() if name in _NEUTRAL}
        odd = []
        for name, value in asked_for.items():
            number = getattr(sent, name)
            least, most = self.sampling.range.get(name, (value, value))
            if number is None and value != _NEUTRAL[name]:
                odd.append(f"{name} {value:g} (not sent)")
            elif number is not None and not least <= number <= most:
                odd.append(f"{name} {value:g} (not {number:g})")
        if odd:
            yield f"the model card asks for {', '.join(odd)}; {option('preset', self.name)} sends its sampling"

    def _by_length(self, run: RunProfile) -> Iterator[str]:
        bound = run.sampling.max_tokens
        if bound is None:
            return
        room = run.context if run.context is not None else self.context.tokens if self.context else None
        if room is not None and bound >= room:
            yield f"max_tokens {bound} leaves no room for a prompt in a context of {room} tokens"
        own = self.sampling.plain.max_tokens if self.sampling is not None and self.sampling.card else None
        if own is not None and bound < own:
            yield f"max_tokens {bound}: the model card gives a reply {own:,}, and longer reasoning is cut"


_NEUTRAL = {name: field.neutral for name, field in sampling_fields().items() if field.neutral is not None}
"""Field of a card's sampling that a run is compared with → the value that is the same as leaving the field out."""


def names() -> list[str]:
    """Names of the presets, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Preset:
    """The preset of that name. Raises `UsageError` with the near names."""
    listing = names()
    if name not in listing:
        raise UsageError(
            f"unknown preset; there are {', '.join(listing)}.{near_names(name, listing)}",
            field="preset",
            value=visible(name, 60),
        )
    path = _FOLDER / f"{name}.yaml"
    try:
        return Preset.model_validate({"name": name, **read_mapping(path, "a preset")})
    except ValidationError as error:
        raise UsageError(f"{path}: {first_problem(error, Preset.model_fields).sentence}") from error


def for_model(model: str) -> Preset | None:
    """The preset whose patterns fit a model's name or its folder's; the longest pattern wins."""
    candidates = {model, Path(model).name}
    fitting = [
        (len(pattern), name)
        for name in names()
        for pattern in _models(name)
        if any(fits_any(candidate, (pattern, pattern.rpartition("/")[2])) for candidate in candidates)
    ]
    return load(max(fitting)[1]) if fitting else None


def _models(name: str) -> tuple[str, ...]:
    """The patterns of a preset, from the one line of its file that holds them: every run looks at all presets."""
    lines = read_mapping(_FOLDER / f"{name}.yaml", "a preset", is_wanted=lambda line: line.startswith("models:"))
    return tuple(lines["models"])
