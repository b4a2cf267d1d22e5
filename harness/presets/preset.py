"""Settings by name, as data with their sources: one YAML file a preset, of a model or family or of sampling alone.

A preset fills what a run leaves open, when it is asked for by name; without being asked it only warns
(`Preset.contradictions`).
"""

from __future__ import annotations

import fnmatch
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.validation import first_problem
from harness.core.yaml_file import read_mapping
from harness.presets.sampling import Sampling

_FOLDER = Path(__file__).parent / "files"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sourced(_Strict):
    """A fact and where it stands."""

    source: str


class SourcedSampling(Sampling):
    """Sampling that the model's authors, or those who measured it, used; and where that stands."""

    source: str

    @property
    def plain(self) -> Sampling:
        """Without the source, as it is sent."""
        return Sampling(**self.model_dump(exclude={"source"}, exclude_none=True))


class Parser(Sourced):
    """The reasoning parser, in the underscore spelling; each launcher writes its engine's."""

    name: str


class Context(Sourced):
    """Tokens that prompt and answer may use together."""

    tokens: int = Field(ge=1)


class Advice(Sourced):
    """A rule of the model's card; `rule` is what is checked, `text` what a user reads."""

    rule: Literal["no_greedy", "no_system_prompt"]
    text: str


class Preset(_Strict):
    """One model or family, or sampling alone. models: patterns of hub names, case ignored."""

    name: str
    models: tuple[str, ...] = ()
    reasoning_parser: Parser | None = None
    context: Context | None = None
    sampling: SourcedSampling | None = None
    advice: tuple[Advice, ...] = ()

    def contradictions(
        self,
        *,
        temperature: float | None = None,
        system_prompt: str | None = None,
        max_tokens: int | None = None,
        context: int | None = None,
    ) -> list[str]:
        """One sentence for each setting that the model's card speaks against; None means not set."""
        rules = {one.rule: one.text for one in self.advice}
        found = []
        if temperature == 0 and "no_greedy" in rules:
            found.append(f"temperature 0: {rules['no_greedy']}")
        if system_prompt and "no_system_prompt" in rules:
            found.append(f"a system prompt: {rules['no_system_prompt']}")
        room = context if context is not None else self.context.tokens if self.context else None
        if max_tokens is not None and room is not None and max_tokens >= room:
            found.append(f"max_tokens {max_tokens} leaves no room for a prompt in a context of {room} tokens")
        return found


def names() -> list[str]:
    """The presets there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Preset:
    """The preset of that name. Raises `UsageError` with the near names."""
    known = names()
    if name not in known:
        raise UsageError(
            f"unknown preset; there are {', '.join(known)}.{near_names(name, known)}",
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
    candidates = {model.lower(), Path(model).name.lower()}
    fitting = [
        (len(pattern), name)
        for name in names()
        for pattern in load(name).models
        for candidate in candidates
        if fnmatch.fnmatchcase(candidate, pattern.lower()) or fnmatch.fnmatchcase(candidate, _last(pattern))
    ]
    return load(max(fitting)[1]) if fitting else None


def _last(pattern: str) -> str:
    return pattern.rpartition("/")[2].lower()
