"""Each scene plays in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pins import golden
from tests.pins.stage import Scene, name_of, play


@pytest.fixture
def hold(tmp_path: Path) -> Callable[[Scene], None]:
    """Plays a scene and compares it with its golden file."""

    def compared(scene: Scene) -> None:
        difference = golden.difference(name_of(scene), play(scene, tmp_path))
        if difference:
            pytest.fail(f"{name_of(scene)} differs from its golden file:\n{difference}", pytrace=False)

    return compared
