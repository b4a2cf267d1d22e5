"""The answer to a question in a sample: in its final part, in its reasoning, or its function calls."""

from __future__ import annotations

from functools import lru_cache

from reasoning_answers.bounds import LAST_LETTER, MAX_ANSWER_CHARS, MAX_CANDIDATES, MAX_WHOLE_REPLY_CHARS
from reasoning_answers.boxed import has_box, without_boxes
from reasoning_answers.calls import answer_of
from reasoning_answers.compare.plain_numbers import plain_number
from reasoning_answers.find.box_context import parts_of
from reasoning_answers.find.continued_questions import further_question
from reasoning_answers.find.extract import candidates, extract_from, shorten_answer, states_something
from reasoning_answers.find.reference import with_stated_answers
from reasoning_answers.find.values import NOTHING, UNSTATED, Extraction, values_in
from reasoning_answers.items import items_of
from reasoning_answers.letters import letters_of
from reasoning_answers.lost_calls import lost_call
from reasoning_answers.patterns import regex
from reasoning_answers.reasoning import final_part
from reasoning_answers.records import AnswerKind, CallSign, GradeRules, QuestionLike, ReplyLike
from reasoning_answers.steps import UNREAD_CALL, steps_of_search
from reasoning_answers.text import quoted

_STATED = ("box", "boxes", "phrase", "letter")
"""Methods of an answer that counts as stated regardless of its position."""


_DIGIT = regex(r"\d")
IN_PROSE = ("formula", "number", UNSTATED)
"""Methods of an answer in prose: it is not called wrong if another value in the reply is right."""


_IN_QUOTES = regex(r"\s*(?:\"([^\"“”]+)\"|['‘“«「]([^'‘’“”«»「」\"]+)['’”»」])\s*")
"""An answer between quotation marks."""


ONE_VALUE: tuple[AnswerKind, ...] = ("integer", "number", "expression")
"""Kinds of questions whose answer is a single value."""


_NO_RULES = GradeRules()


def search(
    question: QuestionLike, reply: ReplyLike, *, answer_from_reasoning: bool = False, with_steps: bool = False
) -> Extraction:
    """Return the answer of a sample; `NOTHING` if it has none.

    answer_from_reasoning: search the reasoning as well if the final part has no answer. with_steps: describe the
    search.
    """
    if question.kind == "calls":
        return _calls_of(question, reply, with_steps=with_steps)
    question = with_stated_answers(question)
    extraction = find_stated(question, reply)
    if extraction is None and answer_from_reasoning:
        extraction = _find_in_reasoning(question, reply)
    steps = tuple(steps_of_search(question, reply, extraction)) if with_steps else ()
    extraction = extraction or NOTHING
    # Other boxes do not matter next to a right answer, and the search for boxes in a long text takes most of the time.
    is_right = extraction.answer in question.references and is_simple(question)
    boxes = () if question.rules.whole_reply or is_right else _other_boxes(reply.text, extraction)
    return extraction._replace(other_boxes=boxes, steps=steps) if boxes or steps else extraction


def _calls_of(question: QuestionLike, reply: ReplyLike, *, with_steps: bool) -> Extraction:
    """Return the calls of a sample as its answer; an empty list is one, as it may be right to call nothing."""
    calls = reply.calls or ()
    answer, ids = answer_of(calls), [call.id for call in calls if call.id]
    # A reply with calls may also think of calls.
    thought, end = (None, "") if calls else (reply.reasoning, reply.finish_reason)
    names = {tool.name for tool in question.tools or ()}
    if (lost := lost_call(reply.text, thought, end, names, asks_program=False)) and not calls:
        answer = f"{UNREAD_CALL}: {lost}"
    shown: dict[CallSign, bool] = {
        "call": bool(calls),
        "unread_call": bool(lost),
        "cut_call": reply.truncated and bool(calls or lost),
        "same_id": len(set(ids)) < len(ids),
        "ends_in_calls": reply.finish_reason in ("tool_calls", "tool_use", *(["unknown"] if calls else [])),
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


def find_stated(question: QuestionLike, reply: ReplyLike) -> Extraction | None:
    """Return the answer in the final part of a sample; None in the same cases as `find`."""
    return find(question, reply.text, truncated=reply.truncated, is_apart=bool(reply.reasoning))


def find(
    question: QuestionLike, text: str | None, *, truncated: bool = False, is_apart: bool = False
) -> Extraction | None:
    """Return the answer to `question` in the final part of a response; None if that part is missing or has no answer.

    truncated: whether the token budget cut the response off. is_apart: whether the reasoning has its own field.
    """
    part = final_part(text, is_apart=is_apart) if text else None
    if text is None or part is None:
        return None
    return _find_in(with_stated_answers(question), text, *part, truncated=truncated)


def _find_in_reasoning(question: QuestionLike, reply: ReplyLike) -> Extraction | None:
    """Return the answer in `reply.reasoning`, or in the text if that field is empty; None if there is no answer.

    The span of the answer is in characters of the field that was searched.
    """
    text = reply.reasoning or reply.text
    # Reasoning may stop anywhere, so its last line or number is not an answer.
    return _find_in(question, text, 0, len(text), truncated=True) if text else None


def _find_in(question: QuestionLike, text: str, start: int, end: int, *, truncated: bool) -> Extraction | None:
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
    is_mathematics = question.kind not in ("choice", "text", "program") and question.rules.is_built_in
    # A reference may be nothing but brackets, too.
    if is_mathematics and not states_something(extraction.answer) and all(map(states_something, question.references)):
        return None
    if extraction.method in IN_PROSE and not truncated and _is_one_number(question):
        extraction = extraction._replace(behind=values_in(text, start, end, only_all=extraction.method == UNSTATED))
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


def _is_one_number(question: QuestionLike) -> bool:
    """Whether every reference is a plain number other than 0, since many words state 0."""
    if question.kind not in ONE_VALUE or not question.rules.is_built_in:
        return False
    numbers = [plain_number(reference) for reference in question.references]
    return all(number is not None and number.top != 0 for number in numbers)


def _parts(question: QuestionLike) -> int | None:
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
    return max([1, *map(parts_of, plain), *map(len, letters), *(len(items_of(reference)[0]) for reference in plain)])


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


def is_simple(question: QuestionLike) -> bool:
    """Whether an answer with the text of a reference is correct without a comparison: one value, no special rules."""
    return question.kind in ONE_VALUE and question.rules == _NO_RULES
