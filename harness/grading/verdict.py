"""The single path to a verdict: find the answer in a response, decide whether it equals the reference, explain both.

    reply ─ search ─► Extraction ─ decide, each of `texts_to_decide` ─► Verdicts on texts ─ conclude ─► Verdict

`search` scans text in linear time and parses nothing, so any process may call it. `decide` parses and computes, so
hostile text requires a process that can be killed (`processes.pool`). Its result depends only on the question and the
text, so equal answers of many samples are decided only once. `conclude` makes the verdict from both results. `harness
score`, `harness grade` and Python get the same `Verdict`.

Long: the functions that describe the steps in words are next to the functions that perform them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import msgspec

from harness.answers.bounds import LAST_LETTER, MAX_ANSWER_CHARS
from harness.answers.boxed import boxes_from_end, has_box, without_boxes
from harness.answers.calls import answer_of, calls_in, read_reference
from harness.answers.letters import letters_of
from harness.answers.patterns import regex
from harness.answers.reasoning import final_part
from harness.core.codec import digest
from harness.core.inert import quoted, visible
from harness.core.records import (
    UNSTATED_REASON,
    AnswerKind,
    CallSign,
    Grade,
    GradeRules,
    NearMiss,
    Question,
    Sample,
    VerdictName,
)
from harness.core.reply_notes import lost_call
from harness.grading import verifier
from harness.grading.bounds import MAX_CANDIDATES, MAX_WHOLE_REPLY_CHARS, MIN_ROUNDED
from harness.grading.compare.plain_numbers import plain_number
from harness.grading.find.box_context import parts_of
from harness.grading.find.extract import candidates, extract_from, shorten_answer, states_something
from harness.grading.find.further import further_question
from harness.grading.find.reference import with_stated
from harness.grading.find.values import NOTHING, UNSTATED, Extraction

VERSION = "50"
"""Version of the rules. It increases whenever any pair of reference and response may get a different verdict."""

GRADER = f"rules/{VERSION}"
"""Name of the grader in a grade, if no verifier decided."""

NEAR_MISSES: dict[NearMiss, str] = {
    "another box": "the right answer is in a box other than the one that was graded",
    "form": "the right value, but not in the required form (earlier versions only)",
    "rounded": "the exact value of a rounded reference",
    "unit": "the right number with the wrong unit",
}
"""Kind of a near miss (an answer that is almost right) → its meaning in words."""
EXHAUSTED = frozenset(("time", "memory", "depth", "crash"))
"""Rules of grades that are undecided because a worker reached a limit, not because of a comparison."""

JUDGE_RULE = "judge"
"""The rule of a grade whose verdict a judge model decided."""

MAX_VOTE_CHARS = 200
"""Longest vote (the text by which maj@k counts an answer) for a verifier's question, in characters; the rest is cut."""

UNREAD_CALL = "unread call"
"""The rule and the answer for a reply whose text contains a call that the server did not parse as a call."""

_BOXED = ("box", "boxes", "open box")
"""Methods by which a box is found to be the answer."""

_STATED = ("box", "boxes", "phrase", "letter")
"""Methods of an answer that counts as stated regardless of its position."""

_DIGIT = regex(r"\d")
_DIGITS_OF_REPLY = 16
"""Number of digits of the checksum that is the vote of a whole reply."""

MAX_QUOTED_CHARS = 160
"""Longest sentence of a reply that a step or a reason quotes, in characters; a longer one is cut."""

MAX_STEP_CHARS = 600
"""Longest step of a verdict, in characters; a longer one is cut in its middle."""

