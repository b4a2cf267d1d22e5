"""Pins of all numbers that are stated of 64 stored runs: `score`, `compare`, `verify` and `plan`."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from tests.pins.held import hold
from tests.pins.reading import plain
from tests.pins.stage import alone

HERE = Path(__file__).parent / "numbers"
ARCHIVE, NUMBERS = HERE / "runs.tar.xz", HERE / "numbers.jsonl"

JUDGE = "http://127.0.0.1:8000/v1"
"""The judge's address in the stored runs; it is asked nothing, for its replies are stored."""

Numbers = dict[str, Any]

LEFT_OUT = {
    *("schema", "run", "baseline", "sides", "benchmark", "warnings", "graders", "judging", "verifier_errors"),
    *("published", "reason", "started", "ended", "least_s", "most_s"),
}
"""Fields, at any depth, that hold names, versions, times or sentences. All others are pinned."""
ESTIMATES = {"accuracy", "accuracy_finished", "accuracy_overridden", "accuracy_from_reasoning"}
TABLES = {*("pass_at", "pass_hat", "maj_at", "budgets", "breakdowns", "tokens", "endpoints", "measures")}
"""Fields of a score that `numbers_of` shortens."""


def numbers_of(score: Mapping[str, Any]) -> Numbers:
    """The numbers of a benchmark's score, the content of its `scores.json`. This alone knows the form of that file.

    An accuracy stands as [value, both ends for the same questions, both ends for new questions], and "at most" where
    the first interval is the widest possible.
    """
    numbers = flat(score, LEFT_OUT | ESTIMATES | TABLES) | {"n_warnings": len(score["warnings"])}
    for name in sorted(ESTIMATES):
        numbers[name] = estimate(score[name])[: 5 if name == "accuracy" else 6]
    for name, sign in (("pass_at", "pass@"), ("pass_hat", "pass^"), ("maj_at", "maj@")):
        for k in [k for k in score[name] if k in ("2", [*score[name]][-1]) and k != "1"]:
            numbers[f"{sign}{k}"] = estimate(score[name][k])
    for tokens, budget in score["budgets"].items():
        numbers[f"within {tokens}"] = [*estimate(budget["accuracy"])[:5], budget["cut"]]
    for field, groups in score["breakdowns"].items():
        for value, group in groups.items():
            numbers[f"{field} {value}"] = [*estimate(group["accuracy"])[:5], group["n_questions"], group["n_samples"]]
    for name, counts in (score["tokens"] or {}).items():
        numbers[f"tokens {name}"] = counts and [counts["n"], counts["mean"]["value"], counts["p50"], counts["p99"]]
    for url, endpoint in score["endpoints"].items():
        numbers[url] = [*estimate(endpoint["accuracy"]), endpoint["truncated"]]
    for name, measure in score["measures"].items():
        numbers[name] = estimate(measure)
    return {name: value for name, value in numbers.items() if value not in (None, [None])}


def estimate(stored: Mapping[str, Any] | None) -> list[Any]:
    """[value, low, high, low, high] of an estimate; [None] without one."""
    if stored is None:
        return [None]
    ends = [end for name in ("sampling", "question") for end in stored[name] or (None, None)]
    return [stored["value"], *ends, *(["at most"] if stored["at_most"] else [])]


def flat(record: Any, left_out: Collection[str] = LEFT_OUT) -> Numbers:
    """Name → value of each field that is not empty; `paired.p` is a field of a field."""
    numbers = {}
    for name, value in plain(record).items():
        if name in left_out or value is None or value in ({}, [], ()):
            continue
        inner = flat(value, left_out) if isinstance(value, dict) else {"": value}
        numbers |= {f"{name}.{below}".rstrip("."): one for below, one in inner.items()}
    return numbers


def scored(run: Path, **options: Any) -> Numbers:
    """Benchmark → the numbers of its score."""
    source = run if run.is_dir() else run.with_name(f"{run.name}.scored")
    if not run.is_dir():
        options = {"response_key": "gen", "answer_key": "answer", "question_key": "question"}
    harness.score(run, workers=1, **options)
    return {
        path.parent.name: numbers_of(json.loads(path.read_text("utf-8")))
        for path in sorted(source.glob("*/scores.json"))
    }


def compared(*runs: Path, **options: Any) -> list[Numbers]:
    """The numbers of each comparison with the first run."""
    return [
        {"of": f"{pair.decision.run} {pair.decision.paired.benchmark}"}
        | flat(pair.decision)
        | {"n_settings": len(pair.settings), "n_warnings": len(pair.decision.warnings)}
        for pair in harness.compare(runs, **options)
    ]


def verified(run: Path) -> list[Numbers]:
    """The numbers of a run beside the published scores of its model."""
    return [
        {
            "of": one.benchmark,
            "verdict": one.standing,
            "scores": [{"published": score.published.value} | flat(score) for score in one.comparisons],
        }
        for one in harness.verify(run, published=run.with_name(f"{run.name}.yaml"))
    ]


def planned(run: Path, detect: float | None = 5, **options: Any) -> list[Numbers]:
    """What a comparison with a run needs."""
    return [flat(needed) for needed in harness.plan(run, detect, **options)]


def opened(folder: Path) -> None:
    """Unpack the runs into a folder; the published scores of a run's model stand beside the run."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extraction_filter = lambda member, _: member  # the archive is ours; `filter=` is younger than 3.11.2
        packed.extractall(folder)
    published = yaml.load((folder / "published.yaml").read_text("utf-8"), yaml.CSafeLoader)  # noqa: TID251 - the safe loader in C
    for run in folder.glob("??w"):
        scores = [score for score in published["scores"] if score["model"] == run.name]
        (folder / f"{run.name}.yaml").write_text(yaml.safe_dump(published | {"scores": scores}), "utf-8")


def lines(folder: Path) -> Iterator[tuple[str, Any]]:
    """(what was asked, numbers), as JSON, of all the runs in a folder: scores first, for the others read them."""
    runs = sorted(path for path in folder.iterdir() if path.suffix in ("", ".jsonl"))
    for run in runs:
        yield f"score {run.name}", answer(scored, run)
        if (run / "judge").is_dir():
            yield (
                f"judge {run.name}",
                answer(scored, run, judge=harness.Judge(model="judge", base_url=[JUDGE], scope="undecided")),
            )
    for family in sorted({run.name[:2] for run in runs if run.is_dir()}):
        w, x, y, z = (folder / f"{family}{model}" for model in "wxyz")
        yield f"verify {w.name}", answer(verified, w)
        match int(family) % 3:
            case 0:
                yield f"compare {family} w x by 3", answer(compared, w, x, margin=3)
                yield f"plan {w.name}", answer(planned, w)
            case 1:
                yield f"compare {family} w y z", answer(compared, w, y, z)
                yield f"plan {x.name}", answer(planned, x)
            case _:
                yield f"compare {family} y z", answer(compared, y, z)
                yield f"plan {y.name} not worse by 3", answer(planned, y, None, margin=3)


def answer(ask: Callable[..., Any], *runs: Path, **options: Any) -> Any:
    """The numbers, or the class of a refusal."""
    try:
        return json.loads(json.dumps(ask(*runs, **options)))
    except harness.HarnessError as error:
        return f"refused: {type(error).__name__}"


@pytest.mark.slow
def test_every_number_of_the_stored_runs_is_as_pinned(tmp_path: Path) -> None:
    with alone(tmp_path):
        opened(tmp_path)
        hold(NUMBERS, dict(lines(tmp_path)))
