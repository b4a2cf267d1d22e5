"""Which grades a judge model sees, the request for each, and the verdict of its reply.

Pure: makes requests and reads replies; `judges.judge` sends the requests. A request is its form's prompt, filled with
question, references, answer and rubric.

Guarantees: each of them stands between tags that carry a checksum of what is between them, so no text can close its own
tag; an answer is one line of visible characters and a whole reply its lines of them, all of bounded length.
Not covered: a judge that is talked into a verdict by what it reads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Literal

import msgspec

from harness.answers.reasoning import final_part
from harness.benchmarks.judge_forms import MAX_SHOWN_REPLY_CHARS, JudgeForm, criteria_of, with_rubric
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.core.records import Grade, Message, Question, Sample
from harness.grading.find.values import UNSTATED
from harness.grading.second.judge_rulings import JudgeRuling, ruling_of
from harness.grading.verdict import JUDGE_RULE

Scope = Literal["undecided", "wrong", "all"]
"""Which samples a judge sees: "undecided" ones only; "wrong": undecided and wrong ones; "all": every sample."""

# 96 bits: no two requests of a benchmark share them by chance.
_ID_DIGITS = 24


def in_scope(grade: Grade, scope: Scope) -> bool:
    """Whether the judge sees the sample of this grade."""
    return scope == "all" or grade.verdict == "undecided" or (scope == "wrong" and grade.verdict == "wrong")


def answer_for_judge(grade: Grade) -> str | None:
    """Return the extracted answer as the judge sees it; None if nothing was extracted, or if no known form states it.

    An answer that no known form states may be any number of the last sentence. The judge then reads the end of the
    reply itself (`text_for_judge`).
    """
    if grade.extracted is None or grade.rule == UNSTATED:
        return None
    return shown_answer(grade.extracted) or None


def text_for_judge(text: str | None, *, is_apart: bool = False, whole: int = 0) -> str | None:
    """Return the end of a reply's final part, or the whole reply, as the judge sees it; None without one.

    The judge sees the end if `answer_for_judge` is None, and whole replies if its form shows them. is_apart: the
    server sent reasoning in a field of its own. whole: the most characters of a whole reply (`JudgeForm.reply_chars`);
    0: the end.
    """
    part = final_part(text, is_apart=is_apart) if text else None
    if part is None or text is None:
        return None
    return shown_reply(text, whole) if whole else shown_ending(text[slice(*part)]) or None


def judge_question(form: JudgeForm, question: Question, answer: str, *, again: bool = False) -> Question:
    """Return the request to the judge as a question, so that it is sent and stored like any other question.

    answer: from `answer_for_judge` or `text_for_judge`. again: as in `render`. Equal requests have equal ids. Raises
    `UsageError` if the form shows a rubric that the question does not have.
    """
    messages = render(
        form, _shown_question(form, question), question.references, answer, _rubric_of(form, question), again=again
    )
    sent = digest([[message.role, message.content] for message in messages])
    return Question(
        benchmark=question.benchmark,
        question_id=sent[:_ID_DIGITS],
        messages=messages,
        references=question.references,
        kind="text",
        metadata={"question_id": question.question_id},
        row_digest=question.row_digest,
        prompt_digest=sent,
    )


def _shown_question(form: JudgeForm, question: Question) -> str:
    """The question that the judge sees, or the conversation that it ends."""
    if not form.turns:
        return question.last_turn
    turns = [message for message in question.messages if message.role != "system"]
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in turns) or question.prompt


def _rubric_of(form: JudgeForm, question: Question) -> str:
    """The row's rubric as the judge sees it; empty for a form that shows none. Raises `UsageError`."""
    if not form.shows_rubric:
        return ""
    where = f"the question {quoted(question.question_id)} of {visible(question.benchmark, 80)}"
    if not (rubric := question.rubric or "").strip():
        raise UsageError(f"{where} has no rubric, and the judge's form {visible(form.name, 80)} shows it: name its "
                         "column in the card, as `columns: {rubric: NAME}`")  # fmt: skip
    if form.reply != "criteria":
        return rubric
    try:
        return "\n".join(f"{n}. {each.criterion}" for n, each in enumerate(criteria_of(rubric), 1))
    except ValueError as error:
        raise UsageError(f"the rubric of {where}: {quoted(str(error))}; expected a list of `criterion` with `points`"
                         ) from error  # fmt: skip


