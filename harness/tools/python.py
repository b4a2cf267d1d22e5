"""The tool `python`: one interpreter per sample, in the sandbox for programs (`harness.extensions.answers.program`)."""

from __future__ import annotations

from typing import Any

from harness.core import plugins
from harness.tools.tool import Limit, Tool, ToolSettings


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


_CODE = {"type": "string", "description": "Python code"}

PYTHON = Tool(
    name="python",
    parameters={"type": "object", "properties": {"code": _CODE}, "required": ["code"], "additionalProperties": False},
    description=_description,
    checked=_checked,
    runner=lambda settings: plugins.extension("answer", "program").Interpreters(settings),
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
