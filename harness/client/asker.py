"""The one maker of requests: what a run, a judge, a fingerprint and a probe have in common when they ask a model.

    what is known of the server (engine) ─┐
    how a request is spelt (Spelling) ────┼─▶ Asker ──(sampling)──▶ RequestTemplate ──(prompt, seed)──▶ body
    fields that the user keeps out ───────┘

A server fills what a request leaves open with defaults of its own (`facts.defaults`). So whoever asks beside the asker
measures another distribution than the run does: no other module makes a body (`tests/system/test_one_asker.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.client.facts import defaults
from harness.client.interface import Deadlines
from harness.client.protocol.payload import RequestTemplate
from harness.client.spelling import Spelling


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
        return defaults.neutral(self.engine, sampling, {*self.left_out, *self.spelling.extra_body})

    def template(self, sampling: Mapping[str, Any], neutral: Mapping[str, Any] | None = None) -> RequestTemplate:
        """The requests with this sampling. neutral: those that earlier requests held, where new ones are to be equal to
        them; None: the asker's own."""
        fields = {**(self.neutral(sampling) if neutral is None else neutral), **sampling}
        bound = fields.pop("max_tokens", None)
        return RequestTemplate(model=self.model, sampling=fields, max_tokens=bound, spelling=self.spelling)
