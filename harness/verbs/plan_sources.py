"""What `harness plan` is asked about: benchmarks and scored runs, with or without a number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.benchmarks import catalogue
from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.runs import Manifest, RunFolder, questions
from harness.runs.layout import RESULTS, run_in_results
from harness.scoring import Score
from harness.verbs.known_questions import known_as
from harness.verbs.sweep.file import read, suites


@dataclass(frozen=True, kw_only=True)
class PlanSource:
    """What to plan. name: of a benchmark, or the path of its card, of a scored run or of another tool's scored outputs.
    samples: of each question, if their smallest difference is asked for.
    """

    name: str
    samples: int | None = None

    @property
    def of_card(self) -> bool:
        """Whether `name` is a benchmark's, or the path of a card, and no run's."""
        path = Path(self.name)
        if path.suffix in catalogue.CARD_SUFFIXES and path.is_file():
            return True
        return not path.exists() and len(path.parts) == 1

    @property
    def benchmark(self) -> str:
        """The name of the benchmark, or of the card at this path; of a source that is no run's."""
        return catalogue.load(self.name).name if Path(self.name).suffix in catalogue.CARD_SUFFIXES else self.name


def sources_of(arguments: Sequence[str]) -> list[PlanSource]:
    """What the arguments name, such as `aime24:64`, `results/mine` or `aime24:64,math500`.

    Raises `UsageError` for a name that is no benchmark's and no path, and for a number of samples that is none.
    """
    # As in `harness run`, commas stand between benchmarks; a path may have them, too.
    words = [
        word.strip()
        for argument in arguments
        for word in ([argument] if Path(argument).exists() else argument.split(","))
    ]
    return [_source_of(word) for word in words if word]


def _source_of(word: str) -> PlanSource:
    """The source that one word names. Raises `UsageError`."""
    name, colon, number = word.rpartition(":")
    source = PlanSource(name=word)
    if colon and name and not Path(word).exists():
        names_one = Path(name).exists() or catalogue.knows(name) or number.isdecimal()
        two_numbers = name.rpartition(":")[2].isdecimal() and ":" in name and not Path(name).exists()
        if names_one and (two_numbers or not number.isdecimal() or not 1 <= int(number) <= MAX_SAMPLES):
            raise UsageError(
                f"{visible(word, 80)}: expected a benchmark or a run, and one number of samples from 1 to "
                f"{MAX_SAMPLES}, as in aime24:64"
            )
        if names_one:
            source = PlanSource(name=name, samples=int(number))
    if source.of_card and not _runs_of(source.name, RESULTS):
        _refuse_suite_or_run(source)
        card = catalogue.load(source.name)
        # An alias stands for the benchmark's own name, under which runs are stored.
        if Path(source.name).suffix not in catalogue.CARD_SUFFIXES:
            source = replace(source, name=card.name)
    return source


def _refuse_suite_or_run(source: PlanSource) -> None:
    """Raise `UsageError` for the name of a suite, or of a run in `results/`, that is no benchmark's name as well."""
    suite = next((path for path in suites() if path.stem == source.name), None)
    run = run_in_results(source.name)
    if (suite is None and run is None) or catalogue.knows(source.name):
        return
    number = "" if source.samples is None else f":{source.samples}"
    if suite is not None:
        names = dict.fromkeys(str(entry["benchmark"]) for entry in read(suite).content["benchmarks"])
        raise UsageError(
            f"{source.name} is a suite, and a plan takes benchmarks: give {' '.join(name + number for name in names)}"
        )
    raise UsageError(f"{visible(source.name, 80)} is no benchmark. Did you mean the run {visible(str(run))}{number}?")


def _runs_of(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark in the folder `results`."""
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    return [folder for folder in folders if folder.benchmark(benchmark).path.is_dir()]


def former_run(benchmark: str, results: Path) -> RunFolder | None:
    """The run in the folder `results` with the latest scores of this benchmark, among runs whose score has a sampling
    error (they have several samples of a question) and whose questions are known to be the benchmark's (`known_as`).

    None if no run has its questions. Raises `StoreError` if runs of it exist but none is scored, `UsageError` if every
    scored run has one sample of each question.
    """
    of_it = [folder for folder in _runs_of(benchmark, results) if _has_its_questions(folder, benchmark)]
    with_scores = [folder for folder in of_it if folder.benchmark(benchmark).scores.is_file()]
    latest = sorted(with_scores, key=lambda folder: folder.benchmark(benchmark).scores.stat().st_mtime, reverse=True)
    for folder in latest:
        score = Score.load(folder.benchmark(benchmark))
        if score is not None and score.sampling_error is not None:
            return folder
    name = visible(benchmark, 80)
    if latest:
        raise UsageError(f"every scored run of {name} in {results} has {no_spread(name)}")
    if of_it:
        raise StoreError(f"{of_it[0].path} is a run of {name} but is not scored: run harness score {of_it[0].path}")
    return None


def _has_its_questions(folder: RunFolder, benchmark: str) -> bool:
    """Whether the run may have the benchmark's questions: a file of the user may have only its name."""
    record = Manifest.load(folder).benchmarks.get(benchmark)
    if record is None:
        return False
    planned = questions.read_planned(folder.benchmark(benchmark), record)
    return known_as(benchmark, record, planned) is not None


def no_spread(name: str) -> str:
    """The end of an error about a run that has one sample of each question, with what to do."""
    return (
        f"one sample of each question, which shows no spread. Take two and score them: harness run {name}:2 … && "
        f"harness score results/…"
    )
