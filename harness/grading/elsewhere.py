"""What the core asks of an extension that decides about answers that no rule compares: `kind: program`.

The extensions are `harness.extensions.answers`, found by name; the core knows them only as the protocols here. A card
of such a kind names it as its grader, so that every question says who decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol, cast

from harness.core import plugins
from harness.core.errors import UsageError
from harness.core.records import Question, Sample
from harness.grading.verdict import Verdict


class Decider(Protocol):
    """Workers that decide, started when they are needed."""

    @property
    def name(self) -> str:
        """The name that grades record. Raises `UsageError` where nothing can be decided here."""
        ...

    def ask(self, question: Question, sample: Sample, *, with_steps: bool = False) -> Future[Verdict]:
        """The verdict to come. with_steps: as in `pool.verdicts`."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class AnswerExtension(Protocol):
    """A kind of answer."""

    def read(self, settings: Mapping[str, Any], text: str, row: Mapping[str, Any]) -> tuple[str, str]:
        """(text of the question, reference) of a row. settings: the card's. Raises `ValueError` with what is wrong."""
        ...

    def shown(self, reference: str) -> str:
        """The reference in words."""
        ...

    def examples(self, reference: str) -> tuple[str, str] | None:
        """(a reply that is right, one that is wrong) where the reference tells one, for a check of the grader."""
        ...

    def start(self, workers: int, sandbox: str | None) -> Decider:
        """The deciders. sandbox: where, by the word of the option; None: the default. Raises `UsageError`."""
        ...


def extension_of(grader: str) -> AnswerExtension | None:
    """The extension that a question's grader names, None where it names none."""
    return cast("AnswerExtension | None", plugins.extension("answer", grader))


def is_elsewhere(grader: str) -> bool:
    """Whether an extension decides, which need not be loaded for that."""
    return grader in plugins.extensions("answer")


def required(grader: str) -> AnswerExtension:
    """The extension of that name. Raises `UsageError`."""
    extension = extension_of(grader)
    if extension is None:
        raise UsageError(f"answers of the kind {grader!r} need an extension that is not there")
    return extension


def shown_references(question: Question) -> list[str]:
    """The references of a question as a person reads them."""
    extension = extension_of(question.rules.grader)
    return list(question.references) if extension is None else [extension.shown(text) for text in question.references]
