"""The Python front door does what the command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import harness
from server_launchers.keeping.supervisor import RunningServer


@pytest.mark.server
def test_a_benchmark_is_run_scored_and_reported_from_python(tmp_path: Path, embedded_server: RunningServer) -> None:
    card = harness.load_benchmark("demo")
    questions = harness.build_questions(card, limit=4)
    settings = harness.RunSettings(
        model=embedded_server.model,
        endpoints=(harness.Endpoint.parse(embedded_server.base_urls[0]),),
        benchmarks={card.name: harness.BenchmarkSettings(samples=2, sampling=card.sampling)},
        out=tmp_path / "run",
        concurrency=4,
    )
    assert harness.generate(settings, [questions]).complete
    (score,) = harness.score_run(harness.RunFolder.open(tmp_path / "run"), harness.Grading())
    assert (score.n_questions, score.n_samples) == (4, 8)
    assert card.name in harness.report([harness.RunFolder.open(tmp_path / "run")]).markdown()


def test_every_name_of_the_front_door_is_there() -> None:
    for name in harness.__all__:
        assert getattr(harness, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'evaluate'"):
        harness.evaluate  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ["openai", "sympy", "pydantic", "aiohttp", "numpy"]
    code = f"import sys, harness; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
