"""An entry of a sweep's axis, such as a model or a server, and the names that entries give to folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a training run. name: its part of its cells' folder names. series: names one curve of scores over
    steps.
    """

    path: Path
    name: str
    series: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One value of an axis, such as a model or a server.

    name: in names of folders. label: in tables. where: "file:line" in the sweep's file. options: options of a run that
    the entry sets. server: fields of the server's spec that it sets. engine: of the server to start; None on other
    axes, and if no server is started. checkpoint: of a model that is a checkpoint of a training run; else None.
    """

    name: str
    label: str
    where: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    checkpoint: Checkpoint | None = None


def slug(name: str) -> str:
    """A name as a part of a folder's name: `Qwen/Qwen3-8B` becomes qwen3-8b."""
    return re.sub(r"[^a-z0-9._-]+", "-", short_name(str(name)).casefold()).strip("-._")[:80] or "x"


def short_name(model: str) -> str:
    """The last part of a model's path or repository name."""
    return model.rstrip("/").rsplit("/", 1)[-1] if "/" in model else model