_RULES = {
    "integer": "both are integers and are compared digit by digit",
    "text": "both texts are identical after normalizing number words, units and spaces",
    "words": "compared as words",
    "identical": "both are the same expression, written differently",
    "exact": "both have an exact value",
    "field": "compared by one evaluation in a finite field",
    "numeric": "evaluated to 70 digits (more if needed), at fixed sample points if there are variables",
    "order of factors": "equal if letters stand for numbers; for matrices and vectors, the order of factors matters",
    "rounded": "the answer, when rounded, equals the reference, which may itself be rounded or exact",
    "percent": "equal if the percent sign was omitted, which is ambiguous for numbers below 1: 0.3% is 0.003",
    "decimal comma": "equal if the comma is a decimal comma; otherwise the answer is a list of two numbers",
    "alternatives": "one side joins alternatives with “or”, but the other lists them as a single answer",
    "parts": "the parts of the reference are named, but those of the answer are not",
    "unsolved": "the answer is an unsolved equation, but the reference is its solution",
    "tolerance": "within the benchmark's tolerance",
    "prose": "no rule can compare a reference that is a sentence",
    "unreadable": "the grammar cannot parse the answer as a mathematical expression",
    "verifier": "graded by the benchmark's own verifier",
    "time": "grading timed out",
    "memory": "grading needed more memory than a worker has",
    "depth": "the answer is nested too deeply",
    "crash": "the worker crashed during grading",
    "calls": "the calls are accepted",
    UNREAD_CALL: "the text contains a call that the server did not parse: enable the tool-call parser for this model",
    "no call": "the reply contains no calls",
    "a call": "the reply contains a call, but the reference expects none",
    "number of calls": "the number of calls does not match the reference",
    "name of a call": "the called function is not one of those accepted",
    "arguments no JSON": "the arguments of a call are not a JSON object",
    "unreadable schema": "a tool's schema cannot be read",
    "schema": "the arguments of a call do not match the tool's schema",
    "parameters": "a parameter is missing or not accepted",
    "type of a value": "a value has the wrong type",
    "value": "a value is not one of those accepted",
    UNSTATED: "the reply does not settle on an answer",
    JUDGE_RULE: "a judge decided",
    verifier.GIVEN: "the verdict was given in the file; nothing was graded here",
}
"""Rule of a grade → its meaning in words."""

_REASONS = EXHAUSTED | {
    "prose",
    "unreadable",
    "order of factors",
    "percent",
    "decimal comma",
    "alternatives",
    "parts",
    "unsolved",
    "unreadable schema",
    UNSTATED,
}
"""Rules whose words explain why an answer is undecided; the words of the others only say how it was compared."""

_IN_QUOTES = regex(r"\s*(?:\"([^\"“”]+)\"|['‘“«「]([^'‘’“”«»「」\"]+)['’”»」])\s*")
"""An answer between quotation marks."""

_ONE_VALUE: tuple[AnswerKind, ...] = ("integer", "number", "expression")
"""Kinds of questions whose answer is a single value."""

_NO_RULES = GradeRules()


def why_undecided(question: Question, sample: Sample, grade: Grade) -> str:
    """Return in words why a grade is undecided; words of the reply that leave it open are quoted."""
    if grade.rule == verifier.LEFT_OPEN:
        return "the benchmark's own verifier returned None, which leaves the answer to a judge"
    if (failed := verifier.failure(grade.rule)) is not None:
        return f"the benchmark's own verifier {failed} instead of returning True, False or Parts"
    if grade.rule not in _REASONS:
        return "no rule can tell whether the answer equals the reference"
    extraction = _find_stated(question, sample) if grade.rule == UNSTATED else None
    return _meaning(grade.rule, extraction)


