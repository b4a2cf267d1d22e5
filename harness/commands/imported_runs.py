"""Makes a run from another tool's outputs, in a folder next to them, for code that reads, grades or judges runs."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.benchmarks.sources.images import shared_folder
from harness.core import channel
from harness.core.errors import InUse, StoreError, UsageError
from harness.core.files import disk_errors, remove, write_atomically
from harness.core.installation import __version__
from harness.core.number_text import count_noun
from harness.core.options import options_of
from harness.core.records import Question
from harness.core.sanitize import visible
from harness.foreign import outputs
from harness.foreign.outputs import Keys
from harness.foreign.verdicts import GivenVerdicts
from harness.grading.processes.pool import grader_names
from harness.options.score import OutputsOptions
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, questions
from harness.runs.layout import RESULTS, imported_at, named_folder, run_around
from harness.runs.lock import locked
from harness.runs.manifest import OUTPUTS, UNKNOWN_MODEL
from harness.runs.merging import describe_unjoined

if TYPE_CHECKING:
    from harness.benchmarks.prompts import Prompt

_READING_OPTIONS = (
    *("tool", "benchmark", "response_key", "answer_key", "question_key", "id_key", "written_by"),
    *("sample_key", "verdict_key", "errors"),
)
"""Options that determine how a file is read. They are stored with its scores, in this order, so that a later message
can repeat the command.
"""

_BY_ID = "rows are matched to questions only by ID, because the file does not contain the question text to compare"
"""The warning for a score whose rows are matched by id."""


def check_file(path: Path, options: OutputsOptions, sandbox: str | None) -> None:
    """Read the outputs in `path` to the end, and raise any error that would prevent grading them in this sandbox."""
    prompt, card_questions = _questions_of(options.benchmark)
    _, pairs = _read(path, options, prompt, card_questions)
    grader_names(card_questions, sandbox)
    deque(pairs, maxlen=0)


def make_run(path: Path, options: OutputsOptions, sandbox: str | None) -> RunFolder:
    """Make a run from the samples and questions of the outputs in `path`, and return its folder.

    sandbox: where programs among the samples will be graded; nothing is written if they cannot be.
    The folder is `options.out`, or `FILE.scored` next to the file. It is unchanged if it already contains this reading
    of the file; an earlier reading in `FILE.scored` is replaced. Raises `UsageError` with file and line before anything
    is written, and `StoreError` for a folder that is not such a run or has verdicts on the earlier reading.
    """
    folder = RunFolder(options.out) if options.out is not None else imported_at(path)
    reading = {name: getattr(options, name) for name in _READING_OPTIONS if name in options.changed}
    former = None if _is_unfinished(folder) else Manifest.find(folder)
    prompt, card_questions = _questions_of(options.benchmark)
    # A reference that was corrected in the benchmark's file, or a newer card, makes a different run of the same rows.
    seal = questions.seal(card_questions) if card_questions else None
    if former is not None:
        stored = _stored(former)
        is_same = stored.get("read") == reading and stored.get("questions") == seal
        if is_same and stored.get("digest") == outputs.digest_of(path):
            return folder
    read, pairs = _read(path, options, prompt, card_questions)
    # Nothing is written if the graders are rejected, or if this first reading of the whole file finds a mistake.
    grader_names(card_questions, sandbox)
    in_file: dict[str, dict[str, Question]] = {}  # benchmark → question id → question
    most: dict[str, int] = {}  # benchmark → most samples of a question
    missing: dict[str, Counter[str]] = defaultdict(Counter)  # benchmark → question id → replies missing from the file
    for question, sample in pairs:
        name = question.benchmark
        in_file.setdefault(name, {}).setdefault(question.question_id, question)
        if sample is None:
            missing[name][question.question_id] += 1
        else:
            most[name] = max(most.get(name, 0), sample.sample_index + 1)
    doubts = () if options.benchmark else read.doubts
    warnings = [*doubts, *read.notes, *filter(None, [read.numbers.sentence])]
    if card_questions:
        by_id = in_file[card_questions[0].benchmark]
        if n_unanswered := len(card_questions) - len(by_id):
            warnings.append(_words_on_missing_rows(n_unanswered, card_questions, path))
        by_id.update({question.question_id: question for question in card_questions})
        if options.id_key is not None and read.only_ids:
            warnings.append(_BY_ID)
    facts = {"digest": read.digest, "read": reading, "questions": seal, "warnings": warnings}
    records = {
        name: BenchmarkRecord(
            identity={},
            plan=Plan(samples=most[name]),
            settings={OUTPUTS: {**facts, "missing": missing[name]}, questions.DIGEST: questions.seal(by_id.values())},
        )
        for name, by_id in in_file.items()
    }
    manifest = Manifest(
        harness_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        model=options.written_by or read.model or UNKNOWN_MODEL,
        benchmarks=records,
    )
    try:
        folder.refuse_foreign()
        with locked(folder):
            # Otherwise another process has made the run meanwhile, perhaps of the same reading.
            if _is_unfinished(folder) or Manifest.find(folder) == former:
                if former is not None:
                    _refuse_to_replace(folder, former, options)
                _write(folder, manifest, in_file, pairs)
                return folder
    except StoreError as error:
        if options.out is None:
            error.add(f"To write the run elsewhere, use `out={named_folder(RESULTS, path.stem)}`")
        raise
    return make_run(path, options, sandbox)


def _write(
    folder: RunFolder, manifest: Manifest, in_file: Mapping[str, Mapping[str, Question]], pairs: outputs.Pairs
) -> None:
    """Write the files of the run, replacing those of an earlier import. in_file: benchmark → question
    id → question. Raises `StoreError`.

    Until all is written, the folder is marked as unfinished: the next such command starts again.
    """
    write_atomically(folder.unfinished, b"")
    with disk_errors(folder.path):
        folder.manifest.unlink(missing_ok=True)
        for benchmark in {samples.parent for samples in folder.path.glob("*/samples.*")}:
            shutil.rmtree(benchmark)
    with contextlib.ExitStack() as opened:
        journals = {name: opened.enter_context(Journal.open(folder.benchmark(name))) for name in in_file}
        for name, by_id in in_file.items():
            questions.take_images(folder.benchmark(name), by_id.values(), shared_folder())
            questions.write(folder.benchmark(name), [*by_id.values()])
        for question, sample in pairs:
            if sample is not None:
                journals[question.benchmark].append(sample)
    manifest.save(folder)
    remove(folder.unfinished)


def _is_unfinished(folder: RunFolder) -> bool:
    """Whether an import into the folder was begun and not finished."""
    return folder.unfinished.exists() and not folder.manifest.exists()


def _refuse_to_replace(folder: RunFolder, former: Manifest, options: OutputsOptions) -> None:
    """Raise `StoreError` for an earlier reading that must not be replaced: in a folder that the user named, or with a
    person's verdicts or a judge's replies. former: the folder's manifest.
    """
    shown = visible(str(folder.path))
    if options.out is not None:
        raise StoreError(
            f"{shown} already contains a run, but a file needs a new run folder: specify one with `out`. "
            f"`harness score {shlex.quote(shown)}` scores the existing run."
        )
    judged = any(path.is_file() for path in (folder.path / "judge").rglob("*"))
    if judged or any(folder.benchmark(name).overrides.exists() for name in former.benchmarks):
        raise StoreError(
            f"{shown} contains verdicts from a person or judge for an earlier version of the file; move this folder "
            "elsewhere, or specify a new one with `out`"
        )


def _read(
    path: Path, options: OutputsOptions, prompt: Prompt | None, card_questions: Sequence[Question]
) -> tuple[outputs.Outputs, outputs.Pairs]:
    """The outputs in `path`, and their (question, sample) pairs.

    prompt, card_questions: as returned by `_questions_of`. The questions of the pairs are the benchmark's or, without a
    benchmark, the file's own. Raises `UsageError`.
    """
    columns = {name: getattr(options, name) for name in Keys._fields}
    benchmark, judged = options.benchmark, GivenVerdicts(options.verdict_key, options.errors)
    read = outputs.read(path, judged=judged, format=options.tool, questions=card_questions, **columns)
    if not benchmark:
        return read, read
    if read.are_judged:
        raise UsageError("FILE contains verdicts, so nothing is graded: omit this option", field="benchmark")
    # Imported late: it loads the prompts, which most files do not need.
    from harness.foreign.question_matching import Recognized

    # Match by id if the user names the column of ids and the file has no question texts, which would be more reliable.
    by_id = options.id_key is not None and read.only_ids
    return read, Recognized(path, read, card_questions, benchmark, prompt=prompt, by_id=by_id)


def _words_on_missing_rows(n: int, card_questions: Sequence[Question], path: Path) -> str:
    """The warning about `n` questions of a benchmark that have no row in the file `path`."""
    have = f"{'has' if n == 1 else 'have'} no row"
    return (
        f"{n} of {count_noun(len(card_questions), 'question')} of {visible(card_questions[0].benchmark, 80)} {have} in "
        f"{visible(path.name, 80)}, and {'counts' if n == 1 else 'count'} as missing. If only the remaining "
        "questions were asked, use a file with just those questions as the benchmark"
    )


def is_outputs(path: Path, options: OutputsOptions) -> bool:
    """Whether `path` is scored as another tool's outputs rather than as a run.

    With options that describe a file, a path that does not exist counts as a missing file, not as a missing run.
    """
    described = bool(options.of_outputs)
    if options.tool is not None:
        return True
    # A file inside a run folder refers to the run, unless options for outputs say that the file itself is meant.
    if RunFolder(path).manifest.is_file() or (not described and run_around(path) is not None):
        return False
    if outputs.are_outputs(path):
        return True
    return not path.is_dir() and (path.exists() or described)


def open_scored(path: Path | str) -> RunFolder:
    """The run at `path`: a run folder, or the run that `harness score` made from another tool's outputs.

    Warns about samples that are only in the run's shards. path: the folder, or the outputs. Raises `StoreError` for a
    path that is neither, and for outputs that are not scored or were changed since; the message names the command that
    scores them.
    """
    source = Path(path)
    if not outputs.are_outputs(source) or run_around(source) is not None:
        run = RunFolder.open(source)
        for sentence in describe_unjoined(run):
            channel.warn(sentence)
        return run
    folder, shown = imported_at(source), shlex.quote(visible(str(source)))
    if not folder.manifest.is_file():
        if isinstance(missing := folder.missing_manifest(), InUse):
            raise missing
        raise StoreError(
            f"{visible(str(source))} has not been scored: run `harness score {shown}` first. If it contains questions, "
            "sample each of them twice with `harness run`, and score that run."
        )
    stored = _stored(Manifest.load(folder))
    if stored.get("digest") != outputs.digest_of(source):
        read, options = stored.get("read"), options_of(OutputsOptions)
        given = read.items() if isinstance(read, dict) else ()
        words = (word for name, value in given if name in options for word in options[name].arguments(value))
        again = shlex.join(["harness", "score", visible(str(source)), *words])
        raise StoreError(f"{visible(str(source))} was changed after it was scored: run `{again}` again.")
    return folder


def _stored(manifest: Manifest) -> Mapping[str, Any]:
    """What a run's manifest says about the outputs that the run was made from: their digest, and how they were read."""
    stored = next((record.settings.get(OUTPUTS) for record in manifest.benchmarks.values()), None)
    return stored if isinstance(stored, Mapping) else {}


def _questions_of(benchmark: str | None) -> tuple[Prompt | None, Sequence[Question]]:
    """The prompt and the questions of the card with this name or in this file; none if no benchmark is named.

    Raises `UsageError` if there is no such card.
    """
    if not benchmark:
        return None, ()
    # Imported late: cards are slow to import, and most files need none.
    from harness.benchmarks import catalog, prompts, questions

    card = catalog.load(benchmark)
    return prompts.find_prompt(card.prompt, card.prompts), questions.build(card).questions
