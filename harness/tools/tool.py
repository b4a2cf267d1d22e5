"""What a tool is: a value, like the `API` of an API; and its settings in a run, a part of the run's identity."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from harness.core.records import CallEnd, OfferedTool


class Limit(NamedTuple):
    """A limit of a tool, and the smallest and largest value that the option takes."""

    default: int
    least: int
    most: int


LIMITS = {"steps": Limit(100, 1, 1000), "calls": Limit(100, 1, 1000)}
"""The limits of every tool: requests of a sample, and calls of a reply that run."""


class Ran(NamedTuple):
    """A call that has run. output: what the model is told. seconds: of CPU. memory: bytes that the sample's part of the
    runner holds until the next call.
    """

    output: str
    end: CallEnd
    seconds: float = 0.0
    memory: int = 0


class CallRunner:
    """Runs the calls of a tool with one setting, for all samples of a run. A tool without a state has only `run`."""

    least_bytes: ClassVar[int] = 0
    """Memory that a sample takes from its first call on."""
    most_bytes: int = 0
    """Memory that a sample takes at most while its call runs."""

    def facts(self) -> dict[str, Any]:
        """What its outputs depend on besides the limits, such as versions; a part of the run's identity."""
        return {}

    def run(self, key: Hashable, /, *values: Any, **arguments: Any) -> Ran:
        """Run a call of the sample `key`. arguments: as `Tool.read` returns them. Any thread may call it, one at a
        time for a key. Raises `HelperFailed` if no call can run any more.
        """
        raise NotImplementedError

    def lose(self, key: Hashable) -> None:
        """Give up what the sample holds, for its memory; its next call is told."""

    def forget(self, key: Hashable) -> None:
        """Note that the sample makes no more calls."""

    def close(self) -> None:
        """End all; calls under way fail."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A tool that a run can offer."""

    name: str
    """Its name, as models call it and the option names it."""
    parameters: Mapping[str, Any]
    """The JSON schema of its arguments."""
    description: Callable[[ToolSettings], str]
    """The words about it for the model."""
    read: Callable[[str], dict[str, Any]]
    """The arguments of a call by name, from the text that came. Raises `ValueError` with what the model is told."""
    runner: Callable[[ToolSettings], CallRunner]
    """Who runs its calls."""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """Its own limits, by name."""
    texts: tuple[str, ...] = ()
    """Names of its settings that are texts."""
    shown: str = ""
    """The argument that is shown in place of the whole call; empty: all, as they came."""

    def settings(self, facts: Mapping[str, Any] | None = None, **given: Any) -> ToolSettings:
        """The tool with these limits and texts, and the defaults of the other limits."""
        limits = {name: given.get(name, limit.default) for name, limit in {**LIMITS, **self.limits}.items()}
        texts = {name: given[name] for name in self.texts if name in given}
        return ToolSettings(tool=self, limits=limits, texts=texts, facts=facts or {})

    def recorded(self, identity: Mapping[str, Any]) -> ToolSettings:
        """The tool as `ToolSettings.identity` states it."""
        limits = {name: value for name, value in identity.items() if name in {**LIMITS, **self.limits}}
        return self.settings({name: identity[name] for name in identity if name not in {"name", *limits}}, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """A tool as a run offers it. facts: those of its runner, once they are known."""

    tool: Tool
    limits: Mapping[str, int] = field(hash=False)
    texts: Mapping[str, str] = field(hash=False)
    facts: Mapping[str, Any] = field(hash=False)

    @property
    def identity(self) -> dict[str, Any]:
        """All that makes its outputs comparable, for the run's identity."""
        return {"name": self.tool.name, **self.limits, **self.facts}

    @property
    def spelling(self) -> str:
        """The value of the option that gives these limits."""
        return ",".join([self.tool.name, *(f"{name}={value}" for name, value in self.limits.items())])

    @property
    def offered(self) -> OfferedTool:
        """The tool as requests offer it."""
        tool = self.tool
        return OfferedTool(name=tool.name, description=tool.description(self), parameters=dict(tool.parameters))
