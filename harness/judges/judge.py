"""A judge model rules on a run's grades: the rules grade first, then the judge sees the samples in its scope.

The judge's requests and replies form a separate run folder, `<run>/judge/<model, prompt, sampling>/`. A judge that
was killed and restarted asks only for missing replies; once every answer has its reply, no server is contacted.

Long: a judge is tested before a run with the same requests that it receives after the run.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from harness.benchmarks.judge_forms import OF_CARD, RUBRIC, JudgeForm, form_named
from harness.benchmarks.questions import QuestionSet
from harness.client.address.endpoint import Endpoint
from harness.client.request_builder import Asker
from harness.core import channel
from harness.core.codec import digest
from harness.core.errors import HarnessError, Interrupted, ServerError, UsageError
from harness.core.number_text import Prices, count_noun
from harness.core.records import Grade, Key, Message, Question, Sample
from harness.core.sanitize import visible
from harness.generation.outcome import Outcome
from harness.generation.runner import Listener, ServerSide, generate
from harness.generation.settings import DEFAULT_CONCURRENCY, BenchmarkSettings, Patience, RunSettings, with_neutral
from harness.grading import verifier
from harness.grading.second.judge_messages import (
    JudgeRuling,
    Scope,
    answer_for_judge,
    apply_ruling,
    in_scope,
    judge_name,
    judge_question,
    jury_ruling,
    text_for_judge,
    vote,
)
from harness.grading.second.second_opinion import Agreement, agreement
from harness.grading.turns import as_history
from harness.grading.verifier import JUDGE_RULE
from harness.options.judge import JudgeOptions
from harness.preparing import servers
from harness.preparing.servers import discover
from harness.presets.sampling import Sampling
from harness.progress.events import Watcher
from harness.runs import Manifest, RunFolder, read_samples
from harness.runs.grades import replace_opinions
from harness.runs.layout import named_folder
from harness.runs.line_file import make_folder
from harness.scoring.anomalies import reply_doubts
from harness.scoring.judging import JudgeCost, JudgeErrors, Judging
from harness.scoring.pipeline import GradedBenchmark, publish
from harness.scoring.score import Score, warned
from reasoning_answers.host import LEFT_OPEN, failure
from server_launchers.engines import table as engines

MAX_TOKENS = 4096
"""Largest number of new tokens in one reply: enough for a comparison in words. A judge that thinks at length needs
more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """Which model judges which samples, and how.

    model: name of the checkpoint, also used in the grades. override: whether the judge's verdict also replaces a
    verdict of the rules. prices: prices of the judge's tokens; None if they are not known. key_variable: the
    environment variable that the user named for the key; None if there is none. given: the options that the user set.
    of_card: whether the benchmark's card names the form. jury: further judges, which rule with this one
    (`judge_messages.jury_ruling`). serve: looks up the judge's server; called for the trial, and when replies are
    missing.
    """

    model: str
    prompt: JudgeForm
    serve: Serve
    scope: Scope = "open"
    override: bool = False
    temperature: float = 0.0
    max_tokens: int = MAX_TOKENS
    key_variable: str | None = None
    prices: Prices | None = None
    given: frozenset[str] = frozenset()
    of_card: bool = False
    jury: tuple[JudgeSettings, ...] = ()

    @property
    def members(self) -> list[JudgeSettings]:
        """Each judge of the jury separately, with this form; without a jury, the judge itself."""
        return [dataclasses.replace(each, prompt=self.prompt, jury=()) for each in (self, *self.jury)]

    def for_form(self, form: str) -> JudgeSettings:
        """The judge for a benchmark whose card names `form`; empty: the card names none.

        Unless the user set another prompt, scope or override, the judge then has this form and rules on every reply,
        and its ruling counts. Raises `UsageError`.
        """
        if not form or "prompt" in self.given:
            return self
        own = dataclasses.replace(self, prompt=form_named(form), of_card=True)
        return own if {"scope", "override"} & self.given else dataclasses.replace(own, scope="all", override=True)

    @property
    def sampling(self) -> Sampling:
        """The sampling fields of each judge request."""
        return Sampling(temperature=self.temperature, max_tokens=self.max_tokens)

    @property
    def name(self) -> str:
        """The name of this judge in the grades that it decides; a jury's name is its judges' names joined by "+"."""
        return "+".join(judge_name(each.model, self.prompt) for each in (self, *self.jury))

    @property
    def options(self) -> dict[str, Any]:
        """The options of `JudgeOptions` that decide verdicts, by name."""
        return {
            "model": self.model,
            "prompt": self.prompt.name,
            "scope": self.scope,
            "override": self.override,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            **({"form": OF_CARD} if self.of_card else {}),
            **({"jury": [each.model for each in self.jury], "take": self.prompt.take} if self.jury else {}),
        }

    def judging(self, *, ended: bool, mute: bool = False, cost: JudgeCost | None = None) -> Judging:
        """What a score by this judge records about it. ended, mute, cost: as in `Judging`."""
        return Judging(name=self.name, settings=self.options, ended=ended, mute=mute, cost=cost)

    def folder(self, run: RunFolder) -> RunFolder:
        """The folder of this judge's replies for the run: one for each model, prompt wording and sampling."""
        made_of = digest([self.model, self.prompt.digest, self.sampling.request_fields()])[:8]
        return RunFolder(named_folder(run.path / "judge", self.model, f"-{self.prompt.name}-{made_of}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeServer:
    """The server that runs the judge.

    asker: makes the judge's requests. concurrency: largest number of requests in flight over all endpoints. servers:
    the session's data on the endpoints. wait: how long to wait for the first reply, in seconds, if the user set it.
    """

    endpoints: tuple[Endpoint, ...]
    asker: Asker
    concurrency: int
    servers: ServerSide = field(default_factory=ServerSide)
    wait: float | None = None


Serve = Callable[[], JudgeServer]
"""Looks up a judge's server."""


def judge_of(options: JudgeOptions, watcher: Watcher | None = None, prices: Prices | None = None) -> JudgeSettings:
    """The judge's settings, with a function that looks up its server. prices: prices of its tokens.

    This does not contact the judge's server yet. Raises `UsageError`.
    """
    watcher = watcher or Watcher()
    assert options.model is not None
    return JudgeSettings(
        model=options.model,
        prompt=form_named(options.prompt),
        serve=cache(lambda: _server(options, watcher)),
        scope=options.scope,
        override=options.override,
        temperature=options.temperature or 0.0,
        max_tokens=options.max_tokens or MAX_TOKENS,
        key_variable=servers.key_variable(options),
        prices=prices,
        given=frozenset(options.explicit),
        jury=tuple(judge_of(juror, watcher, prices) for juror in options.jurors),
    )


TRIAL = Question(
    benchmark="trial",
    question_id="sum",
    messages=(Message("user", "What is 2 + 3?"),),
    references=("5",),
    kind="integer",
    row_digest=digest("What is 2 + 3?"),
    prompt_digest=digest("What is 2 + 3?"),
    rubric='[{"criterion": "The reply says that the sum is 5.", "points": 1}]',
)
"""The question of a judge's trial."""

TRIAL_ANSWERS = {"right": TRIAL.references[0], "wrong": "no such answer"}
"""The two answers to `TRIAL` about which the judge is asked."""

MAX_SESSIONS = 2
"""A judge whose reply is empty or not in the requested form is asked once more. Then the answer keeps its verdict
until the next command asks again.
"""

MIN_ALIKE = 10
"""A warning is given if the judge called at least this many distinct answers correct, and none wrong."""

MAX_QUOTED_CHARS = 100
"""Largest number of characters of a judge's reply that a warning quotes."""

_VERDICT_WORDS = {"correct": "correct", "wrong": "incorrect", "no_answer": "not attempted"}
"""The verdict of a judge's reply → its word in the line about the trial."""

TRIAL_SECONDS = 120.0
"""Seconds that a judge's trial waits for the first token of a reply, and for each later token: a person is waiting."""

TRIAL_PATIENCE = Patience(attempts=1, grace=0.0, term_grace=0.0)
"""In a trial, one failure is final, unless the server is down or asks for a pause (`generation.dispatch.retry`), and a
signal ends it at once, since none of its replies are kept.
"""


def try_judge(options: JudgeOptions, watcher: Watcher, forms: Iterable[str] = (), *, may_start: bool = False) -> None:
    """Ask the judge about a right and a wrong answer with the same requests as in scoring, so that a failing judge is
    noticed before hours of sampling. Reports to the watcher how long its replies took.

    Raises `UsageError` or `ServerError`, with the same message as in scoring, if the judge cannot be asked: no key, no
    answer, no such model. Warns if a reply has no verdict, if the judge calls the wrong answer correct, and if it calls
    the right answer wrong with one of the harness's forms (a rubric may rightly reject it); with points, only if none
    can be read. forms: the forms that the run's cards name, "" for none. may_start: whether the caller will start
    servers, one of which may be the judge; a judge that cannot be asked yet is then only a warning.
    """
    # A server that the caller will start is not waited for.
    judge = judge_of(options.replace(wait=0) if may_start else options, watcher)
    named = {each.prompt.name: each for each in map(judge.for_form, dict.fromkeys(forms) or [""])}
    try:
        for juror in (each for of_form in named.values() for each in of_form.members):
            name = visible(juror.model, 80)
            watcher.standing(f"testing the judge {name} on two answers")
            with TemporaryDirectory() as folder:
                replies = _trial(juror, juror.serve(), RunFolder(Path(folder) / "trial"))
            _report_trial(juror, replies, watcher, name if len(named) == 1 else f"{name} ({juror.prompt.name})")
    except ServerError as error:
        if not may_start:
            raise
        watcher.warn(f"the judge is currently unavailable: {error.sentence}")


def _report_trial(judge: JudgeSettings, replies: Sequence[Sample], watcher: Watcher, name: str) -> None:
    """Report the result of the judge's trial to the watcher. replies: the replies about each of `TRIAL_ANSWERS`."""
    for (which, answer), reply in zip(TRIAL_ANSWERS.items(), replies, strict=True):
        ruling = vote(reply, judge.prompt, TRIAL)
        called = "neither correct nor incorrect" if ruling is None else _VERDICT_WORDS[ruling.verdict]
        watcher.standing(f"the judge {name} called the {which} answer {called} after {reply.timing.total:.1f} s")
        if ruling is None:
            watcher.warn(
                f"the judge {name} gave no verdict when it was tested on the {which} answer: "
                f"{_no_verdict(judge, reply)}. If the judge gives no verdict on an answer, the answer keeps its "
                "previous verdict (see docs/judge.md)"
            )
        elif judge.prompt.gives_points or (which == "right" and judge.prompt.name.startswith(RUBRIC)):
            continue
        elif (ruling.verdict == "correct") is (which == "wrong"):
            watcher.warn(
                f'the judge {name} was tested on the {which} answer "{answer}" to the question '
                f'"{TRIAL.messages[0].content}" and called it {called}: it may call every answer {called}'
            )


def _trial(judge: JudgeSettings, server: JudgeServer, folder: RunFolder) -> list[Sample]:
    """The judge's replies about the right and the wrong answer to `TRIAL`, in this order.

    Raises `ServerError` if the judge does not reply, and `Interrupted`.
    """
    questions = [judge_question(judge.prompt, TRIAL, answer) for answer in TRIAL_ANSWERS.values()]
    deadlines = dataclasses.replace(server.asker.deadlines, first_token=TRIAL_SECONDS, idle=TRIAL_SECONDS)
    server = dataclasses.replace(server, asker=dataclasses.replace(server.asker, deadlines=deadlines))
    make_folder(folder.path)
    try:
        outcome = _ask(folder, {TRIAL.benchmark: questions}, judge, server, Watcher(), TRIAL_PATIENCE)
    except Interrupted as error:
        # The session's own message says that its folder can be resumed, but this folder is deleted.
        signum = error.exit_code - 128
        stopped = (
            f"stopped by {signal.Signals(signum).name} while the judge was being tested, before any "
            "samples were generated"
        )
        raise Interrupted(stopped, signum) from None
    replies = {reply.question_id: reply for reply in read_samples(folder.benchmark(TRIAL.benchmark))}
    if len(replies) < len(questions):
        raise _name_judge(judge.model, ServerError(_why_unanswered(outcome) or "no reply came"))
    return [replies[question.question_id] for question in questions]


def _no_verdict(judge: JudgeSettings, reply: Sample) -> str:
    """The reason why this reply of the judge has no verdict."""
    if reply.truncated:
        return f"its reply was truncated at {count_noun(judge.max_tokens, 'token')} (`max_tokens`)"
    last_line = visible((reply.text or "").strip().rpartition("\n")[2], MAX_QUOTED_CHARS)
    return f"the last line of its reply is {last_line!r}, but the prompt asks for {judge.prompt.expected_form}"


def _name_judge(model: str, error: ServerError) -> ServerError:
    """The error with the judge's name before its message."""
    return ServerError(f"the judge {visible(model, 80)}: {error.sentence}")


def _server(who: JudgeOptions, watcher: Watcher) -> JudgeServer:
    """Contact the judge's server, and return it with its asker and context length.

    Raises `ServerError` and `UsageError` that name the judge: the run may have another server.
    """
    try:
        reached = servers.find(who)
        info = discover(reached, who, watcher)
    except ServerError as error:
        raise _name_judge(who.model or "", error) from error
    except UsageError as error:
        raise UsageError(f"judge: {error.sentence}") from error
    return JudgeServer(
        endpoints=reached.endpoints,
        asker=info.asker(reached.provider),
        concurrency=who.concurrency or info.concurrency or DEFAULT_CONCURRENCY,
        servers=ServerSide(contexts=info.contexts, down=info.failures),
        wait=who.wait,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport:
    """What the judge did on one benchmark.

    agreement: agreement of the rules with the judge over the samples for which the judge's replies are complete;
    its disagreements exclude samples that the rules left undecided or on which the judge had no opinion. n_answers:
    distinct answers in scope. n_outside, n_silent: samples that the judge did not see (`Cases`). n_missing: answers
    with replies missing. n_decided: samples whose verdict is now the judge's. cost: cost of all replies.
    first_grader: what graded before the judge, the rules or a user's function. judge: its settings, with the
    benchmark's form. by_juror: the models of a jury, each with the mean of its rulings, a fraction; empty without a
    jury.
    """

    judge: JudgeSettings
    by_juror: Mapping[str, float]
    benchmark: str
    first_grader: str
    agreement: Agreement
    n_answers: int
    n_outside: int
    n_silent: int
    n_missing: int
    n_decided: int
    cost: JudgeCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judged run. scores: the scores after the judge. outcomes: outcomes of the judge's sessions; empty if no reply
    was missing, so that the judge was not asked. n_stored: number of replies that were stored before.

    mute: if the judge gave no verdict at all, a warning that names the location of its replies; otherwise empty. The
    scores contain the same warning.
    """

    scores: list[Score]
    reports: list[JudgeReport]
    outcomes: tuple[Outcome, ...]
    n_stored: int
    mute: str

    @property
    def outcome(self) -> Outcome | None:
        """The last session that left replies missing, or the last session; None if the judge was not asked."""
        return next((each for each in reversed(self.outcomes) if not each.complete), (None, *self.outcomes)[-1])


def score_with_judge(
    run: RunFolder,
    by_rules: Iterable[GradedBenchmark],
    judge: JudgeSettings,
    watcher: Watcher | None = None,
) -> Judged:
    """Grade by the rules, ask the judge, then write grades and scores.

    by_rules: the benchmarks as graded by `grade_run`; benchmarks whose cards name the same form share a separate
    session. Stored scores stay as they are until the judge's sessions have ended. If one fails, a benchmark without a
    score gets the score of the rules, with a warning that the judging has not ended. An answer for which a judge's
    reply is missing keeps the rules' grade. Raises what `by_rules` and `generate` raise. watcher: receives reports on
    the judge's sessions.
    """
    graded = [*by_rules]
    groups: dict[str, list[GradedBenchmark]] = {}
    for benchmark in graded:
        groups.setdefault(benchmark.questions[0].rules.judge, []).append(benchmark)
    judgings = [_Judging(run, judge.for_form(form), benchmarks) for form, benchmarks in groups.items()]
    try:
        for each in judgings:
            each.ask(watcher or Watcher())
    except (HarnessError, KeyboardInterrupt):
        for each in judgings:
            for benchmark in each.graded:
                if not benchmark.folder.scores.exists():
                    publish(_mark_unfinished(benchmark, each.judge))
        raise
    written = {report.benchmark: (score, report) for each in judgings for score, report in each.publish()}
    return Judged(
        scores=[written[benchmark.folder.name][0] for benchmark in graded],
        reports=[written[benchmark.folder.name][1] for benchmark in graded],
        outcomes=tuple(outcome for each in judgings for outcome in each.outcomes),
        n_stored=sum(each.n_stored for each in judgings),
        mute=next(filter(None, (each.no_verdict_note for each in judgings)), ""),
    )


class JudgeRequests:
    """The requests of a judge, or of each judge of a jury, about cases, and their stored replies.

    run: the run in which each judge has its own folder. of_each: for each judge, the replies to each of `cases`.
    n_stored: number of replies that were there before. outcomes: outcomes of all sessions.
    """

    def __init__(self, run: RunFolder, judge: JudgeSettings, cases: Sequence[Cases]) -> None:
        self.run, self.judge, self.cases = run, judge, cases
        self.members = judge.members
        self.folders = [each.folder(run) for each in self.members]
        self.of_each = [self._stored(number) for number in range(len(self.members))]
        self.n_stored = sum(len(replies.rulings) for stored in self.of_each for replies in stored)
        self.outcomes: list[Outcome] = []

    def _stored(self, number: int) -> list[Replies]:
        return [_replies(self.folders[number], cases, self.members[number]) for cases in self.cases]

    @property
    def stored(self) -> list[Replies]:
        """The replies to each of the cases, with the rulings of the jury."""
        pairs = zip(self.cases, zip(*self.of_each, strict=True), strict=True)
        return [_jury_replies(self.judge.prompt, cases, replies) for cases, replies in pairs]

    @property
    def missing(self) -> list[Question]:
        """The requests whose replies are missing."""
        pairs = ((cases, replies) for of in self.of_each for cases, replies in zip(self.cases, of, strict=True))
        return [
            replies.again.get(case, question)
            for cases, replies in pairs
            for case, question in cases.questions.items()
            if case in replies.missing
        ]

    def ask(self, watcher: Watcher) -> None:
        """Ask for the missing replies, and once more about cases whose replies are all empty or not in the requested
        form; one judge after the other, even if a server rejects some requests, until a session is stopped.
        """
        for number, time in itertools.product(range(len(self.members)), range(MAX_SESSIONS)):
            # The second time, only repeated requests: a case too long for the judge's context stays missing.
            member, stored, folder = self.members[number], self.of_each[number], self.folders[number]
            if not any(of.missing & of.again.keys() if time else of.missing or of.again for of in stored):
                continue
            for path in (self.run.path, self.run.path / "judge", folder.path):
                make_folder(path)
            questions = {
                cases.benchmark: [*cases.questions.values(), *replies.earlier, *replies.again.values()]
                for cases, replies in zip(self.cases, stored, strict=True)
            }
            try:
                outcome = _ask(folder, questions, member, member.serve(), watcher)
            except ServerError as error:
                if any(replies.missing for replies in stored):
                    raise
                channel.warn(f"{error.sentence}. The stored replies are used.")
                continue
            self.outcomes.append(outcome)
            self.of_each[number] = self._stored(number)
            if outcome.stopped:
                return

    def cost(self, benchmark: str) -> JudgeCost:
        """The cost of all replies about a benchmark."""
        replies = (read_samples(folder.benchmark(benchmark)) for folder in self.folders)
        return reduce(JudgeCost.add, (JudgeCost.of(of, self.judge.prices) for of in replies))


def _jury_replies(form: JudgeForm, cases: Cases, of_each: Sequence[Replies]) -> Replies:
    """The replies of all judges of a jury, combined as if from one judge. of_each: the replies of each judge."""
    if len(of_each) == 1:
        return of_each[0]
    rulings = {
        case: [replies.rulings[case] for replies in of_each]
        for case in cases.questions
        if all(case in replies.rulings for replies in of_each)
    }
    return Replies(
        {case: jury_ruling(form, of, cases.about[case][0]) for case, of in rulings.items()},
        frozenset().union(*(replies.missing for replies in of_each)),
        {case: question for replies in of_each for case, question in replies.again.items()},
        {server: None for replies in of_each for server in replies.servers},
    )


class _Judging(JudgeRequests):
    """The judging of the benchmarks with one form. graded: the benchmarks as graded by the rules."""

    def __init__(self, run: RunFolder, judge: JudgeSettings, graded: Sequence[GradedBenchmark]) -> None:
        super().__init__(run, judge, [cases_of(benchmark, judge) for benchmark in graded])
        self.graded = graded

    @property
    def no_verdict(self) -> str:
        """A sentence if the judge gave no verdict on any answer; otherwise "". It names no folder: a score may move."""
        n_answers = sum(len(cases.questions) for cases in self.cases)
        stored = self.stored
        if not n_answers or any(replies.missing for replies in stored) or not _never_ruled(stored):
            return ""
        return (
            f"the judge was asked about {count_noun(n_answers, 'answer')} and gave no verdicts at all, so the "
            "score uses the verdicts made without the judge"
        )

    @property
    def no_verdict_note(self) -> str:
        """The sentence `no_verdict` with the location of the replies, or empty."""
        jurors = zip(self.folders, self.of_each, strict=True)
        of_mute = next((folder for folder, stored in jurors if _never_ruled(stored)), self.folders[0])
        shown = shlex.quote(str(of_mute.path))
        return (
            self.no_verdict
            and f"{self.no_verdict}; to read its replies, run `harness show {shown}`. To ask it again, delete {shown}"
        )

    def publish(self) -> Iterator[tuple[Score, JudgeReport]]:
        """Write the grades and scores with the judge's rulings; yield each score and the report on the judge."""
        stored, model = self.stored, Manifest.load(self.run).model
        agreeable, mute = _leniency_warning(stored), self.no_verdict
        doubts = [
            f"the judge{f' {visible(each.model, 80)}' if self.judge.jury else ''}'s own run: {doubt}"
            for each, of in zip(self.members, self.folders, strict=True)
            for doubt in reply_doubts(of)
        ]
        outcome = next((each for each in self.outcomes if each.n_missing), None)
        of_each = zip(*self.of_each, strict=True)
        for benchmark, cases, replies, own in zip(self.graded, self.cases, stored, of_each, strict=True):
            after, report = _apply(benchmark, cases, replies, self.judge, self.cost(cases.benchmark), own)
            warnings = [
                _family_warning(self.judge, model) if cases.questions else "",
                mute if cases.questions else "",
                agreeable if replies.rulings else "",
                "" if mute else _silent_warning(benchmark.grades, cases, replies),
                _missing_warning(replies, len(cases.questions), outcome),
                *(doubts if replies.rulings else ()),
            ]
            score = publish(dataclasses.replace(after, warnings=(*after.warnings, *warned("judge", warnings))))
            yield score, report


def _mark_unfinished(graded: GradedBenchmark, judge: JudgeSettings) -> GradedBenchmark:
    """The benchmark with the rules' grades, and a warning that remains until the judge has finished.

    No warning if no sample is in the judge's scope: the rules' verdicts are then final.
    """
    if not any(in_scope(grade, judge.scope) for grade in graded.grades):
        return dataclasses.replace(graded, judging=judge.judging(ended=True))
    judging = judge.judging(ended=False)
    warnings = (*graded.warnings, *warned("judge", [judging.unfinished_warning("this score")]))
    return dataclasses.replace(graded, warnings=warnings, judging=judging)


def _silent_warning(grades: Iterable[Grade], cases: Cases, replies: Replies) -> str:
    """A warning with the number of samples that stay undecided because the judge gave no verdict on them, or empty.

    grades: the grades before the judge.
    """
    silent = {case for case, ruling in replies.rulings.items() if ruling is None}
    n = sum(grade.verdict == "undecided" and cases.case_of.get(grade.key) in silent for grade in grades)
    them = "it" if n == 1 else "them"
    again = f", {count_noun(len(replies.again), 'answer')} more than once," if replies.again else ""
    sentence = f"the judge was asked about {count_noun(n, 'undecided sample')}{again} and gave no verdict on {them}"
    return sentence if n else ""


def _missing_warning(replies: Replies, n_answers: int, outcome: Outcome | None) -> str:
    """A warning if replies of the judge are missing, with the cause, or empty. outcome: that of the judge's session."""
    if not replies.missing:
        return ""
    why = "" if outcome is None else f" ({_why_unanswered(outcome)})"
    return (
        f"the judge has not ruled on {len(replies.missing):,} of {count_noun(n_answers, 'answer')}{why}; these keep "
        "the verdicts they had without the judge. To ask again, run the same command"
    )


def _why_unanswered(outcome: Outcome) -> str:
    """Why replies of the judge's session are missing: the first cause without its count, which covers all benchmarks
    and warnings; empty if none is known.
    """
    return next(filter(None, (*(cause.example for cause in outcome.causes), str(outcome.stopped))), "")


def _leniency_warning(stored: Sequence[Replies]) -> str:
    """A warning if the judge called many distinct answers correct and none wrong; otherwise empty.

    An answer without a verdict does not show that the judge calls anything wrong, so it changes nothing. stored: the
    replies for all benchmarks.
    """
    verdicts = Counter(ruling.verdict for replies in stored for ruling in replies.rulings.values() if ruling)
    if verdicts["correct"] < MIN_ALIKE or verdicts["wrong"] or verdicts["no_answer"]:
        return ""
    return (
        f"the judge called {verdicts['correct']:,} distinct answers of this run correct and none wrong, so it may call "
        "every answer correct. Measure it with `harness audit`, or on labeled replies with `harness audit --labels`"
    )


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of one benchmark: the distinct pairs of a question and an answer on which the judge is to rule.

    questions: the question to the judge, by case id. case_of: sample → id of its case; samples without text have none.
    about: the benchmark's question and the answer as the judge sees it, by case id. n_outside, n_silent: samples on
    which the judge is not to rule, since they are out of its scope, or have no text that it could see.
    """

    benchmark: str
    questions: dict[str, Question]
    case_of: dict[Key, str]
    about: dict[str, tuple[Question, str]]
    n_outside: int = 0
    n_silent: int = 0

    @classmethod
    def of(cls, benchmark: str, form: JudgeForm, asked: Iterable[tuple[Key, Question, str | None]]) -> Cases:
        """The cases of these samples. asked: each with its question and the answer as the judge sees it, or None."""
        case_ids: dict[tuple[str, str], str] = {}
        cases = cls(benchmark, {}, {}, {})
        for key, question, answer in asked:
            if answer is None:
                continue
            pair = question.question_id, answer
            if pair not in case_ids:
                request = judge_question(form, question, answer)
                case_ids[pair] = request.question_id
                cases.questions.setdefault(request.question_id, request)
                cases.about.setdefault(request.question_id, (question, answer))
            cases.case_of[key] = case_ids[pair]
        return cases


def cases_of(graded: GradedBenchmark, judge: JudgeSettings) -> Cases:
    """The distinct (question, answer) pairs that the judge is to rule on, undecided ones first."""
    verifier.refuse_given(graded.questions)
    by_id = {question.question_id: question for question in graded.questions}
    in_words = {name for name, question in by_id.items() if question.kind != "calls"}
    to_judge = [grade for grade in graded.grades if grade.question_id in in_words and in_scope(grade, judge.scope)]
    to_judge.sort(key=lambda grade: grade.verdict != "undecided")  # Undecided samples are asked about first.
    whole = judge.prompt.reply_chars
    # Of a conversation, the judge reads the last reply: the extracted answer may be an earlier turn's.
    shown = {
        grade.key: None if whole or by_id[grade.question_id].turns else answer_for_judge(grade) for grade in to_judge
    }
    histories: dict[Key, Question] = {}
    unread = {key for key, answer in shown.items() if answer is None}
    for sample in read_samples(graded.folder, keys=unread) if unread else ():
        shown[sample.key] = text_for_judge(sample.text, is_apart=bool(sample.reasoning), whole=whole)
        if by_id[sample.question_id].turns:
            histories[sample.key] = as_history(by_id[sample.question_id], sample)
    pairs = ((key, histories.get(key, by_id[key.question_id]), answer) for key, answer in shown.items())
    cases = Cases.of(graded.folder.name, judge.prompt, pairs)
    n_silent = len(to_judge) - len(cases.case_of)
    return dataclasses.replace(cases, n_outside=len(graded.grades) - len(to_judge), n_silent=n_silent)


@dataclass(frozen=True, slots=True)
class Replies:
    """The judge's replies for one benchmark. rulings: case → its ruling, or None. missing: the cases without a reply.
    again: the next request about each case whose replies are all empty or not in the requested form. earlier: the
    repeated requests that have replies. servers: addresses of the servers that replied.
    """

    rulings: Mapping[str, JudgeRuling | None]
    missing: frozenset[str]
    again: Mapping[str, Question]
    servers: Mapping[str, None]
    earlier: Sequence[Question] = ()


def _replies(folder: RunFolder, cases: Cases, judge: JudgeSettings) -> Replies:
    """The stored replies of the judge, parsed into rulings."""
    rulings: dict[str, JudgeRuling | None] = {}
    servers: dict[str, None] = {}
    again: dict[str, Question] = {}
    earlier: list[Question] = []
    missing: set[str] = set()
    asked, attempt = cases.questions, 0
    while asked:
        case_of = {Key(question.question_id, 0): case for case, question in asked.items()}
        silent = []
        for reply in read_samples(folder.benchmark(cases.benchmark), keys={*case_of} if attempt else None):
            if (case := case_of.pop(reply.key, None)) is not None:
                servers[reply.endpoint] = None
                ruling = rulings[case] = vote(reply, judge.prompt, cases.about[case][0])
                if ruling is None and (judge.prompt.requests > 1 or not (reply.text or "").strip()):
                    silent.append(case)
        unanswered = {*case_of.values()}
        if attempt < 2:  # a case without a verdict after two requests is not missing
            missing |= unanswered
        if attempt:
            again.update((case, asked[case]) for case in unanswered)
            earlier.extend(question for case, question in asked.items() if case not in unanswered)
        attempt += 1
        asked = {case: judge_question(judge.prompt, *cases.about[case], attempt) for case in silent}
    return Replies(rulings, frozenset(missing), again, servers, earlier)


def _never_ruled(stored: Sequence[Replies]) -> bool:
    """Whether the judge has replied about at least one case, but never with a verdict."""
    rulings = [ruling for replies in stored for ruling in replies.rulings.values()]
    return bool(rulings) and all(ruling is None for ruling in rulings)


def _ask(
    folder: RunFolder,
    questions: Mapping[str, list[Question]],
    judge: JudgeSettings,
    server: JudgeServer,
    watcher: Watcher,
    patience: Patience | None = None,
) -> Outcome:
    """Ask the judge for the missing replies of all benchmarks, in one session.

    folder: the run folder of the replies. questions: the questions to the judge, by benchmark. patience: when the
    session gives up; None: as in a run.
    """
    owing = {name: of_benchmark for name, of_benchmark in questions.items() if of_benchmark}
    benchmark = BenchmarkSettings(samples=1, sampling=judge.sampling)
    asker = _with_schema(server.asker, judge.prompt, folder)
    settings = RunSettings(
        asker=asker,
        endpoints=server.endpoints,
        benchmarks=with_neutral(dict.fromkeys(owing, benchmark), folder, asker),
        out=folder.path,
        key_variable=judge.key_variable,
        concurrency=server.concurrency,
        prices=judge.prices,
        patience=dataclasses.replace(patience or Patience(), wait=server.wait),
        fit_context=True,
        accept_missing=True,  # an answer too long for the judge's context stays as the rules graded it
        canary=False,  # equal verdicts on all of the first answers are a good sign here
    )
    sets = [_question_set(name, of_benchmark, judge, folder) for name, of_benchmark in owing.items()]
    try:
        return generate(
            settings,
            sets,
            servers=server.servers,
            listener=Listener(on_progress=watcher.progressed),
        )
    except ServerError as error:
        raise _name_judge(judge.model, error) from error


def _with_schema(asker: Asker, form: JudgeForm, folder: RunFolder) -> Asker:
    """The judge's asker, which requests a reply that follows the form's JSON schema if its engine supports this.

    A resumed session asks in the same way as the first one, since a run's requests do not change.
    """
    schema, by_schema, manifest = form.schema_of_reply, asker.spelling.api.by_schema, Manifest.find(folder)
    if schema is None or by_schema is None:
        return asker
    fields = by_schema("ruling", schema)
    takes_one = engines.profile(asker.engine).writes_by_schema
    if manifest is not None and manifest.benchmarks:
        first = next(iter(manifest.benchmarks.values()))
        takes_one = fields.keys() <= (first.identity.get("extra_body") or {}).keys()
    return dataclasses.replace(asker, spelling=asker.spelling.with_fields(fields)) if takes_one else asker


def _question_set(benchmark: str, questions: list[Question], judge: JudgeSettings, folder: RunFolder) -> QuestionSet:
    """The judge's cases of one benchmark as questions, which a run folder can store."""
    # The cases grow with the run, so the identity of the judge's folder must not depend on them.
    unchanging = digest(["answers", benchmark])
    return QuestionSet(
        name=benchmark,
        questions=questions,
        n_all=len(questions),
        rows_digest=unchanging,
        dataset_digest=unchanging,
        prompt=judge.prompt.name,
        system_prompt=None,
        template_digest=judge.prompt.digest,
        origin=str(folder.path),
    )


def _failures(before: Iterable[Grade], after: Iterable[Grade]) -> dict[str, int]:
    """Failures of the benchmark's own verifier, as named by the rules of grades → number of samples that the judge
    decided instead.

    A verifier that returns None leaves an answer to the judge, which is not a failure. before, after: the grades before
    and after the judge, in the same order.
    """
    rules = (former.rule for former, grade in zip(before, after, strict=True) if grade.rule == JUDGE_RULE)
    return dict(Counter(rule for rule in rules if rule != LEFT_OPEN and failure(rule) is not None))


def is_of_family(judge: str, model: str) -> bool:
    """Whether two models have the same owner, or names that begin with the same word: `Qwen/QwQ-32B`, `qwen2.5-7b`."""
    (owner, name), (other_owner, other) = (each.casefold().rpartition("/")[::2] for each in (judge, model))
    stems = [re.match("[a-z]*", each) for each in (name, other)]
    words = {each[0] for each in stems if each}
    return (bool(owner) and owner == other_owner) or (len(words) == 1 and len(words.pop()) > 1)


def _family_warning(judge: JudgeSettings, model: str) -> str:
    """A warning if a judge and the evaluated model seem to be of the same family; otherwise empty."""
    for each in judge.members:
        if is_of_family(each.model, model):
            name = visible(each.model, 80)
            favors = "and judges favor their own model family; to compare models, use a different judge"
            return f"the judge {name} seems to be from the same family as the model, {favors}"
    return ""


def _apply(
    graded: GradedBenchmark,
    cases: Cases,
    replies: Replies,
    judge: JudgeSettings,
    cost: JudgeCost,
    of_each: Sequence[Replies],
) -> tuple[GradedBenchmark, JudgeReport]:
    """The benchmark with the judge's verdicts in its grades, and the report on the judge. cost: cost of all its
    replies. of_each: the replies of each judge in a jury.

    This also stores the opinions of each judge.
    """

    def by_sample(rulings: Mapping[str, JudgeRuling | None]) -> dict[Key, JudgeRuling | None]:
        return {key: rulings[case] for key, case in cases.case_of.items() if case in rulings}

    def are_correct(rulings: Mapping[Key, JudgeRuling | None]) -> dict[Key, bool | None]:
        return {key: None if ruling is None else ruling.verdict == "correct" for key, ruling in rulings.items()}

    by_key = by_sample(replies.rulings)
    verdicts = are_correct(by_key)
    grades: list[Grade] = [
        apply_ruling(grade, by_key.get(grade.key), judge.name, override=judge.override) for grade in graded.grades
    ]
    own = {each: by_sample(of.rulings) for each, of in zip((m.model for m in judge.members), of_each, strict=True)}
    if graded.folder.path.is_dir():
        for name, rulings in own.items():
            replace_opinions(graded.folder, judge_name(name, judge.prompt), are_correct(rulings))
    given = {name: [ruling.share for ruling in of.values() if ruling is not None] for name, of in own.items()}
    compared = agreement(graded.grades, verdicts)
    decided = [
        disagreement
        for disagreement in compared.disagreements
        if disagreement.ours != "undecided" and disagreement.theirs is not None
    ]
    by_rules = all(question.rules.is_built_in for question in graded.questions)
    report = JudgeReport(
        judge=judge,
        by_juror={name: fmean(shares) for name, shares in given.items() if shares and judge.jury},
        benchmark=graded.folder.name,
        first_grader=verifier.RULES if by_rules else "own grader",
        agreement=msgspec.structs.replace(compared, disagreements=decided),
        n_answers=len(cases.questions),
        n_outside=cases.n_outside,
        n_silent=cases.n_silent,
        n_missing=len(replies.missing),
        n_decided=sum(grade.rule == JUDGE_RULE for grade in grades),
        cost=cost,
    )
    failures = _failures(graded.grades, grades)
    judged = dataclasses.replace(
        graded,
        grades=grades,
        from_reasoning=None,
        judge_errors=_errors(compared, report.n_decided, len(grades), judge, replies),
        judging=judge.judging(ended=not replies.missing, mute=_never_ruled([replies]), cost=cost),
        judged_failures=failures,
    )
    return judged, report


def _errors(
    compared: Agreement, n_judged: int, n_samples: int, judge: JudgeSettings, replies: Replies
) -> JudgeErrors | None:
    """Count how often the judge differs from the rules, for the score; None if the judge decided no sample.

    n_judged: number of samples whose verdict is the judge's, out of n_samples.
    """
    if not n_judged:
        return None
    # (number of samples, whether rules and judge differ) for each pair of verdicts that both gave.
    both = [
        (n, (rules == "correct") != (opinion == "correct"))
        for (rules, opinion), n in compared.matrix.items()
        if rules != "undecided" and opinion != "no opinion"
    ]
    return JudgeErrors(
        n_judged=n_judged,
        n_samples=n_samples,
        n_both=sum(n for n, _ in both),
        n_differing=sum(n for n, differs in both if differs),
        settings=judge.options | {"base_url": [*replies.servers]},
        # Separate from the settings: it decides no verdict, so it makes no difference between two scores.
        key_variable=judge.key_variable or msgspec.UNSET,
    )
