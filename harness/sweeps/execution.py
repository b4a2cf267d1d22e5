"""Runs a sweep: each server is started once, all its cells are run and scored, and the server is stopped.

Each cell's record is on disk before the next cell begins, so a killed sweep can be resumed at any point. A cell that
fails is recorded with the reason and does not stop the others.

A cell's *record* states how it ended (`record.CellRecord`). In a sweep with `likelihood`, the server of a cell also
*reads* the stored replies of its base cell (`probes.likelihood_readings`), in addition to its own samples; until then
the cell is *unread*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from harness.commands import score as scoring
from harness.commands.run import end_if_signalled, sample
from harness.commands.score import second_opinions
from harness.core.codec import digest
from harness.core.errors import Exit, HarnessError, Interrupted, OtherModel, ServerError
from harness.core.number_text import count_noun, is_are
from harness.core.sanitize import quoted, visible
from harness.generation.outcome import shared_warning
from harness.options.judge import JudgeOptions
from harness.options.score import ScoreOptions
from harness.preparing.prepare import Prepared, prepare
from harness.preparing.run_questions import questions_of
from harness.preparing.run_settings import refuse_other_settings
from harness.preparing.server_start import checked_spec, launch_server
from harness.probes.probe import NOT_MADE, probe_of_run
from harness.probes.probed_endpoint import lacks_reading
from harness.progress.events import Watcher
from harness.sweeps import record
from harness.sweeps.cell_state import (
    has_read,
    has_samples,
    is_done,
    is_incomplete,
    is_unread,
    is_whole,
    reading_stamp,
    server_stamp,
    stamp,
)
from harness.sweeps.file import slug
from harness.sweeps.plan import Cell, Sweep
from harness.sweeps.record import CellRecord

if TYPE_CHECKING:
    from server_launchers.lifecycle.launch import RunningServer
    from server_launchers.spec import ServerSpec


@dataclass(frozen=True, kw_only=True)
class CellScore:
    """The outcome of scoring. code: 0 if everything is graded; otherwise the exit code that `harness score` would have.

    reason: why the code is not 0; otherwise empty. unsent: names of the trackers that failed, if everything is graded.
    """

    code: int = 0
    reason: str = ""
    unsent: Sequence[str] = ()


Scorer = Callable[[Path, ScoreOptions, JudgeOptions | None, Watcher], CellScore]
"""Grades and scores a run folder, as `score_cell` does."""

OnCell = Callable[[CellRecord], None]
"""A callback that receives the record of each cell when it ends, successfully or not."""


def pending_groups(sweep: Sweep) -> list[list[Cell]]:
    """The groups (cells that share one server) with a cell left to sample or score. Groups of bases, whose replies the
    others read, come first.
    """
    reads = sweep.read_cells
    groups = sorted(sweep.groups.values(), key=lambda group: all(reads.get(cell.name) != cell.name for cell in group))
    return [group for group in groups if any(is_incomplete(sweep, cell) for cell in group)]


def run_group(
    sweep: Sweep,
    group: Sequence[Cell],
    score: Scorer,
    watcher: Watcher | None = None,
    on_cell: OnCell = lambda _record: None,
) -> None:
    """Run and score every cell of a group as far as possible. A server is started if a cell has missing samples.

    Raises only `Interrupted` and KeyboardInterrupt; every other failure is recorded.
    """
    work = _Cells(sweep, score, watcher or Watcher(), on_cell)
    missing = [cell for cell in group if is_incomplete(sweep, cell)]
    # The cells that need no new server end here: complete cells are scored, hopeless ones are recorded.
    waiting = [(cell, spec) for cell in missing if (spec := work.spec_unless_ended(cell)) is not None]
    # Cells with the same spec share a server. If the server dies, the next pass starts a new one for the remaining
    # cells. The loop terminates, since each pass ends at least its first cell.
    while waiting:
        next_spec = waiting[0][1]
        batch = [cell for cell, spec in waiting if spec == next_spec]
        ended = work.run_on_server(batch, next_spec)
        waiting = [(cell, spec) for cell, spec in waiting if cell not in ended]


def _server_stem(sweep: Sweep, first: Cell) -> str:
    """Beginning of a server's name, and thus of its log's name: the group's name, and a checksum of the run folder of
    the first cell that is run on the server.

    This keeps a later server from overwriting the log that a failed cell's reason refers to. The model's own name would
    not suffice: each checkpoint may be a folder called `huggingface`.
    """
    folder = str(sweep.folder(first).absolute())
    return f"{slug(sweep.group_of(first))[:60]}-{digest(folder)[:8]}"


class _Cells:
    """Runs the cells of a sweep one after the other. The parameters are those of `run_group`."""

    def __init__(self, sweep: Sweep, score: Scorer, watcher: Watcher, on_cell: OnCell) -> None:
        self._sweep, self._score, self._watcher, self._on_cell = sweep, score, watcher, on_cell
        self._waited = False
        """Whether the group's server was waited for in vain, so that no further cell waits for it."""

    def record_end(self, cell: Cell, reason: str = "", code: int = 0, *, is_new: bool = False, **now: Any) -> None:
        """Record how the cell ended, and report it. The fields of the previous record are kept, except those in `now`.

        code: exit code that this run or scoring would have had as a command. is_new: whether a server was queried now
        and no samples were stored before.
        """
        former = self._previous(cell)
        ended = msgspec.structs.replace(
            former,
            model=cell.model,
            server=server_stamp(cell) if is_new or not former.server else former.server,
            reason=_whole_sentences(_in_one_line(reason)),
            code=code,
            **now,
        )
        record.write(self._sweep.out, ended)
        self._on_cell(ended)

    def _previous(self, cell: Cell) -> CellRecord:
        """The cell's previous record; an empty one for a new cell."""
        return record.read(self._sweep.out, cell.name) or CellRecord(cell=cell.name)

    def spec_unless_ended(self, cell: Cell) -> ServerSpec | None:
        """Return the spec of the server to start for this cell, checked against the benchmark's prompts.

        None means that the cell needs no new server and has ended: it had its samples and is scored, or its running
        server was queried, or the reason why it gets no samples is recorded. A cell with all samples needs a server if
        it is unread.
        """
        starts = cell.options.serve is not None
        try:
            questions = questions_of(cell.options, self._watcher)
            refuse_other_settings(questions)
            unread, lost = is_unread(self._sweep, cell, self._previous(cell)), dict[str, Any]()
            gone = starts and cell.checkpoint is not None and not cell.checkpoint.path.exists()
            if unread and gone:
                why = "its checkpoint was deleted before it computed log-probabilities for its base's replies"
                lost = {"likelihood": None, "unread": why, "read": reading_stamp(self._sweep, cell)}
            has_model = cell.options.model is not None
            if has_model and (gone or not unread) and has_samples(self._sweep, cell, questions):
                self.score(cell, **lost)
            elif starts and cell.checkpoint and gone:
                deleted = f"its checkpoint {visible(str(cell.checkpoint.path), 200)} was deleted"
                self.record_end(
                    cell, f"{deleted}, but the file now specifies more or different samples", Exit.CANNOT_SAY
                )
            elif starts:
                return checked_spec(questions, self._watcher)
            else:
                self.sampled(cell)
        except HarnessError as error:
            self.failed(cell, error)
        return None

    def failed(self, cell: Cell, error: HarnessError) -> None:
        """Record why the cell was not sampled."""
        if isinstance(error, Interrupted):
            raise error
        refused = describe_refusal(self._sweep, cell, error) if error.other_settings else error.sentence
        self.record_end(cell, refused, error.exit_code)

    def run_on_server(self, cells: Sequence[Cell], spec: ServerSpec) -> list[Cell]:
        """Run the cells on a server with this spec. Return the cells that were run: all of them, or those up to the
        cell during which the server died.
        """
        from server_launchers.errors import shorten_error

        try:
            server = launch_server(spec, self._watcher, stem=_server_stem(self._sweep, cells[0]))
        except ServerError as error:
            reason = f"the server did not start: {shorten_error(error.sentence)}"
            for cell in cells:
                if is_whole(self._sweep, cell, self._previous(cell)):  # Only its base's replies had to be read.
                    self.record_end(cell, likelihood=None, unread=reason, read="")
                else:
                    self.record_end(cell, reason, error.exit_code)
            return list(cells)
        with server:
            for number, cell in enumerate(cells, 1):
                self.sampled(cell, server)
                # Checked after each cell: otherwise all later cells would fail with "connection refused" and not with
                # the true cause.
                if why := server.ended:
                    self._watcher.warn(f"{visible(server.name, 80)} exited: {why}")
                    return list(cells[:number])
        return list(cells)

    def sampled(self, cell: Cell, server: RunningServer | None = None) -> None:
        """Sample what the cell is missing, score what is stored, and record the outcome.

        Nothing is scored if the stored samples have different settings: they are not this cell's.

        server: the server started for the cell; None if the cell's options name the server.
        """
        reason, code, read = "", 0, dict[str, Any]()
        is_new = not any(path.stat().st_size for path in self._sweep.folder(cell).glob("*/samples.*"))
        try:
            self._watcher.entering(cell.name)
            options = cell.options.replace(wait=0) if self._waited else cell.options
            with prepare(options, self._watcher, server=server) as prepared:
                settings = replace(prepared.settings, keeps_gaps=self._sweep.is_load_curve)
                outcome = sample(replace(prepared, settings=settings), self._watcher)
                end_if_signalled(outcome, prepared)
                self._watcher.sampled()
                read = self._read(cell, prepared) if outcome.reached or outcome.complete else {}
            for warning in outcome.warnings:
                self._watcher.warn_of(cell.name, warning, shared_warning(warning, outcome, prepared.settings))
            # If a target error was reached, missing samples are not needed; if it was missed, that is a reason.
            if outcome.missed:
                reason, code = outcome.missed, Exit.CANNOT_SAY
            elif not outcome.reached and not outcome.complete:
                n, why = outcome.n_missing, f": {outcome.causes[0]}" if outcome.causes else ""
                reason = f"{n} of {count_noun(outcome.n_expected, 'sample')} {is_are(n)} missing{why}"
                code = Exit.CANNOT_SAY
        except Interrupted:
            raise
        except OtherModel as error:
            runs = visible(str(self._sweep.folder(cell)), 120)
            remedy = f"to get new scores, delete {runs} and run the same command"
            mixed = "To mix the samples of both models instead, use `accept_server_change`"
            # The difference is put last because a long reason is cut at its end.
            reason = f"its samples come from a different model; {remedy}. {mixed}. Found: {error.difference}"
            code = error.exit_code
        except HarnessError as error:
            if error.other_settings:
                self.failed(cell, error)
                return
            reason, code = error.sentence, error.exit_code
            self._waited = isinstance(error, ServerError) and error.hope is not None
        if reason:
            if self._sweep.folder(cell).joinpath("manifest.json").is_file():
                self._score_of(cell, None)
            self.record_end(cell, reason, code, is_new=is_new, **read)
            return
        self.score(cell, is_new=is_new, **read)

    def _read(self, cell: Cell, prepared: Prepared) -> dict[str, Any]:
        """Let the cell's server read its base's replies; return the fields of its record that describe the outcome."""
        base, former = self._sweep.read_cells.get(cell.name), self._previous(cell)
        if base is None or not is_unread(self._sweep, cell, former):
            return {}
        replies = self._sweep.out / base
        reference = prepared.settings.endpoints[0].base_url if base == cell.name else None
        asked = {"replies": replies, "reference": reference, **(self._sweep.likelihood or {})}
        stamped = reading_stamp(self._sweep, cell)
        lack = lacks_reading(prepared.server_info.each[0].facts.host.get("engine"))
        if reference is None and not has_read(self._sweep, base):
            lack = f"the server of {base} has not computed the log-probabilities of these replies"
        if lack:
            return {"likelihood": None, "unread": lack, "read": stamped}
        try:
            (finding,) = probe_of_run(prepared, self._watcher, **asked).findings
        except Interrupted:
            raise
        except HarnessError as error:
            why = error.sentence
        else:
            if finding.likelihood is not UNSET:
                return {"likelihood": finding.likelihood, "unread": "", "read": stamped}
            why = finding.received
            # The server has refused and would do so again.
            if finding.sent != NOT_MADE and not why.startswith("no response"):
                return {"likelihood": None, "unread": why, "read": stamped}
        sentence = "its server did not compute log-probabilities for its base's replies; run the same command to retry"
        self._watcher.warn(f"{cell.name}: {sentence}: {why}")
        return {}

    def _score_of(self, cell: Cell, judge: JudgeOptions | None, **tracking: Any) -> CellScore:
        """Grade and score the cell's stored samples. tracking: options about trackers."""
        options = ScoreOptions.of(**self._sweep.score.plain, **tracking)
        return self._score(self._sweep.folder(cell), options, judge, self._watcher)

    def score(self, cell: Cell, *, is_new: bool = False, **read: Any) -> None:
        """Grade and score the stored samples unless that has been done, send the scores to the trackers that do not
        have them, and record the outcome. read: fields returned by `_read`.
        """
        sweep, former = self._sweep, self._previous(cell)
        if is_done(sweep, cell):  # a server without a named model was queried, and there were no new samples
            self.record_end(cell)
            return
        # Trackers that received the scores of fewer samples receive the scores of all samples.
        sent_before = former.sent if is_whole(sweep, cell, former) else ()
        to_send = [name for name in sweep.track if name not in sent_before]
        place: dict[str, Any] = {}
        if to_send and cell.checkpoint is not None:
            place = {"step": cell.checkpoint.step, "series": " ".join(filter(None, (sweep.name, cell.curve)))}
        score = self._score_of(cell, sweep.judge, track=to_send, **place)
        reason = f"scoring ended with {score.code}: {score.reason}" if score.code else ""
        if score.unsent:
            reason = f"the score was stored but not sent: {score.reason}"
        is_stored = bool(score.unsent) or not score.code
        sent_now = [name for name in to_send if is_stored and name not in score.unsent]
        done = stamp(sweep, cell) if is_stored else ""
        self.record_end(cell, reason, score.code, is_new=is_new, done=done, sent=(*sent_before, *sent_now), **read)