def _meaning(rule: str, extraction: Extraction | None) -> str:
    """Return in words what a rule did to an answer; for `UNSTATED`, which words or values in the reply leave it open.

    extraction: the answer that the rule decided; None if it is not known.
    """
    if rule == UNSTATED and extraction is not None:
        answer = visible(extraction.answer, MAX_QUOTED_CHARS)
        if extraction.behind and extraction.method != UNSTATED:
            return f"the text after the answer {answer} gives a different value: {visible(extraction.behind[-1])}"
        if extraction.opened_by:
            return extraction.opened_by
        return f"found {answer} in the last sentence, but no “the answer is”"
    return _RULES.get(rule, "compared part by part")


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
    start and end of the answer, as character offsets. vote: canonical form under which maj@k counts the answer.
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
    parts: verifier.Parts | None = None
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
            raise AttributeError(f"a verdict has no {name!r}")
        steps = self.explain()
        object.__setattr__(self, "steps", steps)
        return steps

    @property
    def correct(self) -> bool:
        """Whether the response's answer is correct."""
        return self.outcome == "correct"

    def __bool__(self) -> bool:
        return self.correct

    def grade(self, sample: Sample) -> Grade:
        """Return this verdict as the grade record to store for `sample`."""
        return Grade(
            benchmark=sample.benchmark,
            question_id=sample.question_id,
            sample_index=sample.sample_index,
            verdict=self.outcome,
            extracted=self.extracted,
            rule=self.rule,
            grader=self.grader,
            vote=self.vote,
            span=self.span,
            unextracted=self.unextracted,
            near_miss=self.near_miss,
            truncated=None if sample.finish_reason == UNSTATED_REASON else sample.truncated,
            completion_tokens=sample.usage.completion_tokens,
            parts=msgspec.UNSET if self.parts is None else self.parts,
            call_signs=msgspec.UNSET if self.call_signs is None else self.call_signs,
            points=msgspec.UNSET if self.points is None else self.points,
        )


def given(sample: Sample) -> Verdict:
    """The verdict that another tool's file states for a sample, whose reply is not graded; a fraction counts as a
    fraction of one point. Undecided if the sample has no verdict.
    """
    if sample.verdict is msgspec.UNSET:
        return Verdict("undecided", verifier.GIVEN, grader=verifier.GIVEN)
    return Verdict(
        "correct" if sample.verdict == 1 else "wrong",
        verifier.GIVEN,
        grader=verifier.GIVEN,
        steps=(f"the verdict, a score of {sample.verdict:g}, was given in the file; nothing was graded here",),
        points=None if sample.verdict in (0, 1) else (sample.verdict, 1.0),
    )


def grade(question: Question, sample: Sample, *, answer_from_reasoning: bool = False) -> Grade:
    """Grade one sample in this process, without a deadline; for hostile text use `processes.pool`.

    answer_from_reasoning: search the reasoning as well if the final part has no answer.
    """
    searched = search(question, sample, answer_from_reasoning=answer_from_reasoning)
    grader = GRADER if question.rules.grader == verifier.RULES else verifier.identity(question.rules.grader)
    return conclude(question, searched, partial(decide, question), grader=grader).grade(sample)


# --- finding ---
def search(
    question: Question, sample: Sample, *, answer_from_reasoning: bool = False, with_steps: bool = False
) -> Extraction:
    """Return the answer of a sample; `NOTHING` if it has none.

    answer_from_reasoning: search the reasoning as well if the final part has no answer. with_steps: describe the
    search.
    """
    if question.kind == "calls":
        return _calls_of(question, sample, with_steps=with_steps)
    question = with_stated(question)
    extraction = _find_stated(question, sample)
    if extraction is None and answer_from_reasoning:
        extraction = _find_in_reasoning(question, sample)
    steps = tuple(_steps_of_search(question, sample, extraction)) if with_steps else ()
    extraction = extraction or NOTHING
    # Other boxes do not matter next to a right answer, and the search for boxes in a long text takes most of the time.
    is_right = extraction.answer in question.references and _is_simple(question)
    boxes = () if question.rules.whole_reply or is_right else _other_boxes(sample.text, extraction)
    return extraction._replace(other_boxes=boxes, steps=steps) if boxes or steps else extraction


