"""What a provider's data makes of the flags: how a request is spelt, what is left out, objections before the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.cli import terminal
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.client.address.providers import Provider, Thinking
    from harness.generation.settings import RunSettings
    from harness.presets.sampling import Sampling


def without(sampling: Sampling, dropped: Sequence[str]) -> Sampling:
    """`sampling` without the fields of `--drop`. Raises `UsageError`."""
    from harness.client.address.providers import DROPPABLE

    for name in dropped:
        if name not in DROPPABLE:
            raise UsageError(
                f"--drop {visible(name, 60)}: expected one of {', '.join(DROPPABLE)}.{near_names(name, DROPPABLE)}"
            )
    return sampling.model_copy(update={name: None for name in dropped if name in type(sampling).model_fields})


def spelt(settings: RunSettings, provider: Provider, flags: dict[str, Any]) -> RunSettings:
    """`settings` with requests spelt as the provider wants them.

    What it is known to refuse raises `UsageError` with the flag to change; what it may refuse or ignores is warned
    of. Nothing is left out but what `--drop` names.
    """
    thinking: Thinking | None = flags["thinking"]
    own = settings.spelling
    shape = provider.spelling(settings.model, api=own.api, thinking=thinking)
    for place, given, theirs in (
        ("--extra-body", own.extra_body, shape.extra_body),
        ("--chat-template-kwargs", own.chat_template_kwargs, shape.chat_template_kwargs),
    ):
        if twice := sorted(given.keys() & theirs.keys()):
            raise UsageError(f"--thinking {thinking} and {place} both set {', '.join(twice)}: give one of them")
    spelling = dataclasses.replace(
        own,
        max_tokens_field=flags["max_tokens_field"] or shape.max_tokens_field,
        seed_field=shape.seed_field,
        stream_usage=shape.stream_usage and "stream_options" not in flags["drop"],
        extra_body={**shape.extra_body, **own.extra_body},
        chat_template_kwargs={**shape.chat_template_kwargs, **own.chat_template_kwargs},
    )
    settings = dataclasses.replace(settings, spelling=spelling)
    said = set()
    for name in settings.benchmarks:
        sent = settings.template(name).names(seed=settings.seed is not None)
        objections = provider.objections(settings.model, sent, thinking)
        if certain := [one.sentence for one in objections if one.certain]:
            raise UsageError("; ".join(certain))
        for one in objections:
            if one.sentence not in said:
                said.add(one.sentence)
                terminal.warn(one.sentence)
    return settings


def with_suggestion(message: str) -> str:
    """`message`, with the flag to change where it is a server's refusal of one field."""
    from harness.client.address.providers import suggestion

    hint = suggestion(message)
    return f"{message} ({hint})" if hint else message
