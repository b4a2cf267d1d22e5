"""Fixtures that several tests of scoring use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of the file `own_verifier.py`, which is not written yet; commands may import and trust the module."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("HARNESS_GRADERS", "own_verifier")
    return folder / "own_verifier.py"
