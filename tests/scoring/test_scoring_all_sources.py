"""A run beside all sources: how often a run that measures the same is called unlike them, and one that does not is not.

`python -m tests.scoring.test_scoring_all_sources` prints the table of docs/published.md.

For: harness.scoring.published.all_sources.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections import defaultdict

import pytest

from harness.scoring import load_published
from harness.scoring.published.all_sources import PRIOR_SPREAD, beside_all, prediction_interval
from harness.scoring.published.model_name import NameParts
from harness.scoring.published.value import PublishedScore, Source
from tests.budget import thinned
from tests.conftest import CHECKOUT

REPEATS = 3000


def source_value(chance: random.Random, ability: float, spread: float) -> float:
    """The accuracy that one source reports of a model of this ability."""
    scaled = math.asin(math.sqrt(ability)) + chance.gauss(0, spread)
    return math.sin(min(max(scaled, 0.0), math.pi / 2)) ** 2


def share_called_unlike(n_sources: int, spread: float, shift: float = 0.0) -> float:
    """How often one more source, whose model is better by `shift` on the scale arcsin √accuracy, is outside."""
    chance, outside = random.Random(n_sources), 0
    for _ in range(REPEATS):
        ability = chance.uniform(0.2, 0.9)
        low, high = prediction_interval([source_value(chance, ability, spread) for _ in range(n_sources)])
        theirs = math.sin(math.asin(math.sqrt(ability)) + shift) ** 2
        outside += not low <= source_value(chance, theirs, spread) <= high
    return outside / REPEATS


@pytest.mark.parametrize("n_sources", thinned([3, 1, 2, 5, 10, 30]))
def test_a_source_like_the_others_is_called_unlike_them_in_five_of_a_hundred_at_most(n_sources: int) -> None:
    for spread in (0.5 * PRIOR_SPREAD, PRIOR_SPREAD):
        assert share_called_unlike(n_sources, spread) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.parametrize("n_sources", [10, 30])
def test_sources_that_lie_further_apart_than_expected_widen_the_interval(n_sources: int) -> None:
    assert share_called_unlike(n_sources, 1.5 * PRIOR_SPREAD) <= 0.08
    wide = prediction_interval([0.4, 0.5, 0.6, 0.4, 0.5, 0.6])
    narrow = prediction_interval([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_another_model_is_found() -> None:
    assert share_called_unlike(10, PRIOR_SPREAD, shift=0.16) > 0.8  # 16 points at 50 %


def shipped_outside() -> dict[int, tuple[int, int]]:
    """Number of other sources → (sources outside the interval of the others, all), of the shipped scores."""
    groups: dict[tuple[NameParts, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in load_published():
        if score.metric == "pass@1" and not score.quoted and "attention_budget" not in score.settings:
            groups[NameParts.read(score.model.rpartition("/")[2]), score.benchmark][score.source.title].append(
                score.value
            )
    counts: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for sources in groups.values():
        means = [statistics.fmean(values) for values in sources.values()]
        for number, mean in enumerate(means):
            others = means[:number] + means[number + 1 :]
            if others:
                low, high = prediction_interval(others)
                outside, tried = counts[len(others)]
                counts[len(others)] = outside + (not low <= mean <= high), tried + 1
    return counts


def test_no_shipped_source_is_unlike_the_others_more_often_than_stated() -> None:
    """Each source of a model and benchmark with several, beside the others: real spreads of real sources."""
    counts = shipped_outside().values()
    outside, tried = (sum(numbers) for numbers in zip(*counts, strict=True))
    assert tried > 300
    assert outside / tried <= 0.05


def test_the_page_states_these_counts() -> None:
    text = (CHECKOUT / "docs" / "published.md").read_text("utf-8")
    counts = shipped_outside()
    for n in (1, 2, 3):
        assert f"| {n} |" in text
        assert "{} of {} |".format(*counts[n]) in text
    many = [sum(numbers) for numbers in zip(*(counts[n] for n in counts if n > 3), strict=True)]
    assert "{} of {} (4 or more) |".format(*many) in text


def published(value: float, title: str, **more: object) -> PublishedScore:
    fields = {"settings": {}, "samples": None, "n_questions": 30, "run_deviation": None} | more
    return PublishedScore(
        model="m",
        benchmark="demo",
        metric=str(fields.pop("metric", "pass@1")),
        value=value,
        source=Source(title=title, url=""),
        **fields,  # type: ignore[arg-type]
    )


def test_quoted_rows_other_metrics_and_rows_of_one_source_are_no_further_sources() -> None:
    scores = [
        published(0.5, "a"),
        published(0.7, "a"),
        published(0.6, "b", quoted=True),
        published(0.9, "c", metric="pass@8"),
    ]
    public = beside_all(0.6, 0.01, scores)
    assert public is not None
    assert (public.sources, public.lowest, public.highest) == (1, 0.6, 0.6)
    assert public.verdict == "as others report"
    assert beside_all(0.6, 0.01, scores[2:]) is None


@pytest.mark.parametrize("ours", [0.0, 1.0])
def test_a_run_without_a_right_or_without_a_wrong_answer_is_judged_too(ours: float) -> None:
    public = beside_all(ours, 0.0, [published(0.5, "a")])
    assert public is not None
    assert public.verdict == "unlike what others report"
    assert beside_all(ours, None, [published(ours, "a")]).verdict == "as others report"  # type: ignore[union-attr]


def test_the_runs_own_error_widens_the_interval() -> None:
    sharp, blunt = (beside_all(0.5, error, [published(0.5, "a")]) for error in (0.0, 0.1))
    assert sharp is not None
    assert blunt is not None
    assert blunt.low < sharp.low < sharp.high < blunt.high


def main() -> None:
    """Print the rows of the page's table."""
    counts = shipped_outside()
    many = tuple(sum(numbers) for numbers in zip(*(counts[n] for n in counts if n > 3), strict=True))
    last = {**{n: "{} of {}".format(*counts[n]) for n in (1, 2, 3)}, 5: "{} of {} (4 or more)".format(*many)}
    for n in (1, 2, 3, 5, 10, 30):
        shares = " | ".join(f"{share_called_unlike(n, f * PRIOR_SPREAD):.1%}" for f in (1, 0.5, 1.5))
        sys.stdout.write(f"| {n} | {shares.replace('%', ' %')} | {last.get(n, '')} |\n")


if __name__ == "__main__":
    main()
