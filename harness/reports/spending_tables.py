"""What was paid for judging: the table of what the judge of each score took, and the sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.core.money import usd_in_words
from harness.reports.scored import ScoredRun
from harness.reports.tables import Table, short
from harness.scoring.judging import JudgeCost
from harness.scoring.uncertainty import ABSENT


def judge_table(runs: Sequence[ScoredRun]) -> Table | None:
    """What the replies of the judge of each score took in all sessions; None if no judge was asked."""
    rows, partly = [], False
    for run in runs:
        for benchmark, judge, cost in _costs(run):
            partly = partly or cost.n_stated < cost.replies
            tokens = f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}"
            usd = ABSENT if cost.usd is None else usd_in_words(cost.usd)
            stated = (*tokens, usd) if cost.n_stated else (ABSENT,) * 3
            names = short(run.label), short(benchmark), short(judge)
            rows.append((*names, f"{cost.replies:,}", f"{cost.requests:,}", *stated))
    columns = ("run", "benchmark", "judge", "replies", "requests", "tokens in", "tokens out", "cost")
    title = "What the judge of each score took in all sessions"
    notes = ("tokens and cost leave out replies whose server states no tokens",) if partly else ()
    return Table(title, columns, tuple(rows), notes, frozenset(range(3, 8))) if rows else None


def cost_of_judges(run: ScoredRun) -> str | None:
    """What the judges of a run's scores cost, in words; None if no judge was asked, or if nothing of it is known."""
    costs = [cost for _, _, cost in _costs(run)]
    usd = sum(cost.usd or 0.0 for cost in costs)
    # A reply without stated tokens was paid for, too.
    is_whole = all(cost.usd is not None and cost.n_stated == cost.replies for cost in costs)
    if not costs or not (usd or is_whole):
        return None
    return f"{'' if is_whole else 'at least '}{usd_in_words(usd)}"


def _costs(run: ScoredRun) -> Iterator[tuple[str, str, JudgeCost]]:
    """Yield (benchmark, judge, what its replies took) for each score by a judge that was asked."""
    for name, benchmark in run.benchmarks.items():
        judging = benchmark.score.judging if benchmark.score is not None else None
        if judging and judging.cost is not None and judging.cost.replies:
            yield name, judging.name.removeprefix("judge:"), judging.cost
