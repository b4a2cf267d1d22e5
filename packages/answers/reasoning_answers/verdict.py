"""The single path to a verdict: find the answer in a response, decide whether it equals the reference, explain both.

    reply ─ search ─► Extraction ─ decide, each of `texts_to_decide` ─► Verdicts on texts ─ conclude ─► Verdict

`search` scans text in linear time and parses nothing, so any process may call it. `decide` parses and computes, so
hostile text requires a process that can be killed. Its result depends only on the question and the
text, so equal answers of many samples are decided only once. `conclude` makes the verdict from both results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from reasoning_answers.bounds import MAX_ANSWER_CHARS, MIN_ROUNDED
from reasoning_answers.calls import calls_in, read_reference
from reasoning_answers.codec import digest
from reasoning_answers.compare.plain_numbers import plain_number
from reasoning_answers.find.extract import shorten_answer
from reasoning_answers.find.reference import with_stated_answers
from reasoning_answers.find.values import UNSTATED, Extraction
from reasoning_answers.records import CallSign, NearMiss, QuestionLike, ReplyLike, VerdictName
from reasoning_answers.rulings import LEFT_OPEN, Parts, failure
from reasoning_answers.search import IN_PROSE, ONE_VALUE, find_stated, is_simple
from reasoning_answers.steps import NEAR_MISSES, REASONS, UNREAD_CALL, meaning, steps_of_comparison
from reasoning_answers.text import quoted, visible

Q = TypeVar("Q", bound=QuestionLike)

VERSION = "58"
"""Version of the rules. It increases whenever any pair of reference and response may get a different verdict."""

GRADER = f"rules/{VERSION}"
"""Name of the grader in a grade, if no verifier decided."""

MAX_STEP_CHARS = 600
"""Longest step of a verdict, in characters; a longer one is cut in its middle."""

_MAX_VOTE_CHARS = 200
"""Longest vote (the text by which maj@k counts an answer) for a verifier's question, in characters; the rest is cut."""

_DIGITS_OF_REPLY = 16
"""Number of digits of the checksum that is the vote of a whole reply."""


