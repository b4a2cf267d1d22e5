"""Grades the samples of a run, or another tool's outputs, with a second grader. It changes no verdict."""

from __future__ import annotations

from harness.asking.keywords import FilePath
from harness.grading.second.second_opinion import Agreement, agreement, second_verdicts
from harness.runs import Manifest, RunFolder, grades, opinions, questions, read_samples
from harness.verbs.outputs import ScoredFile
from server_launchers import isolated


def second_opinions(
    source: RunFolder | ScoredFile, library: str, python: FilePath | None = None
) -> dict[str, Agreement]:
    """Grade a scored source with another grader; return, by benchmark, how far it agrees with the stored grades.

    The stored grades stay as they are. library: the other grader's name, such as math-verify. python: the interpreter
    that has the grader installed; None: the interpreter that runs this. Raises `UsageError` if it is not installed.
    """
    interpreter = str(python or isolated.PYTHON)
    return (
        _of_run(source, library, interpreter)
        if isinstance(source, RunFolder)
        else _of_file(source, library, interpreter)
    )


def _of_run(run: RunFolder, library: str, python: str) -> dict[str, Agreement]:
    """The agreement for each benchmark of a run; the other grader's verdicts are stored beside the grades.

    library: the other grader's name. python: the interpreter that has it.
    """
    agreements = {}
    for name in Manifest.load(run).benchmarks:
        folder = run.benchmark(name)
        by_id = {question.question_id: question for question in questions.read(folder)}
        theirs = second_verdicts(library, by_id, read_samples(folder), python=python)
        opinions.replace(folder, library, theirs)
        agreements[name] = agreement(grades.read(folder), theirs)
    return agreements


def _of_file(scored: ScoredFile, library: str, python: str) -> dict[str, Agreement]:
    """The agreement for each benchmark of another tool's scored outputs.

    library: the other grader's name. python: the interpreter that has it.
    """
    agreements = {}
    for benchmark in scored.graded:
        name = benchmark.folder.name
        by_id = {question.question_id: question for question in benchmark.questions}
        samples = (sample for _, sample in scored.pairs if sample.benchmark == name)
        agreements[name] = agreement(benchmark.grades, second_verdicts(library, by_id, samples, python=python))
    return agreements
