"""Questions and samples as lines for a terminal; foreign text cannot act on the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import FROM_FILE, Grade, Key, Question, Sample, VerdictName
from harness.grading.elsewhere import shown_references
from harness.grading.verdict import JUDGE_RULE, why_undecided
from harness.presets.tool import code_of
from harness.scoring.opened import OpenBenchmark
from harness.scoring.score import MAX_GRADER_CHARS
from harness.viewer.rows import SIGNS, WORDS, ListedSample, QuestionRow, Vote, facts_of, sample_row, shown_text, votes

MAX_ANSWER_CHARS = 60
"""Largest number of characters of an answer in a line of a list."""

PRINTED_FACTS = ("finish reason", "tokens", "time")
"""The facts of a sample that its first lines show."""

UNKNOWN_RULES = "of rules that are neither those with which the run began nor its card's of now: score the run again"
"""Follows "undecided because" if the rules of a grade are not known any more."""


@dataclass(frozen=True, slots=True)
class Style:
    """How parts of a text are highlighted: functions from text to text. Without colour, signs mark an answer."""

    title: Callable[[str], str] = str
    quiet: Callable[[str], str] = str
    answer: Callable[[str], str] = "»{}«".format
    verdicts: Callable[[VerdictName | None, str], str] = lambda _verdict, text: text


def lines(text: str) -> str:
    """`text` of others, safe to print: line breaks stay, everything else that acts on a terminal is escaped."""
    return "\n".join(visible(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def question_text(benchmark: OpenBenchmark, question: Question, style: Style, *, whole: bool) -> Iterator[str]:
    """Yield the question with its options, reference answers and metadata. whole: also the messages before it, which
    are worked examples or the system prompt.
    """
    yield f"{style.title(f'{visible(question.benchmark)} · {visible(question.question_id)}')}\n"
    if whole or len(question.messages) < 2:
        yield f"{lines(shown_text(benchmark, question))}\n"
    else:
        before = f"[{count_noun(len(question.messages) - 1, 'message')} before the question]"
        yield f"{style.quiet(before)}\n{lines(question.messages[-1].content)}\n"
    if question.metadata:
        words = ", ".join(
            f"{visible(str(name))} {visible(str(value), 200)}" for name, value in question.metadata.items()
        )
        yield style.quiet(words) + "\n"
    yield f"reference: {' or '.join(visible(reference, 400) for reference in shown_references(question))}\n"


def sample_list(rows: Sequence[ListedSample], style: Style) -> Iterator[str]:
    """Yield the printed list of a question's samples: a line for each, then the votes for each answer."""
    for row in rows:
        tokens = "?" if row.tokens is None else f"{row.tokens:,}"
        facts = f"  {row.index:>4}  {tokens:>7} tokens  {_short(row.extracted):<12}"
        yield f"{facts}  {style.verdicts(row.verdict, row.words)}\n"
    counted = votes(rows)
    if counted:
        words = (f"{_short(vote.answer)} ×{vote.n}{_mark(vote)}" for vote in counted)
        yield f"votes: {', '.join(words)}\n"


def _mark(vote: Vote) -> str:
    """Return the verdict of an answer's samples in brackets; empty if all of them are wrong."""
    if vote.verdict is None:
        return f" ({vote.n_correct} of {vote.n} correct)"
    return "" if vote.verdict == "wrong" else f" ({vote.verdict})"


