r"""The request to a judge: its form's prompt, filled with question, references, answer and rubric.

Guarantees: each of them stands between tags that carry a checksum of what is between them, so no text can close its own
tag; an answer is one line of visible characters and a whole reply its lines of them, all of bounded length.
Not covered: a judge that is talked into a verdict by what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.benchmarks.judge_forms import MAX_SHOWN_REPLY_CHARS, JudgeForm, with_rubric
from harness.core.codec import digest
from harness.core.inert import visible
from harness.core.records import Message

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