class _Explained:
    """Base class of `Verdict` with a slot for the function that creates the steps when they are first read. A slot of
    the base class is not a field of the dataclass.
    """

    __slots__ = ("explain",)
    explain: Callable[[], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Verdict(_Explained):
    """The verdict on one response; if returned by `decide`, the verdict on an answer's text, shared by all responses
    that give this answer.

    rule: name of the deciding rule. extracted: the answer as written in the response; None if there is none. span:
    start and end of the answer, as character offsets. vote: what maj@k counts the answer as (`votes`).
    unextracted: whether the extracted answer is wrong but another box contains the correct answer. steps: how the
    verdict was reached, one sentence per step, ending with the outcome, and safe to print; empty unless requested.
    near_miss: in what way a wrong answer is almost right. grader: version of the rules, or the benchmark's own verifier
    with its file's digest. parts: number of correct parts of the answer; None if the grader reports none. call_signs:
    as in `Grade`; None if the question does not ask for calls. points: as in `Grade`; None if there are none.
    """

    outcome: VerdictName
    rule: str
    extracted: str | None = None
    span: tuple[int, int] | None = None
    vote: str | None = None
    unextracted: bool = False
    steps: tuple[str, ...] = ()
    near_miss: NearMiss | None = None
    grader: str = GRADER
    parts: Parts | None = None
    call_signs: tuple[CallSign, ...] | None = None
    points: tuple[float, float] | None = None

    def explained_by(self, explain: Callable[[], tuple[str, ...]]) -> Verdict:
        """Return this verdict with the steps of `explain`, which are created on first access."""
        # By `object`, since the class is frozen. With its slot empty, the first read of `steps` calls `__getattr__`.
        object.__setattr__(self, "explain", explain)
        object.__delattr__(self, "steps")
        return self

    def __getattr__(self, name: str) -> tuple[str, ...]:
        # Called if the slot is empty.
        if name != "steps":
            named = ", ".join(each.name for each in fields(self))
            raise AttributeError(f"a verdict has no {name!r}; its fields are {named}")
        steps = self.explain()
        object.__setattr__(self, "steps", steps)
        return steps

    @property
    def correct(self) -> bool:
        """Whether the response's answer is correct."""
        return self.outcome == "correct"

    def __bool__(self) -> bool:
        return self.correct


# --- deciding ---
def decide(
    question: Q, answer: str, *, with_steps: bool = False, ask: Callable[[Q, str], Verdict] | None = None
) -> Verdict:
    """Compare an extracted answer with each reference of the question, or ask the benchmark's own verifier.

    An answer that is nested too deeply is undecided. with_steps: describe the comparison. ask: calls the verifier that
    the question's rules name; only the outcome, rule, steps and parts of its verdict are used. If the verifier fails,
    the verdict is undecided, and its rule is "verifier" with the failure. Raises `ValueError` if the rules name a
    verifier and `ask` is None.
    """
    try:
        if question.kind == "calls":
            return _by_calls(question, answer, with_steps=with_steps)
        if question.rules.is_built_in:
            return _by_rules(with_stated_answers(question), answer, with_steps=with_steps)
        if ask is None:
            raise ValueError(
                f"the rules name the grader {quoted(question.rules.grader)}, which this caller does not call"
            )
        return replace(ask(question, answer), vote=_vote(question, answer))
    except RecursionError:
        return Verdict("undecided", "depth")


def simple_outcome(question: QuestionLike, extraction: Extraction) -> VerdictName | None:
    """Return the outcome for answers that need no grammar, as `decide` and `as_stated` would; None for any other
    answer.

    An answer that no sentence states, with no other values to compare, is undecided. An answer with the text of a
    reference is correct. An integer, a fraction of two integers or a short decimal whose value differs from that of
    every reference is wrong. Any process may call this: an answer costs one comparison, regardless of its length.
    """
    if extraction.method == UNSTATED and not extraction.behind:
        return "undecided"
    if not is_simple(question) or extraction.behind:
        return None
    if extraction.answer in question.references:
        return "correct"
    value = plain_number(extraction.answer)
    if value is None:
        return None
    for reference in map(plain_number, question.references):
        if reference is None or reference.top * value.bottom == value.top * reference.bottom:
            return None
        if reference.is_decimal and abs(reference.top) >= MIN_ROUNDED and reference.top % reference.bottom:
            return None  # a decimal of three digits may be a rounded value
    return "wrong"


def is_short(question: QuestionLike, answer: str) -> bool:
    """Whether reference and answer are short numbers, so that any process may decide the answer."""
    if question.kind not in ONE_VALUE or not question.rules.is_built_in:
        return False
    return all(plain_number(text) is not None for text in (answer, *question.references))


def _by_rules(question: QuestionLike, answer: str, *, with_steps: bool) -> Verdict:
    """Return the verdict of the rules: correct if the answer equals any reference, otherwise undecided if any
    comparison was undecided, otherwise wrong.
    """
    # Imported here: a process that only searches does not need the rules.
    from reasoning_answers.compare.equivalence import equal, near_miss
    from reasoning_answers.votes import vote_of

    rule, undecided, steps = "no reference", False, list[str]()
    for reference in question.references:
        compared = equal(reference, answer, question.kind, question.rules, question.choices)
        rule = compared.rule
        undecided = undecided or compared.equal is None
        if with_steps:
            steps = steps_of_comparison(reference, answer, question.kind, compared.steps)
        if compared.equal:
            return Verdict("correct", rule, vote=vote_of(answer, question, right=True), steps=tuple(steps))
    # An undecided answer may be right, and is then not a near miss.
    misses = (near_miss(reference, answer, question.kind, question.rules) for reference in question.references)
    near = None if undecided else next((near for near in misses if near is not None), None)
    outcome: VerdictName = "undecided" if undecided else "wrong"
    vote = vote_of(answer, question, right=False)
    return Verdict(outcome, rule, vote=vote, steps=tuple(steps), near_miss=near)


def _by_calls(question: QuestionLike, answer: str, *, with_steps: bool) -> Verdict:
    """Return the verdict on function calls; its step explains what is wrong with them."""
    from reasoning_answers.compare.calls import canonical, fault_of, signs_of, unfits_of

    references = [*map(read_reference, question.references)]
    signs: list[CallSign] = ["unstated"] if "auto" in references else []
    if answer.startswith(UNREAD_CALL):
        return Verdict("wrong", UNREAD_CALL, call_signs=tuple(signs))
    calls, tools = calls_in(answer), question.tools or ()
    unfits = [*unfits_of(calls, tools)]
    faults = [fault_of(calls, reference, tools, unfits) for reference in references]
    fault = faults[0] if None not in faults else None
    signs += signs_of(calls, tools, unfits)
    vote = digest(canonical(calls, references))[:_DIGITS_OF_REPLY] if calls else None
    if fault is None:
        return Verdict("correct", "calls", vote=vote, call_signs=tuple(signs))
    outcome: VerdictName = "wrong" if calls else "no_answer"
    if fault.rule == "unreadable schema":
        outcome = "undecided"
    steps = (fault.words,) if with_steps else ()
    return Verdict(outcome, fault.rule, vote=vote, steps=steps, call_signs=tuple(signs))


def _vote(question: QuestionLike, answer: str) -> str | None:
    """The text by which maj@k counts an answer to a question that a verifier decides; None for an empty answer."""
    # The vote of a whole reply is its checksum, so that only equal replies have the same vote, as with programs.
    is_whole = question.rules.whole_reply
    return (digest(answer)[:_DIGITS_OF_REPLY] if is_whole else answer[:_MAX_VOTE_CHARS]) or None


def _passes_over_verifier(question: QuestionLike, extraction: Extraction) -> bool:
    """Whether a verifier would decide an answer that no sentence states. The verifier is not called: its verdict would
    not count (`as_stated`), and the text may not be an answer at all.
    """
    return extraction.method == UNSTATED and not question.rules.is_built_in


def texts_to_decide(question: QuestionLike, extraction: Extraction) -> tuple[str, ...]:
    """Return the texts whose verdicts `conclude` needs, the answer first; for a reply without an answer, the empty text
    if a verifier receives whole replies.
    """
    if extraction.method == "none" and question.rules.whole_reply:
        return ("",)
    if extraction.method == "none" or _passes_over_verifier(question, extraction):
        return extraction.other_boxes  # one of them may contain a right answer
    return tuple(dict.fromkeys((extraction.answer, *extraction.behind, *extraction.other_boxes)))


_NO_ANSWER = Verdict("no_answer", "no answer")


def _no_answer(empty: Verdict) -> Verdict:
    """Return the verdict on a reply without an answer to a question that a verifier decides.

    empty: the verifier's verdict on an empty reply. If it counts parts, the reply has none of these parts right. If the
    verifier failed on it, the rule says so; the verdict is the same, since the reply has no answer in any case.
    """
    if failure(empty.rule) is not None and empty.rule != LEFT_OPEN:
        return replace(_NO_ANSWER, rule=empty.rule, steps=empty.steps)
    return _NO_ANSWER if empty.parts is None else replace(_NO_ANSWER, parts=Parts(0, empty.parts.total))


def as_stated(extraction: Extraction, decision: Verdict, behind: Iterable[Verdict] = ()) -> Verdict:
    """Return `decision`, the verdict on the text of the answer, but undecided if the text after it states a value with
    another verdict, if it is in prose and another value in the reply is right, or if no sentence states it and not all
    values of the reply are known to be wrong.

    Every verdict on a response passes through this function. behind: the verdicts on `extraction.behind`.
    """
    outcomes = {verdict.outcome for verdict in behind}  # of the other values
    if extraction.method == UNSTATED:
        stands = decision.outcome == "wrong" and outcomes == {"wrong"}
    elif extraction.method in IN_PROSE:
        stands = decision.outcome != "wrong" or "correct" not in outcomes
    else:
        stands = decision.outcome == "undecided" or outcomes <= {decision.outcome}
    return decision if stands else replace(decision, outcome="undecided", rule=UNSTATED, near_miss=None)


def conclude(
    question: QuestionLike, extraction: Extraction, decided: Callable[[str], Verdict], *, grader: str = GRADER
) -> Verdict:
    """Return the verdict on a response from what was found in it and the verdicts on `texts_to_decide`.

    decided: a text → its verdict. grader: the name that the grade records.
    """
    is_answer, decision = extraction.method != "none", _NO_ANSWER
    if is_answer and _passes_over_verifier(question, extraction):  # undecided without asking the verifier
        decision = Verdict("undecided", UNSTATED, vote=_vote(question, extraction.answer))
    elif is_answer:
        decision = as_stated(extraction, decided(extraction.answer), map(decided, extraction.behind))
    elif question.rules.whole_reply:
        # The verifier sees an empty reply too, for the number of parts that count as wrong.
        decision = _no_answer(decided(""))
    if "unread_call" in (extraction.call_signs or ()):
        decision = replace(decision, outcome="wrong", rule=UNREAD_CALL, vote=None)
    # The other boxes are decided only where they can change the verdict.
    boxes = extraction.other_boxes if decision.outcome != "correct" else ()
    right_elsewhere = any(decided(box).outcome == "correct" for box in boxes)
    # An undecided answer may be right, and a reply without an answer misses by more.
    near = "another box" if right_elsewhere and decision.outcome == "wrong" else decision.near_miss
    return replace(
        decision,
        extracted=shorten_answer(extraction.answer, MAX_ANSWER_CHARS) if is_answer else None,
        span=(extraction.start, extraction.end) if is_answer and extraction.method != "calls" else None,
        unextracted=right_elsewhere,
        steps=_all_steps(extraction, decision, near),
        near_miss=near,
        grader=grader,
        call_signs=None if (seen := extraction.call_signs) is None else (*seen, *(decision.call_signs or ())),
    )


def _all_steps(extraction: Extraction, decision: Verdict, near: NearMiss | None) -> tuple[str, ...]:
    """Return the steps of the search and of the decision, then the verdict in words; none if the search wrote none."""
    if not extraction.steps:
        return ()
    steps = [*extraction.steps, *decision.steps]
    if extraction.method != "none":
        # If a verifier failed, the name of the rule says how; nothing needs to be added.
        failed = failure(decision.rule) is not None
        steps.append(f"rule {decision.rule}" + ("" if failed else f": {meaning(decision.rule, extraction)}"))
    if near is not None:
        steps.append(f"near miss: {NEAR_MISSES[near]}")
    steps.append(decision.outcome.replace("_", " "))
    return tuple(visible(step, MAX_STEP_CHARS) for step in steps)


def why_undecided(question: QuestionLike, reply: ReplyLike, rule: str) -> str:
    """Return in words why the verdict on a reply is undecided; words of the reply that leave it open are quoted.

    rule: that of the verdict.
    """
    if rule == LEFT_OPEN:
        return "the benchmark's own verifier returned None, which leaves the answer to a judge"
    if (failed := failure(rule)) is not None:
        return f"the benchmark's own verifier {failed} instead of returning True, False or Parts"
    if rule not in REASONS:
        return "no rule can tell whether the answer equals the reference"
    return meaning(rule, find_stated(question, reply) if rule == UNSTATED else None)
