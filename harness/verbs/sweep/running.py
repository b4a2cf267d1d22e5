"""Carries out a sweep: each server is started once, all its cells are run and scored, and the server is stopped.

The record of a cell is on disk before the next cell begins, so the same sweep continues wherever it was killed. A cell
that fails is recorded with its reason and does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.asking import prepare, servers
from harness.asking.options import GradingOptions, JudgeOptions, ScoreOptions
from harness.asking.session import end_if_signalled
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.errors import (
    EXIT_OWED,
    HarnessError,
    Interrupted,
    OtherModel,
    Sentence,
    ServerError,
    UsageError,
    option,
)
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.generation.outcome import in_common
from harness.runs import RunFolder
from harness.runs.lock import RunLock
from harness.verbs.run import sample
from harness.verbs.sweep import file as files
from harness.verbs.sweep import records
from harness.verbs.sweep.cell_record import CellRecord, Stage
from harness.verbs.sweep.cells import Cell, ServerGroup, Sweep
from harness.verbs.sweep.entry import slug
from harness.verbs.sweep.scorer import CellScore

if TYPE_CHECKING:
    from server_launchers.keeping.supervisor import RunningServer
    from server_launchers.spec import ServerSpec


Scorer = Callable[[Path, GradingOptions, JudgeOptions | None], CellScore]
"""Grades and scores a run folder: `score_cell`, which works in a process of its own."""

UNSCORED = "scoring ended with "
"""The reason of a cell begins with these words if all its samples are stored and only its scoring failed."""

UNSENT = "the score is stored, but was not sent: "
"""The reason of a cell begins with these words if only a tracker failed."""

OnCell = Callable[[CellRecord], None]
"""A callback that receives the record of each cell that ended, with or without success."""


@contextmanager
def hold_folder(sweep: Sweep) -> Iterator[None]:
    """Hold the lock of the sweep's folder for this process. Raises `StoreError` that names the process holding it."""
    folder = RunFolder(sweep.out)
    folder.create()
    with RunLock(folder):
        yield


def owing(sweep: Sweep) -> list[ServerGroup]:
    """The groups (cells that share one server) with a cell left to sample or score now."""
    return [
        group
        for group in sweep.groups
        if sweep.checkpoint_path(group.cells[0]) not in sweep.held
        and any(_is_owed(sweep, group, cell) for cell in group.cells)
    ]


def _is_owed(sweep: Sweep, group: ServerGroup, cell: Cell) -> bool:
    """Whether the cell is left to sample or score."""
    record = records.scored_record(sweep, group, cell)
    return record is None or record.lost


def server_of(group: ServerGroup, watcher: Watcher) -> ServerSpec:
    """The server that is started for a group. Raises `UsageError` for a wrong field, or if the group starts none."""
    fields = dict(group.spec or {})
    if not fields:
        raise UsageError(f"the group {visible(group.name, 80)} has a server that runs already")
    return servers.spec(fields.pop("engine"), fields.pop("model") or "", watcher, **fields)


def refuse_hopeless(sweep: Sweep, watcher: Watcher, *, before_checkpoints: bool = False) -> None:
    """Raise `UsageError` if every group needs a server to be started and this machine can start none of them, for
    example because the engine's package is missing.

    before_checkpoints: the plan was made before any checkpoint exists, so a missing model prevents nothing.
    """
    from server_launchers.keeping import supervisor

    reason = ""
    for group in sweep.groups:
        if group.spec is None:
            return
        reason = supervisor.obstacle(server_of(group, watcher), any_model=before_checkpoints)
        if not reason:
            return
    if reason:
        raise UsageError(f"no server of this sweep can be started here: {visible(reason)}")


def run_group(
    sweep: Sweep,
    group: ServerGroup,
    score: Scorer,
    watcher: Watcher | None = None,
    on_cell: OnCell = lambda _record: None,
    devices: Sequence[str] = (),
) -> None:
    """Start the group's server if a cell misses samples, then run and score every cell as far as possible.

    devices: of the server, in place of those in its spec; empty: those in its spec. Raises only `Interrupted` and
    KeyboardInterrupt; every other failure is recorded.
    """
    work = _Group(sweep, group, score, watcher or Watcher(), on_cell)
    todo = []
    for cell in group.cells:
        if records.sampled_record(sweep, group, cell) is None:
            todo.append(cell)
        elif _is_owed(sweep, group, cell):
            work.scored(cell)
    if group.spec is None:
        for cell in todo:
            work.sampled(cell)
        return
    specs = [(cell, work.spec_for(cell)) for cell in todo]
    described = [(cell, spec) for cell, spec in specs if spec is not None]
    # Cells of one spec share a server. If the server dies, the next pass starts a new one for the remaining cells.
    while described:
        next_spec = described[0][1]
        batch = [cell for cell, spec in described if spec == next_spec]
        ended = work.served(batch, next_spec.but(devices=tuple(devices)) if devices else next_spec)
        described = [(cell, spec) for cell, spec in described if cell not in ended]


