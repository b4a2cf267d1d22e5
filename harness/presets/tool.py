"""The tool that a run offers: one Python interpreter a sample, and its limits, which are a part of the run's identity.

python                              the defaults
python,steps=8,seconds=10           other limits
python,sandbox=docker:IMAGE         the interpreter of a container, with the packages of its image
none                                no tool, where a card or a preset has one
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from harness.core.errors import misspelt
from harness.core.options import Kind

NO_TOOL = "none"
"""The value of the option that switches off the tool of a card or a preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTool:
    """The interpreter and its limits.

    steps: most requests of a sample. seconds: CPU time, or sleep, of a call. characters: of a call's output; more is
    left out in its middle. memory_mb: of an interpreter. sandbox: a value of the option `sandbox`; None: bubblewrap.
    """

    steps: int = 100
    seconds: int = 120
    characters: int = 10_000
    memory_mb: int = 2048
    sandbox: str | None = None

    @property
    def limits(self) -> dict[str, int]:
        """The limits, by name."""
        return {name: value for name, value in asdict(self).items() if name != "sandbox"}


_BOUNDS = {"steps": (1, 1000), "seconds": (1, 3600), "characters": (100, 1_000_000), "memory_mb": (256, 65_536)}
"""Limit → its smallest and largest value."""


def tool_of(text: str | None) -> PythonTool | None:
    """The tool that the option names; None for none. Raises `ValueError` that says what was expected."""
    if text is None or text.strip() == NO_TOOL:
        return None
    name, *settings = (part.strip() for part in text.split(","))
    if name != "python":
        raise ValueError("expected python, such as python,steps=8,seconds=10, or none")
    given: dict[str, Any] = {}
    names = [field.name for field in fields(PythonTool) if field.default is not MISSING]
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


def _checked(value: Any) -> Any:
    if isinstance(value, str):
        tool_of(value)
    return value


TOOL = Kind("str", _checked)
"""Kind of the option."""