def sample_text(
    benchmark: OpenBenchmark, question: Question, sample: Sample, style: Style, *, reasoning: bool
) -> Iterator[str]:
    """Yield the sample as it was sent, with its answer highlighted. reasoning: include the reasoning field."""
    key = sample.key
    grade = benchmark.grade(key)
    facts = [
        style.verdicts(benchmark.verdict(key), sample_row(benchmark, key).words),
        *([visible(sample.endpoint.removeprefix(FROM_FILE), 400)] if sample.foreign else []),
        *(f"{name} {visible(value, 60)}" for name, value in facts_of(sample) if name in PRINTED_FACTS),
        *(f"continued at token {seam.tokens:,} ({'exact' if seam.exact else 'near'})" for seam in sample.salvaged_at),
    ]
    title = f"{visible(question.benchmark)} · {visible(question.question_id)} · sample {sample.sample_index}"
    yield f"{style.title(title)}\n{', '.join(facts)}\n"
    yield from _override(benchmark, key)
    if grade is not None:
        by = f" ({visible(grade.grader, MAX_GRADER_CHARS)})" if grade.rule == JUDGE_RULE else ""
        yield f"answer: {_short(grade.extracted)}   rule: {visible(grade.rule, 60)}{by}   "
    yield f"reference: {' or '.join(visible(reference, 400) for reference in shown_references(question))}\n"
    if grade is not None and grade.verdict == "undecided":
        graded = benchmark.as_graded(question, grade)
        yield f"undecided because {UNKNOWN_RULES if graded is None else why_undecided(graded, sample, grade)}\n"
    yield "\n"
    for text, sign in steps_of(sample):
        yield f"{style.quiet(sign)}\n{lines(text)}\n"
    if sample.reasoning and reasoning:
        yield f"{style.quiet('[reasoning]')}\n{lines(sample.reasoning)}\n{style.quiet('[end of reasoning]')}\n\n"
    elif sample.reasoning:
        how = "reasoning (--reasoning) shows it"
        yield style.quiet(f"[reasoning of {len(sample.reasoning):,} characters; {how}]") + "\n\n"
    yield f"{_highlight(sample.text, grade, style)}\n"


def steps_of(sample: Sample) -> Iterator[tuple[str, str]]:
    """(text, what it is) of each part of the earlier steps of a sample with a tool, and of its calls."""
    for number, step in enumerate(sample.steps or (), 1):
        for text, what in ((step.reasoning, "reasoning"), (step.text, "text")):
            if text:
                yield text, f"[step {number}: {what}]"
        for call in step.calls:
            code = call.arguments
            with contextlib.suppress(ValueError):
                code = code_of(code)
            yield code, f"[step {number}: call of {visible(call.name, 60)}]"
            yield call.output, f"[step {number}: {call.end}, {call.seconds:.1f} s]"


def question_line(row: QuestionRow, style: Style) -> str:
    """Return the line of a question: its fraction correct, a sign for each sample, name, reference, majority.

    Its name is its id; behind an id that is only a checksum, the beginning of its text.
    """
    verdicts = {sign: verdict for verdict, sign in SIGNS.items()}
    strip = "".join(style.verdicts(verdicts[sign], sign) for sign in row.verdicts)
    fraction = f"{row.percent:>4} % {row.n_correct}/{row.n_graded}" if row.percent else "     –    "
    majority = "" if row.majority is None else f"   majority {_short(row.majority.answer)}"
    reference = " or ".join(visible(reference, MAX_ANSWER_CHARS) for reference in row.references)
    name = "  ".join(filter(None, (visible(row.id, 60), visible(" ".join(row.title.split()), 40))))
    return f"{fraction:<12} {strip}  {name}   reference {reference}{majority}\n"


def _override(benchmark: OpenBenchmark, key: Key) -> Iterator[str]:
    """The line that says how a verdict was corrected by hand; none without a correction."""
    override = benchmark.overrides.get(key)
    if override is not None:
        grade = benchmark.grade(key)
        then = "" if grade is not None and grade.verdict == override.graded else " at that time"
        yield (
            f"by hand: {WORDS[override.verdict]} (the grader said {WORDS[override.graded]}{then}), "
            f"by {visible(override.who, 100)} at {visible(override.when, 40)}: {visible(override.why, 2000)}\n"
        )


def _highlight(text: str | None, grade: Grade | None, style: Style) -> str:
    """The text, safe to print, with the graded answer highlighted."""
    if text is None:
        return style.quiet("[no text]")
    if grade is None or grade.span is None or not 0 <= grade.span[0] < grade.span[1] <= len(text):
        return lines(text)
    start, end = grade.span
    answer = "\n".join(style.answer(line) for line in lines(text[start:end]).split("\n"))
    return f"{lines(text[:start])}{answer}{lines(text[end:])}"


def _short(answer: str | None) -> str:
    return "–" if answer is None else visible(answer, MAX_ANSWER_CHARS)
