"""Verdicts on many samples: this process finds the answers, and worker processes, which can be killed, decide them by
`reasoning_answers.host.decide`.

    samples ─ search here ─► jobs (question, answer) ─ batches ─► workers ─ replies ─► decisions ─► verdicts, in order

- This process only scans text in linear time and never parses an answer.
- A job is decided once, however many samples gave the answer, so the verdicts do not depend on the number of workers
  or the order of the samples.
- A worker gets a batch when it has no outstanding replies. It must answer the jobs in order, each within the deadline;
  time spent waiting for a processor does not count.
- A worker that is late, dies, or sends anything but the expected reply is killed with its process group. The current
  job is "undecided" by rule "time", "memory" or "crash"; the rest of its batch goes to a new worker.
- A worker may also be killed by the kernel or a person, which says nothing about its job, and a stored "undecided"
  would be permanent. So the job on which a worker died goes to a new worker once; if that worker dies too, the rule is
  "crash".
- A schema of a function call can take forever. So a late job on calls is asked again without the schemas of the tools
  that it calls, which then are unreadable for all jobs.
- A worker that ends before it is ready, or is not ready in time, says nothing about a job and is replaced
  (`START_WAITS`).

Long: sending jobs and checking the replies are two sides of one protocol.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from harness.core import codec
from harness.core.errors import HelperFailed, UsageError
from harness.core.records import (
    AnswerKind,
    Grade,
    GradeRules,
    Key,
    OfferedTool,
    Question,
    Sample,
    VerdictName,
)
from harness.core.sanitize import quoted
from harness.grading import verifier
from harness.grading.external_graders import Decider, is_elsewhere, require_package
from harness.grading.grades import foreign_verdict, grade_of, sample_of
from harness.grading.processes.worker import MAX_FRAME_BYTES, GradingReply, GradingTask, VerifierCheck
from harness.grading.turns import NO_REFERENCE, NOT_REACHED, combined, graded_turns
from harness.presets.grading import DEADLINE_SECONDS, MAX_DEADLINE_SECONDS
from reasoning_answers import Extraction, Verdict
from reasoning_answers.host import GRADER, conclude, failure, read_reference, search, texts_to_decide
from server_launchers import isolated
from server_launchers.isolated import Deadline

_NO_RULES = GradeRules()

_PROGRAM = "harness.grading.processes.worker"

WARMING_SECONDS = 30.0
"""Deadline of an answer, in seconds, while its worker starts, or imports sympy or a verifier."""

MAX_VOTE_CHARS = 200
"""Longest vote (the text by which maj@k counts an answer) for an answer that ended its worker, in characters."""

BATCH_ITEMS = 64
"""Number of answers sent to a worker in one message."""

START_WAITS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before each attempt to start a worker; the grading ends after the last one."""

MAX_DECISIONS = 1 << 16
"""Beyond this number, remembered decisions are dropped: about 400 bytes each, so 26 MB at most."""

_WINDOW = 4_096
"""The parent stops reading samples while this many samples wait for a verdict."""

KEEP_SECONDS = 1.0
"""Seconds between two handovers of verdicts for storage (`_GradeWriter`)."""

MAX_KEPT = 2_000
"""Largest number of verdicts handed over at a time. More verdicts than that took less than half a millisecond each."""

Keep = Callable[[Sequence[Grade]], None]
"""Stores grades of an unfinished grading."""


class _Job(NamedTuple):
    """One answer to one question. key: a digest of the question's id, the answer and with_steps, under which the
    decision is stored.
    """

    question: Question
    answer: str
    with_steps: bool
    key: bytes

    @classmethod
    def of(cls, question: Question, answer: str, *, with_steps: bool = False) -> _Job:
        """Return the job with its key."""
        hashed = blake2b(question.question_id.encode("utf-8", "surrogatepass"), digest_size=16)
        separator = b"\xfe" if with_steps else b"\xff"  # bytes that no text contains
        hashed.update(separator + answer.encode("utf-8", "surrogatepass"))
        return cls(question, answer, with_steps, hashed.digest())


