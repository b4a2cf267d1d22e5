"""`harness compare`, `verify` and `plan`, and their functions: decisions and numbers."""

from __future__ import annotations

from tests.pins import reading, stored
from tests.pins.stage import Scene, Stage

PUBLISHED = """
schema: 1
source: {title: A wiki, url: "https://example.org", by: others}
settings: {temperature: 0.6, max_tokens: 64}
questions: {sums: 6}
scores:
  - {model: pinned, benchmark: sums, metric: pass@1, percent: 30, samples: 64}
  - {model: org/other, benchmark: sums, metric: pass@1, percent: 95, samples: 64}
"""


def compare(stage: Stage) -> None:
    """Which is better, how sure that is, and the exit codes of a gate."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    stage.both("compare", ["first", "second"], read=reading.decisions)
    stage.both("compare", ["first", "second"], baseline="second", read=reading.decisions)
    stage.command("compare", "first", "second", "--margin", "1", "--baseline", "second")
    stage.command("compare", "first", "second", "--margin", "1")
    stage.command("compare", "first")
    stage.command("compare", "first", "nowhere")


def diff(stage: Stage) -> None:
    """Questions that moved."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    stage.command("compare", "first", "second", "--samples", read=reading.shown)
    stage.command("compare", "first", "--samples")


def verify(stage: Stage) -> None:
    """A run agrees with one published score and not with the other; of a third model nothing is published."""
    stored.copy("first", stage.folder, scored=True)
    (stage.folder / "published.yaml").write_text(PUBLISHED, "utf-8")
    stage.both("verify", "first", read=reading.checks)
    stage.both("verify", "first", published="published.yaml", read=reading.checks)
    stage.both("verify", "first", published="published.yaml", model="org/other", read=reading.checks)


def plan(stage: Stage) -> None:
    """Samples, tokens and money that a difference takes. Differences are points in both doors."""
    stored.copy("first", stage.folder, scored=True)
    for detect, words, keywords in ((20, [], {}), (5, ["--prices", "1,10"], {"prices": (1.0, 10.0)}), (0, [], {})):
        stage.command("plan", "first", "--detect", str(detect), *words, "--json", read=reading.needed)
        stage.python("plan", "first", detect, read=reading.needed, **keywords)
    stage.command("plan", "math5000", "--detect", "5")


SCENES: tuple[Scene, ...] = (compare, diff, verify, plan)
