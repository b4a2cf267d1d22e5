"""The base of what a person writes in YAML: frozen, and an unknown key is refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A mapping of a file. Its check is built with the first value, so that a start pays for what it reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
