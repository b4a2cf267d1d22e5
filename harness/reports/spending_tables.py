"""What was paid for judging: the table of what each judge of a run took, and the sum.

A run may have had several judges, or several rubrics of one. Each has a row, also where its verdicts are in no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.core.money import usd_in_words
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.tables import Table, short
from harness.scoring.judging import JudgeBill, JudgeCost
from harness.scoring.uncertainty import ABSENT


def judge_table(runs: Sequence[ScoredRun]) -> Table | None:
    """What the replies of each judge took in all sessions; None if no judge was asked."""
    rows, partly = [], False
    for run in runs:
        for benchmark in run.benchmarks.values():
            for bill in _bills(run, benchmark):
                cost = bill.cost
                stated = cost is not None and bool(cost.n_stated)
                partly = partly or (cost is not None and cost.n_stated < cost.replies)
                usd = _usd(bill)
                rows.append(
                    (
                        short(run.label),
                        short(benchmark.name),
                        short(bill.judge),
                        ABSENT if cost is None else f"{cost.replies:,}",
                        ABSENT if cost is None else f"{cost.requests:,}",
                        f"{cost.prompt_tokens:,}" if cost is not None and stated else ABSENT,
                        f"{cost.completion_tokens:,}" if cost is not None and stated else ABSENT,
                        ABSENT if usd is None or not stated else usd_in_words(usd),
                    )
                )
    columns = ("run", "benchmark", "judge", "replies", "requests", "tokens in", "tokens out", "cost")
    title = "What each judge took in all sessions, with replies without a verdict that were asked for again"
    notes = ("tokens and cost leave out replies whose server states no tokens",) if partly else ()
    return Table(title, columns, tuple(rows), notes, frozenset(range(3, 8))) if rows else None


def cost_of_judges(run: ScoredRun) -> str | None:
    """What all judges of a run cost, in words; None if no judge was asked, or if nothing of it is known."""
    bills = _all_bills(run)
    usd, is_partly = _sum(bills)
    return _at_least(usd, partly=is_partly) if bills and (usd or not is_partly) else None


def _sum(bills: Sequence[JudgeBill]) -> tuple[float, bool]:
    """(what these judges cost in USD, as far as it is known; whether more of it is not known)."""
    # A reply without stated tokens was paid for, too.
    return sum(_usd(bill) or 0.0 for bill in bills), not all(map(_is_whole, bills))


def _all_bills(run: ScoredRun) -> list[JudgeBill]:
    """What each judge took for each benchmark of a run."""
    return [bill for benchmark in run.benchmarks.values() for bill in _bills(run, benchmark)]


def _bills(run: ScoredRun, benchmark: ScoredBenchmark) -> Iterator[JudgeBill]:
    """What each judge took for a benchmark. The judge of the score has one even if it has not replied yet."""
    judging = benchmark.score.judging if benchmark.score is not None else None
    name = "" if not judging else judging.name.removeprefix("judge:")
    is_listed = False
    for bill in run.judges:
        if bill.benchmark != run.stored_name(benchmark):
            continue
        cost = bill.cost
        is_its = name.partition("*")[0] == bill.judge
        is_listed = is_listed or is_its
        if cost is None or cost.replies or (judging and is_its and not judging.ended):
            yield bill
    if judging and not is_listed and (not judging.ended or (judging.cost is not None and judging.cost.replies)):
        yield JudgeBill(benchmark.name, name, judging.cost or JudgeCost())


def _usd(bill: JudgeBill) -> float | None:
    """What a judge took, in USD; None if it is not known."""
    if bill.cost is None:
        return None
    return bill.cost.usd if bill.cost.replies else 0.0


def _is_whole(bill: JudgeBill) -> bool:
    """Whether the cost of all replies of a judge is known."""
    return _usd(bill) is not None and bill.cost is not None and bill.cost.n_stated == bill.cost.replies


def _at_least(amount: float, *, partly: bool) -> str:
    """The amount in words; partly: some of it is not known."""
    if partly and not amount:
        return ABSENT
    return f"{'at least ' if partly else ''}{usd_in_words(amount)}"