def _calls_of(question: Question, sample: Sample, *, with_steps: bool) -> Extraction:
    """Return the calls of a sample as its answer; an empty list is one, as it may be right to call nothing."""
    calls, lost = sample.calls or (), ""
    answer, ids = answer_of(calls), [call.id for call in calls if call.id]
    if not calls:
        lost = lost_call(sample.text, sample.reasoning, sample.finish_reason, ["\0"], asks_program=False)
        answer = f"{UNREAD_CALL}: {lost}" if lost else answer
    shown: dict[CallSign, bool] = {
        "call": bool(calls),
        "unread_call": bool(lost),
        "cut_call": sample.truncated and bool(calls or lost),
        "same_id": len(set(ids)) < len(ids),
    }
    signs = tuple(sign for sign, is_shown in shown.items() if is_shown)
    if len(answer) > MAX_WHOLE_REPLY_CHARS:
        return NOTHING._replace(call_signs=signs)
    named = " or ".join(map(quoted, question.references))
    steps = (
        (f"the reference {named} is compared as function calls", f"the reply calls {quoted(answer)}")
        if with_steps
        else ()
    )
    return Extraction(answer, 0, 0, "calls", steps=steps, call_signs=signs)


def _find_stated(question: Question, sample: Sample) -> Extraction | None:
    """Return the answer in the final part of a sample; None in the same cases as `find`."""
    return find(question, sample.text, truncated=sample.truncated, is_apart=bool(sample.reasoning))


def find(question: Question, text: str | None, *, truncated: bool = False, is_apart: bool = False) -> Extraction | None:
    """Return the answer to `question` in the final part of a response; None if that part is missing or has no answer.

    truncated: whether the token budget cut the response off. is_apart: whether the reasoning has its own field.
    """
    part = final_part(text, is_apart=is_apart) if text else None
    if text is None or part is None:
        return None
    return _find_in(with_stated(question), text, *part, truncated=truncated)


def _find_in_reasoning(question: Question, sample: Sample) -> Extraction | None:
    """Return the answer in `sample.reasoning`, or in the text if that field is empty; None if there is no answer.

    The span of the answer is in characters of the field that was searched.
    """
    text = sample.reasoning or sample.text
    # Reasoning may stop anywhere, so its last line or number is not an answer.
    return _find_in(question, text, 0, len(text), truncated=True) if text else None


def _find_in(question: Question, text: str, start: int, end: int, *, truncated: bool) -> Extraction | None:
    """Return the answer to `question` in text[start:end], cut to the length limit; None if there is no answer.

    truncated: whether max_tokens cut the reply.
    """
    if question.rules.whole_reply:
        reply = text[start:end].strip()
        # A longer reply is not judged by a part of it: the instructions that it must follow apply to all of it.
        return Extraction(reply, start, end, "reply") if reply and len(reply) <= MAX_WHOLE_REPLY_CHARS else None
    if not truncated and end - start <= MAX_ANSWER_CHARS:
        reply = text[start:end].strip()
        if reply in question.references and not has_box(reply, 0, len(reply)):
            begin = text.index(reply, start)
            return Extraction(reply, begin, begin + len(reply), "line")
    if (further := further_question(text, start, end, question)) is not None:
        stated = _find_in(question, text, start, further[0], truncated=False)
        if stated is not None and (further[1] or _states(stated)):
            return stated
    last = chr(ord("A") + len(question.choices) - 1) if question.choices else LAST_LETTER
    parts = _parts(question)
    extraction = extract_from(text, start, end, kind=question.kind, parts=parts, truncated=truncated, last=last)
    if extraction is None and question.kind != "choice" and all(map(letters_of, question.references)):
        # AC may be a product, so its replies are searched like replies to a choice only if nothing else is found.
        extraction = extract_from(text, start, end, kind="choice", parts=None, truncated=truncated, last=LAST_LETTER)
    if extraction is None:
        return None
    is_mathematics = question.kind not in ("choice", "text", "program") and question.rules.grader == verifier.RULES
    # A reference may be nothing but brackets, too.
    if is_mathematics and not states_something(extraction.answer) and all(map(states_something, question.references)):
        return None
    answer = shorten_answer(extraction.answer)
    quoted_text = _IN_QUOTES.fullmatch(answer)
    if quoted_text is not None and answer not in question.references:
        answer = quoted_text[1] or quoted_text[2]
    return extraction._replace(answer=answer)