def vote(reply: Sample, form: JudgeForm, question: Question) -> JudgeRuling | None:
    """The ruling of a judge's reply about an answer to `question`; None without one, and for a truncated reply, whose
    last word may be cut. Of points, the sample is correct from the card's `right_from` on, else with all of them.
    """
    ruling = None if reply.truncated else ruling_of(form, reply.text, question.rubric or "")
    return None if ruling is None else _from_threshold(ruling, question)


def _from_threshold(ruling: JudgeRuling, question: Question) -> JudgeRuling:
    """The ruling, whose verdict on points follows from the question's threshold if it has one, else from all points."""
    if ruling.points is None:
        return ruling
    given, most = ruling.points
    return ruling._replace(verdict="correct" if given >= (question.rules.right_from or most) else "wrong")


_TAKE: dict[str, Callable[[list[float]], float]] = {"median": median, "mean": fmean, "lowest": min}
"""How the points of a jury combine."""


def jury_ruling(form: JudgeForm, rulings: Sequence[JudgeRuling | None], question: Question) -> JudgeRuling | None:
    """The ruling of a jury: of points what the form takes (`JudgeForm.take`), of verdicts that of more than half.

    None if a judge has no ruling, or no verdict has so many.
    """
    given = [ruling for ruling in rulings if ruling is not None]
    if len(given) < len(rulings):
        return None
    if form.gives_points:
        points = [ruling.points for ruling in given if ruling.points is not None]
        combined = _TAKE[form.take]([of[0] for of in points])
        return _from_threshold(given[0]._replace(points=(float(combined), points[0][1])), question)
    verdict, n = Counter(ruling.verdict for ruling in given).most_common(1)[0]
    return next(ruling for ruling in given if ruling.verdict == verdict) if 2 * n > len(given) else None


def judge_name(model: str, form: JudgeForm) -> str:
    """Return the name of a judge in grades and opinions, such as `judge:org/model@verdict`."""
    return f"judge:{model}@{form.name}"


def without_judge(grader: str) -> str:
    """Return the grader before the judge, in the grader of a sample that a judge decided or that none did."""
    return grader.partition("+judge:")[0]


def prompt_of(grader: str) -> str:
    """Return the prompt's name in the grader of a sample that a judge decided (`judge_name`)."""
    return grader.rpartition("@")[2].partition("*")[0]


def apply_ruling(grade: Grade, ruling: JudgeRuling | None, judge: str, *, override: bool = False) -> Grade:
    """Return the grade after the judge's ruling, which decides undecided grades, or all with `override`.

    A decided grade has the rule `JUDGE_RULE`, also if the judge agrees with the rules: its verdict is the one that
    counts, so an audit must be able to draw it. Its grader is the former one, then the judge. The next score grades
    such a sample by the rules again, since the name differs from theirs.

    ruling: None: the judge has none, and the grade stays. judge: from `judge_name`.
    """
    if ruling is None or (grade.verdict != "undecided" and not override):
        return grade
    decided = msgspec.structs.replace(
        grade, rule=JUDGE_RULE, grader=f"{grade.grader}+{judge}",
        points=ruling.points or msgspec.UNSET,
        confidence=msgspec.UNSET if ruling.confidence is None else ruling.confidence,
    )  # fmt: skip
    is_correct = ruling.verdict == "correct"
    if ruling.verdict == "no_answer":
        return msgspec.structs.replace(decided, verdict="no_answer", near_miss=None)
    if grade.verdict != "undecided" and (grade.verdict == "correct") == is_correct:
        return decided
    if is_correct:
        return msgspec.structs.replace(decided, verdict="correct", unextracted=False, near_miss=None)
    # An undecided grade has no near miss, but one by another box follows from `unextracted`.
    near_miss = grade.near_miss or ("another box" if grade.unextracted else None)
    return msgspec.structs.replace(decided, verdict="wrong", near_miss=near_miss)


