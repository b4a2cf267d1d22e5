"""Whether a series of models, such as the checkpoints of a training, has stopped improving.

    … step step step │ step step step      the last `N_LATE` steps together, minus the `N_LATE` steps before together
          before           last

The samples of a group of steps count as samples of one run. The spread of a question's pooled samples includes the
spread between the steps, so the intervals are a little too wide, never too narrow. They say what these checkpoints do
if they are asked again, and not how far a training that is run again would scatter. The table `late-steps` of
`bench/simulate.py` has the coverage.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.scoring.comparison import PairedComparison, compare_runs
from harness.scoring.tally import QuestionTally

N_LATE = 3
"""Number of steps in each group: enough that the scatter of a single checkpoint decides little."""


def late_change(steps: Sequence[Sequence[QuestionTally]]) -> PairedComparison | None:
    """The mean of the last `N_LATE` steps minus the mean of the `N_LATE` steps before; None if there are fewer steps.

    steps: `tally(…).questions` of each step, in the order of the training. Raises `UsageError` if they share no
    question.
    """
    if len(steps) < 2 * N_LATE:
        return None
    return compare_runs(_pooled(steps[-N_LATE:]), _pooled(steps[-2 * N_LATE : -N_LATE]))


def _pooled(steps: Sequence[Sequence[QuestionTally]]) -> list[QuestionTally]:
    """The samples of several steps as those of one run, for the questions that all steps have."""
    by_question: dict[tuple[str, str], list[QuestionTally]] = {}
    for step in steps:
        for item in step:
            by_question.setdefault((item.question.question_id, item.question.row_digest), []).append(item)
    return [
        QuestionTally(
            items[0].question,
            [grade for item in items for grade in item.grades],
            sum(item.planned for item in items),
            None
            if all(item.independent is None for item in items)
            else sum(item.n if item.independent is None else item.independent for item in items),
        )
        for items in by_question.values()
        if len(items) == len(steps)
    ]
