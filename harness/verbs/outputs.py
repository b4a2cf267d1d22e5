"""Another tool's outputs, graded and scored as they are, and what came of it kept beside them for reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.asking.options import ScoreOptions
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.about import __version__
from harness.core.errors import StoreError
from harness.core.files import disk_error, write_atomically
from harness.core.inert import visible
from harness.core.records import Grade, Question
from harness.core.wording import Sentence, option
from harness.foreign import outputs
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions
from harness.runs.layout import OutputsFolder
from harness.runs.manifest import OUTPUTS, UNKNOWN_MODEL
from harness.scoring import Score
from harness.scoring.pipeline import GradedBenchmark, grade_outputs, publish, score_of

_READ = (*("tool", "benchmark", "response_key", "answer_key", "question_key", "id_key", "written_by", "repeats"),)
"""Options that a record of the scored file keeps, in the order of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredFile:
    """A file's grades and what they make. folder: beside the file, where they are kept.

    graded: one value a benchmark; pairs: questions and samples, read again each time.
    """

    folder: OutputsFolder
    scores: list[Score]
    graded: list[GradedBenchmark]
    pairs: outputs.Pairs

    @property
    def grades(self) -> list[Grade]:
        """All grades, benchmark by benchmark in the order of the file."""
        return [grade for benchmark in self.graded for grade in benchmark.grades]


def write_grades(out: Path | None, grades: Sequence[Grade]) -> None:
    """Write a JSON line for each grade to `out`, if it is given."""
    if out is not None:
        write_atomically(out, b"".join(codec.encode(grade) + b"\n" for grade in grades))


def score_file(path: Path, options: ScoreOptions, watcher: Watcher) -> ScoredFile:
    """The grades and, by benchmark, the scores of the outputs in `path`, kept in the `OutputsFolder` beside it; a place
    that cannot be written is a warning. Raises `UsageError` with file and line.
    """
    columns = {name: getattr(options, name) for name in ("response_key", "answer_key", "question_key", "id_key")}
    benchmark = options.benchmark
    card_questions = _questions_of(benchmark) if benchmark else ()
    pairs: outputs.Pairs = outputs.read(
        path, format=options.tool, questions=card_questions, repeats=options.repeats, **columns
    )
    if benchmark:
        from harness.foreign.recognising import Recognised  # prompts, likewise

        pairs = Recognised(path, pairs, card_questions, benchmark)
    digest = outputs.digest_of(path)  # before the replies are read: what is written later makes another digest
    folder = OutputsFolder(path)
    graded = grade_outputs(pairs, folder, options, watcher.graded)
    scores = [score_of(graded_benchmark) for graded_benchmark in graded]
    read = {name: getattr(options, name) for name in _READ if name in options.changed}
    try:
        _keep(folder, graded, digest, read, options.written_by or UNKNOWN_MODEL)
    except StoreError as error:
        watcher.warn(Sentence(f"the scores are not kept, so that no report can use them: {error.sentence.marked}"))
    scored = ScoredFile(folder=folder, scores=scores, graded=graded, pairs=pairs)
    write_grades(options.out, scored.grades)
    return scored


def is_outputs(path: Path, *, tool: str | None, described: bool) -> bool:
    """Whether `path` is scored as another tool's outputs, not as a run. described: columns and the like are named for
    it, by which a path that is not there is a file that is not there."""
    if tool is not None:
        return True
    if outputs.are_outputs(path):
        return True
    return not path.is_dir() and (path.exists() or described)


def open_scored(path: Path | str) -> RunFolder:
    """The scored run at `path`: a run folder, or what `harness score` made of another tool's outputs.

    Raises `StoreError` where there is neither, and where outputs are not scored, or were changed since; it names the
    command that scores them.
    """
    source = Path(path)
    if not outputs.are_outputs(source):
        return RunFolder.open(source)
    folder = OutputsFolder(source)
    shown = shlex.quote(visible(str(source)))
    if not folder.manifest.is_file():
        raise StoreError(f"{visible(str(source))} is not scored yet: give `harness score {shown}` first.")
    record = next(iter(Manifest.load(folder).benchmarks.values()), None)
    stored = record.settings.get(OUTPUTS) if record is not None else None
    source_options = stored if isinstance(stored, Mapping) else {}
    if source_options.get("digest") != outputs.digest_of(source):
        read = source_options.get("read")
        words = [option(f"score.{name}", value) for name, value in (read if isinstance(read, Mapping) else {}).items()]
        again = " ".join([f"harness score {shown}", *words])
        raise StoreError(f"{visible(str(source))} was changed after it was scored: give `{again}` again.")
    return folder


def _keep(
    folder: OutputsFolder, graded: Sequence[GradedBenchmark], digest: str, read: Mapping[str, Any], model: str
) -> None:
    """Write what a report reads; the manifest last, so that nothing is believed before it is whole."""
    try:
        folder.manifest.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(folder.manifest, error) from error
    records = {}
    for benchmark in graded:
        questions.forget(benchmark.folder)
        questions.write(benchmark.folder, benchmark.questions)
        publish(benchmark)
        most = max(grade.sample_index for grade in benchmark.grades) + 1
        records[benchmark.folder.name] = BenchmarkRecord(
            identity={}, plan=Plan(samples=most), settings={OUTPUTS: {"digest": digest, "read": dict(read)}}
        )
    Manifest(
        harness_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=model,
        benchmarks=records,
    ).save(folder)


def _questions_of(benchmark: str) -> Sequence[Question]:
    from harness.benchmarks import catalogue, questions  # cards, which most files do without

    return questions.build(catalogue.load(benchmark)).questions
