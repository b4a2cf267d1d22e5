"""The definition of a tool: a value, like the `API` of an API; and its settings in a run, which are part of the run's
identity."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.core import codec
from harness.core.records import CallEnd, OfferedTool


class Limit(NamedTuple):
    """A limit of a tool, and the smallest and largest value that the option accepts."""

    default: int
    least: int
    most: int


LIMITS = {"steps": Limit(100, 1, 1000), "calls": Limit(100, 1, 1000)}
"""The limits of every tool: requests per sample, and calls per reply that are executed."""


class Ran(NamedTuple):
    """A completed call. output: the text for the model. seconds: CPU time. memory: bytes that the sample's part of the
    runner uses until the next call.
    """

    output: str
    end: CallEnd
    seconds: float = 0.0
    memory: int = 0


class CallRunner:
    """Runs the calls of a tool with fixed settings, for all samples of a run. A stateless tool has only `run`."""

    least_bytes: int = 0
    """Memory that a sample uses from its first call onward."""
    most_bytes: int = 0
    """Maximum memory that a sample uses while its call is running."""

    def facts(self) -> dict[str, Any]:
        """What its outputs depend on in addition to the limits, such as versions; part of the run's identity."""
        return {}

    def run(self, key: Hashable, /, *values: Any, **arguments: Any) -> Ran:
        """Run a call of the sample `key`. arguments: as `Tool.checked` returns them. Any thread may call it, but only
        one at a time per key. Raises `HelperFailed` if no call can run any more.
        """
        raise NotImplementedError

    def lose(self, key: Hashable) -> None:
        """Discard the sample's state to free its memory; its next call reports this."""

    def forget(self, key: Hashable) -> None:
        """Record that the sample makes no more calls."""

    def close(self) -> None:
        """Stop everything; running calls fail."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A tool that a run can offer."""

    name: str
    """The tool's name, as used by models and in the option."""
    parameters: Mapping[str, Any]
    """The JSON schema of its arguments."""
    description: Callable[[ToolSettings], str]
    """The tool's description for the model."""
    checked: Callable[[dict[str, Any]], dict[str, Any]]
    """The arguments for the runner, from those of a call by name. Raises `ValueError` with the message for the
    model."""
    runner: Callable[[ToolSettings], CallRunner]
    """The runner of its calls."""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """Its own limits, by name."""
    texts: tuple[str, ...] = ()
    """Names of its text settings."""
    main: str = ""
    """The argument that stands for the whole call: it is shown alone, and text that is not a JSON object is its value;
    empty: none."""

    def parsed(self, arguments: str) -> dict[str, Any]:
        """The arguments for the runner, from a call's text. Raises `ValueError` with the message for the model."""
        if self.main and arguments.strip() and not arguments.lstrip().startswith("{"):
            return self.checked({self.main: arguments})
        try:
            value = codec.decode_loosely(arguments.encode("utf-8", "surrogatepass")) if arguments.strip() else {}
        except ValueError as why:
            raise ValueError(f"the arguments are not a JSON object: {why}") from why
        if not isinstance(value, dict):
            raise ValueError("the arguments are not a JSON object")
        return self.checked(value)

    def settings(self, facts: Mapping[str, Any] | None = None, **given: Any) -> ToolSettings:
        """The tool with these limits and texts, and defaults for the other limits."""
        limits = {name: given.get(name, limit.default) for name, limit in {**LIMITS, **self.limits}.items()}
        texts = {name: given[name] for name in self.texts if name in given}
        return ToolSettings(tool=self, limits=limits, texts=texts, facts=facts or {})

    def recorded(self, identity: Mapping[str, Any]) -> ToolSettings:
        """The tool as recorded by `ToolSettings.identity`."""
        limits = {name: value for name, value in identity.items() if name in {**LIMITS, **self.limits}}
        return self.settings({name: identity[name] for name in identity if name not in {"name", *limits}}, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """A tool as offered by a run. facts: its runner's facts, once they are known."""

    tool: Tool
    limits: Mapping[str, int] = field(hash=False)
    texts: Mapping[str, str] = field(hash=False)
    facts: Mapping[str, Any] = field(hash=False)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that its outputs depend on, for the run's identity."""
        return {"name": self.tool.name, **self.limits, **self.facts}

    @property
    def spelling(self) -> str:
        """The option value that sets these limits."""
        return ",".join([self.tool.name, *(f"{name}={value}" for name, value in self.limits.items())])

    @property
    def offered(self) -> OfferedTool:
        """The tool as offered in requests."""
        tool = self.tool
        return OfferedTool(name=tool.name, description=tool.description(self), parameters=dict(tool.parameters))
