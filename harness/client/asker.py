"""The one maker of requests: what a run, a judge, a fingerprint and a probe have in common when they ask a model.

    what is known of the server (engine) ─┐
    how a request is spelt (Spelling) ────┼─▶ Asker ──(sampling)──▶ RequestTemplate ──(prompt, seed)──▶ body
    fields that the user keeps out ───────┘

A server fills what a request leaves open: vLLM and SGLang take what a model's `generation_config.json` says, unless
they were started otherwise; llama.cpp has defaults of its own. A value sent with the request beats them on all three
(`neutral`, from the engine's dialect). So whoever asks beside the asker measures another distribution than the run
does: no other module makes a body (`tests/system/test_one_asker.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.client.interface import Deadlines
from harness.client.spelling import RequestTemplate, Spelling
from harness.presets.sampling import sampling_fields
from server_launchers.engines import table as engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What all requests for one model have in common, whoever sends them.

    engine: that of all servers, as they state it; None where they do not, or differ. spelling: how a request is
    written. left_out: fields that the user keeps out, so that no neutral value is sent for them. deadlines: of a reply.
    """

    model: str
    engine: str | None = None
    spelling: Spelling = field(default_factory=Spelling)
    left_out: frozenset[str] = frozenset()
    deadlines: Deadlines = field(default_factory=Deadlines)

    def neutral(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The fields to be sent beside `sampling` so that the server's own defaults do not come in."""
        return neutral(self.engine, sampling, {*self.left_out, *self.spelling.extra_body})

    def template(self, sampling: Mapping[str, Any], neutral: Mapping[str, Any] | None = None) -> RequestTemplate:
        """The requests with this sampling. neutral: those that earlier requests held, where new ones are to be equal to
        them; None: the asker's own."""
        fields = {**(self.neutral(sampling) if neutral is None else neutral), **sampling}
        bound = fields.pop("max_tokens", None)
        return RequestTemplate(model=self.model, sampling=fields, max_tokens=bound, spelling=self.spelling)


# ---- what a server would fill in


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