def grade_all(
    questions: Mapping[str, Question],
    samples: Iterable[Sample],
    *,
    workers: int = 1,
    deadline_s: float = DEADLINE_SECONDS,
    answer_from_reasoning: bool = False,
    sandbox: str | None = None,
    keep: Keep | None = None,
) -> Generator[Grade]:
    """Yield the grades of `samples`, in order. answer_from_reasoning: search the reasoning as well if the final part
    has no answer. sandbox: where programs run; None: the default. keep: see `_GradeWriter`.

    Raises `UsageError` for a sample of an unknown question, or a verifier that is not trusted.
    """
    names = grader_names(questions.values(), sandbox)
    waiting: deque[_Pending | _PendingTurns] = deque()
    deciders: dict[str, Decider] = {}
    with (
        Pool(workers, deadline_s) as pool,
        contextlib.ExitStack() as opened,
        _GradeWriter(keep, pool, waiting) as writer,
    ):

        def decide(question: Question, sample: Sample) -> _Pending:
            """Start to decide one reply."""
            grader = question.rules.grader
            if grader not in names:  # `questions` may grow while samples are read
                names.update(grader_names([question], sandbox))
            # The cheap test first: most questions are decided by the rules, and do not need the list of extensions.
            if grader == verifier.GIVEN:
                return _Pending(_without_text(sample), lambda: True, partial(foreign_verdict, sample))
            if grader == verifier.RULES and question.turns and not question.references:
                return _Pending(_without_text(sample), lambda: True, lambda: Verdict("undecided", NO_REFERENCE))
            if grader != verifier.RULES and is_elsewhere(grader):
                if grader not in deciders:
                    deciders[grader] = Decider(require_package(grader), workers, sandbox)
                    opened.callback(deciders[grader].close)
                future = deciders[grader].ask(question, sample)
                return _Pending(_without_text(sample), future.done, partial(_await_verdict, pool, future))
            extraction = search(question, sample, answer_from_reasoning=answer_from_reasoning)
            return pool.ask_about(question, sample, extraction, names[grader])

        for sample in samples:
            question = questions.get(sample.question_id)
            if question is None:
                raise UsageError(
                    f"a sample answers question {sample.question_id!r}, which is not one of the {len(questions)} "
                    "questions of this benchmark; grade it with the questions for which it was generated"
                )
            if question.turns and (turns := graded_turns(question, sample)):
                pending = [(number, None if reply is None else decide(one, reply)) for number, one, reply in turns]
                waiting.append(_PendingTurns(_without_text(sample), pending, names[question.rules.grader]))
            else:
                waiting.append(decide(question, sample))
            while waiting and (waiting[0].is_settled() or len(waiting) > _WINDOW):
                yield writer.note(waiting.popleft().grade())
        while waiting:
            yield writer.note(waiting.popleft().grade())


def verdict_on(question: Question, sample: Sample, *, deadline_s: float = DEADLINE_SECONDS) -> Verdict:
    """Return the verdict on one sample, with its steps, by a process started for it.

    Raises `UsageError`: a verifier is not trusted, or this machine cannot decide such answers.
    """
    grader = question.rules.grader
    if grader == verifier.GIVEN:
        return foreign_verdict(sample)
    name = grader_names([question])[grader]
    if grader != verifier.RULES and is_elsewhere(grader):
        with contextlib.closing(Decider(require_package(grader), 1, None)) as decider:
            return decider.ask(question, sample, with_steps=True).result()
    with Pool(1, deadline_s) as pool:
        extraction = search(question, sample, with_steps=True)
        return pool.ask_about(question, sample, extraction, name, with_steps=True).verdict()


def outcomes(pool: Pool, answers: Iterable[tuple[Question, Extraction]]) -> list[VerdictName]:
    """Return the outcome of each (question, answer found), decided by `pool`, which stays open.

    Question ids must differ.
    """
    # All are asked before the first is awaited, so that workers get full batches.
    pending = [pool.ask_about(question, sample_of(""), extraction, GRADER) for question, extraction in answers]
    in_order = [each.verdict().outcome for each in pending]
    pool.forget_decisions()
    return in_order


