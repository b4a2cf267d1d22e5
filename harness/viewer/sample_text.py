"""A sample as text: its question and reply as lines for a terminal, the steps to its verdict, and its request.

Text from models and data cannot control the terminal. To show the steps, a worker process that can be killed grades the
sample again, and the judges' stored replies are quoted. The request is rebuilt from stored data as a `curl` command
that contains no API key.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from harness.client.request_fields import RequestTemplate, Spelling
from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.hidden_limit import checksum_of
from harness.core.number_text import count_noun
from harness.core.records import FROM_FILE, NO_REPLY, Grade, Key, Question, Sample, VerdictName
from harness.core.sanitize import visible, visible_json
from harness.grading.external_graders import shown_references
from harness.grading.processes import pool
from harness.grading.second.judge_messages import JudgeRuling, without_judge
from harness.grading.verifier import JUDGE_RULE
from harness.runs.manifest import BenchmarkRecord
from harness.scoring.judging import JudgeReply, replies_about
from harness.scoring.run_reader import OpenBenchmark
from harness.scoring.score import MAX_GRADER_CHARS
from harness.tools.table import recorded as recorded_tool
from harness.viewer.rows import (
    SIGNS,
    WORDS,
    ListedSample,
    QuestionRow,
    Vote,
    facts_of,
    images_of,
    sample_row,
    shown_text,
    steps_of,
    votes,
)
from reasoning_answers import Verdict
from reasoning_answers.host import why_undecided

MAX_ANSWER_CHARS = 60
"""Largest number of characters of an answer in a list."""

PRINTED_FACTS = ("finish reason", "tokens", "time")
"""The facts shown in the first lines of a sample."""

UNKNOWN_RULES = "its rules match neither the run's rules nor the card's current rules; score the run again"
"""Follows "undecided because" if the rules of a grade are no longer known."""


@dataclass(frozen=True, slots=True)
class Style:
    """Functions from text to text that highlight parts of a text. Without color, signs mark the answer."""

    title: Callable[[str], str] = str
    quiet: Callable[[str], str] = str
    answer: Callable[[str], str] = "»{}«".format
    verdicts: Callable[[VerdictName | None, str], str] = lambda _verdict, text: text


def lines(text: str) -> str:
    """Return untrusted `text`, safe to print: line breaks remain, and everything else that controls a terminal is
    escaped.
    """
    return "\n".join(visible(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def question_text(benchmark: OpenBenchmark, question: Question, style: Style, *, whole: bool) -> Iterator[str]:
    """Yield the question with its options, reference answers, and metadata. whole: include the preceding messages,
    which are worked examples or the system prompt.
    """
    yield f"{style.title(f'{visible(question.benchmark)} · {visible(question.question_id)}')}\n"
    if whole or len(question.messages) < 2:
        yield f"{lines(shown_text(benchmark, question))}\n"
    else:
        before = f"[{count_noun(len(question.messages) - 1, 'message')} before the question]"
        yield f"{style.quiet(before)}\n{lines(question.messages[-1].shown)}\n"
    for image in images_of(benchmark, question):
        yield style.quiet(f"image: {visible(image if isinstance(image, str) else image.description, 400)}") + "\n"
    if question.metadata:
        words = ", ".join(
            f"{visible(str(name))} {visible(str(value), 200)}" for name, value in question.metadata.items()
        )
        yield style.quiet(words) + "\n"
    yield f"reference: {' or '.join(visible(reference, 400) for reference in shown_references(question)) or '–'}\n"


def sample_list(rows: Sequence[ListedSample], style: Style) -> Iterator[str]:
    """Yield the printed list of a question's samples: a line for each, then the votes for each answer."""
    for row in rows:
        tokens = "?" if row.tokens is None else f"{row.tokens:,}"
        facts = f"  {row.index:>4}  {tokens:>7} tokens  {_short(row.extracted):<12}"
        yield f"{facts}  {style.verdicts(row.verdict, row.text)}\n"
    counted = votes(rows)
    if counted:
        words = (f"{_short(vote.answer)} ×{vote.n}{_mark(vote)}" for vote in counted)
        yield f"votes: {', '.join(words)}\n"


def _mark(vote: Vote) -> str:
    """Return the verdict on an answer's samples in brackets; empty if all of them are wrong."""
    if vote.verdict is None:
        return f" ({vote.n_correct} of {vote.n} correct)"
    return "" if vote.verdict == "wrong" else f" ({vote.verdict})"


