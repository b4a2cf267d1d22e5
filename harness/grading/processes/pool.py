"""Verdicts in bulk: the search here, the decision in worker processes that can be killed.

The parent only scans text in linear time and never parses an answer. Each distinct (question, answer) is decided
once, however many samples gave it, so the same input gives the same verdict with any number of workers and in any
order. A worker that exceeds the deadline of one answer, dies or says something unexpected is killed with its whole
group; that one answer is "undecided" (rule "time", "memory" or "crash") and the rest of its batch goes to a new one.

Long: what is sent to the workers, and what is believed of them, is one protocol.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import selectors
import signal
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from harness.benchmarks.references import read_reference
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.inert import quoted
from harness.core.records import AnswerKind, Grade, GradeRules, Key, Question, Sample, Timing
from harness.core.records import Verdict as Outcome
from harness.grading import verifier
from harness.grading.bounds import BATCH_ITEMS, MAX_FRAME_BYTES, MAX_STATEMENTS, WARMING_SECONDS
from harness.grading.processes.worker import READY, WARMING, Checked, Reply, Task, frame
from harness.grading.verdict import GRADER, NO_ANSWER, Decision, Search, Verdict, conclude, find, plain, search
from server_launchers import isolated

DEADLINE_SECONDS = 2.0
"""Default wall time for one answer."""

MAX_DEADLINE_SECONDS = 3600.0
"""Longest deadline of one answer that may be asked for."""

_NO_RULES = GradeRules()

_PROGRAM = "harness.grading.processes.worker"

_WINDOW = 4_096
"""Samples that may wait for a verdict before the parent stops reading more."""


class _Job(NamedTuple):
    """One answer to one question. key: a digest of both, under which the decision is kept."""

    question: Question
    answer: str
    tell: bool
    key: bytes

    @classmethod
    def of(cls, question: Question, answer: str, *, tell: bool = False) -> _Job:
        """The job with its key."""
        hashed = blake2b(question.question_id.encode("utf-8", "surrogatepass"), digest_size=16)
        hashed.update(b"\xff" + answer.encode("utf-8", "surrogatepass"))  # a byte that no text holds
        return cls(question, answer, tell, hashed.digest())


def grade_all(
    questions: Mapping[str, Question],
    samples: Iterable[Sample],
    *,
    workers: int = 1,
    deadline_s: float = DEADLINE_SECONDS,
    answer_from_reasoning: bool = False,
) -> Iterator[Grade]:
    """Grades in the order of `samples`; answer_from_reasoning as for `grade`.

    Raises `UsageError`: a sample's question is unknown, a verifier is not trusted.
    """
    judged = verdicts(
        questions, samples, workers=workers, deadline_s=deadline_s, answer_from_reasoning=answer_from_reasoning
    )
    return (verdict.grade(sample) for sample, verdict in judged)


def verdicts(
    questions: Mapping[str, Question],
    samples: Iterable[Sample],
    *,
    workers: int = 1,
    deadline_s: float = DEADLINE_SECONDS,
    answer_from_reasoning: bool = False,
    tell: bool = False,
) -> Iterator[tuple[Sample, Verdict]]:
    """Each sample, its text left out, with its verdict, in the order of `samples`; tell: with the verdicts' steps.

    Raises as `grade_all` does.
    """
    names = grader_names(questions.values())
    with Pool(workers, deadline_s) as pool:
        waiting: deque[_Pending] = deque()
        for sample in samples:
            question = questions.get(sample.question_id)
            if question is None:
                raise UsageError(
                    f"a sample answers question {sample.question_id!r}, which is not among the {len(questions)} "
                    "questions of this benchmark; grade it with the questions that it was generated from"
                )
            if question.rules.grader not in names:  # the questions of a stream become known on the way
                names |= grader_names([question])
            searched = search(question, sample, answer_from_reasoning=answer_from_reasoning, tell=tell)
            # The answer first, then the other boxes of the text, to tell whether a right one was passed over.
            jobs = [_Job.of(question, searched.found.answer, tell=tell)] if searched.found is not None else []
            jobs += [_Job.of(question, other) for other in searched.others]
            for job in jobs:
                pool.ask(job)
            kept = msgspec.structs.replace(sample, text=None, reasoning=None)
            waiting.append(_Pending(kept, names[question.rules.grader], searched, jobs))
            while waiting and (pool.settled(waiting[0].jobs) or len(waiting) > _WINDOW):
                yield _judged(pool, waiting.popleft())
        while waiting:
            yield _judged(pool, waiting.popleft())


def outcomes(pool: Pool, asked: Sequence[tuple[Question, str]]) -> list[Outcome]:
    """What becomes of each (question, response), by workers that live on. Two questions never share an id."""
    said: list[Outcome | _Job] = []
    for question, text in asked:
        found = find(question, text)
        one = NO_ANSWER.outcome if found is None else plain(question, found.answer) or _Job.of(question, found.answer)
        said.append(one)
        if isinstance(one, _Job):
            pool.ask(one)
    decided = [pool.decision(one).outcome if isinstance(one, _Job) else one for one in said]
    pool.forget()
    return decided


def first_right(
    asked: Iterable[tuple[Key, Question, Sequence[str]]], *, workers: int = 1, deadline_s: float = DEADLINE_SECONDS
) -> Iterator[tuple[Key, int | None]]:
    """Which of the answers of each key is the first that is right; None where none is. In the order of `asked`."""
    with Pool(workers, deadline_s) as pool:
        waiting: deque[tuple[Key, list[_Job]]] = deque()

        def judged() -> tuple[Key, int | None]:
            key, jobs = waiting.popleft()
            right = (place for place, job in enumerate(jobs) if pool.decision(job).outcome == "correct")
            return key, next(right, None)

        for key, question, answers in asked:
            waiting.append((key, [_Job.of(question, answer) for answer in answers]))
            for job in waiting[-1][1]:
                pool.ask(job)
            while waiting and (pool.settled(waiting[0][1]) or len(waiting) > _WINDOW // MAX_STATEMENTS):
                yield judged()
        while waiting:
            yield judged()


def verdict_on(
    reference: Any,
    response: str,
    *,
    kind: AnswerKind | Literal["auto"] = "auto",
    rules: GradeRules = _NO_RULES,
    choices: tuple[str, ...] = (),
    deadline_s: float = DEADLINE_SECONDS,
) -> Verdict:
    """The verdict on one response, with its steps, by a worker process started for it.

    reference: text, a number, or a list of the parts of one answer; kind: what it is, "auto" = as its form tells.
    Raises `UsageError`: the reference is none, a tolerance or the deadline makes no sense, a verifier is not trusted.
    """
    check_deadline(deadline_s)
    for name in ("relative_tolerance", "absolute_tolerance"):
        value = getattr(rules, name)
        if not 0 <= value < math.inf:
            raise UsageError("expected a number of at least 0", field=name, value=value)
    question = question_on(reference, kind, rules, choices)
    sample = Sample(
        benchmark="", question_id="", sample_index=0, text=response, reasoning=None, finish_reason="stop",
        timing=Timing(started=0.0, total=0.0), endpoint="",
    )  # fmt: skip
    ((_, verdict),) = verdicts({"": question}, [sample], deadline_s=deadline_s, tell=True)
    return verdict


def check_deadline(seconds: float) -> None:
    """Raises `UsageError` for a deadline of one answer that makes no sense."""
    if not 0 < seconds < MAX_DEADLINE_SECONDS:
        raise UsageError(
            f"expected seconds above 0 and below {MAX_DEADLINE_SECONDS:g}", field="deadline", value=seconds
        )


def question_on(
    reference: Any,
    kind: AnswerKind | Literal["auto"] = "auto",
    rules: GradeRules = _NO_RULES,
    choices: tuple[str, ...] = (),
    name: str = "",
) -> Question:
    """A question of which only the reference is known. Raises `UsageError` when that is none."""
    try:
        accepted, known = read_reference(reference, kind)
    except ValueError as error:
        raise UsageError(f"the reference answer {error}") from error
    return Question(
        benchmark="", question_id=name, references=accepted, kind=known, rules=rules, choices=choices, row_digest="",
        prompt_digest="",
    )  # fmt: skip


def grader_names(questions: Iterable[Question]) -> dict[str, str]:
    """What stands in a grade as its grader, by the `grader` of the rules: the rules' version, or a verifier's identity.

    Each verifier is imported for it, in a process of its own. Raises `UsageError`: one is not trusted, or broken.
    """
    of_grader: dict[str, Question] = {}
    for question in questions:
        of_grader.setdefault(question.rules.grader, question)
    if of_grader.keys() <= {verifier.RULES}:
        return {verifier.RULES: GRADER}
    asked = [*of_grader.values()]
    verifier.require_trusted(asked)
    return {verifier.RULES: GRADER} | {grader: _identity(grader) for grader in verifier.named(asked)}


def _identity(grader: str) -> str:
    try:
        done = subprocess.run(
            isolated.command(_PROGRAM, "check", grader), env=isolated.environment(verifier.TRUST_VARIABLE),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=WARMING_SECONDS, check=False,
        )  # fmt: skip
        checked = codec.decode(done.stdout, Checked)
    except subprocess.TimeoutExpired:
        checked = Checked(error=f"its import takes longer than {WARMING_SECONDS:g} s")
    except codec.DecodeError:
        checked = Checked(error="its import ends the process")
    if checked.error:
        raise UsageError(f"the verifier {quoted(grader)} cannot be used: {checked.error}")
    return checked.identity


class _Pending(NamedTuple):
    """A sample that waits for its verdict; its text is not kept."""

    sample: Sample
    grader: str
    searched: Search
    jobs: list[_Job]


def _judged(pool: Pool, pending: _Pending) -> tuple[Sample, Verdict]:
    searched, jobs = pending.searched, pending.jobs
    decision = pool.decision(jobs[0]) if searched.found is not None else NO_ANSWER
    rest = jobs[1:] if searched.found is not None else jobs
    right_elsewhere = decision.outcome != "correct" and any(pool.decision(job).outcome == "correct" for job in rest)
    return pending.sample, conclude(searched, decision, right_elsewhere, grader=pending.grader)


class _Worker:
    """One process and the tasks that it still owes, oldest first."""

    def __init__(self, deadline: float) -> None:
        self.process = subprocess.Popen(
            isolated.command(_PROGRAM, str(deadline), seeded=True),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=isolated.environment(verifier.TRUST_VARIABLE, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1"),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        os.set_blocking(self.stdout.fileno(), False)
        self.owed: deque[tuple[str, _Job]] = deque()
        self.buffer = bytearray()
        self.deadline_at = 0.0
        self._schedstat = _schedstat_of(self.process.pid)
        self._waited = 0.0
        self.ready = False

    def must_answer(self, seconds: float) -> None:
        """From now on it has so much time for its next answer."""
        self.deadline_at = time.monotonic() + seconds
        self._waited = self.waited()

    def waited(self) -> float:
        """Seconds in which the process could have run and had no processor; 0 where the system does not tell."""
        if self._schedstat is None:
            return 0.0
        try:
            return int(os.pread(self._schedstat, 100, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def is_late(self) -> bool:
        """Its time is up. What it waited for a processor is no time of the answer, or verdicts would hang on how busy
        the machine is."""
        if time.monotonic() < self.deadline_at:
            return False
        waited = self.waited()
        self.deadline_at += waited - self._waited
        self._waited = waited
        return time.monotonic() >= self.deadline_at

    def kill(self) -> None:
        """End the process and whatever it started; wait for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # what was not written yet
            self.stdin.close()
        self.stdout.close()
        if self._schedstat is not None:
            os.close(self._schedstat)
            self._schedstat = None


