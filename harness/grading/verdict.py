"""The one way to a verdict: find the answer in a response, decide whether it is the reference, tell both in steps.

`search` scans text in linear time and parses nothing; `decide` parses and computes, so for hostile text it belongs into
a process that can be killed (`processes.pool`); `conclude` puts the two together. What `harness score` stores, what
`harness grade` prints and what Python gets is the same `Verdict`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.answers.boxed import bare, boxes_from_end
from harness.answers.letters import LAST_LETTER
from harness.core.inert import quoted, visible
from harness.core.records import AnswerKind, Grade, GradeRules, NearMiss, Question, Sample
from harness.core.records import Verdict as Outcome
from harness.grading import verifier
from harness.grading.bounds import MAX_CANDIDATES
from harness.grading.find.extract import Found, bounded, candidates, extract_from
from harness.grading.find.reasoning import final_part
from harness.grading.find.several import parts_of
from harness.grading.find.stated import Statement, statements

VERSION = "6"
GRADER = f"rules/{VERSION}"

NEAR_MISSES: dict[NearMiss, str] = {
    "another box": "another box of the text holds the right answer",
    "form": "right but for the form that was asked for",
    "rounded": "the exact value of a rounded reference",
    "unit": "the right number with another unit",
}

EXHAUSTED = frozenset(("time", "memory", "depth", "crash"))
"""Rules of grades that the bounds of a worker ended."""

MAX_VOTE_CHARS = 200
"""Longest vote of an answer that a verifier judged, in characters."""

MAX_STEP_CHARS = 600
"""Longest step that is told, in characters; a longer one is cut in its middle."""

Judge = Callable[[Question, str], bool | None]
"""What decides an answer that the rules leave undecided: (question, extracted answer) → correct, wrong, or None."""

_RULES = {
    "integer": "both are integers and are compared digit by digit",
    "text": "the same signs",
    "words": "compared as words",
    "identical": "read as the same tree",
    "exact": "both have an exact value",
    "field": "one evaluation in a finite field",
    "numeric": "compared by numbers of 50 and 200 digits, or at fixed points",
    "symbolic": "sympy was asked for the difference",
    "tolerance": "within the tolerance that the benchmark states",
    "prose": "the reference is a sentence, which no rule can compare",
    "unreadable": "the answer is no mathematics that the grammar reads",
    "verifier": "the benchmark's own verifier decided",
    "time": "the answer reached its deadline",
    "memory": "the answer needed more memory than a worker has",
    "depth": "the answer is nested too deeply",
    "crash": "the answer brought its worker down",
    "form": "the value is right and its form is not",
    "judge": "the rules left it open, and a judge decided",
}


_ONE_VALUE = ("integer", "number", "expression")
_NO_RULES = GradeRules()
_RATIONAL = re.compile(
    r"(-?[1-9][0-9]{0,14}|0)"
    r"|(-?)\\[dt]?frac\{([1-9][0-9]{0,14})\}\{([1-9][0-9]{0,14})\}"
    r"|(-?(?:0|[1-9][0-9]{0,5})\.)([0-9]{1,6})"  # too short to stand for an endless one
)
"""An integer, a fraction of two, or a short decimal."""


class Search(NamedTuple):
    """What a response was searched for, without its text: the answer, the other boxes, and how, in steps."""

    found: Found | None
    others: list[str]
    steps: tuple[str, ...] = ()


class Decision(NamedTuple):
    """What is said of one extracted answer, whatever response gave it."""

    outcome: Outcome
    rule: str
    vote: str | None
    steps: tuple[str, ...] = ()
    near_miss: NearMiss | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one response.

    extracted: the answer as found, None without one; span: where it stands in the text, in characters. rule: what
    decided. vote: the form by which maj@k counts it. unextracted: another box held a right answer. near_miss: how a
    wrong answer misses a right one, where it does by little.
    steps: how it came about, one sentence a step, harmless to print, the outcome last; empty unless asked for.
    grader: the rules by their version, or the benchmark's own verifier by the digest of its file.
    """

    outcome: Outcome
    rule: str
    extracted: str | None
    span: tuple[int, int] | None
    vote: str | None
    unextracted: bool
    steps: tuple[str, ...] = ()
    near_miss: NearMiss | None = None
    grader: str = GRADER

    @property
    def correct(self) -> bool:
        """The response gives the reference answer."""
        return self.outcome == "correct"

    def __bool__(self) -> bool:
        return self.correct

    def grade(self, sample: Sample) -> Grade:
        """The record of this verdict on `sample`."""
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
            truncated=sample.truncated,
            completion_tokens=sample.usage.completion_tokens,
        )


