"""Fits how far sources differ that publish one model's accuracy on one benchmark: the constants of
`harness.scoring.published.all_sources`.

Each group of at least two sources of one model, benchmark and metric pass@1 (shipped rows; quoted ones left out) gives
a variance of arcsin √accuracy. Its scale and degrees of freedom are those of a scaled inverse chi-squared distribution,
fitted by the moments of the logarithms (Smyth 2004, "Linear models and empirical Bayes methods", section 6.2).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict

import mpmath

from harness.scoring.published import load_published
from harness.scoring.published.model_name import NameParts


def variances() -> list[tuple[int, float]]:
    """Return (degrees of freedom, variance) of each group of sources that do not all state the same accuracy."""
    groups: dict[tuple[NameParts, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in load_published():
        if score.metric == "pass@1" and not score.quoted and "attention_budget" not in score.settings:
            name = NameParts.read(score.model)
            one_model = NameParts("", name.base, name.size, name.release, name.precision, name.thinking)
            groups[one_model, score.benchmark][score.source.title].append(math.asin(math.sqrt(score.value)))
    means = [[statistics.fmean(values) for values in sources.values()] for sources in groups.values()]
    spreads = [(len(values) - 1, statistics.variance(values)) for values in means if len(values) > 1]
    return [(freedom, variance) for freedom, variance in spreads if variance > 1e-7]  # smaller: one number, quoted


def fitted(groups: list[tuple[int, float]]) -> tuple[float, float]:
    """Fit the distribution of the variances: (degrees of freedom, scale as a standard deviation)."""
    logs = [math.log(v) - float(mpmath.digamma(d / 2)) + math.log(d / 2) for d, v in groups]
    excess = statistics.variance(logs) - statistics.fmean(float(mpmath.polygamma(1, d / 2)) for d, _ in groups)
    freedom = float(mpmath.findroot(lambda x: mpmath.polygamma(1, x / 2) - excess, 2.0)) if excess > 0 else math.inf
    if math.isinf(freedom):
        return freedom, math.exp(statistics.fmean(logs) / 2)
    mean = statistics.fmean(logs) + float(mpmath.digamma(freedom / 2)) - math.log(freedom / 2)
    return freedom, math.exp(mean / 2)


def main() -> None:
    """Print the constants."""
    groups = variances()
    freedom, scale = fitted(groups)
    print(f"{len(groups)} groups: scale {scale:.4f}, degrees of freedom {freedom:.2f}")


if __name__ == "__main__":
    main()
