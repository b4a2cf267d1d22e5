"""The messages to and from a judge model: which grades it sees, the request for each, and how to read its reply.

Pure: it makes requests and reads replies; `judges.judge` sends the requests. A request is its form's prompt, filled
with question, references, answer and rubric.

Guarantees: each of them is between tags that carry a checksum of their content, so no text can close its own tag; an
answer is one line of visible characters, and a whole reply is lines of visible characters, all of limited length. Not
covered: a judge that the texts talk into a verdict.

A verdict or points are read only from a reply's content. A statement is a whole line, or a JSON object that begins on
its own line: never words somewhere in a sentence ("INCORRECT" contains "CORRECT"), and never the reasoning. The last
statement counts; if it is incomplete or outside its limits, no earlier statement replaces it. Two different letters,
points or objects are not a ruling; of several labeled verdicts, the last one counts, as it always has.

Long: a form defines both how its request is filled and how its reply is read.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

import msgspec

from harness.benchmarks.judge_forms import MAX_SHOWN_REPLY_CHARS, JudgeForm, Reading, criteria_of, with_rubric
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.records import Grade, Message, Question, Sample
from harness.core.sanitize import quoted, visible
from harness.grading.verifier import JUDGE_RULE
from reasoning_answers.host import UNSTATED, final_part

Scope = Literal["open", "undecided", "wrong", "all"]
"""Which samples a judge sees: "open": those that the rules leave open; "undecided": of these, not those without an
answer; "wrong": open and wrong ones; "all": every sample.
"""
OPEN = ("undecided", "no_answer")
"""Verdicts of the rules that leave a sample open, so that a judge may decide it."""

# 96 bits: no two requests of a benchmark share them by chance.
_ID_DIGITS = 24


def in_scope(grade: Grade, scope: Scope) -> bool:
    """Whether the judge sees the sample of this grade."""
    seen = {"open": OPEN, "undecided": ("undecided",), "wrong": (*OPEN, "wrong")}
    return scope == "all" or grade.verdict in seen[scope]


def answer_for_judge(grade: Grade) -> str | None:
    """Return the extracted answer as the judge sees it; None if nothing was extracted, or if no known form states it.

    An answer that no known form states may be any number in the last sentence. In that case, the judge reads the end of
    the reply itself (`text_for_judge`).
    """
    if grade.extracted is None or grade.rule == UNSTATED:
        return None
    return shown_answer(grade.extracted) or None


def text_for_judge(text: str | None, *, is_apart: bool = False, whole: int = 0) -> str | None:
    """Return the end of a reply's final part, or the whole reply, as the judge sees it; None if it is empty.

    The judge sees the end if `answer_for_judge` is None, and whole replies if its form shows them. is_apart: whether
    the server sent reasoning in a separate field. whole: largest number of characters of a whole reply
    (`JudgeForm.reply_chars`); 0: only the end.
    """
    part = final_part(text, is_apart=is_apart) if text else None
    if part is None or text is None:
        return None
    return shown_reply(text, whole) if whole else shown_ending(text[slice(*part)]) or None


def judge_question(form: JudgeForm, question: Question, answer: str, attempt: int = 0) -> Question:
    """Return the request to the judge as a question, so that it is sent and stored like any other question.

    answer: from `answer_for_judge` or `text_for_judge`. attempt: number of earlier requests; from 1, the message is
    that of `again` in `render`. Equal requests of one attempt have equal ids. Raises `UsageError` if the form shows a
    rubric that the question does not have.
    """
    shown, rubric = _shown_question(form, question), _rubric_of(form, question)
    messages = render(form, shown, question.references, answer, rubric, again=attempt > 0)
    sent = digest([[message.role, message.content] for message in messages])
    return Question(
        benchmark=question.benchmark,
        question_id=sent[:_ID_DIGITS] + (f"-{attempt}" if attempt > 1 else ""),
        messages=messages,
        references=question.references,
        kind="text",
        metadata={"question_id": question.question_id},
        row_digest=question.row_digest,
        prompt_digest=sent,
    )


def _shown_question(form: JudgeForm, question: Question) -> str:
    """The question that the judge sees, or the conversation that ends with the question."""
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
        raise UsageError(
            f"{where} has no rubric, but the judge form {visible(form.name, 80)} requires one: specify "
            "its column in the card with `columns: {rubric: NAME}`"
        )
    if form.reply != "criteria":
        return rubric
    try:
        return "\n".join(f"{n}. {each.criterion}" for n, each in enumerate(criteria_of(rubric), 1))
    except ValueError as error:
        raise UsageError(
            f"the rubric for {where}: {quoted(str(error))}; expected a list of criteria with `criterion` and `points`"
        ) from error


def vote(reply: Sample, form: JudgeForm, question: Question) -> JudgeRuling | None:
    """The ruling of a judge's reply about an answer to `question`; None if there is none, or if the reply is truncated,
    since its last word may be cut. With points, the sample is correct from the card's `right_from` on, or with all
    points if the card has none.
    """
    ruling = None if reply.truncated else ruling_of(form, reply.text, question.rubric or "")
    return None if ruling is None else _from_threshold(ruling, question)


def _from_threshold(ruling: JudgeRuling, question: Question) -> JudgeRuling:
    """The ruling, with the verdict by the question's threshold of points, or by all points if it has none."""
    if ruling.points is None:
        return ruling
    given, most = ruling.points
    return ruling._replace(verdict="correct" if given >= (question.rules.right_from or most) else "wrong")