def sample_text(
    benchmark: OpenBenchmark, question: Question, sample: Sample, style: Style, *, reasoning: bool
) -> Iterator[str]:
    """Yield the sample as the server sent it, with its answer highlighted. reasoning: include the reasoning field."""
    key = sample.key
    grade = benchmark.grade(key)
    facts = [
        style.verdicts(benchmark.verdict(key), sample_row(benchmark, key).text),
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
    yield f"reference: {' or '.join(visible(reference, 400) for reference in shown_references(question)) or '–'}\n"
    if grade is not None and grade.verdict == "undecided":
        graded = benchmark.as_graded(question, grade)
        yield f"undecided because {UNKNOWN_RULES if graded is None else why_undecided(graded, sample, grade.rule)}\n"
    yield "\n"
    for text, sign in steps_of(sample, question, grade):
        yield f"{style.quiet(sign)}\n{lines(text)}\n"
    if sample.reasoning and reasoning:
        yield f"{style.quiet('[reasoning]')}\n{lines(sample.reasoning)}\n{style.quiet('[end of reasoning]')}\n\n"
    elif sample.reasoning:
        how = "pass `reasoning` (--reasoning) to show it"
        yield style.quiet(f"[reasoning of {len(sample.reasoning):,} characters; {how}]") + "\n\n"
    yield f"{style.quiet(f'[{NO_REPLY}]') if sample.has_verdict_only else _highlight(sample.text, grade, style)}\n"
    if sample.refusal:
        yield f"{style.quiet('[refusal]')} {lines(sample.refusal)}\n"


def question_line(row: QuestionRow, style: Style) -> str:
    """Return a question's line: its fraction correct, a sign for each sample, its name, reference, and majority answer.

    The name is the question's id, followed by the beginning of its text if the id is only a checksum.
    """
    verdicts = {sign: verdict for verdict, sign in SIGNS.items()}
    strip = "".join(style.verdicts(verdicts[sign], sign) for sign in row.verdicts)
    fraction = f"{row.percent:>4}% {row.n_correct}/{row.n_graded}" if row.percent else "    –    "
    majority = "" if row.majority is None else f"   majority {_short(row.majority.answer)}"
    reference = " or ".join(visible(reference, MAX_ANSWER_CHARS) for reference in row.references) or "–"
    name = "  ".join(filter(None, (visible(row.id, 60), visible(" ".join(row.title.split()), 40))))
    return f"{fraction:<12} {strip}  {name}   reference {reference}{majority}\n"


def _override(benchmark: OpenBenchmark, key: Key) -> Iterator[str]:
    """Yield the line that says how a verdict was manually corrected; nothing without a correction."""
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


# ---- the steps to a verdict


MAX_JUDGE_CHARS = 600
"""Largest number of characters quoted from the end of a judge's reply, which contains the verdict."""

_OUTCOMES = {"correct": "correct", "wrong": "wrong", "no_answer": "without an answer", "undecided": "undecided"}
"""Verdict of a grader → the words that follow "the sample is"."""


def verdict_steps(benchmark: OpenBenchmark, key: Key) -> list[str]:
    """Return the steps from a sample's text to its verdict, one sentence each and safe to print; may take seconds.

    The judges' replies follow the steps of the rules or of the benchmark's own verifier. Steps explain a stored verdict
    only if its rules and grader give the same verdict again; otherwise, a sentence replaces them. Raises `UsageError`
    for an unknown question, `StoreError` for a sample that is missing or damaged.
    """
    question, sample, grade = benchmark.question(key.question_id), benchmark.offsets.read(key), benchmark.grade(key)
    as_graded = benchmark.as_graded(question, grade)
    if as_graded is None:
        steps = [f"the steps to this verdict are unknown: {UNKNOWN_RULES}"]
    else:
        try:
            verdict = pool.verdict_on(as_graded, sample)
            doubt = None if grade is None else _mismatch(grade, verdict, sample)
            steps = list(verdict.steps) if doubt is None else [doubt]
        # The benchmark's own verifier is code that the viewer does not trust, so it does not run.
        except UsageError as error:
            steps = [str(error)]
    try:
        replies = [] if grade is None else replies_about(benchmark.folder, question, sample, grade)
    except StoreError as error:
        return [*steps, f"the judge replies cannot be read: {error}"]
    return [*steps, *map(_words, replies)]


def _mismatch(grade: Grade, verdict: Verdict, sample: Sample) -> str | None:
    """Return a sentence if the steps of the new verdict do not explain the stored grade; None if they do.

    They do if the same grader reaches the stored verdict by the stored rule for the same reply. A judge decides after
    the grader, which must then return "undecided" or the judge's own verdict.
    """
    is_same = without_judge(grade.grader) == verdict.grader and grade.reply_checksum in (None, checksum_of(sample))
    if is_same and grade.rule == JUDGE_RULE:
        if verdict.outcome in ("undecided", grade.verdict):
            return None
        return f"according to the rules, the sample is {_OUTCOMES[verdict.outcome]}, but a judge made the decision"
    if is_same and (verdict.outcome, verdict.rule) == (grade.verdict, grade.rule):
        return None
    return (
        f"after regrading with {visible(verdict.grader, 200)}, the sample is {_OUTCOMES[verdict.outcome]} (rule: "
        f"{visible(verdict.rule, 60)}), so the steps that led to the stored verdict by "
        f"{visible(grade.grader, 200)} are unknown; score the run again with `harness score --fresh`"
    )


def _ruling_text(ruling: JudgeRuling | None) -> str:
    """The text that says how a judge ruled."""
    if ruling is None:
        return "returned no verdict"
    if ruling.points is not None:
        return f"awarded {ruling.points[0]:g} of {ruling.points[1]:g} points"
    return f"said that the answer is {ruling.verdict if ruling.verdict != 'no_answer' else 'not attempted'}"


def _words(reply: JudgeReply) -> str:
    """The text of a judge's reply, and the command that shows the request and the full reply."""
    text = " ".join(reply.text.split())
    # A judge gives its verdict on the last line.
    text = text if len(text) <= MAX_JUDGE_CHARS else f"…{text[-MAX_JUDGE_CHARS:]}"
    name = f"{reply.key.question_id}:{reply.key.sample_index}"
    return (
        f"the judge {visible(reply.judge, 200)} {_ruling_text(reply.ruling)}: “{visible(text)}” "
        f"(for the full text: harness show {visible(shlex.quote(str(reply.folder.source)))} {name})"
    )


# ---- the request


KEY_HEADER = "${KEY_HEADER:-Authorization: Bearer $API_KEY}"
"""Shell variables in place of the API key, or of the header if the provider uses another (Azure: `api-key: …`)."""


def template(record: BenchmarkRecord) -> RequestTemplate:
    """Return the common part of a benchmark's requests, made from its manifest.

    Not covered: a limit on new tokens that was lowered to fit one request into the server's context.
    """
    identity = record.identity
    recorded: dict[str, Any] = {**record.settings, **identity, "api_name": identity.get("api")}
    sampling = {**(identity.get("neutral") or {}), **(identity.get("sampling") or {})}
    bound = sampling.pop("max_tokens", None)
    spelling = Spelling(
        **{name: recorded[name] for name in Spelling.__dataclass_fields__ if recorded.get(name) is not None}
    )
    template = RequestTemplate(
        model=str(identity.get("model", "")),
        sampling=sampling,
        max_tokens=identity.get("fitted_max_tokens") or bound,
        spelling=spelling,
    )
    tool = recorded_tool(identity)
    return template if tool is None else template.offering([tool.offered])


def curl(record: BenchmarkRecord, question: Question, sample: Sample) -> str:
    """Return a shell command in which text in any language is readable.

    No character of a question can control the terminal into which it is pasted: every character that `visible` escapes
    is written as a JSON escape.
    """
    spelled = template(record)
    asked = spelled.offering(question.tools or (), question.calling or {}).body(question, sample.seed)
    body = visible_json(json.dumps(codec.decode(asked), ensure_ascii=False))
    url = sample.endpoint.rstrip("/") + spelled.spelling.api.path
    url = quote(url, safe=":/?#[]@!$&'()*+,;=%~", errors="backslashreplace")
    return " \\\n  ".join(
        (
            f"curl {shlex.quote(url)}",
            "-H 'Content-Type: application/json'",
            f'-H "{KEY_HEADER}"',
            *(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in spelled.spelling.api_headers.items()),
            f"--data-raw {shlex.quote(body)}",
        )
    )
