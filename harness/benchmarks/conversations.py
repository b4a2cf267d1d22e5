"""Conversations in the data: the user's turns of a row, with what each states.

    a list of texts, or of {"text", "delay", "max_tokens"}       the turns (MT-Bench; aiperf, whose delay is in ms)
    numbered columns, such as turn_{n}_prompt or prompt_{n}      the turns; an empty cell ends them (Multi-IF, guidellm)
    a list of {"messages"}                                       the new messages of each turn (SGLang)
    messages: {"role", "content"}, {"from", "value"},            with `live`, the user's messages, one turn each;
        {"human", "assistant"}                                   otherwise not a conversation of turns

Functions raise `ValueError` with the end of a sentence; the caller prepends the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from harness.benchmarks.column_names import find
from harness.benchmarks.prompts import Prompt, substitute
from harness.core.codec import digest
from harness.core.records import AskedTurn, Message, Question
from harness.core.sanitize import quoted
from harness.core.turn_settings import MAX_TURNS

TURN_COLUMNS = (
    "turns",
    "shards",
    "turn_{n}_prompt",
    "prompt_{n}",
    "question{n}",
    "question_{n}",
    "conversations",
    "conversation",
    "messages",
)
"""The usual columns with the turns of a conversation; `{n}` is the number of a turn, from 1."""

TURN_ANSWER_COLUMNS = ("answer{n}", "answer_{n}", "reference_{n}", "expected_answer_{n}")
"""The usual numbered columns with the reference of each turn."""

MAX_TOKENS_COLUMNS = ("output_tokens_count_{n}", "max_tokens_{n}")
"""Numbered columns with the limit on new tokens of each turn."""

_USERS = ("user", "human")
_ROLES = {"human": "user", "gpt": "assistant", "bing": "assistant", "chatgpt": "assistant"}
"""Role in ShareGPT's form → the chat API's."""


def numbered(names: Iterable[str], cells: Mapping[str, Any], number: int) -> Any:
    """The cell of turn `number` in the first of these columns that the row has; None if it has none."""
    column = find([name.replace("{n}", str(number)) for name in names if "{n}" in name], cells)
    return None if column is None else cells[column]


def turns_of(cells: Mapping[str, Any], columns: Sequence[str], *, live: bool, most: int | None) -> list[AskedTurn]:
    """The turns of a row; empty if it is no conversation, or only one of messages that the data answer.

    columns: names of columns with turns. live: whether the model writes the replies that messages have. most: number of
    turns that are read; None: all.
    """
    turns = _of_cell(cells, columns, live=live) or _of_numbered(cells, columns)
    if len(turns) > MAX_TURNS:
        raise ValueError(f"has {len(turns)} turns; the limit is {MAX_TURNS}")
    for number, turn in enumerate(turns, 1):
        if not any(message.content.strip() for message in turn.messages):
            raise ValueError(f"has no text in turn {number}")
    return turns[:most]


def references_of(value: Any, cells: Mapping[str, Any], columns: Sequence[str], n: int) -> list[Any]:
    """The reference cell of each of `n` turns; None for a turn without one. value: the cell of the answer column, a
    list by turn or the last turn's. columns: names of numbered columns with a reference.
    """
    if isinstance(value, list):
        if value and len(value) != n:
            raise ValueError(f'has {n} turns but {len(value)} references; use null or "" for a turn without one')
        return [None if each in ("", None) else each for each in value] or [None] * n
    if value not in (None, ""):
        return [*[None] * (n - 1), value]
    each = (numbered(columns, cells, number) for number in range(1, n + 1))
    return [None if one == "" else one for one in each]


def with_instructions(question: Question, prompt: Prompt) -> Question:
    """A conversation whose graded turns after the first have the prompt's instruction."""

    def instructed(turn: AskedTurn) -> AskedTurn:
        if not (turn.references and turn.messages):
            return turn
        *before, last = turn.messages
        messages = (*before, Message("user", substitute(prompt.template, last.content)))
        return msgspec.structs.replace(turn, messages=messages)

    turns = [instructed(turn) for turn in question.turns or ()]
    identities = [[message.identity for message in turn.messages] for turn in turns]
    prompt_digest = digest([question.prompt_digest, identities])
    return msgspec.structs.replace(question, turns=tuple(turns), prompt_digest=prompt_digest)