def _states(extraction: Extraction) -> bool:
    """Whether an answer is stated, so that a later question is a further one: a line only if it has a digit."""
    return extraction.method in _STATED or (
        extraction.method == "line" and _DIGIT.search(extraction.answer) is not None
    )


def _parts(question: Question) -> int | None:
    """Return how many values of the answer may be in separate boxes; None if only the last box counts.

    Several boxes may be one answer if a reference has several values, the card says so, or the kind is "multiple".
    """
    if question.kind == "choice":
        return None
    parts = _most_parts(question.references)
    has_parts = parts > 1 or question.rules.several_boxes or question.kind == "multiple"
    return parts if has_parts else None


@lru_cache(maxsize=4_096)
def _most_parts(references: tuple[str, ...]) -> int:
    """Return the largest number of values in a reference; cached, since all samples of a question need it."""
    plain = list(map(without_boxes, references))
    letters = (letters_of(reference) or () for reference in plain if reference != reference.lower())
    return max([1, *map(parts_of, plain), *map(len, letters)])


def _other_boxes(text: str | None, extraction: Extraction) -> tuple[str, ...]:
    """Return the contents of the boxes other than the answer's: the last box first, without duplicates or blanks."""
    if not text:
        return ()
    # A text search first: most texts have no box, or only the answer's, and are not parsed for boxes.
    box_at = text.rfind("box")
    if box_at >= 0 and extraction.method == "box":
        box_at = text.rfind("box", 0, box_at)
    if box_at < 0:
        return ()
    contents = dict.fromkeys(candidates(text, MAX_CANDIDATES))
    return tuple(content for content in contents if content.strip() and content != extraction.answer)


# --- deciding ---
def decide(question: Question, answer: str, *, with_steps: bool = False) -> Verdict:
    """Compare an extracted answer with each reference of the question, or ask the benchmark's own verifier.

    An answer that is nested too deeply is undecided. with_steps: describe the comparison.
    """
    try:
        if question.kind == "calls":
            return _by_calls(question, answer, with_steps=with_steps)
        if question.rules.grader == verifier.RULES:
            return _by_rules(with_stated(question), answer, with_steps=with_steps)
        return _by_verifier(question, answer)
    except RecursionError:
        return Verdict("undecided", "depth")


def simple_outcome(question: Question, extraction: Extraction) -> VerdictName | None:
    """Return the outcome for answers that need no grammar, as `decide` and `as_stated` would; None for any other
    answer.

    An answer that no sentence states is undecided. An answer with the text of a reference is correct. An integer, a
    fraction of two integers or a short decimal whose value differs from that of every reference is wrong. Any process
    may call this: an answer costs one comparison, regardless of its length.
    """
    if extraction.method == UNSTATED:
        return "undecided"
    if not _is_simple(question) or extraction.behind:
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


def _is_simple(question: Question) -> bool:
    """Whether an answer with the text of a reference is correct without a comparison: one value, no special rules."""
    return question.kind in _ONE_VALUE and question.rules == _NO_RULES


def is_short(question: Question, answer: str) -> bool:
    """Whether reference and answer are short numbers, so that any process may decide the answer."""
    if question.kind not in _ONE_VALUE or question.rules.grader != verifier.RULES:
        return False
    return all(plain_number(text) is not None for text in (answer, *question.references))


