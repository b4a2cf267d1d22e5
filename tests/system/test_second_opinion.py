"""`harness score --also`: a second grader beside the rules, in an environment of its own."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.system.command import harness

STAND_IN = """
def parse(text, *args, **kwargs): return [text]
def verify(gold, answer, *args, **kwargs): return True
"""
"""A math-verify that calls everything correct: what is tested is the way there and back."""


@pytest.mark.server
def test_disagreements_with_a_second_grader_are_counted_and_listed(
    tmp_path: Path, embedded_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = embedded_server.base_urls[0]
    assert harness(tmp_path, "run", "demo:2", "--limit", "6", "--base-url", url, "--out", "run").code == 0
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    missing = harness(tmp_path, "score", "run", "--also", "math-verify", "--also-python", bare)
    assert missing.code == 2
    assert "pip install math-verify" in missing.err
    (tmp_path / "other" / "math_verify").mkdir(parents=True)
    (tmp_path / "other" / "math_verify" / "__init__.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"), prepend=os.pathsep)
    done = harness(tmp_path, "score", "run", "--also", "math-verify", "--also-python", sys.executable)
    assert done.code == 0, done.err
    assert "math-verify 100.0 %" in done.out
    assert "the graders disagree on" in done.out
    disputed = harness(tmp_path, "show", "run", "--disputed").out
    assert "math-verify" in harness(tmp_path, "show", "run", disputed.split(" · ")[1]).out
