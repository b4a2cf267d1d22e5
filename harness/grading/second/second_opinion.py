"""A second grader alongside ours, such as Math-Verify: it lists the samples on which two independent graders disagree.

The second grader never changes a verdict. It runs in a separate process and, if its packages are incompatible with
ours, in a separate Python environment. Disagreements on samples that our grader left undecided come first, since a
judge or a person may still decide them; then the disagreements that would change the score most.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from statistics import fmean

import msgspec

from harness.core.errors import UsageError
from harness.core.records import Grade, Key, Question, Sample
from harness.core.sanitize import quoted
from harness.grading.verifier import refuse_given
from reasoning_answers.host import final_part, with_stated_answers
from server_launchers import isolated

DEADLINE_SECONDS = 15.0
"""Processor time for comparing one answer with one reference, in seconds; Math-Verify's own limit is 5 s per step."""

SILENT_SECONDS = 60.0
"""Seconds after which a process that uses no processor and writes nothing is ended, as on a lost file system."""

_PROGRAM = str(Path(__file__).with_name("library_child.py"))
"""The program that runs a second grader."""

SECOND_GRADERS = {
    "math-verify": "pip install math-verify",
    "sympy": "pip install 'antlr4-python3-runtime>=4.11,<4.12'",
}
"""Second graders, by value of the `also` option → the command that installs what they need."""

_OPINIONS = {True: "correct", False: "wrong", None: "no opinion"}
"""Verdict of a second grader → its name in `Agreement.matrix`."""


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one question with the same answer, on which the graders differ. effect: how much these samples could
    change the accuracy, a fraction of 1.
    """

    question_id: str
    extracted: str | None
    ours: str
    theirs: bool | None
    n_samples: int
    effect: float


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How well two graders agree on the same samples.

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

    A sample without a final part is wrong, without asking the grader. verdicts: a mapping that receives each verdict as
    it arrives, in case the caller is interrupted.

    library: a key of `SECOND_GRADERS`. python: the interpreter that runs the grader. deadline_s: processor seconds for
    one answer. Raises `UsageError` if the interpreter cannot import the grader.
    """
    refuse_given(questions.values())
    verdicts = {} if verdicts is None else verdicts
    keys: dict[tuple[str, str], list[Key]] = defaultdict(list)  # of the samples of one question with one final part
    for sample in samples:
        part = final_part(sample.text, is_apart=bool(sample.reasoning)) if sample.text else None
        if part is None or sample.text is None:
            verdicts[sample.key] = False
        else:
            keys[sample.question_id, sample.text[slice(*part)]].append(sample.key)
    due = deque(keys)
    while True:
        requests = [(with_stated_answers(questions[question_id]).references, text) for question_id, text in due]
        with closing(_opinions(library, requests, python, deadline_s)) as opinions:
            for correct in opinions:
                verdicts |= dict.fromkeys(keys[due.popleft()], correct)
        if due:  # the process ended in the middle of this answer
            verdicts |= dict.fromkeys(keys[due.popleft()], None)
        if not due:
            return verdicts


def _opinions(
    library: str, requests: Iterable[tuple[Iterable[str], str]], python: str, deadline_s: float
) -> Generator[bool | None]:
    """Yield a second grader's opinion on each (references, response) until its process ends; an answer beyond the
    deadline ends it, and so does a silence of `SILENT_SECONDS` and four deadlines. Raises `UsageError` if the library
    is missing.
    """
    with tempfile.TemporaryFile() as lines:
        # ASCII, since a reply may contain half a surrogate pair.
        lines.writelines(json.dumps(request).encode() + b"\n" for request in requests)
        lines.seek(0)
        try:
            process = subprocess.Popen(
                isolated.command(_PROGRAM, library, str(deadline_s), python=python),
                env=isolated.environment(),
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"the interpreter {quoted(python)} cannot be started: {error.strerror}") from error
        assert process.stdout is not None
        moved, ended = time.monotonic(), threading.Event()

        def end_silent() -> None:
            while not ended.wait(0.5):
                if time.monotonic() - moved > SILENT_SECONDS + 4 * deadline_s:
                    process.kill()

        try:  # before the thread starts, so that an interrupt then also ends the process
            threading.Thread(target=end_silent, daemon=True).start()
            hello = process.stdout.readline(1_000)
            if hello != b"ready\n":
                reason = quoted(hello.decode(errors="replace")) or "it did not respond"
                raise UsageError(
                    f"{library} cannot be used with {quoted(python)} ({reason}). Install it there with "
                    f"`{SECOND_GRADERS[library]}`, or specify the interpreter of an environment that has it."
                )
            for line in process.stdout:
                moved = time.monotonic()
                yield {b"True\n": True, b"False\n": False}.get(line)
        finally:
            ended.set()
            process.kill()
            process.wait()
            process.stdout.close()


def agreement(grades: Iterable[Grade], theirs: Mapping[Key, bool | None]) -> Agreement:
    """Compare our grades with a second grader's verdicts (`theirs`); grades of other samples are left out."""
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
            question_id=question,
            extracted=extracted,
            ours=our_verdict,
            theirs=their_verdict,
            n_samples=count,
            effect=count / len(ours[question]) / n_questions,
        )
        for (question, extracted, our_verdict, their_verdict), count in differing.items()
    ]
    disagreements.sort(
        key=lambda disagreement: (disagreement.ours != "undecided", -disagreement.effect, disagreement.question_id)
    )
    return Agreement(
        matrix=dict(matrix),
        accuracy_ours=sum(map(fmean, ours.values())) / n_questions,
        accuracy_theirs=sum(map(fmean, theirs_by_question.values())) / n_questions,
        disagreements=disagreements,
    )