def _by_rules(question: Question, answer: str, *, with_steps: bool) -> Verdict:
    """Return the verdict of the rules: correct if the answer equals any reference, otherwise undecided if any
    comparison was undecided, otherwise wrong.
    """
    # Imported here: a process that only searches does not need the rules.
    from harness.grading.compare.canonical import vote_of
    from harness.grading.compare.equivalence import equal, near_miss

    rule, undecided, steps = "no reference", False, list[str]()
    for reference in question.references:
        compared = equal(reference, answer, question.kind, question.rules, question.choices)
        rule = compared.rule
        undecided = undecided or compared.equal is None
        if with_steps:
            steps = _steps_of_comparison(reference, answer, question.kind, compared.steps)
        if compared.equal:
            return Verdict("correct", rule, vote=vote_of(answer, question, right=reference), steps=tuple(steps))
    # An undecided answer may be right, and is then not a near miss.
    misses = (near_miss(reference, answer, question.kind, question.rules) for reference in question.references)
    near = None if undecided else next((near for near in misses if near is not None), None)
    outcome: VerdictName = "undecided" if undecided else "wrong"
    vote = vote_of(answer, question, undecided=undecided)
    return Verdict(outcome, rule, vote=vote, steps=tuple(steps), near_miss=near)


def _by_calls(question: Question, answer: str, *, with_steps: bool) -> Verdict:
    """Return the verdict on function calls; its step explains what is wrong with them."""
    from harness.grading.compare.calls import fault_of, signs_of

    if answer.startswith(UNREAD_CALL):
        return Verdict("wrong", UNREAD_CALL)
    calls, tools = calls_in(answer), question.tools or ()
    faults = [fault_of(calls, read_reference(text), tools) for text in question.references]
    fault = faults[0] if None not in faults else None
    vote = _vote(question, answer) if calls else None
    if fault is None:
        return Verdict("correct", "calls", vote=vote, call_signs=signs_of(calls, tools))
    outcome: VerdictName = "wrong" if calls else "no_answer"
    if fault.rule == "unreadable schema":
        outcome = "undecided"
    steps = (fault.words,) if with_steps else ()
    return Verdict(outcome, fault.rule, vote=vote, steps=steps, call_signs=signs_of(calls, tools))


def _by_verifier(question: Question, answer: str) -> Verdict:
    """Return the verdict of the benchmark's own verifier."""
    ruling = verifier.ask(question, answer)
    outcome: VerdictName = "undecided"
    if ruling.correct is not None:
        outcome = "correct" if ruling.correct else "wrong"
    return Verdict(outcome, ruling.rule, vote=_vote(question, answer), steps=ruling.steps, parts=ruling.parts)


def _vote(question: Question, answer: str) -> str | None:
    """The text by which maj@k counts an answer to a question that a verifier decides; None for an empty answer."""
    # The vote of a whole reply is its checksum, so that only equal replies have the same vote, as with programs.
    is_whole = question.rules.whole_reply or question.kind == "calls"
    return (digest(answer)[:_DIGITS_OF_REPLY] if is_whole else answer[:MAX_VOTE_CHARS]) or None


def _passes_over_verifier(question: Question, extraction: Extraction) -> bool:
    """Whether a verifier would decide an answer that no sentence states. The verifier is not called: its verdict would
    not count (`as_stated`), and the text may not be an answer at all.
    """
    return extraction.method == UNSTATED and question.rules.grader != verifier.RULES


def texts_to_decide(question: Question, extraction: Extraction) -> tuple[str, ...]:
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
    if verifier.failure(empty.rule) is not None and empty.rule != verifier.LEFT_OPEN:
        return replace(_NO_ANSWER, rule=empty.rule, steps=empty.steps)
    return _NO_ANSWER if empty.parts is None else replace(_NO_ANSWER, parts=verifier.Parts(0, empty.parts.total))


def as_stated(extraction: Extraction, decision: Verdict, behind: Iterable[Verdict] = ()) -> Verdict:
    """Return `decision`, the verdict on the text of the answer, but undecided if the text after it states a value with
    another verdict, or if no sentence states it.

    Every verdict on a response passes through this function. behind: the verdicts on `extraction.behind`.
    """
    agree = {verdict.outcome for verdict in behind} <= {decision.outcome}
    stands = extraction.method != UNSTATED and (decision.outcome == "undecided" or agree)
    return decision if stands else replace(decision, outcome="undecided", rule=UNSTATED, near_miss=None)


