"""What `harness plan` is asked about: benchmarks and scored runs, with or without a number of samples."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness.benchmarks import catalogue, usual_columns
from harness.benchmarks.sources import tables
from harness.benchmarks.usual_columns import ANSWER_COLUMNS, QUESTION_COLUMNS
from harness.core.errors import UsageError, option
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.foreign import formats
from harness.runs.layout import RESULTS, OutputsFolder, run_around, run_in_results
from harness.verbs.former_run import runs_of


@dataclass(frozen=True, kw_only=True)
class PlanSource:
    """What to plan. name: of a benchmark, or the path of its card, of a file of questions, of a scored run or of
    another tool's scored outputs. samples: of each question, if their smallest difference is asked for.
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
    def of_run(self) -> bool:
        """Whether `name` is that of a run or of scored outputs, and no benchmark's and no file of questions."""
        return not self.of_card and self.n_questions is None

    @property
    def in_a_command(self) -> str:
        """The source as a command names it: `aime24:64`."""
        return self.name if self.samples is None else f"{self.name}:{self.samples}"

    @cached_property
    def n_questions(self) -> int | None:
        """The number of questions if `name` is a file of questions without replies, and None if it is not.

        Such a file has the usual columns of questions and reference answers. Raises `UsageError` for a damaged file,
        and for one that has neither these columns nor replies.
        """
        path = Path(self.name)
        if not path.is_file() or run_around(path) is not None or not tables.is_named_as_data(path):
            return None
        if OutputsFolder(path).manifest.is_file():
            return None
        rows = tables.stream(path, responses=True)
        first = next(rows, None)
        if first is None or formats.recognise(first) != "columns":
            return None
        columns = first.value.keys()
        if usual_columns.find(formats.RESPONSE_COLUMNS, columns) is not None:
            return None
        usual = {"question": QUESTION_COLUMNS, "reference answer": ANSWER_COLUMNS}
        if missing := [role for role, names in usual.items() if usual_columns.find(names, columns) is None]:
            have = ", ".join(visible(name, 60) for name in list(columns)[:40]) or "none"
            cures = " and ".join(f"the column of the {role} to {usual[role][0]!r}" for role in missing)
            raise UsageError(
                f"{visible(self.name, 200)}: no column has a usual name of the {' or the '.join(missing)}; its columns "
                f"are {have}. Rename {cures}; or plan a card that names the columns and states `questions: N` "
                "(docs/deciding.md shows one). If the file holds replies, score it first: harness score FILE "
                f"{option('score.response_key', 'NAME')}"
            )
        return 1 + sum(1 for _ in rows)

    @property
    def benchmark(self) -> str:
        """The name of the benchmark, or of the card or file of questions at this path; of a source that is no run's."""
        if self.n_questions is not None:
            return catalogue.load_or_make(self.name).name
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
    names = [word for word in words if word]
    for name, number in itertools.pairwise(names):
        if number.isdecimal() and not Path(number).exists():
            benchmark, _, own = (name, "", "") if Path(name).exists() else name.partition(":")
            samples = next((text for text in (own, number) if _is_number_of_samples(text)), "64")
            together = visible(f"{benchmark or 'aime24'}:{samples}", 100)
            raise UsageError(f"{number} is no benchmark: a number of samples stands behind the name, as in {together}")
    return [_source_of(name) for name in names]


def _is_number_of_samples(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MAX_SAMPLES)) and 1 <= int(text) <= MAX_SAMPLES


def _source_of(word: str) -> PlanSource:
    """The source that one word names. Raises `UsageError`."""
    name, colon, number = word.rpartition(":")
    source = PlanSource(name=word)
    if colon and name and not Path(word).exists():
        names_one = Path(name).exists() or catalogue.knows(name) or number.isdecimal()
        two_numbers = name.rpartition(":")[2].isdecimal() and ":" in name and not Path(name).exists()
        if names_one and (two_numbers or not _is_number_of_samples(number)):
            raise UsageError(
                f"{visible(word, 80)}: expected a benchmark or a run, and one number of samples from 1 to "
                f"{MAX_SAMPLES}, as in aime24:64"
            )
        if names_one:
            source = PlanSource(name=name, samples=int(number))
    if source.of_card and not runs_of(source.name, RESULTS):
        _refuse_suite_or_run(source)
        card = catalogue.load(source.name)
        # An alias stands for the benchmark's own name, under which runs are stored.
        if Path(source.name).suffix not in catalogue.CARD_SUFFIXES:
            source = replace(source, name=card.name)
    return source


def _refuse_suite_or_run(source: PlanSource) -> None:
    """Raise `UsageError` for the name of a suite, or of a run in `results/`, that is no benchmark's name as well."""
    suite = next((path for path in catalogue.suites() if path.stem == source.name), None)
    run = run_in_results(source.name)
    if (suite is None and run is None) or catalogue.knows(source.name):
        return
    number = "" if source.samples is None else f":{source.samples}"
    if suite is not None:
        names = catalogue.benchmarks_of_suite(suite)
        raise UsageError(
            f"{source.name} is a suite, and a plan takes benchmarks: give {' '.join(name + number for name in names)}"
        )
    raise UsageError(f"{visible(source.name, 80)} is no benchmark. Did you mean the run {visible(str(run))}{number}?")
