"""A second grader beside ours, such as Math-Verify: lists the samples on which two independent graders disagree.

The second grader never changes a verdict. It runs in a process of its own, and if its packages do not fit ours, in a
Python environment of its own. Disagreements on what ours left undecided come first, since a judge or a person may yet
decide those; then the ones that would move the score most.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import IO, Any, NamedTuple

import msgspec

from harness.answers.reasoning import final_part
from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.records import Grade, Key, Question, Sample
from server_launchers import isolated
from server_launchers.isolated import Deadline

DEADLINE_SECONDS = 15.0
"""Deadline of one answer, in seconds, while the grader has a processor; Math-Verify's own limit is 5 s a step."""

_START_SECONDS = 60.0

_PROGRAM = str(Path(__file__).with_name("library_child.py"))
"""The program that runs a second grader."""


class SecondGrader(NamedTuple):
    """A second grader: its name for people, and the command that installs it."""

    name: str
    install: str


SECOND_GRADERS = {
    "math-verify": SecondGrader("math-verify", "pip install math-verify"),
    "sympy": SecondGrader("sympy's parse_latex", "pip install 'antlr4-python3-runtime>=4.11,<4.12'"),
}
"""Second graders by the value of option `also`."""

_OPINIONS = {True: "correct", False: "wrong", None: "no opinion"}
"""Verdict of a second grader → its name in `Agreement.matrix`."""


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one question that gave the same answer, on which the graders differ. effect: by how much these samples
    could change the accuracy, a fraction of 1.
    """

    question_id: str
    extracted: str | None
    ours: str
    theirs: bool | None
    n_samples: int
    effect: float


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two graders agree on the same samples.

    matrix: (our verdict, their verdict) → number of samples. Accuracies are means over questions, as fractions of 1.
    """

    matrix: dict[tuple[str, str], int]
    accuracy_ours: float
    accuracy_theirs: float
    disagreements: list[Disagreement]


def second_verdicts(
    library: str,
    questions: Mapping[str, Question],
    samples: Iterable[Sample],
    *,
    python: str = isolated.PYTHON,
    deadline_s: float = DEADLINE_SECONDS,
    verdicts: dict[Key, bool | None] | None = None,
) -> dict[Key, bool | None]:
    """Return the verdict of the second grader on each sample, by key; None if it could not tell or was too slow.

    A sample without a final part is wrong, without asking the grader. verdicts: a mapping that gets each verdict as it
    comes, for a caller that is interrupted.

    library: a key of `SECOND_GRADERS`. python: the interpreter that runs the grader. deadline_s: seconds for one
    answer. Raises `UsageError` if there is no such grader, or if the interpreter cannot import it.
    """
    if library not in SECOND_GRADERS:
        raise UsageError(
            f"unknown second grader; expected one of {', '.join(SECOND_GRADERS)}", field="also", value=library
        )
    verdicts = {} if verdicts is None else verdicts
    of_text: dict[tuple[str, str], bool | None] = {}
    with _Child(python, library) as child:
        for sample in samples:
            part = final_part(sample.text, is_apart=bool(sample.reasoning)) if sample.text else None
            text = "" if part is None or sample.text is None else sample.text[slice(*part)]
            pair = (sample.question_id, text)
            if pair not in of_text:
                of_text[pair] = text != "" and child.any_correct(
                    questions[sample.question_id].references, text, deadline_s
                )
            verdicts[sample.key] = of_text[pair]
    return verdicts