_TAKE: dict[str, Callable[[list[float]], float]] = {"median": median, "mean": fmean, "lowest": min}
"""How the points of a jury are combined."""


def jury_ruling(form: JudgeForm, rulings: Sequence[JudgeRuling | None], question: Question) -> JudgeRuling | None:
    """The ruling of a jury: points combined as the form specifies (`JudgeForm.take`), or the verdict of more than half.

    None if a judge has no ruling, or if no verdict has a majority.
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
    """Return a judge's name in grades and opinions, such as `judge:org/model@verdict`."""
    return f"judge:{model}@{form.name}"


def without_judge(grader: str) -> str:
    """Return the grader before the judge from the grader of a sample, whether or not a judge decided it."""
    return grader.partition("+judge:")[0]


def prompt_of(grader: str) -> str:
    """Return the prompt's name from the grader of a sample that a judge decided (`judge_name`)."""
    return grader.rpartition("@")[2].partition("*")[0]


def apply_ruling(grade: Grade, ruling: JudgeRuling | None, judge: str, *, override: bool = False) -> Grade:
    """Return the grade after the judge's ruling, which decides those that the rules leave open, or all with
    `override`.

    A decided grade has the rule `JUDGE_RULE`, even if the judge agrees with the rules: the judge's verdict counts, so
    an audit must be able to draw it. Its grader names the previous grader, then the judge. The next score grades such a
    sample by the rules again, since the name differs from that of the rules.

    ruling: None: the judge has none, and the grade stays. judge: from `judge_name`.
    """
    if ruling is None or (grade.verdict not in OPEN and not override):
        return grade
    decided = msgspec.structs.replace(
        grade,
        rule=JUDGE_RULE,
        grader=f"{grade.grader}+{judge}",
        points=ruling.points or msgspec.UNSET,
        confidence=msgspec.UNSET if ruling.confidence is None else ruling.confidence,
    )
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


# --- what a request shows ---
MAX_QUESTION_CHARS = 20_000
MAX_REFERENCE_CHARS = 9_000
MAX_ROW_RUBRIC_CHARS = 20_000
MAX_ANSWER_CHARS = 2_000
"""Largest number of characters of each text that a judge sees; `…` marks a cut."""

_TAG_DIGITS = 12
"""Number of hexadecimal digits of the checksum in a tag."""

_FIELD = re.compile(r"\{(question|references|answer|rubric)\}")
_ANSWER_END = re.compile(rf"</answer-[0-9a-f]{{{_TAG_DIGITS}}}>\n\n")


def is_about(request: str, answer: str) -> bool:
    """Whether a request to a judge shows this answer, made by `shown_answer`, `shown_ending` or `shown_reply`."""
    return _tag("answer", answer) in request


def rule_in(request: str) -> str:
    """Return the rule that defines "correct" in a request to a judge with a user's rubric."""
    ending = with_rubric("MARK").prompt.partition("MARK")[2]
    return _ANSWER_END.split(request)[-1].removesuffix(ending)


def shown_answer(text: str) -> str:
    """Return an answer as a judge sees it: one line, no invisible character, at most `MAX_ANSWER_CHARS`."""
    return visible(text.strip(), MAX_ANSWER_CHARS)


def shown_ending(text: str) -> str:
    """Return the end of a text in the same form as `shown_answer`."""
    text = text.strip()
    return visible(text) if len(text) <= MAX_ANSWER_CHARS else f"…{visible(text[-MAX_ANSWER_CHARS:])}"