def grade(
    question: Question, sample: Sample, *, judge: Judge | None = None, answer_from_reasoning: bool = False
) -> Grade:
    """Grade one sample in this process, without sympy and without a deadline; for hostile text use `processes.pool`.

    answer_from_reasoning: where the final part gives no answer, the reasoning is searched as well.
    """
    searched = search(question, sample, answer_from_reasoning=answer_from_reasoning)
    decision = NO_ANSWER
    if searched.found is not None:
        decision = decide(question, searched.found.answer)
        if decision.outcome == "undecided" and judge is not None:
            ruling = judge(question, searched.found.answer)
            if ruling is not None:
                decision = Decision("correct" if ruling else "wrong", "judge", decision.vote)
    right_elsewhere = decision.outcome != "correct" and any(
        decide(question, other).outcome == "correct" for other in searched.others
    )
    grader = GRADER if question.rules.grader == verifier.RULES else verifier.identity(question.rules.grader)
    return conclude(searched, decision, right_elsewhere, grader=grader).grade(sample)


# --- finding ---
def search(question: Question, sample: Sample, *, answer_from_reasoning: bool = False, tell: bool = False) -> Search:
    """Look for the answer of a sample; in its reasoning only where that is asked for and nothing else is found."""
    found = find(question, sample.text, truncated=sample.truncated)
    if found is None and answer_from_reasoning:
        found = _find_in_reasoning(question, sample)
    others = _others(sample.text, found)
    return Search(found, others, tuple(_told_search(question, sample.text or "", found)) if tell else ())


def find(question: Question, text: str | None, *, truncated: bool = False) -> Found | None:
    """The answer to `question` that a response gives, or None. Positions are characters of `text`."""
    part = final_part(text) if text else None
    if text is None or part is None:
        return None
    return _find_in(question, text, *part, truncated=truncated)


def stated(question: Question, sample: Sample) -> list[Statement]:
    """The values that a reply states on its way, each where it stood first, its answer the last.

    Ends are characters of reasoning and text together.
    """
    reasoning, text = sample.reasoning or "", sample.text or ""
    found = statements(f"{reasoning}\n{text}", question.kind, _last_letter(question))
    kept = [Statement(one.answer, one.end - (one.end > len(reasoning))) for one in found]
    answer = find(question, sample.text, truncated=sample.truncated)
    return kept if answer is None else [*kept, Statement(answer.answer, len(reasoning) + answer.end)]


def _find_in_reasoning(question: Question, sample: Sample) -> Found | None:
    """The answer that the reasoning ends with, in a separate field or in the text; its span is of that field."""
    text = sample.reasoning or sample.text
    return _find_in(question, text, 0, len(text), truncated=True) if text else None


def _find_in(question: Question, text: str, start: int, end: int, *, truncated: bool) -> Found | None:
    found = extract_from(
        text, start, end, kind=question.kind, parts=_parts(question), truncated=truncated,
        last=_last_letter(question),
    )  # fmt: skip
    return None if found is None else found._replace(answer=bounded(found.answer))


def _parts(question: Question) -> int | None:
    """Parts of the reference, where boxes side by side are one answer: it has several, or the card says so."""
    if question.kind == "choice":
        return None
    parts = _most_parts(question.references)
    several = parts > 1 or question.rules.several_boxes or question.kind == "multiple"
    return parts if several else None


@lru_cache(maxsize=4_096)
def _most_parts(references: tuple[str, ...]) -> int:
    """Parts of the reference that has the most; the same for every sample of a question."""
    return max((parts_of(bare(reference)) for reference in references), default=1)


def _last_letter(question: Question) -> str:
    return chr(ord("A") + len(question.choices) - 1) if question.choices else LAST_LETTER


def _others(text: str | None, found: Found | None) -> list[str]:
    """Contents of the other boxes, the last first, each once."""
    place = text.rfind("box") if text else -1
    if place >= 0 and found is not None and found.method == "box":
        place = text.rfind("box", 0, place) if text else -1
    if not text or place < 0:
        return []  # none, or only the answer's
    taken = found.answer if found is not None else None
    return [c for c in dict.fromkeys(candidates(text, MAX_CANDIDATES)) if c != taken]


# --- deciding ---
def decide(question: Question, answer: str, *, tell: bool = False) -> Decision:
    """Compare an extracted answer with every reference of the question, or ask the benchmark's own verifier."""
    try:
        by_rules = question.rules.grader == verifier.RULES
        return _by_rules(question, answer, tell=tell) if by_rules else _by_verifier(question, answer)
    except RecursionError:
        return Decision("undecided", "depth", None)


def plain(question: Question, answer: str) -> Outcome | None:
    """What `decide` comes to, where that takes no reading: the text of a reference, or an integer, a fraction of two or
    a short decimal that has another value. None elsewhere.

    Safe in any process: an answer of any length costs one comparison.
    """
    if question.kind not in _ONE_VALUE or question.rules != _NO_RULES:
        return None
    if answer in question.references:
        return "correct"
    given = _rational(answer)
    if given is None:
        return None
    wanted = map(_rational, question.references)
    return "wrong" if all(one is not None and one[0] * given[1] != given[0] * one[1] for one in wanted) else None


