"""Grades and scores another tool's outputs; the results are stored beside the outputs for later reports."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.asking.options import OutputsOptions, ScoreOptions
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.about import __version__
from harness.core.errors import Sentence, StoreError, option
from harness.core.files import disk_error, write_atomically
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import Grade, Question
from harness.foreign import outputs
from harness.grading.processes.pool import grader_names
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions, record
from harness.runs.layout import RESULTS, OutputsFolder, named_folder, run_around
from harness.runs.lock import hold
from harness.runs.manifest import OUTPUTS, UNKNOWN_MODEL
from harness.scoring import Score
from harness.scoring.pipeline import GradedBenchmark, grade_outputs, publish, score_of
from harness.scoring.score import ScoreWarning

if TYPE_CHECKING:
    from harness.benchmarks.prompts import Prompt

_READING_OPTIONS = (
    "tool", "benchmark", "response_key", "answer_key", "question_key", "id_key", "written_by", "repeats",
)  # fmt: skip
"""Options that say how a file is read. They are stored with its scores, in this order, so that a later message can
repeat the command.
"""

_BY_ID = "rows are matched with questions by the id alone, as the file has no text of a question to compare"
"""The warning of a score whose rows are matched by ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredFile:
    """A file's grades and scores. folder: where they are stored, beside the file.

    graded: one entry per benchmark. pairs: the questions and samples of the file, which is read anew each time.
    """

    folder: OutputsFolder
    scores: list[Score]
    graded: list[GradedBenchmark]
    pairs: outputs.Pairs

    @property
    def grades(self) -> Iterator[Grade]:
        """All grades, benchmark by benchmark, in the order of the file. They are read anew each time, since a file may
        have a million of them.
        """
        return chain.from_iterable(benchmark.grades for benchmark in self.graded)


def write_grades(out: Path | None, grades: Iterable[Grade]) -> None:
    """Write a JSON line for each grade to `out`, if it is given."""
    if out is not None:
        write_atomically(out, (codec.encode(grade) + b"\n" for grade in grades))


def score_file(path: Path, options: ScoreOptions, watcher: Watcher, *, store: bool = True) -> ScoredFile:
    """Grade and score the outputs in `path`; with `store`, store the results in the `OutputsFolder` beside it.

    If the folder cannot be written, there is only a warning. Raises `UsageError` with file and line.
    """
    read, pairs, card_questions = _read(path, options)
    # The digest is taken before grading, since `pairs` reads the replies only while they are graded: a file that
    # changes meanwhile is then known as changed after it was scored.
    digest = read.digest
    folder = OutputsFolder(path)
    graded = [
        _with_unanswered(benchmark, card_questions, path)
        for benchmark in grade_outputs(pairs, folder, options, watcher.graded)
    ]
    if _matches_by_id(read, options):
        graded = [_with_warning(benchmark, _BY_ID) for benchmark in graded]
    _warn_of_reading(read, options, watcher)
    scored = ScoredFile(folder=folder, scores=[score_of(each) for each in graded], graded=graded, pairs=pairs)
    if not store:
        return scored
    try:
        _keep(folder, graded, scored.scores, digest, _reading_options(options), options.written_by or read.model)
    except StoreError as error:
        watcher.warn(Sentence(f"the scores could not be stored, and no report can use them: {error.sentence.marked}"))
    write_grades(options.out, scored.grades)
    return scored


def check_file(path: Path, options: ScoreOptions) -> None:
    """Read the outputs in `path` to their end, and raise what would refuse to grade them."""
    _, pairs, card_questions = _read(path, options)
    grader_names(card_questions, options.sandbox)
    deque(pairs, maxlen=0)