MAX_QUESTION_CHARS = 20_000
MAX_REFERENCE_CHARS = 9_000
MAX_ROW_RUBRIC_CHARS = 20_000
MAX_ANSWER_CHARS = 2_000
"""Largest number of characters that a judge is shown of each text; `…` marks a cut."""

_TAG_DIGITS = 12
"""Number of hexadecimal digits of the checksum in a tag."""

_FIELD = re.compile(r"\{(question|references|answer|rubric)\}")
_ANSWER_END = re.compile(rf"</answer-[0-9a-f]{{{_TAG_DIGITS}}}>\n\n")


def is_about(request: str, answer: str) -> bool:
    """Whether a request to a judge shows this answer, made by `shown_answer`, `shown_ending` or `shown_reply`."""
    return _tag("answer", answer) in request


def rule_in(request: str) -> str:
    """Return the rule of what is correct in a request to a judge by a rubric of the user's."""
    ending = with_rubric("MARK").prompt.partition("MARK")[2]
    return _ANSWER_END.split(request)[-1].removesuffix(ending)


def shown_answer(text: str) -> str:
    """Return an answer as a judge sees it: one line, no invisible character, at most `MAX_ANSWER_CHARS`."""
    return visible(text.strip(), MAX_ANSWER_CHARS)


def shown_ending(text: str) -> str:
    """Return the end of a text, in the form of `shown_answer`."""
    text = text.strip()
    return visible(text) if len(text) <= MAX_ANSWER_CHARS else f"…{visible(text[-MAX_ANSWER_CHARS:])}"


def shown_reply(text: str, most: int = MAX_SHOWN_REPLY_CHARS) -> str:
    """Return a whole reply as a judge sees it: its lines without invisible characters; of a long one the end."""
    text = text.strip()
    return _lines(text) if len(text) <= most else f"…{_lines(text[-most:])}"


def _lines(text: str) -> str:
    """The lines of a text, without invisible characters."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def render(
    form: JudgeForm, question: str, references: Sequence[str], answer: str, rubric: str = "", *, again: bool = False
) -> tuple[Message, ...]:
    """Return the messages that ask about `answer`, which `shown_answer`, `shown_ending` or `shown_reply` made.

    rubric: the row's own, for a form that shows it. again: an earlier reply was not in the form asked for.
    """
    fields = {
        "question": _tag("question", f"\n{_lines(_cut(question, MAX_QUESTION_CHARS))}\n"),
        # A solution has lines; an answer to compare is one.
        "references": "\n".join(
            _tag("reference", _lines(_cut(text, MAX_REFERENCE_CHARS)))
            if form.gives_points
            else _tag("reference", visible(text, MAX_REFERENCE_CHARS))
            for text in references
        ),
        "answer": _tag("answer", answer),
        "rubric": _tag("rubric", _lines(_cut(rubric, MAX_ROW_RUBRIC_CHARS))),
    }
    # In one pass, so that a field's name inside an inserted text is not filled in.
    text = _FIELD.sub(lambda match: fields[match[1]], form.prompt)
    if again:
        text += f"\n\nAn earlier reply was not in this form, and nothing could be read from it: {form.asked_for}."
    return (Message("user", text),)


def _tag(name: str, text: str) -> str:
    """Return `text` between tags that carry its checksum, so that no text can contain its own closing tag."""
    tag = f"{name}-{digest(text)[:_TAG_DIGITS]}"
    return f"<{tag}>{text}</{tag}>"