def _schedstat_of(pid: int) -> int | None:
    """The open file in which Linux tells how long a process waited for a processor; None elsewhere."""
    try:
        return os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


class Pool:
    """Worker processes, started when they are needed; a context manager that ends them. Not for several threads."""

    def __init__(self, workers: int, deadline: float) -> None:
        if workers < 1:
            raise UsageError("at least one worker is needed", field="workers", value=workers)
        if deadline <= 0:
            raise UsageError(f"a deadline of {deadline} s leaves no time to grade; give a positive number")
        self.size = workers
        self.deadline = deadline
        self.workers: list[_Worker] = []
        self.queue: deque[_Job] = deque()
        self.decisions: dict[bytes, Decision | None] = {}  # by key; None while it is owed
        self._said: dict[Decision, Decision] = {}  # most are like others: each stands once
        self.selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()
        self.selector.close()

    def ask(self, job: _Job) -> None:
        """Have `job` decided, once."""
        if job.key in self.decisions:
            return
        self.decisions[job.key] = None
        self.queue.append(job)
        if len(self.queue) >= BATCH_ITEMS:
            self.dispatch()
            self.pump(0.0)

    def forget(self) -> None:
        """Drop what was decided: the memory of a pool that lives on stays that of one batch."""
        self.decisions, self._said = {}, {}

    def settled(self, jobs: list[_Job]) -> bool:
        """All of `jobs` are decided."""
        return all(self.decisions[job.key] is not None for job in jobs)

    def decision(self, job: _Job) -> Decision:
        """The decision on `job`, waited for; it was asked for before."""
        while (decision := self.decisions[job.key]) is None:
            self.dispatch()
            self.pump(0.25)
        return decision

    # --- sending ---
    def dispatch(self) -> None:
        for worker in [one for one in self.workers if not one.owed and one.process.poll() is not None]:
            self.replace(worker, None)  # ended by someone else while it had nothing to do: no answer is to blame
        while self.queue:
            idle = next((worker for worker in self.workers if not worker.owed), None)
            if idle is None:
                if len(self.workers) >= self.size:
                    return
                idle = self.start()
            batch = [self.queue.popleft() for _ in range(min(BATCH_ITEMS, len(self.queue)))]
            self.send(idle, batch)

    def start(self) -> _Worker:
        worker = _Worker(self.deadline)
        self.workers.append(worker)
        self.selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def send(self, worker: _Worker, jobs: list[_Job]) -> None:
        tasks, before = [], None
        for job in jobs:
            item = secrets.token_hex(8)  # a forged reply cannot know it
            worker.owed.append((item, job))
            tasks.append(Task(item, None if job.question is before else job.question, job.answer, job.tell))
            before = job.question
        # While the process is importing, the clock of its first answer does not run.
        worker.must_answer(self.deadline if worker.ready else WARMING_SECONDS)
        try:
            message = frame(tasks)
            if len(message) > MAX_FRAME_BYTES and len(jobs) > 1:
                worker.owed.clear()
                for job in jobs[1:]:
                    self.queue.appendleft(job)
                self.send(worker, jobs[:1])
                return
            worker.stdin.write(message)
            worker.stdin.flush()
        except OSError:
            self.replace(worker, "crash")

    # --- receiving ---
    def pump(self, timeout: float) -> None:
        now = time.monotonic()
        busy = [worker.deadline_at for worker in self.workers if worker.owed]
        wait = min([timeout, *(max(at - now, 0.0) for at in busy)])
        for key, _ in self.selector.select(wait):
            self.receive(key.data)
        for worker in list(self.workers):
            if worker.owed and worker.is_late():
                self.receive(worker)  # a reply that arrived just now still counts
                if worker in self.workers and worker.owed and worker.is_late():
                    self.replace(worker, "time")

    def receive(self, worker: _Worker) -> None:
        if worker not in self.workers:
            return
        try:
            data = os.read(worker.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.replace(worker, "crash")
            return
        worker.buffer += data
        answered = False
        while len(worker.buffer) >= 4:
            (size,) = struct.unpack_from(">I", worker.buffer)
            if size > MAX_FRAME_BYTES:
                self.replace(worker, "crash")
                return
            if len(worker.buffer) < 4 + size:
                break
            body = bytes(worker.buffer[4 : 4 + size])
            del worker.buffer[: 4 + size]
            if not self.accept(worker, body):
                return
            answered = True
        if answered:
            worker.must_answer(self.deadline if worker.ready else WARMING_SECONDS)

    def accept(self, worker: _Worker, body: bytes) -> bool:
        """Take one reply; False when it was not the one that is owed and the worker was replaced."""
        try:
            reply = codec.decode(body, Reply)
        except codec.DecodeError:
            self.replace(worker, "crash")
            return False
        if reply.item == "" and reply.outcome in (WARMING, READY):
            worker.ready = reply.outcome == READY
            return True
        if not worker.owed or worker.owed[0][0] != reply.item or reply.outcome not in _VERDICTS:
            self.replace(worker, "crash")
            return False
        _, job = worker.owed.popleft()
        said = Decision(reply.outcome, reply.rule, reply.vote, reply.steps, reply.near_miss)  # type: ignore[arg-type]
        self.decisions[job.key] = self._said.setdefault(said, said)
        if reply.rule == "memory":
            self.replace(worker, None)  # start clean after memory ran out
            return False
        return True

    def replace(self, worker: _Worker, rule: str | None) -> None:
        """Kill a worker. The answer that it was working on is undecided by `rule`; the others are asked again."""
        self.workers.remove(worker)
        self.selector.unregister(worker.stdout)
        worker.kill()
        owed = [job for _, job in worker.owed]
        worker.owed.clear()
        if rule is not None and owed:
            job = owed.pop(0)
            self.decisions[job.key] = Decision("undecided", rule, job.answer[:200] or None)
        self.queue.extendleft(reversed(owed))


_VERDICTS = frozenset(("correct", "wrong", "no_answer", "undecided"))