def _without_text(sample: Sample) -> Sample:
    """Return a sample as it waits for its verdict: thousands of samples with their reasoning would fill the memory."""
    return msgspec.structs.replace(sample, text=None, reasoning=None)


def _without_prompt(question: Question, endless: Container[bytes]) -> Question:
    """Return a question as a worker receives it: the rules do not read the prompt, but a verifier may.

    endless: schemas, as JSON, that become unreadable.
    """
    if question.rules.grader != verifier.RULES:
        return question
    tools = [*question.tools] if question.tools and endless else []
    for at, tool in enumerate(tools):
        if codec.encode(tool.parameters) in endless:
            tools[at] = msgspec.structs.replace(tool, parameters=_UNREADABLE | tool.parameters | _UNREADABLE)
    return msgspec.structs.replace(question, messages=(), prompt="", tools=tuple(tools) or question.tools)


_UNREADABLE = {"$ref": "urn:a-schema-that-exceeded-the-deadline"}


def check_tolerances(rules: GradeRules) -> None:
    """Raise `UsageError` for a tolerance that is out of range."""
    for name in ("relative_tolerance", "absolute_tolerance"):
        value = getattr(rules, name)
        if not 0 <= value < math.inf:
            raise UsageError("expected a number that is 0 or greater", field=name, value=value)


def check_deadline(seconds: float) -> None:
    """Raise `UsageError` for a deadline of one answer, in seconds, that is out of range."""
    if not 0 < seconds < MAX_DEADLINE_SECONDS:
        raise UsageError(
            f"expected a number of seconds greater than 0 and less than {MAX_DEADLINE_SECONDS:g}",
            field="deadline",
            value=seconds,
        )


def question_on(
    reference: Any,
    kind: AnswerKind | Literal["auto"] = "auto",
    rules: GradeRules = _NO_RULES,
    choices: tuple[str, ...] = (),
    tools: tuple[OfferedTool, ...] = (),
    name: str = "",
) -> Question:
    """Return a question that has only a reference. Raises `UsageError` if the reference cannot be read as an answer."""
    try:
        accepted, answer_kind = read_reference(reference, kind)
    except ValueError as error:
        raise UsageError(f"the reference answer {error}") from error
    return Question(
        benchmark="",
        question_id=name,
        references=accepted,
        kind=answer_kind,
        rules=rules,
        choices=choices,
        row_digest="",
        prompt_digest="",
        tools=tools or msgspec.UNSET,
    )


def grader_names(questions: Iterable[Question], sandbox: str | None = None) -> dict[str, str]:
    """Return the names that grades record: `grader` in the questions' rules → its name.

    A name is the version of the rules, a verifier's identity, or the name that an extension reports. Each verifier is
    imported in a separate process to determine its identity. Raises `UsageError`: a verifier is not trusted, or broken.

    sandbox: where programs are run (`harness.presets.grading`). It is part of the name, so that grades of different
    sandboxes are not mixed.
    """
    names = {verifier.RULES: GRADER, verifier.GIVEN: verifier.GIVEN}
    of_grader = {question.rules.grader: question for question in questions if question.rules.grader not in names}
    extended = [grader for grader in of_grader if is_elsewhere(grader)]
    verifier.require_trusted(question for grader, question in of_grader.items() if grader not in extended)
    for grader in extended:
        with contextlib.closing(Decider(require_package(grader), 1, sandbox)) as decider:
            names[grader] = decider.name
    return names | {grader: _identity(grader) for grader in sorted(of_grader) if grader not in extended}


def _environment() -> dict[str, str]:
    """The environment variables of a process that imports verifiers."""
    # A fixed hash seed, since the order of a verifier's sets depends on hashes. matplotlib, which a verifier may
    # import, wants a writable folder, and a worker cannot create one in a fresh home.
    own = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": os.environ.get("TMPDIR", "/tmp")}  # noqa: S108 - asked for, never written to
    return isolated.environment(verifier.TRUST_VARIABLE, **own)


