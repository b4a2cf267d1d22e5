"""What a server puts into a request that leaves it open, and the values that switch it off, as its engine's dialect has
them.

vLLM and SGLang take what a model's `generation_config.json` says, unless they were started otherwise; llama.cpp has
defaults of its own. A value sent with the request beats them on all three.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from harness.presets.sampling import sampling_fields
from server_launchers.engines import table as engines

FILLED = tuple(name for name, field in sampling_fields().items() if field.filled)
"""Fields of a request that servers are known to fill where they are left out."""


def neutral(engine: str | None, sent: Mapping[str, Any], given: Collection[str] = ()) -> dict[str, Any]:
    """The fields to be sent so that no server fills them. {} where the engine is none of the known ones.

    sent: what the request sets, by our names; what an engine knows by another name is sent under that one too. given:
    further fields that it sets, or that the user wants to be left out.
    """
    dialect = engines.dialect(engine)
    if dialect.neutral is None:
        return {}
    our_names = {theirs: ours for ours, theirs in dialect.names.items()}
    fields = {}
    for name, value in dialect.neutral.values.items():
        ours = our_names.get(name, name)
        if name in given or ours in given or name in sent:
            continue
        fields[name] = sent.get(ours, value)
    return fields


def left_open(sent: Collection[str]) -> list[str]:
    """The fields that the server fills as it likes, in a request that holds these."""
    our_names = {theirs: ours for dialect in engines.dialects() for ours, theirs in dialect.names.items()}
    set_by_us = {our_names.get(name, name) for name in sent}
    return [name for name in FILLED if name not in set_by_us]
