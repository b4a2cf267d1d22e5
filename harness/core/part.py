"""The base class of mappings that a person writes in YAML (cards, presets, sweeps)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A mapping of a YAML file: frozen, and an unknown key is refused."""

    # defer_build: pydantic compiles a class's check when it first reads one, so a start pays only for what it reads.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
