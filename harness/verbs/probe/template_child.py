"""Renders a chat template as a child process: JSON in, JSON out. Imports nothing of the harness.

Only the model's template runs, in Jinja's sandbox, within bounds on time, memory and output. In: {"template",
"conversations": [messages], "names": {"bos_token": …}}; out: a list of {"text"} or {"error"}.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from typing import Any, NoReturn

CPU_S = 5
"""Processor seconds that this process may use."""

MEMORY_BYTES = 1 << 30
"""Address space that this process may use, in bytes."""

MAX_CHARS = 200_000
"""Longest prompt that a template may write, in characters."""


def main() -> None:
    """Read a template and conversations as JSON from standard input; write the prompt or the error of each."""
    request = json.load(sys.stdin)
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # The bounds are set after the imports, which would use up part of them.
    for kind, bound in ((resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY_BYTES)):
        with contextlib.suppress(ValueError, OSError):  # macOS cannot bound the address space.
            resource.setrlimit(kind, (bound, bound))

    def refuse(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, indent: int | None = None, **_: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    # The same environment as in transformers (utils/chat_template_utils.py, `_compile_jinja_template`).
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = time.strftime
    results = []
    for messages in request["conversations"]:
        try:
            # `generate` gives pieces: a template that loops would fill the memory before `render` returned.
            text = "".join(_bounded(environment.from_string(request["template"]).generate(
                messages=messages, add_generation_prompt=True, tools=None, documents=None, **request["names"]
            )))  # fmt: skip
            results.append({"text": text})
        except Exception as error:  # noqa: BLE001  whatever a template does wrong is told
            results.append({"error": f"{type(error).__name__}: {error}"[:300]})
    json.dump(results, sys.stdout)


def _bounded(pieces: Any) -> Any:
    """Yield the pieces of text. Raises `ValueError` once they have more than `MAX_CHARS` characters together."""
    n = 0
    for piece in pieces:
        n += len(piece)
        if n > MAX_CHARS:
            raise ValueError(f"the template writes more than {MAX_CHARS:,} characters")
        yield piece


if __name__ == "__main__":
    main()
