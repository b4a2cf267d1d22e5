"""The interface of packages that decide answers that no rule can compare, such as programs (`kind: program`).

Such a package declares an entry point in the group `harness.answers`; `reasoning-programs` declares `program`. It
imports nothing of the harness, and takes and returns plain values. A card of this kind names the entry point as its
grader, so that every question specifies what decides its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from harness.core import plugins
from harness.core.errors import UsageError
from harness.core.installation import cache_folder
from harness.core.records import Question, Sample, VerdictName
from reasoning_answers import Extraction, Verdict
from reasoning_answers.host import conclude, final_part


class PackageVerdict(Protocol):
    """A package's verdict on a reply; each attribute is as in `Verdict`, for the part of the reply that was passed."""

    outcome: VerdictName
    rule: str
    start: int
    end: int
    vote: str
    steps: tuple[str, ...]
    grader: str


class PackageGrader(Protocol):
    """Decides the answers of one kind, in workers that start with the first answer."""

    @property
    def name(self) -> str:
        """The name that grades record. Raises `ValueError` if this machine cannot decide such answers."""
        ...

    def ask(self, reference: str, reply: str | None, *, with_steps: bool = False) -> Future[PackageVerdict]:
        """Start to decide a reply; the future returns the verdict.

        reply: the text after the reasoning; None if the reasoning never ended. with_steps: include its steps.
        """
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class AnswerPackage(Protocol):
    """What a package offers for its kind of answer: it reads references, shows them, and starts graders.

    cache: a folder for files that later commands need. Functions raise `ValueError` with a sentence for the user, and
    `RuntimeError` if nothing can be decided any more (the command ends with exit code 5).
    """

    def read_row(self, settings: Mapping[str, Any], text: str, row: Mapping[str, Any], cache: Path) -> tuple[str, str]:
        """Return (text of the question, reference) of a data row. settings: the card's settings."""
        ...

    def read_reference(self, text: str, cache: Path) -> str:
        """Return the reference for a user's text in `harness grade`."""
        ...

    def describe(self, reference: str) -> str:
        """Return the reference in human-readable form."""
        ...

    def example_replies(self, reference: str) -> tuple[str, str] | None:
        """Return (right reply, wrong reply) to test the grader with; None if the reference has no solution."""
        ...

    def sandbox_status(self) -> str:
        """Return a line for `harness doctor`: what decides such answers on this machine, after a test run."""
        ...

    Grader: Callable[[int, str | None, Path], PackageGrader]
    """Start a grader with a number of workers, a value of the `sandbox` option (None: the default), and the cache."""


class Decider:
    """Decides a run's answers by the grader of a package. Its functions raise `UsageError` and `HelperFailed`."""

    def __init__(self, package: AnswerPackage, workers: int, sandbox: str | None) -> None:
        # The option is named if it was given, because its value decides what is missing here.
        self._field = {} if sandbox is None else {"field": "sandbox", "value": sandbox}
        with plugins.failures(**self._field):
            self._grader = package.Grader(workers, sandbox, cache_folder())

    @property
    def name(self) -> str:
        """The name that grades record."""
        with plugins.failures(**self._field):
            return self._grader.name

    def ask(self, question: Question, sample: Sample, *, with_steps: bool = False) -> Future[Verdict]:
        """Start to decide the answer of `sample`; the future returns the verdict. with_steps: include its steps."""
        text = sample.text or ""
        start, end = final_part(text) or (0, 0)
        verdict = Future[Verdict]()

        def settle(decided: Future[PackageVerdict]) -> None:
            """Pass on the decision, for the whole text of the sample."""
            try:
                with plugins.failures(**self._field):
                    verdict.set_result(_verdict(question, decided.result(), text, start))
            except BaseException as error:  # noqa: BLE001 - the caller of `result` gets it
                verdict.set_exception(error)

        asked = self._grader.ask(question.references[0], text[start:end] or None, with_steps=with_steps)
        asked.add_done_callback(settle)
        return verdict

    def close(self) -> None:
        """Stop the workers."""
        self._grader.close()


def _verdict(question: Question, decision: PackageVerdict, text: str, start: int) -> Verdict:
    """The verdict for a sample with this text, whose final part begins at `start`."""
    verdict = Verdict(decision.outcome, decision.rule, steps=decision.steps, grader=decision.grader)
    if decision.outcome == "no_answer":
        return verdict
    span = start + decision.start, start + decision.end
    extraction = Extraction(text[slice(*span)], *span, "reply")
    of_answer = replace(verdict, vote=decision.vote)
    return replace(conclude(question, extraction, lambda _: of_answer, grader=decision.grader), steps=decision.steps)


def is_elsewhere(grader: str) -> bool:
    """Whether a package decides the answers of this grader; does not import it."""
    return grader in plugins.names("answer")


def require_package(grader: str) -> AnswerPackage:
    """Return the package that `grader` names. Raises `UsageError` if there is none."""
    package: AnswerPackage | None = plugins.load("answer", grader)
    if package is None:
        raise UsageError(
            f"answers of type {grader!r} require a package with the entry point of the same name in `harness.answers`, "
            "which is not installed; `harness doctor` lists the installed ones"
        )
    return package


def shown_references(question: Question) -> list[str]:
    """Return the references of a question in human-readable form."""
    if not is_elsewhere(question.rules.grader):
        return list(question.references)
    package = require_package(question.rules.grader)
    return [package.describe(text) for text in question.references]