def _of_numbered(cells: Mapping[str, Any], columns: Sequence[str]) -> list[AskedTurn]:
    turns = list[AskedTurn]()
    for number in count(1):
        text = numbered(columns, cells, number)
        if text in (None, "") or number > MAX_TURNS:
            return turns
        turns.append(_turn({"text": text, "max_tokens": numbered(MAX_TOKENS_COLUMNS, cells, number)}))
    raise AssertionError("numbers do not end")


def _of_cell(cells: Mapping[str, Any], columns: Sequence[str], *, live: bool) -> list[AskedTurn]:
    column = find([name for name in columns if "{n}" not in name], cells)
    value = None if column is None else cells[column]
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):  # SGLang: lists of one list
        (value,) = value
    if not isinstance(value, list) or not value:
        return []
    if all(isinstance(each, str) for each in value):
        return [_turn({"text": each}) for each in value]
    if not all(isinstance(each, dict) for each in value):
        raise ValueError(f"has a turn that is neither a text nor an object in the column {column!r}")
    first = value[0]
    if "text" in first or "messages" in first:
        return [_turn(each) for each in value]
    return [*_live_turns(value)] if live else []


def _live_turns(value: Sequence[Mapping[str, Any]]) -> Iterator[AskedTurn]:
    """The user's messages, one turn each; the system message goes with the first, and the replies are left out."""
    system = list[Message]()
    for item in messages_in(value):
        if item["role"] == "system":
            if system:
                raise ValueError("has a system message that is not first")
            system = [Message("system", str(item["content"]))]
        elif item["role"] == "user":
            yield AskedTurn(messages=(*system, Message("user", _text(item["content"]))))
            system = []


def messages_in(value: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages of any form as {"role", "content"}."""
    for item in value:
        if "from" in item and "value" in item:
            yield {"role": _ROLES.get(str(item["from"]), item["from"]), "content": item["value"]}
        elif "human" in item or "assistant" in item:
            yield from (
                {"role": _ROLES.get(name, name), "content": item[name]}
                for name in ("human", "assistant")
                if name in item
            )
        else:
            yield {**item, "role": item.get("role"), "content": item.get("content")}


def _turn(item: Mapping[str, Any]) -> AskedTurn:
    """A turn in the form {"text"} or {"messages"}."""
    given = item.get("messages")
    if given is None:
        given = [{"role": "user", "content": item.get("text")}]
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError("has a turn whose `messages` are not a list of messages")
    messages = tuple(Message(str(each["role"]), _text(each["content"])) for each in messages_in(given))
    if any(message.role not in ("system", "user", "assistant") for message in messages):
        raise ValueError("has a message whose role is not system, user or assistant")
    if not messages or messages[-1].role != "user":
        raise ValueError("has a turn that does not end with a user message")
    most = _number(item.get("max_tokens", item.get("output_tokens")), "max_tokens", int)
    delay = _number(item.get("delay"), "delay", float)
    return AskedTurn(messages=messages, max_tokens=most or None, delay=(delay or 0) / 1000)


def _text(value: Any) -> str:
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "\n".join(part for part in parts if isinstance(part, str)) if len(parts) == len(value) else None
    if not isinstance(value, str):
        raise ValueError(f"has a turn whose text is not a string: {quoted(str(value))}")
    return value


def _number(value: Any, name: str, type_: Callable[[Any], Any]) -> Any:
    """A number from 0 to a million that a turn states; None if it states none."""
    if value in (None, ""):
        return None
    try:
        number = type_(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if isinstance(value, bool) or not 0 <= number <= 1_000_000:
        raise ValueError(f"has a turn whose {name} is not a number from 0 to 1,000,000: {quoted(str(value))}")
    return number