def conclude(
    question: Question, extraction: Extraction, decided: Callable[[str], Verdict], *, grader: str = GRADER
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


# --- steps in words ---
def _all_steps(extraction: Extraction, decision: Verdict, near: NearMiss | None) -> tuple[str, ...]:
    """Return the steps of the search and of the decision, then the verdict in words; none if the search wrote none."""
    if not extraction.steps:
        return ()
    steps = [*extraction.steps, *decision.steps]
    if extraction.method != "none":
        # If a verifier failed, the name of the rule says how; there is no further meaning to add.
        failed = verifier.failure(decision.rule) is not None
        steps.append(f"rule {decision.rule}" + ("" if failed else f": {_meaning(decision.rule, extraction)}"))
    if near is not None:
        steps.append(f"near miss: {NEAR_MISSES[near]}")
    steps.append(decision.outcome.replace("_", " "))
    return tuple(visible(step, MAX_STEP_CHARS) for step in steps)


def _steps_of_search(question: Question, sample: Sample, extraction: Extraction | None) -> list[str]:
    """Return the steps of the search in words, one sentence per step."""
    named = " or ".join(quoted(reference) for reference in question.references)
    steps = [
        f"the reference {named} is compared as type {question.kind}"
        if question.rules.grader == verifier.RULES
        else f"the reference {named} is passed to the benchmark's own function"
    ]
    text = sample.text or ""
    part = final_part(text, is_apart=bool(sample.reasoning))
    if part is None:
        return [*steps, "the reasoning never ends, so there is no final part to search"]
    if part[0]:
        steps.append(f"the reasoning ends at character {part[0]:,}; only the text after it is searched")
    if extraction is None:
        return [*steps, "no box, phrase, formula or number was found"]
    return [*steps, *_steps_of_extraction(text, extraction)]


def _steps_of_extraction(text: str, extraction: Extraction) -> list[str]:
    """Return in words how an answer was found, what is next to it, and what was skipped."""
    start, end, method = extraction.start, extraction.end, extraction.method
    steps = [f"answer found by {method} at characters {start:,}–{end:,}: {quoted(extraction.answer)}"]
    if method == UNSTATED:
        steps.append("the reply does not commit to this answer, so it is undecided")
    steps += [
        f"the text after it states {quoted(value)}, which must receive the same verdict" for value in extraction.behind
    ]
    passed_over = sum(1 for box in boxes_from_end(text) if not start <= box.start <= end)
    if passed_over:
        boxes = f"box{'es' if passed_over > 1 else ''} passed over"
        boxed = method in _BOXED
        steps.append(
            f"{passed_over} other {boxes} because only the last one counts" if boxed else f"{passed_over} {boxes}"
        )
    return steps


def _steps_of_comparison(reference: str, answer: str, kind: AnswerKind, more: tuple[str, ...]) -> list[str]:
    """Return the steps of a comparison in words: how both sides were read, then `more`, its own steps."""
    return [
        f"the reference {quoted(reference)} was parsed as {_reading(without_boxes(reference), kind)}",
        f"the answer was parsed as {_reading(answer, kind)}",
        *more,
    ]


@lru_cache(maxsize=1_024)
def _reading(text: str, kind: AnswerKind) -> str:
    """Return how `text` is parsed, on one line, with its exact value if it has one; `words (reason)` if it cannot be
    parsed.
    """
    from harness.answers.grammar.numerals import Unreadable
    from harness.answers.grammar.parse import parse
    from harness.answers.grammar.tree import show
    from harness.grading.compare.exact import exact, written

    try:
        node = parse(text, list_commas=kind == "multiple")
    except (Unreadable, RecursionError) as error:
        return f"words ({quoted(str(error))})"
    value = exact(node)
    return quoted(show(node)) + ("" if value is None else f", exactly {written(value)}")
