"""The tool `python`: one interpreter per sample, in a sandbox, by the package `reasoning-programs`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from harness.core import plugins
from harness.core.errors import UsageError
from harness.tools.tool import CallRunner, Limit, Ran, Tool, ToolSettings


def _description(settings: ToolSettings) -> str:
    packages = ", ".join(settings.facts.get("packages", ()))
    return (
        "Runs Python code and returns what it prints and the value of its last expression. Variables are kept from "
        f"call to call. A call may take {settings.limits['seconds']} seconds; of a longer output the middle is left "
        f"out beyond {settings.limits['characters']:,} characters. There is no network. Besides the standard library: "
        f"{packages}."
    )


def _checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The code of a call."""
    if not isinstance(arguments.get("code"), str):
        raise ValueError("the argument `code` is missing or not a string")
    return {"code": arguments["code"]}


class _Interpreters(CallRunner):
    """The interpreters of the package that runs programs."""

    def __init__(self, settings: ToolSettings) -> None:
        limits = {name: settings.limits[name] for name in PYTHON.limits}
        package = plugins.load("answer", "program")
        if package is None:
            raise UsageError("the package reasoning-programs, which runs programs, is not installed", field="tool")
        with plugins.failures("tool"):
            self._interpreters = package.Interpreters(settings.texts.get("sandbox"), **limits)
        self.least_bytes, self.most_bytes = self._interpreters.least_bytes, self._interpreters.most_bytes

    def facts(self) -> dict[str, Any]:
        """The kind of sandbox, and the versions of its Python and packages. Raises `UsageError`."""
        with plugins.failures("tool"):
            return dict(self._interpreters.facts())

    def run(self, key: Hashable, /, code: str) -> Ran:
        """Run the code in the sample's interpreter."""
        with plugins.failures():
            return Ran(*self._interpreters.run(key, code))

    def lose(self, key: Hashable) -> None:
        """End the sample's interpreter to free its memory; its next call reports this."""
        self._interpreters.lose(key)

    def forget(self, key: Hashable) -> None:
        """End the sample's interpreter; another sample may reuse its sandbox."""
        self._interpreters.forget(key)

    def close(self) -> None:
        """Kill all sandboxes; running calls fail."""
        self._interpreters.close()


_CODE = {"type": "string", "description": "Python code"}

PYTHON = Tool(
    name="python",
    parameters={"type": "object", "properties": {"code": _CODE}, "required": ["code"], "additionalProperties": False},
    description=_description,
    checked=_checked,
    runner=lambda settings: _Interpreters(settings),
    # Limits on a call's CPU time, or sleep; on all calls of a sample together; on a call's output, whose middle is
    # omitted beyond the limit; on an interpreter.
    limits={
        "seconds": Limit(120, 1, 3600),
        "total_seconds": Limit(3600, 1, 604_800),
        "characters": Limit(10_000, 100, 1_000_000),
        "memory_mb": Limit(2048, 256, 65_536),
    },
    texts=("sandbox",),
    main="code",  # gpt-oss sends the code itself instead of a JSON object
)