def shown_reply(text: str, most: int = MAX_SHOWN_REPLY_CHARS) -> str:
    """Return a whole reply as a judge sees it: its lines without invisible characters; only the end of a long reply."""
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

    rubric: the row's own, for a form that shows it. again: whether an earlier reply was not in the requested form.
    """
    fields = {
        "question": _tag("question", f"\n{_lines(_cut(question, MAX_QUESTION_CHARS))}\n"),
        # A solution has several lines; an answer to compare has one.
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
        text += f"\n\nAn earlier reply was not in this form, and nothing could be read from it: {form.expected_form}."
    return (Message("user", text),)


def _tag(name: str, text: str) -> str:
    """Return `text` between tags that carry its checksum, so that no text can contain its own closing tag."""
    tag = f"{name}-{digest(text)[:_TAG_DIGITS]}"
    return f"<{tag}>{text}</{tag}>"


# --- reading a reply ---
MAX_REPLY_CHARS = 20_000
"""Number of characters at the end of a judge's reply that are searched for the ruling."""

MAX_OBJECTS = 100
"""Largest number of lines of a reply that are tried as the beginning of a JSON object, from the end."""

MAX_NUMBER = 1e9
"""A larger number in a JSON object does not count as a number."""

_DECORATION = str.maketrans("", "", "*_`#>")
"""Markdown's emphasis, code, headings and quotations."""

_OF = re.compile(r"([-+]?\d{1,9}(?:\.\d{1,9})?)\s*(?:out of|/|of)\s*(\d{1,9}(?:\.\d{1,9})?)")
"""Points out of a maximum: `6 out of 7`, `6.5/10`."""

_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)

_BACKSLASH = re.compile(r'\\(?:[\\"/]|u[0-9a-fA-F]{4}|[bfnrt](?![A-Za-z]))|\\')
"""A JSON escape, or a stray backslash: `\\frac` and `\\beta` are LaTeX, not a control character and a word."""

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%?")
"""A confidence written as text."""

_NONE = ("", "none", "null", "n/a")
"""A judge's words for an answer that was not given."""


class JudgeRuling(NamedTuple):
    """A judge's ruling on one answer. points: (given, maximum), where `given` is below 0 if a rubric subtracts points;
    `verdict` then tells whether all are given. answer: the final answer as the judge extracted it. confidence: as
    stated in the judged reply, a fraction.
    """

    verdict: Reading
    points: tuple[float, float] | None = None
    answer: str | None = None
    confidence: float | None = None

    @property
    def share(self) -> float:
        """The fraction of points given; without points, 1 if correct, otherwise 0."""
        return float(self.verdict == "correct") if self.points is None else self.points[0] / self.points[1]


def ruling_of(form: JudgeForm, reply: str | None, rubric: str = "") -> JudgeRuling | None:
    """The ruling of a judge's reply; None if it has no complete ruling. rubric: the row's own."""
    part = final_part(reply) if reply else None
    if part is None or reply is None:
        return None
    start = max(part[0], part[1] - MAX_REPLY_CHARS)
    text = reply[start : part[1]]
    if start > part[0]:
        text = text.partition("\n")[2]  # the beginning of its first line is cut off
    match form.reply:
        case "line":
            return _parse_line(form, text.split("\n"))
        case "letter":
            return _unanimous_last(_parse_letters(form, text))
        case "points":
            return _unanimous_last(_parse_points(form, text))
        case _:
            return _unanimous_last(_parse_objects(form, text, rubric))


def _unanimous_last(statements: Iterator[JudgeRuling | None]) -> JudgeRuling | None:
    """The last of the statements, which are in reverse order; None if that is None or another statement differs."""
    last = next(statements, None)
    return None if last is None or any(each is not None and each != last for each in statements) else last


def _word(text: str) -> str:
    return text.translate(_DECORATION).strip().removesuffix(".").casefold()


def _parse_line(form: JudgeForm, lines: list[str]) -> JudgeRuling | None:
    """The verdict of the last line with the form's label. After a heading, the verdict is all that follows."""
    for index, line in reversed([*enumerate(lines)]):
        # Chinese models write the full-width colon.
        label, colon, value = line.translate(_DECORATION).replace("：", ":", 1).partition(":")
        if label.strip().casefold() != form.label.casefold():
            continue
        if line.lstrip().startswith("#") and not value.strip():
            colon, value = ":", "\n".join(lines[index + 1 :])
        verdict = {_word(word): verdict for word, verdict in form.reads.items()}.get(_word(value))
        return JudgeRuling(verdict) if colon and verdict else None
    return None


