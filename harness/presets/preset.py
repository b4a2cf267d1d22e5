"""What is known of a model, as data with its sources: `presets/*.yaml`.

A preset fills what a command line leaves open, when it is asked for by name; without being asked it only warns
(`Preset.contradictions`).
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from server_launchers.errors import LaunchError

_FOLDER = Path(__file__).parent / "files"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sourced(_Strict):
    """A fact and where it stands."""

    source: str


class Sampling(Sourced):
    """Sampling that the model's authors, or those who measured it, used."""

    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=1)
    min_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)


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
    """One model or family."""

    name: str
    models: tuple[str, ...] = Field(min_length=1)
    """Patterns of hub names, case ignored."""
    reasoning_parser: Parser | None = None
    context: Context | None = None
    sampling: Sampling | None = None
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
    """The preset called `name`; raises LaunchError that names the near one."""
    path = _FOLDER / f"{name}.yaml"
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        raise LaunchError(
            f"no preset {name}; {f'did you mean {near[0]}?' if near else 'there are ' + ', '.join(names())}"
        )
    try:
        data: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Preset.model_validate({"name": name, **data})
    except (yaml.YAMLError, ValidationError, TypeError) as error:
        raise LaunchError(f"preset {path} is damaged: {error}") from None


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