def _rational(text: str) -> tuple[int, int] | None:
    """Numerator and denominator of what is written as `_RATIONAL`."""
    found = _RATIONAL.fullmatch(text)
    if found is None:
        return None
    if found[5]:
        return int(found[5][:-1] + found[6]), 10 ** len(found[6])
    return (int(found[1]), 1) if found[1] else (int(found[2] + found[3]), int(found[4]))


def _by_rules(question: Question, answer: str, *, tell: bool) -> Decision:
    # Imported here: the process that only searches does without the rules.
    from harness.grading.compare.canonical import canonical
    from harness.grading.compare.equivalence import equal

    rule, undecided, steps = "no reference", False, list[str]()
    for reference in question.references:
        compared = equal(reference, answer, question.kind, question.rules, question.choices)
        rule = compared.rule
        undecided = undecided or compared.equal is None
        if tell:
            steps = _told_comparison(reference, answer, question.kind, compared.steps)
        if compared.equal:
            return Decision("correct", rule, canonical(answer, question), tuple(steps))
    near = None if undecided else _near_miss(question, answer)
    return Decision("undecided" if undecided else "wrong", rule, canonical(answer, question), tuple(steps), near)


def _near_miss(question: Question, answer: str) -> NearMiss | None:
    from harness.grading.compare.equivalence import near_miss

    found = (near_miss(reference, answer, question.kind, question.rules) for reference in question.references)
    return next((near for near in found if near is not None), None)


def _by_verifier(question: Question, answer: str) -> Decision:
    ruling = verifier.ask(question, answer)
    outcome: Outcome = "undecided" if ruling.correct is None else "correct" if ruling.correct else "wrong"
    return Decision(outcome, ruling.rule, answer[:MAX_VOTE_CHARS] or None, ruling.steps)


NO_ANSWER = Decision("no_answer", "no answer", None)


def conclude(searched: Search, decision: Decision, right_elsewhere: bool, *, grader: str = GRADER) -> Verdict:
    """The verdict from what was found and what was decided of it; right_elsewhere: some other box is right."""
    found = searched.found
    steps: tuple[str, ...] = ()
    if searched.steps:
        near = "another box" if right_elsewhere else decision.near_miss
        passed_over = () if near is None else (f"near miss: {NEAR_MISSES[near]}",)
        rule = () if found is None else (f"rule {decision.rule}: {_RULES.get(decision.rule, 'compared part by part')}",)
        told = (*searched.steps, *decision.steps, *rule, *passed_over, decision.outcome.replace("_", " "))
        steps = tuple(visible(step, MAX_STEP_CHARS) for step in told)
    return Verdict(
        outcome=decision.outcome,
        rule=decision.rule,
        extracted=None if found is None else bounded(found.answer, MAX_ANSWER_CHARS),
        span=None if found is None else (found.start, found.end),
        vote=decision.vote,
        unextracted=right_elsewhere,
        steps=steps,
        near_miss="another box" if right_elsewhere else decision.near_miss,
        grader=grader,
    )


# --- telling ---
def _told_search(question: Question, text: str, found: Found | None) -> list[str]:
    named = " or ".join(quoted(reference) for reference in question.references)
    steps = [f"the reference {named} is compared as: {question.kind}"]
    part = final_part(text)
    if part is None:
        return [*steps, "the reasoning was opened and never closed, so there is no final part to search"]
    if part[0]:
        steps.append(f"the reasoning ends at character {part[0]:,}; only what follows is searched")
    if found is None:
        return [*steps, "no box, phrase, formula or number was found"]
    steps.append(f"answer found by {found.method} at characters {found.start:,}–{found.end:,}: {quoted(found.answer)}")
    passed_over = sum(1 for box in boxes_from_end(text) if not found.start <= box.start <= found.end)
    if passed_over:
        steps.append(f"{passed_over} other box{'es' if passed_over > 1 else ''} passed over: the last one counts")
    return steps


def _told_comparison(reference: str, answer: str, kind: AnswerKind, more: tuple[str, ...]) -> list[str]:
    """How the two were read; `more`: what the comparison has to say itself."""
    read = [
        f"the {name} is read as {_reading(text, kind)}"
        for name, text in ((f"reference {quoted(reference)}", bare(reference)), ("answer", answer))
    ]
    return [*read, *more]


def _reading(text: str, kind: AnswerKind) -> str:
    from harness.answers.grammar.literals import Unreadable
    from harness.answers.grammar.parse import parse
    from harness.answers.grammar.shown import show
    from harness.grading.compare.exact import exact
    from harness.grading.compare.radicals import NotExact, freeze

    try:
        node = parse(text, list_commas=kind == "multiple")
    except (Unreadable, RecursionError) as error:
        return f"words ({quoted(str(error))})"
    try:
        value = f", exactly {freeze(exact(node))}"
    except NotExact:
        value = ""
    return quoted(show(node)) + (quoted(value) if value else "")
