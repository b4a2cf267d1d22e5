"""The tools by name, the option that selects one, and what is recorded about them.

python                              the defaults
python,steps=8,seconds=10           other limits
python,sandbox=docker:IMAGE         the interpreter of a container, with the packages of its image
none                                no tool, where a card or a preset has one
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core import codec
from harness.core.errors import misspelled
from harness.core.options import Kind
from harness.core.records import SentCall, ToolCall
from harness.tools.python import PYTHON
from harness.tools.tool import LIMITS, Tool, ToolSettings

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (PYTHON,)}
"""Every tool that the option accepts, by name."""

NO_TOOL = "none"
"""The option value that switches off the tool of a card or preset."""


def tool_of(text: str | None) -> ToolSettings | None:
    """The tool that the option names; None for none. Raises a `ValueError` that describes the expected form."""
    if text is None or text.strip() == NO_TOOL:
        return None
    name, *settings = (part.strip() for part in text.split(","))
    if name not in TOOLS:
        raise ValueError(f"expected {' or '.join(TOOLS)}, such as python,steps=8,seconds=10, or none")
    given: dict[str, Any] = {}
    limits, texts = {**LIMITS, **TOOLS[name].limits}, TOOLS[name].texts
    known = [*limits, *texts]
    for setting in settings:
        key, _, value = setting.partition("=")
        if key in texts:
            given[key] = value
            continue
        if key not in limits:
            raise ValueError(f"unknown setting {key!r}; {name} takes {', '.join(known)}.{misspelled(key, known)}")
        _, least, most = limits[key]
        if not (value.isascii() and value.isdigit() and least <= int(value) <= most):
            raise ValueError(f"{key} must be a whole number from {least:,} to {most:,}")
        given[key] = int(value)
    return TOOLS[name].settings(**given)


def _checked(value: Any) -> Any:
    if isinstance(value, str):
        tool_of(value)
    return value


TOOL = Kind("str", _checked)
"""The option's kind."""


def identity_of(tools: Sequence[ToolSettings]) -> dict[str, Any]:
    """The part of a run's identity that records its tools: one tool, a list of several, or nothing."""
    stated = [each.identity for each in tools]
    return {"tool": stated[0] if len(stated) == 1 else stated} if stated else {}


def names_in(identity: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the tools in a run's identity."""
    return tuple(str(each.get("name")) for each in _stated(identity))


def recorded(identity: Mapping[str, Any]) -> tuple[ToolSettings, ...]:
    """The tools in a run's identity, without any that this version does not have."""
    tools = ((TOOLS[name], each) for each in _stated(identity) if (name := str(each.get("name"))) in TOOLS)
    return tuple(tool.recorded(each) for tool, each in tools)


def _stated(identity: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    stated = identity.get("tool")
    return [each for each in (stated if isinstance(stated, list) else [stated]) if isinstance(each, Mapping)]


def arguments_of(call: ToolCall | SentCall) -> dict[str, Any]:
    """The arguments of a call by name; empty if the tool cannot parse them."""
    with contextlib.suppress(ValueError):
        if call.name in TOOLS:
            return TOOLS[call.name].read(call.arguments)
        value = codec.decode_loosely(call.arguments.encode("utf-8", "surrogatepass"))
        return value if isinstance(value, dict) else {}
    return {}


def shown(call: ToolCall) -> str:
    """A call in human-readable form: the argument that represents the whole call, or the arguments as received."""
    tool = TOOLS.get(call.name)
    return str(arguments_of(call).get(tool.shown, call.arguments)) if tool and tool.shown else call.arguments
