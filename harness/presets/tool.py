"""The tool that a run offers: one Python interpreter a sample, and its limits, which are a part of the run's identity.

python                              the defaults
python,steps=8,seconds=10           other limits
python,sandbox=docker:IMAGE         the interpreter of a container, with the packages of its image
none                                no tool, where a card or a preset has one
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.core import codec
from harness.core.errors import misspelt
from harness.core.options import Kind
from harness.core.records import CallEnd, OfferedTool

NAME = "python"
"""The tool's name, as models call it."""

SANDBOX_BYTES = 128 << 20
"""Memory that a sandbox takes at most beyond what its interpreter allocates: 60 MB for its processes, 64 MB of /tmp."""

NO_TOOL = "none"
"""The value of the option that switches off the tool of a card or a preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTool:
    """The interpreter and its limits.

    steps: most requests of a sample. calls: most of a reply that run. seconds: CPU time, or sleep, of a call.
    total_seconds: CPU time and sleep of all calls of a sample together. characters: of a call's output; more is left
    out in its middle. memory_mb: of an interpreter. sandbox: a value of the option `sandbox`; None: bubblewrap.
    facts: the kind of the sandbox and the versions of its Python and packages, once they are known.
    """

    steps: int = 100
    calls: int = 100
    seconds: int = 120
    total_seconds: int = 3600
    characters: int = 10_000
    memory_mb: int = 2048
    sandbox: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def limits(self) -> dict[str, int]:
        """The limits, by name."""
        return {name: getattr(self, name) for name in _BOUNDS}

    @property
    def identity(self) -> dict[str, Any]:
        """All that makes its outputs comparable, for the run's identity."""
        return {"name": NAME, **self.limits, **self.facts}

    @property
    def description(self) -> str:
        """What the model is told of it."""
        packages = ", ".join(self.facts.get("packages", ()))
        return (
            "Runs Python code and returns what it prints and the value of its last expression. Variables are kept from "
            f"call to call. A call may take {self.seconds} seconds; of a longer output the middle is left out beyond "
            f"{self.characters:,} characters. There is no network. Besides the standard library: {packages}."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        code = {"type": "string", "description": "Python code"}
        return {"type": "object", "properties": {"code": code}, "required": ["code"], "additionalProperties": False}


def offered(tool: PythonTool) -> OfferedTool:
    """The tool as requests offer it."""
    return OfferedTool(name=NAME, description=tool.description, parameters=tool.parameters)


_BOUNDS = {
    "steps": (1, 1000), "calls": (1, 1000), "seconds": (1, 3600), "total_seconds": (1, 604_800),
    "characters": (100, 1_000_000), "memory_mb": (256, 65_536),
}  # fmt: skip
"""Limit → its smallest and largest value."""


class Ran(NamedTuple):
    """A call that has run. output: what the model is told. seconds: of CPU. memory: bytes that the interpreter holds
    until the next call.
    """

    output: str
    end: CallEnd
    seconds: float
    memory: int


def tool_of(text: str | None) -> PythonTool | None:
    """The tool that the option names; None for none. Raises `ValueError` that says what was expected."""
    if text is None or text.strip() == NO_TOOL:
        return None
    name, *settings = (part.strip() for part in text.split(","))
    if name != NAME:
        raise ValueError("expected python, such as python,steps=8,seconds=10, or none")
    given: dict[str, Any] = {}
    names = [*_BOUNDS, "sandbox"]
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in names:
            raise ValueError(f"expected {', '.join(names)} behind python.{misspelt(key, names)}")
        if key == "sandbox":
            given[key] = value
            continue
        least, most = _BOUNDS[key]
        if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
            raise ValueError(f"expected a whole number from {least:,} to {most:,} as {key}")
        given[key] = int(value)
    return PythonTool(**given)


def recorded(identity: Mapping[str, Any]) -> PythonTool | None:
    """The tool of a run's identity; None without one."""
    stated = identity.get("tool")
    if not isinstance(stated, Mapping):
        return None
    limits = {name: stated[name] for name in _BOUNDS if name in stated}
    return PythonTool(**limits, facts={name: value for name, value in stated.items() if name not in (*limits, "name")})


def code_of(arguments: str) -> str:
    """The code of a call. What does not begin like an object is code, as gpt-oss sends it. Raises `ValueError`."""
    if not arguments.lstrip().startswith("{"):
        if arguments.strip():
            return arguments
        raise ValueError("they are empty")
    value = codec.decode_loosely(arguments.encode("utf-8", "surrogatepass"))
    code = value.get("code") if isinstance(value, dict) else None
    if not isinstance(code, str):
        raise ValueError("`code` is missing or no string")
    return code


def _checked(value: Any) -> Any:
    if isinstance(value, str):
        tool_of(value)
    return value


TOOL = Kind("str", _checked)
"""Kind of the option."""