def agreement(grades: Iterable[Grade], theirs: Mapping[Key, bool | None]) -> Agreement:
    """Compare our grades with a second grader's verdicts (`theirs`); grades of samples without one are left out."""
    matrix: Counter[tuple[str, str]] = Counter()
    # For each question, whether we and they call its samples correct.
    ours: dict[str, list[bool]] = defaultdict(list)
    theirs_by_question: dict[str, list[bool]] = defaultdict(list)
    differing: Counter[tuple[str, str | None, str, bool | None]] = Counter()
    for grade in grades:
        if grade.key not in theirs:
            continue
        their_verdict = theirs[grade.key]
        matrix[grade.verdict, _OPINIONS[their_verdict]] += 1
        correct, correct_by_them = grade.verdict == "correct", their_verdict is True
        ours[grade.question_id].append(correct)
        theirs_by_question[grade.question_id].append(correct_by_them)
        if correct != correct_by_them:
            differing[grade.question_id, grade.extracted, grade.verdict, their_verdict] += 1
    n_questions = max(len(ours), 1)
    disagreements = [
        Disagreement(
            question_id=question, extracted=extracted, ours=our_verdict, theirs=their_verdict, n_samples=count,
            effect=count / len(ours[question]) / n_questions,
        )
        for (question, extracted, our_verdict, their_verdict), count in differing.items()
    ]  # fmt: skip
    disagreements.sort(
        key=lambda disagreement: (disagreement.ours != "undecided", -disagreement.effect, disagreement.question_id)
    )
    return Agreement(
        matrix=dict(matrix),
        accuracy_ours=sum(map(fmean, ours.values())) / n_questions,
        accuracy_theirs=sum(map(fmean, theirs_by_question.values())) / n_questions,
        disagreements=disagreements,
    )


class _Child:
    """The process of a second grader. An answer beyond its deadline ends it; the next answer starts another process.

    A context manager. process, deadline: None while no process runs. buffer: what the process sent behind the last
    complete line.
    """

    def __init__(self, python: str, library: str) -> None:
        self.python = python
        self.library = library
        self.process: subprocess.Popen[bytes] | None = None
        self.deadline: Deadline | None = None
        self.buffer = b""

    def __enter__(self) -> _Child:
        try:
            self.start()
        except BaseException:  # A Ctrl-C, too: nobody else knows of the process yet, and `__exit__` is not called.
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and read its first line. Raises `UsageError` if the library is not there."""
        try:
            self.process = subprocess.Popen(
                isolated.command(_PROGRAM, self.library, python=self.python), env=isolated.environment(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"the interpreter {quoted(self.python)} cannot be started: {error.strerror}") from error
        self.deadline = Deadline(self.process.pid)
        self.buffer = b""
        hello = self.line(_START_SECONDS)
        if hello is None or hello.get("ready") is not True:
            self.stop()
            reason = quoted(str(hello.get("reason", ""))) if hello else "it did not answer"
            grader = SECOND_GRADERS[self.library]
            raise UsageError(
                f"{grader.name} is not usable from {quoted(self.python)} ({reason}). Install it there with "
                f"`{grader.install}`, or name an interpreter of an environment that has it."
            )

    def stop(self) -> None:
        """End the process, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()
            self.process = None
        if self.deadline is not None:
            self.deadline.close()
            self.deadline = None

    def any_correct(self, references: Iterable[str], response: str, deadline: float) -> bool | None:
        """Whether the response is right by any reference; None if no reference accepts it and one is undecided."""
        verdicts = [self.ask(reference, response, deadline) for reference in references]
        if True in verdicts:
            return True
        return None if None in verdicts else False

    def ask(self, reference: str, response: str, deadline: float) -> bool | None:
        """Return the verdict on one response, within `deadline` seconds; None if there is none."""
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        message = json.dumps({"id": 0, "reference": reference, "response": response}) + "\n"
        try:
            self.process.stdin.write(message.encode())
            self.process.stdin.flush()
        except OSError:
            self.stop()
            return None
        reply = self.line(deadline)
        if reply is None:
            self.stop()
            return None
        correct = reply.get("correct")
        return correct if isinstance(correct, bool) else None

    def line(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message within `seconds`; None if there is none or it is no JSON object."""
        assert self.process is not None
        assert self.deadline is not None
        stream: IO[bytes] | None = self.process.stdout
        assert stream is not None
        self.deadline.start(seconds)
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                if not selector.select(max(self.deadline.ends_at - time.monotonic(), 0.0)):
                    # Time without a processor does not count, so the deadline may have moved.
                    if self.deadline.is_over():
                        return None
                    continue
                data = stream.read1(1 << 16)  # type: ignore[attr-defined]
                # A verdict is a short line; a megabyte without a line break is none.
                if not data or len(self.buffer) > 1 << 20:
                    return None
                self.buffer += data
        body, _, self.buffer = self.buffer.partition(b"\n")
        try:
            message = json.loads(body)
        except ValueError:
            return None
        return message if isinstance(message, dict) else None
