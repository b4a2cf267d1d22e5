"""The request of a sample, written again from stored facts as a `curl` command. It contains no key."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import quote

from harness.client.spelling import RequestTemplate, Spelling
from harness.core import codec
from harness.core.inert import visible_json
from harness.core.records import Question, Sample
from harness.presets.tool import NAME
from harness.presets.tool import recorded as recorded_tool
from harness.runs.manifest import BenchmarkRecord

KEY_HEADER = "${KEY_HEADER:-Authorization: Bearer $API_KEY}"
"""Variables of the shell in place of the key, or of the header where a provider has another (Azure: `api-key: …`)."""


def template(record: BenchmarkRecord) -> RequestTemplate:
    """Return the common part of all requests of a benchmark, from its manifest.

    Not covered: a limit on new tokens that was lowered for one request to fit the server's context.
    """
    identity = record.identity
    recorded: dict[str, Any] = {**record.settings, **identity}
    sampling = {**(identity.get("neutral") or {}), **(identity.get("sampling") or {})}
    bound = sampling.pop("max_tokens", None)
    spelling = Spelling(
        **{name: recorded[name] for name in Spelling.__dataclass_fields__ if recorded.get(name) is not None}
    )
    tool, form = recorded_tool(identity), spelling.wire.tools
    return RequestTemplate(
        model=str(identity.get("model", "")),
        sampling=sampling,
        max_tokens=identity.get("fitted_max_tokens") or bound,
        spelling=spelling,
        offer=form.offer(NAME, tool.description, tool.parameters) if tool is not None and form is not None else {},
    )


def curl(record: BenchmarkRecord, question: Question, sample: Sample) -> str:
    """Return a shell command, in which texts of any language are readable.

    No character of a question can act on the terminal where it is pasted: all that `visible` escapes is written as
    JSON's escapes.
    """
    spelt = template(record)
    body = visible_json(json.dumps(codec.decode(spelt.body(question, sample.seed)), ensure_ascii=False))
    url = sample.endpoint.rstrip("/") + spelt.spelling.wire.path
    url = quote(url, safe=":/?#[]@!$&'()*+,;=%~", errors="backslashreplace")
    return " \\\n  ".join(
        (
            f"curl {shlex.quote(url)}",
            "-H 'Content-Type: application/json'",
            f'-H "{KEY_HEADER}"',
            *(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in spelt.spelling.api_headers.items()),
            f"--data-raw {shlex.quote(body)}",
        )
    )
