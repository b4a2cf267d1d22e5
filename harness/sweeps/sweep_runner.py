"""A whole sweep: its estimate, and its execution, which runs and scores the cells and writes the tables.

The command line and Python both call `cells.plan_of` and `run_sweep`. An estimate (`estimates`) contacts no server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from harness.benchmarks import catalog, prompts
from harness.benchmarks.card import Card
from harness.commands import card_data
from harness.core.errors import HarnessError, UsageError
from harness.core.sanitize import visible
from harness.judges.judge import try_judge
from harness.options.run import RunOptions
from harness.preparing.run_questions import RunQuestions, first_number, named_tool, questions_of, sampling_of
from harness.preparing.run_settings import refuse_other_settings
from harness.preparing.server_start import checked_spec
from harness.presets import preset as presets
from harness.presets.sampling import Sampling
from harness.progress.events import Watcher
from harness.runs import RunFolder, sweep_cell
from harness.runs.lock import locked
from harness.runs.recorded_settings import value_text
from harness.runs.sweep_cell import SuiteNote
from harness.sweeps import execution, table
from harness.sweeps.cell_state import is_incomplete
from harness.sweeps.file import at_line
from harness.sweeps.plan import Cell, Sweep
from harness.sweeps.results import Results, results


def run_sweep(
    sweep: Sweep,
    watcher: Watcher,
    on_cell: execution.OnCell = lambda _record: None,
    score: execution.Scorer = execution.score_cell,
) -> Results:
    """Run and score the cells of a sweep that are not done, apply the judge, and write the tables.

    Raises `Interrupted`, KeyboardInterrupt, `StoreError` if another process is using the folder, and the errors of
    `try_judge`; every other failure is recorded with its cell.
    """
    folder = RunFolder(sweep.out)
    folder.create()
    with locked(folder):
        for words in sweep.remarks:
            watcher.warn(words)
        groups = execution.pending_groups(sweep)
        if sweep.judge is not None and groups:
            try_judge(sweep.judge, watcher, may_start=any(cell.options.serve for cell in sweep.cells))
        for group in groups:
            execution.run_group(sweep, group, score, watcher, on_cell)
        ended = with_tables(sweep)
        for result in ended.results:
            if result.remark:
                path = visible(str(sweep.folder(result.cell)), 200)
                watcher.warn(f"{result.cell.name}: {result.remark}. To get new scores, delete {path}")
        return ended


def with_tables(sweep: Sweep) -> Results:
    """Read the results of a sweep and write its tables. Raises `StoreError`."""
    note_cells(sweep)
    read = results(sweep)
    return replace(read, written=table.write(read))


def note_cells(sweep: Sweep) -> None:
    """Store in each run folder what only the sweep knows about the run: its suite, the conditions (such as an attention
    budget) that the suite specifies for its server, the training step, the run of the previous step, its place in the
    table, and its base. This allows a run to be read without its sweep.

    Raises `StoreError`.
    """
    source = (sweep.suite.source or "") if sweep.suite is not None else ""
    latest: dict[tuple[str, str], str] = {}
    places = {cell.name: place for place, cell in enumerate(sweep.cells)}
    for cell in sorted(sweep.cells, key=lambda cell: cell.checkpoint.step if cell.checkpoint else 0):
        folder = RunFolder(sweep.folder(cell))
        if not folder.manifest.is_file():
            continue
        note = SuiteNote(
            source=source,
            conditions=sweep.conditions(cell),
            place=places[cell.name],
            base=sweep.base_cells.get(cell.name, ""),
        )
        if cell.checkpoint is not None:
            of_curve = cell.benchmark, cell.curve
            note = msgspec.structs.replace(
                note, step=cell.checkpoint.step, curve=cell.curve, before=latest.get(of_curve, "")
            )
            latest[of_curve] = folder.path.name
        sweep_cell.write_note(folder, note)


# ---- before anything is started


@dataclass(frozen=True, kw_only=True)
class ExpectedCell:
    """The estimate of one cell.

    n_questions: number of questions; None if the data are not on this machine and the card does not specify the number.
    n_samples: number of samples, including stored ones; for a fraction per question, exact only if the data are here.
    at_most: whether both are upper bounds, since they come from the card and a filter may drop questions. samples:
    samples per question. most_tokens: new tokens if every sample used all of max_tokens; None if a factor is unknown.
    settings: name → value of the sampling and prompt settings, in words. absent: whether the data are missing on this
    machine. done: whether nothing is left to do. lost: why the cell would end without a new score; empty if no reason
    is known.
    """

    cell: Cell
    benchmark: str
    n_questions: int | None
    n_samples: int | None
    at_most: bool
    samples: float
    most_tokens: int | None
    settings: Mapping[str, str]
    absent: bool
    done: bool = False
    lost: str = ""


def estimates(sweep: Sweep, watcher: Watcher) -> list[ExpectedCell]:
    """The estimate of each cell, in order. No server is contacted.

    watcher: receives the notes on the question sets, once for each cell that uses a set. Nothing is downloaded: the
    number of questions that are not on this machine is taken from the card. Raises `UsageError` for an unknown name of
    a benchmark, prompt, preset or column, for a `likelihood` without a base, and for questions that cannot be read.
    """
    _ = sweep.read_cells  # for its error
    return [_estimate(sweep, cell, watcher) for cell in sweep.cells]


def _estimate(sweep: Sweep, cell: Cell, watcher: Watcher) -> ExpectedCell:
    """The estimate of one cell from its questions or its card."""
    options = cell.options
    card = catalog.load(options.benchmarks[0]) if options.benchmarks else None
    n_questions: int | None
    done = not is_incomplete(sweep, cell)
    questions: RunQuestions | None = None
    preset = presets.load(options.preset) if options.preset is not None else None
    tool = named_tool(options, preset, card.tool if card is not None else None)
    # The numbers are exact if the questions are on this machine; otherwise they are taken from the card.
    if card is None or options.data or card_data.status(card) != "absent":
        try:
            questions = questions_of(options, watcher)
        except UsageError as error:
            raise at_line(cell.where, error) from error
        (question_set,) = questions.sets
        settings = questions.benchmarks[question_set.name]
        name, n_questions, at_most = question_set.name, len(question_set.questions), False
        samples, sampling = settings.samples, settings.sampling
        n_samples: int | None = settings.plan().total(question_set.ids)
    else:
        # Called for its `UsageError` about an unknown prompt.
        prompts.find_prompt(options.prompt or card.prompt, card.prompts)
        sampling, _ = sampling_of(options, preset, card.sampling)
        name, samples = card.name, first_number(options.samples, card.samples)
        numbers = [n for n in (card.questions, options.limit) if n is not None]
        n_questions, at_most = min(numbers, default=None), bool(options.filter or options.ids)
        n_samples = None if n_questions is None else round(n_questions * samples)
    max_tokens = sampling.max_tokens
    most = None if n_samples is None or max_tokens is None else n_samples * max_tokens
    return ExpectedCell(
        cell=cell,
        benchmark=name,
        n_questions=n_questions,
        n_samples=n_samples,
        at_most=at_most,
        samples=samples,
        most_tokens=most,
        settings=_settings(options, sampling, card, tool),
        absent=questions is None,
        done=done,
        lost="" if done else _reason_lost(sweep, cell, questions, samples),
    )


def _settings(options: RunOptions, sampling: Sampling, card: Card | None, tool: str | None) -> dict[str, str]:
    """The sampling, the prompts and the tool of a cell in words, by name."""
    prompt = options.prompt or (card.prompt if card is not None else "of the file")
    others = {"prompt": prompt, "thinking": options.thinking, "tool": tool, "system prompt": options.system_prompt}
    given = {name: value for name, value in others.items() if value is not None}
    return {name: value_text(value) for name, value in (sampling.request_fields() | given).items()}


def _reason_lost(sweep: Sweep, cell: Cell, questions: RunQuestions | None, samples: float) -> str:
    """Why the cell would end without a score; empty if no reason is known.

    Known reasons are stored samples with different settings, too few samples for the k of pass@k, and a server to start
    that has an invalid description or a context too short for the prompts and replies. questions: None if the questions
    are not on this machine; in that case, the prompt lengths are unknown. samples: samples per question.
    """
    few = [k for k in sweep.score.k if k > samples]
    if few:
        return f"pass@{few[0]} requires {few[0]} samples per question, but the cell has {samples}"
    if questions is None:
        return ""
    try:
        refuse_other_settings(questions)
        if cell.options.serve:
            checked_spec(questions)
    except HarnessError as error:
        return execution.describe_refusal(sweep, cell, error) if error.other_settings else str(error)
    return ""
