"""What a session starts from: the samples to ask for, in which order, beside those on disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.runs.record import Owed

Order = Literal["longest", "rounds"]
"""The order in which samples are asked; `harness.generation.dispatch.schedule` explains the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The state from which one session starts.

    owed: the samples to ask for. done, total: samples by benchmark, on disk before the session and expected in the end.
    prompt_bytes: (benchmark, question_id) of each question with owed samples → bytes of its prompt in a request; empty
    if no prices are given. server_model: the model's name in the first reply of the run, in any session; None before
    that.
    """

    owed: Sequence[Owed]
    done: Mapping[str, int]
    total: Mapping[str, int]
    prompt_bytes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    server_model: str | None = None