def _server_stem(sweep: Sweep, group: ServerGroup, first: Cell) -> str:
    """Beginning of a server's name, and so of its log's name: the group's name, and a checksum of the run folder of the
    first cell that is run on the server.

    So no later server overwrites the log that the reason of a failed cell names. The model's own name does not do: each
    checkpoint may be a folder called `huggingface`.
    """
    folder = str(sweep.folder(first).absolute())
    return f"{slug(group.name)[:60]}-{codec.digest(folder)[:8]}"


class _Group:
    """Carries out the cells of one server, one after the other."""

    def __init__(self, sweep: Sweep, group: ServerGroup, score: Scorer, watcher: Watcher, on_cell: OnCell) -> None:
        self._sweep, self._group, self._score, self._watcher, self._on_cell = sweep, group, score, watcher, on_cell

    def ended(
        self,
        cell: Cell,
        stage: Stage,
        reason: str = "",
        code: int = 0,
        *,
        sampled_now: bool = False,
        unsent: Collection[str] = (),
    ) -> None:
        """Record the stage that the cell reached, and report it.

        code: exit code that this run or scoring would have had as a command. sampled_now: the server has just given
        samples. unsent: names of the trackers that did not get the score of this stage; they get it the next time.
        """
        # Scoring a finished cell again asks no server: its samples stay those of the server that made them.
        stored = None if sampled_now or stage == "failed" else records.sampled_record(self._sweep, self._group, cell)
        now = {name: to for name, to in self._sweep.destinations(cell).items() if name not in unsent}
        sent = {**records.sent_before(self._sweep, cell, stage), **now}
        record = CellRecord(
            cell=cell.name,
            stage=stage,
            settings=records.settings(cell),
            server=records.server(self._group) if stored is None else stored.server,
            model=cell.model,
            scoring=records.scoring(self._sweep),
            tracked=sent if stage in ("scored", "judged") else {},
            reason=records.whole_sentences(records.in_one_line(files.as_keys(reason))),
            code=code,
        )
        records.write(self._sweep, record)
        if stage != "sampled" or reason:
            self._on_cell(record)

    def spec_for(self, cell: Cell) -> ServerSpec | None:
        """The spec of the cell's server, checked against the benchmark's prompts before the server is started.

        None if the check fails, or if the checkpoint was deleted; the cell is then recorded as failed.
        """
        spec = {name: value for name, value in (self._group.spec or {}).items() if value is not None}
        try:
            wish = cell.options.but(serve=spec, model=cell.options.model or spec.get("model"))
            questions = prepare.questions_of(wish, self._watcher)
            prepare.refuse_other_settings(questions)
            if (deleted := self._sweep.deleted_checkpoint(cell)) is None:
                return prepare.server_of(questions, self._watcher)
            gone = f"its checkpoint {visible(str(deleted), 200)} was deleted"
            self.kept(cell, f"{gone}, and the file asks for more or other samples now than it has", EXIT_OWED)
        except HarnessError as error:
            self.failed(cell, error)
        return None

    def failed(self, cell: Cell, error: HarnessError) -> None:
        """Record why the cell is not sampled."""
        if isinstance(error, Interrupted):
            raise error
        if error.other_settings:
            self.kept(cell, records.refusal_in_words(self._sweep, cell, error), error.exit_code)
        else:
            self.ended(cell, "failed", error.sentence, error.exit_code)

    def kept(self, cell: Cell, reason: str, code: int) -> None:
        """Record why the cell gets no samples. What it has stays, with the stage that it reached."""
        former = records.read(self._sweep, cell) or CellRecord(cell=cell.name, stage="failed", model=cell.model)
        record = msgspec.structs.replace(former, reason=reason, code=code)
        records.write(self._sweep, record)
        self._on_cell(record)

    def served(self, cells: Sequence[Cell], spec: ServerSpec) -> list[Cell]:
        """Run the cells on a server of this spec. Return the cells that were run: all, or those up to the cell during
        which the server died.
        """
        from server_launchers.errors import in_short

        try:
            server = servers.launched(spec, self._watcher, stem=_server_stem(self._sweep, self._group, cells[0]))
        except ServerError as error:
            for cell in cells:
                self.ended(cell, "failed", f"the server did not start: {in_short(error.sentence)}", error.exit_code)
            return list(cells)
        with server:
            for number, cell in enumerate(cells, 1):
                self.sampled(cell, server)
                # Checked after each cell: otherwise all later cells would fail with "connection refused" and not with
                # the true cause.
                if why := server.ended:
                    self._watcher.warn(Sentence(f"{visible(server.name, 80)} ended by itself: {why}"))
                    return list(cells[:number])
        return list(cells)

    def sampled(self, cell: Cell, server: RunningServer | None = None) -> None:
        """Sample what the cell misses, score what is stored, and record the outcome.

        server: the server started for the cell; None: the cell's options name the server.
        """
        reason, code = "", 0
        try:
            self._watcher.entering(cell.name)
            with prepare.prepare(cell.options, self._watcher, server=server) as prepared:
                session = sample(prepared, self._watcher)
                end_if_signalled(session.outcome, prepared, self._watcher)
            self._watcher.sampled()
            for warning in session.outcome.warnings:
                self._watcher.warn_of(cell.name, warning, in_common(warning, session.outcome, prepared.settings))
            if session.missed:
                reason, code = session.missed, EXIT_OWED
            elif not session.reached and not session.complete:
                outcome = session.outcome
                reason, code = _owed(outcome.n_owed, outcome.n_expected, outcome.causes), EXIT_OWED
        except Interrupted:
            raise
        except OtherModel as error:
            runs = visible(str(self._sweep.folder(cell)), 120)
            remedy = f"for new scores, delete {runs} and give the same command"
            mixed = f"`{option('accept_server_change', True)}` mixes the samples of both models all the same"
            # The difference comes last: a reason is cut at its end.
            reason = Sentence(f"another model made its samples; {remedy}. {mixed}. Found: {error.difference}")
            code = error.exit_code
        except HarnessError as error:
            if error.other_settings:
                self.failed(cell, error)
                return
            reason, code = error.sentence, error.exit_code
        if reason:
            if self._sweep.folder(cell).joinpath("manifest.json").is_file():
                self._score(self._sweep.folder(cell), self._sweep.score, None)
            self.ended(cell, "failed", reason, code)
            return
        self.ended(cell, "sampled", sampled_now=True)
        self.scored(cell)

    def scored(self, cell: Cell) -> None:
        """Grade and score the stored samples, and record the outcome."""
        stage = self._sweep.last_stage
        options = self._tracked(cell, stage)
        ended = self._score(self._sweep.folder(cell), options, self._sweep.judge)
        for sentence in ended.addresses:
            self._watcher.standing(Sentence(f"{cell.name}: {sentence}"))
        if ended.unsent:
            # The stage is reached, so that the trackers that have the score do not get it again.
            self.ended(cell, stage, UNSENT + ended.reason, ended.code, unsent=ended.unsent)
        elif ended.code:
            # Recorded as sampled, so that the next start of the sweep tries the scoring again.
            self.ended(cell, "sampled", f"{UNSCORED}{ended.code}: {ended.reason}", ended.code)
        else:
            self.ended(cell, stage)

    def _tracked(self, cell: Cell, stage: Stage) -> GradingOptions:
        """The options of the cell's scoring, with the trackers that get its score and did not get it before."""
        sent = records.sent_before(self._sweep, cell, stage)
        if not (owed := [name for name, to in self._sweep.destinations(cell).items() if sent.get(name) != to]):
            return self._sweep.score
        series, step = self._sweep.tracker_series(cell) or (None, None)
        return ScoreOptions.of(**self._sweep.score.plain, track=owed, step=step, series=series)


def _owed(n_owed: int, n_expected: int, causes: Sequence[object]) -> str:
    """The reason of a cell with missing samples, with their first cause."""
    why = f": {causes[0]}" if causes else ""
    return f"{n_owed} of {count_noun(n_expected, 'sample')} {are(n_owed)} missing{why}"
