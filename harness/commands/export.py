"""`export`: a run, or a benchmark's own solutions, in another tool's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.benchmarks import catalog, questions
from harness.commands.imported_runs import open_scored
from harness.core.errors import UsageError
from harness.exports import Written
from harness.exports import export as export_run
from harness.exports.export import export_solutions
from harness.options.finished_runs import ExportOptions


def export(sources: Sequence[Path], options: ExportOptions) -> Written:
    """Export runs, or with `solution_key` a benchmark's solutions.

    sources: folders of runs, or scored outputs of other tools; with `solution_key`, the benchmark's name or card file.
    Raises `UsageError`, `StoreError`.
    """
    if not sources:
        raise UsageError("specify at least one run", field="runs")
    given = dict(options)
    column, prompt = given.pop("solution_key"), given.pop("prompt")
    if column is None:
        if prompt is not None:
            raise UsageError("a run's questions are exported as they were sent: omit this option", field="prompt")
        return export_run([open_scored(source) for source in sources], **given)
    run_options = [name for name in options.plain if name not in ("to", "out", "i_know", "solution_key", "prompt")]
    if run_options:
        raise UsageError(f"`{run_options[0]}` selects samples from a run, but `solution_key` does not export a run")
    if len(sources) > 1:
        raise UsageError("`solution_key` works with one benchmark", field="runs")
    card = catalog.load(str(sources[0]))
    # The column with the solutions is read as question metadata.
    columns = card.columns.model_copy(update={"metadata": (column,)})
    built = questions.build(card.model_copy(update={"columns": columns}), prompt=prompt)
    return export_solutions(
        built.name,
        built.questions,
        column,
        options.to,
        options.out,
        publish=built.publish,
        i_know=options.i_know,
    )