def _identity(grader: str) -> str:
    """Return the identity of a verifier, imported in a separate process. Raises `UsageError` if it is broken."""
    try:
        done = subprocess.run(
            isolated.command(_PROGRAM, "check", grader),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WARMING_SECONDS,
            check=False,
        )
        checked = codec.decode(done.stdout, VerifierCheck)
    except subprocess.TimeoutExpired:
        checked = VerifierCheck(error=f"importing it takes longer than {WARMING_SECONDS:g} s")
    except codec.DecodeError:
        checked = VerifierCheck(error="importing it terminates the process")
    if checked.error:
        # A worker starts in its own folder, where a relative entry would name another module.
        where = "; add its folder to PYTHONPATH as an absolute path" if checked.not_found else ""
        raise UsageError(
            f"the verifier {quoted(grader)} cannot be used: {checked.error}{where}. Fix its module, "
            "or use a different grader"
        )
    return checked.identity


class _Pending(NamedTuple):
    """A sample that waits for its verdict, without its text. is_settled: whether the verdict is available, so that
    `verdict` need not wait.
    """

    sample: Sample
    is_settled: Callable[[], bool]
    verdict: Callable[[], Verdict]

    def grade(self) -> Grade:
        """Wait for the verdict; return the grade. Raises what an extension raised."""
        return grade_of(self.verdict(), self.sample)


class _PendingTurns(NamedTuple):
    """A conversation that waits for the verdicts on its graded turns: (number, the turn's reply; None if it got none).
    grader: the name that its grade records.
    """

    sample: Sample
    turns: Sequence[tuple[int, _Pending | None]]
    grader: str

    def is_settled(self) -> bool:
        """Whether all verdicts are available."""
        return all(pending is None or pending.is_settled() for _, pending in self.turns)

    def grade(self) -> Grade:
        """Wait for the verdicts; return the grade."""
        verdicts = [(number, pending and pending.verdict()) for number, pending in self.turns]
        last = verdicts[-1][1] or Verdict("wrong", NOT_REACHED, grader=self.grader)
        return combined(grade_of(last, self.sample), verdicts)


def _await_verdict(pool: Pool, future: Future[Verdict]) -> Verdict:
    """Wait for the verdict of an extension, and call `pool.on_wait` meanwhile; raise what the extension raised."""
    while not future.done():
        wait([future], timeout=KEEP_SECONDS)
        pool.on_wait()
    return future.result()


class _GradeWriter:
    """Hands verdicts to `keep` during grading, about once a second, so that an interrupted grading can continue.

    This includes verdicts on samples that wait for an earlier sample without a verdict. Only slow verdicts are worth
    it: if more than `MAX_KEPT` have arrived since the last time, none of them is handed over. keep: None = never hand
    over any. waiting: the samples whose verdicts are not yet yielded. A context manager; if it exits with an exception,
    the available verdicts are handed over.
    """

    def __init__(self, keep: Keep | None, pool: Pool, waiting: Iterable[_Pending | _PendingTurns]) -> None:
        self._keep, self._pool, self._waiting = keep, pool, waiting
        self._yielded: list[Grade] = []  # since grades were last handed over, and in no hand-over before
        self._handed_over: set[Key] = set()  # samples whose grades were handed over and not yet yielded
        self._next_time = time.monotonic() + KEEP_SECONDS

    def __enter__(self) -> _GradeWriter:
        if self._keep is not None:
            self._pool.on_wait = self._hand_over_if_due
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._hand_over()

    def note(self, grade: Grade) -> Grade:
        """Register the grade that is yielded next, to hand it over unless that has been done; return it.

        Beyond `MAX_KEPT` grades, none is added: `_hand_over` then hands over none of them.
        """
        if self._keep is not None:
            if grade.key in self._handed_over:
                self._handed_over.remove(grade.key)
            elif len(self._yielded) <= MAX_KEPT:
                self._yielded.append(grade)
            self._hand_over_if_due()
        return grade

    def _hand_over_if_due(self) -> None:
        if time.monotonic() >= self._next_time:
            self._hand_over()

    def _hand_over(self) -> None:
        """Hand over the verdicts that arrived since the last time, unless they arrived quickly."""
        if self._keep is None:
            return
        settled = [pending for pending in self._waiting if pending.is_settled()]
        fresh = [pending for pending in settled if pending.sample.key not in self._handed_over]
        if len(self._yielded) + len(fresh) <= MAX_KEPT:
            self._handed_over.update(pending.sample.key for pending in fresh)
            self._keep([*self._yielded, *(pending.grade() for pending in fresh)])
        self._yielded = []
        self._next_time = time.monotonic() + KEEP_SECONDS


