"""The tools by name, the option that selects one, and what is recorded about them.

python                              the defaults
python,steps=8,seconds=10           other limits
python,sandbox=docker:IMAGE         the interpreter of a container, with the packages of its image
none                                no tool, where a card or a preset has one
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from harness.core import codec
from harness.core.errors import misspelled
from harness.core.option_kinds import Kind
from harness.core.records import ToolCall
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
        raise ValueError(f"expected {' or '.join(TOOLS)}, such as {next(iter(TOOLS))},steps=8, or none")
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


def name_in(identity: Mapping[str, Any]) -> str:
    """The name of the tool in a run's identity; empty without one."""
    return str(_stated_identity(identity).get("name", ""))


def recorded(identity: Mapping[str, Any]) -> ToolSettings | None:
    """The tool in a run's identity; None without one, or if this version does not have it."""
    tool = TOOLS.get(name_in(identity))
    return None if tool is None else tool.recorded(_stated_identity(identity))


def _stated_identity(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    stated = identity.get("tool")
    return stated if isinstance(stated, Mapping) else {}


def arguments_of(name: str, arguments: str) -> dict[str, Any]:
    """A call's arguments as a JSON object, as they are sent back and exported: for any other text, an object that
    contains it. name: the tool's.
    """
    with contextlib.suppress(ValueError):
        value = codec.decode_loosely(arguments.encode("utf-8", "surrogatepass"))
        if isinstance(value, dict):
            return value
    main = TOOLS[name].main if name in TOOLS else ""
    return {main or "arguments": arguments} if arguments.strip() else {}


def shown(call: ToolCall) -> str:
    """A call in human-readable form: the argument that stands for the whole call, or the arguments as received."""
    main = TOOLS[call.name].main if call.name in TOOLS else ""
    return str(arguments_of(call.name, call.arguments).get(main, call.arguments))