def make_run(path: Path, options: ScoreOptions, watcher: Watcher) -> RunFolder:
    """Write the samples in `path` and their questions into the new run folder `options.as_run`; return the folder.

    Raises `UsageError` with file and line, before anything is written, and `StoreError` for a folder that is not new.
    """
    assert options.as_run is not None
    read, pairs, card_questions = _read(path, options)
    folder, n_unanswered = _write_run(options.as_run, read, pairs, card_questions, options)
    _warn_of_reading(read, options, watcher)
    if _matches_by_id(read, options):
        watcher.warn(Sentence(_BY_ID))
    if n_unanswered:
        watcher.warn(Sentence(_words_on_missing_rows(n_unanswered, card_questions, path)))
    return folder


def _write_run(
    path: Path, read: outputs.Outputs, pairs: outputs.Pairs, card_questions: Sequence[Question], options: ScoreOptions
) -> tuple[RunFolder, int]:
    """(new run folder at `path` with these samples and their questions, number of the card's questions without one).

    Raises `UsageError` with file and line, before anything is written, and `StoreError` for a folder that is not new.
    """
    # Nothing is written if the graders are refused, or if this first reading of the whole file finds a mistake.
    grader_names(card_questions, options.sandbox)
    in_file: dict[str, dict[str, Question]] = {}
    most: dict[str, int] = {}
    for question, sample in pairs:
        name = question.benchmark
        in_file.setdefault(name, {}).setdefault(question.question_id, question)
        most[name] = max(most.get(name, 0), sample.sample_index + 1)
    n_unanswered = 0
    if card_questions:
        by_id = in_file[card_questions[0].benchmark]
        n_unanswered = len(card_questions) - len(by_id)
        by_id.update({question.question_id: question for question in card_questions})
    folder = RunFolder(path)
    with hold(folder) as held:
        if held.manifest is not None:
            raise StoreError(
                f"{visible(str(path))} is a run already, and a file becomes a new run: name a new folder with "
                f"{option('as_run')}. `harness score {shlex.quote(visible(str(path)))}` scores the old one."
            )
        for name, by_id in in_file.items():
            folder.benchmark(name).create()
            questions.write(folder.benchmark(name), [*by_id.values()])
        _write_journals(pairs, {name: folder.benchmark(name).samples for name in in_file})
        stored = {OUTPUTS: {"digest": read.digest, "read": _reading_options(options)}}
        records = {
            name: BenchmarkRecord(
                identity={},
                plan=Plan(samples=most[name]),
                settings={**stored, questions.DIGEST: questions.seal(by_id.values())},
            )
            for name, by_id in in_file.items()
        }
        # The manifest comes last: samples without a manifest are no run, so that half a run is not scored.
        _manifest(options.written_by or read.model, records).save(folder)
    return folder, n_unanswered


def _read(path: Path, options: OutputsOptions) -> tuple[outputs.Outputs, outputs.Pairs, Sequence[Question]]:
    """The outputs in `path`, their (question, sample) pairs, and all questions of the benchmark that is named.

    The questions of the pairs are the benchmark's; without one, they are the file's own. Raises
    `UsageError`.
    """
    columns = {name: getattr(options, name) for name in ("response_key", "answer_key", "question_key", "id_key")}
    benchmark = options.benchmark
    prompt, card_questions = _questions_of(benchmark) if benchmark else (None, ())
    read = outputs.read(path, format=options.tool, questions=card_questions, repeats=options.repeats, **columns)
    if not benchmark:
        return read, read, ()
    # Imported late: it loads the prompts, which most files do not need.
    from harness.foreign.recognising import Recognised

    by_id = _matches_by_id(read, options)
    return read, Recognised(path, read, card_questions, benchmark, prompt=prompt, by_id=by_id), card_questions


def _matches_by_id(read: outputs.Outputs, options: OutputsOptions) -> bool:
    """Whether rows are matched with a benchmark's questions by their ids: the user names the column of ids, and the
    file has no text of a question, which would tell more.
    """
    return bool(options.benchmark) and options.id_key is not None and read.only_ids