def _parse_letters(form: JudgeForm, text: str) -> Iterator[JudgeRuling | None]:
    """Yield the rulings of the lines that contain only a letter, its word or both (`A: CORRECT`), the last line first;
    for a last line that is none, yield None.
    """
    reads = {_word(word): verdict for word, verdict in form.reads.items()}
    for number, line in enumerate(reversed(text.strip().split("\n"))):
        verdicts = {reads.get(_word(part)) for part in line.strip(" ()[]").replace("：", ":").split(":")}
        verdict = verdicts.pop() if len(verdicts) == 1 else None
        if verdict is not None or number == 0:
            yield None if verdict is None else JudgeRuling(verdict)


def _parse_points(form: JudgeForm, text: str) -> Iterator[JudgeRuling | None]:
    """The rulings of lines that state points, in reverse order."""
    tag = re.compile(rf"[\s*`]*<{re.escape(form.label)}>(.*?)</{re.escape(form.label)}>[\s*`]*\Z", re.IGNORECASE)
    for line in reversed(text.split("\n")):
        label, colon, value = line.translate(_DECORATION).replace("：", ":", 1).partition(":")
        if tagged := tag.match(line):
            value = tagged[1]
        elif not colon or label.strip().casefold() != form.label.casefold():
            continue
        stated = _OF.fullmatch(value.strip().removesuffix("."))
        is_whole = stated is not None and float(stated[2]) == form.points
        yield _with_points(form, float(stated[1])) if stated is not None and is_whole else None


def _with_points(form: JudgeForm, given: float) -> JudgeRuling | None:
    """The ruling with these points; None if the form does not allow them."""
    assert form.points is not None
    if not 0 <= given <= form.points or (form.allowed and given not in form.allowed):
        return None
    return JudgeRuling("correct" if given == form.points else "wrong", (given, form.points))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises `ValueError` for a key that occurs twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=lambda _: None, strict=False)


def _parse_objects(form: JudgeForm, text: str, rubric: str) -> Iterator[JudgeRuling | None]:
    """The JSON objects of a reply, in reverse order."""
    # As written, and for an object that is not JSON, with its stray backslashes doubled; lines begin the same way in
    # both.
    texts = text, _BACKSLASH.sub(lambda match: match[0] if len(match[0]) > 1 else r"\\", text)
    objects, which, end = [], 0, 0
    for begins in [*zip(*map(_OBJECT.finditer, texts), strict=True)][-MAX_OBJECTS:]:
        if begins[which].start() < end:
            continue  # inside the previous object
        for number, begin in enumerate(begins):
            try:
                value, end = _DECODER.raw_decode(texts[number], begin.end() - 1)
                which = number
                objects.append(_parse_object(form, value, rubric))
                break
            except (ValueError, RecursionError):
                continue
        else:
            objects.append(None)
    return reversed(objects)


def _parse_object(form: JudgeForm, value: dict[str, Any], rubric: str) -> JudgeRuling | None:
    """The ruling of a JSON object; None if a field is missing or contains something other than the form specifies."""
    if form.reply == "criteria":
        return _criteria_points(value.get("met"), rubric)
    ruling, answer, confidence = None, None, None
    for name, holds in form.fields.items():
        if name not in value:
            return None
        cell = value[name]
        is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
        number = float(cell) if is_number and abs(cell) < MAX_NUMBER else math.nan
        is_none = cell is None or (isinstance(cell, str) and _word(cell) in _NONE)
        if holds in ("answer", "confidence") and is_none:
            continue
        if holds == "verdict" and isinstance(cell, str) and (verdict := form.reads.get(cell.strip().casefold())):
            ruling = JudgeRuling(verdict)
        elif holds == "points" and not math.isnan(number):
            ruling = _with_points(form, number)
        elif holds == "answer" and (is_number or isinstance(cell, str)):
            answer = str(cell).strip()
        elif holds == "confidence":
            stated = _PERCENT.fullmatch(cell.strip()) if isinstance(cell, str) else None
            number = float(stated[1]) if stated else number
            if not 0 <= number <= 100:
                return None
            confidence = number / 100
        elif holds == "answer":
            return None
    if "answer" in form.fields.values() and answer is None:
        confidence = None  # such as the 100 that a judge states if nothing was extracted
    return None if ruling is None else ruling._replace(answer=answer, confidence=confidence)


def _criteria_points(met: Any, rubric: str) -> JudgeRuling | None:
    """The points of the criteria that are met, out of all positive points: below 0 if faults outweigh them."""
    criteria = criteria_of(rubric)
    if not isinstance(met, list) or len(met) != len(criteria) or not all(isinstance(each, bool) for each in met):
        return None
    given = math.fsum(each.points for each, is_met in zip(criteria, met, strict=True) if is_met)
    most = math.fsum(max(0.0, each.points) for each in criteria)
    return JudgeRuling("correct" if given >= most else "wrong", (given, most))
