"""The one place that decides what a request contains, whether it is for a run, a judge or a probe.

    the server's engine ──────────────────┐
    how a request is written (Spelling) ──┼─▶ Asker ──(sampling)──▶ RequestTemplate ──(prompt, seed)──▶ body
    fields that the user keeps out ───────┘

A server fills in sampling fields that a request leaves out: vLLM and SGLang from the model's `generation_config.json`
(unless they were started otherwise), llama.cpp from its own defaults. A field in the request overrides them on all
three, so the asker sends a neutral value for each (`neutral_fields`, from the engine's profile), such as `top_k: -1`. A
request made elsewhere would omit these values and sample from another distribution, so no other module makes a body
(`tests/system/test_one_asker.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.client.interface import Deadlines
from harness.client.request_fields import RequestTemplate, Spelling
from harness.presets.sampling import SERVER_FILLED
from server_launchers.engines import table as engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """What all requests to one model share, whichever command sends them.

    engine: the engine that all servers report; None if they report none or different ones. spelling: how a request is
    written. left_out: fields that the user keeps out of requests; no neutral value is sent for them. deadlines: how
    long a reply may take.
    """

    model: str
    engine: str | None = None
    spelling: Spelling = field(default_factory=Spelling)
    left_out: frozenset[str] = frozenset()
    deadlines: Deadlines = field(default_factory=Deadlines)

    def neutral_fields(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The neutral value of each sampling field that a request would otherwise leave to the server; it overrides the
        server's own default.

        Empty if the engine is unknown or has no neutral values. sampling: the sampling fields of the request, by our
        names. If an engine has another name for such a field (`repeat_penalty`), it is also returned under that name,
        with the value in `sampling`. Fields that the user sets or keeps out are not returned.
        """
        profile, excluded = engines.profile(self.engine), {*self.left_out, *self.spelling.extra_body}
        our_names = {theirs: ours for ours, theirs in profile.names.items()}
        fields = {}
        for name, value in (profile.neutral.values if profile.neutral is not None else {}).items():
            ours = our_names.get(name, name)
            if not (name in excluded or ours in excluded or name in sampling):
                fields[name] = sampling.get(ours, value)
        return fields

    def template(self, sampling: Mapping[str, Any], neutral: Mapping[str, Any] | None = None) -> RequestTemplate:
        """The template for all requests with this sampling.

        neutral: the values that override the server's defaults where the user set nothing (`top_k: -1`), as in the
        run's earlier requests; None: the values for this server (`neutral_fields`).
        """
        # The sampling comes last: what the user sets overrides a neutral value.
        fields = {**(self.neutral_fields(sampling) if neutral is None else neutral), **sampling}
        bound = fields.pop("max_tokens", None)
        return RequestTemplate(model=self.model, sampling=fields, max_tokens=bound, spelling=self.spelling)


def unset_fields(sent: Collection[str]) -> list[str]:
    """The sampling fields that a request with the fields `sent` leaves to the server's own defaults."""
    set_by_us = {engines.common_field_names().get(name, name) for name in sent}
    return [name for name in SERVER_FILLED if name not in set_by_us]