def _with_unanswered(graded: GradedBenchmark, card_questions: Sequence[Question], path: Path) -> GradedBenchmark:
    """The benchmark with those of its questions that have no row in the file `path`, which the score counts as missing.

    card_questions: all questions of the benchmark; empty if none is named.
    """
    answered = {question.question_id for question in graded.questions}
    unanswered = [question for question in card_questions if question.question_id not in answered]
    if not unanswered:
        return graded
    warning = _words_on_missing_rows(len(unanswered), card_questions, path)
    return _with_warning(replace(graded, questions=[*graded.questions, *unanswered]), warning)


def _words_on_missing_rows(n: int, card_questions: Sequence[Question], path: Path) -> str:
    """The warning of `n` questions of a benchmark that have no row in the file `path`."""
    have = f"{'has' if n == 1 else 'have'} no row"
    return (
        f"{n} of {count_noun(len(card_questions), 'question')} of {visible(card_questions[0].benchmark, 80)} {have} in "
        f"{visible(path.name, 80)}, and {'counts' if n == 1 else 'count'} as missing; if only the others were set, "
        "name a file of the others as the benchmark"
    )


def _with_warning(graded: GradedBenchmark, warning: str) -> GradedBenchmark:
    return replace(graded, warnings=(*graded.warnings, ScoreWarning("file", warning)))


def is_outputs(path: Path, *, tool: str | None, described: bool) -> bool:
    """Whether `path` is scored as another tool's outputs, not as a run.

    described: whether columns or similar options were given; a path that does not exist then counts as a missing file
    of outputs, not as a missing run.
    """
    if tool is not None:
        return True
    # A file inside a run folder stands for the run, unless options for outputs say that the file itself is meant.
    if not described and run_around(path) is not None:
        return False
    if outputs.are_outputs(path):
        return True
    return not path.is_dir() and (path.exists() or described)


def open_scored(path: Path | str) -> RunFolder:
    """The scored run at `path`: a run folder, or the folder that `harness score` has made of another tool's outputs.

    path: the folder, or the outputs. Raises `StoreError` for a path that is none of these, and for outputs that are not
    scored or were changed since; the message names the command that scores them.
    """
    folder = OutputsFolder.scored_at(Path(path))
    source = Path(path) if folder is None else folder.source
    if folder is None and (not outputs.are_outputs(source) or run_around(source) is not None):
        return RunFolder.open(source)
    folder = folder or OutputsFolder(source)
    shown = shlex.quote(visible(str(source)))
    if not folder.manifest.is_file():
        raise StoreError(
            f"{visible(str(source))} is not scored yet: run `harness score {shown}` first. If it holds questions, take "
            "a run of them by `harness run`, with two samples of each, and score that run."
        )
    if not outputs.are_outputs(source):
        raise StoreError(f"{visible(str(source))} is not there, and {visible(str(folder.path))} holds only its grades.")
    source_options, reading_options = _stored_options(folder)
    if source_options.get("digest") != outputs.digest_of(source):
        again = _score_command(source, reading_options)
        raise StoreError(f"{visible(str(source))} was changed after it was scored: run `{again}` again.")
    return folder


def command_as_run(source: Path | str) -> str:
    """The command that makes a run of a file of outputs and scores it, with the options by which it was scored last."""
    scored = OutputsFolder.scored_at(Path(source))
    file = Path(source) if scored is None else scored.source
    folder = scored or OutputsFolder(file)
    read = _stored_options(folder)[1] if folder.manifest.is_file() else {}
    return f"{_score_command(file, read)} {option('score.as_run', named_folder(RESULTS, file.stem))}"


def _score_command(source: Path, reading_options: Mapping[str, Any]) -> str:
    """The command that scores a file. reading_options: how the file is read."""
    words = [option(f"score.{name}", value) for name, value in reading_options.items()]
    return " ".join([f"harness score {shlex.quote(visible(str(source)))}", *words])


