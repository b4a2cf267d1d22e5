"""The interface of extensions that decide answers that no rule can compare, such as programs (`kind: program`).

The extensions live in `harness.extensions.answers` and are found by name; the core knows only the protocols below. A
card of this kind names the extension as its grader, so that every question specifies what decides its answers.
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
    """Decides the answers of one kind, in worker processes that start with the first answer."""

    @property
    def name(self) -> str:
        """The name that grades record. Raises `UsageError` if this machine cannot decide such answers."""
        ...

    def ask(self, question: Question, sample: Sample, *, with_steps: bool = False) -> Future[Verdict]:
        """Start to decide the answer of `sample`; the future returns the verdict. with_steps: include its steps."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class AnswerExtension(Protocol):
    """What an extension offers for its kind of answer: it reads references, shows them, and starts deciders."""

    def read(self, settings: Mapping[str, Any], text: str, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return (text of the question, reference) of a data row. settings: the card's settings.

        Raises `ValueError` that describes what is wrong with the row.
        """
        ...

    def written(self, text: str) -> str:
        """Return the reference for a user's text in `harness grade`. Raises `ValueError`: what is wrong with it."""
        ...

    def shown(self, reference: str) -> str:
        """Return the reference in human-readable form."""
        ...

    def examples(self, reference: str) -> tuple[str, str] | None:
        """Return (right reply, wrong reply) to test the grader with; None if the reference has no solution."""
        ...

    def condition(self) -> str:
        """Return a line for `harness doctor`: what decides such answers on this machine, after a test run."""
        ...

    def start(self, workers: int, sandbox: str | None) -> Decider:
        """Start a decider with `workers` processes. sandbox: a value of the `sandbox` option; None: the default.

        Raises `UsageError` if the sandbox is not available.
        """
        ...


def extension_of(grader: str) -> AnswerExtension | None:
    """Return the extension that a question's grader names; None if the grader is the rules or a verifier."""
    return cast("AnswerExtension | None", plugins.extension("answer", grader))


def is_elsewhere(grader: str) -> bool:
    """Whether an extension decides the answers of this grader; does not import the extension."""
    return grader in plugins.extensions("answer")


def require_extension(grader: str) -> AnswerExtension:
    """Return the extension that `grader` names. Raises `UsageError` if there is none."""
    extension = extension_of(grader)
    if extension is None:
        raise UsageError(
            f"answers of type {grader!r} require the extension of the same name, which is not installed; "
            "`harness doctor` "
            "lists the installed extensions"
        )
    return extension


def shown_references(question: Question) -> list[str]:
    """Return the references of a question in human-readable form."""
    extension = extension_of(question.rules.grader)
    return list(question.references) if extension is None else [extension.shown(text) for text in question.references]