class _Worker:
    """A worker process, and the jobs with outstanding replies.

    assigned: (id that the reply must repeat, job), the next one due first. buffer: received bytes that do not complete
    a frame yet. deadline: the deadline of the next reply. ready: whether its imports are done, according to its latest
    note. has_begun: whether it has ever been ready. question: the last question sent to it, which the next task need
    not repeat.
    """

    def __init__(self, deadline: float) -> None:
        self.process = subprocess.Popen(
            isolated.command(_PROGRAM, str(deadline), seeded=True),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # A separate session, so that the whole process group can be killed.
            start_new_session=True,
            env=_environment(),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        # A worker may send half a frame, so the parent must never wait in a read.
        os.set_blocking(self.stdout.fileno(), False)
        self.assigned: deque[tuple[str, _Job]] = deque()
        self.buffer = bytearray()
        self.deadline = Deadline(self.process.pid)
        self.ready = self.has_begun = False
        self.question: Question | None = None

    def kill(self) -> None:
        """End the process and whatever it started; wait for it."""
        # The group may be gone already; macOS reports a group of zombies as not permitted.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # closing writes what is buffered
            self.stdin.close()
        self.stdout.close()


class Pool:
    """Decides jobs in worker processes, which start when they are needed. A context manager; for one thread only.

    deadline: seconds for each answer; it may change, up to `longest_deadline`. start: receives the function that starts
    a worker, and calls it in a thread of its choice, by default the calling thread. workers: the live workers, at most
    `size`. queue: jobs not yet sent to a worker. decisions: key of a job → its verdict, None while the verdict is
    pending; in the order in which jobs were last requested. At most `MAX_DECISIONS` are kept, but a pending verdict is
    never dropped.
    """

    def __init__(
        self, workers: int, deadline: float, *, start: Callable[[Callable[[], _Worker]], _Worker] = lambda make: make()
    ) -> None:
        if workers < 1:
            raise UsageError("expected at least 1 worker", field="workers", value=workers)
        check_deadline(deadline)
        self.size = workers
        self.deadline = self.longest_deadline = deadline
        self._start_worker = start
        self.workers: list[_Worker] = []
        self.queue: deque[_Job] = deque()
        self.decisions: dict[bytes, Verdict | None] = {}
        self._n_failed_starts = 0  # in a row, since a worker was last ready
        self._died_once: set[bytes] = set()  # keys of jobs that are retried because their worker died
        self._endless: set[bytes] = set()  # JSON schemas with which a job on calls timed out
        self._distinct: dict[Verdict, Verdict] = {}  # equal verdicts are stored once, since most are equal
        self.selector = selectors.DefaultSelector()
        self.on_wait: Callable[[], None] = lambda: None  # called several times a second while verdicts are awaited

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()
        self.selector.close()

    def ask(self, job: _Job) -> None:
        """Queue `job`, unless it is already decided or queued; send the queue once it makes a full batch."""
        if job.key in self.decisions:
            return
        self.decisions[job.key] = None  # queued
        if len(self.decisions) > MAX_DECISIONS:
            # All but the pending ones are forgotten; an equal job is then decided again.
            self.decisions = {key: None for key, decision in self.decisions.items() if decision is None}
            self._distinct.clear()
        self.queue.append(job)
        if len(self.queue) >= BATCH_ITEMS:
            self.dispatch()
            self.pump(0.0)

    def ask_about(
        self,
        question: Question,
        sample: Sample,
        extraction: Extraction,
        grader: str,
        *,
        with_steps: bool = False,
    ) -> _Pending:
        """Ask for the verdicts that decide what was found in `sample`. grader: the name that the grade records."""
        jobs = {
            text: _Job.of(question, text, with_steps=with_steps and text == extraction.answer)
            for text in texts_to_decide(question, extraction)
        }
        for job in jobs.values():
            self.ask(job)

        def is_settled() -> bool:
            return all(self.decisions.get(job.key) is not None for job in jobs.values())

        def verdict() -> Verdict:
            return conclude(question, extraction, lambda answer: self.decision(jobs[answer]), grader=grader)

        return _Pending(_without_text(sample), is_settled, verdict)

    def forget_decisions(self) -> None:
        """Drop all decisions, so that the memory of a pool that stays open does not grow."""
        self.decisions, self._distinct = {}, {}

    def decision(self, job: _Job) -> Verdict:
        """Wait for the decision on `job`, which must have been passed to `ask`, and return it."""
        while (decision := self.decisions.get(job.key)) is None:
            if job.key not in self.decisions:
                self.ask(job)  # its decision was dropped
            self.dispatch()
            self.pump(0.25)
        return decision

    # --- sending ---
    def dispatch(self) -> None:
        """Give queued jobs to idle workers, and start up to `size` workers."""
        for worker in [worker for worker in self.workers if not worker.assigned and worker.process.poll() is not None]:
            self.replace(worker, None)  # it ended while idle, so no answer is the cause
        while self.queue:
            idle = next((worker for worker in self.workers if not worker.assigned), None)
            if idle is None:
                if len(self.workers) >= self.size:
                    return
                idle = self.start()
            batch = [self.queue.popleft() for _ in range(min(BATCH_ITEMS, len(self.queue)))]
            self.send(idle, batch)

    def start(self) -> _Worker:
        """Start a worker and watch it for replies. Raises `HelperFailed` if too many were never ready."""
        for seconds in START_WAITS[self._n_failed_starts // self.size :]:
            time.sleep(seconds)
            try:
                # With the longest deadline, since a worker keeps its initial deadline.
                worker = self._start_worker(lambda: _Worker(self.longest_deadline))
                break
            except OSError:  # the machine runs out of memory or processes
                self._n_failed_starts += self.size
        else:
            raise HelperFailed("no grading process could be started: each one exited or timed out before it was ready")
        self.workers.append(worker)
        self.selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def send(self, worker: _Worker, jobs: list[_Job]) -> None:
        """Send a batch to an idle worker; if it exceeds `MAX_FRAME_BYTES`, send only the first job and queue the others
        again.
        """
        tasks = []
        for job in jobs:
            item = secrets.token_hex(8)  # a forged reply cannot contain it
            worker.assigned.append((item, job))
            is_repeated = job.question is worker.question and not self._endless
            question = None if is_repeated else _without_prompt(job.question, self._endless)
            tasks.append(GradingTask(item, question, job.answer, job.with_steps))
            worker.question = job.question
        # A process that is still importing has more time for its first answer.
        worker.deadline.start(self.deadline if worker.ready else WARMING_SECONDS)
        try:
            message = codec.frame(tasks)
            if len(message) > MAX_FRAME_BYTES and len(jobs) > 1:
                worker.assigned.clear()
                worker.question = None
                self.queue.extendleft(reversed(jobs[1:]))
                self.send(worker, jobs[:1])
                return
            worker.stdin.write(message)
            worker.stdin.flush()
        except OSError:
            self.replace(worker, self.after_death(worker))

    def _retries_without_schemas(self, job: _Job) -> bool:
        """Whether a late job is asked again, without the schemas of the tools that it calls."""
        question = job.question
        if question.kind != "calls" or job.key in self._died_once:
            return False
        self._died_once.add(job.key)
        with contextlib.suppress(codec.DecodeError):
            called = {call["name"] for call in codec.decode(job.answer, list[dict[str, Any]])}
            self._endless |= {codec.encode(tool.parameters) for tool in question.tools or () if tool.name in called}
        return True

    # --- receiving ---
    def pump(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for replies of workers or the next deadline; then store the replies received and
        replace late workers.
        """
        self.on_wait()
        now = time.monotonic()
        wait = min([timeout, *(max(worker.deadline.ends_at - now, 0.0) for worker in self.workers if worker.assigned)])
        waited = isolated.seconds_without_processor(threading.get_native_id())
        ready = self.selector.select(wait)
        if (late := time.monotonic() - now - wait) > 0:
            # Unless this thread only had no processor, the machine may have stood still, and the workers with it.
            late -= isolated.seconds_without_processor(threading.get_native_id()) - waited
            for worker in self.workers:
                worker.deadline.postpone(late)
        for key, _ in ready:
            self.receive(key.data)
        for worker in list(self.workers):
            if worker.assigned and worker.deadline.is_over():
                self.receive(worker)  # a reply that has just arrived still counts
                if worker in self.workers and worker.assigned and worker.deadline.is_over():
                    self.replace(worker, "time" if worker.has_begun else None)

    def receive(self, worker: _Worker) -> None:
        """Read what a worker has sent and handle all complete replies; replace a worker that ended or sent no valid
        frame.
        """
        if worker not in self.workers:  # it was replaced since the selector reported it
            return
        try:
            data = os.read(worker.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.replace(worker, self.after_death(worker))
            return
        worker.buffer += data
        answered = False
        try:
            while (body := codec.take_frame(worker.buffer, MAX_FRAME_BYTES)) is not None:
                if not self.accept(worker, body):
                    return  # the worker was replaced, and the rest of its output does not count
                answered = True
        except codec.DecodeError:
            self.replace(worker, "crash")
            return
        if answered:
            # Each answer has its own deadline, from the reply or note before it. A worker reports that it is not
            # ready while it imports the verifier for the current answer.
            worker.deadline.start(self.deadline if worker.ready else WARMING_SECONDS)

    def accept(self, worker: _Worker, body: bytes) -> bool:
        """Handle one reply or note; False if the worker was replaced for an unexpected reply or lack of memory."""
        try:
            reply = codec.decode(body, GradingReply)
        except codec.DecodeError:
            self.replace(worker, "crash")
            return False
        verdict = reply.verdict
        if reply.item == "" and verdict is None:  # a note
            worker.ready = reply.is_ready
            worker.has_begun, self._n_failed_starts = True, 0
            return True
        if not worker.assigned or worker.assigned[0][0] != reply.item or verdict is None:
            self.replace(worker, "crash")
            return False
        _, job = worker.assigned.popleft()
        self._died_once.discard(job.key)
        self.decisions[job.key] = self._distinct.setdefault(verdict, verdict)
        if verdict.rule == "memory":
            self.replace(worker, None)  # start clean after memory ran out
            return False
        return True

    def after_death(self, worker: _Worker) -> Literal["crash"] | None:
        """Return the cause for `replace` after this worker died; None the first time, when the job is queued again."""
        if not worker.has_begun:
            return None
        due = worker.assigned[0][1].key if worker.assigned else None
        if due is None or due in self._died_once:
            return "crash"
        self._died_once.add(due)
        return None

    def replace(self, worker: _Worker, cause: Literal["time", "crash"] | None) -> None:
        """Kill a worker; a new one starts when jobs are dispatched. The current job becomes undecided because of
        `cause`; the other jobs, or all jobs if `cause` is None, are queued again.
        """
        self._n_failed_starts += not worker.has_begun
        self.workers.remove(worker)
        self.selector.unregister(worker.stdout)
        worker.kill()
        assigned = [job for _, job in worker.assigned]
        worker.assigned.clear()
        if cause is not None and assigned and not (cause == "time" and self._retries_without_schemas(assigned[0])):
            job = assigned.pop(0)
            self._died_once.discard(job.key)
            grader = job.question.rules.grader
            # The rule of the grade: the cause itself, or words that blame a user's own verifier, "verifier …".
            rule = verifier.unanswered(grader, cause, self.deadline)
            steps = (f"the {rule}",) if failure(rule) is not None else ()
            vote = job.answer[:MAX_VOTE_CHARS] or None
            self.decisions[job.key] = Verdict("undecided", rule, vote=vote, steps=steps)
        # At the front and in their order, since samples wait for the oldest jobs first.
        self.queue.extendleft(reversed(assigned))
