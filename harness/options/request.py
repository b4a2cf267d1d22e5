"""Options for the wording of a request: thinking, fields of the body, batches."""

from __future__ import annotations

import json
from typing import Annotated, Any

from harness.core.choices import Thinking
from harness.core.errors import UsageError
from harness.core.options import JSON, SEED, Option, Options
from harness.core.secret import reveal_secrets, seal_secrets
from harness.options.headings import BATCH, REQUEST, SAMPLING
from harness.presets.tool import TOOL


def _body(value: Any) -> Any:
    """The fields with keys sealed. Raises `ValueError` for a value that JSON cannot hold."""
    sealed = seal_secrets(JSON.parse(value))
    try:
        json.dumps(reveal_secrets(sealed), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected values that JSON can hold ({error})") from error
    return sealed


BODY = JSON._replace(parse=_body)
"""Kind of an option that holds fields of a request's body. Values that may be keys are sealed, so they are never shown.
"""


class WhichPreset(Options):
    """Named settings, which explicit options override."""

    preset: Annotated[str | None, Option(under=SAMPLING)] = None
    """Name of a preset: a model's recommended settings (qwq-32b, deepseek-r1 …) or a sampling (r1, greedy …)."""


class HowReasoned(Options):
    """The seed, and how long and whether the model thinks."""

    seed: Annotated[int | None, Option(under=SAMPLING, strict=False, kind=SEED)] = 0
    """Run seed; each sample's seed is made from it. `none` sends no seed."""
    thinking: Annotated[Thinking | None, Option(under=SAMPLING)] = None
    """Switch thinking on or off, or set its effort, in the words of the provider or the model's template. Default: left
    to the server.
    """
    thinking_tokens: Annotated[int | None, Option(under=SAMPLING, metavar="N", least=1)] = None
    """Maximum tokens of thinking, in the provider's or engine's own field (docs/hosted.md)."""


class HowWritten(Options):
    """Fields of a request's body besides the sampling."""

    extra_body: Annotated[dict[str, Any], Option(under=REQUEST, metavar="JSON", kind=BODY)] = {}  # noqa: RUF012 - frozen
    """Fields merged into each request, such as '{"chat_template_kwargs": {"enable_thinking": false}}'."""
    drop: Annotated[tuple[str, ...], Option(under=REQUEST, metavar="FIELD")] = ()
    """Do not send this field (temperature, top_p, stream_options …); may be repeated. `stream`, of a run only, requests
    whole replies, from endpoints that cannot stream.
    """

    def _check(self) -> None:
        """Raise `UsageError` if the arguments of the chat template are no object."""
        super()._check()
        if not isinstance(self.extra_body.get("chat_template_kwargs", {}), dict):
            raise UsageError("chat_template_kwargs: expected a JSON object; or leave it out", field="extra_body")


class ToolOptions(Options):
    """The tool that the model is offered."""

    tool: Annotated[str | None, Option(under=REQUEST, metavar="python[,LIMIT=N...]", kind=TOOL)] = None
    """Offer the model a tool: `python` runs its code in a sandbox (docs/tools.md; limits: steps, seconds, characters,
    memory_mb). `none` offers none where the card or the preset has one.
    """


class BatchOptions(Options):
    """Batches: all samples handed to the provider, or to a file, at once."""

    batch: Annotated[bool, Option(under=BATCH)] = False
    """Ask for all samples by the provider's batches (half the price, answers take hours) and wait. Ctrl-C leaves the
    batches running; the same command continues.
    """