@contextlib.contextmanager
def open_samples(path: Path | str) -> Iterator[RunFolder]:
    """Context manager: `open_scored`, which for outputs has their samples; a run may be scored or not.

    The samples of outputs are read anew and lie in a temporary folder until the block ends.
    """
    folder = open_scored(path)
    if not isinstance(folder, OutputsFolder):
        yield folder
        return
    _, pairs, _ = _read(folder.source, ScoreOptions.of(**_stored_options(folder)[1]))
    with tempfile.TemporaryDirectory(prefix="harness-") as temporary:
        names = Manifest.load(folder).benchmarks
        journals = {name: Path(temporary, f"{number}.jsonl") for number, name in enumerate(names)}
        _write_journals(pairs, journals)
        yield OutputsFolder(folder.source, journals)


def _write_journals(pairs: outputs.Pairs, journals: Mapping[str, Path]) -> None:
    """Write the samples into the file of their benchmark. Raises `StoreError` if the disk is full."""
    files: dict[str, IO[bytes]] = {}
    try:
        with contextlib.ExitStack() as open_files:
            for name, path in journals.items():
                files[name] = open_files.enter_context(path.open("wb"))
            for question, sample in pairs:
                files[question.benchmark].write(record.encode(sample))
    except OSError as error:
        raise disk_error(next(iter(journals.values())).parent, error) from error


def _stored_options(folder: OutputsFolder) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """(what the manifest says of the outputs, the options with which they were read)."""
    stored_record = next(iter(Manifest.load(folder).benchmarks.values()), None)
    stored = stored_record.settings.get(OUTPUTS) if stored_record is not None else None
    source_options = stored if isinstance(stored, Mapping) else {}
    read = source_options.get("read")
    return source_options, read if isinstance(read, Mapping) else {}


def _keep(
    folder: OutputsFolder,
    graded: Sequence[GradedBenchmark],
    scores: Sequence[Score],
    digest: str,
    read: Mapping[str, Any],
    model: str | None,
) -> None:
    """Write the files that a report reads, the manifest last, since readers ignore a folder without a manifest.

    graded: the benchmarks of the file. scores: their scores, in the same order. digest: checksum of the file. read: the
    options with which it was read. model: name of the model that wrote the file; None: unknown.
    """
    try:
        # The old manifest is removed first: files that are half replaced must not be read with it.
        folder.manifest.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(folder.manifest, error) from error
    records = {}
    for benchmark, score in zip(graded, scores, strict=True):
        questions.forget(benchmark.folder)
        questions.write(benchmark.folder, benchmark.questions)
        publish(benchmark, score)
        most = max(grade.sample_index for grade in benchmark.grades) + 1
        records[benchmark.folder.name] = BenchmarkRecord(
            identity={}, plan=Plan(samples=most), settings={OUTPUTS: {"digest": digest, "read": dict(read)}}
        )
    _manifest(model, records).save(folder)


def _manifest(model: str | None, records: dict[str, BenchmarkRecord]) -> Manifest:
    """A new manifest for the samples of another tool. model: the one that made them; None: unknown."""
    return Manifest(
        harness_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=model or UNKNOWN_MODEL,
        benchmarks=records,
    )


def _reading_options(options: ScoreOptions) -> dict[str, Any]:
    """The options that say how the file is read, as far as the user gave them."""
    return {name: getattr(options, name) for name in _READING_OPTIONS if name in options.changed}


def _warn_of_reading(read: outputs.Outputs, options: ScoreOptions, watcher: Watcher) -> None:
    """Warn of what a person should look at in the file, which was read to its end."""
    doubts = () if options.benchmark else read.doubts
    for sentence in filter(None, (*doubts, *read.notes, read.numbers.sentence)):
        watcher.warn(Sentence(sentence))


def _questions_of(benchmark: str) -> tuple[Prompt, Sequence[Question]]:
    """The prompt and the questions of the card with this name, or of this file.

    Raises `UsageError` if there is no such card.
    """
    # Imported late: cards are slow to import, and most files need none.
    from harness.benchmarks import catalogue, prompts, questions

    card = catalogue.load_or_make(benchmark)
    return prompts.find_prompt(card.prompt, card.prompts), questions.build(card).questions
