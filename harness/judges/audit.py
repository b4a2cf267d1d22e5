"""A person's verdicts on samples drawn from a scored run, and how they differ from the grader's.

The verdicts are overrides (corrections by hand, which change no stored grade). They are stored one by one, so an audit
may stop after any sample and continue later, in the terminal, with a file, or in the viewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.core import codec
from harness.core.errors import NotWritable, UsageError
from harness.core.files import read_named
from harness.core.records import Grade, Key, SampleRecord, VerdictName
from harness.core.sanitize import quoted, visible
from harness.grading.verifier import JUDGE_RULE
from harness.options.finished_runs import AuditOptions
from harness.runs import overrides
from harness.runs.line_file import write_lines
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.viewer import audit_samples
from harness.viewer.audit_samples import AuditItem

WHY = "audit"
"""The reason (`Override.why`) for a manual verdict on a sample that was drawn at random."""

WHY_UNDECIDED = "undecided by the grader"
"""The reason for a verdict by hand on a sample that was chosen because the grader could not decide."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of one benchmark.

    accuracy: according to the grader, a fraction. n_drawn: number of samples drawn for the audit. items: the drawn
    samples that no person has judged. rubric: the rubric that the judge received; empty if there is none. by_hand: how
    the manual verdicts differ from the grader's, and the accuracies with and without them, in words; empty if there are
    none. undecided: whether the samples are the undecided ones, not drawn at random.
    """

    benchmark: str
    accuracy: float | None
    n_drawn: int
    items: list[AuditItem]
    rubric: str = ""
    by_hand: str = ""
    undecided: bool = False


def audit(opened: OpenRun, options: AuditOptions) -> list[Audit]:
    """Return the audits of a scored run's benchmarks. If the options name a file of verdicts, store its verdicts first.

    A file that was written with `undecided` yields the audits of the undecided samples. Raises `UsageError` for a file
    with a mistake (no verdict from it is then stored), and `StoreError` if the run is damaged or not scored.
    """
    names, undecided = list(opened.benchmarks), options.undecided
    if options.benchmark is not None:
        opened.benchmark(options.benchmark)
    if options.out is not None:
        _check_replaceable(options.out, options.verdicts)
    if options.verdicts is not None:
        # Read into a list, so that every line is checked before the first verdict is stored.
        rows = [*_read(options.verdicts)]
        lines = [*_verdicts(options.verdicts, rows, opened, options.benchmark)]
        for benchmark, row in lines:
            _store(benchmark, row.key, row.verdict, options.who, row.points, undecided=row.undecided)
        in_file = {row.benchmark for _, row in rows}
        names = [name for name in names if name in in_file]
        if all(row.undecided for _, row in rows):  # The file was written with `undecided`.
            undecided = True
    if options.benchmark is not None:
        names = [options.benchmark]
    audits = [_audit(opened.benchmark(name), options.samples, undecided=undecided) for name in names]
    if options.out is not None:
        try:
            write_lines(options.out, (item for one_audit in audits for item in one_audit.items))
        except NotWritable as error:
            error.add("Set `out` to a different path")
            raise
    return audits


def judge(
    benchmark: OpenBenchmark,
    key: Key,
    verdict: VerdictName | None,
    who: str | None,
    *,
    undecided: bool = False,
    points: float | None = None,
) -> None:
    """Store a person's verdict on the sample `key`, unless the person already gave it, and update the score.

    verdict: None withdraws the previous verdict, unless there are points, which determine it. who: the person's name;
    None = the user of this machine. undecided: as in `AuditItem`. Raises `UsageError` if the name is empty or too long,
    `StoreError` if writing fails.
    """
    _store(benchmark, key, verdict, who, points, undecided=undecided)
    benchmark.refresh()
    audit_samples.update_score(benchmark)


def _store(
    benchmark: OpenBenchmark,
    key: Key,
    verdict: VerdictName | None,
    who: str | None,
    points: float | None,
    *,
    undecided: bool,
) -> None:
    """Store a person's verdict or points, unless the person already gave them.

    undecided: as in `AuditItem`. Raises `UsageError` for points that cannot be given.
    """
    override, grade, why = benchmark.overrides.get(key), benchmark.grade(key), WHY_UNDECIDED if undecided else WHY
    most = msgspec.UNSET if grade is None or grade.points is msgspec.UNSET else grade.points[1]
    given: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET
    _check_points(points, grade, "the points")
    if points is not None and most is not msgspec.UNSET:
        right_from = benchmark.question(key.question_id).rules.right_from
        verdict, given = "correct" if points >= (right_from or most) else "wrong", (points, most)
    if override is None or (override.verdict, override.points) != (verdict, given):
        graded = None if grade is None else grade.verdict
        who = overrides.this_user() if who is None else who
        overrides.correct(benchmark.folder, key, verdict, graded=graded, who=who, why=why, points=given)


def _check_points(points: float | None, grade: Grade | None, what: str) -> None:
    """Raise `UsageError` for points that are not possible for a sample with this grade."""
    most = 0.0 if grade is None or grade.points is msgspec.UNSET else grade.points[1]
    if points is None or (most and -math.inf < points <= most):
        return
    expected = f"at most {most:g}" if most else "a verdict instead, because no judge awarded points"
    raise UsageError(f"{what} are {points:g}; expected {expected}", field="verdicts")


def _audit(benchmark: OpenBenchmark, samples: int, *, undecided: bool) -> Audit:
    """The current state of a benchmark's audit; the score is updated with the verdicts by hand.

    samples: largest number of samples that the person is asked about. undecided: ask about the undecided samples.
    """
    grades = [grade for each in audit_samples.counted_questions(benchmark) for grade in each.grades]
    score = audit_samples.update_score(benchmark)
    keys = [grade.key for grade in grades if grade.verdict == "undecided"] if undecided else _shuffled(grades)
    keys = keys[:samples]
    return Audit(
        benchmark=benchmark.name,
        accuracy=score.accuracy and score.accuracy.value,
        n_drawn=len(keys),
        items=[
            audit_samples.item(benchmark, key, undecided=undecided) for key in keys if key not in benchmark.overrides
        ],
        rubric=audit_samples.rubric_used(benchmark),
        by_hand=benchmark.override_sentence(),
        undecided=undecided,
    )


def _shuffled(grades: Iterable[Grade]) -> list[Key]:
    """The samples that a judge decided, or all samples if it decided none, in a random order that never changes.

    The order depends on neither texts nor verdicts, so a larger draw contains each smaller one.
    """
    by_rule = {grade.key: grade.rule for grade in grades}
    by_judge = [key for key, rule in by_rule.items() if rule == JUDGE_RULE]
    return sorted(by_judge or by_rule, key=lambda key: codec.digest(["audit", key.question_id, key.sample_index]))


def _check_replaceable(out: Path, verdicts: Path | None) -> None:
    """Raise `UsageError` unless `out` is new, has only unfilled lines, or is the file whose verdicts are stored."""
    if not out.is_file() or (verdicts is not None and verdicts.is_file() and out.samefile(verdicts)):
        return
    try:
        unfilled = all(row.verdict is None and row.points is None for _, row in _read(out))
    except UsageError:
        unfilled = False
    if not unfilled:
        raise UsageError(
            f"{out} already contains verdicts or other text that would be lost. Store its verdicts with `verdicts`, "
            f"or set `out` to a different file",
            field="out",
        )


def _verdicts(
    path: Path, rows: Iterable[tuple[str, VerdictLine]], opened: OpenRun, only: str | None
) -> Iterator[tuple[OpenBenchmark, VerdictLine]]:
    """Yield (benchmark, line) for each row with a verdict in the file `path`.

    only: the benchmark that is audited; None: all of the run. Raises `UsageError` that names the line, also for a
    verdict on a reply other than the stored one, and for a file without a verdict.
    """
    benchmarks: dict[str, OpenBenchmark] = {}
    for where, row in rows:
        if row.verdict is None and row.points is None:
            continue
        if only not in (None, row.benchmark):
            raise UsageError(
                f"{where} contains a verdict on {visible(row.benchmark, 80)}, but `benchmark` is "
                f"{visible(str(only), 80)}: "
                "omit the option or remove the line",
                field="benchmark",
            )
        if row.benchmark not in benchmarks:
            benchmarks[row.benchmark] = opened.benchmark(row.benchmark)
        benchmark, key = benchmarks[row.benchmark], row.key
        if benchmark.grade(key) is None:
            raise UsageError(
                f"{where}: {visible(row.benchmark, 80)} has no graded sample {row.sample_index} of question "
                f"{quoted(row.question_id)}; expected a sample of {visible(opened.label, 200)}"
            )
        _check_points(row.points, benchmark.grade(key), f"{where}: the points")
        shown = audit_samples.item(benchmark, key)
        if (row.text, row.answer) != (shown.text, shown.answer):  # as when it was written for another run
            raise UsageError(
                f"{where}: the verdict on sample {row.sample_index} of question {quoted(row.question_id)} is for "
                f"a different reply, or a different answer, than the one in {visible(opened.label, 200)}. Nothing was "
                "stored. Expected a file that `harness audit` wrote after the run was last scored; to write one, use "
                "`out`",
                field="verdicts",
            )
        yield benchmark, row
    if not benchmarks:
        raise UsageError(
            f"{path} contains no verdicts: set `verdict` in its lines to correct, wrong or undecided",
            field="verdicts",
        )


Line = TypeVar("Line")
"""The type of a file's lines."""