def score_cell(folder: Path, options: ScoreOptions, judge: JudgeOptions | None, watcher: Watcher) -> CellScore:
    """Grade and score a run folder, and send the scores. Every failure becomes a code and a reason.

    Raises only `Interrupted`.
    """
    try:
        scored = scoring.score(folder, options, judge, watcher)
        for grader in options.second_graders:
            second_opinions(scored.folder, grader, options.also_python)
    except Interrupted:
        raise
    except HarnessError as error:
        return CellScore(code=error.exit_code, reason=error.sentence)
    except Exception as error:  # noqa: BLE001  a bug of ours, or too little memory, must not affect the other cells
        return CellScore(code=Exit.NO, reason=quoted(f"{type(error).__name__}: {error}"))
    mute = [scored.judged.mute] if scored.judged is not None and scored.judged.mute else []
    # The same sweep recomputes an incomplete score, which is sent once it is complete.
    if reasons := [*scored.missing, *mute, *scored.verifier_errors]:
        return CellScore(code=Exit.CANNOT_SAY, reason=reasons[0])
    failures: dict[str, HarnessError] = {}
    for name in options.track:
        # If a tracker fails, the others still receive their scores; the first failure is the one that is reported.
        try:
            address = scoring.send_scores(scored, scoring.trackers_named([name])[name], options)
            watcher.standing(f"{folder.name}: {scoring.describe_sent(name, address)}")
        except HarnessError as error:
            failures[name] = error
    for failure in failures.values():
        return CellScore(code=failure.exit_code, reason=failure.sentence, unsent=tuple(failures))
    return CellScore()


MAX_REASON_CHARS = 600
"""Maximum length of a cell's reason, enough for two paths of typical length; longer reasons lose sentences."""


def _in_one_line(sentence: str) -> str:
    """`sentence` without line breaks, for tables and footnotes."""
    joined = ""
    for line in filter(None, map(str.strip, sentence.splitlines())):
        joined += ("" if not joined else " " if joined.endswith((":", ".", ";")) else "; ") + line
    return joined


def _whole_sentences(text: str) -> str:
    """`text` without control characters, cut after the last sentence that ends within `MAX_REASON_CHARS`; if the first
    sentence is longer, it is cut in the middle.
    """
    shown = visible(text.strip(), MAX_REASON_CHARS)
    return f"{shown.rpartition('. ')[0]}. …" if shown.endswith("…") and ". " in shown else shown


def describe_refusal(sweep: Sweep, cell: Cell, error: HarnessError) -> str:
    """The reason for a cell whose run folder contains samples with different settings."""
    remedy = (
        f". To get new scores, delete {visible(str(sweep.folder(cell)), 200)}, or give the benchmark a different `name`"
    )
    return (
        _whole_sentences(f"its samples were generated with different settings: {_in_one_line(error.other_settings)}")
        + remedy
    )
