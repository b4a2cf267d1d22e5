"""Options for the wording of a request: thinking, fields of the body, batches."""

from __future__ import annotations

from typing import Annotated, Any

from harness.asking.options.headings import BATCH, REQUEST, SAMPLING
from harness.core.choices import Thinking
from harness.core.options import JSON, SEED, Option, Options
from harness.core.secret import seal_secrets

BODY = JSON._replace(parse=lambda value: seal_secrets(JSON.parse(value)))
"""Kind of an option that holds fields of a request's body. Values that may be keys are sealed, so they are never shown.
"""


class WhichPreset(Options):
    """Named settings, which explicit options override."""

    preset: Annotated[
        str | None,
        Option(
            "Name of a preset: a model's recommended settings (qwq-32b, deepseek-r1 …) or a sampling (r1, greedy …).",
            under=SAMPLING,
        ),
    ] = None


class HowReasoned(Options):
    """The seed, and how long and whether the model thinks."""

    seed: Annotated[
        int | None,
        Option(
            "Run seed; each sample's seed is made from it. `none` sends no seed.",
            under=SAMPLING,
            strict=False,
            kind=SEED,
        ),
    ] = 0
    thinking: Annotated[
        Thinking | None,
        Option(
            "Switch thinking on or off, or set its effort, in the words of the provider or the model's template. "
            "Default: left to the server.",
            under=SAMPLING,
        ),
    ] = None
    thinking_tokens: Annotated[
        int | None,
        Option(
            "Maximum tokens of thinking, in the provider's or engine's own field (docs/hosted.md).",
            under=SAMPLING,
            metavar="N",
            least=1,
        ),
    ] = None


class HowWritten(Options):
    """Fields of a request's body besides the sampling."""

    extra_body: Annotated[
        dict[str, Any], Option("Fields merged into each request.", under=REQUEST, metavar="JSON", kind=BODY)
    ] = {}  # noqa: RUF012 - the class is frozen
    chat_template_kwargs: Annotated[
        dict[str, Any],
        Option(
            "Arguments of the chat template, such as '{\"enable_thinking\": false}'.",
            under=REQUEST,
            metavar="JSON",
            kind=BODY,
        ),
    ] = {}  # noqa: RUF012 - the class is frozen
    drop: Annotated[
        tuple[str, ...],
        Option(
            "Do not send this field (temperature, top_p, stream_options …); may be repeated.",
            under=REQUEST,
            metavar="FIELD",
        ),
    ] = ()
    stream: Annotated[bool, Option("Request whole replies, from endpoints that cannot stream.", under=REQUEST)] = True


class BatchOptions(Options):
    """Batches: all samples handed to the provider, or to a file, at once."""

    batch: Annotated[
        bool,
        Option(
            "Ask for all samples by the provider's batches (half the price, answers take hours) and wait. Ctrl-C "
            "leaves the batches running; the same command continues.",
            under=BATCH,
        ),
    ] = False