MAX_FILE_BYTES = 1 << 30
"""Largest file of verdicts, in bytes; a larger file is rejected."""


class VerdictLine(SampleRecord, frozen=True, kw_only=True):
    """The fields of an `AuditItem` that are read; a spreadsheet or a script may have dropped or changed the others."""

    text: str = ""
    answer: str | None = None
    verdict: VerdictName | None = None
    undecided: bool = False
    points: float | None = None


def _read(path: Path) -> Iterator[tuple[str, VerdictLine]]:
    """Yield (location, sample) for each line of a file of verdicts. Raises `UsageError` that names the line."""
    expected = "Expected a line that `harness audit` wrote, with only its `verdict` field filled in"
    return read_lines(path, VerdictLine, "verdicts", expected)


def read_lines(path: Path, line_type: type[Line], field: str, expected: str) -> Iterator[tuple[str, Line]]:
    """Yield (location in words, line) for each line of a file. Raises `UsageError` that names the line.

    field: the option that names the file. expected: a sentence on what a line is.
    """
    try:
        data = read_named(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", field=field) from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes, so it cannot be a {field} file", field=field)
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield where, codec.decode(line, line_type)
        except codec.DecodeError as error:
            raise UsageError(f"{where}: {quoted(str(error))}. {expected}") from error
